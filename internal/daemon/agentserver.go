package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/spool"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// Controller decides and records. Its methods keep to their context's time.
type Controller interface {
	// Decide chooses clocks for a run that is about to start.
	Decide(ctx context.Context, r *epdapi.DecideRequest) (live.Decision, error)
	// Record keeps what became of a run, an outcome in JSON, once however
	// often it is told. The error is [control.ErrNotYet] when more must be known
	// first, or [ErrRefused].
	Record(ctx context.Context, outcome []byte) error
	// Outlook is what is known by now of a run that isn't over.
	Outlook(ctx context.Context, r epdapi.OutlookRequest) (live.Outlook, error)
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
	// Lease asks the controller for watts of GPUs under a power budget; nil: there are no budgets.
	Lease func(context.Context, *epdapi.LeaseRequest) (epdapi.LeaseAnswer, error)
	// Spool holds outcomes until the controller has them.
	Spool *spool.Spool
	// Control is the controller if it runs in this process, for the status and
	// for people's questions at the same socket; nil: it runs elsewhere.
	Control *control.Controller
	// Site is what the agent asks for the site's clocks; nil: it doesn't.
	Site *Site
	// Order is the GPUs' UUIDs by their numbers in Slurm, where the administrator says
	// it; nil: only Slurm's configuration does.
	Order []string
	// SlurmConfs are where slurm.conf may be, with gres.conf beside it, unless a hook says;
	// Files is where they are looked up (nil: the machine's root).
	SlurmConfs []string
	Files      fs.FS
	// Simulated tells that the GPUs are nobody's: without a gres.conf they are
	// numbered as their device files.
	Simulated bool
	// Access tells who may ask.
	Access *Access
	// Health is what the status tells of this epd; nil: nothing.
	Health *epdapi.Health
	// Problems are what went wrong before the node began.
	Problems []epdapi.Problem
	Log      *slog.Logger
	// Prolog bounds parts of Prologs; zero: as hooks wait.
	Prolog PrologBounds
	// OnHook is told what hooks took; nil: nobody is.
	OnHook func(hook hooks.Hook, took time.Duration)
	// Slurm reports whether Slurm can be asked about jobs, through the
	// controller. Without it runs end by their Epilogs and processes alone.
	Slurm bool
}

// AgentServer is epd on a machine with GPUs.
type AgentServer struct {
	options  Options
	started  time.Time
	problems *problemLog
	numbers  *gpuNumbers
	outbox   *outbox
	hooks    sync.WaitGroup // that are under way
	waiting  *latePrologs
	order    *hookOrder
	prologs  recentPrologs
	leaser   *leaser
	rest     time.Duration // until the controller is told again how the node fares

	mu       sync.Mutex
	stopping bool // no Prolog is begun any more
}

// NewAgentServer makes an agent's daemon; [AgentServer.Start] comes next.
func NewAgentServer(o Options) *AgentServer {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Files == nil {
		o.Files = os.DirFS("/")
	}
	if o.Prolog == (PrologBounds{}) {
		o.Prolog = defaultPrologBounds
	}
	d := &AgentServer{options: o, started: time.Now(), problems: newProblemLog(o.Log, o.Problems)}
	d.order = newHookOrder()
	d.leaser = &leaser{daemon: d, news: make(chan struct{}, 1)}
	d.waiting = &latePrologs{agent: o.Agent, byRun: make(map[runOf]lateProlog)}
	d.numbers = &gpuNumbers{
		agent: o.Agent, node: o.Node, order: o.Order, confs: o.SlurmConfs, files: o.Files,
		simulated: o.Simulated, patience: o.Prolog.Numbers,
	}
	d.outbox = &outbox{
		agent: o.Agent, controller: o.Controller, spool: o.Spool, slurm: o.Slurm, problems: d.problems,
		ready: make(chan struct{}, 1), epilogs: make(map[runOf]epilogInfo),
		partitions: make(map[string]string), ended: make(map[runOf]struct{}),
	}
	return d
}

