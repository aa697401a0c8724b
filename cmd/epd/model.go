package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/slurm"
)

// modelCommand is about the models of workloads that a running epd uses.
func modelCommand(stdout io.Writer) *cli.Command {
	socket := &cli.StringFlag{
		Name: "socket", Usage: "`PATH` at which epd listens",
		DefaultText: epdapi.ControllerSocket + ", then " + epdapi.AgentSocket,
	}
	asJSON := &cli.BoolFlag{Name: "json", Usage: "print JSON"}
	return &cli.Command{
		Name: "model", Usage: "see how workloads' models fare, and choose another version",
		HideHelpCommand: true, OnUsageError: refuseUsage,
		Subcommands: []*cli.Command{
			{
				Name: "list", Usage: "the models in use, or all versions of one",
				UsageText: "epd model list [OPTIONS] [WORKLOAD GPU_MODEL]",
				Description: "A model whose predictions missed run after run is out of use: such a " +
					"workload runs at default clocks.\n" +
					"Example: epd model list",
				HideHelpCommand: true, OnUsageError: refuseUsage, Flags: []cli.Flag{socket, asJSON},
				Action: func(c *cli.Context) error { return listModels(c, stdout) },
			},
			{
				Name: "use", Usage: "have a version count from now on",
				UsageText: "epd model use [OPTIONS] WORKLOAD GPU_MODEL VERSION",
				Description: "VERSION 0 means none: the workload runs at default clocks. The choice stays " +
					"until epd model use --free,\n" +
					"over restarts too, unless the model misses run after run. Flags come first.\n" +
					"Example: epd model use --note 'before the driver changed' 3f2a V100 4",
				HideHelpCommand: true, OnUsageError: refuseUsage,
				Flags: []cli.Flag{
					socket, asJSON, terminal.DryRunFlag(),
					&cli.StringFlag{Name: "note", Usage: "`WHY`, for those who look later"},
					&cli.BoolFlag{
						Name: "free", Usage: "let what is learnt replace the model again (without a VERSION)",
					},
				},
				Action: func(c *cli.Context) error { return useModel(c, stdout) },
			},
		},
	}
}

// askTime is how long a question to epd may take.
const askTime = 10 * time.Second

// askEPD asks the running epd.
func askEPD[T any](c *cli.Context, question func(context.Context, *epdapi.Client) (T, error)) (T, error) {
	sockets := []string{epdapi.ControllerSocket, epdapi.AgentSocket}
	if path := c.String("socket"); path != "" {
		sockets = []string{path}
	}
	ctx, cancel := context.WithTimeout(c.Context, askTime)
	defer cancel()
	return question(ctx, epdapi.New(sockets...))
}

// listModels prints models.
func listModels(c *cli.Context, stdout io.Writer) error {
	switch c.NArg() {
	case 0:
		list, err := askEPD(c, func(ctx context.Context, epd *epdapi.Client) (*epdapi.ModelList, error) {
			return epd.Models(ctx)
		})
		if err != nil {
			return err
		}
		return printResult(c, stdout, list, standingTable(list.Models))
	case 2: //nolint:mnd // workload, GPU model
		list, err := askEPD(c, func(ctx context.Context, epd *epdapi.Client) (*epdapi.ModelVersions, error) {
			return epd.ModelVersions(ctx, c.Args().Get(0), c.Args().Get(1))
		})
		if err != nil {
			return err
		}
		return printResult(c, stdout, list, versionTable(list))
	}
	return usagef("epd model list takes a workload and a GPU model, or nothing; got %d arguments", c.NArg())
}

// useModel chooses a model.
func useModel(c *cli.Context, stdout io.Writer) error {
	free := c.Bool("free")
	want := 3
	if free {
		want--
	}
	if c.NArg() != want {
		return usagef("epd model use takes WORKLOAD GPU_MODEL VERSION, with --free no version; got %d "+
			"arguments (flags come first)", c.NArg())
	}
	choice := epdapi.ModelChoice{
		Workload: c.Args().Get(0), GPUModel: c.Args().Get(1), Note: c.String("note"), Free: free,
	}
	if !free {
		version, err := strconv.ParseInt(c.Args().Get(2), 10, 64)
		if err != nil || version < 0 {
			return usagef("version %q, want 0 (none) or a number of epd model list",
				slurm.Printable(c.Args().Get(2), 40))
		}
		choice.Version = version
	}
	if stop, err := terminal.Announce(c, choiceStep(&choice)); stop {
		return err
	}
	standing, err := askEPD(c, func(ctx context.Context, epd *epdapi.Client) (*epdapi.ModelStatus, error) {
		return epd.UseModel(ctx, &choice)
	})
	if err != nil {
		return err
	}
	return printResult(c, stdout, standing, standingTable([]epdapi.ModelStatus{*standing}))
}

