package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/spool"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// recordBound is how long recording one outcome may take.
const recordBound = 5 * time.Second

// runOf names what an Epilog is about.
type runOf struct {
	job  uint32
	node string
}

// epilogInfo is what an Epilog knows of its job.
type epilogInfo struct {
	exit slurm.State // how it ended
	end  time.Time   // and when; zero: it wasn't told
}

// epilogInfoOf returns what an Epilog was told. Status 0 says nothing: a job that was
// cancelled or out of time has it too.
func epilogInfoOf(e *hooks.Event) (told epilogInfo) {
	if e.Code != 0 || e.Signal != 0 {
		told.exit = slurm.Failed
	}
	if e.End > 0 {
		told.end = time.Unix(e.End, 0)
	}
	return told
}

// outbox moves the outcomes of runs into the spool and from there to the controller, with
// what hooks said of the runs.
type outbox struct {
	agent      *agent.Agent
	controller Controller
	spool      *spool.Spool
	slurm      bool // Slurm can be asked about jobs, through the controller
	problems   *problemLog
	ready      chan struct{} // there are outcomes to deliver

	mu         sync.Mutex           // guards what follows
	epilogs    map[runOf]epilogInfo // until the outcomes are in the spool
	partitions map[string]string    // by id, of runs whose Prologs came since the start; until then, too
	// ended are runs that ended since the start: a late Epilog of theirs, from a
	// node that comes back, is no end of another.
	ended map[runOf]struct{}
}

// notePartition notes the partition of a run, as its Prolog said.
func (o *outbox) notePartition(run, partition string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.partitions[run] = partition
}

// partition returns a run's; "" if its Prolog came before the start.
func (o *outbox) partition(run string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.partitions[run]
}

// noteEpilog notes what an Epilog said of a job.
func (o *outbox) noteEpilog(of runOf, told epilogInfo) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.epilogs[of] = told
}

// dropEpilog forgets what an Epilog said of a job that has no run.
func (o *outbox) dropEpilog(of runOf) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.epilogs, of)
}

// trigger has outcomes delivered soon. It never waits: the controller may hang.
func (o *outbox) trigger() {
	select {
	case o.ready <- struct{}{}:
	default: // it is told already
	}
}

// deliver moves the outcomes of runs that ended into the spool and offers what
// is there to the controller. A run's file goes when its outcome is in the
// spool, an entry of the spool when the controller has it. Only [AgentServer.Run]
// calls it, once at a time.
func (o *outbox) deliver(ctx context.Context) {
	for _, closed := range o.agent.Runs().Ended() {
		if err := o.spoolOutcome(ctx, &closed); err != nil {
			o.problems.note(err)
			if errors.Is(err, spool.ErrFull) {
				break // the others don't fit either; they stay on file
			}
		}
	}
	report, err := o.spool.Deliver(ctx, o.send)
	for _, aside := range report.Aside {
		o.problems.note(fmt.Errorf("the outcome of run %s is not recorded, it lies in the spool's "+
			"folder aside: %w", aside.ID, aside.Reason))
	}
	for _, newer := range report.Newer {
		o.problems.note(fmt.Errorf("the outcome of run %s is not recorded, it stays in the spool for a "+
			"newer epd: %w", newer.ID, newer.Reason))
	}
	if err != nil && ctx.Err() == nil {
		o.problems.note(fmt.Errorf("%w, will try again", err))
	}
}

// spoolOutcome moves a run's outcome into the spool. Where it lies there already, epd was killed before it
// forgot the run, and has forgotten what its Epilog said: what lies there stands.
func (o *outbox) spoolOutcome(ctx context.Context, c *agent.ClosedRun) error {
	key := runOf{c.Run.Job, c.Run.Node}
	told, came := o.epilogOf(c)
	spooled, err := o.spool.Holds(c.Run.ID)
	if err != nil {
		return fmt.Errorf("run %s of job %d: %w", c.Run.ID, c.Run.Job, err)
	}
	if !spooled {
		if err := o.putRun(ctx, c, told, came); err != nil {
			return err
		}
	}
	o.noteEnded(key) // first: it is always known of a run that it ended
	if err := o.agent.Runs().Forget(c.Run.ID); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if came {
		delete(o.epilogs, key)
	}
	delete(o.partitions, c.Run.ID)
	return nil
}

