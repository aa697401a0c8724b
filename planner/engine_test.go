package planner_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
)

// paperClass returns a node of the paper: 37 W idle, 90 J to switch a GPU on.
func paperClass(gpus int) planner.NodeClass {
	return planner.NodeClass{Name: "pair", Model: "A", GPUs: gpus, IdleW: 37, TurnOn: 90}
}

// online returns a problem with 1 s slots and one class.
func online(k planner.NodeClass, tasks ...planner.Task) *planner.Problem {
	return &planner.Problem{
		Mode: planner.Online, Start: planner.StartSlot, Tasks: tasks,
		Cluster: planner.Cluster{Slot: 1, Classes: []planner.NodeClass{k}},
	}
}

func TestANodeGoesOffRhoSlotsAfterItsLastTask(t *testing.T) {
	for _, c := range []struct {
		name    string
		arrival float64 // of the second job; the first ends at 3.5 s
		limited int     // nodes there are; 0: any number
		node    int32
		first   []planner.Interval
	}{
		{"a job that arrives a slot earlier finds it on", 5, 0, 0, []planner.Interval{{From: 0, To: 8}}},
		{"a job that arrives in the very slot comes too late", 6, 0, 1, []planner.Interval{{From: 0, To: 6}}},
		{"so does one between the slots", 5.01, 0, 1, []planner.Interval{{From: 0, To: 6}}},
		{
			"a node that sleeps is woken where nodes are limited", 9, 1, 0,
			[]planner.Interval{{From: 0, To: 6}, {From: 9, To: 12}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := paperClass(2)
			k.Count = c.limited
			p := online(k, job("first", fixed(3.5)), at(job("second", fixed(1)), c.arrival, 100))
			plan := solve(t, p, "edl")
			if got := plan.Assignments[1].Node; got != c.node {
				t.Errorf("second job on node %d, want %d", got, c.node)
			}
			if got := plan.Nodes[0].On; !slices.Equal(got, c.first) {
				t.Errorf("first node on %v, want %v", got, c.first)
			}
		})
	}
}

func TestTasksOfAPairWaitUntilItsNodeIsReady(t *testing.T) {
	for _, share := range []float64{1, 0.5} {
		k := paperClass(1)
		k.Count, k.TurnOnDelay = 1, 2.5
		first, second := job("first", fixed(4)), at(job("second", fixed(1)), 1, math.Inf(1))
		first.Share, second.Share = share, share
		plan := solve(t, online(k, first, second), "edl")
		want := []float64{3, 7} // ready at 2.5; the first ends at 7
		if share < 1 {
			want[1] = 3
		}
		for i, a := range plan.Assignments {
			if a.Start != want[i] {
				t.Errorf("share %v, job %d starts at %v s, want %v", share, i, a.Start, want[i])
			}
		}
	}
}

// TestPairsBecomeNodesByFallingFinishTime is EDL algorithm 3: finish times 50,
// 40, 30, 20, 10 on nodes of two pairs are (50, 40), (30, 20), (10).
func TestPairsBecomeNodesByFallingFinishTime(t *testing.T) {
	p := online(paperClass(2))
	for i, seconds := range []float64{30, 10, 50, 20, 40} { // due times: each needs a pair of its own
		p.Tasks = append(p.Tasks, at(job(string(rune('a'+i)), fixed(seconds)), 0, seconds))
	}
	p.Tasks = append(p.Tasks, at(job("late", fixed(1)), 11, 100))
	plan := solve(t, p, "edl")
	type home struct {
		node int32
		gpu  int
	}
	want := []home{{1, 0}, {2, 0}, {0, 0}, {1, 1}, {0, 1}, {2, 1}}
	for i, a := range plan.Assignments {
		if got := (home{a.Node, a.GPUs.First()}); got != want[i] {
			t.Errorf("job %q on %v, want %v", p.Tasks[i].ID, got, want[i])
		}
	}
}

func TestNodesThatNeverSleepStayOnToTheEnd(t *testing.T) {
	k := paperClass(1)
	k.Count, k.SleepW = 3, 5
	p := online(k, job("first", fixed(10)), at(job("second", fixed(10)), 40, 100))
	plan := solve(t, p, "edl,park=never")
	if len(plan.Nodes) != 3 {
		t.Fatalf("%d nodes, want all 3", len(plan.Nodes))
	}
	for n, node := range plan.Nodes {
		if want := []planner.Interval{{From: 0, To: 50}}; !slices.Equal(node.On, want) {
			t.Errorf("node %d on %v, want %v", n, node.On, want)
		}
	}
	if got, want := float64(plan.Ledger.Idle), 37*(3*50-20.); got != want {
		t.Errorf("idle energy %v J, want %v", got, want)
	}
}

