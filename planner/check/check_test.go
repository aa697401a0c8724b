package check_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/testkit/plannertest"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
)

// spoiler is a valid plan to be corrupted.
type spoiler struct {
	tb   testing.TB
	p    *planner.Problem
	plan *planner.Plan
}

// on returns a job's assignment.
func (s *spoiler) on(id string) *planner.Assignment { return &s.plan.Assignments[index(s.tb, s.p, id)] }

// task returns a job's task.
func (s *spoiler) task(id string) *planner.Task { return &s.p.Tasks[index(s.tb, s.p, id)] }

// move starts a job at another time.
func (s *spoiler) move(id string, start float64) {
	a := s.on(id)
	a.Start, a.End = start, start+a.Point.Time
}

// set runs a job at another setting, as its model has it.
func (s *spoiler) set(id string, setting dvfsmodel.Scaling) {
	a, m := s.on(id), s.task(id).Options[0].Response.Model()
	a.Point = dvfsmodel.Point{
		Scaling: setting, Time: m.Time(setting.Fc, setting.Fm), Power: m.Power(setting),
		Core: dvfsmodel.MHz(setting.Fc) * 1400, Mem: dvfsmodel.MHz(setting.Fm) * 5000,
	}
	if _, ok := s.task(id).Options[0].Response.(*dvfsmodel.Continuous); ok {
		a.Point.Core, a.Point.Mem = 0, 0
	}
	a.Point.Energy = a.Point.Power.Over(a.Point.Time)
	s.move(id, a.Start)
}

// index returns the number of a task.
func index(tb testing.TB, p *planner.Problem, id string) int {
	tb.Helper()
	for i := range p.Tasks {
		if p.Tasks[i].ID == id {
			return i
		}
	}
	tb.Fatalf("no job %q", id)
	return -1
}

// corruption spoils an edl plan of the problem that mixed makes.
type corruption struct {
	name  string
	spoil func(*spoiler)
	want  []check.Kind // all that is found, sorted; the ledger aside, if it isn't among them
}

// kinds returns a list of kinds, sorted.
func kinds(k ...check.Kind) []check.Kind {
	slices.Sort(k)
	return k
}

// listCorruptions spoil what the plan lists.
var listCorruptions = []corruption{
	{"an assignment too few", func(s *spoiler) {
		s.plan.Assignments = s.plan.Assignments[:5]
	}, kinds(check.Shape)},
	{"a node that isn't there", func(s *spoiler) { s.on("again").Node = 9 }, kinds(check.Shape)},
	{"a node below -1", func(s *spoiler) { s.on("again").Node = -2 }, kinds(check.Shape)},
	{"an option that isn't there", func(s *spoiler) {
		s.on("again").Option = 1
	}, kinds(check.Shape)},
	{"a class that isn't there", func(s *spoiler) {
		s.plan.Nodes[3].Class = 2
	}, kinds(check.Shape)},
	{"an unplaced job that isn't there", func(s *spoiler) {
		s.plan.Unplaced = append(s.plan.Unplaced, planner.Unplaced{Task: 99})
	}, kinds(check.Shape)},
	{"a missed job that isn't there", func(s *spoiler) {
		s.plan.Misses = append(s.plan.Misses, 99)
	}, kinds(check.Shape)},
	{"a job forgotten", func(s *spoiler) { s.on("again").Node = -1 }, kinds(check.Listing)},
	{"a job placed and unplaced", func(s *spoiler) {
		s.plan.Unplaced = append(s.plan.Unplaced, planner.Unplaced{Task: index(s.tb, s.p, "again")})
	}, kinds(check.Listing)},
	{"a job unplaced twice", func(s *spoiler) {
		s.plan.Unplaced = append(s.plan.Unplaced, s.plan.Unplaced[0])
	}, kinds(check.Listing)},
	{"an unplaced job not listed", func(s *spoiler) {
		s.plan.Unplaced = nil
		s.plan.Status = planner.Missed
	}, kinds(check.Listing)},
	{"a status too good", func(s *spoiler) {
		s.plan.Status = planner.Complete
	}, kinds(check.Status)},
	{"a status that forgets the unplaced", func(s *spoiler) {
		s.plan.Status = planner.Missed
	}, kinds(check.Status)},
	{"a miss not listed", func(s *spoiler) { s.plan.Misses = nil }, kinds(check.Deadline)},
	{"a deadline broken", func(s *spoiler) {
		s.task("table").Deadline = 60
	}, kinds(check.Deadline)},
	{"a job listed as a miss that isn't", func(s *spoiler) {
		s.plan.Misses = append(s.plan.Misses, index(s.tb, s.p, "again"))
	}, kinds(check.Misses)},
	{"an unplaced job listed as a miss", func(s *spoiler) {
		s.plan.Misses = append(s.plan.Misses, index(s.tb, s.p, "huge"))
	}, kinds(check.Misses)},
	{"a miss listed twice", func(s *spoiler) {
		s.plan.Misses = append(s.plan.Misses, s.plan.Misses[0])
	}, kinds(check.Misses)},
}

