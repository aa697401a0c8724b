package agent

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/nodepower"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/statedir"
)

// Options are what an agent works with. Journal and Library are needed, Runs
// too unless the agent only restores.
type Options struct {
	Journal statedir.FS // entries of GPUs
	Runs    statedir.FS // open runs, and ended ones until [RunSet.Forget]
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
	Range func(gpu.Identity) AllowedSpans
	// SiteClocks returns the highest clocks that the site allows on a GPU, 0 where any, which are in force
	// when no run wants other ones. False, or nil: what was known last counts, by the GPU's baseline.
	SiteClocks func(gpu.Identity) (ceiling dvfsmodel.Setting, known bool)
	// UsualCore returns the core clock at which a GPU runs when nobody sets clocks; 0, or nil: not known.
	UsualCore func(gpu.Identity) dvfsmodel.MHz
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

// Agent locks and frees the clocks of a node's GPUs for runs of jobs: it opens runs and
// closes them, and has its parts do the rest. Its methods may be called by several
// goroutines.
//
// Each part has its own locks. What is taken in the course of another is taken in this
// order: a GPU's turn, the meter's of [poller], the files' of [RunSet], the set's of
// [RunSet], that of [GPUSet], a GPU's own. No other is taken while [poller] holds its mu.
type Agent struct {
	options    Options
	gpus       *GPUSet
	runs       *RunSet
	holder     *holder
	reconciler *reconciler
	admission  *admission
	poller     *poller
	adapter    *adapter
	leases     *Leases
	guarded    atomic.Int64 // runs that the guard put to default clocks
}

// New makes an agent that knows nothing yet: [Agent.Start] is called before
// anything else.
func New(options Options) *Agent {
	options.CallTimeout = cmp.Or(options.CallTimeout, 500*time.Millisecond)
	options.UndoTimeout = cmp.Or(options.UndoTimeout, 5*time.Second)
	options.Margin = cmp.Or(options.Margin, 5*time.Minute)
	options.Grace = cmp.Or(options.Grace, time.Minute)
	a := &Agent{options: options}
	a.runs = &RunSet{
		folder: options.Runs, boot: options.Boot, driver: options.Driver, byID: make(map[string]*openRun),
	}
	a.gpus = &GPUSet{
		library: options.Library, claims: options.Claims, openTimeout: options.UndoTimeout,
		maxParallel: gpu.MaxSims,
		known:       make(map[string]*managedGPU), claimed: make(map[string]func()),
		newGPU: func(dev gpu.Device) *managedGPU {
			c := newManagedGPU(dev, options.CallTimeout, a.reconciler.reconcileLate)
			if options.UsualCore != nil {
				c.usualCore = options.UsualCore(c.id)
			}
			return c
		},
	}
	a.holder = &holder{
		gpus: a.gpus, journal: journal{options.Journal}, boot: options.Boot, driver: options.Driver,
		inUse: func(c *managedGPU) bool { return a.reconciler.isUntouchable(c) },
	}
	a.holder.base = &baselines{
		gpus: a.gpus, journal: a.holder.journal, boot: options.Boot, driver: options.Driver,
		siteClocks: options.SiteClocks,
	}
	a.reconciler = &reconciler{gpus: a.gpus, runs: a.runs, holder: a.holder, undoTimeout: options.UndoTimeout}
	a.leases = &Leases{
		gpus: a.gpus, runs: a.runs, base: a.holder.base, reconciler: a.reconciler, news: make(chan struct{}, 1),
	}
	a.admission = &admission{gpus: a.gpus, holder: a.holder, allowed: options.Range}
	a.poller = &poller{
		gpus: a.gpus, runs: a.runs, reconciler: a.reconciler, host: options.Host, opened: make(chan struct{}, 1),
		last: make(map[string]time.Time),
	}
	a.adapter = &adapter{
		gpus: a.gpus, runs: a.runs, reconciler: a.reconciler, poller: a.poller, undoTimeout: options.UndoTimeout,
		opened: make(chan struct{}, 1),
	}
	return a
}

// GPUs returns those of the node.
func (a *Agent) GPUs() *GPUSet { return a.gpus }

// Runs returns those that are open, and those that ended until they are forgotten.
func (a *Agent) Runs() *RunSet { return a.runs }

// Leases returns those of the node's GPUs under a power budget.
func (a *Agent) Leases() *Leases { return a.leases }

// Close gives up all GPUs, for other processes to look after. The agent isn't used
// any more.
func (a *Agent) Close() { a.gpus.release() }

// Start opens the GPUs, reads the open runs, and gives back every clock that
// the journal names. Runs stay open at default clocks. The agent can be used
// whatever the error is: it looks after the GPUs that could be opened, locks nothing
// until the journal could be read, and sweeping tries again.
func (a *Agent) Start(ctx context.Context) (Report, error) {
	opening := a.gpus.open()
	notes, reading := a.runs.load()
	report, replaying := a.holder.replay(ctx, nil)
	report.Notes = append(report.Notes, notes...)
	return report, errors.Join(opening, reading, replaying, a.holder.settleAll(ctx))
}

// Settle brings GPUs on which nothing is set to the site's clocks, as [Options.SiteClocks] tells them now.
func (a *Agent) Settle(ctx context.Context) error { return a.holder.settleAll(ctx) }

// Stop gives every clock back, to the site's range. Runs stay open, on file: those that couldn't be written
// down before are tried once more.
func (a *Agent) Stop(ctx context.Context) (Report, error) {
	_ = a.leases.release(ctx, a.gpus.all(), false)
	report, err := a.restore(ctx, "the agent stopped")
	return report, errors.Join(err, a.runs.retryWrites())
}

// Restore gives back the clocks of the named GPUs, of all where none is named,
// by what the journal's files say. Open runs on them stay at default clocks
// for the rest of their time, for the given reason. The error says what
// prevented the journal from being read; what couldn't be given back is in the
// report. A power budget's limits are back with the next leases.
func (a *Agent) Restore(ctx context.Context, reason string, uuids ...string) (Report, error) {
	cards := a.gpus.all()
	if len(uuids) > 0 {
		cards = a.gpus.byUUIDs(uuids)
	}
	releasing := a.leases.release(ctx, cards, true)
	report, err := a.restore(ctx, reason, uuids...)
	return report, errors.Join(releasing, err)
}

// restore is [Agent.Restore] of all but what a power budget wants.
func (a *Agent) restore(ctx context.Context, reason string, uuids ...string) (Report, error) {
	cards := a.gpus.all()
	if len(uuids) > 0 {
		cards = a.gpus.byUUIDs(uuids)
	}
	affected := a.reconciler.giveUp(cards, live.NotLocked{Kind: live.NotLockedRestart, Why: reason})
	for _, c := range cards {
		c.clearExternalChange()
	}
	report, err := a.holder.replay(ctx, uuids)
	return report, errors.Join(err, a.reconciler.reconcile(ctx, affected))
}

// RestoreJournal gives back all clocks that a journal names, without an agent and its
// runs. If an agent is alive or hangs, its journal entries stay and are marked as given back; the
// agent then puts its runs to default clocks. A GPU that
// another agent looks after isn't touched. A GPU that can't be opened keeps no other from
// being given back, and is a note where the journal doesn't name it.
func RestoreJournal(ctx context.Context, options Options) (Report, error) {
	a := New(options)
	defer a.Close()
	a.gpus.restoreOnly = true
	a.holder.base.isByHand = true
	opening := a.gpus.open()
	report, err := a.holder.replay(ctx, nil)
	if opening != nil && len(a.gpus.all()) > 0 && report.Clean() {
		report.Notes = append(report.Notes, opening.Error())
		opening = nil
	}
	return report, errors.Join(opening, err)
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

// State returns what the agent holds now.
func (a *Agent) State() State {
	var s State
	for _, c := range a.gpus.all() {
		s.GPUs = append(s.GPUs, c.state())
	}
	s.Runs = a.runs.states()
	s.Steps, s.Guarded = int(a.adapter.steps.Load()), int(a.guarded.Load())
	return s
}
