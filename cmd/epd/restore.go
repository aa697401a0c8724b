package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/cmd/internal/dryrun"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/statedir"
	"github.com/epplan/epplan/slurm"
)

// restoreBound is how long epd restore may take.
const restoreBound = 5 * time.Second

// restore gives back what the journal names.
func restore(c *cli.Context, stderr io.Writer) error {
	if c.Args().Present() {
		return usagef("restore takes no arguments, got %q", c.Args().First())
	}
	if dryrun.IsSet(c) {
		steps, err := restoreSteps(c.String("journal"))
		if err != nil {
			return err
		}
		_, err = dryrun.Announce(c, steps...)
		return err
	}
	return restoreJournal(c, c.String("journal"), stderr)
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
		if options.Journal, err = agent.OpenToGiveBack(journal); errors.Is(err, fs.ErrNotExist) {
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