// TestLedgerAddsUpByHand compares each cause with a sum made by hand: two GPUs,
// one busy for 10 s, on for 12 s, asleep until 62 s.
func TestLedgerAddsUpByHand(t *testing.T) {
	k := planner.NodeClass{Model: "A", GPUs: 2, Count: 2, IdleW: 37, HostW: 11, SleepW: 3, TurnOn: 90}
	p := online(k, job("first", fixed(10)), at(job("second", fixed(10)), 50, 60))
	other := job("other", fixed(5)) // keeps the second node on from 50 to 57
	other.Arrival, other.Share = 50, 0.5
	other.Due, other.Deadline = 55, 55
	p.Tasks[1].Options[0].GPUs = 2
	p.Tasks = append(p.Tasks, other)
	plan := solve(t, p, "edl")
	got := plan.Ledger
	want := planner.Ledger{
		Run:    1000 + 2000 + 250,
		Idle:   37 * ((2*12 - 10) + (2*12 - 20) + (2*7 - 2.5)),
		Host:   11 * 2 * (12 + 12 + 7),
		TurnOn: 90 * 2 * 3,
		Sleep:  3 * ((62 - 24) + (62 - 7)),
		End:    62,
	}
	if got.Run != want.Run || got.Idle != want.Idle || got.Host != want.Host || got.TurnOn != want.TurnOn ||
		got.Sleep != want.Sleep || got.End != want.End {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if got.Total() != want.Total() {
		t.Errorf("total %v J, want %v", got.Total(), want.Total())
	}
}

func TestOfflinePlansPayForSwitchingOnOnlyWhenAsked(t *testing.T) {
	for _, pays := range []bool{false, true} {
		p := paperLike()
		p.Cluster.OfflineTurnOn = pays
		want := dvfsmodel.Joule(0)
		if pays {
			want = 2 * 2 * 90
		}
		if plan := solve(t, p, "edl"); plan.Ledger.TurnOn != want {
			t.Errorf("pays %v: %v J on %d nodes, want %v", pays, plan.Ledger.TurnOn, len(plan.Nodes), want)
		}
	}
}

func TestClairvoyantPlansSleepInGapsThatAreLongEnough(t *testing.T) {
	for _, c := range []struct {
		arrival float64
		on      []planner.Interval
	}{
		{12.4, []planner.Interval{{From: 0, To: 13.4}}},                       // 37 W · 2.4 s < 90 J
		{12.5, []planner.Interval{{From: 0, To: 10}, {From: 12.5, To: 13.5}}}, // 37 W · 2.5 s > 90 J
	} {
		p := online(paperClass(1), at(job("first", fixed(10)), 0, 11),
			at(job("second", fixed(1)), c.arrival, 100))
		p.Mode, p.Start = planner.Clairvoyant, planner.StartContinuous
		if plan := solve(t, p, "edl"); !slices.Equal(plan.Nodes[0].On, c.on) {
			t.Errorf("arrival at %v s: on %v, want %v", c.arrival, plan.Nodes[0].On, c.on)
		}
	}
}

func TestImpossibleJobsAreNamedAndTheRestIsPlanned(t *testing.T) {
	wideJob := job("wide", fixed(1))
	wideJob.Options[0].GPUs = 3
	limited := job("limited", fixed(5))
	limited.Limit = 4
	p := online(paperClass(2), at(job("tight", fixed(5)), 0, 4), wideJob, job("fine", fixed(5)), limited)
	p.Mode = planner.Offline
	plan := solve(t, p, "edl")
	if plan.Status != planner.Partial || plan.Assignments[2].Node != 0 {
		t.Errorf("status %v, %+v", plan.Status, plan.Assignments[2])
	}
	want := []planner.Unplaced{
		{Task: 0, Why: "needs 5 s at the fastest clocks, 4 s remain to its deadline", Earliest: 5},
		{
			Task: 1, Why: "no node has the GPUs, CPUs and memory that it asks for: it asks for 3 GPUs; pair has " +
				"2 GPUs; it would fit on 3 nodes (nodes = 3)", Earliest: math.Inf(1),
		},
		{Task: 3, Why: "needs 5 s at the fastest clocks, its limit is 4 s", Earliest: 5},
	}
	if !slices.Equal(plan.Unplaced, want) {
		t.Errorf("unplaced\n%+v, want\n%+v", plan.Unplaced, want)
	}
}

func TestDefaultClocksThatExceedALimitLeaveTheJobUnplaced(t *testing.T) {
	j := job("limited", continuous(100))
	j.Limit = 97
	p := online(paperClass(1), j)
	if plan := solve(t, p, "edl"); plan.Status != planner.Complete {
		t.Errorf("edl: %v, want complete", plan.Status)
	}
	for _, text := range []string{"baseline", "edl,clocks=default"} {
		if plan := solve(t, p, text); plan.Status != planner.Partial {
			t.Errorf("%s: %v, want partial: %+v", text, plan.Status, plan.Assignments[0])
		}
	}
}

func TestSolveStopsWhenTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	pol, err := policy.Parse("edl", policy.DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := planner.Solve(ctx, paperLike(), pol, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestMeaninglessProblemsAreErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*planner.Problem)
		want  string
	}{
		{"no jobs", func(p *planner.Problem) { p.Tasks = nil }, "the batch has no jobs"},
		{"no nodes", func(p *planner.Problem) { p.Cluster.Classes = nil }, "the cluster has no nodes"},
		{"slots without length", func(p *planner.Problem) {
			p.Start, p.Cluster.Slot = planner.StartSlot, 0
		}, "start rule slot needs a slot length above 0"},
		{"an arrival offline", func(p *planner.Problem) {
			p.Tasks[0].Arrival = 1
		}, `job "a" arrives at 1 s: not an offline problem`},
		{"a deadline before the arrival", func(p *planner.Problem) {
			p.Tasks[0].Deadline = -1
		}, `job "a": deadline -1 s (due 160 s), want it not before the arrival, 0 s`},
		{"too many GPUs", func(p *planner.Problem) {
			p.Cluster.Classes[0].GPUs = 65
		}, `node class "pair": 65 GPUs per node, want 1 to 64`},
		{"negative idle power", func(p *planner.Problem) {
			p.Cluster.Classes[0].IdleW = -1
		}, `node class "pair": idle power is -1, want a finite number of 0 or more`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := paperLike()
			c.spoil(p)
			if err := p.Validate(); err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