// placeCorruptions spoil where and when jobs run.
var placeCorruptions = []corruption{
	{"another GPU model", func(s *spoiler) {
		s.task("again").Options[0].Model = "B"
	}, kinds(check.Place)},
	{"a GPU too few", func(s *spoiler) { s.on("three").GPUs = 3 }, kinds(check.Place)},
	{"a GPU too many", func(s *spoiler) { s.on("again").GPUs = 3 }, kinds(check.Place)},
	{"no GPU", func(s *spoiler) { s.on("again").GPUs = 0 }, kinds(check.Place)},
	{"a GPU that the node doesn't have", func(s *spoiler) {
		s.on("again").GPUs = 1 << 4
	}, kinds(check.Place)},
	{"a share of two GPUs", func(s *spoiler) {
		s.task("half").Options[0].GPUs = 2
		s.on("half").GPUs = 12
	}, kinds(check.Place, check.Overlap, check.Settings)},
	{"a start before the arrival", func(s *spoiler) {
		s.task("later").Arrival = 33
	}, kinds(check.Arrival)},
	{"a start between slots", func(s *spoiler) { s.move("again", 502.5) }, kinds(check.Slot)},
	{
		"a start that isn't a number", func(s *spoiler) { s.move("again", math.NaN()) },
		kinds(check.Arrival, check.Slot, check.Power, check.End,
			check.Deadline),
	},
	{"a node switched on too late", func(s *spoiler) {
		s.plan.Nodes[1].On[0].From = 2
	}, kinds(check.Power)},
	{"a node not ready yet", func(s *spoiler) { s.move("again", 501) }, kinds(check.Power)},
	{"a node off before the end", func(s *spoiler) {
		s.plan.Nodes[2].On[0].To = 101
	}, kinds(check.Power)},
	{"a node off in the middle", func(s *spoiler) {
		s.plan.Nodes[2].On = []planner.Interval{{From: 2, To: 50}, {From: 51, To: 104}}
	}, kinds(check.Power)},
	{"a run while the node is off", func(s *spoiler) {
		s.task("again").Arrival = 0
		s.move("again", 300)
	}, kinds(check.Power)},
	{"a node that is never on", func(s *spoiler) { s.plan.Nodes[2].On = nil }, kinds(check.Power)},
	{"an end too early", func(s *spoiler) { s.on("again").End = 511 }, kinds(check.End)},
	{"an end too late", func(s *spoiler) { s.on("again").End = 513 }, kinds(check.End)},
	{"a limit exceeded", func(s *spoiler) { s.task("again").Limit = 9.9 }, kinds(check.Limit)},
	{"two jobs on a GPU", func(s *spoiler) {
		s.on("rush2").GPUs = s.on("rush1").GPUs
	}, kinds(check.Overlap)},
	{"a job on one of another's GPUs", func(s *spoiler) {
		s.on("later").GPUs = 4
	}, kinds(check.Overlap)},
	{"a start before the job in front ends", func(s *spoiler) {
		s.move("rush3", 37)
	}, kinds(check.Overlap, check.Settings)},
	{"a whole job on a shared GPU", func(s *spoiler) { s.move("later", 31) }, kinds(check.Overlap,
		check.Settings)},
	{"a share on a whole job's GPU", func(s *spoiler) {
		s.on("half").GPUs = 1
	}, kinds(check.Overlap, check.Settings)},
	{"shares above a GPU", func(s *spoiler) { s.task("half").Share = 0.61 }, kinds(check.Shares)},
	{"cores above the node's", func(s *spoiler) { s.task("later").CPUs = 10.1 }, kinds(check.CPUs)},
	{"memory above the node's", func(s *spoiler) {
		s.task("half").MemGiB = 39.1
	}, kinds(check.Memory)},
	{"more nodes than there are", func(s *spoiler) {
		s.plan.Nodes = append(s.plan.Nodes, planner.PlannedNode{
			Class: 1, On: []planner.Interval{{From: 500, To: 501}},
		})
	}, kinds(check.Count)},
	{"a node on before it was switched off", func(s *spoiler) {
		s.plan.Nodes[0].On[1].From = 80
	}, kinds(check.Intervals)},
	{
		"intervals out of order", func(s *spoiler) { slices.Reverse(s.plan.Nodes[0].On) },
		kinds(check.Intervals, check.Power),
	},
	{"a node on before time 0", func(s *spoiler) {
		s.plan.Nodes[1].On[0].From = -1
	}, kinds(check.Intervals)},
	{"a node off before it is on", func(s *spoiler) {
		s.plan.Nodes[3].On = []planner.Interval{{From: 9, To: 8}}
	}, kinds(check.Intervals)},
	{"a node on for ever", func(s *spoiler) {
		s.plan.Nodes[2].On[0].To = math.Inf(1)
	}, kinds(check.Intervals)},
}

