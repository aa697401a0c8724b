package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/cmd/internal/dryrun"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/slurm"
)

// restoreBound is how long epd restore may take.
const restoreBound = 5 * time.Second

// restore gives back what the journal names.
func restore(c *cli.Context, stderr io.Writer) error {
	if c.Args().Present() {
		return usagef("restore takes no arguments, got %q", c.Args().First())
	}
	if dryrun.Asked(c) {
		steps, err := restoreSteps(c.String("journal"))
		if err != nil {
			return err
		}
		_, err = dryrun.Would(c, steps...)
		return err
	}
	return restoreJournal(c, c.String("journal"), stderr)
}

// restoreJournal gives back what a journal names, also when the program was
// told to end.
func restoreJournal(c *cli.Context, journal string, stderr io.Writer) error {
	l, err := library(c)
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // the program ends
	options, err := agentOptions(c, journal, "", l)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context), restoreBound)
	defer cancel()
	report, err := agent.RestoreJournal(ctx, options)
	for _, note := range report.Notes {
		_, _ = fmt.Fprintf(stderr, "warning: %s\n", slurm.Printable(note, 1000))
	}
	for _, g := range report.GPUs {
		_, _ = fmt.Fprintf(stderr, "note: %s: %s %s\n", g.UUID, g.Fate, slurm.Printable(g.Note, 400))
	}
	return errors.Join(err, report.Err())
}
