package agent

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/internal/nodepower"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// Options are what an agent works with. Journal and Library are needed, Runs
// too unless the agent only restores.
type Options struct {
	Journal FS // entries of GPUs
	Runs    FS // open runs, and ended ones until [Agent.Forget]
	Library gpu.Library
	// Claims keeps other processes from the GPUs; nil: there are none.
	Claims Claims
	// Host measures what the node uses beside its GPUs; nil: nothing does.
	Host *nodepower.Meter
	// Boot and Driver tell this boot of the machine and this load of the
	// driver from others. Clocks that were locked in another boot are free.
	Boot, Driver string
	// Range is what the administrator allows on a GPU; nil means all that its
	// table has.
	Range func(gpu.Identity) Range
	// CallTimeout bounds one call of a driver (default 500 ms).
	CallTimeout time.Duration
	// UndoTimeout bounds the wait for a GPU's turn when something is undone
	// (default 5 s).
	UndoTimeout time.Duration
	// Margin is what the guard wants to be left of the limit (default 5 min).
	Margin time.Duration
	// Grace is how old a run is before it can be found gone (default 1 min).
	Grace time.Duration
}

// Range is the spans of values that an administrator allows, by control.
type Range [gpu.NumControls]Span

// Span is a span of a control's values; 0 is no bound.
type Span struct{ Min, Max gpu.Value }

// within reports whether a value is in the span; 0 is the default, which always is.
func (s Span) within(v gpu.Value) bool {
	return v == 0 || v >= s.Min && (s.Max == 0 || v <= s.Max)
}

// Agent locks and frees the clocks of a node's GPUs for runs of jobs. Its
// methods may be called by several goroutines.
type Agent struct {
	options Options
	gpus    *GPUSet
	journal journal
	// maxParallel is how many GPUs are settled at the same time.
	maxParallel int

	// meterMu is held while the node's energy is read and shared; it is taken
	// before mu.
	meterMu sync.Mutex

	// Both wake a loop of [Agent.Watch] when a run begins: opened the one that
	// samples, as the run's energy counts from its start, adapts the one that
	// adapts clocks.
	opened, adapts chan struct{}

	// fileMu is held while an ended run's file is written or removed.
	fileMu sync.Mutex

	mu        sync.Mutex          // guards what follows
	runs      map[string]*openRun // by id: open ones, and ended ones until they are forgotten
	replayed  bool                // the journal was read since the start
	steps     int                 // clock changes by adaptation
	guarded   int                 // runs that the guard put to default clocks
	unmetered bool                // the last sample of the node's energy failed
}

// openRun is a run with what became of it, from its Prolog until its outcome is safe
// elsewhere. The agent's mu guards it.
type openRun struct {
	live.Run
	file      runFile           // as it was written last, or is to be
	handsOff  string            // why its GPUs are at default clocks; "" while they aren't
	sampler   *Sampler          // nil once its outcome is settled
	stepper   *clockStepper     // nil: its clock isn't stepped
	residency *residencyTracker // where it has an adapter
	reread    bool              // it was open when the agent started
	jobEnded  bool              // its job ended, and its Epilog hasn't come
	ended     bool
	kept      bool // its end is in a file
}

// wants is what the run wants of its GPUs.
func (r *openRun) wants() dvfsmodel.Setting {
	if r.handsOff != "" || r.jobEnded || r.Wish.OptOut {
		return dvfsmodel.Setting{}
	}
	return r.steppedTo((*clockStepper).core)
}

// steppedTo is the run's setting with the core clock of its stepper, if it has one: of all
// controls, that clock alone is stepped.
func (r *openRun) steppedTo(clock func(*clockStepper) dvfsmodel.MHz) dvfsmodel.Setting {
	at := r.Setting
	if r.stepper != nil {
		at.Core = clock(r.stepper)
	}
	return at
}

