package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/slurm"
)

// Controller decides and records. Its methods keep to their context's time.
type Controller interface {
	// Decide chooses clocks for a run that is about to start.
	Decide(ctx context.Context, q *Question) (Decision, error)
	// Record keeps what became of a run. Recording a run twice keeps it once.
	// The state is how its job ended, as far as the Epilog knew; empty: it
	// didn't.
	Record(ctx context.Context, c *agent.Closed, exit slurm.State) error
	// Unmatched keeps that a job ended here whose start wasn't seen.
	Unmatched(ctx context.Context, e *slurm.HookEvent, run string) error
	// Totals count what was done since the start.
	Totals(ctx context.Context) (epdapi.Totals, error)
}

// ErrNotYet tells that an outcome can't be recorded before more is known.
var ErrNotYet = errors.New("not yet")

// ErrRefused tells that an outcome will never be recorded as it is.
var ErrRefused = errors.New("refused for good")

// Question is a run that is about to start on this node.
type Question struct {
	Event  *slurm.HookEvent
	RunID  string
	Model  string     // GPU model
	Clocks gpu.Clocks // that its GPUs support
	GPUs   int
	Shared bool // others may be on its GPUs
}

// Decision is the answer.
type Decision struct {
	Setting agent.Setting // zero: default clocks
	Wish    agent.Wish
	Limit   time.Duration // wall time of the job; 0: not known
	Upper   time.Duration // what the run takes at most at the setting; 0: not known
	Reason  string
}

// Options are what a daemon joins.
type Options struct {
	Version, Role, Node string

	Agent      *agent.Agent
	Controller Controller
	// Records answers submissions and what is asked about jobs, models and
	// savings; nil: nobody does.
	Records http.Handler
	// Order is the GPUs' UUIDs as gres.conf lists them, by position. Nil means
	// the order of their device files.
	Order []string
	// Allowed are the uids, beside root and the daemon's own, that may call
	// hooks and restore.
	Allowed []uint32
	Log     *slog.Logger
	// Job tells whether a job still exists, for the sweep; nil: not known.
	Job agent.Probe
}

// Daemon is epd on one machine.
type Daemon struct {
	options Options
	started time.Time

	mu       sync.Mutex
	troubles []epdapi.Trouble
	exits    map[string]slurm.State // by run, until it is recorded
	hand     sync.Mutex             // one delivery of outcomes at a time
}

// New makes a daemon; [Daemon.Start] comes next.
func New(o Options) *Daemon {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Daemon{options: o, started: time.Now(), exits: make(map[string]slurm.State)}
}

// maxTroubles is how many of the latest troubles are shown.
const maxTroubles = 20

// trouble notes what went wrong, for the log and for people who ask.
func (d *Daemon) trouble(err error) {
	if err == nil {
		return
	}
	what := slurm.Printable(err.Error(), 1000)
	d.options.Log.Warn(what)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.troubles = append(d.troubles, epdapi.Trouble{At: time.Now(), What: what})
	if len(d.troubles) > maxTroubles {
		d.troubles = slices.Delete(d.troubles, 0, len(d.troubles)-maxTroubles)
	}
}

// Start finds the GPUs and gives back every clock that is still held from
// before. The daemon works whatever goes wrong here, with what there is.
func (d *Daemon) Start(ctx context.Context) {
	report, err := d.options.Agent.Start(ctx)
	d.trouble(errors.Join(err, report.Err()))
	for _, note := range report.Notes {
		d.trouble(errors.New(note))
	}
	for _, g := range report.GPUs {
		d.options.Log.Info("journal entry replayed", "gpu", g.UUID, "fate", string(g.Fate), "note", g.Note)
	}
}

// at is the GPUs at positions of gres.conf's list: that of the options, or the
// order of the device files.
func (d *Daemon) at(positions []int) ([]gpu.Identity, error) {
	all := d.options.Agent.GPUs()
	slices.SortFunc(all, func(a, b gpu.Identity) int { return a.Minor - b.Minor })
	found := make([]gpu.Identity, 0, len(positions))
	for _, i := range positions {
		at := i
		if order := d.options.Order; order != nil {
			at = -1
			if i >= 0 && i < len(order) {
				at = slices.IndexFunc(all, func(id gpu.Identity) bool { return id.UUID == order[i] })
			}
		}
		if at < 0 || at >= len(all) {
			return nil, fmt.Errorf("GPU %d of Slurm's list: %w", i, agent.ErrNoGPU)
		}
		found = append(found, all[at])
	}
	return found, nil
}

// How often outcomes that couldn't be recorded are offered again, and how long
// one may take.
const (
	deliverEvery = 5 * time.Second
	recordBound  = 5 * time.Second
)

