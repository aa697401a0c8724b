package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/accounting"
	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/internal/nodekey"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/slurmqueue"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/web"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
)

// closeBound is how long records may take to be written at the end.
const closeBound = 5 * time.Second

// startController opens the records and starts the controller on them.
func (p *program) startController() error {
	records, err := openRecords(p.Context.Context, p.String("state"), p.noteProblem)
	if p.role == roleBoth && (errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrSchema)) {
		return continueAsAgent(p, err)
	}
	if err != nil {
		return err
	}
	p.closers = append(p.closers, records.Close)
	runner, err := slurmRunner(p.String("slurm"), epdapi.QueueWait)
	if err != nil {
		return err
	}
	settings, err := p.readSettings()
	if err != nil {
		return err
	}
	seed, damage, err := holdOutSeed(filepath.Join(p.String("state"), "seed"))
	if err != nil {
		return err
	}
	faster, err := simSpeed(p.Context)
	if err != nil {
		return err
	}
	options := control.Options{
		Speed: faster, HourAtSubmit: p.hours.BestBegin,
		Records: control.RecordsIn(records), Cluster: p.String("cluster"), Settings: settings,
		Seed: seed, Log: p.log, Load: p.readSettings, UserName: userName,
		OnDecide:  func(o control.Observed) { countDecision(p.metrics, o) },
		OnOutcome: func(o *record.Outcome, partition string) { countEnergy(p.metrics, o, partition) },
		OnStrange: p.refusals.logImplausible, BudgetEvents: filepath.Join(p.String("state"), "budget-events.json"),
	}
	if runner != nil {
		energies := accounting.New(accounting.Options{
			Slurm: slurm.NewClient(runner, epdapi.QueueWait), Records: records, Cluster: options.Cluster,
			Kind: func() config.AccountEnergy { return p.control.Settings().Live.Account }, Now: time.Now, Log: p.log,
		})
		p.loops, options.EnergiesForeign = append(p.loops, energies.Run), energies.Foreign
		count := options.OnOutcome
		options.OnOutcome = func(o *record.Outcome, partition string) {
			count(o, partition)
			energies.Ended(o)
		}
		if !p.Bool("no-levers") {
			options.NiceAtSubmit = func(partition string, uid uint32, deadline bool) int64 {
				return p.steerer.NiceAtSubmit(partition, uid, deadline)
			}
		}
		one := slurm.NewClient(runner, epdapi.JobWait)
		options.Resolve, options.Script, p.slurm = one.Job, one.Script, true
		options.Account = slurm.NewClient(runner, epdapi.QueueWait).Accounting
	}
	if p.control, err = control.New(p.Context.Context, options); err != nil {
		return err
	}
	p.noteProblem(errors.Join(damage, p.control.Budget.Damage))
	p.closers = append(p.closers, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.Context.Context), closeBound)
		defer cancel()
		return p.control.Close(ctx)
	})
	openMachines(p, runner)
	p.access.Operators = func() []string { return p.control.Settings().Live.Operators }
	if runner != nil {
		long, err := slurmRunner(p.String("slurm"), epdapi.ListWait)
		if err != nil {
			return err
		}
		lists := slurm.NewClient(long, epdapi.ListWait)
		p.loops = append(p.loops, func(ctx context.Context) { p.control.Jobs.Sync(ctx, lists, 0) })
		if !p.Bool("no-levers") {
			if err := p.openLevers(runner, lists); err != nil {
				return err
			}
		}
	}
	p.openSite()
	return errors.Join(p.openPublic(), p.openRemote(), p.openWeb())
}

// userName returns a user's name; "" if the system knows none, or can't say now.
func userName(uid uint32) string {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return ""
	}
	return u.Username
}

// openRecords opens the database. One that is damaged is moved aside, and a new
// one begun: jobs don't wait for an administrator. Where only its log is damaged, what was written last
// is missing.
func openRecords(ctx context.Context, state string, noteProblem func(error)) (*store.Store, error) {
	path := filepath.Join(state, "records.db")
	log, err := store.SalvageLog(path, time.Now())
	if err != nil {
		noteProblem(err)
	}
	if log != "" {
		noteProblem(fmt.Errorf("the log of the records was damaged: what was recorded last may be missing; "+
			"the log was copied to %s", log))
	}
	records, err := store.Open(ctx, path, nil)
	if !errors.Is(err, store.ErrCorrupt) {
		return records, err
	}
	aside, moving := store.Salvage(path, time.Now())
	if moving != nil {
		return nil, errors.Join(err, moving)
	}
	noteProblem(fmt.Errorf("the records were damaged: they were moved aside to %s, and new ones begun, "+
		"without any model: %w",
		aside, err))
	return store.Open(ctx, path, nil)
}

// steerEvery is how often Slurm's queue and nodes are steered.
const steerEvery = 20 * time.Second

