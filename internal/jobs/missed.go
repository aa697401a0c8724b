package jobs

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
	options        *Options
	withSubmission func(ctx context.Context, job *Job) (*Job, error)

	mu   sync.Mutex
	seen map[slurm.JobID]lookup
}

// lookup is a job that was looked for.
type lookup struct {
	submitted int64     // Unix seconds
	again     time.Time // when to look again; zero: the records say what they can
}

// outcomesIn is how long after a job's end the outcomes of all its runs have come,
// unless an agent is away or has lost them.
const outcomesIn = 2 * patience

// recordMissed records how jobs with GPUs ended that nobody told of when they began,
// as no epd ran then: as long as Slurm names them, after MinJobAge nobody does. A job
// that was queued anew is one of these, too, where only its first run was seen.
func (m *missed) recordMissed(ctx context.Context, ended map[slurm.JobID]knownJob) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := make(map[slurm.JobID]lookup, len(ended))
	now := m.options.Clock()
	for id, h := range ended {
		job := h.job
		before, known := m.seen[id]
		if known = known && before.submitted == job.Submitted; known &&
			(before.again.IsZero() || now.Before(before.again)) {
			seen[id] = before
			continue
		}
		neverBack := job.Restarts() > 0 && job.rareParts().nodeList == "" // queued anew, and ended while it waited
		if job.GPUs == 0 || job.Submitted == 0 || ctx.Err() != nil ||
			!neverBack && !m.hasReport(job.rareParts().nodeList) {
			continue // perhaps its agent reports later
		}
		look := lookup{submitted: job.Submitted}
		found, err := m.options.recordedJob(ctx, id, job.Submitted)
		if neverBack && err == nil && found == nil { // its runs before are known, or it isn't one of ours
			var before []store.ListedJob
			if before, err = m.options.submissions(ctx, id); err == nil && len(before) == 0 {
				seen[id] = look
				continue
			}
		}
		switch {
		case err != nil:
		case found == nil:
			err = m.record(ctx, id, job)
		case known:
			m.recordEnd(found, job)
		default:
			look.again = now.Add(outcomesIn)
		}
		if err != nil {
			m.options.Log.Info("how a job ended that nobody saw isn't recorded yet", "job", id, "error", err)
			continue
		}
		seen[id] = look
	}
	m.seen = seen
}

// hasReport reports whether an agent reports from one of some nodes.
func (m *missed) hasReport(hosts string) bool {
	names, err := slurm.ExpandHostlist(hosts)
	return err == nil && slices.ContainsFunc(names, func(name string) bool { return m.options.Reports(name) })
}

// record records a job that ended and of which there is no record: one that has
// one gets its state from the outcomes.
func (m *missed) record(ctx context.Context, id slurm.JobID, job *Job) error {
	job, err := m.withSubmission(ctx, job)
	if err != nil {
		return err
	}
	m.options.Write(job.LiveRecord(m.options.Cluster, id))
	return nil
}

// recordEnd has a job shown as Slurm says that it ended whose outcomes didn't come:
// its agent may be away, or have lost its disk. Should they come after all, they count.
func (m *missed) recordEnd(j *store.ListedJob, job *Job) {
	if Open(j.Shown) {
		j.State = string(job.state.state())
		m.options.Write(&j.Job)
	}
}

// Open reports whether a state is one of jobs that aren't over.
func Open(state string) bool {
	switch slurm.State(state) { //nolint:exhaustive // the others are over, or no states of jobs
	case slurm.Pending, slurm.Configuring, slurm.Running, slurm.Suspended, slurm.Completing:
		return true
	}
	return false
}