// Run watches the runs and delivers outcomes until the context ends; then it
// gives all clocks back.
func (d *Daemon) Run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() {
		d.options.Agent.Watch(ctx, agent.Watcher{
			Outlook:   func(context.Context, agent.Run) (agent.Outlook, error) { return agent.Outlook{}, nil },
			Slurm:     d.job,
			Processes: d.processes,
			Closed:    func(agent.Closed) { d.Deliver(ctx) },
			Trouble:   d.trouble,
		})
	})
	group.Go(func() {
		ticker := time.NewTicker(deliverEvery)
		defer ticker.Stop()
		for {
			d.Deliver(ctx)
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
	group.Wait()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreBound)
	defer cancel()
	report, err := d.options.Agent.Stop(stopping)
	d.trouble(errors.Join(err, report.Err()))
	d.Deliver(stopping)
}

// restoreBound is how long giving back all clocks may take.
const restoreBound = 10 * time.Second

func (d *Daemon) job(ctx context.Context, r agent.Run) (agent.Life, error) {
	if d.options.Job == nil {
		return agent.LifeUnknown, nil
	}
	return d.options.Job(ctx, r)
}

// processes tells whether anything runs on a run's GPUs. Nothing there is no
// proof while GPUs can't be asked.
func (d *Daemon) processes(_ context.Context, r agent.Run) (agent.Life, error) {
	for _, uuid := range r.GPUs {
		pids, err := agent.Ask(d.options.Agent, uuid, gpu.Device.Processes)
		if err != nil {
			return agent.LifeUnknown, err
		}
		if len(pids) > 0 {
			return agent.LifeAlive, nil
		}
	}
	return agent.LifeGone, nil
}

// Deliver offers the outcomes that wait to the controller. One goes from the
// node's files only when the controller has it.
func (d *Daemon) Deliver(ctx context.Context) {
	d.hand.Lock()
	defer d.hand.Unlock()
	for _, closed := range d.options.Agent.Ended() {
		bound, cancel := context.WithTimeout(ctx, recordBound)
		err := d.options.Controller.Record(bound, &closed, d.exit(closed.Run.ID))
		cancel()
		if errors.Is(err, ErrNotYet) {
			continue
		}
		switch {
		case errors.Is(err, ErrRefused):
			d.trouble(fmt.Errorf("run %s of job %d is not recorded: %w", closed.Run.ID, closed.Run.Job, err))
		case err != nil:
			d.trouble(fmt.Errorf("record run %s of job %d, will try again: %w", closed.Run.ID, closed.Run.Job, err))
			return
		}
		d.trouble(d.options.Agent.Forget(closed.Run.ID))
		d.mu.Lock()
		delete(d.exits, closed.Run.ID)
		d.mu.Unlock()
	}
}

func (d *Daemon) exit(run string) slurm.State {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.exits[run]
}

// Status is what the daemon is doing.
func (d *Daemon) Status(ctx context.Context) *epdapi.Status {
	s := &epdapi.Status{
		Version: d.options.Version, Role: d.options.Role, Node: d.options.Node, Started: d.started,
		GPUs: []epdapi.GPU{}, Runs: []epdapi.Run{}, Troubles: []epdapi.Trouble{},
	}
	state := d.options.Agent.State()
	for i := range state.GPUs {
		s.GPUs = append(s.GPUs, d.gpu(&state.GPUs[i]))
	}
	slices.SortFunc(s.GPUs, func(a, b epdapi.GPU) int { return a.Minor - b.Minor })
	for i := range state.Runs {
		r := &state.Runs[i]
		s.Runs = append(s.Runs, epdapi.Run{
			ID: r.ID, Job: r.Job, GPUs: r.GPUs, Core: float64(r.Setting.Core), Mem: float64(r.Setting.Mem),
			Started: r.Started, HandsOff: r.HandsOff, Ended: r.Ended,
		})
		if r.Ended {
			s.Unrecorded++
		}
	}
	if totals, err := d.options.Controller.Totals(ctx); err == nil {
		s.Totals = &totals
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.Troubles = append(s.Troubles, d.troubles...)
	return s
}

// gpu is one GPU with what it measures now, if it can.
func (d *Daemon) gpu(state *agent.GPUState) epdapi.GPU {
	id := state.Identity
	out := epdapi.GPU{UUID: id.UUID, Bus: id.Bus, Model: id.Model, Minor: id.Minor, Stuck: state.Stuck, Alien: state.Alien}
	if state.Entry != nil {
		out.LockedCore, out.LockedMem = locked(state.Entry, gpu.Core), locked(state.Entry, gpu.Mem)
	}
	if r, err := agent.Ask(d.options.Agent, id.UUID, gpu.Device.Read); err == nil {
		out.Core, out.Mem, out.Power = clock(r.Core), clock(r.Mem), max(0, float64(r.Power))
	}
	return out
}

// locked is what the journal says that a clock is locked at; 0: it isn't.
func locked(e *agent.Entry, domain gpu.Domain) float64 {
	return float64(e.Domains[domain.String()].MHz)
}

// clock is a clock that was read, 0 where it couldn't be.
func clock(f dvfsmodel.MHz) float64 {
	if f > 0 {
		return float64(f)
	}
	return 0
}
