package improve_test

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
	"github.com/epplan/epplan/planner/improve"
)

// scalable returns a workload that takes so many seconds at default clocks.
func scalable(seconds float64) dvfsmodel.Params {
	return dvfsmodel.Params{P0: 50, Gamma: 30, C: 110, D: 0.9 * seconds, Delta: 0.6, T0: 0.1 * seconds}
}

// clockTable is 40 core by 2 memory clocks.
func clockTable(tb testing.TB) *dvfsmodel.Table {
	tb.Helper()
	pairs := make([]dvfsmodel.Setting, 0, 80)
	for _, mem := range []dvfsmodel.MHz{2500, 5000} {
		for i := range 40 {
			pairs = append(pairs, dvfsmodel.Setting{Core: dvfsmodel.MHz(700 + 20*i), Mem: mem})
		}
	}
	table, err := dvfsmodel.NewTable(dvfsmodel.Setting{Core: 1400, Mem: 5000}, pairs, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return table
}

// batch returns an offline problem of 40 jobs on nodes of four GPUs. Each job has
// twice the time that it needs at default clocks, or more.
func batch(respond func(i int, p dvfsmodel.Params) dvfsmodel.Response) *planner.Problem {
	p := &planner.Problem{Cluster: planner.Cluster{Classes: []planner.NodeClass{
		{Name: "node", Model: "A", GPUs: 4, IdleW: 37, HostW: 10},
	}}}
	for i := range 40 {
		seconds := 20 + 7*float64(i*i%31)
		due := seconds * (2 + float64(i%5))
		p.Tasks = append(p.Tasks, planner.Task{
			ID: fmt.Sprint("job", i), Deadline: due, Due: due, Limit: math.Inf(1), Share: 1,
			Options: []planner.Option{{Model: "A", GPUs: 1, Response: respond(i, scalable(seconds))}},
		})
	}
	return p
}

// problems returns one of each kind that a plan can have.
func problems(tb testing.TB) map[string]*planner.Problem {
	tb.Helper()
	wide, table := dvfsmodel.WideRange(), clockTable(tb)
	base := table.Nearest(1400, 5000)
	continuous := func(_ int, p dvfsmodel.Params) dvfsmodel.Response {
		return &dvfsmodel.Continuous{Params: p, Range: &wide}
	}
	all := map[string]*planner.Problem{
		"continuous clocks": batch(continuous),
		"clock table": batch(func(_ int, p dvfsmodel.Params) dvfsmodel.Response {
			return &dvfsmodel.Discrete{Params: p, Table: table, At: base}
		}),
		"frontier": batch(func(_ int, p dvfsmodel.Params) dvfsmodel.Response {
			return dvfsmodel.NewFrontier(p, table, base)
		}),
	}
	several := batch(continuous)
	for i := range several.Tasks {
		several.Tasks[i].Options[0].GPUs = 1 + i%3
	}
	all["several GPUs"] = several
	models := batch(continuous)
	models.Cluster.Classes = append(models.Cluster.Classes, planner.NodeClass{
		Name: "other", Model: "B", GPUs: 2, Count: 3, IdleW: 20,
	})
	for i := range models.Tasks {
		t := &models.Tasks[i]
		t.Options = append(t.Options, planner.Option{Model: "B", GPUs: 1, Response: t.Options[0].Response})
	}
	all["two GPU models"] = models
	limited := batch(continuous)
	limited.Cluster.Classes[0].Count = 6
	limited.Cluster.Classes[0].TurnOnDelay = 5
	limited.Cluster.OfflineTurnOn = true
	all["limited nodes that start slowly"] = limited
	tight := batch(continuous)
	tight.Cluster.Classes[0].CPUs = 8
	for i := range tight.Tasks {
		tight.Tasks[i].CPUs = float64(i % 4)
	}
	all["cores"] = tight
	slots := batch(continuous)
	slots.Cluster.Slot, slots.Start = 1, planner.StartSlot
	all["starts at slots"] = slots
	arrivals := batch(continuous)
	for i := range arrivals.Tasks {
		t := &arrivals.Tasks[i]
		t.Arrival = float64(3 * i)
		t.Deadline += t.Arrival
		t.Due = t.Deadline
	}
	arrivals.Mode = planner.Clairvoyant
	all["arrivals"] = arrivals
	return all
}

func TestEveryKindOfPlanGetsBetter(t *testing.T) {
	for name, p := range problems(t) {
		t.Run(name, func(t *testing.T) {
			plan := edl(t, p)
			lower := bound.Lower(p)
			retune := improve.Retune{Moves: 50_000}
			aligned := improved(t, improve.Align{}, p, plan)
			for from, start := range map[string]*planner.Plan{"EDL": plan, "aligned nodes": aligned} {
				better := improved(t, retune, p, start)
				now, before := lower.Gap(better.Ledger.Total()), lower.Gap(plan.Ledger.Total())
				t.Logf("from %s: %.3f %% above the bound, before %.3f %%", from, 100*now, 100*before)
				if !(now < before) || now < 0 {
					t.Errorf("from %s: %v above the bound, before %v", from, now, before)
				}
			}
		})
	}
}

func TestAShortTaskIsStretchedWhileItsNodeIsOn(t *testing.T) {
	wide := dvfsmodel.WideRange()
	p := &planner.Problem{
		Cluster: planner.Cluster{
			Classes: []planner.NodeClass{{Name: "node", Model: "A", GPUs: 2, IdleW: 37}},
		},
	}
	for i, seconds := range []float64{100, 90} {
		p.Tasks = append(p.Tasks, planner.Task{
			ID: strconv.Itoa(i), Deadline: 1000, Due: 1000, Limit: math.Inf(1), Share: 1,
			Options: []planner.Option{{
				Model: "A", GPUs: 1, Response: &dvfsmodel.Continuous{Params: scalable(seconds), Range: &wide},
			}},
		})
	}
	better := improved(t, improve.Align{}, p, edl(t, p))
	a, b := &better.Assignments[0], &better.Assignments[1]
	if len(better.Nodes) != 1 || math.Abs(a.End-b.End) > 1e-9*a.End || better.Ledger.Idle > 1e-6 {
		t.Errorf("ends at %v s and %v s on %d nodes, %v J idle; want both together", a.End, b.End,
			len(better.Nodes), better.Ledger.Idle)
	}
	if a.Reason.Clocks != planner.ClocksShrunk || b.Reason.Clocks != planner.ClocksStretched {
		t.Errorf("reasons %q and %q, want the long one shortened and the short one stretched",
			a.Reason, b.Reason)
	}
}

func TestEffortMultipliesTheMovesOfASearch(t *testing.T) {
	several := problems(t)["several GPUs"]
	for name, improver := range map[string]func(effort float64) planner.Improver{
		"lists":         func(effort float64) planner.Improver { return improve.Retune{Effort: effort} },
		"aligned nodes": func(effort float64) planner.Improver { return improve.Align{Effort: effort} },
	} {
		p := problems(t)["continuous clocks"]
		if name == "lists" {
			p = several
		}
		moves := func(effort float64) (total int) {
			w := &planner.Monitor{OnProgress: func(at planner.Progress) {
				if total = at.Total; at.Doing != planner.Searching {
					t.Errorf("%s: told of %q", name, at.Doing)
				}
			}}
			ctx, end := w.Begin(t.Context())
			defer end()
			if _, err := improver(effort).Improve(ctx, p, edl(t, p), seeded(2)); err != nil {
				t.Fatal(err)
			}
			return total
		}
		if usual, half := moves(0), moves(0.5); usual == 0 || 2*half != usual || moves(1) != usual {
			t.Errorf("%s: %d moves, and %d at half the effort", name, usual, half)
		}
	}
}
