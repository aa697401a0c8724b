package accounting

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// Bounds of what Slurm is asked: jobs at most one in each pause, and none that ended
// just now, of which slurmdbd and other nodes' agents have still to tell.
const (
	Pause      = time.Second
	settle     = time.Minute
	settleTime = 30 * time.Second // that an AdminComment must not have changed for
	retryAfter = 10 * time.Minute // after which a job is tried again
	maxTries   = 6
	maxWaiting = 10_000 // jobs that wait
	// heldRuns is how many held-out runs of a workload it takes to say what one saved.
	heldRuns  = 3
	strataAge = 10 * time.Minute
)

// Slurm is its accounting.
type Slurm interface {
	Version(ctx context.Context) (slurm.Version, error)
	Accounted(ctx context.Context, id slurm.JobID) (slurm.AccountingRecord, error)
	AccountEnergy(ctx context.Context, id slurm.JobID, joules float64) error
	AccountComment(ctx context.Context, id slurm.JobID, comment string) error
}

var _ Slurm = (*slurm.Client)(nil)

// Records are what is recorded.
type Records interface {
	OutcomesOfJob(ctx context.Context, cluster string, job int64) ([]record.Outcome, error)
	Strata(ctx context.Context, cluster string, since, until time.Time) ([]record.Stratum, error)
}

// Options are what a writer works with.
type Options struct {
	Slurm   Slurm
	Records Records
	Cluster string
	// Kind is which energy is written.
	Kind func() config.AccountEnergy
	Now  func() time.Time
	Log  *slog.Logger
}

// Writer writes jobs' energies. Nobody waits for it.
type Writer struct {
	options Options

	mu      sync.Mutex
	waiting map[slurm.JobID]pendingJob
	dropped int // jobs for which there was no room

	foreign atomic.Int64

	trouble  string // what was said to go wrong; empty: nothing
	strata   []record.Stratum
	strataAt time.Time
}

// pendingJob is a job to be written.
type pendingJob struct {
	due   time.Time
	tries int
	seen  *string // its AdminComment when it was looked at last, to be found the same; nil: it wasn't
}

// New returns a writer, which begins by [Writer.Run].
func New(o Options) *Writer {
	return &Writer{options: o, waiting: make(map[slurm.JobID]pendingJob)}
}

// Foreign counts jobs without an energy in Slurm's accounting, as their AdminComment belongs to another tool.
func (w *Writer) Foreign() int64 { return w.foreign.Load() }

// Ended notes that an outcome of a job is recorded. It doesn't block.
func (w *Writer) Ended(o *record.Outcome) {
	if w.options.Kind() == config.AccountOff || o.JobID <= 0 || o.JobID > slurm.MaxJobID || o.Unmatched {
		return
	}
	id := slurm.JobID(o.JobID)
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, there := w.waiting[id]; !there && len(w.waiting) >= maxWaiting {
		w.dropped++
		return
	}
	w.waiting[id] = pendingJob{due: w.options.Now().Add(settle)}
}

// Run writes until the context ends.
func (w *Writer) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(Pause):
		}
		if w.options.Kind() != config.AccountOff {
			w.Step(ctx)
		}
	}
}

// Step writes the job that has been due for longest, and reports whether there was one.
func (w *Writer) Step(ctx context.Context) bool {
	id, job, dropped, ok := w.takeDue()
	if dropped > 0 {
		w.options.Log.WarnContext(ctx, "too many jobs wait for Slurm's accounting: the energies of some aren't in it",
			"jobs", dropped)
	}
	if !ok {
		return false
	}
	err := w.write(ctx, id, &job)
	switch {
	case ctx.Err() != nil:
		return true
	case err == nil:
		w.logTrouble(ctx, "")
	case errors.Is(err, errLater):
		w.retryLater(id, job)
	case errors.Is(err, errMoves):
		w.retryLater(id, job)
	case errors.Is(err, slurm.ErrForeignText):
		w.foreign.Add(1)
		w.logTrouble(ctx, "of some jobs no energy is in Slurm's accounting: "+err.Error())
	default:
		w.retryLater(id, job)
		w.logTrouble(ctx, "jobs' energies can't be written to Slurm's accounting: "+err.Error())
	}
	return true
}

// takeDue takes the job that has been due for longest, and says for how many there was no room lately.
func (w *Writer) takeDue() (first slurm.JobID, job pendingJob, dropped int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	dropped, w.dropped = w.dropped, 0
	for id, job := range w.waiting {
		if first == 0 || job.due.Before(w.waiting[first].due) ||
			job.due.Equal(w.waiting[first].due) && id < first {
			first = id
		}
	}
	job = w.waiting[first]
	if first == 0 || job.due.After(w.options.Now()) {
		return 0, pendingJob{}, dropped, false
	}
	delete(w.waiting, first)
	return first, job, dropped, true
}

// retryLater tries a job again, unless it was tried often enough, or more of it came meanwhile.
func (w *Writer) retryLater(id slurm.JobID, job pendingJob) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, there := w.waiting[id]; !there && job.tries < maxTries && len(w.waiting) < maxWaiting {
		next := pendingJob{due: w.options.Now().Add(retryAfter), tries: job.tries + 1, seen: job.seen}
		if job.seen != nil { // it is looked at again soon
			next.due = w.options.Now().Add(settleTime)
		}
		w.waiting[id] = next
	}
}

// logTrouble logs what goes wrong, once until something else does, or nothing.
func (w *Writer) logTrouble(ctx context.Context, trouble string) {
	switch {
	case trouble == w.trouble:
	case trouble != "":
		w.options.Log.WarnContext(ctx, trouble)
	default:
		w.options.Log.InfoContext(ctx, "jobs' energies are written to Slurm's accounting again")
	}
	w.trouble = trouble
}

