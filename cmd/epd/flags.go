package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/nodekey"
)

// version is set by the linker in make build.
var version = "devel"

// errUsage is a mistake on the command line.
var errUsage = errors.New("usage")

func usagef(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errUsage}, args...)...)
}

// refuseUsage is what commands make of a mistake that package cli finds.
func refuseUsage(_ *cli.Context, err error, _ bool) error { return usagef("%w", err) }

// The roles of an epd.
const (
	roleBoth       = "both"
	roleController = "controller"
	roleAgent      = "agent"
)

// The ways in which agents and controller prove who they are.
const (
	authMunge = "munge"
	authKeys  = "keys"
)

// serveFlags returns those of every role.
func serveFlags() []cli.Flag {
	return slices.Concat([]cli.Flag{
		terminal.DryRunFlag(),
		&cli.StringFlag{
			Name: "socket", Usage: "`PATH` to listen at for hooks and administrators",
			DefaultText: epdapi.AgentSocket + ", of a controller " + epdapi.ControllerSocket,
		},
		&cli.StringFlag{
			Name: "submit-socket", Usage: "`PATH` to answer job_submit.lua and users at", DefaultText: "none",
		},
		&cli.StringFlag{
			Name: "listen", Usage: "`ADDRESS:PORT` where a controller answers agents, and by munge users",
			DefaultText: "none",
		},
		&cli.StringFlag{
			Name:  "controller",
			Usage: "`HOST:PORT` of an agent's controller; several, separated by commas, are tried in turn",
		},
		&cli.StringFlag{
			Name: "auth", Value: authMunge,
			Usage: "`HOW` agents and controller prove who they are: munge, or keys of their own",
		},
		&cli.StringFlag{Name: "munge-socket", Usage: "`PATH` of munged's socket", DefaultText: "munge's own"},
		&cli.StringFlag{
			Name: "key", Value: nodekey.DefaultKey,
			Usage: "`FILE` of this machine's own key, where --auth is keys",
		},
		&cli.StringFlag{
			Name: "trusted-keys", Value: nodekey.DefaultTrusted,
			Usage: "`FILE` of the keys that are believed, where --auth is keys",
		},
		&cli.StringFlag{
			Name: "metrics", Usage: "`ADDRESS:PORT` for Prometheus, without any authentication",
			DefaultText: "none",
		},
		&cli.StringFlag{
			Name: "web", Usage: "`ADDRESS:PORT` for pages, where people log in with a token: docs/web.md",
			DefaultText: "none",
		},
		&cli.StringFlag{
			Name:  "config",
			Usage: "TOML `FILE` with objective, safety margins and modes; SIGHUP reads it again",
		},
		&cli.StringFlag{Name: "node", Usage: "`NAME` of this node in Slurm", DefaultText: "the host's name"},
		&cli.StringFlag{Name: "cluster", Usage: "`NAME` of the cluster in the records", Value: "cluster"},
	}, slurmFlags(), []cli.Flag{
		&cli.StringFlag{
			Name: "powercap", Usage: "`DIR` of the CPUs' energy counters",
			DefaultText: "/sys/class/powercap, none beside simulated GPUs",
		},
		&cli.Float64Flag{
			Name: "min-core", Usage: "`MHZ` below which no GPU of this node is locked", DefaultText: "none",
		},
		&cli.Float64Flag{
			Name: "min-mem", Usage: "`MHZ` below which no memory of this node's GPUs is locked",
			DefaultText: "none",
		},
		&cli.Uint64SliceFlag{
			Name: "allow-uid", Usage: "further `UID` that may ask, beside root and Slurm's user",
		},
	}, gpuFlags())
}

// slurmFlags say how Slurm is asked and moved.
func slurmFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "slurm", Usage: "whether to ask Slurm about jobs: `HOW` is auto, on or off", Value: "auto",
		},
		&cli.BoolFlag{
			Name:  "no-levers",
			Usage: "leave Slurm's queue and nodes alone: another epd of the cluster steers them",
		},
		&cli.BoolFlag{
			Name: "standby",
			Usage: "wait until Slurm says that the slurmctld of this machine is in charge, and end when " +
				"another's is: for controllers beside a slurmctld and its backup, with one state folder",
		},
		&cli.StringFlag{
			Name: "gpu-order",
			Usage: "`UUIDS` by their numbers in Slurm, separated by commas, where " +
				"gres.conf doesn't tell",
			DefaultText: "none",
		},
		&cli.StringFlag{
			Name: "slurm-conf", EnvVars: []string{"SLURM_CONF"},
			Usage:       "`FILE` of Slurm, with gres.conf beside it, until a Prolog says which slurmd reads",
			DefaultText: "/etc/slurm/slurm.conf and the like",
		},
	}
}

// gpuFlags say which GPUs there are.
func gpuFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "gpu", EnvVars: []string{"EPD_GPU"},
			Usage: "`WHICH` GPUs: auto, nvml, amd, or simulated ones: sim, sim:4, sim:4,model=V100", Value: "auto",
		},
		&cli.StringFlag{
			Name:  "gpu-faults",
			Usage: "`FAULTS` of simulated GPUs, for tests, such as lock:permission;read:slow=3s",
		},
		&cli.StringFlag{
			Name: "state", EnvVars: []string{"EPD_STATE"},
			Usage: "`DIR` of journal, open runs, records, and simulated GPUs", Value: "/var/lib/epplan",
		},
	}
}
