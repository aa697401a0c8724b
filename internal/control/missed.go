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

// maxSubmissions is how many submissions under one id are told apart.
const maxSubmissions = 100

// noteMissed records how jobs with GPUs ended that nobody told of when they began,
// as no epd ran then: as long as Slurm names them, after MinJobAge nobody does. A job
// that was queued anew is one of these, too, where only its first run was seen.
func (t *tracker) noteMissed(ctx context.Context, ended map[slurm.JobID]held) {
	m := &t.missed
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := make(map[slurm.JobID]lookedFor, len(ended))
	now := t.options.Clock()
	for id, h := range ended {
		k := h.job
		before, known := m.seen[id]
		if known = known && before.submitted == k.submitted; known && (before.again.IsZero() || now.Before(before.again)) {
			seen[id] = before
			continue
		}
		if k.gpus == 0 || k.submitted == 0 || !t.reported(k.unusual().nodeList) || ctx.Err() != nil {
			continue // perhaps its agent reports later
		}
		look := lookedFor{submitted: k.submitted}
		found, err := t.lookFor(ctx, id, k.submitted)
		switch {
		case err != nil:
		case found == nil:
			err = t.recordMissed(ctx, id, k)
		case known:
			t.recordEnd(found, k)
		default:
			look.again = now.Add(outcomesIn)
		}
		if err != nil {
			t.options.Log.Info("how a job ended that nobody saw isn't recorded yet", "job", id, "error", err)
			continue
		}
		seen[id] = look
	}
	m.seen = seen
}

// reported tells whether an agent reports from one of some nodes.
func (t *tracker) reported(hosts string) bool {
	names, err := slurm.ExpandHostlist(hosts)
	return err == nil && slices.ContainsFunc(names, func(name string) bool { return t.options.Reports(name) })
}

// lookFor is what the records have of a job, by its submission too, since ids come
// again; nil: nothing.
func (t *tracker) lookFor(ctx context.Context, id slurm.JobID, submitted int64) (*store.ListedJob, error) {
	page, err := t.options.Records.JobRows(ctx, &store.JobFilter{Cluster: t.options.Cluster, ID: int64(id)}, 0, maxSubmissions)
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
func (t *tracker) recordMissed(ctx context.Context, id slurm.JobID, k *knownJob) error {
	k, err := t.WithSubmission(ctx, k)
	if err != nil {
		return err
	}
	t.options.Write(k.liveRecord(t.options.Cluster, id))
	return nil
}

// recordEnd has a job shown as Slurm says that it ended whose outcomes didn't come:
// its agent may be away, or have lost its disk. Should they come after all, they count.
func (t *tracker) recordEnd(j *store.ListedJob, k *knownJob) {
	if lasts(j.Shown) {
		j.State = string(k.state.state())
		t.options.Write(&j.Job)
	}
}

// lasts reports whether a state is one of jobs that aren't over.
func lasts(state string) bool {
	switch slurm.State(state) {
	case slurm.Pending, slurm.Configuring, slurm.Running, slurm.Suspended, slurm.Completing:
		return true
	}
	return false
}
