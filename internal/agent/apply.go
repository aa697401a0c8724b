package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/live"
)

// Errors of [Agent.Apply], wrapped with what was found. After any of them but
// ErrRun the run is open and its GPUs are at default clocks, or going there.
var (
	// ErrRun tells that the run itself is impossible: nothing was opened.
	ErrRun = errors.New("not a run")
	// ErrLate tells that the hook had gone when the clocks were locked.
	ErrLate = errors.New("the hook's deadline passed")
	// ErrShared tells that the GPU is divided in a way that has no clocks of
	// its own.
	ErrShared = errors.New("the GPU is divided (MIG)")
	// ErrSetting tells that the GPU can't run at the setting, or must not.
	ErrSetting = errors.New("clocks that this GPU may not be locked at")
	// ErrNoGPU tells that there is no such GPU here.
	ErrNoGPU = errors.New("no such GPU here")
	// ErrExternalChange tells that somebody else sets the GPU's clocks.
	ErrExternalChange = errors.New("somebody else sets the clocks")
	// ErrJournal tells that the journal couldn't be read since the start.
	ErrJournal = errors.New("the journal couldn't be read")
)

// Applied is what a run got.
type Applied struct {
	Locked   bool   // its GPUs are locked, at its setting or a faster one
	HandsOff string // why they aren't
}

// Apply opens a run and locks all its GPUs, or none. It returns once they are
// locked, or back at default clocks; the error says why not, and what couldn't
// be undone. A run that is open already is settled again. An open run of the
// same job is closed first: its Epilog never came.
func (a *Agent) Apply(ctx context.Context, run live.Run) (Applied, error) {
	if err := checkRun(&run); err != nil {
		return Applied{}, err
	}
	run.GPUs = slices.Compact(slices.Sorted(slices.Values(run.GPUs)))
	if !run.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, run.Deadline, ErrLate)
		defer cancel()
	}
	superseded := a.replaceOpenRun(ctx, &run)
	_, heeding := a.applyReturned(ctx, run.GPUs) // what was given back is no word about this run
	refusal := a.checkRun(ctx, &run)
	keeping := a.registerRun(&run, refusal)
	cards := a.gpusOf(run.GPUs)
	settling := a.settleAll(ctx, cards)
	if settling == nil && (ctx.Err() != nil || late(&run, time.Now())) {
		settling = a.releaseLate(ctx, run.ID, ErrLate)
	}
	return a.applied(run.ID), errors.Join(superseded, heeding, refusal, keeping, settling)
}

// releaseLate puts a run that completed too late to default clocks.
func (a *Agent) releaseLate(ctx context.Context, id string, reason error) error {
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.options.UndoTimeout)
	defer cancel()
	return errors.Join(reason, a.handsOff(undo, id, reason.Error()))
}

// applied is what a run has now.
func (a *Agent) applied(id string) Applied {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, ok := a.runs[id]
	switch {
	case !ok || r.ended:
		return Applied{HandsOff: "it ended meanwhile"}
	case r.handsOff != "":
		return Applied{HandsOff: r.handsOff}
	case len(r.GPUs) == 0:
		return Applied{HandsOff: "it has no GPU"}
	case r.wants() == (dvfsmodel.Setting{}):
		return Applied{HandsOff: "default clocks are wanted"}
	}
	for _, uuid := range r.GPUs {
		if c := a.gpus[uuid]; c == nil || c.journalled() == nil {
			return Applied{HandsOff: "another run on the GPU needs default clocks"}
		}
	}
	return Applied{Locked: true}
}

// HandsOff puts a run to default clocks for the rest of its time.
func (a *Agent) HandsOff(ctx context.Context, id, reason string) error {
	return a.handsOff(ctx, id, reason)
}

// handsOff is HandsOff. The first reason stays.
func (a *Agent) handsOff(ctx context.Context, id, reason string) error {
	a.mu.Lock()
	r, ok := a.runs[id]
	if !ok {
		a.mu.Unlock()
		return fmt.Errorf("run %s: %w", id, ErrNoRun)
	}
	if r.handsOff == "" {
		r.handsOff = reason
	}
	uuids := r.GPUs
	a.mu.Unlock()
	return a.settleAll(ctx, a.gpusOf(uuids))
}

// registerRun registers a run and writes it down. One that is refused, or that can't be
// written down, gets default clocks: of the latter nobody would know after a crash.
func (a *Agent) registerRun(run *live.Run, refusal error) error {
	a.mu.Lock()
	if r, ok := a.runs[run.ID]; ok {
		if refusal != nil && r.handsOff == "" {
			r.handsOff = refusal.Error()
		}
		a.mu.Unlock()
		return nil
	}
	a.mu.Unlock()
	r := &openRun{Run: *run, file: runFile{Schema: runSchema, Run: *run}, sampler: NewSampler(*run)}
	if refusal != nil {
		r.handsOff = refusal.Error()
	}
	r.file.Counters = a.readCounters(run)
	rec := r.file
	err := a.writeRunFile(&rec)
	_ = a.meterHost() // what was used up to now is others'; the next sample says what fails
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil && r.handsOff == "" {
		r.handsOff = err.Error()
	}
	a.runs[run.ID] = r
	for _, uuid := range run.GPUs {
		if c := a.gpus[uuid]; c != nil {
			c.sampled = time.Time{} // due at once, however lately it was read for another run
		}
	}
	r.beginAdaptation(time.Now())
	for _, news := range []chan struct{}{a.opened, a.adapts} {
		select {
		case news <- struct{}{}:
		default: // it is told already
		}
	}
	return err
}

