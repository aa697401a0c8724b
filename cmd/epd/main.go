// Command epd decides, sets and restores the clocks of a machine's GPUs for
// the jobs that Slurm runs there, and records what came of it. Run epd --help,
// or read docs/epd.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/cmd/internal/completion"
	"github.com/epplan/epplan/cmd/internal/dryrun"
	"github.com/epplan/epplan/internal/epdapi"
)

// version is set by the linker in make build.
var version = "devel"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// The exit statuses.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	// exitUnreachable is for questions that no epd answers.
	exitUnreachable = 4
)

// errUsage is a mistake on the command line.
var errUsage = errors.New("usage")

func usagef(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errUsage}, args...)...)
}

// run is the whole program: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := application(stdout, stderr) //nolint:contextcheck // commands get it by RunContext
	var err error
	if completion.IsRequest(args) {
		err = completion.WriteCandidates(stdout, app, args, completionValues())
	} else {
		err = app.RunContext(ctx, args)
	}
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errUsage):
		_, _ = fmt.Fprintf(stderr, "error: %v\nhint: epd --help lists the flags\n", err)
		return exitUsage
	}
	_, _ = fmt.Fprintf(stderr, "error: %v\n", err)
	if errors.Is(err, epdapi.ErrUnreachable) {
		return exitUnreachable
	}
	return exitFailed
}

func application(stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:      "epd",
		Usage:     "choose, lock and restore GPU clocks for Slurm's jobs",
		UsageText: "epd [OPTIONS]\nepd restore --journal DIR",
		Description: "Without a configuration file nothing is touched: every partition is observed. What was locked is given\n" +
			"back at the start, at the end, and when jobs end; epd restore does so without a running epd.\n" +
			"Example: epd --role both --gpu sim:4 --state /tmp/epd --socket /tmp/epd.sock",
		Version:         version,
		HideHelpCommand: true,
		Writer:          stdout,
		ErrWriter:       stderr,
		ExitErrHandler:  func(*cli.Context, error) {},
		OnUsageError:    func(_ *cli.Context, err error, _ bool) error { return usagef("%w", err) },
		Flags: append([]cli.Flag{&cli.StringFlag{
			Name: "role", Usage: "`ROLE`: controller, agent, or both in one process", Value: roleBoth,
		}}, serveFlags()...),
		Action: func(c *cli.Context) error { return serve(c, c.String("role"), stderr) },
		Commands: []*cli.Command{
			roleCommand(roleAgent, "choose nothing, obey a controller: epd --role agent", stderr),
			roleCommand(roleController, "choose, record, touch no GPU: epd --role controller", stderr),
			dbCommand(stdout, stderr), modelCommand(stdout),
			manCommand(stdout, stderr), completionCommand(stdout), workCommand(stdout),
			{
				Name:      "restore",
				Usage:     "give clocks back by the journal alone",
				UsageText: "epd restore --journal DIR [OPTIONS]",
				Description: "Needs no configuration and no running epd, and ends within seconds.\n" +
					"Example: epd restore --journal /var/lib/epplan/journal",
				HideHelpCommand: true,
				OnUsageError:    func(_ *cli.Context, err error, _ bool) error { return usagef("%w", err) },
				Flags: append([]cli.Flag{
					dryrun.Flag(), &cli.StringFlag{
						Name: "journal", Usage: "`DIR` of the journal", Value: "/var/lib/epplan/journal",
					},
				}, gpuFlags()...),
				Action: func(c *cli.Context) error { return restore(c, stderr) },
			},
		},
	}
	return app
}

// roleCommand is a role as a command of its own.
func roleCommand(role, usage string, stderr io.Writer) *cli.Command {
	return &cli.Command{
		Name: role, Usage: usage, UsageText: "epd " + role + " [OPTIONS]", HideHelpCommand: true,
		OnUsageError: func(_ *cli.Context, err error, _ bool) error { return usagef("%w", err) },
		Flags:        serveFlags(),
		Action:       func(c *cli.Context) error { return serve(c, role, stderr) },
	}
}

// serveFlags are those of every role.
func serveFlags() []cli.Flag {
	return append([]cli.Flag{
		dryrun.Flag(),
		&cli.StringFlag{
			Name: "socket", Usage: "`PATH` to listen at for hooks and administrators",
			DefaultText: epdapi.AgentSocket + ", of a controller " + epdapi.ControllerSocket,
		},
		&cli.StringFlag{
			Name: "submit-socket", Usage: "`PATH` to answer job_submit.lua and users at", DefaultText: "none",
		},
		&cli.StringFlag{
			Name: "listen", Usage: "`ADDRESS:PORT` where a controller answers agents and users, by munge",
			DefaultText: "none",
		},
		&cli.StringFlag{
			Name:  "controller",
			Usage: "`HOST:PORT` of an agent's controller; several, separated by commas, are tried in turn",
		},
		&cli.StringFlag{Name: "munge-socket", Usage: "`PATH` of munged's socket", DefaultText: "munge's own"},
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
		&cli.StringFlag{
			Name: "slurm", Usage: "whether to ask Slurm about jobs: `HOW` is auto, on or off", Value: "auto",
		},
		&cli.BoolFlag{
			Name:  "no-levers",
			Usage: "leave Slurm's queue and nodes alone: another epd of the cluster steers them",
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
	}, gpuFlags()...)
}

// gpuFlags say which GPUs there are.
func gpuFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "gpu", EnvVars: []string{"EPD_GPU"},
			Usage: "`WHICH` GPUs: nvml, or simulated ones: sim, sim:4, sim:4,model=V100", Value: "nvml",
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
