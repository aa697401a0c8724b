package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/live"
)

// Errors of [Agent.Apply], wrapped with what was found, beside [ErrRun], [ErrNoGPU],
// [ErrExternalChange] and those of the GPUs' driver. After any of them but ErrRun the run is open
// and its GPUs are at default clocks, or going there.
var (
	// ErrLate tells that the hook had gone when the clocks were locked.
	ErrLate = errors.New("the hook's deadline passed")
	// ErrShared tells that the GPU is divided in a way that has no clocks of
	// its own.
	ErrShared = errors.New("the GPU is divided (MIG)")
	// ErrStanding tells that somebody seems to hold the GPU below a clock of which the configuration doesn't
	// tell: it couldn't be given back.
	ErrStanding = errors.New("the GPU seems to have a standing limit")
	// ErrJournal tells that the journal couldn't be read since the start.
	ErrJournal = errors.New("the journal couldn't be read")
)

// AllowedSpans are the spans of values that an administrator allows, by control.
type AllowedSpans [gpu.NumControls]Span

// Span is a span of a control's values; 0 is no bound.
type Span struct{ Min, Max gpu.Value }

// within reports whether a value is in the span; 0 is the default, which always is.
func (s Span) within(v gpu.Value) bool {
	return v == 0 || v >= s.Min && (s.Max == 0 || v <= s.Max)
}

// admission says at which settings the GPUs of runs may be locked. It has no state of its own.
type admission struct {
	gpus    *GPUSet
	holder  *holder
	allowed func(gpu.Identity) AllowedSpans // by the administrator; nil: all that a GPU's table has
}

// check says why the run's GPUs must not be locked at its setting, and takes out
// of it what they can't lock but run at anyway.
func (a *admission) check(ctx context.Context, run *live.Run) error {
	if run.Wish.OptOut || run.Setting == (dvfsmodel.Setting{}) {
		return nil
	}
	if !a.holder.replayed.Load() {
		return ErrJournal
	}
	_, limited := run.Limit.Duration()
	if limited && run.Upper == 0 && !run.Wish.Fixed && run.Setting.WithoutProfile() != (dvfsmodel.Setting{}) {
		return fmt.Errorf("%w: a limit, and no bound of the run time", ErrSetting)
	}
	for _, uuid := range run.GPUs {
		if ctx.Err() != nil {
			return fmt.Errorf("check %s: %w", uuid, context.Cause(ctx))
		}
		c := a.gpus.byUUID(uuid)
		if c == nil {
			return fmt.Errorf("%s: %w", uuid, ErrNoGPU)
		}
		if err := a.checkGPU(c, run); err != nil {
			return fmt.Errorf("%s: %w", uuid, err)
		}
	}
	return a.checkLevels(run)
}