// Start finds the GPUs and gives back every clock that is still held from
// before. The daemon works whatever goes wrong here, with what there is.
func (d *AgentServer) Start(ctx context.Context) {
	report, err := d.options.Agent.Start(ctx)
	d.problems.note(errors.Join(err, report.Err()))
	for _, note := range report.Notes {
		d.problems.note(errors.New(note))
	}
	for _, g := range report.GPUs {
		if g.Result == agent.EntrySetAside {
			d.problems.note(fmt.Errorf("%s: %s", g.UUID, g.Note))
		}
		d.options.Log.Info("journal entry replayed", "gpu", g.UUID, "fate", string(g.Result), "note", g.Note)
	}
	if d.options.Control != nil {
		d.rest = d.report(ctx) // its answer has the site's clocks
	}
}

// deliverEvery is how often outcomes that couldn't be recorded are offered
// again.
const deliverEvery = 5 * time.Second

// Run watches the runs and delivers outcomes until the context ends; then it
// gives all clocks back.
func (d *AgentServer) Run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() {
		d.options.Agent.Watch(ctx, agent.WatchHooks{
			Slurm:     d.jobPresence,
			Processes: d.processPresence,
			OnClosed:  func(agent.ClosedRun) { d.outbox.trigger() },
			OnProblem: d.problems.note,
		})
	})
	group.Go(func() {
		ticker := time.NewTicker(deliverEvery)
		defer ticker.Stop()
		for {
			d.outbox.deliver(ctx)
			select {
			case <-ctx.Done():
				return
			case <-d.outbox.ready:
			case <-ticker.C:
			}
		}
	})
	group.Go(func() { d.reportLoop(ctx) })
	group.Go(func() { d.leaser.loop(ctx) })
	group.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopBound)
	defer cancel()
	d.stopHooks(ctx)
	report, err := d.options.Agent.Stop(ctx)
	d.problems.note(errors.Join(err, report.Err()))
	d.outbox.deliver(ctx)
}

// stopBound is how long giving everything back at the end may take.
const stopBound = maxHookTime + restoreBound

// stopping is why a Prolog is left at default clocks at the end.
const stopping = "epd stops"

// beginHook tells of a hook, which calls the function at its end. A Prolog isn't
// begun any more when the daemon stops: false.
func (d *AgentServer) beginHook(kind hooks.Hook) (end func(), ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopping && kind == hooks.Prolog {
		return nil, false
	}
	if d.stopping {
		return func() {}, true
	}
	d.hooks.Add(1)
	return d.hooks.Done, true
}

// isStopping reports whether the daemon stops.
func (d *AgentServer) isStopping() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stopping
}

// stopHooks begins no further Prolog and waits for the hooks under way, but not for
// longer than hooks take: what comes later puts itself to default clocks.
func (d *AgentServer) stopHooks(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, maxHookTime)
	defer cancel()
	d.mu.Lock()
	d.stopping = true
	d.mu.Unlock()
	d.waiting.stop()
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

