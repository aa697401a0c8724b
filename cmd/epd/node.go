package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/internal/nodekey"
	"github.com/epplan/epplan/internal/spool"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// joinNode starts the agent of this machine's GPUs.
func (p *program) joinNode() error {
	gpus, err := openGPUs(p.Context)
	if err != nil {
		return err
	}
	p.closers = append(p.closers, func() error {
		gpus.Close() //nolint:errcheck,gosec // the program ends
		return nil
	})
	state := p.String("state")
	options, err := agentOptions(p.Context, filepath.Join(state, "journal"),
		filepath.Join(state, "runs"), gpus)
	if err != nil {
		return err
	}
	site := new(daemon.Site)
	options.SiteClocks = site.Of
	options.UsualCore = func(id gpu.Identity) dvfsmodel.MHz {
		if p := config.BuiltinProfiles().Find(id.Model); p != nil {
			return p.Default.Core
		}
		return 0
	}
	options.Host = hostMeter(p.Context, p.log)
	if options.Range, err = allowedSpans(p.Context); err != nil {
		return err
	}
	outbox, err := spool.Open(filepath.Join(state, "spool"), nil)
	if outbox == nil {
		return err
	}
	p.noteProblem(err) // it is tried again
	controller, lease, err := p.controller()
	if err != nil {
		return err
	}
	a := agent.New(options)
	p.closers = append(p.closers, func() error {
		a.Close()
		return nil
	})
	p.node = daemon.NewAgentServer(daemon.Options{
		Version: version, Role: p.role, Node: nodeName(p.Context), Agent: a, Controller: controller,
		Lease: lease, Control: p.control, Spool: outbox, Site: site, Order: gpuOrder(p.Context),
		SlurmConfs: slurmConfs(p.Context),
		Simulated:  isSimulated(p.String("gpu")), Access: p.access, Log: p.log, Slurm: p.slurm ||
			p.control == nil,
		OnHook: func(hook hooks.Hook, took time.Duration) { countHook(p.metrics, hook, took) },
		Health: p.health(), Problems: p.problems,
	})
	p.node.Start(p.Context.Context)
	p.loops = append(p.loops, p.node.Run)
	return nil
}

// allowedSpans returns what this node's administrator allows, whoever decides.
func allowedSpans(c *cli.Context) (func(gpu.Identity) agent.AllowedSpans, error) {
	core, mem := gpu.Value(c.Float64("min-core")), gpu.Value(c.Float64("min-mem"))
	if !(core >= 0) || !(mem >= 0) {
		return nil, usagef("--min-core and --min-mem are clocks in MHz")
	}
	r := agent.AllowedSpans{gpu.CoreClock: {Min: core}, gpu.MemClock: {Min: mem}}
	return func(gpu.Identity) agent.AllowedSpans { return r }, nil
}

// controller returns who decides: in this process, or elsewhere; and who gives leases of watts.
func (p *program) controller() (daemon.Controller, leaseClient, error) {
	if p.control != nil {
		return daemon.LocalController{Controller: p.control}, p.control.Budget.Lease, nil
	}
	if p.noRecords != nil {
		return absentController{p.noRecords}, nil, nil //nolint:nilerr // who asks it is told
	}
	proof, err := voucher(p.Context, nodekey.Node)
	if err != nil {
		return nil, nil, err
	}
	remote := daemon.NewRemoteController(controllerHosts(p.Context),
		munge.NewTransport(proof).Trust(func(uid uint32) bool {
			return p.access.IsAdmin(int64(uid))
		}))
	return remote, remote.Lease, nil
}

// leaseClient asks a controller for leases of watts.
type leaseClient = func(context.Context, *epdapi.LeaseRequest) (epdapi.LeaseAnswer, error)

// voucher proves who this epd is to those on other machines, and who they are.
func voucher(c *cli.Context, role nodekey.Role) (munge.Voucher, error) {
	if c.String("auth") != authKeys {
		return munge.New(c.String("munge-socket")), nil
	}
	keys, err := nodekey.Open(c.String("key"), c.String("trusted-keys"), time.Now)
	if err != nil {
		return nil, err
	}
	own := keys.Own()
	switch {
	case own.Role != role:
		return nil, fmt.Errorf("%s is the key of a %s, want a %s's", c.String("key"), own.Role, role)
	case role == nodekey.Node && own.Name != nodeName(c):
		return nil, fmt.Errorf("%s is the key of node %s, and this is %s", c.String("key"), own.Name,
			nodeName(c))
	}
	return keys, nil
}

// controllerHosts returns the controllers' addresses.
func controllerHosts(c *cli.Context) []string {
	return strings.FieldsFunc(c.String("controller"), func(r rune) bool { return r == ',' })
}

// nodeName returns the node's name in Slurm.
func nodeName(c *cli.Context) string {
	if name := c.String("node"); name != "" {
		return name
	}
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	short, _, _ := strings.Cut(name, ".")
	return short
}

// slurmConfs returns where slurm.conf may be.
func slurmConfs(c *cli.Context) []string {
	if conf := c.String("slurm-conf"); conf != "" {
		return []string{conf}
	}
	return daemon.Confs
}

func gpuOrder(c *cli.Context) []string {
	if order := c.String("gpu-order"); order != "" {
		return strings.Split(order, ",")
	}
	return nil
}

// allowUsers lets those beside root do anything who may: Slurm's user and those of the
// flags. While Slurm doesn't say who its user is, that is the one named slurm;
// it is asked again until it does.
func (p *program) allowUsers() {
	for _, uid := range p.Uint64Slice("allow-uid") {
		if uid < math.MaxUint32 {
			p.access.AddAdmins(uint32(uid))
		}
	}
	if uid, ok := slurmUser(p.Context.Context, p.String("slurm")); ok {
		p.access.AddAdmins(uid)
		return
	}
	if named, err := user.Lookup("slurm"); err == nil {
		if uid, err := strconv.ParseUint(named.Uid, 10, 32); err == nil {
			p.access.AddAdmins(uint32(uid))
		}
	}
	if runner, err := slurmRunner(p.String("slurm"), epdapi.QueueWait); runner != nil && err == nil {
		p.loops = append(p.loops, p.allowSlurmUser)
	}
}

// allowSlurmUser asks who Slurm's user is until Slurm says: it may be started
// after epd.
func (p *program) allowSlurmUser(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(askUserEvery):
		}
		if uid, ok := slurmUser(ctx, p.String("slurm")); ok {
			p.access.AddAdmins(uid)
			p.log.Info("Slurm says who its user is", "uid", uid)
			return
		}
	}
}

// slurmUser is Slurm's user, if Slurm says.
func slurmUser(ctx context.Context, how string) (uint32, bool) {
	runner, err := slurmRunner(how, epdapi.QueueWait)
	if runner == nil || err != nil {
		return 0, false
	}
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	settings, err := slurm.NewClient(runner, askBound).Settings(ctx)
	if err != nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(settings["SlurmUser"], "(") // name(uid)
	number, _, _ := strings.Cut(rest, ")")
	uid, err := strconv.ParseUint(number, 10, 32)
	return uint32(uid), err == nil
}

// How long a question to Slurm about itself may take, and when it is put again.
const (
	askBound     = 2 * time.Second
	askUserEvery = 15 * time.Second
)
