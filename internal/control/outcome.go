package control

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unique"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
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
	if err := c.options.Store.Trouble(); err != nil { // its decision won't be stored either
		c.counters.outcomeErrors.Add(1)
		return 0, err
	}
	o, err := c.plausible(sent)
	if err != nil {
		return 0, err
	}
	run, err := c.attribute(ctx, &o)
	if err != nil {
		return 0, err
	}
	end, job, err := c.settle(ctx, &o, run)
	if err == nil && (o.DecisionID == 0 || o.Workload == "") {
		err = c.attributeLate(ctx, &o, &end, job)
	}
	if err != nil {
		return 0, err
	}
	c.settings.Load().nodeEnergy(&o)
	receipt, err := c.options.Store.PutOutcome(ctx, &o)
	if err != nil {
		c.counters.outcomeErrors.Add(1)
		return 0, err
	}
	if receipt == store.Stored {
		c.counters.ran(&o)
		c.doubt(&o)
	}
	if receipt == store.Stored && c.options.OnOutcome != nil {
		c.options.OnOutcome(&o, c.partitionOf(&o, job))
	}
	c.counters.outcomes.Add(1) // last: who sees it finds the rest done
	if receipt == store.Stored && !o.Unmatched && o.Workload != "" {
		key := record.WorkloadKey{Cluster: o.Cluster, Workload: o.Workload, GPUModel: o.GPUModel}
		c.profiles.forget(key)
		c.judge(ctx, key, &o)
		c.refitSoon(key)
	}
	if receipt == store.Stored && !o.Unmatched && hasJob(&o) && !o.Submitted.IsZero() {
		c.forecasts.JobEnded(o.JobID, o.Submitted)
	}
	c.release(&o)
	return receipt, nil
}

// plausible is an outcome as it can be: what a sensor or a clock got wrong is set
// aside, and what no agent sends is [record.ErrInvalid].
func (c *Controller) plausible(sent *record.Outcome) (record.Outcome, error) {
	o := *sent
	o.Cluster, o.Implausible = c.options.Cluster, record.Implausible{}
	o, err := o.Canonical()
	if err != nil {
		return o, err
	}
	o.DropImplausible(c.settings.Load().mostPower(o.GPUModel))
	return o, nil
}

// doubt tells of an outcome that came with what can't be.
func (c *Controller) doubt(o *record.Outcome) {
	if o.Implausible.IsZero() {
		return
	}
	c.counters.implausible.Add(1)
	what := fmt.Sprintf("run %s of job %d on %s: %s", o.RunID, o.JobID, slurm.Printable(o.Node, maxModel), o.Implausible.Why)
	c.counters.lastImplausible.Store(&what)
	c.options.Log.Warn("what an outcome says can't be: it is kept, and counts nowhere", "run", o.RunID, "job", o.JobID, "node", o.Node, "what", o.Implausible.Why)
}

// attribute gives an outcome its decision: what the controller decided counts,
// not what comes with the outcome. It returns when the run began.
func (c *Controller) attribute(ctx context.Context, o *record.Outcome) (lap, error) {
	if !hasJob(o) {
		return lap{began: o.Started}, nil
	}
	c.mu.Lock()
	d := c.decided[keyOf(o)]
	c.mu.Unlock()
	if d != nil && d.sameRun(o.RunID) {
		select {
		case <-d.stored:
		case <-ctx.Done():
			return lap{}, fmt.Errorf("the decision of run %s isn't stored yet: %w", o.RunID, context.Cause(ctx))
		}
		o.DecisionID, o.Workload, o.GPUModel, o.Arm = d.id, d.Workload, d.GPUModel, d.Arm
		if o.Submitted.IsZero() && d.submitted > 0 {
			o.Submitted, o.Restart = timeOf(d.submitted), int(d.restarts)
		}
		if o.Submitted.IsZero() { // it was decided before the controller began
			o.Submitted = c.submissionAt(ctx, o.JobID, d.at)
			return lap{d.at, unix(o.Submitted)}, nil
		}
		return lap{d.at, d.submitted}, nil
	}
	all, err := c.options.Store.DecisionsOfJob(ctx, o.Cluster, o.JobID)
	if err != nil {
		return lap{}, fmt.Errorf("find the decision of run %s: %w", o.RunID, err)
	}
	for i := len(all) - 1; i >= 0; i-- {
		if d := &all[i]; d.Node == o.Node && d.RunID == o.RunID {
			o.DecisionID, o.Workload, o.GPUModel, o.Arm = d.ID, d.Workload, d.GPUModel, d.Arm
			if o.Submitted.IsZero() {
				o.Submitted = c.submissionAt(ctx, o.JobID, d.Created)
			}
			return lap{d.Created, unix(o.Submitted)}, nil
		}
	}
	o.DecisionID = 0
	return lap{began: o.Started}, nil
}

