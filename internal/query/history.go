package query

import (
	"context"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// history is everything under a job id. Ids come again, and a job that is
// requeued is submitted anew, so that there may be several jobs.
type history struct {
	jobs      []record.Job // the last submission first
	decisions []record.Decision
	outcomes  []record.Outcome
}

// history reads what records there are under a job id.
func (r *reader) history(ctx context.Context, id int64) (*history, error) {
	page, err := r.options.Records.Jobs.Jobs(ctx, &store.JobFilter{Cluster: r.options.Cluster, ID: id}, 0,
		jobs.MaxSameID)
	if err != nil {
		return nil, err
	}
	h := &history{jobs: page.Jobs}
	if h.decisions, err = r.options.Records.Jobs.DecisionsOfJob(ctx, r.options.Cluster, id); err != nil {
		return nil, err
	}
	h.outcomes, err = r.options.Records.Jobs.OutcomesOfJob(ctx, r.options.Cluster, id)
	return h, err
}

// add puts a job that isn't in the records yet before the others.
func (h *history) add(j *record.Job) {
	if len(h.jobs) == 0 || j.Submitted.After(h.jobs[0].Submitted) {
		h.jobs = append([]record.Job{*j}, h.jobs...)
	}
}

// indexAt returns the index of the job that was submitted last before a time, or -1.
func (h *history) indexAt(t time.Time) int {
	return jobs.IndexAt(h.jobs, t)
}

// jobOf returns the index of the job that an outcome belongs to, or -1. Its decision
// tells better than the node's clock.
func (h *history) jobOf(o *record.Outcome) int {
	for i := range h.decisions {
		if o.DecisionID != 0 && h.decisions[i].ID == o.DecisionID {
			return h.indexAt(h.decisions[i].Created)
		}
	}
	if o.Started.IsZero() {
		return h.indexAt(o.Ended)
	}
	return h.indexAt(o.Started)
}

// filter keeps what belongs to jobs that are chosen by their index; -1 stands for
// what belongs to none.
func (h *history) filter(chosen func(job int) bool) *history {
	part := &history{}
	for i := range h.jobs {
		if chosen(i) {
			part.jobs = append(part.jobs, h.jobs[i])
		}
	}
	for i := range h.decisions {
		if chosen(h.indexAt(h.decisions[i].Created)) {
			part.decisions = append(part.decisions, h.decisions[i])
		}
	}
	for i := range h.outcomes {
		if chosen(h.jobOf(&h.outcomes[i])) {
			part.outcomes = append(part.outcomes, h.outcomes[i])
		}
	}
	return part
}

// visibleTo keeps what a caller may see.
func (h *history) visibleTo(who Caller) *history {
	if who.canSeeAll() {
		return h
	}
	return h.filter(func(job int) bool { return job >= 0 && who.canSee(h.jobs[job].User) })
}

// submission keeps what belongs to the job that was submitted at a time.
func (h *history) submission(at time.Time) *history {
	return h.filter(func(job int) bool { return job >= 0 && h.jobs[job].Submitted.Equal(at) })
}

// endState returns how a job ended by its outcomes, and its record's state while a run
// is open.
func (h *history) endState(state string) string {
	over := make(map[record.RunKey]bool)
	last := -1
	for i := range h.outcomes {
		over[h.outcomes[i].Key()] = true
		if last < 0 || h.outcomes[i].Ended.After(h.outcomes[last].Ended) {
			last = i
		}
	}
	for i := range h.decisions {
		if !over[h.decisions[i].Key()] {
			return state
		}
	}
	switch {
	case last < 0:
		return state
	case h.outcomes[last].ExitState == "":
		return "ENDED"
	}
	return h.outcomes[last].ExitState
}

// jobOf returns a job's record for whoever asks.
func jobOf(j *record.Job) *epdapi.Job {
	return &epdapi.Job{
		ID: j.ID, ArrayID: j.ArrayID(), Name: slurm.ValidUTF8(string(j.Name)), User: j.User, Account: j.Account,
		Partition: j.Partition,
		State:     j.State, Submitted: j.Submitted, Nodes: j.Nodes, GPUs: j.GPUs, Workload: j.Workload,
		Scripted: j.ScriptHash != "",
		Limit:    j.Limit,
	}
}
