package decide

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/liveplan"
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

// Decide chooses the clocks of a job's GPUs on a node, by a request that is valid. Asked
// again for the same run it gives the same answer; nodes of one run get the same clocks.
// Of a job that Slurm says it doesn't have, or not on that node, nothing is kept. Whatever goes wrong is a
// decision for default clocks.
//
// Made reports that this very call decided, and what it decided is kept; again, that the
// run had a decision before.
func (dr *Decider) Decide(
	ctx context.Context, r *epdapi.DecideRequest,
) (d *Decided, made, again bool) {
	key := jobOnNode{r.Job, r.Node}
	earlier := dr.Kept(r.Job, r.Node)
	if earlier != nil && earlier.IsOf(r.RunID) {
		return earlier, false, true
	}
	job, staleErr := dr.findJob(ctx, r, earlier != nil)
	switch {
	case errors.Is(staleErr, slurm.ErrNotFound):
		return dr.foreignDecision(r, FaultUnknown, reasonNoJob), false, false
	case errors.Is(staleErr, jobs.ErrNotOnNode):
		return dr.foreignDecision(r, FaultElsewhere, staleErr.Error()+": default clocks"), false, false
	}
	job = job.StartedIn(string(r.Partition))
	var lead *Decided
	if earlier == nil && (job.Submitted <= max(dr.started.Unix(), dr.forgotten.Load()) || dr.evicted.Load() ||
		job.Submitted > dr.options.Clock().Unix()) { // a clock was set back: which was first isn't known
		own, other, err := dr.storedDecision(ctx, r, job)
		switch {
		case err != nil: // what was answered before isn't known
			job, staleErr = job.WithoutWorkload(), errors.Join(staleErr, jobs.ErrRecords, err)
		case own != nil:
			d, made = dr.keep(key, own, nil)
			return d, made, true
		}
		lead = other
	}
	fresh := dr.decide(r, job, staleErr)
	if lead != nil {
		fresh.copyLead(lead)
	}
	d, made = dr.keep(key, fresh, job)
	return d, made, false
}

// findJob returns what is known of a request's job, or else what the request says of it. The
// error says why it isn't as fresh as it should be.
func (dr *Decider) findJob(ctx context.Context, r *epdapi.DecideRequest, ranBefore bool) (*jobs.Job, error) {
	job, staleErr := dr.options.Jobs.FindOn(ctx, r.Job, r.Node, ranBefore)
	if job == nil {
		job = jobs.FromDescription(r.UID, string(r.User), string(r.Partition), string(r.Comment))
	}
	return job, staleErr
}

// foreignDecision returns the answer about a job that Slurm doesn't have, or not on the node: default clocks,
// whatever the request says of it. Should a job get that id later, or come to that node, it isn't this one.
func (dr *Decider) foreignDecision(r *epdapi.DecideRequest, fault Fault, reason string) *Decided {
	s, now := dr.options.Settings(), dr.options.Clock()
	return &Decided{Fault: fault, Decision: live.Decision{
		ID: dr.decisionID(r, now), Job: uint32(r.Job), Node: r.Node,
		Mode:   s.Live.ModeOf(jobs.FromDescription(r.UID, "", string(r.Partition), "").Partition.Value()),
		Reason: reason, GPUModel: s.ModelName(r.GPUModel), ConfigVersion: s.Version,
		Arm:     live.ArmExcluded,
		Created: now,
	}}
}

