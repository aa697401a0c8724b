package daemon

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/internal/spool"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// Controller decides and records. Its methods keep to their context's time.
type Controller interface {
	// Decide chooses clocks for a run that is about to start.
	Decide(ctx context.Context, r *control.DecideRequest) (live.Decision, error)
	// Record keeps what became of a run, once however often it is told. The
	// error is [control.ErrNotYet] when more must be known first, or
	// [ErrRefused].
	Record(ctx context.Context, o *record.Outcome) error
	// Outlook is what is known by now of a run that isn't over.
	Outlook(ctx context.Context, r control.OutlookRequest) (live.Outlook, error)
	// Report keeps how this node fares, and says when it is to be told again.
	Report(ctx context.Context, r *epdapi.NodeReport) (epdapi.ReportAnswer, error)
}

// ErrRefused tells that an outcome will never be recorded as it is.
var ErrRefused = errors.New("refused for good")

// Options are what an agent's daemon joins.
type Options struct {
	Version, Role, Node string

	Agent      *agent.Agent
	Controller Controller
	// Spool holds outcomes until the controller has them.
	Spool *spool.Spool
	// Control is the controller if it runs in this process, for the status and
	// for people's questions at the same socket; nil: it runs elsewhere.
	Control *control.Controller
	// Order is the GPUs' UUIDs by their numbers in Slurm, where the administrator says
	// it; nil: only Slurm's configuration does.
	Order []string
	// Confs are where slurm.conf may be, with gres.conf beside it, unless a hook says;
	// Files is where they are looked up (nil: the machine's root).
	Confs []string
	Files fs.FS
	// Simulated tells that the GPUs are nobody's: without a gres.conf they are
	// numbered as their device files.
	Simulated bool
	// Access tells who may ask.
	Access *Access
	// Health is what the status tells of this epd; nil: nothing.
	Health *epdapi.Health
	// Troubles are what went wrong before the node began.
	Troubles []epdapi.Trouble
	Log      *slog.Logger
	// Took is told what hooks took; nil: nobody is.
	Took func(hook slurm.Hook, took time.Duration)
	// Slurm tells whether Slurm can be asked about jobs, through the
	// controller. Without it runs end by their Epilogs and processes alone.
	Slurm bool
}

// Node is epd on a machine with GPUs.
type Node struct {
	options Options
	started time.Time
	news    chan struct{}      // there are outcomes to deliver
	hooks   sync.WaitGroup     // that are under way
	reading singleflight.Group // of Slurm's configuration

	mu       sync.Mutex
	stopping bool               // no Prolog is begun any more
	troubles []trouble          // the latest ones, each once
	troubled int                // how many there were
	conf     string             // slurmd's slurm.conf, as a hook said
	named    bool               // the last hook had the GPUs' UUIDs
	epilogs  map[runOf]epilogue // until the outcomes are in the spool
	// partitions of runs whose Prologs came since the start.
	partitions map[string]string
	// over are runs that ended since the start: a late Epilog of theirs, from a
	// node that comes back, is no end of another.
	over map[runOf]struct{}
}

// NewNode makes an agent's daemon; [Node.Start] comes next.
func NewNode(o Options) *Node {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Files == nil {
		o.Files = os.DirFS("/")
	}
	d := &Node{
		options: o, started: time.Now(), epilogs: make(map[runOf]epilogue), partitions: make(map[string]string),
		over: make(map[runOf]struct{}), news: make(chan struct{}, 1), troubled: len(o.Troubles),
	}
	for _, t := range o.Troubles {
		d.troubles = append(d.troubles, trouble{t, t.At})
	}
	return d
}

// Of troubles the latest ones are shown. One that goes on is logged again so
// often.
const (
	maxTroubles = 20
	loggedEvery = 10 * time.Minute
)

// trouble is what went wrong, with when that was logged.
type trouble struct {
	epdapi.Trouble
	logged time.Time
}

