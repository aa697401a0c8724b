package control

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// Reasons that are told apart later.
const (
	reasonShared = "the GPUs are shared: default clocks"
	reasonLeft   = "a run from before epd's restart is still open on the GPUs: default clocks"
	reasonNoGPUs = "the job has no GPUs on this node"
	reasonNoJob  = "Slurm has no such job: default clocks"
)

// Decide chooses the clocks of a job's GPUs on a node. Asked again for the same
// run it gives the same answer; nodes of one run get the same clocks. Of a job that
// Slurm says it doesn't have nothing is kept. The error is [ErrRequest]; everything
// else that goes wrong is a decision for default clocks.
func (c *Controller) Decide(ctx context.Context, r *DecideRequest) (live.Decision, error) {
	begin := time.Now()
	d, again, err := c.decideOnce(ctx, r)
	took := time.Since(begin)
	c.counters.decideTook(took)
	if err != nil {
		c.counters.badRequests.Add(1)
		c.observed(Observed{Took: took, Fault: FaultRequest})
		return live.Decision{}, err
	}
	c.observed(Observed{Took: took, Mode: d.Mode, Arm: d.Arm, Apply: d.Apply, Again: again, Fault: d.fault})
	return d.Decision, nil
}

// decideOnce decides, or says that it did so before.
func (c *Controller) decideOnce(ctx context.Context, r *DecideRequest) (d *decided, again bool, err error) {
	if err := r.Validate(); err != nil {
		return nil, false, err
	}
	key := decisionKey{r.Job, r.Node}
	c.mu.Lock()
	earlier := c.decided[key]
	c.mu.Unlock()
	if earlier != nil && earlier.sameRun(r.RunID) {
		return earlier, true, nil
	}
	job, doubt := c.find(ctx, r, earlier != nil)
	if errors.Is(doubt, slurm.ErrNotFound) {
		return c.noSuchJob(r), false, nil
	}
	job = job.StartedIn(string(r.Partition))
	var lead *decided
	if earlier == nil && (job.Submitted <= max(c.started.Unix(), c.forgotten.Load()) || c.evicted.Load()) {
		own, other, err := c.storedDecision(ctx, r, job)
		switch {
		case err != nil: // what was answered before isn't known
			job, doubt = job.WithoutWorkload(), errors.Join(doubt, jobs.ErrRecords, err)
		case own != nil:
			return c.keep(key, own, nil), true, nil
		}
		lead = other
	}
	fresh := c.decide(r, job, doubt)
	if lead != nil {
		fresh.follow(lead)
	}
	return c.keep(key, fresh, job), false, nil
}

// find is what is known of a request's job, or else what the request says of it. The
// error says why it isn't as fresh as it should be.
func (c *Controller) find(ctx context.Context, r *DecideRequest, ranBefore bool) (*jobs.Job, error) {
	job, doubt := c.jobs.Find(ctx, r.Job, ranBefore)
	if job == nil {
		job = jobs.Described(r.UID, string(r.User), string(r.Partition), string(r.Comment))
	}
	return job, doubt
}

// noSuchJob is the answer about a job that Slurm doesn't have: default clocks,
// whatever the request says of it. Should a job get that id later, it isn't this one.
func (c *Controller) noSuchJob(r *DecideRequest) *decided {
	s, now := c.settings.Load(), c.options.Clock()
	return &decided{fault: FaultUnknown, Decision: live.Decision{
		ID: c.decisionID(r, now), Job: uint32(r.Job), Node: r.Node,
		Mode:   s.Live.ModeOf(jobs.Described(r.UID, "", string(r.Partition), "").Partition.Value()),
		Reason: reasonNoJob, GPUModel: s.modelName(r.GPUModel), ConfigVersion: s.Version,
		Arm:     live.ArmExcluded,
		Created: now,
	}}
}

// submission is when a decision's job was submitted; zero: that isn't known.
func (d *decided) submission() time.Time {
	if d.submitted == 0 {
		return time.Time{}
	}
	return time.Unix(d.submitted, 0).UTC()
}

// sameRun reports whether a decision is the one for a run.
func (d *decided) sameRun(run string) bool { return d.run == run }

// keep makes a decision the one that counts, unless another came first, and
// has it written. One that is in the store already comes without a job.
func (c *Controller) keep(key decisionKey, d *decided, job *jobs.Job) *decided {
	c.mu.Lock()
	if other := c.decided[key]; other != nil && other.sameRun(d.run) {
		c.mu.Unlock()
		return other
	}
	if len(c.decided) >= maxDecided {
		for old, d := range c.decided { // any: the store has them
			c.dropDecided(old, d)
			c.evicted.Store(true)
			break
		}
	}
	if job != nil {
		c.agree(d)
	}
	c.decided[key] = d
	c.mu.Unlock()
	if job == nil {
		return d
	}
	c.counters.decided(&d.Decision)
	if !c.writer.put(entry{
		job:      job.Record(c.options.Cluster, key.job, d.Workload, slurm.Running),
		decision: c.decisionRecord(d), decided: d,
	}) {
		c.options.Log.Error("too many decisions wait to be stored: one isn't", "job", d.Job)
	}
	return d
}

