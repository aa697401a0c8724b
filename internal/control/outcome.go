package control

import (
	"context"
	"fmt"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/decide"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// Record stores an outcome, once however often it comes, with what was decided
// for its run and how its job ended, and has the workload's model take account
// of it. After an error it wasn't stored, and whoever sends it keeps it; after
// [record.ErrInvalid] it never will be. [ErrNotYet] tells that it came too early.
func (c *Controller) Record(ctx context.Context, sent *record.Outcome) (store.Receipt, error) {
	if err := c.options.Records.Decisions.WriteProblem(); err != nil { // its decision won't be stored either
		c.counters.outcomeErrors.Add(1)
		return 0, err
	}
	o := *sent
	o.Cluster, o.Implausible = c.options.Cluster, record.Implausible{}
	o, err := o.Canonical()
	if err != nil {
		return 0, err
	}
	if c.canAskSlurm() { // of which start of its job it is, Slurm and the decision say
		o.Submitted, o.Restart = time.Time{}, 0
	}
	id := jobOf(&o)
	run, partition, err := c.decider.Attribute(ctx, id, &o)
	if err != nil {
		return 0, err
	}
	settled, err := c.Jobs.Settle(ctx, id, &o, run)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNotYet, err)
	}
	settings, job := c.settings.Load(), settled.Job
	settled.Bounds.GPUPower = settings.maxGPUPower(o.GPUModel, &c.decider.GPUs)
	o.DropImplausible(&settled.Bounds)
	if !sent.Unmatched && (o.DecisionID == 0 || o.Workload == "") {
		if err := c.attributeUndecided(ctx, id, &o, settled.Submitted, job); err != nil {
			return 0, err
		}
	}
	if settings.IsModule(o.GPUModel) {
		o.GPUSource = o.GPUSource.OfModule()
	}
	if known := c.Jobs.Get(id); known != nil && known.SharesGPUs() {
		o.Shared = true
	}
	o.DropShared()
	settings.completeNodeEnergy(&o)
	receipt, err := c.storeOutcome(ctx, id, &o)
	if err != nil {
		c.counters.outcomeErrors.Add(1)
		return 0, err
	}
	if receipt == store.Stored {
		c.noteStored(id, &o, job, partition)
	}
	c.counters.outcomes.Add(1) // last: who sees it finds the rest done
	if receipt == store.Stored && !o.Unmatched && o.Workload != "" {
		c.learner.RunEnded(ctx, &o)
	}
	if receipt == store.Stored && !o.Unmatched && id != 0 && !o.Submitted.IsZero() {
		c.forecasts.JobEnded(o.JobID, o.Submitted)
	}
	if id != 0 {
		c.decider.Release(id, o.Node, o.RunID)
	}
	return receipt, nil
}

// noteStored counts an outcome and tells those who count it, too.
func (c *Controller) noteStored(id slurm.JobID, o *record.Outcome, job *jobs.Job, partition string) {
	if job == nil && id != 0 {
		job = c.Jobs.Get(id)
	}
	if partition == "" && job != nil {
		partition = job.Partition.Value()
	}
	c.counters.countRun(o)
	if o.NotLocked == (live.NotLocked{}) {
		c.Plan.Ended(id, len(o.GPUs), o.TimeS, o.GPUEnergyJ)
	} else {
		c.Plan.NotLocked(id)
	}
	c.options.OnOutcome(o, partition)
	if o.Implausible.IsZero() {
		return
	}
	c.counters.implausible.Add(1)
	what := fmt.Sprintf("run %s of job %d on %s: %s", o.RunID, o.JobID,
		slurm.Printable(o.Node, epdapi.MaxModelName), o.Implausible.Why)
	c.counters.lastImplausible.Store(&what)
	c.options.OnStrange(&ImplausibleReport{
		StrangeValue, o.Node, "what an outcome says can't be: it is kept, and counts nowhere",
		o.Implausible.Why, o.JobID, o.RunID,
	})
}

// storeOutcome stores an outcome. A job that is queued anew has another submit time, so
// that it has one run on a node until then: what comes of it under another run's id
// is kept, and counts nowhere.
func (c *Controller) storeOutcome(
	ctx context.Context,
	id slurm.JobID,
	o *record.Outcome,
) (store.Receipt, error) {
	if o.Unmatched || id == 0 || o.Submitted.IsZero() && !c.canAskSlurm() {
		return c.options.Records.Runs.PutOutcome(ctx, o)
	}
	lock := &c.recording[int(id)%len(c.recording)]
	lock.Lock()
	defer lock.Unlock()
	another, err := c.options.Records.Runs.HasAnotherOfRun(ctx, o)
	if err != nil {
		return 0, err
	}
	if another {
		o.Unmatched, o.Workload, o.Arm = true, "", live.ArmExcluded
	}
	receipt, err := c.options.Records.Runs.PutOutcome(ctx, o)
	if err == nil && (another && receipt == store.Stored || receipt == store.Conflicting) {
		c.options.OnStrange(&ImplausibleReport{
			StrangeAgain, o.Node, "another outcome of a run that has one: it is kept, and counts nowhere", "",
			o.JobID, o.RunID,
		})
	}
	return receipt, err
}

