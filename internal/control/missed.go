package control

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/slurm"
)

// missed are the jobs of Slurm's last list that ended and were looked for in the
// records.
type missed struct {
	mu   sync.Mutex
	seen map[slurm.JobID]lookedFor
}

// lookedFor is a job that was looked for.
type lookedFor struct {
	submitted int64     // Unix seconds
	again     time.Time // when to look again; zero: the records say what they can
}

// outcomesIn is how long after a job's end the outcomes of all its runs have come,
// unless an agent is away or has lost them.
const outcomesIn = 2 * patience

// noteMissed records how jobs with GPUs ended that nobody told of when they began,
// as no epd ran then: as long as Slurm names them, after MinJobAge nobody does. A job
// that was queued anew is one of these, too, where only its first run was seen.
func (c *Controller) noteMissed(ctx context.Context, ended map[slurm.JobID]held) {
	m := &c.missed
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := make(map[slurm.JobID]lookedFor, len(ended))
	now := c.options.Clock()
	for id, h := range ended {
		k := h.job
		before, known := m.seen[id]
		if known = known && before.submitted == k.submitted; known && (before.again.IsZero() || now.Before(before.again)) {
			seen[id] = before
			continue
		}
		if k.gpus == 0 || k.submitted == 0 || !c.reported(k.unusual().nodeList) || ctx.Err() != nil {
			continue // perhaps its agent reports later
		}
		look := lookedFor{submitted: k.submitted}
		found, err := c.lookFor(ctx, id, k.submitted)
		switch {
		case err != nil:
		case found == nil:
			err = c.recordMissed(ctx, id, k)
		case known:
			c.recordEnd(found, k)
		default:
			look.again = now.Add(outcomesIn)
		}
		if err != nil {
			c.options.Log.Info("how a job ended that nobody saw isn't recorded yet", "job", id, "error", err)
			continue
		}
		seen[id] = look
	}
	m.seen = seen
}

// reported tells whether an agent reports from one of some nodes.
func (c *Controller) reported(hosts string) bool {
	names, err := slurm.ExpandHostlist(hosts)
	return err == nil && slices.ContainsFunc(names, func(name string) bool { return c.reports.of(name) != nil })
}

// lookFor is what the records have of a job, by its submission too, since ids come
// again; nil: nothing.
func (c *Controller) lookFor(ctx context.Context, id slurm.JobID, submitted int64) (*store.ListedJob, error) {
	page, err := c.options.Store.JobRows(ctx, &store.JobFilter{Cluster: c.options.Cluster, ID: int64(id)}, 0, maxSameID)
	if err != nil {
		return nil, err
	}
	for i := range page.Jobs {
		if page.Jobs[i].Submitted.Unix() == submitted {
			return &page.Jobs[i], nil
		}
	}
	return nil, nil //nolint:nilnil // there is no record of it
}

// recordMissed records a job that ended and of which there is no record: one that has
// one gets its state from the outcomes.
func (c *Controller) recordMissed(ctx context.Context, id slurm.JobID, k *knownJob) error {
	k, err := c.withToken(ctx, k, nil)
	if err != nil {
		return err
	}
	c.writer.put(entry{job: c.liveRecord(id, k)})
	return nil
}

// recordEnd has a job shown as Slurm says that it ended whose outcomes didn't come:
// its agent may be away, or have lost its disk. Should they come after all, they count.
func (c *Controller) recordEnd(j *store.ListedJob, k *knownJob) {
	if slices.Contains(unended, slurm.State(j.Shown)) {
		j.State = string(k.stateOf().Base)
		c.writer.put(entry{job: &j.Job})
	}
}

// unended are the states of jobs that aren't over.
var unended = []slurm.State{slurm.Pending, slurm.Configuring, slurm.Running, slurm.Suspended, slurm.Completing}