// decide applies the rules, the ones that leave the GPUs alone first.
func (c *Controller) decide(r *DecideRequest, job *jobs.Job, doubt error) *decided {
	s := c.settings.Load()
	now := c.options.Clock()
	wishes := job.Wishes(now)
	gpus := max(int(job.GPUs), r.GPUs)
	t := c.tables.get(s, r)
	made := &decided{
		Decision: live.Decision{
			Job: uint32(r.Job), Node: r.Node, Mode: s.Live.ModeOf(job.Partition.Value()),
			GPUModel:      s.modelName(r.GPUModel),
			ConfigVersion: s.Version, Arm: live.ArmExcluded, Created: now,
			Wish: live.Wish{
				RunWish: live.RunWish{OptOut: wishes.Off, Fixed: wishes.HasFixedClocks()},
				OwnFreq: job.OwnFreq, Deadline: wishes.Deadline, Warnings: wishes.Warnings,
			},
		},
		run: r.RunID, at: now, stored: make(chan struct{}), gpus: r.GPUs, shared: r.Shared, clocks: t.hash,
		submitted: job.Submitted, restarts: job.Restarts, fault: faultOfDoubt(doubt),
		parts: s.partsOn(r.GPUModel),
	}
	if r.Partition != "" {
		made.partition = job.Partition
	}
	d := &made.Decision
	d.ID = c.decisionID(r, now)
	if job.Source != (jobs.Source{}) && gpus > 0 {
		d.Workload = job.Source.Workload(gpus)
	}
	d.Limit = job.Limit
	c.noteClocks(d.GPUModel, t)
	c.nodes.put(r.Node, d.GPUModel)
	ch := chooser{
		settings: s, table: t, request: r, job: job, decision: d, doubt: doubt, now: now,
		explores: lot(&c.exploring, r.Job) < s.Live.Explore,
	}
	ch.model = c.learner.Model(record.WorkloadKey{
		Cluster: c.options.Cluster, Workload: d.Workload, GPUModel: d.GPUModel,
	})
	ch.choose(&wishes)
	ch.draw(&made.parts, lot(&c.lot, r.Job))
	if err := c.writer.trouble(c.options.StoreWait); err != nil {
		made.fault = cmp.Or(made.fault, FaultRecords)
		if d.Apply {
			ch.standAside("records can't be written (" + err.Error() + "), else " + d.Words())
		}
		if d.Arm != live.ArmExcluded { // as the runs are that it would be compared with
			d.HoldOut, d.Arm = false, live.ArmExcluded
		}
	}
	return made
}

// lot is what a job draws, evenly from 0 to 1: it decides whether the job explores, or,
// by another seed, its arm. It depends on nothing that a user can choose.
func lot(seed *[sha256.Size]byte, job slurm.JobID) float64 {
	var text [sha256.Size + 8]byte
	copy(text[:], seed[:])
	binary.LittleEndian.PutUint64(text[sha256.Size:], uint64(job))
	sum := sha256.Sum256(text[:])
	return float64(binary.LittleEndian.Uint64(sum[:])) / math.Exp2(64)
}

// decisionID names a decision.
func (c *Controller) decisionID(r *DecideRequest, at time.Time) string {
	text := fmt.Appendf(nil, "%s\x00%d\x00%s\x00%s\x00%d", c.options.Cluster, r.Job, r.Node, r.RunID,
		at.UnixNano())
	sum := sha256.Sum256(text)
	const digits = 8
	return hex.EncodeToString(sum[:digits])
}

// noteClocks remembers the clocks of a GPU model, for fitting and estimates.
func (c *Controller) noteClocks(model string, t *table) {
	if len(t.pairs) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clocks[model] = t
}

// storedDecision is the decision that was made for a run before the controller
// was restarted, or else the one that was made for another node of the same
// run; nil without them.
func (c *Controller) storedDecision(
	ctx context.Context, r *DecideRequest, job *jobs.Job,
) (own, other *decided, err error) {
	all, err := store.Within(ctx, c.options.StoreWait, func(ctx context.Context) ([]record.Decision, error) {
		return c.options.Store.DecisionsOfJob(ctx, c.options.Cluster, int64(r.Job))
	})
	if err != nil {
		return nil, nil, fmt.Errorf("look up earlier decisions: %w", err)
	}
	s := c.settings.Load()
	for i := len(all) - 1; i >= 0; i-- {
		d := &all[i]
		switch {
		case d.Created.Unix() < job.Submitted: // it was for another job of the same id, or an earlier run
		case d.Node != r.Node:
			if other == nil && job.Submitted > 0 && leads(d, r, s) && c.tables.get(s, r).has(d.Setting) {
				other = fromRecord(d)
			}
		case d.RunID != r.RunID:
		default:
			return fromRecord(d), nil, nil
		}
	}
	return nil, other, nil
}

// fromRecord rebuilds a decision.
func fromRecord(d *record.Decision) *decided {
	old := &decided{
		run: d.RunID, at: d.Created, id: d.ID, stored: make(chan struct{}),
		parts: parts{d.HoldOut, d.ConstantArm},
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
	old.Apply = mode == live.Enforce && d.Setting != dvfsmodel.Setting{}
	return old
}

// decisionRecord is a decision as it is stored.
func (c *Controller) decisionRecord(d *decided) *record.Decision {
	out := &record.Decision{
		Cluster: c.options.Cluster, JobID: int64(d.Job), Node: d.Node, RunID: d.run, Workload: d.Workload,
		GPUModel: d.GPUModel, Setting: dvfsmodel.Setting{Core: d.Core, Mem: d.Mem},
		TimeS:  record.Interval{Value: d.Predicted, High: d.Upper},
		PowerW: record.Interval{Value: d.PowerW}, EnergyJ: record.Interval{Value: d.EnergyJ},
		Reason: d.Reason, Mode: string(d.Mode), ConfigVersion: d.ConfigVersion, ModelVersion: d.ModelVersion,
		Arm: d.Arm, Created: d.Created, DefaultJ: d.DefaultJ, HoldOut: d.parts.holdOut,
		ConstantArm: d.parts.constant,
	}
	return out
}
