package replay_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/lab/replay"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/planner/pick"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/planner/score"
)

// steppedKinds returns the nodes of twoKinds with CPUs that draw power and sleep.
func steppedKinds() []*fleet.Kind {
	kinds := twoKinds()
	for _, k := range kinds {
		k.Power.CPUIdle, k.Power.CPUBusy, k.Power.Cores, k.Power.Threads, k.Power.Sleep = 20, 80, 8, 1, 3
	}
	return kinds
}

// sojourn returns a run by a placement on nodes.
func sojourn(tb testing.TB, placement string, kinds []*fleet.Kind) *replay.StreamRun {
	tb.Helper()
	p, err := policy.ParsePlacement(placement)
	if err != nil {
		tb.Fatal(err)
	}
	return &replay.StreamRun{
		Kinds: kinds, Park: park.Never{}, To: 100,
		Chooser: func(m fleet.Workload, s *fleet.State) score.Chooser { return p.Chooser(m, s, 1) },
	}
}

func stay(at, seconds float64, d fleet.Demand) replay.RecordedTask {
	return replay.RecordedTask{Demand: d, Arrived: at, Seconds: seconds}
}

func whole(gpus int) fleet.Demand {
	return fleet.Demand{CPU: 1000, GPUs: gpus, Milli: fleet.WholeGPU}
}