// clockCorruptions spoil settings and what the model says of them.
var clockCorruptions = []corruption{
	{"a run time that isn't the model's", func(s *spoiler) {
		s.on("later").Point.Time *= 1 + 1e-8
		s.move("later", 32)
	}, kinds(check.Model)},
	{"a power that isn't the model's", func(s *spoiler) {
		s.on("later").Point.Power *= 1 + 1e-8
	}, kinds(check.Model)},
	{"an energy that isn't the model's", func(s *spoiler) {
		s.on("later").Point.Energy *= 1 - 1e-8
	}, kinds(check.Model)},
	{
		"a core clock below the range", func(s *spoiler) {
			s.set("three", dvfsmodel.Scaling{V: 0.6, Fc: 0.49, Fm: 1})
		},
		kinds(check.Clocks),
	},
	{
		"a memory clock above the range", func(s *spoiler) {
			s.set("later", dvfsmodel.Scaling{V: 0.7, Fc: 0.8, Fm: 1.21})
		},
		kinds(check.Clocks),
	},
	{
		"a voltage below the curve", func(s *spoiler) {
			s.set("later", dvfsmodel.Scaling{V: 0.67, Fc: 0.8, Fm: 1})
		},
		kinds(check.Clocks),
	},
	{
		"a voltage above the range", func(s *spoiler) {
			s.set("later", dvfsmodel.Scaling{V: 1.3, Fc: 1, Fm: 1})
		},
		kinds(check.Clocks),
	},
	{"a core clock that the table doesn't have", func(s *spoiler) {
		s.set("table", dvfsmodel.Scaling{V: dvfsmodel.VoltageFor(1300. / 1400), Fc: 1300. / 1400, Fm: 1})
	}, kinds(check.Clocks)},
	{
		"a voltage that isn't the table's", func(s *spoiler) {
			s.set("table", dvfsmodel.Scaling{V: 0.9, Fc: 1, Fm: 1})
		},
		kinds(check.Clocks),
	},
	{
		"a voltage that isn't the frontier's", func(s *spoiler) {
			s.set("frontier", dvfsmodel.Scaling{V: 0.9, Fc: 1, Fm: 1})
		},
		kinds(check.Clocks),
	},
	{"core MHz that aren't the setting's", func(s *spoiler) {
		s.on("table").Point.Core = 1400
	}, kinds(check.Clocks)},
	{"memory MHz that aren't the setting's", func(s *spoiler) {
		s.on("frontier").Point.Mem = 2500
	}, kinds(check.Clocks)},
	{"MHz without a table", func(s *spoiler) {
		s.on("later").Point.Core = 1400
	}, kinds(check.Clocks)},
	{"other clocks on a part of a GPU", func(s *spoiler) {
		s.set("third", dvfsmodel.Scaling{V: 1.05, Fc: 1, Fm: 1})
	}, kinds(check.Clocks, check.Settings)},
	{
		"a setting that isn't a number", func(s *spoiler) {
			s.on("later").Point.Scaling.V = dvfsmodel.Volt(math.NaN())
		},
		kinds(check.Clocks, check.Model),
	},
	{"another default clock on a shared GPU", func(s *spoiler) {
		s.task("half").Options[0].Response = &dvfsmodel.Fixed{
			At: dvfsmodel.Params{P0: 100, T0: 30}.At(dvfsmodel.Scaling{V: 1, Fc: 0.9, Fm: 1}),
		}
		s.on("half").Point.Scaling.Fc = 0.9
	}, kinds(check.Settings)},
}