// trouble notes what went wrong, for the log and for people who ask.
func (d *Node) trouble(err error) {
	if err == nil {
		return
	}
	now, silent := time.Now(), false
	t := trouble{epdapi.Trouble{At: now, What: slurm.Printable(err.Error(), 1000)}, now}
	d.mu.Lock()
	d.troubled++
	if i := slices.IndexFunc(d.troubles, func(old trouble) bool { return old.What == t.What }); i >= 0 {
		if known := d.troubles[i].logged; now.Sub(known) < loggedEvery {
			t.logged, silent = known, true
		}
		d.troubles = slices.Delete(d.troubles, i, i+1)
	}
	d.troubles = append(d.troubles, t)
	d.troubles = slices.Delete(d.troubles, 0, max(0, len(d.troubles)-maxTroubles))
	d.mu.Unlock()
	if !silent {
		d.options.Log.Warn(t.What)
	}
}

// Start finds the GPUs and gives back every clock that is still held from
// before. The daemon works whatever goes wrong here, with what there is.
func (d *Node) Start(ctx context.Context) {
	report, err := d.options.Agent.Start(ctx)
	d.trouble(errors.Join(err, report.Err()))
	for _, note := range report.Notes {
		d.trouble(errors.New(note))
	}
	for _, g := range report.GPUs {
		d.options.Log.Info("journal entry replayed", "gpu", g.UUID, "fate", string(g.Result), "note", g.Note)
	}
}

// deliverEvery is how often outcomes that couldn't be recorded are offered
// again.
const deliverEvery = 5 * time.Second

// Run watches the runs and delivers outcomes until the context ends; then it
// gives all clocks back.
func (d *Node) Run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() {
		d.options.Agent.Watch(ctx, agent.WatchHooks{
			Slurm:     d.job,
			Processes: d.processes,
			OnClosed:  func(agent.ClosedRun) { d.tell() },
			OnProblem: d.trouble,
		})
	})
	group.Go(func() {
		ticker := time.NewTicker(deliverEvery)
		defer ticker.Stop()
		for {
			d.deliver(ctx)
			select {
			case <-ctx.Done():
				return
			case <-d.news:
			case <-ticker.C:
			}
		}
	})
	group.Go(func() { d.reportOn(ctx) })
	group.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopBound)
	defer cancel()
	d.shut(ctx)
	report, err := d.options.Agent.Stop(ctx)
	d.trouble(errors.Join(err, report.Err()))
	d.deliver(ctx)
}

// stopBound is how long giving everything back at the end may take.
const stopBound = hookMost + restoreBound

// stopping is why a Prolog is left at default clocks at the end.
const stopping = "epd stops"

// begin tells of a hook, which calls the function at its end. A Prolog isn't
// begun any more when the daemon stops: false.
func (d *Node) begin(kind slurm.Hook) (end func(), ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopping && kind == slurm.Prolog {
		return nil, false
	}
	if d.stopping {
		return func() {}, true
	}
	d.hooks.Add(1)
	return d.hooks.Done, true
}

// stopped tells whether the daemon stops.
func (d *Node) stopped() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stopping
}