// submissionAt is when the job was submitted that ran under an id at a time, by the
// records; zero: they don't tell.
func (c *Controller) submissionAt(ctx context.Context, id int64, at time.Time) time.Time {
	page, err := c.options.Store.Jobs(ctx, &store.JobFilter{Cluster: c.options.Cluster, ID: id}, 0, maxSameID)
	if err != nil {
		return time.Time{}
	}
	h := history{jobs: page.Jobs}
	if i := h.at(at); i >= 0 {
		return h.jobs[i].Submitted
	}
	return time.Time{}
}

// partitionOf is where a job ran: where it started, for one that names several
// while it waits, or else where Slurm has it; "" if nobody knows any more.
func (c *Controller) partitionOf(o *record.Outcome, job *knownJob) string {
	if hasJob(o) {
		c.mu.Lock()
		d := c.decided[keyOf(o)]
		c.mu.Unlock()
		if d != nil && d.sameRun(o.RunID) && d.partition != (unique.Handle[string]{}) && d.partition.Value() != "" {
			return d.partition.Value()
		}
	}
	if job == nil && hasJob(o) {
		job = c.jobs.get(keyOf(o).job)
	}
	if job == nil {
		return ""
	}
	return job.partition.Value()
}

// attributeLate gives an outcome the workload that wasn't known when its run began:
// nobody decided about it, as the controller was away, or Slurm didn't tell of its
// job in time. By now Slurm does, or the records have the job that ended. What was
// decided stays. Without a decision the agent names the GPU model, and the run was at
// default clocks and is in no arm.
func (c *Controller) attributeLate(ctx context.Context, o *record.Outcome, end *ending, job *knownJob) error {
	if job == nil && end.submitted == 0 {
		return nil // nobody tells
	}
	if o.DecisionID == 0 {
		o.GPUModel, o.Arm = c.settings.Load().modelName(o.GPUModel), live.ArmExcluded
	}
	workload, err := c.workloadOfEnded(ctx, o, end, job)
	if err != nil {
		return fmt.Errorf("what run %s of job %d was: %w", o.RunID, o.JobID, err)
	}
	if workload != "" && o.GPUModel != "" {
		o.Workload = workload
	}
	return nil
}

// workloadOfEnded is the workload of an outcome's job, "" if nobody knows it. A job
// that Slurm still knows is recorded as one that ended.
func (c *Controller) workloadOfEnded(ctx context.Context, o *record.Outcome, end *ending, job *knownJob) (string, error) {
	if job == nil {
		recorded, err := c.lookFor(ctx, keyOf(o).job, end.submitted)
		if err != nil || recorded == nil {
			return "", err
		}
		return recorded.Workload, nil
	}
	known, err := c.withToken(ctx, job, nil)
	if err != nil {
		return "", err
	}
	d := decided{Decision: live.Decision{Job: uint32(keyOf(o).job)}}
	if gpus := max(int(known.gpus), len(o.GPUs)); gpus > 0 && known.source != (source{}) {
		d.Workload = known.source.workload(gpus)
	}
	if about := c.jobRecord(&d, known); about != nil {
		about.State = o.ExitState
		c.writer.put(entry{job: about})
	}
	return d.Workload, nil
}

// hasJob tells whether an outcome names a job that there can be.
func hasJob(o *record.Outcome) bool { return o.JobID > 0 && o.JobID <= maxJob }

// keyOf is the key of the decision for an outcome that has a job.
func keyOf(o *record.Outcome) decisionKey {
	return decisionKey{slurm.JobID(o.JobID), o.Node} //nolint:gosec // hasJob says so
}

const maxJob = 1<<31 - 1

// release forgets the decision of a run that ended.
func (c *Controller) release(o *record.Outcome) {
	if !hasJob(o) {
		return
	}
	key := keyOf(o)
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.decided[key]; d != nil && d.sameRun(o.RunID) {
		c.dropDecided(key, d)
	}
}

// judge compares a run with its prediction. After enough misses in a row the
// model is taken out of use.
func (c *Controller) judge(ctx context.Context, key record.WorkloadKey, o *record.Outcome) {
	m := c.models.get(key).model
	if m == nil {
		return
	}
	s, ok := sampleOf(o, m.Base)
	if !ok {
		return
	}
	hit := m.hits(&s, c.settings.Load().Live.TimeMargin)
	missed := 0
	c.models.change(key, func(st *standing) {
		if st.model != m {
			return
		}
		if st.off++; hit {
			st.off = 0
			st.right++
		}
		missed = st.off
	})
	if missed >= offInARow {
		c.retire(ctx, key, m, fmt.Sprintf("missed the last %d runs", missed))
	}
}

// retire takes a model out of use, one that an administrator chose too.
func (c *Controller) retire(ctx context.Context, key record.WorkloadKey, m *model, why string) {
	found := false
	note := fmt.Sprintf("model version %d %s and isn't used", m.version, why)
	c.models.change(key, func(st *standing) {
		if found = st.model == m; found {
			*st = standing{note: note}
		}
	})
	if !found {
		return
	}
	c.counters.retired.Add(1)
	c.options.Log.Warn("a model isn't used any more", "why", why, "workload", key.Workload, "gpu_model", key.GPUModel, "version", m.version)
	if err := c.options.Store.UseModel(ctx, key, 0, note); err != nil {
		c.options.Log.Error("a model can't be taken out of use in the store", "error", err)
	}
}