// New makes an agent that knows nothing yet: [Agent.Start] is called before
// anything else.
func New(options Options) *Agent {
	options.CallTimeout = cmp.Or(options.CallTimeout, 500*time.Millisecond)
	options.UndoTimeout = cmp.Or(options.UndoTimeout, 5*time.Second)
	options.Margin = cmp.Or(options.Margin, 5*time.Minute)
	options.Grace = cmp.Or(options.Grace, time.Minute)
	a := &Agent{
		options: options, journal: journal{options.Journal}, maxParallel: gpu.MaxSims,
		runs: make(map[string]*openRun), opened: make(chan struct{}, 1), adapts: make(chan struct{}, 1),
	}
	a.gpus = &GPUSet{
		library: options.Library, claims: options.Claims, openTimeout: options.UndoTimeout,
		known: make(map[string]*managedGPU), claimed: make(map[string]func()),
		newGPU: func(dev gpu.Device) *managedGPU {
			return newManagedGPU(dev, options.CallTimeout, a.settleLate)
		},
	}
	return a
}

// GPUs are those of the node.
func (a *Agent) GPUs() *GPUSet { return a.gpus }

// Close gives up all GPUs, for other processes to look after. The agent isn't used
// any more.
func (a *Agent) Close() { a.gpus.release() }

// Start opens the GPUs, reads the open runs, and gives back every clock that
// the journal names. Runs stay open at default clocks. The agent can be used
// whatever the error is: it looks after the GPUs that could be opened, locks nothing
// until the journal could be read, and sweeping tries again.
func (a *Agent) Start(ctx context.Context) (Report, error) {
	opening := a.gpus.open()
	notes, reading := a.loadRuns()
	report, replaying := a.replay(ctx, nil)
	report.Notes = append(report.Notes, notes...)
	return report, errors.Join(opening, reading, replaying)
}

// Stop gives every clock back. Runs stay open, on file.
func (a *Agent) Stop(ctx context.Context) (Report, error) {
	return a.Restore(ctx, "the agent stopped")
}

// settleLate settles a GPU whose driver has come back: what it was asked for in
// vain has happened by now.
func (a *Agent) settleLate(c *managedGPU) {
	_ = a.settleAll(context.Background(), []*managedGPU{c}) // what fails stays in the journal
}

// runsOn are the runs that aren't ended on a GPU, in the order of their ids.
// The caller holds mu.
func (a *Agent) runsOn(c *managedGPU) []*openRun {
	var found []*openRun
	for _, id := range slices.Sorted(maps.Keys(a.runs)) {
		if r := a.runs[id]; !r.ended && slices.Contains(r.GPUs, c.uuid) {
			found = append(found, r)
		}
	}
	return found
}

// State is what an agent holds, for showing.
type State struct {
	GPUs  []GPUState
	Runs  []RunState
	Steps int // clock changes by adaptation since the agent began
	// Guarded counts runs that were put to default clocks because their limit was
	// at risk, since then.
	Guarded int
}

// GPUState is a GPU with its journal's entry.
type GPUState struct {
	Identity       gpu.Identity
	Entry          *Entry // nil: at default clocks as far as this agent is concerned
	Writes         int    // of its clocks since the agent began
	Stuck          bool
	Lost           bool   // it fell off the bus
	ExternalChange string // why somebody else is thought to set its clocks
	Refused        string // why its last lock was refused
}

// RunState is a run with what it got.
type RunState struct {
	live.Run
	Wants    dvfsmodel.Setting // now
	Adapted  *AdaptationState  // nil: its clocks stay as they are
	HandsOff string            // why its GPUs are at default clocks
	Ended    bool              // but not yet forgotten
	Reread   bool              // it was open when the agent started
	// Readings are its GPUs' power and core clock until now; none of a run that
	// ended.
	Readings record.Readings
}

// State is what the agent holds now.
func (a *Agent) State() State {
	var s State
	for _, c := range a.gpus.all() {
		c.mu.Lock()
		s.GPUs = append(s.GPUs, GPUState{
			Identity: c.id, Lost: c.lost, Entry: c.entry, Writes: c.writes, Stuck: c.hung > 0,
			ExternalChange: c.externalChange, Refused: c.refused,
		})
		c.mu.Unlock()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(a.runs)) {
		r := a.runs[id]
		run := RunState{
			Run: r.Run, Wants: r.wants(), Adapted: r.adaptationState(), HandsOff: r.handsOff, Ended: r.ended,
			Reread: r.reread,
		}
		if !r.ended {
			run.Readings = r.sampler.readings.Readings()
		}
		s.Runs = append(s.Runs, run)
	}
	s.Steps, s.Guarded = a.steps, a.guarded
	return s
}
