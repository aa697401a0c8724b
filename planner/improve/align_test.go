package improve_test

import (
	"context"
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/shareddata"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/improve"
	"github.com/epplan/epplan/planner/policy"
)

// paperProblem joins a task set of the EDL reference with the paper's cluster.
func paperProblem(tb testing.TB, set, interval string, l int) *planner.Problem {
	tb.Helper()
	r, err := dvfsmodel.RangeByName(interval)
	if err != nil {
		tb.Fatal(err)
	}
	p := &planner.Problem{Cluster: planner.Cluster{Name: "paper", Slot: 1, Classes: []planner.NodeClass{
		{Name: "pair", Model: "paper", GPUs: l, IdleW: 37, TurnOn: 90},
	}}}
	for _, row := range readTable(tb, shareddata.Path(tb, "edl/tasksets/"+set+".csv")) {
		p.Tasks = append(p.Tasks, planner.Task{
			ID: row["id"], Arrival: num(tb, row["arrival"]), Deadline: num(tb, row["deadline"]), Due: num(tb, row["deadline"]),
			Limit: math.Inf(1), Share: 1,
			Options: []planner.Option{{Model: "paper", GPUs: 1, Response: &dvfsmodel.Continuous{Range: &r, Params: dvfsmodel.Params{
				P0: dvfsmodel.Watt(num(tb, row["P0"])), Gamma: dvfsmodel.Watt(num(tb, row["gamma"])), C: dvfsmodel.Watt(num(tb, row["c"])),
				D: num(tb, row["D"]), Delta: num(tb, row["delta"]), T0: num(tb, row["t0"]),
			}}}},
		})
	}
	p.Mode = planner.ModeOf(p.Tasks)
	return p
}

func readTable(tb testing.TB, path string) []map[string]string {
	tb.Helper()
	f, err := os.Open(path) //nolint:gosec // a fixture
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
		for i, name := range records[0] {
			row[name] = record[i]
		}
		rows = append(rows, row)
	}
	return rows
}

func num(tb testing.TB, s string) float64 {
	tb.Helper()
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return x
}


var shared = []string{"off_tiny", "off_u0.2", "off_u0.6", "off_u1.0", "off_u1.0_fitted", "off_u1.6"}

func TestTry(t *testing.T) {
	bounds := map[string]float64{}
	for _, r := range readTable(t, shareddata.Path(t, "edl/bounds.csv")) {
		bounds[r["set"]+r["interval"]] = num(t, r["lower_bound"])
	}
	moves, _ := strconv.Atoi(os.Getenv("MOVES"))
	sets := shared
	if s := os.Getenv("SET"); s != "" {
		sets = []string{s}
	}
	ls := []int{2, 4, 8, 16}
	if s := os.Getenv("L"); s != "" {
		n, _ := strconv.Atoi(s)
		ls = []int{n}
	}
	for _, set := range sets {
		for _, iv := range []string{"wide", "narrow"} {
			line := set + " " + iv
			for _, l := range ls {
				p := paperProblem(t, set, iv, l)
				pol, err := policy.Parse("edl", policy.DefaultParams())
				if err != nil { t.Fatal(err) }
				plan, err := planner.Solve(context.Background(), p, pol, nil)
				if err != nil { t.Fatal(err) }
				start := time.Now()
				al := improve.Align{Moves: moves}
				better, err := al.Improve(context.Background(), p, plan, rand.New(rand.NewPCG(1, 1)))
				if err != nil { t.Fatal(err) }
				if err := planner.Check(p, better); err != nil { t.Error(err) }
				d := time.Since(start)
				line += "  " + strconv.FormatFloat(100*(float64(better.Ledger.Total())/bounds[set+iv]-1), 'f', 4, 64) + "% " + strconv.FormatFloat(d.Seconds(), 'f', 2, 64)+"s"
			}
			t.Log(line)
		}
	}
}
