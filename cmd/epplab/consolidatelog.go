package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/textfile"
	"github.com/epplan/epplan/lab/jsonfile"
	"github.com/epplan/epplan/lab/trace"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/sharing"
)

// What a log's servers are unless told otherwise: the paper's GPUs, eight on a
// server as in its simulation.
const (
	defaultServerGPUs = 8
	defaultGPUMemGB   = 32.0
	defaultServerW    = 200.0
	maxServers        = 100_000
	idleMemGB         = 0.5 // of memory that a GPU has in use without anybody on it
)

// readLogInstance returns the problem of what a log's GPUs or jobs used.
func readLogInstance(
	t *terminal.Terminal,
	c *cli.Context,
	r io.Reader,
	name string,
) (*sharing.Instance, error) {
	if err := checkLogFlags(c); err != nil {
		return nil, err
	}
	log, err := trace.ReadUtilisation(r, name, c.Duration("slot").Seconds())
	if err != nil {
		return nil, err
	}
	in := &sharing.Instance{
		Name: name, Physics: sharing.PaperPhysics(), SLA: c.Float64("sla"), SlotS: log.SlotS,
	}
	pieces, idle := 0, 0
	for i := range log.Series {
		s := &log.Series[i]
		switch {
		case !log.Jobs && s.MemGB < idleMemGB && slices.Max(s.UtilPct) == 0:
			idle++
		default:
			in.Tasks = append(in.Tasks, sharing.Task{
				ID: s.ID, MemGB: s.MemGB, GPUs: s.GPUs, Kappa: in.SLA, UtilPct: s.UtilPct,
			})
			pieces += s.GPUs
		}
	}
	if len(in.Tasks) == 0 {
		return nil, fmt.Errorf("%s: no GPU does anything, want a log of some that do", name)
	}
	if idle > 0 {
		t.Message("note", report.Plural(idle, "GPU of the log is", "GPUs of the log are")+" idle: left out")
	}
	noteLogRepairs(t, log)
	return in, setLogServers(t, c, in, pieces)
}

func checkLogFlags(c *cli.Context) error {
	if sla := c.Float64("sla"); !(sla >= 1 && sla <= 1000) {
		return terminal.Usagef("--sla %v, want 1 to 1000", sla)
	}
	if memGB := c.Float64("gpu-mem-gb"); !(memGB > 0) || math.IsInf(memGB, 0) {
		return terminal.Usagef("--gpu-mem-gb %v, want more than 0", memGB)
	}
	if watts := c.Float64("server-w"); !(watts >= 0) || math.IsInf(watts, 0) {
		return terminal.Usagef("--server-w %v, want 0 or more", watts)
	}
	if c.String("servers") == "" {
		return nil
	}
	return terminal.Refuse(c, "and --servers are both given, want one", "gpus-per-server", "server-w")
}

// noteLogRepairs says what of a log was filled in or left out.
func noteLogRepairs(t *terminal.Terminal, log *trace.UtilisationLog) {
	held, absent, slots := 0, 0, 0
	for i := range log.Series {
		s := &log.Series[i]
		held, absent, slots = held+s.Held, absent+s.Absent, slots+s.GPUs*len(s.UtilPct)
	}
	if held > 0 {
		t.Notef("%s of %s have no sample: taken as the slot before", report.FormatCount(held),
			report.Plural(slots, "slot"))
	}
	if absent > 0 {
		t.Notef("%s of %s lie before the first or after the last sample: taken as idle",
			report.FormatCount(absent), report.Plural(slots, "slot"))
	}
	if log.Headers > 0 {
		t.Message("note", report.Plural(log.Headers, "more header")+" among the samples left out")
	}
	if log.LastLineCut {
		t.Message("note", "the last line is cut, left out")
	}
	if log.Unusable > 0 {
		t.Message("note", report.Plural(log.Unusable, "sample")+" without a utilisation left out")
	}
	if log.Idle > 0 {
		t.Message("note", report.Plural(log.Idle, "sample")+" without a job left out")
	}
}

