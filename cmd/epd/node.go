package main

import (
	"math"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/agent"
	node "github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/internal/spool"
)

// joinNode starts the agent of this machine's GPUs.
func (p *program) joinNode() error {
	gpus, err := library(p.Context)
	if err != nil {
		return err
	}
	p.closers = append(p.closers, func() error {
		gpus.Close() //nolint:errcheck,gosec // the program ends
		return nil
	})
	state := p.String("state")
	options, err := agentOptions(filepath.Join(state, "journal"), filepath.Join(state, "runs"), gpus)
	if err != nil {
		return err
	}
	options.Host = hostMeter(p.Context, p.log)
	if options.Range, err = p.clockRange(); err != nil {
		return err
	}
	outbox, err := spool.Open(filepath.Join(state, "spool"), nil)
	if err != nil {
		return err
	}
	p.node = node.NewNode(node.Options{
		Version: version, Role: p.role, Node: nodeName(p.Context), Agent: agent.New(options), Controller: p.controller(),
		Control: p.control, Spool: outbox, Order: gpuOrder(p.Context), Access: p.access, Log: p.log, Slurm: p.slurm || p.control == nil,
	})
	p.node.Start(p.Context.Context)
	p.loops = append(p.loops, p.node.Run)
	return nil
}

// clockRange is what this node's administrator allows, whoever decides.
func (p *program) clockRange() (func(gpu.Identity) agent.Range, error) {
	r := agent.Range{MinCore: dvfsmodel.MHz(p.Float64("min-core")), MinMem: dvfsmodel.MHz(p.Float64("min-mem"))}
	if !(r.MinCore >= 0) || !(r.MinMem >= 0) {
		return nil, usagef("--min-core and --min-mem are clocks in MHz")
	}
	return func(gpu.Identity) agent.Range { return r }, nil
}

// controller is who decides: in this process, or elsewhere.
func (p *program) controller() node.Controller {
	if p.control != nil {
		return node.Local{Controller: p.control}
	}
	return node.NewRemote(p.hosts(), munge.NewTransport(p.munge(), p.access.Control...))
}

// hosts are the controllers' addresses.
func (p *program) hosts() []string {
	return strings.FieldsFunc(p.String("controller"), func(r rune) bool { return r == ',' })
}

// nodeName is the node's name in Slurm.
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

func gpuOrder(c *cli.Context) []string {
	if order := c.String("gpu-order"); order != "" {
		return strings.Split(order, ",")
	}
	return nil
}

func allowed(c *cli.Context) []uint32 {
	var uids []uint32
	if slurmUser, err := user.Lookup("slurm"); err == nil {
		if uid, err := strconv.ParseUint(slurmUser.Uid, 10, 32); err == nil {
			uids = append(uids, uint32(uid))
		}
	}
	for _, uid := range c.Uint64Slice("allow-uid") {
		if uid < math.MaxUint32 {
			uids = append(uids, uint32(uid))
		}
	}
	return uids
}
