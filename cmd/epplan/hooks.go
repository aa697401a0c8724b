package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// Slurm drains a node whose Prolog or Epilog fails or takes too long. So these
// two commands end with status 0 whatever happens, and soon.
const (
	hookTimeout      = 1900 * time.Millisecond // of the whole command
	hookWorkTimeout  = 1800 * time.Millisecond // of all but ending what it started
	hookReplyTimeout = 1200 * time.Millisecond // of waiting for epd
)

// isHook reports whether the arguments call one of the two.
func isHook(args []string) bool {
	return len(args) > 1 && (args[1] == string(hooks.Prolog) || args[1] == string(hooks.Epilog))
}

// runHook runs a Prolog or an Epilog, which is the work, within its bound. What goes wrong is a line
// on standard error, which slurmd logs, and reads until nobody has it open: so
// what was started is ended first.
func runHook(ctx context.Context, t *terminal.Terminal, work func(context.Context) error) int {
	ctx, cancel := context.WithTimeout(ctx, hookWorkTimeout)
	defer cancel()
	bound := time.NewTimer(hookTimeout)
	defer bound.Stop()
	done := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- fmt.Errorf("panic: %v", r)
			}
		}()
		done <- work(ctx)
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Message("warning", err.Error()+": the job goes on at the clocks that it has")
		}
	case <-bound.C:
		t.Message("warning", "no answer in time: the job goes on at the clocks that it has")
	}
	return terminal.ExitDone
}

func socketFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "socket", Usage: "`PATH` of epd's socket", DefaultText: epdapi.AgentSocket,
		EnvVars: []string{"EPPLAN_SOCKET"},
	}
}

func prologCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:  string(hooks.Prolog),
		Usage: "Slurm's Prolog: have the job's clocks chosen and locked",
		Description: "Reads the environment that slurmd gives a Prolog. Ends within 2 s and with status 0, whatever happens:\n" +
			"no answer means default clocks. Install it with a line at the end of the site's Prolog, or as a further one\n" +
			"that runs last: what comes after it is booked to the job.\n" +
			"Example: epplan prolog --socket /run/epplan-agent/agent.sock",
		Flags:  []cli.Flag{socketFlag(), terminal.DryRunFlag()},
		Action: func(c *cli.Context) error { return callHook(t, c, hooks.Prolog) },
	}
}

func epilogCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:  string(hooks.Epilog),
		Usage: "Slurm's Epilog: give the job's clocks back",
		Description: "Reads the environment that slurmd gives an Epilog. When epd doesn't answer, epd " +
			"restore gives all clocks\n" +
			"of the node back by the journal alone. Ends within 2 s and with status 0, whatever happens. Install it with a\n" +
			"line at the beginning of the site's Epilog, or as a further one that runs first: the clocks stay until then.\n" +
			"Example: epplan epilog --socket /run/epplan-agent/agent.sock --journal /var/lib/epplan/journal",
		Flags: append([]cli.Flag{socketFlag(), terminal.DryRunFlag()}, restoreFlags()...),
		Action: func(c *cli.Context) error {
			err := callHook(t, c, hooks.Epilog)
			if errors.Is(err, errEpdIdle) {
				t.Message("warning", err.Error())
				return restoreByJournal(t, c)
			}
			return err
		},
	}
}

// errEpdIdle tells that epd didn't do what a hook told: it isn't there, or its
// answer is none.
var errEpdIdle = errors.New("epd did nothing")

func callHook(t *terminal.Terminal, c *cli.Context, kind hooks.Hook) error {
	if err := terminal.CheckArgs(c, 0, 0, "none"); err != nil {
		return err
	}
	env, err := hooks.ParseEnv(kind, os.Environ())
	if err != nil {
		return fmt.Errorf("not called by slurmd: %w", err)
	}
	ctx, cancel := context.WithTimeout(c.Context, hookReplyTimeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	event := env.Event(deadline)
	if stop, err := dryRunHook(c, &event); stop {
		return err
	}
	answer, err := epdapi.NewAgent(c.String("socket")).Hook(ctx, &event)
	if err != nil {
		return fmt.Errorf("%w: %w", errEpdIdle, err)
	}
	if answer.Reason != "" {
		t.Notef("job %d: %s", env.Job, slurm.Printable(string(answer.Reason), 400))
	}
	return nil
}

// defaultJournal is where epd keeps its journal unless it is told otherwise.
const defaultJournal = "/var/lib/epplan/journal"

// restoreFlags say how clocks are given back without a running epd.
func restoreFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "journal", Usage: "`DIR` of epd's journal, for when epd doesn't run", Value: defaultJournal,
		},
		&cli.StringFlag{
			Name: "epd", Usage: "`PATH` of the epd that restores then", DefaultText: "epd beside epplan",
		},
	}
}

func restoreCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:  "restore",
		Usage: "give the clocks of this node's GPUs back to the driver",
		Description: "Asks epd, and when it doesn't answer runs epd restore, which needs nothing but the journal.\n" +
			"Jobs go on at default clocks.\n" +
			"Example: epplan restore",
		Flags:  append([]cli.Flag{socketFlag(), terminal.DryRunFlag()}, restoreFlags()...),
		Action: t.Runs(terminal.WithoutArgs(runRestore)),
	}
}

const restoreTimeout = 20 * time.Second

func runRestore(t *terminal.Terminal, c *cli.Context) error {
	ctx, cancel := context.WithTimeout(c.Context, restoreTimeout)
	defer cancel()
	if stop, err := dryRunRestore(ctx, t, c); stop {
		return err
	}
	answer, err := epdapi.NewAgent(c.String("socket")).Restore(ctx, &epdapi.RestoreRequest{})
	if errors.Is(err, epdapi.ErrUnreachable) {
		t.Message("warning", err.Error())
		return restoreByJournal(t, c)
	}
	if err != nil {
		return err
	}
	for _, note := range answer.Notes {
		t.Message("warning", slurm.Printable(note, 400))
	}
	for _, g := range answer.GPUs {
		t.Notef("%s: %s %s%s", g.UUID, g.Result, slurm.Printable(g.Note, 200), slurm.Printable(g.Error, 200))
	}
	if !answer.Clean {
		return errors.New("some clocks could not be given back; epd tries again, and a reboot clears them")
	}
	return nil
}

func restoreByJournal(t *terminal.Terminal, c *cli.Context) error {
	path := c.String("epd")
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find epd: %w", err)
		}
		path = filepath.Join(filepath.Dir(self), "epd")
	}
	args := []string{"restore", "--journal", c.String("journal")}
	if terminal.IsDryRun(c) {
		args = append(args, "--dry-run")
	}
	run := exec.CommandContext(c.Context, path, args...) //nolint:gosec // root's own flags
	run.Stdout, run.Stderr = t.Stderr, t.Stderr
	if terminal.IsDryRun(c) {
		run.Stdout = t.Stdout // it is the result
	}
	run.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "EPD_") { // which GPUs, where simulated ones are
			run.Env = append(run.Env, v)
		}
	}
	run.WaitDelay = 100 * time.Millisecond
	if err := run.Run(); err != nil {
		const hint = "clocks stay locked until epd runs again or the node boots, but those that epd " +
			"restore gave back"
		return terminal.WithHint(fmt.Errorf("epd restore: %w", err), hint)
	}
	return nil
}

// dryRunRestore says which clocks would be given back, as epd has them.
func dryRunRestore(ctx context.Context, t *terminal.Terminal, c *cli.Context) (stop bool, err error) {
	if !terminal.IsDryRun(c) {
		return false, nil
	}
	s, err := epdapi.NewAgent(c.String("socket")).Status(ctx)
	if errors.Is(err, epdapi.ErrUnreachable) {
		t.Message("warning", err.Error())
		return true, restoreByJournal(t, c)
	}
	if err != nil {
		return true, err
	}
	var steps []string
	for i := range s.GPUs {
		if g := &s.GPUs[i]; g.IsLocked() {
			steps = append(steps, fmt.Sprintf("give the clocks of %s back, now core %s, memory %s%s", g.UUID,
				clockText(g.Core, g.LockedCore), clockText(g.Mem, g.LockedMem),
				g.LimitWords()+g.ProfileWords()))
		}
	}
	return terminal.Announce(c, steps...)
}

func dryRunHook(c *cli.Context, event *hooks.Event) (stop bool, err error) {
	gpus := "no GPU that is known"
	if event.GPUsKnown {
		gpus = report.Plural(len(event.GPUs), "GPU")
		if len(event.GPUs) > 0 {
			gpus += " (" + strings.Join(terminal.TextsOf(event.GPUs, strconv.Itoa), ", ") + ")"
		}
	}
	return terminal.Announce(c, fmt.Sprintf("tell epd at %s of the %s of job %d on %s with %s",
		c.String("socket"), event.Kind, event.Job, event.Node, gpus))
}
