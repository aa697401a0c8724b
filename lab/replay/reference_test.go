package replay_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/textfile"
	"github.com/epplan/epplan/lab/replay"
	"github.com/epplan/epplan/lab/trace"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/policy"
)

// The reference traces, and the policies by their names there and here.
var (
	families = []string{"default", "gpushare40", "multigpu20", "gpuspec10"}
	policies = []struct{ there, here string }{
		{"FGD", "fgd"},
		{"PWR", "pwr"},
		{"PWR50_FGD950", "pwr+fgd:0.05"},
		{"PWR100_FGD900", "pwr+fgd:0.1"},
		{"PWR200_FGD800", "pwr+fgd:0.2"},
		{"BestFit", "bestfit"},
		{"DotProd", "dotprod"},
		{"GpuPacking", "gpupacking"},
		{"GpuClustering", "gpuclustering"},
		{"Random", "random"},
	}
)

// summaryLoads are the loads of summary.csv.
var summaryLoads = []float64{0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 1}

// family is a reference trace as it is read.
type family struct {
	name     string
	pods     []trace.Pod
	demands  []fleet.Demand
	arrivals []trace.Arrival
	nodes    []trace.NodeRow
	kinds    []*fleet.Kind
	workload fleet.Workload
}

// open reads a file of the reference data.
func open[T any](t *testing.T, name string, read func(io.Reader, string) (T, error)) T {
	t.Helper()
	file, err := os.Open(shareddata.Path(t, "openb/"+name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	in, err := textfile.Decompress(file, name)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := read(in, name)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func readFamily(t *testing.T, name string) *family {
	t.Helper()
	f := &family{name: name, pods: open(t, "openb_pod_list_"+name+".csv", trace.ReadPods)}
	f.arrivals = open(t, "arrivals_"+name+"_42.csv.gz",
		func(r io.Reader, name string) ([]trace.Arrival, error) {
			return trace.ReadArrivals(r, name, f.pods)
		})
	f.nodes = open(t, "nodes_"+name+"_42.csv", trace.ReadNodes)
	f.demands = make([]fleet.Demand, len(f.pods))
	for i := range f.pods {
		f.demands[i] = f.pods[i].Demand
	}
	var err error
	if f.kinds, err = trace.Kinds(f.nodes, name, config.BuiltinProfiles()); err != nil {
		t.Fatal(err)
	}
	f.workload = fleet.NewWorkload(f.demands, fleet.PaperCover)
	return f
}

// given returns the reference stream.
func (f *family) given() *replay.Stream {
	rows := make([]int32, len(f.arrivals))
	for i := range f.arrivals {
		rows[i] = int32(f.arrivals[i].Pod)
	}
	return replay.NewStream(f.demands, rows)
}

// outcome is a run as it is compared with the reference.
type outcome struct {
	curve    []replay.LoadPoint
	readings []replay.Reading
	log      replay.DecisionLog
	tally    replay.Tally
}

// inflate runs a stream.
func (f *family) inflate(
	t *testing.T, placement string, kinds []*fleet.Kind, s *replay.Stream, loads []float64, seed uint64,
) *outcome {
	t.Helper()
	p, err := policy.ParsePlacement(placement)
	if err != nil {
		t.Fatal(err)
	}
	state := fleet.NewState(kinds)
	sampler, gauge := replay.NewSampler(f.workload, state), replay.NewLoadGauge(state, loads)
	out := &outcome{}
	out.tally, err = replay.Inflate(t.Context(), p.Chooser(f.workload, state, seed), s, sampler,
		gauge, &out.log)
	if err != nil {
		t.Fatal(err)
	}
	out.curve, out.readings = sampler.Points(), gauge.Readings()
	return out
}

func TestEveryPointAndEveryDecisionEqualsTheReference(t *testing.T) {
	summary := shareddata.Rows(t, shareddata.Path(t, "openb/summary.csv"))
	for _, name := range families {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := readFamily(t, name)
			stream := f.given()
			base := 0
			runs := make([]*outcome, len(policies))
			for i, p := range policies {
				runs[i] = f.inflate(t, p.here, f.kinds, stream, summaryLoads, 42)
				f.wantCurve(t, p.there, runs[i])
				f.wantDecisions(t, p.there, runs[i])
				f.wantSummary(t, summary, p.there, runs[i], runs[base])
			}
		})
	}
}

func (f *family) wantCurve(t *testing.T, there string, got *outcome) {
	t.Helper()
	want, err := os.ReadFile(shareddata.Path(t, fmt.Sprintf("openb/curves/%s_%s_42.csv", f.name, there)))
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := replay.WriteCurve(&text, got.curve); err != nil {
		t.Fatal(err)
	}
	wantText(t, f.name+" "+there, text.String(), string(want))
}

// wantDecisions compares decisions where there are some to compare with.
func (f *family) wantDecisions(t *testing.T, there string, got *outcome) {
	t.Helper()
	name := fmt.Sprintf("decisions/%s_%s_42.csv.gz", f.name, there)
	if _, err := os.Stat(filepath.Join(shareddata.Path(t, "openb"), filepath.FromSlash(name))); err != nil {
		return
	}
	want := open(t, name, func(r io.Reader, _ string) ([]byte, error) { return io.ReadAll(r) })
	var text bytes.Buffer
	task := func(i int) string { return f.arrivals[i].Name }
	node := func(i int) string { return f.nodes[i].Name }
	if err := replay.WriteDecisions(&text, got.log.Decisions, task, node); err != nil {
		t.Fatal(err)
	}
	wantText(t, f.name+" "+there, text.String(), string(want))
}

// wantText compares two tables and shows their first difference.
func wantText(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Errorf("%s, line %d: %q, want %q", what, i+1, g[i], w[i])
			return
		}
	}
	t.Errorf("%s: %d lines, want %d", what, len(g), len(w))
}

