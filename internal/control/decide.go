package control

import (
	"context"
	"time"

	"github.com/epplan/epplan/internal/decide"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/liveplan"
	"github.com/epplan/epplan/live"
)

// Observed is a decision as measurements see it.
type Observed struct {
	Took  time.Duration
	Mode  live.Mode
	Arm   live.Arm
	Apply bool
	Again bool // the run had a decision already
	Fault decide.Fault
}

// Decide chooses the clocks of a job's GPUs on a node, and counts that: see
// [decide.Decider.Decide]. The error is [ErrRequest].
func (c *Controller) Decide(ctx context.Context, r *epdapi.DecideRequest) (live.Decision, error) {
	begin := time.Now()
	if err := r.Validate(); err != nil {
		took := time.Since(begin)
		c.counters.decideTook(took)
		c.counters.badRequests.Add(1)
		c.options.OnDecide(Observed{Took: took, Fault: decide.FaultRequest})
		return live.Decision{}, err
	}
	c.Jobs.Hooks.SawProlog(r.Job, r.Node)
	d, made, again := c.decider.Decide(ctx, r)
	took := time.Since(begin)
	c.counters.decideTook(took)
	if made {
		c.counters.decided(&d.Decision)
		c.noteStart(r, d)
	}
	if d.Fault == decide.FaultElsewhere || d.Fault == decide.FaultUnknown && d.IsOfNoJob() {
		c.options.OnStrange(&ImplausibleReport{
			StrangeDecision, r.Node,
			"clocks are asked for of a job that Slurm doesn't have there: default clocks", d.Reason,
			int64(r.Job), r.RunID,
		})
	}
	c.options.OnDecide(Observed{
		Took: took, Mode: d.Mode, Arm: d.Arm, Apply: d.Apply, Again: again, Fault: d.Fault,
	})
	return d.Decision, nil
}

// noteStart counts how a job's start keeps to the plan in force.
func (c *Controller) noteStart(r *epdapi.DecideRequest, d *decide.Decided) {
	if r.GPUs == 0 || r.Shared {
		return
	}
	s := &liveplan.Start{
		Job: r.Job, User: string(r.User), GPUModel: d.GPUModel, At: d.At,
	}
	if d.Apply {
		s.Setting = d.WithoutProfile()
	}
	if job := c.Jobs.Get(r.Job); job != nil {
		s.Array, s.User = job.Array(), job.User.Value()
	}
	c.Plan.Started(s)
}

// Outlook says whether a run still lasts, how long it may, and how long it will at most:
// see [decide.Decider.Outlook]. The error is [ErrRequest].
func (c *Controller) Outlook(ctx context.Context, r epdapi.OutlookRequest) (live.Outlook, error) {
	if err := r.Validate(); err != nil {
		return live.Outlook{}, err
	}
	return c.decider.Outlook(ctx, &r), nil
}
