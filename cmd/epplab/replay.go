package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/lab/jobarray"
	"github.com/epplan/epplan/lab/replay"
	"github.com/epplan/epplan/planner/policy"
)

func replayTraceCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "replay",
		Usage:     "fill a cluster with a trace's tasks by placement policies and compare their power",
		ArgsUsage: "[TRACE]",
		Description: "Tasks arrive one by one, are placed at once or dropped for good, and never leave. " +
			"TRACE is a folder with\n" +
			"nodes.csv and pods.csv, as epplab generate openb writes them, or with openb_node_list_gpu_node.csv and\n" +
			"openb_pod_list_FAMILY.csv; --pods and --nodes name other files. All may be compressed by gzip. Without\n" +
			"--arrivals the whole list arrives in random order, then tasks drawn from it up to --load, and nodes are in\n" +
			"random order, just as the paper's simulator makes them of a seed; with --seeds so many times, and the table\n" +
			"has means ± standard deviations. GRAR is the part of the GPUs asked for that was allocated. A saving\n" +
			"with * compares unequal work: what each policy refuses stands beside it, also tasks without GPUs. With\n" +
			"--departures tasks leave as they did in the trace, and wait where there is no room.\n" +
			"Policies of placement:\n" + placementList() +
			"Example: epplab replay demo --policy fgd,pwr,pwr+fgd:0.1 --seeds 2",
		Flags: slices.Concat(traceFlags(), []cli.Flag{
			&cli.StringFlag{Name: "family", Usage: "`FAMILY` of the task list in TRACE", Value: "default"},
			&cli.StringFlag{Name: "arrivals", Usage: "CSV `FILE` with the order in which tasks arrive"},
			&cli.StringFlag{
				Name:  "node-order",
				Usage: "CSV `FILE` with the nodes' ranks: of equally good ones the first is taken",
			},
			streamSeedFlag(),
			terminal.Between(&cli.IntFlag{
				Name: "seeds", Usage: "`COUNT` of streams, by consecutive seeds", Value: 1,
			}, 1, maxSeeds),
			&cli.Float64Flag{
				Name: "load", Usage: "`LOAD` at which streams end, in parts of the cluster's GPUs",
				Value: replay.PaperLoad,
			},
			&cli.StringSliceFlag{
				Name: "policy", Aliases: []string{"p"}, DefaultText: "the paper's and potential",
				Usage: "`POLICIES`, separated by commas; repeat it for more",
			},
			&cli.StringFlag{
				Name: "base", DefaultText: "fgd where there are several policies, else none",
				Usage: "`POLICY` against which savings are stated, or none",
			},
			&cli.StringFlag{
				Name: "loads", Usage: "arrived `LOADS` at which savings are stated, separated by commas",
				Value: "0.2,0.4,0.6,0.8,0.9,1.0",
			},
			&cli.StringFlag{
				Name: "curve", Usage: "CSV `FILE` to write with a run's curve; several runs: a folder",
			},
			&cli.StringFlag{
				Name:  "decisions",
				Usage: "CSV `FILE` to write with what became of each arrival; several runs: a folder",
			},
			&cli.StringFlag{
				Name: "svg", Usage: "`FILE` to draw saving, allocation and fragmentation to; a folder: " +
					"a file for each",
			},
			terminal.AtLeast(&cli.IntFlag{
				Name: "batch", Usage: "`COUNT` of arrivals that are placed together, the largest first",
				Value: 1,
			}, 1),
			terminal.WorkersFlag(),
			terminal.JSONFlag(), terminal.CSVFlag(), terminal.HTMLFlag(),
		}, departureFlags(), jobarray.Flags()),
		Action: t.Runs(swept(runReplay)),
	}
}

func placementList() string {
	var b strings.Builder
	for _, name := range policy.PlacementNames() {
		usage, doc := policy.DescribePlacement(name)
		fmt.Fprintf(&b, "  %-20s%s\n", usage, doc)
	}
	return b.String()
}

func runReplay(t *terminal.Terminal, c *cli.Context) error {
	if err := cmp.Or(terminal.CheckArgs(c, 0, 1, "a folder with a trace, or none"),
		terminal.CheckHTML(c, "curve", "decisions", "svg"), checkMode(c)); err != nil {
		return err
	}
	if c.Bool("departures") {
		return replayDepartures(t, c)
	}
	in, err := parseInflation(t, c)
	if err != nil {
		return err
	}
	out, err := newReplayFiles(c, in)
	if err != nil {
		return err
	}
	all, err := eachPart(t, c, in.parts(c.Int("jobs")))
	if err != nil {
		return err
	}
	runs := in.byPolicy(all)
	t.Warn(in.unplaceableArrivals(runs))
	if err := out.write(c.Context, t, in, runs); err != nil {
		return err
	}
	return t.WithHTML(c, func(w io.Writer) error { return writeInflationPage(t, w, in, runs) }, func() error {
		for _, note := range in.unequalWork(runs) {
			t.Message("note", note)
		}
		return t.PrintTable(c, in.table(runs))
	})
}

func parseInflation(t *terminal.Terminal, c *cli.Context) (*inflation, error) {
	names := append(paperPlacements(), policy.DefaultPlacement)
	if c.IsSet("policy") {
		names = splitPlacements(c.StringSlice("policy"))
	}
	runs, err := readRuns(c, names)
	if err != nil {
		return nil, err
	}
	in := &runs
	in.until, in.batch, in.log = c.Float64("load"), c.Int("batch"), c.String("decisions") != ""
	if !(in.until > 0 && in.until <= maxLoad) {
		return nil, terminal.Usagef("--load %v, want above 0 and up to %d", in.until, maxLoad)
	}
	if most := maxCurveRows / (100 * max(1, in.until)); float64(in.runCount()) > most {
		return nil, terminal.Usagef("%d runs up to load %v, want at most %.0f", in.runCount(), in.until, most)
	}
	if in.loads, err = readLoads(c.String("loads")); err != nil {
		return nil, err
	}
	files, err := traceNamesOf(c)
	if err != nil {
		return nil, err
	}
	return in, in.read(t, files)
}