// putRun adds the outcome of a run to the spool, with what its Epilog said, if one came.
func (o *outbox) putRun(ctx context.Context, c *agent.ClosedRun, told epilogInfo, came bool) error {
	if came {
		corrected, err := o.agent.Runs().EndedAt(c.Run.ID, o.endedAt(ctx, &c.Run, told))
		if errors.Is(err, agent.ErrNoRun) {
			return err
		}
		o.problems.note(err)
		c = &corrected
	}
	outcome := c.Outcome
	outcome.GPUModel = o.modelOf(c.Run.GPUs) // a controller that decided knows better
	outcome.ExitState = string(told.exit)
	if err := o.put(&outcome); err != nil {
		return fmt.Errorf("run %s of job %d: %w", c.Run.ID, c.Run.Job, err)
	}
	return nil
}

// epilogOf returns what an Epilog said of a run; false if none ended it: what came may be that
// of another run of its job.
func (o *outbox) epilogOf(c *agent.ClosedRun) (told epilogInfo, came bool) {
	if c.Reason != agent.JobEnded {
		return epilogInfo{}, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	told, came = o.epilogs[runOf{c.Run.Job, c.Run.Node}]
	return told, came
}

// noteEnded notes that a run ended here.
func (o *outbox) noteEnded(key runOf) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.ended) >= maxEndedRuns {
		for old := range o.ended { // any
			delete(o.ended, old)
			break
		}
	}
	o.ended[key] = struct{}{}
}

// endedAt returns when the job of a run ended whose Epilog came, by Slurm's clock: a site's own
// Epilog may have run before. Where the Epilog wasn't told, the controller asks Slurm.
// Zero: nobody knows.
func (o *outbox) endedAt(ctx context.Context, r *live.Run, told epilogInfo) time.Time {
	if told.end.IsZero() && o.slurm {
		ctx, cancel := context.WithTimeout(ctx, askBound)
		defer cancel()
		question := epdapi.OutlookRequest{Job: slurm.JobID(r.Job), Node: r.Node, RunID: r.ID, Ending: true}
		// Else it finds out when it is told the outcome.
		if now, err := o.controller.Outlook(ctx, question); err == nil {
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
func (o *outbox) hasEnded(key runOf) bool {
	if slices.ContainsFunc(o.agent.Runs().Ended(), func(c agent.ClosedRun) bool {
		return c.Run.Job == key.job && c.Run.Node == key.node
	}) {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	_, over := o.ended[key] // after it was forgotten, if it was
	return over
}

// modelOf returns the model of the first of some GPUs; "" if it isn't known any more.
func (o *outbox) modelOf(uuids []string) string {
	for _, id := range o.agent.GPUs().Identities() {
		if len(uuids) > 0 && id.UUID == uuids[0] {
			return id.Model
		}
	}
	return ""
}

// put adds an outcome to the spool.
func (o *outbox) put(outcome *record.Outcome) error {
	body, err := json.Marshal(outcome)
	if err != nil {
		return err
	}
	return o.spool.Add(outcome.RunID, body)
}

// send offers an entry of the spool to the controller.
func (o *outbox) send(ctx context.Context, _ string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, recordBound)
	defer cancel()
	err := o.controller.Record(ctx, body)
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
func (o *outbox) recordUnmatched(e *hooks.Event, run string) {
	o.problems.note(o.put(&record.Outcome{
		RunID: run, JobID: int64(e.Job), Node: e.Node, Ended: time.Now(), Arm: live.ArmExcluded,
		Unmatched: true,
	}))
	o.trigger()
}