// decide applies the rules, the ones that leave the GPUs alone first.
func (dr *Decider) decide(r *epdapi.DecideRequest, job *jobs.Job, staleErr error) *Decided {
	s := dr.options.Settings()
	now := dr.options.Clock()
	wishes := job.Wishes(now)
	had := jobs.GPUsOn(dr.options.Jobs.Nodes(), r.Node, job.GivenGPUs())
	gpus := max(int(job.GPUs), r.GPUs)
	if had > 0 && r.GPUs > had { // of which workload it is, Slurm says
		gpus = max(int(job.GPUs), had)
	}
	t, named := dr.tableOn(s, r, job.Partition.Value())
	made := &Decided{
		Decision: live.Decision{
			Job: uint32(r.Job), Node: r.Node, Mode: s.Live.ModeOf(job.Partition.Value()),
			GPUModel:      s.ModelName(r.GPUModel),
			ConfigVersion: s.Version, Arm: live.ArmExcluded, Created: now,
			Wish: live.Wish{
				RunWish: live.RunWish{OptOut: wishes.Off, Fixed: wishes.IsFixed()},
				OwnFreq: job.OwnFreq, Deadline: wishes.Deadline, Warnings: wishes.Warnings,
			},
			Shared: job.SharesGPUs(),
		},
		run: r.RunID, At: now, stored: make(chan struct{}), gpus: r.GPUs, shared: r.Shared || job.SharesGPUs(),
		clockHash: t.hash,
		limit:     r.PowerLimit, profiles: r.Profiles,
		submitted: job.Submitted, restarts: job.Restarts(), given: job.GivenGPUs(), Fault: faultOf(staleErr),
		armShares: s.armShares(r.GPUModel),
	}
	if r.Partition != "" {
		made.partition = job.Partition
	}
	d := &made.Decision
	profile := profileFor(s, r, job, &wishes)
	d.ID = dr.decisionID(r, now)
	if job.Source != (jobs.Source{}) && gpus > 0 {
		d.Workload = record.UnderProfile(job.Source.Workload(gpus), profile)
	}
	d.Limit = job.Limit
	dr.GPUs.note(d.GPUModel, t, r)
	ch := chooser{
		settings: s, table: t, request: r, job: job, decision: d, staleErr: staleErr, now: now,
		explores: drawUniform(&dr.exploreKey, r.Job) < s.Live.Explore, had: had,
	}
	if !named {
		ch.suspected = dr.GPUs.suspected(r.Node)
	}
	if s.Goal.WaitWeight > 0 && gpus > 0 {
		ch.backlog = max(0, dr.options.Backlog(r.Job, r.Node))
	}
	ch.model = dr.options.Models.Model(record.WorkloadKey{
		Cluster: dr.options.Cluster, Workload: d.Workload, GPUModel: d.GPUModel,
	}).On(r.Node)
	lot := drawUniform(&dr.armKey, r.Job)
	if made.armShares.arm(lot) == live.ArmTreated {
		ch.planned = func() liveplan.Advice { return dr.options.Plan.AdviceFor(r.Job, job.Array(), now) }
	}
	ch.choose(&wishes)
	ch.drawArm(&made.armShares, lot)
	d.Profile = profile
	if err := dr.Trouble(); err != nil {
		made.Fault = cmp.Or(made.Fault, FaultRecords)
		if d.Apply {
			ch.revertToDefault("records can't be written (" + err.Error() + "), else " + d.Words())
		}
		if d.Arm != live.ArmExcluded { // as the runs are that it would be compared with
			d.HoldOut, d.Arm = false, live.ArmExcluded
		}
	}
	t.nameSiteClocks(d)
	return made
}

// drawUniform returns what a job draws, evenly from 0 to 1: it decides whether the job explores, or,
// by another seed, its arm. It depends on nothing that a user can choose.
func drawUniform(seed *[sha256.Size]byte, job slurm.JobID) float64 {
	var text [sha256.Size + 8]byte
	copy(text[:], seed[:])
	binary.LittleEndian.PutUint64(text[sha256.Size:], uint64(job))
	sum := sha256.Sum256(text[:])
	return float64(binary.LittleEndian.Uint64(sum[:])) / math.Exp2(64)
}

// decisionID names a decision.
func (dr *Decider) decisionID(r *epdapi.DecideRequest, at time.Time) string {
	text := fmt.Appendf(nil, "%s\x00%d\x00%s\x00%s\x00%d", dr.options.Cluster, r.Job, r.Node, r.RunID,
		at.UnixNano())
	sum := sha256.Sum256(text)
	const digits = 8
	return hex.EncodeToString(sum[:digits])
}

// storedDecision returns the decision that was made for a run before the controller
// was restarted, or else the one that was made for another node of the same
// run; nil without them.
func (dr *Decider) storedDecision(
	ctx context.Context, r *epdapi.DecideRequest, job *jobs.Job,
) (own, other *Decided, err error) {
	all, err := store.WaitAtMost(
		ctx,
		dr.options.StoreWait,
		func(ctx context.Context) ([]record.Decision, error) {
			return dr.options.Records.DecisionsOfJob(ctx, dr.options.Cluster, int64(r.Job))
		},
	)
	if err != nil {
		return nil, nil, fmt.Errorf("look up earlier decisions: %w", err)
	}
	s := dr.options.Settings()
	t, _ := dr.tableOn(s, r, job.Partition.Value())
	for i := len(all) - 1; i >= 0; i-- {
		d := &all[i]
		switch {
		case d.Node == r.Node && d.RunID == r.RunID: // whatever the clock says
			return decidedFromRecord(d), nil, nil
		case d.Created.Unix() < job.Submitted: // it was for another job of the same id, or an earlier run
		case other == nil && d.Node != r.Node && job.Submitted > 0 && storedCanLead(d, r, s) &&
			t.hasSetting(d.Setting):
			other = decidedFromRecord(d)
		}
	}
	return nil, other, nil
}
