package replay_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/lab/replay"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/planner/score"
)

// twoKinds returns a node with two GPUs of one model and one with one of another.
func twoKinds() []*fleet.Kind {
	power := fleet.Power{GPUIdle: 10, GPUBusy: 100}
	return []*fleet.Kind{
		{Model: "A", CPU: 8000, Mem: 1000, GPUs: 2, Power: power},
		{Model: "B", CPU: 8000, Mem: 1000, GPUs: 1, Power: power},
	}
}

func chooser(tb testing.TB, placement string, m fleet.Workload, s *fleet.State) score.Chooser {
	tb.Helper()
	p, err := policy.ParsePlacement(placement)
	if err != nil {
		tb.Fatal(err)
	}
	return p.Chooser(m, s, 1)
}

// stream returns all tasks of a list in order.
func stream(list ...fleet.Demand) *replay.Stream {
	rows := make([]int32, len(list))
	for i := range rows {
		rows[i] = int32(i)
	}
	return replay.NewStream(list, rows)
}

func TestEveryDropIsCountedWithItsReason(t *testing.T) {
	whole := fleet.Demand{CPU: 1000, GPUs: 1, Milli: fleet.WholeGPU}
	list := []fleet.Demand{
		{CPU: 1000, GPUs: 2, Milli: fleet.WholeGPU, Spec: "B"}, // B has one GPU
		{CPU: 9000}, // no node has as many
		{CPU: 1000, GPUs: 1, Milli: 500, Spec: "C|D"},
		whole, whole, whole, whole, // there are three GPUs
	}
	state := fleet.NewState(twoKinds())
	var log replay.DecisionLog
	tally, err := replay.Inflate(t.Context(), chooser(t, "bestfit", nil, state), stream(list...), &log)
	if err != nil {
		t.Fatal(err)
	}
	want := replay.Tally{
		Arrived: 7, Demanded: 6500, Allocated: 3000,
		Refused: replay.Work{Tasks: 4, CPUTasks: 1, GPU: 3500, CPU: 12_000},
	}
	want.By[replay.Placed], want.By[replay.NoModel], want.By[replay.TooLarge], want.By[replay.Full] = 3, 1,
		2, 1
	if tally != want || tally.Placed() != 3 || tally.Dropped() != 4 {
		t.Errorf("%+v, want %+v", tally, want)
	}
	if got := tally.AllocationRatio(); got != 3000.0/6500 {
		t.Errorf("allocation ratio %v", got)
	}
	for i, d := range log.Decisions {
		if dropped := i < 3 || i == 6; (d.Node < 0) != dropped {
			t.Errorf("arrival %d: %+v", i, d)
		}
	}
}

func TestACancelledInflationStopsAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	state := fleet.NewState(twoKinds())
	tally, err := replay.Inflate(ctx, chooser(t, "fgd", nil, state), stream(fleet.Demand{CPU: 1}))
	if !errors.Is(err, context.Canceled) || tally.Arrived != 0 {
		t.Errorf("%v after %d arrivals", err, tally.Arrived)
	}
}

func TestACurveHasARowForEachHundredthThatAnArrivalPasses(t *testing.T) {
	half := fleet.Demand{CPU: 100, GPUs: 1, Milli: 15} // of 3000
	list := []fleet.Demand{half, {CPU: 1}, half, half, {CPU: 1}}
	state := fleet.NewState(twoKinds())
	m := fleet.NewWorkload(list, fleet.PaperCover)
	sampler := replay.NewSampler(m, state)
	if _, err := replay.Inflate(t.Context(), chooser(t, "pwr", m, state), stream(list...),
		sampler); err != nil {
		t.Fatal(err)
	}
	points := sampler.Points()
	arrived := make([]int, 0, len(points))
	for _, p := range points {
		arrived = append(arrived, p.Arrived)
	}
	if want := []int{0, 3, 5}; !slices.Equal(arrived, want) {
		t.Fatalf("rows after arrivals %v, want %v", arrived, want)
	}
	last := points[2]
	if last.Placed != 5 || last.Ratio != 1 || last.GPU != 120 || last.CPU != 0 || last.Power() != 120 ||
		last.Load != 0.015 {
		t.Errorf("%+v", last)
	}
	if want := state.FragmentedGPUs(fleet.NewFragmentation(m)); last.Fragmented != want {
		t.Errorf("fragmentation %v, want %v", last.Fragmented, want)
	}
	if again := sampler.Points(); len(again) != 3 {
		t.Errorf("%d rows when asked again", len(again))
	}
	if p, ok := replay.FirstAtLoad(points, 0.012); !ok || p.Arrived != 5 {
		t.Errorf("%+v, %v", p, ok)
	}
	if _, ok := replay.FirstAtLoad(points, 0.02); ok {
		t.Error("a point past the end")
	}
}

func TestAReadingIsHalfwayBetweenTheStatesAroundALoad(t *testing.T) {
	whole := fleet.Demand{CPU: 1000, GPUs: 1, Milli: fleet.WholeGPU}
	state := fleet.NewState(twoKinds())
	gauge := replay.NewLoadGauge(state, []float64{0.5, 1.2, 3})
	list := []fleet.Demand{whole, {CPU: 1}, whole, whole, whole} // loads 1/3, 1/3, 2/3, 1, 4/3
	if _, err := replay.Inflate(t.Context(), chooser(t, "fgd", nil, state), stream(list...),
		gauge); err != nil {
		t.Fatal(err)
	}
	got := gauge.Readings()
	if got[0].Power != (120+210)/2 || got[0].Ratio != 1 {
		t.Errorf("%+v", got[0])
	}
	if got[1].Power != 300 || got[1].Ratio != 6.0/7 || got[0].Refused != (replay.Work{}) ||
		got[1].Refused != (replay.Work{Tasks: 1, GPU: 1000, CPU: 1000}) {
		t.Errorf("%+v", got)
	}
	if !math.IsNaN(float64(got[2].Power)) || !math.IsNaN(got[2].Ratio) {
		t.Errorf("%+v, want none past the end", got[2])
	}
}