// checkGPU says why a GPU must not be locked at the run's setting, and takes out of the setting what
// the GPU can't lock but runs at anyway.
func (a *admission) checkGPU(c *managedGPU, run *live.Run) error {
	if reason := c.externalReason(); reason != "" {
		return fmt.Errorf("%w: %s", ErrExternalChange, reason)
	}
	if ground := c.ground.now(); ground.suspected() > 0 && run.Setting.Core > 0 {
		return fmt.Errorf("%w: it never exceeds %s, as if somebody had locked it: name the highest clock of its "+
			"model in [live.site_clocks]", ErrStanding, gpu.CoreClock.Words(gpu.Value(ground.suspected())))
	}
	table, err := callRenewed(a.gpus, c.clocks)
	if err != nil {
		return err
	}
	// The table may have been read before a reload.
	shared, err := callRenewed(a.gpus, func() (gpu.Sharing, error) { return call(c, gpu.Device.Sharing) })
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

// checkLockable says that the card can't set the first control of the run's, or can't set one to the run's
// value; without a later control it goes on. A memory clock that can't be locked but is the only one in
// the table of clocks needn't be.
func (c *managedGPU) checkLockable(run *live.Run, table *gpu.Clocks) error {
	if !c.canSet(gpu.MemClock) && len(table.Mem) == 1 && run.Setting.Mem == table.Mem[0] {
		run.Setting.Mem = 0
	}
	if first, some := firstControl(run.Setting); some && !c.canSet(first) {
		return fmt.Errorf("%w: %s: %w", ErrSetting, first, gpu.ErrNotSupported)
	}
	for control := range gpu.NumControls {
		if v := control.ValueIn(run.Setting); v != 0 && c.canSet(control) {
			if err := c.checkBounds(control, v); err != nil {
				return fmt.Errorf("%w: %w", ErrSetting, err)
			}
		}
	}
	return nil
}

// checkRange says which value the administrator doesn't want, on this node or at the site.
func (a *admission) checkRange(c *managedGPU, want dvfsmodel.Setting) error {
	site := a.holder.base.siteOf(c)
	var spans AllowedSpans
	if a.allowed != nil {
		spans = a.allowed(c.identity())
	}
	for control := range gpu.NumControls {
		if v, most := control.ValueIn(want), site.of(control); most > 0 && v > most {
			return fmt.Errorf("%w: %s %s is above the site's %s", ErrSetting, control, control.Words(v),
				control.Words(most))
		}
		if v := control.ValueIn(want); !spans[control].within(v) {
			return fmt.Errorf("%w: %s %s is outside the administrator's range", ErrSetting, control,
				control.Words(v))
		}
	}
	return nil
}

// checkLevels takes the levels out of a run's adaptation that a GPU doesn't
// have or mustn't be at; without the ceiling or the clock it begins with, there
// is none.
func (a *admission) checkLevels(run *live.Run) error {
	if run.Adapt == nil {
		return nil
	}
	if err := checkAdaptation(run.Adapt); err != nil {
		return err
	}
	rule := *run.Adapt
	rule.Levels = slices.Clone(rule.Levels)
	for _, uuid := range run.GPUs {
		c := a.gpus.byUUID(uuid)
		if c == nil {
			return ErrNoGPU
		}
		table, err := c.clocks()
		if err != nil {
			return err
		}
		rule.Levels = slices.DeleteFunc(rule.Levels, func(l live.AdaptLevel) bool {
			at := run.Setting
			at.Core = l.Core
			return !supports(table, at) || a.checkRange(c, at) != nil
		})
	}
	run.Adapt = &rule
	if levelIndex(&rule, run.Setting) < 0 || rule.Levels[0].Stretch != 1 {
		run.Adapt = nil
	}
	return nil
}

// Bounds of what an adaptation may ask for.
const (
	minTau, maxTau = 20 * time.Millisecond, time.Second
	maxLevels      = 64
	maxStretch     = 100
	maxWrites      = 6000
	maxPause       = 10 * time.Second // of writes
)

// checkAdaptation says what is impossible about an adaptation.
func checkAdaptation(a *live.Adaptation) error {
	tau := a.Interval()
	if !(a.SLA >= 1 && a.SLA <= maxStretch) || tau < minTau || tau > maxTau || a.Writes < 0 ||
		a.Writes > maxWrites || !(a.RestS >= 0) || !(a.WritePauseS >= 0) || a.WritePause() > maxPause ||
		len(a.Levels) == 0 || len(a.Levels) > maxLevels || a.Levels[0].Stretch != 1 {
		return fmt.Errorf("%w: adaptation by %v every %s over %d clocks", ErrSetting, a.SLA, tau,
			len(a.Levels))
	}
	for i, l := range a.Levels {
		if !(l.Core > 0) || !(l.Stretch >= 1 && l.Stretch <= maxStretch) || !(l.Cost > 0) ||
			math.IsInf(l.Cost, 0) ||
			i > 0 && (l.Core >= a.Levels[i-1].Core || l.Stretch < a.Levels[i-1].Stretch) {
			return fmt.Errorf("%w: adaptation to %v MHz", ErrSetting, float64(l.Core))
		}
	}
	return nil
}

// notLockedKinds are the kinds of errors that keep clocks from being set. The first that fits counts.
var notLockedKinds = []struct {
	err  error
	kind live.NotLockedKind
}{
	{ErrLate, live.NotLockedLate},
	{ErrSetting, live.NotLockedSetting},
	{ErrShared, live.NotLockedShared},
	{ErrJournal, live.NotLockedJournal},
	{errRestarted, live.NotLockedRestart},
	{ErrStanding, live.NotLockedExternal},
	{ErrExternalChange, live.NotLockedExternal},
	{errReturned, live.NotLockedExternal},
	{errLimitChanged, live.NotLockedExternal},
	{gpu.ErrPermission, live.NotLockedPermission},
	{gpu.ErrLost, live.NotLockedLost},
	{ErrNoGPU, live.NotLockedLost},
	{context.DeadlineExceeded, live.NotLockedLate},
}

// errRestarted tells that the agent was started anew under a run.
var errRestarted = errors.New("the agent was restarted")

// notLockedReason is why a run's clocks aren't set, after an error of the driver or of what the agent keeps on
// disk.
func notLockedReason(err error) live.NotLocked {
	why := live.NotLocked{Kind: live.NotLockedDriver, Why: err.Error()}
	for _, k := range notLockedKinds {
		if errors.Is(err, k.err) {
			why.Kind = k.kind
			return why
		}
	}
	if _, onDisk := errors.AsType[*fs.PathError](err); onDisk {
		why.Kind = live.NotLockedJournal
	}
	return why
}

// notLockedReason returns why clocks that were decided weren't set, or not to the run's end.
func (r *runFile) notLockedReason(shared bool) live.NotLocked {
	wanted := r.Run.Setting.WithoutProfile() != dvfsmodel.Setting{}
	switch {
	case r.Run.Wish.OptOut:
		return live.NotLocked{}
	case !wanted:
		return r.Run.Unset
	case r.HandsOff != "":
		return live.NotLocked{Kind: r.Kind, Why: r.HandsOff}.Truncated(len(r.HandsOff))
	case shared:
		return live.NotLocked{
			Kind: live.NotLockedShared, Why: "another run was on a GPU of its, which goes by the faster one",
		}
	}
	return live.NotLocked{}
}