// jobPresence asks the controller what is known by now of a run and its job.
func (d *AgentServer) jobPresence(ctx context.Context, r live.Run) (live.Outlook, error) {
	if !d.options.Slurm {
		return live.Outlook{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	return d.options.Controller.Outlook(ctx, epdapi.OutlookRequest{
		Job: slurm.JobID(r.Job), Node: r.Node, RunID: r.ID,
	})
}

// askBound is how long one question about a run may take.
const askBound = 2 * time.Second

// processPresence reports whether anything runs on a run's GPUs. Nothing there is no
// proof while GPUs can't be asked.
func (d *AgentServer) processPresence(_ context.Context, r live.Run) (live.Outlook, error) {
	pids, errs := agent.CallGPUs(d.options.Agent.GPUs(), r.GPUs, gpu.Device.Processes)
	if slices.ContainsFunc(pids, func(on []int) bool { return len(on) > 0 }) {
		return live.Outlook{Life: live.LifeAlive}, nil
	}
	if err := errors.Join(errs...); err != nil {
		return live.Outlook{}, err
	}
	return live.Outlook{Life: live.LifeGone}, nil
}

// Status returns what the daemon is doing.
func (d *AgentServer) Status(ctx context.Context) *epdapi.Status {
	s := &epdapi.Status{
		Version: d.options.Version, Role: d.options.Role, Node: d.options.Node, Started: d.started,
		GPUs: []epdapi.GPU{}, Runs: []epdapi.Run{}, Troubles: []epdapi.Problem{}, Health: d.options.Health,
	}
	state := d.options.Agent.State()
	s.GPUs = append(s.GPUs, d.gpus(state.GPUs)...)
	slices.SortFunc(s.GPUs, func(a, b epdapi.GPU) int { return a.Minor - b.Minor })
	s.Numbering = d.numbers.status(ctx)
	s.Unrecorded = d.options.Spool.Len()
	for i := range state.Runs {
		r := &state.Runs[i]
		s.Runs = append(s.Runs, runOfStatus(r))
		if r.Ended {
			s.Unrecorded++
		}
	}
	if c := d.options.Control; c != nil {
		now := c.Queries.Status(ctx, query.CallerOf(ctx))
		s.Totals, s.Controller = totalsOf(&now), &now
	}
	latest, _ := d.problems.latestProblems()
	s.Troubles = append(s.Troubles, latest...)
	return s
}

// runOfStatus returns a run as a status shows it.
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

// gpus returns all GPUs, read side by side: a driver may be slow.
func (d *AgentServer) gpus(states []agent.GPUState) []epdapi.GPU {
	all := make([]epdapi.GPU, len(states))
	var group sync.WaitGroup
	for i := range states {
		group.Go(func() { all[i], _, _ = d.readGPU(&states[i]) })
	}
	group.Wait()
	return all
}

// builtinProfiles tell of which GPUs drivers count what modules use.
var builtinProfiles = sync.OnceValue(config.BuiltinProfiles)

// readGPU returns one GPU with what it measures now, whether it answered, and in which part
// of the time it is used.
func (d *AgentServer) readGPU(state *agent.GPUState) (out epdapi.GPU, read bool, utilisation live.Number) {
	id := state.Identity
	out = epdapi.GPU{
		UUID: id.UUID, Bus: id.Bus, Model: id.Model, Minor: id.Minor, Stuck: state.Stuck, Lost: state.Lost,
		ExternalChange: state.ExternalChange, Refused: state.Refused, Unsure: state.Unsure,
	}
	if builtinProfiles().Find(id.Model).IsModule() {
		out.PowerOf = epdapi.OfModules
	}
	if state.Entry != nil {
		at := state.Entry.Setting()
		out.LockedCore, out.LockedMem, out.LockedCap, out.LockedProfile = at.Core, at.Mem, at.Cap, at.Profile
	}
	r, err := agent.CallGPU(d.options.Agent.GPUs(), id.UUID, gpu.Device.Read)
	if err != nil {
		return out, false, utilisation
	}
	out.Setting, out.Power = readClocks(&r), max(0, float64(r.Power))
	if p, err := agent.CallGPU(d.options.Agent.GPUs(), id.UUID, profilesOf); err == nil && p.has != 0 {
		out.Profiles, out.ProfilesInForce = p.has.Names(), p.now.Enforced.Names()
	}
	if gpu.IsMeasured(r.Utilisation) {
		utilisation = live.Known(r.Utilisation)
	}
	return out, true, utilisation
}

// readClocks returns those that were read, and the power limit in force; 0 where they couldn't be.
func readClocks(r *gpu.Reading) dvfsmodel.Setting {
	return dvfsmodel.Setting{
		Core: measuredOrZero(r.Core),
		Mem:  measuredOrZero(r.Mem),
		Cap:  measuredOrZero(r.Limit),
	}
}

// measuredOrZero returns a value that was read, else 0.
func measuredOrZero[T ~float64](v T) T {
	if gpu.IsMeasured(v) {
		return v
	}
	return 0
}