// attributeUndecided gives an outcome the workload that Slurm says its job is of, and none where only its
// sender says so.
func (c *Controller) attributeUndecided(
	ctx context.Context, id slurm.JobID, o *record.Outcome, submitted int64, job *jobs.Job,
) error {
	known := job != nil || submitted != 0
	if o.DecisionID == 0 && !known && c.canAskSlurm() {
		o.Unmatched = true // nobody but its sender says that there was such a job
	}
	if o.DecisionID == 0 && o.Unmatched {
		o.Workload, o.Arm = "", live.ArmExcluded
	}
	if o.DecisionID == 0 && o.Setting != (dvfsmodel.Setting{}) && c.canAskSlurm() {
		o.DropSetting("no clocks were decided for it")
	}
	if o.Unmatched {
		c.counters.wrongNode.Add(1)
		c.options.OnStrange(&ImplausibleReport{
			StrangeOutcome, o.Node,
			"an outcome of a job that Slurm doesn't have there: it is kept, and counts nowhere", "", o.JobID, o.RunID,
		})
		return nil
	}
	if !known || o.Implausible.Setting != (dvfsmodel.Setting{}) {
		return nil
	}
	return c.attributeLate(ctx, id, o, submitted, job)
}

// canAskSlurm reports whether there is a Slurm to ask about jobs.
func (c *Controller) canAskSlurm() bool { return c.options.Resolve != nil || c.options.Account != nil }

// attributeLate gives an outcome the workload that wasn't known when its run began:
// nobody decided about it, as the controller was away, or Slurm didn't tell of its
// job in time. By now Slurm does, or the records have the job that ended. What was
// decided stays. Without a decision the agent names the GPU model, and the run was at
// default clocks and is in no arm.
func (c *Controller) attributeLate(
	ctx context.Context, id slurm.JobID, o *record.Outcome, submitted int64, job *jobs.Job,
) error {
	if o.DecisionID == 0 {
		o.GPUModel, o.Arm = c.settings.Load().ModelName(o.GPUModel), live.ArmExcluded
	}
	workload, err := c.Jobs.WorkloadOfEnded(ctx, id, o, submitted, job)
	if err != nil {
		return fmt.Errorf("what run %s of job %d was: %w", o.RunID, o.JobID, err)
	}
	if workload != "" && o.GPUModel != "" {
		o.Workload = workload
	}
	return nil
}

// jobOf returns the job of an outcome; 0: it names none that there can be.
func jobOf(o *record.Outcome) slurm.JobID {
	if o.JobID <= 0 || o.JobID > slurm.MaxJobID {
		return 0
	}
	return slurm.JobID(o.JobID)
}

// powerMargin is how many times the power of a busy GPU that its profile names no GPU
// draws: boards of one name have limits up to 1.8 times apart (V100: 250 to 450 W),
// and a profile may name a mean.
const powerMargin = 3

// limitMargin is how many times the highest power limit of its board a GPU draws at most over a run: boards
// keep their limit on average, and counters are off by some percent.
const limitMargin = 1.5

// maxGPUPower is more than a GPU of a model draws: by its profile, and by the limits that agents read from
// boards of its name; 0: neither tells.
func (s *Settings) maxGPUPower(model string, seen *decide.SeenGPUs) dvfsmodel.Watt {
	p := s.Profiles.Find(model)
	if p == nil {
		return 0
	}
	most := powerMargin * p.BusyW
	if limit := seen.HighestLimit(model); limit > 0 && !s.IsModule(model) { // else the CPUs are in it
		most = min(most, limitMargin*limit)
	}
	return most
}

// completeNodeEnergy completes an outcome without a measured energy of its node: that
// of its GPUs, and the host power of so many GPUs for as long as it ran. It is
// marked as modelled. Of modules that is their own energy. An outcome without time or GPU energy gets none.
func (s *Settings) completeNodeEnergy(o *record.Outcome) {
	if o.NodeSource != record.Unmeasured && o.NodeSource != record.Modelled {
		return
	}
	o.NodeEnergyJ, o.NodeSource = live.Number{}, record.Unmeasured
	gpus, measured := o.GPUEnergyJ.Get()
	lasted, ended := o.TimeS.Get()
	if !measured || !ended || len(o.GPUs) == 0 {
		return
	}
	host := dvfsmodel.Watt(len(o.GPUs)) * s.HostPower(o.GPUModel)
	if o.GPUSource.IsModule() { // the CPUs are in it
		host = 0
	}
	o.NodeEnergyJ, o.NodeSource = live.Known(gpus+float64(host.Over(lasted))), record.Modelled
}