// setLogServers gives a log's problem its servers.
func setLogServers(t *terminal.Terminal, c *cli.Context, in *sharing.Instance, pieces int) error {
	memGB, watts, gpus := c.Float64("gpu-mem-gb"), c.Float64("server-w"), c.Int("gpus-per-server")
	if name := c.String("servers"); name != "" {
		return setFileServers(t, c, in, name, pieces)
	}
	for range (pieces + gpus - 1) / gpus {
		in.Servers = append(in.Servers, uniformServer(gpus, memGB, watts))
	}
	t.Notef("no --servers: as many as it takes, each of %s W with %d GPUs of %s GB, the CATS paper's V100",
		terminal.TrimZeros(watts), gpus, terminal.TrimZeros(memGB))
	return nil
}

func uniformServer(gpus int, memGB, watts float64) sharing.Server {
	s := sharing.Server{StaticW: watts}
	for range gpus {
		s.GPUMemGB = append(s.GPUMemGB, memGB)
	}
	return s
}

// setFileServers takes the servers from an instance, with how its GPUs respond
// to clocks, or from a cluster.
func setFileServers(
	t *terminal.Terminal,
	c *cli.Context,
	in *sharing.Instance,
	name string,
	pieces int,
) error {
	profiles, err := setup.ReadProfiles(t, c.String("profiles"))
	if err != nil {
		return err
	}
	_, err = terminal.ParseFile(t, name, func(r io.Reader, name string) (bool, error) {
		text := textfile.Open(r, name, textfile.OnlyText)
		if textfile.FirstByte(text) == '{' { // TOML may begin with [, the name of a table
			if c.IsSet("gpu-mem-gb") {
				return false, terminal.Usagef(
					"--gpu-mem-gb is for servers without it, but instance %s has it, want "+
						"it left out",
					name,
				)
			}
			other, err := jsonfile.ReadInstance(text, name)
			if err != nil {
				return false, err
			}
			in.Servers, in.Physics = other.Servers, other.Physics
			return true, nil
		}
		cluster, err := config.Load(text, name, profiles)
		if err != nil {
			return false, err
		}
		if !cluster.HasNodes() {
			return false, setup.NoNodesError(name)
		}
		nodes := cluster.Cluster()
		noteServerGPUs(t, name, &nodes, c.Float64("gpu-mem-gb"))
		return true, setClusterServers(in, nodes, c.Float64("gpu-mem-gb"), pieces)
	})
	return err
}

// noteServerGPUs says what GPUs are taken for that a cluster doesn't let jobs share:
// it says nothing of their memory, nor of their power by clock.
func noteServerGPUs(t *terminal.Terminal, name string, cluster *planner.Cluster, memGB float64) {
	var assumed []string
	if cluster.Sharing == nil {
		assumed = append(assumed, "the CATS paper's V100")
	}
	if slices.ContainsFunc(cluster.Classes, func(k planner.NodeClass) bool { return k.SharedGB == nil }) {
		assumed = append(assumed, terminal.TrimZeros(memGB)+" GB each")
	}
	if len(assumed) > 0 {
		t.Message("note", "GPUs of "+name+" are taken for "+strings.Join(assumed, ", "))
	}
}

// setClusterServers takes over a cluster's nodes, and how its GPUs respond to clocks
// where jobs may share them. Classes of any number of
// nodes have as many as it takes.
func setClusterServers(in *sharing.Instance, cluster planner.Cluster, memGB float64, pieces int) error {
	if cluster.Sharing != nil {
		in.Physics = cluster.Sharing.Physics
	}
	for i := range cluster.Classes {
		class := &cluster.Classes[i]
		count := class.Count
		if count == 0 {
			count = (pieces + class.GPUs - 1) / class.GPUs
		}
		if len(in.Servers)+count > maxServers {
			return fmt.Errorf("cluster %s has more than %d nodes, want fewer", cluster.Name, maxServers)
		}
		server := uniformServer(class.GPUs, memGB, float64(class.HostW)*float64(class.GPUs))
		if class.SharedGB != nil {
			server.GPUMemGB = class.SharedGB
		}
		for range count {
			in.Servers = append(in.Servers, server)
		}
	}
	return nil
}
