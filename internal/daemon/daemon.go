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
	Library    gpu.Library
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
	devices  []gpu.Device // by position in gres.conf
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

// Start gives back every clock that is still held from before, and finds the
// GPUs. The daemon works whatever goes wrong here, with what there is.
func (d *Daemon) Start(ctx context.Context) {
	report, err := d.options.Agent.Start(ctx)
	d.trouble(errors.Join(err, report.Err()))
	for _, note := range report.Notes {
		d.trouble(errors.New(note))
	}
	for _, g := range report.GPUs {
		d.options.Log.Info("journal entry replayed", "gpu", g.UUID, "fate", string(g.Fate), "note", g.Note)
	}
	devices, err := d.options.Library.Devices()
	if err != nil {
		d.trouble(fmt.Errorf("find the GPUs: %w", err))
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.devices = inOrder(devices, d.options.Order)
}

// inOrder sorts devices by their positions in a list of UUIDs, or by their
// device files where there is none. A UUID that isn't there leaves a hole.
func inOrder(devices []gpu.Device, order []string) []gpu.Device {
	if order == nil {
		devices = slices.Clone(devices)
		slices.SortFunc(devices, func(a, b gpu.Device) int { return a.Identity().Minor - b.Identity().Minor })
		return devices
	}
	sorted := make([]gpu.Device, len(order))
	for i, uuid := range order {
		at := slices.IndexFunc(devices, func(d gpu.Device) bool { return d.Identity().UUID == uuid })
		if at >= 0 {
			sorted[i] = devices[at]
		}
	}
	return sorted
}

// at is the devices at positions of gres.conf.
func (d *Daemon) at(positions []int) ([]gpu.Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := make([]gpu.Device, 0, len(positions))
	for _, i := range positions {
		if i < 0 || i >= len(d.devices) || d.devices[i] == nil {
			return nil, fmt.Errorf("GPU %d of Slurm's list: %w", i, agent.ErrNoGPU)
		}
		found = append(found, d.devices[i])
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
	d.mu.Lock()
	devices := slices.Clone(d.devices)
	d.mu.Unlock()
	for _, dev := range devices {
		if dev == nil || !slices.Contains(r.GPUs, dev.Identity().UUID) {
			continue
		}
		pids, err := ask(dev, gpu.Device.Processes)
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
	if state.Stuck {
		return out
	}
	d.mu.Lock()
	at := slices.IndexFunc(d.devices, func(dev gpu.Device) bool { return dev != nil && dev.Identity().UUID == id.UUID })
	var dev gpu.Device
	if at >= 0 {
		dev = d.devices[at]
	}
	d.mu.Unlock()
	if dev == nil {
		return out
	}
	if r, err := ask(dev, gpu.Device.Read); err == nil {
		out.Core, out.Mem, out.Power = clock(r.Core), clock(r.Mem), max(0, float64(r.Power))
	}
	return out
}

// locked is what the journal says that a clock is locked at; 0: it isn't.
func locked(e *agent.Entry, domain gpu.Domain) float64 {
	return float64(e.Domains[domain.String()].MHz)
}

// callBound is how long the daemon waits for a driver that it only asks.
const callBound = 500 * time.Millisecond

// ask bounds the wait for a device. A call that hangs goes on by itself.
func ask[T any](dev gpu.Device, call func(gpu.Device) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		value, err := call(dev)
		done <- answer{value, err}
	}()
	timer := time.NewTimer(callBound)
	defer timer.Stop()
	select {
	case a := <-done:
		return a.value, a.err
	case <-timer.C:
		var zero T
		return zero, fmt.Errorf("%s: %w", dev.Identity().UUID, agent.ErrStuck)
	}
}

// clock is a clock that was read, 0 where it couldn't be.
func clock(f dvfsmodel.MHz) float64 {
	if f > 0 {
		return float64(f)
	}
	return 0
}
