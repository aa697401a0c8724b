package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/spool"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// recordBound is how long recording one outcome may take.
const recordBound = 5 * time.Second

// runOf names what an Epilog is about.
type runOf struct {
	job  uint32
	node string
}

// triggerDelivery has outcomes delivered soon. It never waits: the controller may hang.
func (d *AgentServer) triggerDelivery() {
	select {
	case d.outcomesReady <- struct{}{}:
	default: // it is told already
	}
}

// deliver moves the outcomes of runs that ended into the spool and offers what
// is there to the controller. A run's file goes when its outcome is in the
// spool, an entry of the spool when the controller has it. Only [AgentServer.Run]
// calls it, once at a time.
func (d *AgentServer) deliver(ctx context.Context) {
	for _, closed := range d.options.Agent.Runs().Ended() {
		if err := d.spoolOutcome(ctx, &closed); err != nil {
			d.noteProblem(err)
			if errors.Is(err, spool.ErrFull) {
				break // the others don't fit either; they stay on file
			}
		}
	}
	report, err := d.options.Spool.Deliver(ctx, d.send)
	for _, aside := range report.Aside {
		d.noteProblem(fmt.Errorf("the outcome of run %s is not recorded, it lies in the spool's "+
			"folder aside: %w", aside.ID, aside.Reason))
	}
	if err != nil && ctx.Err() == nil {
		d.noteProblem(fmt.Errorf("%w, will try again", err))
	}
}

// spoolOutcome moves a run's outcome into the spool.
func (d *AgentServer) spoolOutcome(ctx context.Context, c *agent.ClosedRun) error {
	key := runOf{c.Run.Job, c.Run.Node}
	d.mu.Lock()
	told, came := d.epilogs[key]
	d.mu.Unlock()
	if came {
		corrected, err := d.options.Agent.Runs().EndedAt(c.Run.ID, d.endedAt(ctx, &c.Run, told))
		if errors.Is(err, agent.ErrNoRun) {
			return err
		}
		d.noteProblem(err)
		c = &corrected
	}
	o := c.Record()
	o.GPUModel = d.modelOf(c.Run.GPUs) // a controller that decided knows better
	o.ExitState = string(told.exit)
	if err := d.put(o); err != nil {
		return fmt.Errorf("run %s of job %d: %w", c.Run.ID, c.Run.Job, err)
	}
	if err := d.options.Agent.Runs().Forget(c.Run.ID); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.epilogs, key)
	delete(d.partitions, c.Run.ID)
	if len(d.endedRuns) >= maxEndedRuns {
		for old := range d.endedRuns { // any
			delete(d.endedRuns, old)
			break
		}
	}
	d.endedRuns[key] = struct{}{}
	return nil
}

// endedAt is when the job of a run ended whose Epilog came, by Slurm's clock: a site's own
// Epilog may have run before. Where the Epilog wasn't told, the controller asks Slurm.
// Zero: nobody knows.
func (d *AgentServer) endedAt(ctx context.Context, r *live.Run, told epilogInfo) time.Time {
	if told.end.IsZero() && d.options.Slurm {
		ctx, cancel := context.WithTimeout(ctx, askBound)
		defer cancel()
		question := epdapi.OutlookRequest{Job: slurm.JobID(r.Job), Node: r.Node, RunID: r.ID, Ending: true}
		// Else it finds out when it is told the outcome.
		if now, err := d.options.Controller.Outlook(ctx, question); err == nil {
			told.end = now.Ended
		}
	}
	if told.end.IsZero() {
		return told.end
	}
	return told.end.Add(time.Second / 2) // Slurm cuts fractions of a second off
}

// maxEndedRuns is how many runs that ended are remembered.
const maxEndedRuns = 4096

// hasEnded reports whether a run ended here already.
func (d *AgentServer) hasEnded(key runOf) bool {
	d.mu.Lock()
	_, over := d.endedRuns[key]
	d.mu.Unlock()
	return over || slices.ContainsFunc(d.options.Agent.Runs().Ended(), func(c agent.ClosedRun) bool {
		return c.Run.Job == key.job && c.Run.Node == key.node
	})
}

// modelOf is the model of the first of some GPUs; "" if it isn't known any more.
func (d *AgentServer) modelOf(uuids []string) string {
	for _, id := range d.options.Agent.GPUs().Identities() {
		if len(uuids) > 0 && id.UUID == uuids[0] {
			return id.Model
		}
	}
	return ""
}

// put adds an outcome to the spool.
func (d *AgentServer) put(o *record.Outcome) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return d.options.Spool.Add(o.RunID, body)
}

// send offers an entry of the spool to the controller.
func (d *AgentServer) send(ctx context.Context, _ string, body []byte) error {
	var o record.Outcome
	if err := json.Unmarshal(body, &o); err != nil {
		return fmt.Errorf("%w: %w", spool.ErrRejected, err)
	}
	ctx, cancel := context.WithTimeout(ctx, recordBound)
	defer cancel()
	err := d.options.Controller.Record(ctx, &o)
	switch {
	case errors.Is(err, control.ErrNotYet):
		return fmt.Errorf("%w: %w", spool.ErrLater, err)
	case errors.Is(err, ErrRefused):
		return fmt.Errorf("%w: %w", spool.ErrRejected, err)
	}
	return err
}

// recordUnmatched keeps that a job ended here whose start wasn't seen. It is in no
// statistics.
func (d *AgentServer) recordUnmatched(e *slurm.HookEvent, run string) {
	d.noteProblem(d.put(&record.Outcome{
		RunID: run, JobID: int64(e.Job), Node: e.Node, Ended: time.Now(), Arm: live.ArmExcluded,
		Unmatched: true,
	}))
	d.triggerDelivery()
}