// openLevers steers Slurm's queue and nodes, as lists of them say.
func (p *program) openLevers(runner slurm.Runner, lists *slurm.Client) error {
	var err error
	client := slurm.NewClient(runner, epdapi.QueueWait)
	p.steerer, err = steer.Open(&steer.Options{
		Source: steer.SnapshotFromSlurm(p.control.Jobs.Tee(lists), time.Now),
		Levers: lever.New(client), PowerSaving: client.PowerSaving, Booted: client.Booted,
		DefaultPartition: client.DefaultPartition,
		Settings: func() *steer.Settings {
			s := p.control.Settings()
			return &steer.Settings{
				Version: s.Version, Live: s.Live, Profiles: s.Profiles, Margin: s.Safety.LimitMargin,
				Upper: p.control.Foresight.Upper, Energy: p.control.Foresight.Energy, Ranking: p.planner.Ranking(),
				Prices: s.Prices(), Short: p.control.Budget.Shortfall,
				Shared: func(cluster *colocate.ClusterState, j *slurm.Job) colocate.Order {
					return p.control.Foresight.SharedNodes(p.Context.Context, cluster, j)
				},
			}
		},
		Dir: steer.Folder(p.String("state")), Log: p.log, Hours: &p.hours,
	})
	if err != nil {
		return err
	}
	rules := p.control.Foresight.PlanRules()
	p.planner = &slurmqueue.LivePlanner{
		Queue: func(ctx context.Context) (*epdapi.Queue, error) {
			return p.control.Queries.Queue(ctx, query.ForEPD())
		}, Log: p.log, InForce: p.control.Plan,
		Settings: func() (*config.Live, *slurmqueue.PlanTerms) {
			s := p.control.Settings()
			terms := planTerms(s)
			terms.Admissible, terms.Constant, terms.Arm = rules.Admissible, rules.Constant, rules.Arm
			terms.RunTimes = rules.RunTimes
			return &s.Live, terms
		},
		Watch: func() slurmqueue.QueueState {
			digest, pending := p.control.Foresight.Queue()
			return slurmqueue.QueueState{Digest: digest, Pending: pending}
		},
	}
	p.loops = append(p.loops, p.planner.Run, func(ctx context.Context) { p.steerer.Run(ctx, steerEvery) })
	return nil
}

// openMachines finds out for which nodes those speak who ask over the network.
func openMachines(p *program, runner slurm.Runner) {
	m := daemon.NewMachines(p.log)
	m.AdminHosts = func() []string { return p.control.Settings().Live.AdminHosts }
	m.NodeHosts = func() []string { return p.control.Settings().Live.NodeHosts }
	if runner != nil {
		m.Nodes, m.Node = p.control.Jobs.Nodes, slurm.NewClient(runner, epdapi.JobWait).Node
		p.loops = append(p.loops, m.Run)
	}
	p.access.Machines, p.access.Refused = m, p.refusals.logCallerRefusal
}

// controllerServer answers what is asked of the controller.
func (p *program) controllerServer() *daemon.ControllerServer {
	return &daemon.ControllerServer{
		Version: version, Role: p.role, Node: nodeName(p.Context), Control: p.control, Steerer: p.steerer,
		Access: p.access, Started: p.started, Health: p.health(), Problems: p.problems,
	}
}

// openPublic listens where job_submit and users ask: anybody may connect, the
// kernel says who it is.
func (p *program) openPublic() error {
	if !p.isSocketWanted("submit-socket") {
		return nil
	}
	l, err := p.listenAt("submit-socket", p.String("submit-socket"), publicMode)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	p.controllerServer().Routes(mux, daemon.Peer)
	p.controllerServer().Status(mux, daemon.Peer)
	mux.Handle("/", p.pages())
	p.serveAt(l, web.Guard(mux, p.webHosts), doorOf(p))
	return nil
}

// openRemote listens where agents and users on other machines ask.
func (p *program) openRemote() error {
	if !p.isSocketWanted("listen") {
		return nil
	}
	l, err := p.listen("listen")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	proof, err := voucher(p.Context, nodekey.Controller)
	if err != nil {
		return err
	}
	p.controllerServer().Routes(mux, mungeUID)
	p.controllerServer().Status(mux, mungeUID)
	door := doorOf(p)
	door.Proves = true
	options := munge.Options{Refused: p.refusals.logUnprovenRequest, Patient: func(r *http.Request) bool {
		return r.URL.Path == epdapi.PathReport || r.URL.Path == epdapi.PathOutcome // a Prolog waits for others
	}}
	p.serveAt(l, munge.Authenticate(daemon.CountAsProven(mux), proof, options), door)
	return nil
}

// mungeUID returns the uid that munge vouches for. A key vouches for a node, and no user.
func mungeUID(r *http.Request) int64 {
	if peer, ok := munge.PeerOf(r.Context()); ok && peer.Node == "" {
		return int64(peer.UID)
	}
	return -1
}

// reload reads the configuration again at each SIGHUP. One that is wrong
// changes nothing. An agent has none.
func (p *program) reload(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.reloads:
		}
		if p.control == nil {
			p.log.Info("nothing to reload: the controller has the configuration")
		} else if err := p.control.Reload(p.readSettings); err != nil {
			p.log.Error("configuration not reloaded", "error", err)
		} else {
			p.log.Info("configuration reloaded", "version", p.control.Settings().Version)
		}
	}
}

// readSettings reads the configuration that the flags name.
func (p *program) readSettings() (*control.Settings, error) {
	path := p.String("config")
	if path == "" {
		return control.DefaultSettings(), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	settings, err := control.ReadSettings(f, path)
	if err != nil {
		return nil, err
	}
	for _, warning := range settings.Warnings {
		p.log.Warn("configuration", "warning", warning)
	}
	return settings, nil
}

// slurmRunner runs Slurm's commands, each for so long at most; nil: nobody is asked.
func slurmRunner(how string, most time.Duration) (slurm.Runner, error) {
	path, missing := exec.LookPath("scontrol")
	switch {
	case how != "on" && how != "auto" && how != "off":
		return nil, usagef("--slurm %q, want auto, on or off", how)
	case how == "off" || how == "auto" && missing != nil:
		return nil, nil //nolint:nilnil,nilerr // nobody to ask is an answer
	case missing != nil:
		return nil, fmt.Errorf("--slurm on: %w", missing)
	}
	return slurm.ExecRunner{
		Dir: filepath.Dir(path), Conf: os.Getenv("SLURM_CONF"), Timeout: most,
	}, nil
}