// demands draws a list of tasks.
func demands(t *rapid.T) []fleet.Demand {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) fleet.Demand {
		d := fleet.Demand{
			CPU:  1000 * int64(rapid.IntRange(0, 5).Draw(t, "cpu")),
			GPUs: rapid.IntRange(0, 3).Draw(t, "gpus"),
		}
		switch {
		case d.GPUs == 1:
			d.Milli = rapid.IntRange(1, fleet.WholeGPU).Draw(t, "milli")
		case d.GPUs > 1:
			d.Milli = fleet.WholeGPU
		}
		return d
	}), 1, 40).Draw(t, "tasks")
}

func dice(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, 1))
}

// asked returns the milli-GPU of tasks.
func asked(list []fleet.Demand) (sum int64) {
	for i := range list {
		sum += int64(list[i].GPUMilli())
	}
	return sum
}

func TestAStreamIsTheListInAnyOrderAndThenTasksOfIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := demands(t)
		capacity := int64(rapid.IntRange(1, 100_000).Draw(t, "capacity"))
		rows, err := replay.Draw(dice(rapid.Uint64().Draw(t, "seed")), list, capacity, 1)
		if asked(list) == 0 {
			if !errors.Is(err, replay.ErrNoLoad) {
				t.Fatalf("%v, want that there is no load", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		first := slices.Clone(rows[:min(len(rows), len(list))])
		slices.Sort(first)
		if len(slices.Compact(slices.Clone(first))) < len(first) {
			t.Fatalf("the list is drawn as %v, want each row once", first)
		}
		if asked(list) >= capacity {
			wantPart(t, list, rows, capacity)
		} else {
			wantFilled(t, list, rows, capacity)
		}
	})
}

// wantPart wants a list that asks for too much to have lost tasks only.
func wantPart(t *rapid.T, list []fleet.Demand, rows []int32, capacity int64) {
	drawn := int64(0)
	for _, row := range rows {
		drawn += int64(list[row].GPUMilli())
	}
	if drawn > capacity || len(rows) > len(list) {
		t.Fatalf("%d tasks with %d milli-GPU, want a part of the %d with at most %d", len(rows), drawn,
			len(list), capacity)
	}
}

// wantFilled wants tasks added to a list as long as one GPU's worth of each fits.
func wantFilled(t *rapid.T, list []fleet.Demand, rows []int32, capacity int64) {
	if len(rows) < len(list) {
		t.Fatalf("%d arrivals of %d tasks", len(rows), len(list))
	}
	drawn := asked(list)
	for _, row := range rows[len(list):] {
		if milli := int64(list[row].Milli); drawn+milli > capacity {
			t.Fatalf("a task brings %d milli-GPU to %d, above %d", drawn, drawn+milli, capacity)
		}
		drawn += int64(list[row].GPUMilli())
	}
	if drawn+fleet.WholeGPU <= capacity {
		t.Fatalf("drawing ends at %d of %d milli-GPU, when any task still fits", drawn, capacity)
	}
}

func TestAListWhoseStreamWouldHardlyEndIsRefused(t *testing.T) {
	list := make([]fleet.Demand, 1000)
	list[0] = fleet.Demand{GPUs: 1, Milli: 1}
	if _, err := replay.Draw(dice(1), list, 1e12, 1); !errors.Is(err, replay.ErrNoLoad) {
		t.Errorf("%v, want that there is no load", err)
	}
}

func TestInflationTakesNoMemoryForAnArrival(t *testing.T) {
	kinds := slices.Repeat(twoKinds(), 50)
	list := slices.Repeat([]fleet.Demand{{CPU: 100, GPUs: 1, Milli: 100}, {CPU: 10}}, 1000)
	all := stream(list...)
	m := fleet.NewWorkload(list, fleet.PaperCover)
	grown := func(s *replay.Stream) float64 {
		return testing.AllocsPerRun(3, func() {
			state := fleet.NewState(kinds)
			sampler, gauge := replay.NewSampler(m, state), replay.NewLoadGauge(state, []float64{0.1, 0.2})
			if _, err := replay.Inflate(context.Background(), chooser(t, "pwr+fgd:0.1", m, state), s, sampler,
				gauge); err != nil {
				t.Error(err)
			}
		})
	}
	half := &replay.Stream{Demands: all.Demands, Arrivals: all.Arrivals[:len(all.Arrivals)/2]}
	if more := grown(all) - grown(half); more > float64(len(list))/10 {
		t.Errorf("%v allocations more for %d arrivals more", more, len(list)/2)
	}
}

func TestReasonsHaveNames(t *testing.T) {
	for _, d := range []replay.DropReason{replay.Placed, replay.NoModel, replay.TooLarge, replay.Full, 99} {
		if d.String() == "" {
			t.Errorf("%d has no name", d)
		}
	}
}
