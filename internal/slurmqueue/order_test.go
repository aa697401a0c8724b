package slurmqueue_test

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/slurmqueue"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/slurm"
)

// waits returns a pending job without a model: its limit says how long it takes.
func waits(id int64, gpus int, limit, age float64) epdapi.QueuedJob {
	return epdapi.QueuedJob{
		ID: id, User: "ada", Partition: "gpu", State: string(slurm.Pending), Tasks: 1, Nodes: 1, GPUs: gpus,
		Limit: live.LimitOfSeconds(limit), AgeS: live.Known(age),
	}
}

// runs returns a job that runs and ends in so many seconds.
func runs(id int64, gpus int, ends float64) epdapi.QueuedJob {
	j := waits(id, gpus, ends+100, 100)
	j.State, j.EndsS = string(slurm.Running), live.Known(ends)
	return j
}

// v100s returns one node with so many GPUs.
func v100s(gpus int) []epdapi.QueueNode {
	return []epdapi.QueueNode{{GPUModel: "V100", GPUs: gpus, Count: 1}}
}

func policyOf(tb rapid.TB, text string) *planner.Policy {
	tb.Helper()
	p, err := policy.Parse(text, policy.DefaultParams())
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func orderOf(tb rapid.TB, q *epdapi.Queue, text string) *slurmqueue.Order {
	tb.Helper()
	o, err := slurmqueue.NewOrder(context.Background(), q, usual(), policyOf(tb, text))
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

func TestThePolicySaysInWhichOrderJobsStart(t *testing.T) {
	for _, c := range []struct {
		policy string
		want   []slurm.JobID
	}{
		// By arrival; by GPU-seconds; passing the head, which waits for all GPUs.
		{"simple", []slurm.JobID{1, 2, 3, 4}},
		{"value", []slurm.JobID{4, 3, 2, 1}},
		{"simple-backfill", []slurm.JobID{2, 3, 4, 1}},
		// Jobs 2 and 3 would hold the head up beyond the end of what runs; job 4 doesn't.
		{"easy", []slurm.JobID{4, 1, 2, 3}},
	} {
		q := &epdapi.Queue{Nodes: v100s(4), Jobs: []epdapi.QueuedJob{
			runs(9, 2, 1000),
			waits(1, 4, 5000, 400), waits(2, 1, 4000, 300), waits(3, 1, 3000, 200), waits(4, 1, 500, 100),
		}}
		if o := orderOf(t, q, c.policy); !slices.Equal(o.Jobs, c.want) || o.Without != 0 {
			t.Errorf("%s: %+v, want %v", c.policy, o, c.want)
		}
	}
}

func TestWhatRunsHoldsItsGPUs(t *testing.T) {
	q := &epdapi.Queue{
		Nodes: []epdapi.QueueNode{
			{GPUModel: "V100", GPUs: 2, Count: 1}, {GPUModel: "GTX1080Ti", GPUs: 2, Count: 1},
		},
		Jobs: []epdapi.QueuedJob{runs(9, 2, 5000), waits(1, 2, 1000, 50), waits(2, 2, 1000, 40)},
	}
	q.Jobs[1].GPUModel, q.Jobs[2].GPUModel = "V100", "GTX1080Ti"
	for model, want := range map[string][]slurm.JobID{
		"V100": {2, 1}, "GTX1080Ti": {1, 2}, "": {2, 1},
		"H999": {1, 2},
	} {
		q.Jobs[0].GPUModel = model
		if o := orderOf(t, q, "simple-backfill"); !slices.Equal(o.Jobs, want) {
			t.Errorf("running on %q: %v, want %v", model, o.Jobs, want)
		}
	}
}

func TestPredictionsCountWhereThereIsNoModel(t *testing.T) {
	q := &epdapi.Queue{
		Nodes: v100s(1), Jobs: []epdapi.QueuedJob{
			runs(9, 1, 9000), waits(1, 1, 5000, 0), waits(2, 1, 5000, 0), waits(3, 1, 5000, 0),
		},
	}
	for i, seconds := range []float64{400, 300, 200, 100} {
		q.Jobs[i].RuntimeS, q.Jobs[i].PowerW = live.Known(seconds), live.Known(200)
	}
	q.Jobs[1].Limit = live.Limit{} // a prediction is enough
	if o := orderOf(t, q, "value"); !slices.Equal(o.Jobs, []slurm.JobID{3, 2, 1}) || o.Without != 0 {
		t.Errorf("%+v", o)
	}
	// What runs is believed to end when it was predicted to, and so the head starts
	// before what would run for longer than that.
	q.Nodes, q.Jobs[0].GPUs = v100s(2), 1
	q.Jobs[1].GPUs, q.Jobs[2].RuntimeS = 2, live.Known(2000)
	for _, c := range []struct {
		predicted live.Number
		want      []slurm.JobID
	}{{live.Known(400), []slurm.JobID{3, 1, 2}}, {live.Number{}, []slurm.JobID{2, 3, 1}}} {
		q.Jobs[0].RuntimeS = c.predicted
		if o := orderOf(t, q, "easy"); !slices.Equal(o.Jobs, c.want) {
			t.Errorf("what runs predicted %s: %v, want %v", c.predicted, o.Jobs, c.want)
		}
	}
}

func TestJobsThatCantBePlannedHaveNoPlace(t *testing.T) {
	q := &epdapi.Queue{Nodes: v100s(4), LeftOut: 2, Jobs: []epdapi.QueuedJob{
		waits(1, 1, 100, 0), waits(2, 1, 100, 0), waits(3, 2, 100, 0), waits(4, 1, 100, 0),
		waits(5, 8, 100, 0), waits(6, 1, 100, 9),
	}}
	q.Jobs[1].Held = true
	q.Jobs[2].Nodes = 2
	q.Jobs[3].Limit = live.Limit{}
	q.Jobs[5].Tasks = 3
	if o := orderOf(t, q, "simple"); !slices.Equal(o.Jobs, []slurm.JobID{6, 1}) || o.Without != 6 {
		t.Errorf("%+v", o)
	}
}

func TestADeadlineThatCantBeMetIsNoReasonToHaveNoPlace(t *testing.T) {
	q := &epdapi.Queue{
		Nodes: v100s(1), Jobs: []epdapi.QueuedJob{
			waits(1, 1, 1000, 100), waits(2, 1, 1000, 50), waits(3, 1, 1000, 20),
		},
	}
	q.Jobs[1].DeadlineS, q.Jobs[2].DeadlineS = live.Known(10), live.Known(1500)
	if o := orderOf(t, q, "simple,pick=edf"); !slices.Equal(o.Jobs, []slurm.JobID{3, 1, 2}) {
		t.Errorf("%+v", o)
	}
}

func TestForAnOrderItIsEnoughHowManyGPUsThereAre(t *testing.T) {
	q := &epdapi.Queue{
		Nodes: []epdapi.QueueNode{
			{GPUModel: "h\"999", GPUs: 2, Count: 1}, {GPUs: 2, Count: 2}, {GPUModel: "T4", GPUs: 1, Count: 1},
		},
		Jobs: []epdapi.QueuedJob{
			runs(9, 2, 5000), waits(1, 2, 3000, 50), waits(2, 2, 2000, 40), waits(3, 2, 100, 30),
			waits(4, 1, 900, 0),
		},
	}
	q.Jobs[0].GPUModel, q.Jobs[1].GPUModel = "h\"999", "h\"999"
	q.Jobs[4].GPUModel = "T4"
	if o := orderOf(t, q, "simple-backfill"); !slices.Equal(o.Jobs, []slurm.JobID{2, 3, 4, 1}) {
		t.Errorf("%+v", o)
	}
}

func TestEveryPolicyHasAnOrder(t *testing.T) {
	q := &epdapi.Queue{
		Nodes: []epdapi.QueueNode{
			{GPUModel: "V100", GPUs: 4, Count: 2}, {GPUModel: "GTX1080Ti", GPUs: 8, Count: 1},
		},
		Jobs: []epdapi.QueuedJob{runs(90, 3, 4000), runs(91, 4, 200)},
	}
	for id := range int64(25) {
		q.Jobs = append(q.Jobs, waits(id+1, 1+int(id%4), float64(600+1000*(id%7)), float64(5000-100*id)))
	}
	for _, text := range append(policy.Names(), "value,patience=2", "simple,pick=lpt", "fgd",
		"easy,clocks=default") {
		o := orderOf(t, q, text)
		got := slices.Clone(o.Jobs)
		slices.Sort(got)
		if len(slices.Compact(got)) != 25 || o.Without != 0 {
			t.Errorf("%s: %+v", text, o)
		}
	}
}

func TestAQueueThatIsTooLongIsOrderedByThoseThatWaitLongest(t *testing.T) {
	q := &epdapi.Queue{Nodes: v100s(8)}
	for id := range int64(slurmqueue.MaxPlanned + 50) {
		q.Jobs = append(q.Jobs, waits(id+1, 1, 100, float64(id)))
	}
	o := orderOf(t, q, "simple")
	if len(o.Jobs) != slurmqueue.MaxPlanned || o.Jobs[0] != slurmqueue.MaxPlanned+50 || o.Without != 50 {
		t.Errorf("%d jobs, the first is %v, %d without", len(o.Jobs), o.Jobs[0], o.Without)
	}
}

func TestAPlanOfTheWholeQueueTakesTenThousandTasksOfAnArray(t *testing.T) {
	q := &epdapi.Queue{Nodes: v100s(8), Jobs: []epdapi.QueuedJob{waits(1, 1, 100, 5)}, LeftOut: 3}
	q.Jobs[0].Tasks = 4_000_000
	cluster, _, _, err := slurmqueue.Cluster(q.Nodes, usual().Profiles)
	if err != nil {
		t.Fatal(err)
	}
	batch := cluster.Cluster()
	if b := slurmqueue.NewBatch(q, &batch, nil, nil); len(b.Jobs) != 10_000 || b.Left.Many != 3_990_003 ||
		q.Jobs[0].Tasks != 4_000_000 {
		t.Errorf("%d jobs, %+v", len(b.Jobs), b.Left)
	}
}

// An array has a million tasks in a line of Slurm's queue.
func TestTasksOfArraysThatNoOrderHasRoomForTakeNoMemory(t *testing.T) {
	const arrays, tasks = 200, 10_000
	q := &epdapi.Queue{Nodes: v100s(8), LeftOut: 3}
	for id := range int64(arrays) {
		j := waits(id+1, 1, 100, float64(id))
		j.Tasks, j.Held = tasks, id == 0
		q.Jobs = append(q.Jobs, j)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	o := orderOf(t, q, "simple")
	runtime.ReadMemStats(&after)
	if want := arrays*tasks - slurmqueue.MaxPlanned + 3; len(o.Jobs) != 1 || o.Jobs[0] != arrays ||
		o.Without != want || q.Jobs[1].Tasks != tasks {
		t.Errorf("%v, %d without, want %d", o.Jobs, o.Without, want)
	}
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 100 {
		t.Errorf("%d MiB were allocated", took)
	}
}

// A policy that never comes to an end has an order as far as it got.
func TestAnOrderEndsWithItsTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	q := &epdapi.Queue{Nodes: v100s(1)}
	for id := range int64(10) {
		q.Jobs = append(q.Jobs, waits(id+1, 1, 100, float64(100-id)))
	}
	p, offers := policyOf(t, "simple"), 0
	inner := p.Pick
	p.Pick = func(v *planner.View, pl planner.Placer) planner.Picker {
		watcher, ok := inner(v, pl).(planner.TaskObserver)
		if !ok {
			t.Fatal("simple watches")
		}
		return &impatient{TaskObserver: watcher, next: func() {
			if offers++; offers == 5 {
				cancel()
			}
		}}
	}
	o, err := slurmqueue.NewOrder(ctx, q, usual(), p)
	if err != nil || len(o.Jobs) == 0 || len(o.Jobs) > 5 || o.Jobs[0] != 1 || o.Without != 10-len(o.Jobs) {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := slurmqueue.NewOrder(ctx, q, usual(), p); !errors.Is(err, context.Canceled) {
		t.Errorf("without any time: %+v, %v", o, err)
	}
}

// impatient is a Pick stage that does something at each offer.
type impatient struct {
	planner.TaskObserver
	next func()
}

func (p *impatient) Next() (int, bool) {
	p.next()
	return p.TaskObserver.Next()
}

func TestWithoutNodesOrJobsThereIsNoOrder(t *testing.T) {
	q := &epdapi.Queue{Jobs: []epdapi.QueuedJob{waits(1, 1, 100, 0)}}
	if _, err := slurmqueue.NewOrder(t.Context(), q, usual(), policyOf(t, "simple")); !errors.Is(err,
		slurmqueue.ErrNoNodes) {
		t.Error(err)
	}
	if o := orderOf(t, &epdapi.Queue{Nodes: v100s(1)}, "simple"); len(o.Jobs) != 0 {
		t.Errorf("%+v", o)
	}
	q = &epdapi.Queue{Nodes: v100s(1), Jobs: q.Jobs, Models: "what"}
	_, err := slurmqueue.NewOrder(t.Context(), q, usual(), policyOf(t, "simple"))
	if err == nil || !strings.Contains(err.Error(), "epd's models") {
		t.Error(err)
	}
}

// By value alone, the order of equally big jobs of one GPU is that of their run
// times; every job that fits has exactly one place.
func TestEveryJobHasOnePlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := &epdapi.Queue{Nodes: v100s(2)}
		limits := rapid.SliceOfNDistinct(rapid.IntRange(60, 100_000), 1, 30, rapid.ID[int]).Draw(t, "limits")
		for i, limit := range limits {
			q.Jobs = append(q.Jobs,
				waits(int64(i+1), 1, float64(limit), rapid.Float64Range(0, 1e5).Draw(t, "age")))
		}
		o := orderOf(t, q, "value,kappa=0")
		want := make([]slurm.JobID, len(limits))
		for i := range want {
			want[i] = slurm.JobID(i + 1)
		}
		slices.SortFunc(want, func(a, b slurm.JobID) int { return cmp.Compare(limits[a-1], limits[b-1]) })
		if !slices.Equal(o.Jobs, want) {
			t.Fatalf("%v, want %v of %v", o.Jobs, want, limits)
		}
	})
}

