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
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/taskset"
	"github.com/epplan/epplan/internal/trace"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/replay"
)

var pwrSections = []string{"power", "savings", "grar"}

func reproducePWRCommand(t *terminal) *cli.Command {
	return &cli.Command{
		Name:  "pwr",
		Usage: "the PWR+FGD paper: power, savings against FGD and allocation ratios of figures 1 to 10",
		Description: "Every trace family of the paper that the folder of --data has " +
			"(openb_pod_list_FAMILY.csv and the node list)\n" +
			"is replayed by all the paper's policies on --seeds streams; the paper averages ten. What its text states comes\n" +
			"first. Without --data the trace is a synthetic one, marked as such: its figures are only roughly the paper's.\n" +
			"Example: epplan reproduce pwr --only savings --seeds 1",
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name: "data", DefaultText: "a synthetic trace", Usage: "`FOLDER` with the trace's lists",
			},
			sectionsFlag(pwrSections),
			between(&cli.IntFlag{
				Name: "seeds", Usage: "`COUNT` of streams to average over", Value: paperSeeds,
			}, 1, maxSeeds),
			streamSeedFlag(),
			&cli.StringFlag{Name: "svg", Usage: "`FOLDER` to draw each family's figures to"},
			workersFlag(),
			jsonFlag(), csvFlag(),
		},
		Action: t.runs(takesNone(runReproducePWR)),
	}
}

const paperSeeds = 10

func runReproducePWR(t *terminal, c *cli.Context) error {
	if dir := c.String("svg"); dir != "" && !isDir(dir) {
		return usagef("--svg %s, want a folder that is there", dir)
	}
	if err := checkFolder(c, "data"); err != nil {
		return err
	}
	if c.String("data") == "" {
		t.message("note", "no --data: a synthetic trace in place of Alibaba's")
	}
	return reproduceOne(t, c, &reproducer{
		pwrDir: c.String("data"), svgDir: c.String("svg"), jobs: c.Int("jobs"),
		reproduceScale: reproduceScale{streams: c.Int("seeds")},
	})
}

type pwrPaper struct {
	dir   string // with the trace's lists; empty: a synthetic trace
	first uint64 // seed of the first stream
	seeds int    // of streams
	jobs  int    // runs at a time
	draw  func(in *inflation, runs [][]inflationRun) error
}

func (p *pwrPaper) note() string {
	return fmt.Sprintf("streams per figure: %d, seeds from %d", p.seeds, p.first)
}

func (p *pwrPaper) reproduce(
	ctx context.Context, t *terminal, count newProgress, sections []string,
) ([]finding, error) {
	families, err := p.families(t)
	if err != nil {
		return nil, err
	}
	return p.replay(ctx, t, count, families, sections)
}

// replay runs the families one after another: each takes all processors.
func (p *pwrPaper) replay(
	ctx context.Context, t *terminal, count newProgress, families []*inflation, sections []string,
) ([]finding, error) {
	total := 0
	for _, in := range families {
		total += in.runCount()
	}
	progress := count("", total)
	defer progress.Finish()
	all := make([]finding, 0, 64*len(families))
	var warnings []error
	for _, in := range families {
		runs, err := in.runAll(ctx, p.jobs, progress)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", in.label, err)
		}
		all = append(all, in.paperFindings(runs, sections)...)
		warnings = append(warnings, in.unplaceableArrivals(runs)...)
		if p.draw != nil {
			if err := p.draw(in, runs); err != nil {
				return nil, err
			}
		}
	}
	progress.Finish()
	t.warn(warnings)
	slices.SortStableFunc(all, func(a, b finding) int {
		return slices.Index(pwrSections, a.section) - slices.Index(pwrSections, b.section)
	})
	return all, nil
}

func drawFamily(ctx context.Context, t *terminal, dir string, in *inflation, runs [][]inflationRun) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	charts := in.charts(runs)
	all := make([]report.Chart, len(charts))
	for i := range charts {
		all[i] = charts[i].Chart
	}
	return t.write(filepath.Join(dir, fileName(in.label)+".svg"), func(w io.Writer) error {
		return report.WriteCharts(w, in.label+": "+in.streamsText(), all)
	})
}

// families are the inflations of all trace families that are there, or of
// a synthetic trace.
func (p *pwrPaper) families(t *terminal) ([]*inflation, error) {
	if p.dir == "" {
		in, err := syntheticFamily(p.first)
		if err != nil {
			return nil, err
		}
		return []*inflation{in}, in.usePaperSettings(p)
	}
	var families []*inflation
	for _, name := range paperFamilyNames {
		names := &traceFiles{}
		if err := names.find(p.dir, name); errors.Is(err, errNoSuchFile) {
			continue
		} else if err != nil {
			return nil, err
		}
		in := &inflation{}
		if err := in.read(t, names); err != nil {
			return nil, err
		}
		if err := in.usePaperSettings(p); err != nil {
			return nil, err
		}
		families = append(families, in)
	}
	if len(families) == 0 {
		return nil, fmt.Errorf("%s: no lists of any family, want openb_pod_list_default.csv or others and "+
			"openb_node_list_gpu_node.csv", p.dir)
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

func (in *inflation) usePaperSettings(p *pwrPaper) error {
	in.until = replay.PaperLoad
	for i := range p.seeds {
		in.seeds = append(in.seeds, p.first+uint64(i))
	}
	in.loads = []float64{0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1}
	return in.usePolicies(paperPlacements(), "fgd")
}

// extremes are the least and the greatest of a quantity of some policies at the
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
