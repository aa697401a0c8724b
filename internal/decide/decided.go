package decide

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"time"
	"unique"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// Decided is a decision with its place in the store. It is never changed, only
// replaced.
type Decided struct {
	live.Decision
	At     time.Time
	run    string
	stored chan struct{} // closed when id is known, or never will be
	id     int64         // in the store; read it after stored is closed

	// What the decision was asked for, and by what was known of the job then.
	gpus      int
	given     int // by Slurm, on all nodes; 0: it doesn't count GPUs
	shared    bool
	clockHash uint64 // hash of the device's table
	limit     epdapi.PowerLimit
	profiles  []string // that can be put in force on its GPUs
	submitted int64    // Unix seconds; 0: not known
	restarts  uint32
	partition unique.Handle[string] // where it started; zero: slurmd didn't say
	Fault     Fault
	armShares armShares // of the jobs, in the arms of the lot then
}

// Submitted returns when a decision's job was submitted; zero: that isn't known.
func (d *Decided) Submitted() time.Time {
	if d.submitted == 0 {
		return time.Time{}
	}
	return time.Unix(d.submitted, 0).UTC()
}

// IsOf reports whether a decision is the one for a run.
func (d *Decided) IsOf(run string) bool { return d.run == run }

// storedID waits until a decision is in the store, and returns its number there; 0: it
// never will be. The error is why the context ended before.
func (d *Decided) storedID(ctx context.Context) (int64, error) {
	select {
	case <-d.stored:
		return d.id, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// IsOfNoJob reports whether Slurm said that it has no such job.
func (d *Decided) IsOfNoJob() bool { return d.Reason == reasonNoJob }

// Kept returns the decision that counts for a job on a node; nil: there is none in memory.
func (dr *Decider) Kept(job slurm.JobID, node string) *Decided {
	dr.mu.Lock()
	defer dr.mu.Unlock()
	return dr.decided[jobOnNode{job, node}]
}

// lookUpDecision returns the decision for a run by the records; nil: they have none.
func (dr *Decider) lookUpDecision(ctx context.Context, job slurm.JobID, node, run string) (*Decided, error) {
	all, err := dr.options.Records.DecisionsOfJob(ctx, dr.options.Cluster, int64(job))
	if err != nil {
		return nil, fmt.Errorf("find the decision of run %s: %w", run, err)
	}
	for i := len(all) - 1; i >= 0; i-- {
		if d := &all[i]; d.Node == node && d.RunID == run {
			return decidedFromRecord(d), nil
		}
	}
	return nil, nil //nolint:nilnil // there is none
}

// Attribute gives the outcome of a job (0: of none) its decision: what was decided counts,
// not what comes with the outcome. It returns the run by its decision, and where its job started; "": that
// isn't known.
func (dr *Decider) Attribute(
	ctx context.Context, id slurm.JobID, o *record.Outcome,
) (run jobs.Run, partition string, err error) {
	run.Began = o.Started
	if id == 0 {
		return run, "", nil
	}
	d := dr.Kept(id, o.Node)
	if d != nil && d.IsOf(o.RunID) {
		if _, err := d.storedID(ctx); err != nil {
			return run, "", fmt.Errorf("the decision of run %s isn't stored yet: %w", o.RunID, err)
		}
	} else if d, err = dr.lookUpDecision(ctx, id, o.Node, o.RunID); err != nil || d == nil {
		o.DecisionID = 0
		return run, "", err
	}
	run = jobs.Run{
		Decided: true, Began: d.At, Submitted: d.Submitted(), GPUs: cmp.Or(d.given, d.gpus), Limit: d.Limit,
	}
	if run.Submitted.IsZero() { // the job wasn't known then, or the controller is younger
		if job := dr.options.Jobs.SubmittedAt(ctx, id, d.At); job != nil {
			run.Submitted, run.GPUs, run.Limit = job.Submitted, cmp.Or(d.given, job.GPUs), job.Limit
		}
	}
	if !run.Submitted.IsZero() {
		o.Submitted, o.Restart = run.Submitted, int(d.restarts)
	}
	o.DecisionID, o.Workload, o.GPUModel, o.Arm = d.id, d.Workload, d.GPUModel, d.Arm
	completeNotLocked(o, d)
	if why := d.couldLock(o); why != "" {
		o.DropSetting(why)
	}
	if d.partition != (unique.Handle[string]{}) {
		partition = d.partition.Value()
	}
	return run, partition, nil
}

// couldLock says why a run can't have been locked at an outcome's clocks by its decision; "": it can. What a
// driver refused, and all of it when the run's clocks were given back before its end, is 0 there.
func (d *Decided) couldLock(o *record.Outcome) (why string) {
	at, decided := o.Setting, d.Setting
	if !d.Apply { // a profile is put in force beside default clocks, too
		decided = dvfsmodel.Setting{Profile: d.Profile}
	}
	if low, ok := d.adaptedDownTo(); ok && at.Core >= low && at.Core < decided.Core {
		decided.Core = at.Core
	}
	same := func(locked, decided float64) bool { return locked == 0 || math.Abs(locked-decided) < 1 } // rounded
	if same(float64(at.Core), float64(decided.Core)) && same(float64(at.Mem), float64(decided.Mem)) &&
		same(float64(at.Cap), float64(decided.Cap)) && (at.Profile == 0 || at.Profile == decided.Profile) {
		return ""
	}
	return "decided were " + decided.Words()
}

// adaptedDownTo returns the lowest clock to which a run is adapted; false: it isn't.
func (d *Decided) adaptedDownTo() (low dvfsmodel.MHz, ok bool) {
	if d.Adapt != nil {
		return d.Adapt.Levels[len(d.Adapt.Levels)-1].Core, true
	}
	n, _ := fmt.Sscanf(d.Reason, adaptedReason, &low) // by the records
	return low, n == 1
}

// completeNotLocked says of an outcome why its decided clocks weren't set where its node doesn't; and nothing
// where no clocks were to be set.
func completeNotLocked(o *record.Outcome, d *Decided) {
	none := dvfsmodel.Setting{}
	switch {
	case !d.Apply || d.WithoutProfile() == none:
		o.NotLocked = live.NotLocked{}
	case o.NotLocked == (live.NotLocked{}) && o.Setting.WithoutProfile() == none && !o.Unmatched:
		o.NotLocked = live.NotLocked{Kind: live.NotLockedOther, Why: "its node doesn't say why"}
	}
}

// Len returns how many decisions are in memory.
func (dr *Decider) Len() int {
	dr.mu.Lock()
	defer dr.mu.Unlock()
	return len(dr.decided)
}

// keep makes a decision the one that counts, unless another came first, and
// has it written. One that is in the store already comes without a job.
func (dr *Decider) keep(key jobOnNode, d *Decided, job *jobs.Job) (kept *Decided, made bool) {
	dr.mu.Lock()
	if other := dr.decided[key]; other != nil && other.IsOf(d.run) {
		dr.mu.Unlock()
		return other, false
	}
	if len(dr.decided) >= maxDecided {
		for old, d := range dr.decided { // any: the store has them
			dr.drop(old, d)
			dr.evicted.Store(true)
			break
		}
	}
	if job != nil {
		dr.followOrLead(d)
	}
	dr.decided[key] = d
	dr.mu.Unlock()
	if job == nil {
		return d, false
	}
	if !dr.writer.put(writeTask{
		job:      job.Record(dr.options.Cluster, key.job, d.Workload, slurm.Running),
		decision: dr.decisionRecord(d), decided: d,
	}) {
		dr.options.Log.Error("a decision isn't stored", "error", "too many wait to be", "job", d.Job)
	}
	return d, true
}

// Release forgets the decision of a run that ended.
func (dr *Decider) Release(job slurm.JobID, node, run string) {
	key := jobOnNode{job, node}
	dr.mu.Lock()
	defer dr.mu.Unlock()
	if d := dr.decided[key]; d != nil && d.IsOf(run) {
		dr.drop(key, d)
	}
}

// forgetAfter is how long a decision is kept in memory for an outcome when its
// job isn't known any more. The store has it after that.
const forgetAfter = 24 * time.Hour

// ForgetStale forgets decisions whose outcome never came.
func (dr *Decider) ForgetStale() {
	now := dr.options.Clock()
	dr.mu.Lock()
	defer dr.mu.Unlock()
	for key, d := range dr.decided {
		if now.Sub(d.At) > forgetAfter && dr.options.Jobs.Get(key.job) == nil {
			dr.drop(key, d)
			dr.forgotten.Store(max(dr.forgotten.Load(), d.At.Unix()))
		}
	}
}

// decidedFromRecord rebuilds a decision.
func decidedFromRecord(d *record.Decision) *Decided {
	old := &Decided{
		run: d.RunID, At: d.Created, id: d.ID, stored: make(chan struct{}),
		armShares: armShares{d.HoldOut, d.ConstantArm},
	}
	close(old.stored)
	mode := live.Mode(d.Mode)
	old.Decision = live.Decision{
		ID: strconv.FormatInt(d.ID, 10), Job: uint32(d.JobID), Node: d.Node, //nolint:gosec // it was one when it was stored
		Mode: mode, Setting: d.Setting, Predicted: d.TimeS.Value, Upper: d.TimeS.High,
		PowerW: d.PowerW.Value, EnergyJ: d.EnergyJ.Value, Reason: d.Reason, Workload: d.Workload,
		GPUModel:     d.GPUModel,
		ModelVersion: d.ModelVersion, ConfigVersion: d.ConfigVersion,
		HoldOut: d.Arm == live.ArmHeldOut, Arm: d.Arm,
		Created: d.Created,
	}
	old.Apply = mode == live.Enforce && d.Setting.WithoutProfile() != dvfsmodel.Setting{}
	return old
}

// decisionRecord returns a decision as it is stored.
func (dr *Decider) decisionRecord(d *Decided) *record.Decision {
	out := &record.Decision{
		Cluster: dr.options.Cluster, JobID: int64(d.Job), Node: d.Node, RunID: d.run, Workload: d.Workload,
		GPUModel: d.GPUModel, Setting: d.Setting,
		TimeS:  record.Interval{Value: d.Predicted, High: d.Upper},
		PowerW: record.Interval{Value: d.PowerW}, EnergyJ: record.Interval{Value: d.EnergyJ},
		Reason: d.Reason, Mode: string(d.Mode), ConfigVersion: d.ConfigVersion, ModelVersion: d.ModelVersion,
		Arm: d.Arm, Created: d.Created, DefaultJ: d.DefaultJ, HoldOut: d.armShares.holdOut,
		ConstantArm: d.armShares.constant,
	}
	return out
}