// run plays stays as they come.
func run(tb testing.TB, s *replay.StreamRun, stays ...replay.RecordedTask) *replay.StreamResult {
	tb.Helper()
	tasks, _, _, err := replay.AsRecorded(stays, s.Kinds)
	if err != nil {
		tb.Fatal(err)
	}
	p, err := s.Run(tb.Context(), tasks)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func TestMeanDemandOfADrawnStreamIsThePartOfTheCapacityAskedFor(t *testing.T) {
	stays := []replay.RecordedTask{
		stay(0, 10, whole(1)), stay(0, 300, fleet.Demand{CPU: 1, GPUs: 1, Milli: 250}), stay(0, 40, whole(2)),
		stay(0, 90, fleet.Demand{CPU: 500}),
	}
	kinds := twoKinds()
	for _, load := range []float64{0.3, 0.95} {
		const horizon = 20_000
		tasks, unfit, err := replay.Traffic{Load: load, Horizon: horizon}.Arrivals(stays, kinds, dice(1))
		if err != nil || unfit != 0 {
			t.Fatal(unfit, err)
		}
		asked, gpus, before := 0.0, 0.0, 0.0
		var squares float64
		for i := range tasks {
			task := &tasks[i]
			if task.Arrival < before || task.Arrival >= 2*horizon {
				t.Fatalf("task %d arrives at %v after %v", i, task.Arrival, before)
			}
			before = task.Arrival
			x := float64(task.Options[0].GPUs) * task.Share * task.Options[0].Response.MinTime()
			asked += x
			squares += x * x
		}
		for _, k := range kinds {
			gpus += float64(k.GPUs)
		}
		got := asked / (2 * horizon * gpus)
		deviation := math.Sqrt(squares) / (2 * horizon * gpus) // of a compound Poisson sum
		if math.Abs(got-load) > 4*deviation || deviation > load/20 {
			t.Errorf("mean demand is %.4f of the capacity, want %v ± %.4f", got, load, deviation)
		}
	}
}

func TestLongStaysAreCutToTheHorizonAndHopelessOnesLeftOutAndCounted(t *testing.T) {
	stays := []replay.RecordedTask{
		stay(0, 1e9, whole(1)), stay(0, 5, whole(3)), stay(0, 5, fleet.Demand{CPU: 9000}),
		stay(0, 5, fleet.Demand{CPU: 1, GPUs: 1, Milli: 500, Spec: "C"}), stay(0, 0, whole(1)),
		stay(0, math.NaN(), whole(1)),
	}
	tasks, unfit, err := replay.Traffic{Load: 1, Horizon: 50}.Arrivals(stays, twoKinds(), dice(1))
	if err != nil {
		t.Fatal(err)
	}
	if unfit != 5 || len(tasks) == 0 {
		t.Errorf("%d left out, want 5, of %d tasks", unfit, len(tasks))
	}
	for i := range tasks {
		if got := tasks[i].Options[0].Response.MinTime(); got != 50 {
			t.Errorf("stays for %v s, want the horizon", got)
		}
	}
}

func TestAStreamThatCantBeDrawnIsAnError(t *testing.T) {
	rng := dice(1)
	one := []replay.RecordedTask{stay(0, 1, whole(1))}
	for name, c := range map[string]struct {
		traffic replay.Traffic
		stays   []replay.RecordedTask
	}{
		"no load":      {replay.Traffic{Horizon: 1}, one},
		"no horizon":   {replay.Traffic{Load: 1}, one},
		"endless":      {replay.Traffic{Load: 1, Horizon: math.Inf(1)}, one},
		"not a number": {replay.Traffic{Load: math.NaN(), Horizon: 1}, one},
		"no stays":     {replay.Traffic{Load: 1, Horizon: 1}, nil},
		"no GPUs asked": {
			replay.Traffic{Load: 1, Horizon: 1}, []replay.RecordedTask{stay(0, 1, fleet.Demand{CPU: 1})},
		},
		"too many": {
			replay.Traffic{Load: 1, Horizon: 1e9}, []replay.RecordedTask{stay(0, 1e-3, whole(1))},
		},
		"too large": {replay.Traffic{Load: 1, Horizon: 1e6}, []replay.RecordedTask{stay(0, 1, whole(1))}},
	} {
		if tasks, _, err := c.traffic.Arrivals(c.stays, twoKinds(), rng); err == nil {
			t.Errorf("%s: %d tasks and no error", name, len(tasks))
		}
	}
	if _, _, _, err := replay.AsRecorded(nil, twoKinds()); err == nil {
		t.Error("no stays recorded: no error")
	}
}

func TestPassageIsThePowerAndTheWaitsOfAHandMadeStream(t *testing.T) {
	// One node: two GPUs of 10 and 100 W, one CPU package of 20 and 80 W.
	kinds := steppedKinds()[:1]
	s := sojourn(t, "pwr", kinds)
	// From 0 to 40 both GPUs, the second task waits for them until 40 and has
	// one until 70; then nothing until 100.
	got := run(t, s, stay(0, 40, whole(2)), stay(10, 30, whole(1)))
	want := replay.StreamResult{Arrived: 2, Waited: 1, MeanWait: 15, Wait95: 30}
	want.Power = (40*(200+80) + 30*(110+80) + 30*(20+20)) / 100
	want.Cost = float64(want.Power)
	want.Allocated = (40*2 + 30*1) / 100.0 / 2
	if *got != want {
		t.Errorf("%+v, want %+v", *got, want)
	}
}

func TestPassageCountsSleepAndTheTimeThatWakingTakes(t *testing.T) {
	kinds := steppedKinds()[:1]
	s := sojourn(t, "pwr", kinds)
	s.Park, s.Delay = park.DRS{Rho: 5}, 10
	// Asleep until 0; awake for 10 s, then a task for 20; idle until 35; asleep
	// until 50, awake until 60, a task for 30, idle until 95, asleep to 100.
	got := run(t, s, stay(0, 20, whole(1)), stay(50, 30, whole(1)))
	const asleep = 15 + 5
	busy := 2*10.0 + 20 + 30 // a task that starts later holds its place from when it was put there
	want := replay.StreamResult{
		Arrived: 2, Waited: 2, MeanWait: 10, Wait95: 10, Asleep: asleep / 100.0, Allocated: busy / 100 / 2,
	}
	want.Power = dvfsmodel.Watt((busy*(110+80) + (100-busy-asleep)*(20+20) + asleep*3) / 100)
	want.Cost = float64(want.Power)
	if *got != want {
		t.Errorf("%+v, want %+v", *got, want)
	}
}

func TestOnlyTheTimeObservedCounts(t *testing.T) {
	s := sojourn(t, "pwr", steppedKinds()[:1])
	s.From, s.To = 50, 60
	got := run(t, s, stay(0, 55, whole(2)), stay(1, 1000, whole(1)), stay(52, 1, whole(1)),
		stay(61, 1, whole(1)))
	if got.Arrived != 1 || got.Waited != 1 || got.Allocated != (5*2+1*2+4)/20.0 {
		t.Errorf("%+v", *got)
	}
}

func TestNodesThatNeverSleepNeedNoWaking(t *testing.T) {
	s := sojourn(t, "pwr", twoKinds())
	s.Delay = 1000
	if got := run(t, s, stay(0, 10, whole(2)), stay(5, 10, whole(1))); got.Waited != 0 || got.Asleep != 0 {
		t.Errorf("%+v", *got)
	}
}

func TestAWeightedNodeCostsMoreButDrawsTheSame(t *testing.T) {
	kinds := steppedKinds()
	for i := range kinds {
		kinds[i].GPUs = 1
	}
	tasks := []replay.RecordedTask{stay(0, 100, whole(1))}
	before := run(t, sojourn(t, "pwr", kinds), tasks...)
	if before.Cost != float64(before.Power) {
		t.Errorf("costs %v at %v W without weights", before.Cost, before.Power)
	}
	for _, placement := range []string{"pwr", "epwr", "priced:0,0,1"} {
		for cheap := range kinds {
			for i := range kinds {
				kinds[i].Power.Weight = 2
			}
			kinds[cheap].Power.Weight = 0.5
			got := run(t, sojourn(t, placement, kinds), tasks...)
			if got.Power != before.Power || got.Cost != 0.5*(100+80)+2*(10+20) {
				t.Errorf("%s, node %d is cheap: %v W cost %v", placement, cheap, got.Power, got.Cost)
			}
		}
	}
}

func TestACancelledSojournStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := sojourn(t, "pwr", twoKinds())
	tasks, _, _, err := replay.AsRecorded([]replay.RecordedTask{stay(0, 1, whole(1))}, s.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(ctx, tasks); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// plainPlacements returns the placements that need no arguments.
func plainPlacements() []string {
	return slices.DeleteFunc(policy.PlacementNames(), func(name string) bool {
		_, err := policy.ParsePlacement(name)
		return err != nil
	})
}

func TestAfterEverythingLeftTheClusterIsAsNew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := steppedKinds()
		kinds = append(kinds, kinds...)
		list := demands(t)
		stays := make([]replay.RecordedTask, len(list))
		for i, d := range list {
			stays[i] = stay(rapid.Float64Range(0, 50).Draw(t, "arrival"),
				rapid.Float64Range(1, 50).Draw(t, "seconds"), d)
		}
		s := &replay.StreamRun{Kinds: kinds, Park: park.Never{}, To: 100}
		if rapid.Bool().Draw(t, "sleep") {
			s.Park, s.Delay = park.DRS{Rho: 3}, 2
		}
		if rapid.Bool().Draw(t, "largest first") {
			s.Pick = pick.Largest{Bound: 10}.New
		}
		placement, err := policy.ParsePlacement(rapid.SampledFrom(plainPlacements()).Draw(t, "placement"))
		if err != nil {
			t.Fatal(err)
		}
		var state *fleet.State
		s.Chooser = func(m fleet.Workload, of *fleet.State) score.Chooser {
			state = of
			return placement.Chooser(m, of, 1)
		}
		tasks, unfit, _, err := replay.AsRecorded(stays, kinds)
		if unfit == len(stays) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		result, err := s.Run(context.Background(), tasks)
		if err != nil {
			t.Fatal(err)
		}
		if result.Unplaced > 0 {
			t.Fatalf("%d of %d tasks never started", result.Unplaced, len(tasks))
		}
		wantFresh(t, state, kinds)
	})
}