func BenchmarkOrder(b *testing.B) {
	q := &epdapi.Queue{Nodes: []epdapi.QueueNode{
		{GPUModel: "V100", GPUs: 8, Count: 20}, {GPUModel: "GTX1080Ti", GPUs: 8, Count: 20},
	}}
	for id := range int64(80) {
		q.Jobs = append(q.Jobs, runs(10_000+id, 4, float64(100*id)))
	}
	for id := range int64(slurmqueue.MaxPlanned) {
		q.Jobs = append(q.Jobs, waits(id+1, 1+int(id%8), float64(600+977*(id%71)), float64(100_000-100*id)))
	}
	for _, text := range []string{
		"simple", "simple-backfill", "easy", "greedy", "value", "posted-price",
		"lookahead,futures=10",
	} {
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				orderOf(b, q, text)
			}
		})
	}
}

// TestAnOrderIsMadeForTheObjective: by what they take the narrow one comes first, by how
// long others wait for it the short one.
func TestAnOrderIsMadeForTheObjective(t *testing.T) {
	q := &epdapi.Queue{Nodes: v100s(4), Jobs: []epdapi.QueuedJob{
		runs(9, 4, 500), waits(1, 1, 3*3600, 60), waits(2, 4, 3600, 60),
	}}
	for weight, want := range map[float64][]slurm.JobID{0: {1, 2}, 1e4: {2, 1}} {
		terms := usual()
		terms.Goal.WaitWeight = weight
		o, err := slurmqueue.NewOrder(t.Context(), q, terms, policyOf(t, "replan"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(o.Jobs, want) {
			t.Errorf("with a price of waiting of %v: %v, want %v", weight, o.Jobs, want)
		}
	}
}
