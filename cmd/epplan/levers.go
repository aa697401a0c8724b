package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/view"
)

func leversCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:  "levers",
		Usage: "what epd changed in Slurm beside clocks, and its advice; or take it back",
		Description: "Shows the jobs and nodes whose Nice, preference, begin time, weight or power state epd has changed, what\n" +
			"it would change, and advice to users. With [live.plan] it also shows the plan in force and how starts\n" +
			"kept to it; with it or a policy in [live.pick], the wanted order of pending jobs; with weights in\n" +
			"[live.sharing], how nodes suit the next job for a part of a GPU (for operators).\n" +
			"--undo takes everything back, and nothing is changed again until the configuration changes.\n" +
			"Example: epplan levers",
		Flags: []cli.Flag{
			anySocketFlag(publicFirst), terminal.JSONFlag(),
			terminal.BoolFlag("undo", "take everything back (for root and Slurm's user)"), terminal.DryRunFlag(),
		},
		Action: t.Runs(terminal.WithoutArgs(runLevers)),
	}
}

func runLevers(t *terminal.Terminal, c *cli.Context) error {
	if c.Bool("undo") {
		return undoLevers(t, c)
	}
	now, err := ask(c, publicFirst, (*epdapi.Client).Levers)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return t.PrintJSON(now)
	}
	views := []*view.View{view.Levers(&now.Status)}
	if now.Plan != nil {
		views = append(views, view.Plan(now.Plan, maxPlannedRows))
	}
	for _, v := range views {
		if err := t.PrintText(v.Text()); err != nil {
			return err
		}
		for _, table := range v.Tables {
			if err := t.PrintTable(c, table.Table); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxPlannedRows is how many tasks of a plan are listed.
const maxPlannedRows = 20

func undoLevers(t *terminal.Terminal, c *cli.Context) error {
	if stop, err := dryRunUndo(c); stop {
		return err
	}
	done, err := ask(c, controllerFirst,
		func(epd *epdapi.Client, ctx context.Context) (*epdapi.UndoLeversAnswer, error) {
			return epd.UndoLevers(ctx)
		})
	switch {
	case errors.Is(err, epdapi.ErrUnreachable) && !errors.Is(err, fs.ErrPermission):
		return terminal.WithHint(err, "where no epd runs, on the controller's machine: epd restore --state "+
			"/var/lib/epplan-controller, or the folder that its --state names")
	case err != nil:
		return err
	case c.Bool("json"):
		err = t.PrintJSON(done)
	default:
		err = t.PrintText(fmt.Sprintf("%d taken back, %d failed, %d to be taken back later (jobs that "+
			"run or are held)\n",
			done.Undone, done.Failed, done.Waiting))
	}
	if done.Error != "" {
		return errors.Join(err, errors.New(terminal.Printable(done.Error)))
	}
	return err
}

func dryRunUndo(c *cli.Context) (stop bool, err error) {
	if !terminal.IsDryRun(c) {
		return false, nil
	}
	now, err := ask(c, controllerFirst, (*epdapi.Client).Levers)
	if err != nil {
		return true, err
	}
	steps := terminal.TextsOf(
		view.MovedLines(&now.Status),
		func(what string) string { return "take back " + what },
	)
	return terminal.Announce(c, steps...)
}