// errLater tells of a job that isn't told wholly yet, errMoves of one whose AdminComment wasn't still for
// long enough.
var (
	errLater = errors.New("not all is known of the job yet")
	errMoves = errors.New("the AdminComment may be changing")
)

// write writes one job.
func (w *Writer) write(ctx context.Context, id slurm.JobID, job *pendingJob) error {
	kind := w.options.Kind()
	if kind == config.AccountOff { // by now
		return nil
	}
	seen := job.seen
	job.seen = nil
	row, err := w.options.Slurm.Accounted(ctx, id)
	switch {
	case errors.Is(err, slurm.ErrNotFound):
		return errLater
	case err != nil:
		return err
	case row.End.IsZero() || !row.State.Ended():
		return errLater
	}
	all, err := w.options.Records.OutcomesOfJob(ctx, w.options.Cluster, int64(id))
	if err != nil {
		return err
	}
	runs := runsOf(all, &row)
	if slices.ContainsFunc(runs, func(o record.Outcome) bool { return o.Shared }) {
		return nil // what its GPUs took is others', too
	}
	joules, ok := energyOf(runs, &row, kind)
	if !ok {
		return errLater
	}
	version, err := w.options.Slurm.Version(ctx)
	if err != nil {
		return err
	}
	saved := w.savedEnergy(ctx, runs, joules)
	if row.Energy == 0 && version.AtLeast(25, 11) { // else Slurm has a meter of its own
		if err := w.options.Slurm.AccountEnergy(ctx, id, joules); err != nil {
			return err
		}
		if saved == nil {
			return nil
		}
	}
	comment, err := slurm.EnergyComment(row.AdminComment, joules, saved, version.AtLeast(24, 11))
	if err != nil || comment == row.AdminComment {
		return err
	}
	return w.comment(ctx, id, job, seen, row.AdminComment, comment)
}

// comment sets an AdminComment from what it was. Slurm can't be told to do so only if it still is that, and
// other tools write theirs after a job's end, too: so it must have been still for a while, is read once more
// just before, and again afterwards. What another tool wrote over ours stays, and ours is put behind it
// later, if it may.
func (w *Writer) comment(
	ctx context.Context, id slurm.JobID, job *pendingJob, seen *string, from, to string,
) error {
	job.seen = &from
	if seen == nil || *seen != from {
		return errMoves
	}
	if now, err := w.options.Slurm.Accounted(ctx, id); err != nil || now.AdminComment != from {
		return cmp.Or(err, errMoves)
	}
	if err := w.options.Slurm.AccountComment(ctx, id, to); err != nil {
		return err
	}
	now, err := w.options.Slurm.Accounted(ctx, id)
	if err == nil && now.AdminComment != to {
		job.seen = &now.AdminComment
		err = errMoves
	}
	return err
}

// runsOf returns the runs of a job's last start: one of that number that Slurm had before, or another
// start, may be recorded, too.
func runsOf(all []record.Outcome, row *slurm.AccountingRecord) []record.Outcome {
	const apart = time.Minute // clocks of nodes may be
	return slices.DeleteFunc(slices.Clone(all), func(o record.Outcome) bool {
		return o.Unmatched || o.Ended.Before(row.Start.Add(-apart)) || o.Started.After(row.End.Add(apart)) ||
			o.Started.Before(row.Start.Add(-apart))
	})
}

// energyOf returns the measured energy of a job on all its nodes.
func energyOf(
	runs []record.Outcome, row *slurm.AccountingRecord, kind config.AccountEnergy,
) (joules float64, ok bool) {
	told := make(map[string]bool)
	for i := range runs {
		o := &runs[i]
		one, known := o.GPUEnergyJ.Get()
		if kind == config.AccountNode {
			one, known = o.NodeEnergyJ.Get()
			known = known && o.NodeSource != record.Modelled && o.NodeSource != record.Unmeasured
		}
		if !known || !o.Implausible.IsZero() || told[o.Node] {
			return 0, false
		}
		told[o.Node] = true
		joules += one
	}
	for _, node := range row.Nodes {
		if !told[node] {
			return 0, false
		}
	}
	return joules, len(row.Nodes) > 0
}

// savedEnergy returns how much less a job took than held-out jobs of its workload in the mean; nil: nobody
// knows.
func (w *Writer) savedEnergy(ctx context.Context, runs []record.Outcome, joules float64) *float64 {
	key := record.WorkloadKey{Cluster: w.options.Cluster, Workload: runs[0].Workload, GPUModel: runs[0].GPUModel}
	for i := range runs {
		if o := &runs[i]; o.Arm != live.ArmTreated || o.Workload != key.Workload || o.GPUModel != key.GPUModel ||
			o.ExitState != record.Completed || key.Workload == "" {
			return nil
		}
	}
	if now := w.options.Now(); now.Sub(w.strataAt) >= strataAge {
		strata, err := w.options.Records.Strata(ctx, w.options.Cluster, time.Time{}, time.Time{})
		if err != nil {
			return nil
		}
		w.strata, w.strataAt = strata, now
	}
	var held record.Mean
	for i := range w.strata {
		s := &w.strata[i]
		if s.WorkloadKey != key || s.Arm != live.ArmHeldOut {
			continue
		}
		mean := s.GPU
		if w.options.Kind() == config.AccountNode {
			mean = s.Node
		}
		if mean.Runs > 0 {
			total := held.Value*float64(held.Runs) + mean.Value*float64(mean.Runs)
			held.Runs += mean.Runs
			held.Value = total / float64(held.Runs)
		}
	}
	if held.Runs < heldRuns {
		return nil
	}
	saved := held.Value - joules
	return &saved
}
