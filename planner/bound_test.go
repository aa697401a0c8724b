package planner_test

import (
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/shareddata"
	"github.com/epplan/epplan/planner"
)

// boundRows reads a table of the shared reference by column name.
func boundRows(tb testing.TB, name string) []map[string]string {
	tb.Helper()
	f, err := os.Open(shareddata.Path(tb, "edl/"+name))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		tb.Fatal(err)
	}
	rows := make([]map[string]string, 0, len(records)-1)
	for _, record := range records[1:] {
		row := make(map[string]string, len(record))
		for i, column := range records[0] {
			row[column] = record[i]
		}
		rows = append(rows, row)
	}
	return rows
}

func boundNumber(tb testing.TB, s string) float64 {
	tb.Helper()
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return x
}

// boundProblem joins a task set of the reference with the paper's cluster.
func boundProblem(tb testing.TB, set, interval string, l int) *planner.Problem {
	tb.Helper()
	r, err := dvfsmodel.RangeByName(interval)
	if err != nil {
		tb.Fatal(err)
	}
	p := &planner.Problem{Cluster: planner.Cluster{Slot: 1, Classes: []planner.NodeClass{
		{Name: "pair", Model: "paper", GPUs: l, IdleW: 37, TurnOn: 90},
	}}}
	for _, row := range boundRows(tb, "tasksets/"+set+".csv") {
		watt := func(column string) dvfsmodel.Watt { return dvfsmodel.Watt(boundNumber(tb, row[column])) }
		p.Tasks = append(p.Tasks, planner.Task{
			ID: row["id"], Arrival: boundNumber(tb, row["arrival"]), Deadline: boundNumber(tb, row["deadline"]),
			Due: boundNumber(tb, row["deadline"]), Limit: math.Inf(1), Share: 1,
			Options: []planner.Option{{Model: "paper", GPUs: 1, Response: &dvfsmodel.Continuous{Range: &r, Params: dvfsmodel.Params{
				P0: watt("P0"), Gamma: watt("gamma"), C: watt("c"),
				D: boundNumber(tb, row["D"]), Delta: boundNumber(tb, row["delta"]), T0: boundNumber(tb, row["t0"]),
			}}}},
		})
	}
	p.Mode = planner.ModeOf(p.Tasks)
	return p
}

func TestRunBoundEqualsTheReference(t *testing.T) {
	for _, row := range boundRows(t, "bounds.csv") {
		want := boundNumber(t, row["lower_bound"])
		for _, l := range []int{1,2,4,8, 16} {
			b := planner.LowerBound(boundProblem(t, row["set"], row["interval"], l))
			if off := math.Abs(float64(b.Run)/want - 1); off > 1e-9 {
				t.Errorf("%s %s: %.12g J, want %.12g J (off by %.2g)", row["set"], row["interval"], float64(b.Run), want, off)
			}
			t.Log(row["set"], row["interval"], l, b.Terms, 100*(b.Value/b.Run-1))
		}
	}
}
