package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// PrologBounds are what parts of a Prolog may take of its time.
type PrologBounds struct {
	Decide  time.Duration // the decision
	Gone    time.Duration // asking about runs that are open on its GPUs
	Numbers time.Duration // reading Slurm's configuration, which may be on a file system of the network
}

// defaultPrologBounds leave the driver its time of the two seconds that a hook waits.
var defaultPrologBounds = PrologBounds{600 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond}

// prolog opens a run on the GPUs that Slurm gave the job, and locks their
// clocks if that was decided. It always has an answer.
func (d *AgentServer) prolog(ctx context.Context, e *hooks.Event) hooks.Answer {
	d.prologs.add(e.Job)
	switch {
	case !e.GPUsKnown || len(e.GPUs)+len(e.MIG) == 0:
		return hookAnswer(false, "", "no GPUs: nothing to do")
	case len(e.MIG) > 0:
		return hookAnswer(false, "", "parts of a GPU (MIG) have no clocks of their own")
	}
	end, ok := d.order.prolog(e)
	if !ok {
		return hookAnswer(false, "", "the job had ended before its Prolog was read")
	}
	defer end()
	began := time.Now()
	if !d.waiting.wait(ctx, e, began) {
		d.prologWhenOpened(ctx, e, began)
		return hookAnswer(false, "", "the GPUs are still being opened: default clocks until they are")
	}
	return d.openRun(ctx, e, time.Time{})
}

// openRun returns a Prolog of a job with GPUs. The job of one that had to wait until the GPUs
// were opened began before.
func (d *AgentServer) openRun(ctx context.Context, e *hooks.Event, began time.Time) hooks.Answer {
	gpus, err := d.numbers.jobGPUs(ctx, e)
	if err != nil {
		d.problems.note(fmt.Errorf("job %d: %w", e.Job, err))
		return hookAnswer(false, "", err.Error())
	}
	run := live.Run{ID: agent.NewRunID(), Job: uint32(e.Job), Node: e.Node}
	for _, id := range gpus {
		run.GPUs = append(run.GPUs, id.UUID)
	}
	if e.Deadline > 0 {
		run.HookDeadline = hookDeadline(time.Now(), time.UnixMilli(e.Deadline))
	}
	d.outbox.notePartition(run.ID, string(e.Partition))
	d.closeGoneRuns(ctx, run.GPUs)
	reason := d.chooseSetting(ctx, e, gpus, &run)
	switch again, err := d.numbers.uuidsOfJob(ctx, e); {
	case err != nil: // a GPU was lost: the run is recorded, at default clocks
		d.problems.note(fmt.Errorf("job %d: %w", e.Job, err))
		if run.Setting.WithoutProfile() != (dvfsmodel.Setting{}) {
			run.Unset = live.NotLocked{Kind: live.NotLockedLost, Why: err.Error()}
		}
		run.Setting, reason = dvfsmodel.Setting{}, err.Error()
	case !slices.Equal(again, run.GPUs) && !slices.Contains(again, ""): // the driver was reloaded
		d.problems.note(fmt.Errorf("job %d: %w", e.Job, errRenumbered))
		return hookAnswer(false, "", errRenumbered.Error())
	}
	run.Started = time.Now() // the job waited for the choice
	if !began.IsZero() {
		run.Started, run.Missed = began, true
	}
	applied, err := d.options.Agent.Apply(ctx, run)
	if d.options.Agent.Leases().IsUnderBudget() {
		d.leaser.trigger()
	}
	d.problems.note(err)
	if d.isStopping() { // without waiting for this any longer
		d.problems.note(d.options.Agent.RevertToDefault(ctx, run.ID, stopping))
		return hookAnswer(false, run.ID, stopping)
	}
	if applied.HandsOff != "" && run.Setting.WithoutProfile() != (dvfsmodel.Setting{}) {
		reason = applied.HandsOff
	}
	return hookAnswer(applied.Locked, run.ID, reason)
}

// errRenumbered tells that the driver's GPUs changed under a Prolog.
var errRenumbered = errors.New("the GPUs were numbered anew while the job's clocks were chosen")

// maxHookTime is more than a hook waits.
const maxHookTime = 2 * time.Second

// hookDeadline returns when a hook stops waiting, by what it says, and by the clock that
// nobody sets.
func hookDeadline(now, said time.Time) time.Time { return now.Add(min(said.Sub(now), maxHookTime)) }