// shut begins no further Prolog and waits for the hooks under way, but not for
// longer than hooks take: what comes later puts itself to default clocks.
func (d *Node) shut(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, hookMost)
	defer cancel()
	d.mu.Lock()
	d.stopping = true
	d.mu.Unlock()
	done := make(chan struct{})
	go func() {
		d.hooks.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// restoreBound is how long giving back all clocks may take.
const restoreBound = 10 * time.Second

// job asks the controller what is known by now of a run and its job.
func (d *Node) job(ctx context.Context, r live.Run) (live.Outlook, error) {
	if !d.options.Slurm {
		return live.Outlook{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	return d.options.Controller.Outlook(ctx, control.OutlookRequest{Job: slurm.JobID(r.Job), Node: r.Node, RunID: r.ID})
}

// askBound is how long one question about a run may take.
const askBound = 2 * time.Second

// processes tells whether anything runs on a run's GPUs. Nothing there is no
// proof while GPUs can't be asked.
func (d *Node) processes(_ context.Context, r live.Run) (live.Outlook, error) {
	for _, uuid := range r.GPUs {
		pids, err := agent.CallGPU(d.options.Agent, uuid, gpu.Device.Processes)
		if err != nil {
			return live.Outlook{}, err
		}
		if len(pids) > 0 {
			return live.Outlook{Life: live.LifeAlive}, nil
		}
	}
	return live.Outlook{Life: live.LifeGone}, nil
}

// Status is what the daemon is doing.
func (d *Node) Status(ctx context.Context) *epdapi.Status {
	s := &epdapi.Status{
		Version: d.options.Version, Role: d.options.Role, Node: d.options.Node, Started: d.started,
		GPUs: []epdapi.GPU{}, Runs: []epdapi.Run{}, Troubles: []epdapi.Trouble{}, Health: d.options.Health,
	}
	state := d.options.Agent.State()
	s.GPUs = append(s.GPUs, d.gpus(state.GPUs)...)
	slices.SortFunc(s.GPUs, func(a, b epdapi.GPU) int { return a.Minor - b.Minor })
	s.Numbering = d.numbering(ctx)
	s.Unrecorded = d.options.Spool.Len()
	for i := range state.Runs {
		r := &state.Runs[i]
		s.Runs = append(s.Runs, runOfStatus(r))
		if r.Ended {
			s.Unrecorded++
		}
	}
	if c := d.options.Control; c != nil {
		now := c.Status(ctx)
		s.Totals, s.Controller = totalsOf(&now), &now
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.troubles {
		s.Troubles = append(s.Troubles, d.troubles[i].Trouble)
	}
	return s
}

// runOfStatus is a run as a status shows it.
func runOfStatus(r *agent.RunState) epdapi.Run {
	run := epdapi.Run{
		ID: r.ID, Job: r.Job, GPUs: r.GPUs, Setting: r.Setting,
		Started: r.Started, HandsOff: r.HandsOff, Ended: r.Ended,
	}
	if a := r.Adapted; a != nil {
		run.Core, run.SLA, run.Slowdown = r.Wants.Core, a.SLA, a.Slowdown
	}
	return run
}

// gpus are all GPUs, read side by side: a driver may be slow.
func (d *Node) gpus(states []agent.GPUState) []epdapi.GPU {
	all := make([]epdapi.GPU, len(states))
	var group sync.WaitGroup
	for i := range states {
		group.Go(func() { all[i], _, _ = d.look(&states[i]) })
	}
	group.Wait()
	return all
}

// look is one GPU with what it measures now, whether it answered, and in which part
// of the time it is used.
func (d *Node) look(state *agent.GPUState) (out epdapi.GPU, read bool, utilisation live.Number) {
	id := state.Identity
	out = epdapi.GPU{UUID: id.UUID, Bus: id.Bus, Model: id.Model, Minor: id.Minor, Stuck: state.Stuck, Lost: state.Lost, Alien: state.ExternalChange, Refused: state.Refused}
	if state.Entry != nil {
		at := locked(state.Entry)
		out.LockedCore, out.LockedMem = at.Core, at.Mem
	}
	r, err := agent.CallGPU(d.options.Agent, id.UUID, gpu.Device.Read)
	if err != nil {
		return out, false, utilisation
	}
	out.Setting, out.Power = clocks(&r), max(0, float64(r.Power))
	if gpu.Measured(r.Utilisation) {
		utilisation = live.Known(r.Utilisation)
	}
	return out, true, utilisation
}

// locked is what a journal has of a GPU's clocks.
func locked(e *agent.Entry) dvfsmodel.Setting {
	return dvfsmodel.Setting{Core: e.Domains[gpu.Core.String()].MHz, Mem: e.Domains[gpu.Mem.String()].MHz}
}

// clocks are those that were read, 0 where they couldn't be.
func clocks(r *gpu.Reading) dvfsmodel.Setting {
	return dvfsmodel.Setting{Core: max(0, r.Core), Mem: max(0, r.Mem)}
}
