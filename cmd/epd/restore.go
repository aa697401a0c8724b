package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/statedir"
)

// restoreBound is how long epd restore may take for clocks.
const restoreBound = 5 * time.Second

// restoreCommand gives back without a running epd.
func restoreCommand(stderr io.Writer) *cli.Command {
	return &cli.Command{
		Name:      "restore",
		Usage:     "give back clocks and Slurm's queue without a running epd",
		UsageText: "epd restore [OPTIONS]\nepd THE-OPTIONS-OF-AN-EPD restore [OPTIONS]",
		Description: "Gives back what an epd that has ended left: the clocks of this machine's GPUs by its journal, and in\n" +
			"Slurm's queue and nodes by its levers.json the Nice, preference and begin time of pending jobs, the weights of nodes,\n" +
			"and the sleep of nodes that it powered down. Values that somebody else set meanwhile stay. Without --state it\n" +
			"looks into /var/lib/epplan and /var/lib/epplan-controller. The queue is left to an epd that runs with the\n" +
			"folder, and by the second form with --standby to another machine whose slurmctld is in charge. Needs no\n" +
			"configuration. Exit status 1: something is left; running it again goes on, or changes nothing.\n" +
			"Example: epd restore --state /var/lib/epplan-controller",
		HideHelpCommand: true,
		OnUsageError:    refuseUsage,
		Flags: append([]cli.Flag{
			terminal.DryRunFlag(), &cli.StringFlag{
				Name: "journal", Usage: "`DIR` of the journal: give back the clocks that it names, and nothing else",
				DefaultText: "both, the journal in --state",
			},
			&cli.DurationFlag{
				Name: "within", Usage: "`TIME` that Slurm's queue and nodes may take", Value: time.Minute,
			},
		}, gpuFlags()...),
		Action: func(c *cli.Context) error {
			if err := inheritFlags(c); err != nil {
				return err
			}
			return restore(c, stderr)
		},
	}
}

// inheritFlags gives a command's flags the values that the program's own have before it, as in epd $EPD_OPTIONS
// restore.
func inheritFlags(c *cli.Context) error {
	program := c.Lineage()[1]
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if c.IsSet(name) || !program.IsSet(name) {
			continue
		}
		if err := c.Set(name, fmt.Sprint(program.Value(name))); err != nil {
			return usagef("--%s: %w", name, err)
		}
	}
	return nil
}

// restore gives back what an epd left: clocks, then Slurm's queue, which may keep it waiting.
func restore(c *cli.Context, stderr io.Writer) error {
	if c.Args().Present() {
		return usagef("restore takes no arguments, got %q", c.Args().First())
	}
	if c.Duration("within") <= 0 {
		return usagef("--within is %v, want more than 0", c.Duration("within"))
	}
	journal, queues := restoreSources(c)
	if terminal.IsDryRun(c) {
		steps, err := restoreSteps(journal)
		if err != nil {
			return err
		}
		queued, err := leverSteps(queues)
		if err != nil {
			return err
		}
		_, err = terminal.Announce(c, append(steps, queued...)...)
		return err
	}
	if journal == "" && len(queues) == 0 {
		if insecure := statedir.Check(c.String("state")); insecure != nil && !errors.Is(insecure, fs.ErrNotExist) {
			return insecure //nolint:wrapcheck // says all
		}
		_, _ = fmt.Fprintf(stderr, "note: %s has neither a journal nor levers: nothing is to be given back\n",
			slurm.Printable(c.String("state"), 1000))
	}
	var failed error
	if journal != "" {
		failed = restoreJournal(c, journal, stderr)
	}
	for _, state := range queues {
		failed = errors.Join(failed, restoreQueue(c, state, stderr))
	}
	return failed
}

// restoreSources returns the journal that is to be given back by, empty if there is none, and the state
// folders with levers that are to be taken back.
func restoreSources(c *cli.Context) (journal string, queues []string) {
	if journal = c.String("journal"); journal != "" {
		return journal, nil
	}
	queues = leverFolders(c)
	journal = filepath.Join(c.String("state"), "journal")
	_, err := os.Stat(journal)
	if c.String("role") == roleController || errors.Is(err, fs.ErrNotExist) {
		return "", queues
	}
	return journal, queues
}

// restoreJournal gives back what a journal names, also when the program was
// told to end. A journal that isn't epd's alone isn't changed, and is an error: of
// the GPUs that it names the clocks are set to default, whatever else it says.
func restoreJournal(c *cli.Context, journal string, stderr io.Writer) error {
	l, err := openGPUs(c)
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // the program ends
	options, err := agentOptions(c, journal, "", l)
	var refused error
	if _, foreign := errors.AsType[*statedir.InsecureError](err); foreign {
		refused = err
		if options.Journal, err = statedir.OpenToGiveBack(journal); errors.Is(err, fs.ErrNotExist) {
			return refused
		}
		const said = "warning: %s isn't epd's alone: the GPUs that it names get their default clocks, and " +
			"it stays as it is\n"
		_, _ = fmt.Fprintf(stderr, said, slurm.Printable(journal, 1000))
	}
	if err != nil {
		return errors.Join(refused, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context), restoreBound)
	defer cancel()
	report, err := agent.RestoreJournal(ctx, options)
	for _, note := range report.Notes {
		_, _ = fmt.Fprintf(stderr, "warning: %s\n", slurm.Printable(note, 1000))
	}
	for _, g := range report.GPUs {
		_, _ = fmt.Fprintf(stderr, "note: %s: %s %s\n", g.UUID, g.Result, slurm.Printable(g.Note, 400))
	}
	return errors.Join(refused, err, report.Err())
}