// wantFresh reports whether a cluster is one of empty nodes.
func wantFresh(t *rapid.T, state *fleet.State, kinds []*fleet.Kind) {
	var fresh []fleet.Node
	for _, k := range kinds {
		fresh = append(fresh, fleet.NewNode(k))
	}
	for i := range state.Len() {
		n := *state.Node(i)
		n.Asleep = false
		at := slices.IndexFunc(fresh, func(m fleet.Node) bool { return m.Kind.Model == n.Kind.Model })
		if at < 0 {
			t.Fatalf("node %d is one too many", i)
		}
		n.Kind = fresh[at].Kind
		if n != fresh[at] {
			t.Errorf("node %d is %+v, want it as new", i, n)
		}
		fresh = slices.Delete(fresh, at, at+1)
	}
	if state.Allocated() != 0 || len(fresh) > 0 {
		t.Errorf("%d milli-GPU allocated, %d nodes missing", state.Allocated(), len(fresh))
	}
}

func TestABatchIsOrderedLargestFirstAndKeepsItsTasks(t *testing.T) {
	list := []fleet.Demand{
		{CPU: 9000}, {CPU: 1, GPUs: 1, Milli: 500}, whole(2), {CPU: 2, GPUs: 1, Milli: 500}, {CPU: 1},
	}
	for size, want := range map[int][]int32{
		1: {0, 1, 2, 3, 4, 1}, 2: {1, 0, 2, 3, 1, 4}, 4: {2, 3, 1, 0, 1, 4}, 100: {2, 3, 1, 1, 0, 4},
	} {
		rows := []int32{0, 1, 2, 3, 4, 1}
		replay.ReorderInBatches(rows, list, size)
		if !slices.Equal(rows, want) {
			t.Errorf("batches of %d: %v, want %v", size, rows, want)
		}
	}
}