// refitSoon has a model fitted in the background, once for many outcomes.
func (c *Controller) refitSoon(key record.WorkloadKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queued[key] {
		return
	}
	c.pending.add()
	select {
	case c.refits <- key:
		c.queued[key] = true
	default: // the next outcome tries again
		c.pending.done()
	}
}

func (c *Controller) refitLoop(ctx context.Context) {
	c.learnFromStore(ctx)
	for {
		select {
		case key := <-c.refits:
			c.mu.Lock()
			delete(c.queued, key)
			c.mu.Unlock()
			if err := c.Refit(ctx, key); err != nil {
				c.options.Log.Info("no new model", "workload", key.Workload, "gpu_model", key.GPUModel, "reason", err)
			}
			c.pending.done()
		case <-ctx.Done():
			for {
				select {
				case <-c.refits:
					c.pending.done()
				default:
					return
				}
			}
		}
	}
}

// Refit fits a workload's model to its last outcomes and puts it in use, unless
// it predicts what the one in use does or an administrator chose that one. The
// error says why there is no model.
func (c *Controller) Refit(ctx context.Context, key record.WorkloadKey) error {
	old := c.models.get(key).model
	base, ok := c.baseOf(key.GPUModel, old)
	if !ok {
		return errors.New("the GPU model's default clocks aren't known")
	}
	seen, err := c.evidenceOf(ctx, key, base)
	if err != nil {
		return fmt.Errorf("refit: %w", err)
	}
	if seen.known { // else what was known holds, as does the model
		c.models.change(key, func(st *standing) { st.usage = seen.usage })
	}
	samples := seen.samples()
	c.priors.note(key, samples, base)
	c.priors.learn(key.GPUModel)
	prior := c.priors.get(key.GPUModel, base)
	fresh, known, noise, err := fitModel(samples, base, prior)
	if err != nil && len(seen.far) > 0 { // perhaps the work is another one now
		samples = seen.near
		fresh, known, noise, err = fitModel(samples, base, prior)
	}
	if err != nil {
		return c.without(ctx, key, old, samples, err)
	}
	learnable := c.learnable(key.GPUModel, known, noise)
	if old != nil && fresh.like(old, samples) {
		c.models.change(key, func(st *standing) { st.lessons = learnable })
		return nil
	}
	return c.adopt(ctx, key, fresh, learnable)
}

// without notes why a workload gets no new model. The one in use stays, unless
// it missed half of the last runs.
func (c *Controller) without(ctx context.Context, key record.WorkloadKey, old *model, samples []dvfsmodel.Sample, why error) error {
	if old == nil {
		c.models.change(key, func(st *standing) {
			if st.model == nil && st.note == "" {
				st.note = "this workload has no model: " + why.Error()
			}
		})
		return why
	}
	last := samples[:min(len(samples), 2*offInARow)]
	missed := 0
	for i := range last {
		if !old.hits(&last[i], c.settings.Load().Live.TimeMargin) {
			missed++
		}
	}
	if missed >= offInARow {
		c.retire(ctx, key, old, fmt.Sprintf("missed %d of the last %d runs", missed, len(last)))
	}
	return why
}

// adopt stores a new version and puts it in use, unless one is pinned.
func (c *Controller) adopt(ctx context.Context, key record.WorkloadKey, fresh *model, learnable []lesson) error {
	fresh.created = c.options.Clock()
	r, err := modelRecord(key, fresh)
	if err != nil {
		return err
	}
	pinned := false
	c.models.change(key, func(st *standing) { pinned = st.pinned })
	r.InUse = !pinned
	version, err := c.options.Store.PutModel(ctx, r)
	if err != nil {
		return fmt.Errorf("refit: %w", err)
	}
	fresh.version = version
	c.counters.refits.Add(1)
	if !pinned {
		c.models.change(key, func(st *standing) {
			st.model, st.note, st.off, st.right, st.chosen = fresh, "", 0, 0, epdapi.Chosen{}
			st.lessons = learnable
		})
	}
	return nil
}

// baseOf is the default clocks of a GPU model: those that the last decision
// saw, those of the model in use, or of the profile.
func (c *Controller) baseOf(gpuModel string, m *model) (dvfsmodel.Setting, bool) {
	c.mu.Lock()
	seen := c.clocks[gpuModel]
	c.mu.Unlock()
	if seen != nil {
		return seen.base, true
	}
	if m != nil {
		return m.Base, true
	}
	if p, err := c.settings.Load().Profiles.Lookup(gpuModel); err == nil && p.Default.Core > 0 && p.Default.Mem > 0 {
		return p.Default, true
	}
	return dvfsmodel.Setting{}, false
}