// ledgerCorruptions spoil the sums.
var ledgerCorruptions = []corruption{
	{"ledger: a row missing", func(s *spoiler) {
		s.plan.Ledger.Nodes = s.plan.Ledger.Nodes[:3]
	}, kinds(check.Ledger)},
	{"ledger: run energy in a row", func(s *spoiler) {
		s.plan.Ledger.Nodes[0].Run += 0.01
	}, kinds(check.Ledger)},
	{"ledger: idle energy in a row", func(s *spoiler) {
		s.plan.Ledger.Nodes[0].Idle += 0.01
	}, kinds(check.Ledger)},
	{"ledger: host energy in a row", func(s *spoiler) {
		s.plan.Ledger.Nodes[0].Host -= 0.01
	}, kinds(check.Ledger)},
	{"ledger: turn-on energy in a row", func(s *spoiler) {
		s.plan.Ledger.Nodes[0].TurnOn -= 90
	}, kinds(check.Ledger)},
	{"ledger: sleep energy in a row", func(s *spoiler) {
		s.plan.Ledger.Nodes[3].Sleep *= 1.001
	}, kinds(check.Ledger)},
	{"ledger: the run total", func(s *spoiler) {
		s.plan.Ledger.Run *= 1 + 1e-15
	}, kinds(check.Ledger)},
	{"ledger: the idle total", func(s *spoiler) {
		s.plan.Ledger.Idle *= 1 + 1e-15
	}, kinds(check.Ledger)},
	{"ledger: the host total", func(s *spoiler) {
		s.plan.Ledger.Host *= 1 + 1e-15
	}, kinds(check.Ledger)},
	{"ledger: the turn-on total", func(s *spoiler) {
		s.plan.Ledger.TurnOn *= 1 + 1e-15
	}, kinds(check.Ledger)},
	{"ledger: the sleep total", func(s *spoiler) {
		s.plan.Ledger.Sleep *= 1 + 1e-15
	}, kinds(check.Ledger)},
	{"ledger: the end", func(s *spoiler) { s.plan.Ledger.End++ }, kinds(check.Ledger)},
	{"ledger: no turn-on energy online", func(s *spoiler) {
		s.p.Mode = planner.Offline
		s.plan.Ledger = planner.Account(s.p, s.plan)
		s.p.Mode = planner.Online
	}, kinds(check.Ledger)},
}

// found returns the kinds that are found, sorted, each once.
func found(tb testing.TB, p *planner.Problem, plan *planner.Plan) []check.Kind {
	tb.Helper()
	err := check.Plan(p, plan)
	if err == nil {
		return nil
	}
	var invalid *check.Error
	if !errors.As(err, &invalid) {
		tb.Fatalf("%T, want a check.Error", err)
	}
	var all []check.Kind
	for _, v := range invalid.Violations {
		all = append(all, v.Kind)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestCheckFindsEachCorruptionAndNothingElse(t *testing.T) {
	for _, c := range slices.Concat(listCorruptions, placeCorruptions, clockCorruptions, ledgerCorruptions) {
		t.Run(c.name, func(t *testing.T) {
			s := &spoiler{tb: t, p: plannertest.Mixed(t)}
			s.plan = plannertest.Solve(t, s.p, "edl")
			c.spoil(s)
			got := found(t, s.p, s.plan)
			if !slices.Contains(c.want, check.Ledger) { // whatever moves changes the energy
				got = slices.DeleteFunc(got, func(k check.Kind) bool {
					return k == check.Ledger
				})
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("found %v, want %v\n%v", got, c.want, check.Plan(s.p, s.plan))
			}
		})
	}
}

func TestCheckErrorNamesTheJobAndTheNode(t *testing.T) {
	s := &spoiler{tb: t, p: plannertest.Mixed(t)}
	s.plan = plannertest.Solve(t, s.p, "edl")
	s.task("later").Arrival = 33
	err := check.Plan(s.p, s.plan)
	var invalid *check.Error
	if want := (check.Violation{
		Kind: check.Arrival, Task: 4, Node: 0,
		Msg: `job "later": node 0: starts at 32 s, arrives at 33 s`,
	}); !errors.As(err, &invalid) || !slices.Equal(invalid.Violations, []check.Violation{want}) {
		t.Errorf("got %v, want %v alone", err, want)
	}
	if want := `arrival: job "later": node 0: starts at 32 s, arrives at 33 s`; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want it to say %s", err, want)
	}
	for i := range s.p.Tasks {
		s.p.Tasks[i].Arrival = 1000
	}
	if err = check.Plan(s.p, s.plan); err == nil ||
		!strings.Contains(err.Error(), fmt.Sprint("and ", len(s.p.Tasks)-1-5, " more")) {
		t.Errorf("got %v, want five of ten violations", err)
	}
}

func TestCheckNamesATaskWithoutAModel(t *testing.T) {
	p := plannertest.PaperLike()
	plan := plannertest.Solve(t, p, "edl")
	p.Tasks[0].Options[0].Response = nil
	if err := check.Plan(p, plan); err == nil || !strings.Contains(err.Error(), "no model") {
		t.Errorf("error is %v, want one that names what is missing", err)
	}
}