// chooseSetting asks the controller for the run's setting; without an answer it stays
// at default clocks.
func (d *AgentServer) chooseSetting(
	ctx context.Context, e *hooks.Event, gpus []gpu.Identity, run *live.Run,
) (reason string) {
	ctx, cancel := context.WithTimeout(ctx, d.options.Prolog.Decide)
	defer cancel()
	shared, left := d.isShared(run)
	table, err := d.options.Agent.GPUs().Clocks(gpus[0].UUID)
	if err != nil {
		d.problems.note(fmt.Errorf("job %d: %w", e.Job, err))
		return "the GPU doesn't tell its clocks"
	}
	for _, id := range gpus[1:] {
		if id.Model != gpus[0].Model {
			return "GPUs of several models"
		}
	}
	limit, fixed := d.powerLimit(run.GPUs)
	profiles := d.admissibleProfiles(run.GPUs)
	decision, err := d.options.Controller.Decide(ctx, &epdapi.DecideRequest{
		Job: e.Job, Node: e.Node, RunID: run.ID, GPUModel: gpus[0].Model, GPUs: len(gpus),
		Shared: shared, Left: left,
		Clocks: clockGroups(&table), PowerLimit: limit, CoreFixed: fixed, Profiles: profiles.Names(),
		UID: e.UID, User: e.User, Partition: e.Partition, Comment: e.Comment,
	})
	if err != nil {
		d.problems.note(fmt.Errorf("job %d: decide: %w", e.Job, err))
		run.Unset = live.NotLocked{
			Kind: live.NotLockedController, Why: "no decision came in time: " + slurm.Printable(err.Error(), maxWhy),
		}
		return "no decision: default clocks"
	}
	run.Wish, run.Shared = decision.Wish.RunWish, run.Shared || decision.Shared
	run.Limit, run.Upper = decision.Limit, decision.Upper.Duration()
	if decision.Apply {
		run.Setting = decision.Setting
		run.Adapt = decision.Adapt
	}
	run.Setting.Profile = decision.Profile // that of the partition, whatever the clocks
	return fmt.Sprintf("%s: %s", decision.Mode, decision.Reason)
}

// maxWhy is how much of an error goes into a run's record, in bytes.
const maxWhy = 300

func clockGroups(table *gpu.Clocks) []epdapi.ClockGroup {
	list := make([]epdapi.ClockGroup, len(table.Mem))
	for i, mem := range table.Mem {
		list[i] = epdapi.ClockGroup{Mem: mem, Core: table.Core[i]}
	}
	return list
}

// closeGoneRuns closes runs on GPUs whose jobs ended without an Epilog that came here, so
// that the next one isn't thought to share them. Where nobody says so in time they
// stay open.
func (d *AgentServer) closeGoneRuns(ctx context.Context, uuids []string) {
	ctx, cancel := context.WithTimeout(ctx, d.options.Prolog.Gone)
	defer cancel()
	closed, err := d.options.Agent.CloseGoneOn(ctx, uuids, d.jobPresence, d.processPresence)
	d.problems.note(err)
	if len(closed) > 0 {
		d.outbox.trigger()
	}
}

// isShared reports whether others may be on the GPUs: a run that is open, or MPS; left
// is that all of those are runs of before the agent's start, which may have ended.
// What can't be asked counts as not shared; the agent asks again before it
// locks. A run on a divided GPU is noted to share it.
func (d *AgentServer) isShared(run *live.Run) (shared, left bool) {
	state := d.options.Agent.State()
	left = true
	sharing, errs := agent.CallGPUs(d.options.Agent.GPUs(), run.GPUs, gpu.Device.Sharing)
	for i, uuid := range run.GPUs {
		for i := range state.Runs {
			if r := &state.Runs[i]; !r.Ended && slices.Contains(r.GPUs, uuid) {
				shared, left = true, left && r.Reread
			}
		}
		if s := sharing[i]; errs[i] == nil && (s.MIG || s.MPS) {
			shared, left, run.Shared = true, false, run.Shared || s.MIG
		}
	}
	return shared, shared && left
}

// epilog closes the run of a job on this node and gives its clocks back. The
// GPUs are those that the Prolog noted: Slurm doesn't always say them again.
func (d *AgentServer) epilog(ctx context.Context, e *hooks.Event) hooks.Answer {
	key := runOf{uint32(e.Job), e.Node}
	begun := d.order.epilog(ctx, e)
	d.waiting.end(ctx, key)
	d.outbox.noteEpilog(key, epilogInfoOf(e)) // first: the run may be delivered as soon as it ended
	closed, err := d.options.Agent.End(ctx, uint32(e.Job), e.Node)
	begun(!errors.Is(err, agent.ErrNoRun))
	switch {
	case errors.Is(err, agent.ErrNoRun):
		d.outbox.dropEpilog(key)
		switch {
		case len(e.GPUs) == 0:
			return hookAnswer(false, "", "no run of the job is open")
		case d.outbox.hasEnded(key):
			return hookAnswer(false, "", "the job's run had ended before")
		}
		d.problems.note(fmt.Errorf("job %d: an Epilog on GPUs whose Prolog never came here", e.Job))
		run := agent.NewRunID()
		d.outbox.recordUnmatched(e, run)
		return hookAnswer(false, run, "no run of the job is open")
	case err != nil:
		d.problems.note(fmt.Errorf("job %d: %w", e.Job, err))
	}
	d.outbox.trigger()
	return hookAnswer(false, closed.Run.ID, closed.HandsOff)
}

func hookAnswer(applied bool, run, reason string) hooks.Answer {
	return hooks.Answer{
		Version: hooks.ProtocolVersion, Applied: applied, Run: hooks.Hex(run), Reason: hooks.Hex(reason),
	}
}
