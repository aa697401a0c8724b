package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/lab/replay"
	"github.com/epplan/epplan/lab/reproduction"
	"github.com/epplan/epplan/lab/taskset"
	"github.com/epplan/epplan/lab/trace"
	"github.com/epplan/epplan/planner/fleet"
)

var paperPWR = paper{ //nolint:gochecknoglobals // constant
	reproduction.Paper{
		Name: "pwr", Title: "PWR+FGD: power- and fragmentation-aware placement",
		Page: "lab/docs/papers/pwr-fgd.md", Sections: pwrSections,
	},
	computePWR,
}

var pwrSections = []string{"power", "savings", "grar"}

func reproducePWRCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:  "pwr",
		Usage: "the PWR+FGD paper: power, savings against FGD and allocation ratios of figures 1 to 10",
		Description: "Every trace family of the paper that the folder of --data has " +
			"(openb_pod_list_FAMILY.csv and the node list)\n" +
			"is replayed by all the paper's policies on --seeds streams; the paper averages ten. What its text states comes\n" +
			"first. Without --data the trace is a synthetic one, marked as such: its figures are only roughly the paper's.\n" +
			"Example: epplab reproduce pwr --only savings --seeds 1",
		Flags: append(exhibitFlags(&paperPWR),
			&cli.StringFlag{
				Name: "data", DefaultText: "a synthetic trace", Usage: "`FOLDER` with the trace's lists",
			},
			terminal.Between(&cli.IntFlag{
				Name: "seeds", Usage: "`COUNT` of streams to average over", Value: paperSeeds,
			}, 1, maxSeeds),
			streamSeedFlag(),
			&cli.StringFlag{Name: "svg", Usage: "`FOLDER` to draw each family's figures to"},
			terminal.WorkersFlag()),
		Action: t.Runs(terminal.WithoutArgs(runReproducePWR)),
	}
}

const paperSeeds = 10

func runReproducePWR(t *terminal.Terminal, c *cli.Context) error {
	if dir := c.String("svg"); dir != "" && !terminal.IsDir(dir) {
		return terminal.Usagef("--svg %s, want a folder that is there", dir)
	}
	if err := checkFolder(c, "data"); err != nil {
		return err
	}
	if c.String("data") == "" {
		t.Message("note", "no --data: a synthetic trace in place of Alibaba's")
	}
	return reproduceOne(t, c, &paperPWR, &reproducer{
		pwrDir: c.String("data"), svgDir: c.String("svg"), jobs: c.Int("jobs"),
		reproduceScale: reproduceScale{streams: c.Int("seeds")},
	})
}

// computePWR replays the families one after another: each takes all processors.
func computePWR(ctx context.Context, r *reproducer) (*reproduction.Result, error) {
	families, err := r.families()
	if err != nil {
		return nil, err
	}
	total := 0
	for _, in := range families {
		total += in.runCount()
	}
	progress := r.count("", total)
	defer progress.Finish()
	var findings []reproduction.Finding
	var curves []reproduction.Curves
	var warnings []error
	for _, in := range families {
		all, err := in.parts(r.jobs).RunWith(ctx, progress)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", in.label, err)
		}
		runs := in.byPolicy(all)
		findings = append(findings, in.paperFindings(runs, r.sections)...)
		warnings = append(warnings, in.unplaceableArrivals(runs)...)
		charts := in.charts(runs)
		if r.svgDir != "" {
			if err := drawFamily(ctx, r, in, charts); err != nil {
				return nil, err
			}
		}
		curves = append(curves, reproduction.Curves{Family: in.label, Charts: charts})
	}
	progress.Finish()
	r.t.Warn(warnings)
	slices.SortStableFunc(findings, func(a, b reproduction.Finding) int {
		return slices.Index(pwrSections, a.Section) - slices.Index(pwrSections, b.Section)
	})
	found := r.result(findings)
	found.Curves = curves
	found.Drawn = fmt.Sprintf("streams per figure: %d, seeds from %d", r.streams, r.firstStream)
	return found, nil
}

func drawFamily(ctx context.Context, r *reproducer, in *inflation, charts []report.Chart) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return r.t.Write(filepath.Join(r.svgDir, fileName(in.label)+".svg"), func(w io.Writer) error {
		return report.WriteCharts(w, in.label+": "+in.streamsText(), charts)
	})
}

// families returns the inflations of all trace families that are there, or of
// a synthetic trace.
func (r *reproducer) families() ([]*inflation, error) {
	if r.pwrDir == "" {
		in, err := syntheticFamily(r.firstStream)
		if err != nil {
			return nil, err
		}
		return []*inflation{in}, in.usePaperSettings(r)
	}
	var families []*inflation
	for _, name := range paperFamilyNames {
		names := &traceFiles{}
		if err := names.find(r.pwrDir, name); errors.Is(err, errNoSuchFile) {
			continue
		} else if err != nil {
			return nil, err
		}
		in := &inflation{}
		if err := in.read(r.t, names); err != nil {
			return nil, err
		}
		if err := in.usePaperSettings(r); err != nil {
			return nil, err
		}
		families = append(families, in)
	}
	if len(families) == 0 {
		return nil, fmt.Errorf("%s: no lists of any family, want openb_pod_list_default.csv or others and "+
			"openb_node_list_gpu_node.csv", r.pwrDir)
	}
	return families, nil
}

// paperFamilyNames are the traces that the paper replays, as their lists are
// called.
var paperFamilyNames = []string{
	"default",
	"gpushare40", "gpushare60", "gpushare80", "gpushare100",
	"multigpu20", "multigpu30", "multigpu40", "multigpu50",
	"gpuspec10", "gpuspec20", "gpuspec25", "gpuspec33",
}

func syntheticFamily(seed uint64) (*inflation, error) {
	made, err := taskset.GenerateOpenb(taskset.OpenbSpec{}, rand.New(rand.NewPCG(seed, seed)))
	if err != nil {
		return nil, err
	}
	loaded := &clusterTrace{pods: made.Pods, rows: made.Nodes}
	if loaded.kinds, err = trace.Kinds(loaded.rows, "synthetic", config.BuiltinProfiles()); err != nil {
		return nil, err
	}
	in := &inflation{trace: loaded, label: "synthetic", demands: trace.Demands(loaded.pods)}
	in.workload = fleet.NewWorkload(in.demands, fleet.PaperCover)
	return in, nil
}

func (in *inflation) usePaperSettings(r *reproducer) error {
	in.until = replay.PaperLoad
	for i := range r.streams {
		in.seeds = append(in.seeds, r.firstStream+uint64(i))
	}
	in.loads = []float64{0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1}
	return in.usePolicies(paperPlacements(), "fgd")
}

// extremes returns the least and the greatest of a quantity of some policies at the
// points of the mean curves within loads.
func (in *inflation) extremes(
	from, to float64, policies []string, at func(policy, row int) float64,
) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for row := int(math.Round(100 * from)); row <= int(math.Round(100*to)); row++ {
		for _, name := range policies {
			p := slices.IndexFunc(in.policies, in.named(name))
			v := at(p, row)
			low, high = min(low, v), max(high, v)
		}
	}
	return low, high
}
