package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/dryrun"
	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/planreport"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/internal/view"
	"github.com/epplan/epplan/slurm"

	"github.com/epplan/epplan/internal/cli/terminal"
)

func leversCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:  "levers",
		Usage: "what epd changed in Slurm beside clocks, and its advice; or take it back",
		Description: "Counts jobs whose nice or preference, and nodes whose weight or power has a part of " +
			"epd's, and lists what\n" +
			"it would do or what users might do. With [live.plan] it also shows the plan in force of what waits and how\n" +
			"starts kept to it, with it or a policy in [live.pick] the order that is wanted of pending jobs, and with\n" +
			"weights in [live.sharing] how nodes suit the next job for a part of a GPU (for operators).\n" +
			"With --undo everything is taken back, and nothing is changed again\n" +
			"before the configuration is another one.\n" +
			"Example: epplan levers",
		Flags: []cli.Flag{
			anySocketFlag(publicFirst), terminal.JSONFlag(),
			terminal.BoolFlag("undo", "take everything back (for root and Slurm's user)"), dryrun.Flag(),
		},
		Action: t.Runs(terminal.TakesNone(runLevers)),
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
	if err := t.PrintText(
		leverText(&now.Status) + planreport.InForceText(now.Plan, view.DateTime),
	); err != nil {
		return err
	}
	const most = 20
	for _, table := range []*report.Table{
		planreport.InForceTable(now.Plan, most, view.DateTime),
		planreport.InForceStarts(now.Plan, view.DateTime),
		adviceTable(now.Advice),
	} {
		if table == nil {
			continue
		}
		if err := t.PrintTable(c, table); err != nil {
			return err
		}
	}
	return nil
}

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
			"/var/lib/epplan-controller"+", or the folder that its --state names")
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

func leverText(s *steer.Status) string {
	var b strings.Builder
	if s.Nice+s.Prefer+s.Weights+s.Asleep == 0 {
		b.WriteString("nothing in Slurm is changed\n")
	}
	for _, part := range terminal.Present(terminal.Count(s.Nice, "jobs behind others by their nice"),
		terminal.Count(s.Prefer, "jobs that prefer nodes with a feature"),
		terminal.Count(s.Weights, "nodes with another weight"),
		terminal.Count(s.Asleep, "nodes powered down"),
		terminal.Count(len(s.Left), "jobs left alone, for somebody else changed them")) {
		fmt.Fprintf(&b, "%s: %d\n", part.What, part.N)
	}
	if s.Paused {
		b.WriteString("paused: everything was taken back, until the configuration is another one\n")
	}
	if s.Policy != "" {
		b.WriteString(
			"order of pending jobs by policy " + terminal.Printable(s.Policy) + orderText(s.Order) + "\n",
		)
	}
	b.WriteString(sharedOrderText(s.Shared))
	for _, note := range s.Notes {
		b.WriteString("note: " + terminal.Printable(note) + "\n")
	}
	if s.Trouble != "" {
		b.WriteString("trouble: " + terminal.Printable(s.Trouble) + "\n")
	}
	return b.String()
}

// sharedOrderText is in which order nodes suit the next job for a part of a GPU.
func sharedOrderText(o *colocate.Order) string {
	if o == nil {
		return ""
	}
	if o.Note != "" {
		return fmt.Sprintf("nodes with shared GPUs for job %s: as they were, %s\n", o.Job,
			terminal.Printable(o.Note))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "nodes with shared GPUs for job %s:\n", o.Job)
	const most = 10
	for i := range o.Nodes[:min(len(o.Nodes), most)] {
		n := &o.Nodes[i]
		what := fmt.Sprintf("a GPU alone, for %.0f W more", n.RisesW)
		switch {
		case !n.Fits:
			what = "doesn't fit: " + terminal.Printable(n.Why)
		case len(n.Beside) > 0:
			what = fmt.Sprintf("correlation %.2f, %.2f times the time alone, for %.0f W more", n.Correlation,
				n.Slowdown, n.RisesW)
		}
		fmt.Fprintf(&b, "  %s: %s\n", terminal.Printable(n.Name), what)
	}
	return b.String()
}

// orderText lists jobs, the first first.
func orderText(order []slurm.JobID) string {
	const most = 20
	var b strings.Builder
	for i, id := range order {
		switch i {
		case 0:
			b.WriteString(": ")
		case most:
			fmt.Fprintf(&b, " … (%d)", len(order))
			return b.String()
		default:
			b.WriteString(", ")
		}
		b.WriteString(id.String())
	}
	return b.String()
}

func adviceTable(list []steer.Advice) *report.Table {
	if len(list) == 0 {
		return nil
	}
	return report.TableOf(list, func(row *report.Row, a *steer.Advice) {
		about := a.Node
		if a.Job > 0 {
			about = "job " + a.Job.String()
		}
		row.Add(report.Column{Key: "kind", Head: "advice", Left: true}, report.Text(string(a.Kind)))
		row.Add(report.Column{Key: "about", Head: "about", Left: true}, report.Text(about))
		row.Add(report.Column{Key: "user", Head: "user", Left: true, Max: 16}, report.Text(a.User))
		row.Add(report.Column{Key: "partition", Head: "partition", Left: true, Max: 16},
			report.Text(a.Partition))
		row.Add(report.Column{Key: "text", Head: "what", Left: true, Max: 100}, report.Text(a.Text))
	})
}

func dryRunUndo(c *cli.Context) (stop bool, err error) {
	if !dryrun.IsSet(c) {
		return false, nil
	}
	now, err := ask(c, controllerFirst, (*epdapi.Client).Levers)
	if err != nil {
		return true, err
	}
	all := terminal.Present(terminal.Count(now.Nice, "nice of "+report.Plural(now.Nice, "job")),
		terminal.Count(now.Prefer, "preference of "+report.Plural(now.Prefer, "job")),
		terminal.Count(now.Weights, "weight of "+report.Plural(now.Weights, "node")),
		terminal.Count(now.Asleep, "sleep of "+report.Plural(now.Asleep, "node")))
	steps := terminal.TextsOf(all, func(part terminal.Counted) string { return "take back the " + part.What })
	return dryrun.Announce(c, steps...)
}