// choiceStep returns what a choice would do.
func choiceStep(choice *epdapi.ModelChoice) string {
	what := fmt.Sprintf("version %d of the model", choice.Version)
	switch {
	case choice.Free:
		return fmt.Sprintf("let what is learnt replace the model of %s on %s again", choice.Workload,
			choice.GPUModel)
	case choice.Version == 0:
		what = "no model"
	}
	return fmt.Sprintf("have epd use %s for %s on %s, until it is freed", what, choice.Workload,
		choice.GPUModel)
}

// printResult prints a result.
func printResult(c *cli.Context, stdout io.Writer, result any, table *report.Table) error {
	if c.Bool("json") {
		return report.WriteJSON(stdout, result, "  ")
	}
	if table.Len == 0 {
		_, err := fmt.Fprintln(stdout, "no such model yet")
		return err
	}
	return table.WriteText(stdout, &report.TextOptions{})
}

// standingTable returns how models fare.
func standingTable(list []epdapi.ModelStatus) *report.Table {
	rows := make([][]report.Value, len(list))
	for i := range list {
		m := &list[i]
		from := "its own runs"
		switch {
		case m.Version == 0:
			from = "none"
		case m.Prior:
			from = "few runs and a prior"
		}
		rows[i] = []report.Value{
			report.Text(m.Workload), report.Text(m.GPUModel), report.Text(strconv.FormatInt(m.Version, 10)),
			report.Text(from),
			report.Count(m.Samples), report.Count(m.Missed), yesValue(m.Pinned),
			report.NonEmpty(m.Chosen.Words(localTime)), report.Text(cmp.Or(m.Note, m.Chosen.Why)),
			report.NonEmpty(m.LastJob.Name), report.NonEmpty(m.LastJob.User),
			report.NonEmpty(m.LastJob.Partition),
		}
	}
	return &report.Table{
		Columns: []report.Column{
			{Head: "workload", Left: true},
			{Head: "GPU model", Left: true},
			{Head: "version"},
			{Head: "made of", Left: true},
			{Head: "runs"},
			{Head: "missed"},
			{Head: "pinned", Left: true},
			{Head: "chosen", Left: true, Max: 48},
			{Head: "note", Left: true, Max: 60},
			{Head: "last job", Left: true, Max: 32},
			{Head: "user", Left: true, Max: 16},
			{Head: "partition", Left: true, Max: 16},
		},
		Len: len(rows), Rows: slices.Values(rows),
	}
}

// localTime returns a time on the clock of whoever reads it.
func localTime(at time.Time) string { return at.Local().Format(time.DateTime) }

func yesValue(b bool) report.Value {
	if b {
		return report.Text("yes")
	}
	return report.Value{}
}

// versionTable returns the versions of a model.
func versionTable(list *epdapi.ModelVersions) *report.Table {
	rows := make([][]report.Value, len(list.Versions))
	for i := range list.Versions {
		m := &list.Versions[i]
		rows[i] = []report.Value{
			report.Text(strconv.FormatInt(m.Version, 10)), yesValue(m.InUse), report.Count(m.Samples),
			report.Text(localTime(m.Created)), report.NonEmpty(m.Chosen.Words(localTime)),
			report.Text(m.Note),
		}
	}
	return &report.Table{
		Columns: []report.Column{
			{Head: "version"},
			{Head: "in use", Left: true},
			{Head: "runs"},
			{Head: "made", Left: true},
			{Head: "chosen", Left: true, Max: 48},
			{Head: "note", Left: true, Max: 60},
		},
		Len: len(rows), Rows: slices.Values(rows),
	}
}
