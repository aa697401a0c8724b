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

	"github.com/epplan/epplan/internal/cli/completion"
	"github.com/epplan/epplan/internal/epdapi"
)

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

// run returns the whole program: it returns the exit status.
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
		UsageText: "epd [OPTIONS]\nepd restore [OPTIONS]",
		Description: "Without a configuration file nothing is touched: every partition is observed. What was locked is given\n" +
			"back at the start, at the end, and when jobs end; epd restore does so without a running epd.\n" +
			"Example: epd --role both --gpu sim:4 --state /tmp/epd --socket /tmp/epd.sock",
		Version:         version,
		HideHelpCommand: true,
		Writer:          stdout,
		ErrWriter:       stderr,
		ExitErrHandler:  func(*cli.Context, error) {},
		OnUsageError:    refuseUsage,
		Flags: append([]cli.Flag{&cli.StringFlag{
			Name: "role", Usage: "`ROLE`: controller, agent, or both in one process", Value: roleBoth,
		}}, serveFlags()...),
		Action: func(c *cli.Context) error { return serve(c, c.String("role"), stderr) },
		Commands: []*cli.Command{
			roleCommand(roleAgent, "choose nothing, obey a controller: epd --role agent", stderr),
			roleCommand(roleController, "choose, record, touch no GPU: epd --role controller", stderr),
			dbCommand(stdout, stderr), modelCommand(stdout), keysCommand(os.Stdin, stdout),
			gpuCheckCommand(stdout, stderr),
			manCommand(stdout, stderr), completionCommand(stdout), workCommand(stdout),
			restoreCommand(stderr),
		},
	}
	return app
}

// roleCommand returns a role as a command of its own.
func roleCommand(role, usage string, stderr io.Writer) *cli.Command {
	return &cli.Command{
		Name: role, Usage: usage, UsageText: "epd " + role + " [OPTIONS]", HideHelpCommand: true,
		OnUsageError: refuseUsage,
		Flags:        serveFlags(),
		Action:       func(c *cli.Context) error { return serve(c, role, stderr) },
	}
}