// checkRun says why the run's GPUs must not be locked at its setting, and takes out
// of it what they can't lock but run at anyway.
func (a *Agent) checkRun(ctx context.Context, run *live.Run) error {
	if run.Wish.OptOut || run.Setting == (dvfsmodel.Setting{}) {
		return nil
	}
	a.mu.Lock()
	replayed := a.replayed
	a.mu.Unlock()
	if !replayed {
		return ErrJournal
	}
	if _, limited := run.Limit.Duration(); limited && run.Upper == 0 && !run.Wish.Fixed {
		return fmt.Errorf("%w: a limit, and no bound of the run time", ErrSetting)
	}
	for _, uuid := range run.GPUs {
		if ctx.Err() != nil {
			return fmt.Errorf("check %s: %w", uuid, context.Cause(ctx))
		}
		c := a.gpuByUUID(uuid)
		if c == nil {
			return fmt.Errorf("%s: %w", uuid, ErrNoGPU)
		}
		if err := a.checkGPU(c, run); err != nil {
			return fmt.Errorf("%s: %w", uuid, err)
		}
	}
	return a.checkAdaptation(run)
}

// checkGPU says why a GPU must not be locked at the run's setting, and takes out of the setting what
// the GPU can't lock but runs at anyway.
func (a *Agent) checkGPU(c *managedGPU, run *live.Run) error {
	if reason := c.externalReason(); reason != "" {
		return fmt.Errorf("%w: %s", ErrExternalChange, reason)
	}
	table, err := callRenewed(a, c.clocks)
	if err != nil {
		return err
	}
	// The table may have been read before a reload.
	shared, err := callRenewed(a, func() (gpu.Sharing, error) { return call(c, gpu.Device.Sharing) })
	switch {
	case err != nil:
		return err
	case shared.MIG:
		return ErrShared
	}
	if err := c.checkLockable(run, table); err != nil {
		return err
	}
	if !supports(table, run.Setting) {
		return fmt.Errorf("%w: %v,%v MHz is not in its table", ErrSetting, float64(run.Setting.Core),
			float64(run.Setting.Mem))
	}
	return a.checkRange(c, run.Setting)
}

// checkLockable says which control the card can't set. A memory clock that can't be
// locked but is the only one in the table of clocks needn't be.
func (c *managedGPU) checkLockable(run *live.Run, table *gpu.Clocks) error {
	if !c.can(gpu.MemClock) && len(table.Mem) == 1 && run.Setting.Mem == table.Mem[0] {
		run.Setting.Mem = 0
	}
	for control := range gpu.NumControls {
		if control.Of(run.Setting) != 0 && !c.can(control) {
			return fmt.Errorf("%w: %s: %w", ErrSetting, control, gpu.ErrNotSupported)
		}
	}
	return nil
}

// checkRange says which value the administrator doesn't want.
func (a *Agent) checkRange(c *managedGPU, want dvfsmodel.Setting) error {
	if a.options.Range == nil {
		return nil
	}
	spans := a.options.Range(c.identity())
	for control := range gpu.NumControls {
		if v := control.Of(want); !spans[control].within(v) {
			return fmt.Errorf("%w: %s %v %s is outside the administrator's range", ErrSetting, control,
				float64(v), control.Unit())
		}
	}
	return nil
}

// replaceOpenRun closes an open run of the same job under another id.
func (a *Agent) replaceOpenRun(ctx context.Context, run *live.Run) error {
	var err error
	for _, old := range a.openRuns(func(r *openRun) bool {
		return r.Job == run.Job && r.Node == run.Node && r.ID != run.ID
	}) {
		_, ending := a.end(ctx, old, runEnd{reason: "superseded by another run of the job", late: true})
		if !errors.Is(ending, ErrNoRun) { // else it ended meanwhile
			err = errors.Join(err, ending)
		}
	}
	return err
}

// checkRun says what is impossible about a run.
func checkRun(r *live.Run) error {
	switch {
	case !isFileName(r.ID):
		return fmt.Errorf("%w: id %q", ErrRun, r.ID)
	case r.Job == 0:
		return fmt.Errorf("%w: no job", ErrRun)
	case !isSetting(r.Setting):
		return fmt.Errorf("%w: clocks %v", ErrRun, r.Setting)
	case r.Upper < 0:
		return fmt.Errorf("%w: upper bound %s", ErrRun, r.Upper)
	case len(r.GPUs) > maxGPUs || slices.ContainsFunc(r.GPUs, func(uuid string) bool {
		return len(uuid) > maxUUID
	}):
		return fmt.Errorf("%w: GPUs", ErrRun)
	}
	if r.Started.IsZero() {
		r.Started = time.Now()
	}
	return nil
}

// isSetting reports whether a setting has a value or none of each control.
func isSetting(s dvfsmodel.Setting) bool {
	for control := range gpu.NumControls {
		if !(control.Of(s) >= 0) {
			return false
		}
	}
	return true
}

// late reports whether the hook that waits for a run has given up.
func late(r *live.Run, now time.Time) bool { return !r.Deadline.IsZero() && now.After(r.Deadline) }

// Bounds of what a run may name.
const (
	maxGPUs = 128
	maxUUID = 200
)
