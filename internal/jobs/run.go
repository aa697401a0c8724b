package jobs

import (
	"time"

	"github.com/epplan/epplan/slurm"
)

// Skew is how far apart the clocks of Slurm and of a run's node may be.
const Skew = 2 * time.Second

// runState is what Slurm's answer about a job says of a run.
type runState int

const (
	runLasts runState = iota // its Epilogs aren't done, or the answer is an old one
	runEnded
	idReused // the answer is about another job: Slurm gives ids again
)

// ending is how a job's run ended.
type ending struct {
	state     slurm.State
	submitted int64 // Unix seconds; 0: not known
	restarts  uint32
	at        int64 // Unix seconds; 0: not known
	suspended bool  // for a while
}

// Run is when a run of a job began.
type Run struct {
	Began     time.Time // zero: not known
	Submitted time.Time // the job, as far as was known then; zero: it wasn't
}

// runState is what became of a run. Job ids come again, and restart counts differ
// between Prolog and Epilog of one run, so that runs are told apart by time:
// Slurm gives a job that is requeued another submit time.
//
// Of a run that was requeued Slurm's queue says no more than that: its state is
// REQUEUED, whatever the reason was.
func (job *Job) runState(run Run) (runState, ending) {
	s := job.stateOf()
	switch {
	case run.before(job):
		if job.Restarts > 0 {
			return runEnded, ending{state: slurm.Requeued, restarts: job.Restarts - 1, at: run.requeued(job)}
		}
		return idReused, ending{}
	case s.Ended():
		suspended := job.unusual().suspended
		return runEnded, ending{
			s.Base, job.Submitted, job.Restarts, job.unusual().end,
			suspended > 0 && suspended >= run.Began.Add(-Skew).Unix(),
		}
	}
	return runLasts, ending{}
}

// endOf is when a run ended, Unix seconds, also while its job's Epilogs run; 0: it
// didn't, or that isn't known.
func (job *Job) endOf(run Run) int64 {
	f, end := job.runState(run)
	switch {
	// Else it is of the run before.
	case f == runLasts && timeOf(job.unusual().end).After(run.Began.Add(-Skew)):
		return job.unusual().end
	// It gets another submit time after that.
	case f == runEnded && (end.state != slurm.Requeued || !job.inEpilog()):
		return end.at
	}
	return 0
}

// End is when a run ended, also while its job's Epilogs run; zero: it didn't, or that
// isn't known.
func (job *Job) End(run Run) time.Time { return timeOf(job.endOf(run)) }

// inEpilog reports whether a job's Epilogs run.
func (job *Job) inEpilog() bool { return job.completing || job.state.state() == slurm.Completing }

// before reports whether a run began before the job was submitted or started as
// Slurm has it now.
func (r Run) before(job *Job) bool {
	if r.Began.IsZero() {
		return false
	}
	later, since := r.Began.Add(Skew).Unix(), job.Submitted
	if start := job.unusual().start; start > 0 && job.state.state() != slurm.Pending {
		since = start // even if that is before its submission: the clock was set back while it waited
	}
	return since > later ||
		!r.Submitted.IsZero() && job.Submitted > r.Submitted.Unix() && job.Submitted >= r.Began.Unix()
}

// requeued is when a run ended after which its job was queued anew, Unix seconds:
// that is when Slurm has it submitted. After several requeues it is a later one.
func (r Run) requeued(job *Job) int64 {
	if job.Submitted < r.Began.Unix() {
		return 0
	}
	return job.Submitted
}

// runs reports whether a run lasts.
func (job *Job) runs(run Run) bool {
	if f, _ := job.runState(run); f != runLasts {
		return false
	}
	switch job.state.state() { //nolint:exhaustive // the others don't run
	case slurm.Running, slurm.Suspended, slurm.Completing, slurm.Configuring:
		return true
	}
	return job.completing
}
