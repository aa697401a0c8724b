package agent

import (
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// openRun is a run with what became of it, from its Prolog until its outcome is safe
// elsewhere. The mu of its [RunSet] guards it.
type openRun struct {
	live.Run
	file      runFile            // as it was written last, or is to be
	handsOff  string             // why its GPUs are at default clocks; "" while they aren't
	kind      live.NotLockedKind // of that reason
	sampler   *Sampler           // nil once its outcome is settled
	stepper   *clockStepper      // nil: its clock isn't stepped
	residency *residencyTracker  // where it has an adapter
	reread    bool               // it was open when the agent started
	jobEnded  bool               // its job ended, and its Epilog hasn't come
	notes     []string           // what became of its clocks, for people
	refused   gpu.ControlSet     // what drivers refused, of controls that it wanted
	unwritten bool               // it has no file, as none could be written: it is tried again
	ended     bool
	kept      bool // its end is in a file
}

// maxNotes is how many notes of a run are kept, the first ones.
const maxNotes = 8

// note notes what became of the run's clocks, once.
func (r *openRun) note(note string) {
	if note != "" && len(r.notes) < maxNotes && !slices.Contains(r.notes, note) {
		r.notes = append(r.notes, note)
	}
}

// revertToDefault puts the run to default clocks for the rest of its time. The first reason stays.
func (r *openRun) revertToDefault(why live.NotLocked) {
	if r.handsOff == "" {
		r.handsOff, r.kind = why.Why, why.Kind
	}
}

// noteRefused notes controls that drivers refused of those that the run wants, for the first
// time.
func (r *openRun) noteRefused(controls gpu.ControlSet) {
	want := r.wantedSetting()
	for control := range gpu.NumControls {
		if controls.Has(control) && !r.refused.Has(control) && control.ValueIn(want) != 0 {
			r.refused |= gpu.ControlsOf(control)
			r.note("a GPU's driver refused the " + control.String() + ", which stayed as it was")
		}
	}
}

// acceptedSetting returns the run's setting without what drivers refused.
func (r *openRun) acceptedSetting() dvfsmodel.Setting {
	return lock{Setting: r.Setting}.without(r.refused).Setting
}

// wantedSetting returns what the run wants of its GPUs.
func (r *openRun) wantedSetting() dvfsmodel.Setting {
	if r.handsOff != "" || r.jobEnded || r.Wish.OptOut {
		return dvfsmodel.Setting{}
	}
	return r.steppedTo((*clockStepper).core)
}

// lock is what a GPU is to be set to.
type lock struct {
	dvfsmodel.Setting
	// exact tells that its core clock isn't to fall below the setting's while the GPU has
	// nothing to do.
	exact bool
}

// without returns the lock without some controls; the first one that is wanted stays.
func (l lock) without(without gpu.ControlSet) lock {
	first, _ := firstControl(l.Setting)
	for control := range gpu.NumControls {
		if without.Has(control) && control != first {
			control.SetIn(&l.Setting, 0)
		}
	}
	return l
}

// firstControl returns the first control that a setting sets.
func firstControl(s dvfsmodel.Setting) (first gpu.Control, some bool) {
	for control := range gpu.NumControls {
		if control.ValueIn(s) != 0 {
			return control, true
		}
	}
	return 0, false
}

// wantedLock returns what the run wants of its GPUs, exactly where a user chose the clocks.
func (r *openRun) wantedLock() lock {
	want := r.wantedSetting()
	return lock{want, r.Wish.Fixed && want != (dvfsmodel.Setting{})}
}

// steppedTo returns the run's setting with the core clock of its stepper, if it has one: of all
// controls, that clock alone is stepped.
func (r *openRun) steppedTo(clock func(*clockStepper) dvfsmodel.MHz) dvfsmodel.Setting {
	at := r.Setting
	if r.stepper != nil {
		at.Core = clock(r.stepper)
	}
	return at
}

// levelIndex returns the level that a setting is; -1 where it is none.
func levelIndex(a *live.Adaptation, s dvfsmodel.Setting) int {
	return slices.IndexFunc(a.Levels, func(l live.AdaptLevel) bool { return l.Core == s.Core })
}

// beginAdaptation begins a run's adaptation, if it has one.
func (r *openRun) beginAdaptation(now time.Time) {
	if r.Adapt == nil || r.handsOff != "" || r.Wish.OptOut || len(r.GPUs) == 0 {
		return
	}
	if level := levelIndex(r.Adapt, r.Setting); level >= 0 {
		r.stepper, r.residency = newClockStepper(r.Adapt, level, now), newResidencyTracker(r.Adapt.Levels)
	}
}

// AdaptationState is how a run fares whose clock is adapted.
type AdaptationState struct {
	SLA      float64
	Slowdown float64 // times as long as at default clocks, at most, so far
}

// isAdapted reports whether the run's clock is stepped. The caller holds the set's mu.
func (r *openRun) isAdapted() bool {
	return r.stepper != nil && !r.ended && !r.jobEnded && r.handsOff == "" && !r.Wish.OptOut
}

// adaptationState returns how the run fares; nil where its clock isn't adapted. The caller
// holds the set's mu.
func (r *openRun) adaptationState() *AdaptationState {
	if !r.isAdapted() {
		return nil
	}
	return &AdaptationState{SLA: r.Adapt.SLA, Slowdown: r.stepper.slowdown()}
}

// RunState is a run with what it got.
type RunState struct {
	live.Run
	Wants    dvfsmodel.Setting // now
	Adapted  *AdaptationState  // nil: its clocks stay as they are
	HandsOff string            // why its GPUs are at default clocks
	Notes    []string          // what became of its clocks
	Ended    bool              // but not yet forgotten
	Reread   bool              // it was open when the agent started
	// Readings are its GPUs' power and core clock until now; none of a run that
	// ended.
	Readings record.Readings
}

// markSharedRuns notes of runs on one GPU that they aren't alone there. The caller holds
// the set's mu.
func markSharedRuns(runs []*openRun) {
	if len(runs) < 2 {
		return
	}
	for _, r := range runs {
		r.sampler.markShared()
	}
}

// combine returns what suits two runs: the faster setting, exactly where one of them wants its core clock so.
func (l lock) combine(other lock) lock {
	both := lock{Setting: faster(l.Setting, other.Setting)}
	for _, one := range []lock{l, other} {
		both.exact = both.exact || one.exact && both.Core != 0 && both.Core == one.Core
	}
	return both
}

// faster returns the setting of the faster values of two; the default is the fastest.
func faster(s, t dvfsmodel.Setting) dvfsmodel.Setting {
	for control := range gpu.NumControls {
		control.SetIn(&s, control.Faster(control.ValueIn(s), control.ValueIn(t)))
	}
	return s
}