// Tolerances of summary.csv: savings in percentage points, powers and ratios as
// they are rounded there.
const (
	savingPoints  = 0.05
	ratioRounding = 5.1e-5
	wattRounding  = 0.51
)

func (f *family) wantSummary(t *testing.T, rows []map[string]string, there string, got, base *outcome) {
	t.Helper()
	for _, row := range rows {
		if row["trace"] != f.name || row["policy"] != there {
			continue
		}
		for i, load := range []string{"0.2", "0.4", "0.6", "0.8", "0.9", "0.95", "1.0"} {
			r := got.readings[i]
			near(t, row, "saving_pct_at_"+load, 100*(1-float64(r.Power/base.readings[i].Power)), savingPoints)
			near(t, row, "grar_at_"+load, r.Ratio, ratioRounding)
			near(t, row, "eopc_w_at_"+load, float64(r.Power), wattRounding)
		}
		near(t, row, "arrived_pods", float64(got.tally.Arrived), 0)
		near(t, row, "placed_pods", float64(got.tally.Placed()), 0)
		return
	}
	t.Errorf("%s %s isn't in the summary", f.name, there)
}

// near compares a cell, if the row has it.
func near(t *testing.T, row map[string]string, column string, got, within float64) {
	t.Helper()
	cell, ok := row[column]
	if !ok {
		return
	}
	if want := shareddata.Number(t, cell); !(math.Abs(got-want) <= within) {
		t.Errorf("%s %s %s is %v, want %v", row["trace"], row["policy"], column, got, want)
	}
}

func TestTheSimulatorsSeedLeadsToItsStreamAndItsOrderOfNodes(t *testing.T) {
	for _, name := range families {
		f := readFamily(t, name)
		tasks, order := f.draw(t, 42)
		for i, row := range tasks {
			if i >= len(f.arrivals) || f.arrivals[i].Pod != int(row) {
				t.Fatalf("%s: arrival %d of %d is row %d", name, i, len(tasks), row)
			}
		}
		if len(tasks) != len(f.arrivals) {
			t.Errorf("%s: %d arrivals, want %d", name, len(tasks), len(f.arrivals))
		}
		list := open(t, "openb_node_list_gpu_node.csv", trace.ReadNodes)
		for rank, node := range order {
			if list[node].Name != f.nodes[rank].Name {
				t.Fatalf("%s: node of rank %d is %s, want %s", name, rank, list[node].Name,
					f.nodes[rank].Name)
			}
		}
	}
}

// draw draws a stream and an order of the nodes.
func (f *family) draw(t *testing.T, seed uint64) (tasks []int32, order []int) {
	t.Helper()
	tasks, order, err := replay.DrawPaper(seed, f.demands, len(f.kinds), fleet.NewState(f.kinds).Capacity(),
		replay.PaperLoad)
	if err != nil {
		t.Fatal(err)
	}
	return tasks, order
}

// The reference averages this many streams, from the first seed on.
const (
	seeds     = 10
	firstSeed = 42
)

func TestMeansOverTenSeedsAreThoseOfTheReference(t *testing.T) {
	if testing.Short() {
		t.Skip("some hundred runs")
	}
	means := shareddata.Rows(t, shareddata.Path(t, "openb/summary_10seeds.csv"))
	for _, name := range families {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := readFamily(t, name)
			list := open(t, "openb_node_list_gpu_node.csv", trace.ReadNodes)
			var err error
			if f.kinds, err = trace.Kinds(list, name, config.BuiltinProfiles()); err != nil {
				t.Fatal(err)
			}
			sums := make([][]float64, len(policies))
			for i := range sums {
				sums[i] = make([]float64, len(summaryLoads))
			}
			for seed := range uint64(seeds) {
				f.addSavings(t, firstSeed+seed, sums)
			}
			for i, p := range policies {
				for j, load := range summaryLoads {
					f.wantMean(t, means, p.there, load, sums[i][j]/seeds)
				}
			}
		})
	}
}

// addSavings adds each policy's savings on the stream of a seed.
func (f *family) addSavings(t *testing.T, seed uint64, sums [][]float64) {
	t.Helper()
	tasks, order := f.draw(t, seed)
	kinds := make([]*fleet.Kind, len(f.kinds))
	for rank, node := range order {
		kinds[rank] = f.kinds[node]
	}
	stream := replay.NewStream(f.demands, tasks)
	var base *outcome
	for i, p := range policies {
		if p.there == "Random" {
			continue // not in the reference
		}
		got := f.inflate(t, p.here, kinds, stream, summaryLoads, seed)
		if base == nil {
			base = got
		}
		for j := range summaryLoads {
			sums[i][j] += 100 * (1 - float64(got.readings[j].Power/base.readings[j].Power))
		}
	}
}

func (f *family) wantMean(t *testing.T, rows []map[string]string, there string, load, got float64) {
	t.Helper()
	if there == "Random" {
		return // not in the reference
	}
	for _, row := range rows {
		if row["trace"] == f.name && row["policy"] == there && shareddata.Number(t, row["load"]) == load {
			near(t, row, "saving_pct", got, savingPoints)
			return
		}
	}
	t.Errorf("%s %s at %v isn't in the summary", f.name, there, load)
}
