package slurmqueue_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report/planreport"
	"github.com/epplan/epplan/internal/slurmqueue"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/policy"
)

// usual returns the terms of the default configuration.
func usual() *slurmqueue.PlanTerms {
	c := config.Default()
	return &slurmqueue.PlanTerms{Profiles: config.BuiltinProfiles(), Goal: c.Goal(), Safety: c.Safety}
}

// crowd returns a queue of so many jobs, the oldest first, with limits of an hour and
// more, of which every third has a deadline.
func crowd(jobs int) *epdapi.Queue {
	q := &epdapi.Queue{Nodes: v100s(4), Jobs: []epdapi.QueuedJob{runs(999, 2, 500)}}
	for i := range jobs {
		j := waits(int64(i+1), 1+i%4, 3600+60*float64(i), 100*float64(jobs-i))
		if i%3 == 0 {
			j.DeadlineS = live.Known(7200)
		}
		q.Jobs = append(q.Jobs, j)
	}
	return q
}

func TestJobsHaveThePaceOfTheirPartition(t *testing.T) {
	terms, q := usual(), crowd(3)
	plan := config.LivePlan{Policy: "replan,pace=1.1", Paces: map[string]float64{"batch": 1.5, "debug": 1}}
	terms.PaceOf = plan.PaceOf
	for i, partition := range []string{"batch", "gpu", "batch,debug"} {
		q.Jobs[1+i].Partition = partition
	}
	w, err := slurmqueue.PlanQueue(t.Context(), q, terms, slurmqueue.PlanOptions{Policy: plan.Policy})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{1.5, 1.1, 1} {
		if got := w.Result.Problem.Tasks[i].Pace; got != want {
			t.Errorf("job %d: pace %v, want %v", i+1, got, want)
		}
	}
}

func TestAPlanOfTheQueueIsOfWhatWaits(t *testing.T) {
	for _, text := range []string{"", "edl", "baseline", "edl,clocks=default", "lpt-ff"} {
		w, err := slurmqueue.PlanQueue(t.Context(), crowd(9), usual(), slurmqueue.PlanOptions{Policy: text})
		if err != nil {
			t.Fatal(text, err)
		}
		r := w.Result
		if err := check.Plan(r.Problem, r.Plan); err != nil {
			t.Error(text, err)
		}
		if len(w.Jobs) != 9 || w.Batch.Running != (slurmqueue.Running{Jobs: 1, GPUs: 2}) || w.Unasked != 0 {
			t.Errorf("%q: %d jobs, %+v, %d beyond", text, len(w.Jobs), w.Batch.Running, w.Unasked)
		}
		if r.Easy == nil || r.Constant == nil || r.Constant.Clocks["V100"].Core == 0 {
			t.Errorf("%q: not held against EASY and constant clocks: %+v", text, r.Constant)
		}
		if !(r.Baseline > 0) || !(r.Bound.Value > 0) || r.Bound.Value > r.Plan.Ledger.Total()*(1+1e-9) {
			t.Errorf("%q: %v J, baseline %v, bound %v", text, r.Plan.Ledger.Total(), r.Baseline,
				r.Bound.Value)
		}
	}
}

func TestAPlanWhoseTimeIsUpIsTheBestSoFar(t *testing.T) {
	w, err := slurmqueue.PlanQueue(t.Context(), crowd(180), usual(), slurmqueue.PlanOptions{SearchTime: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := check.Plan(w.Result.Problem, w.Result.Plan); err != nil {
		t.Error(err)
	}
	if r := w.Result; !r.Plan.Cut || r.Reference == nil {
		t.Errorf("cut %v, %v", r.Plan.Cut, r.Plan.Status)
	}
	if !w.NoFixed || w.Result.Constant != nil {
		t.Error("constant clocks are there, though there was no time to look for them")
	}
}

// What runs holds its GPUs until its limit, or until it is expected to end.
func TestAPlanOfTheQueueLeavesAloneWhatRuns(t *testing.T) {
	for _, text := range []string{"", "edl", "baseline", "value", "marginal"} {
		q := crowd(9)
		q.Jobs[0].GPUs = 3
		w, err := slurmqueue.PlanQueue(t.Context(), q, usual(), slurmqueue.PlanOptions{Policy: text})
		if err != nil {
			t.Fatal(text, err)
		}
		held := [4]float64{} // by GPU, until when
		a := w.Result.Plan.Assignments
		for _, gpu := range a[9].GPUs.Indexes() {
			held[gpu] = 500
		}
		for i := range w.Jobs {
			for _, gpu := range a[i].GPUs.Indexes() {
				if a[i].Start < held[gpu] {
					t.Errorf("%q: job %s starts at %v s on GPU %d, which is held until %v s", text,
						w.Jobs[i].ID, a[i].Start, gpu, held[gpu])
				}
			}
		}
		if a[9].End != 500 || a[9].GPUs.Len() != 3 {
			t.Errorf("%q: what runs %+v", text, a[9])
		}
		if s := planreport.Summarise(w.Result); s.JobsTotal != 9 || s.NodesUsed != 1 {
			t.Errorf("%q: %d jobs on %d nodes, want 9 on 1", text, s.JobsTotal, s.NodesUsed)
		}
	}
}

func TestJobsOnSeveralNodesArePlannedAndThoseThatWaitForOthersAreNamed(t *testing.T) {
	q := &epdapi.Queue{Nodes: []epdapi.QueueNode{{GPUModel: "V100", GPUs: 4, Count: 3}}}
	add := func(change func(j *epdapi.QueuedJob)) {
		j := waits(int64(len(q.Jobs)+1), 1, 3600, 10)
		change(&j)
		q.Jobs = append(q.Jobs, j)
	}
	add(func(j *epdapi.QueuedJob) { j.GPUs, j.Nodes = 8, 2 })
	add(func(j *epdapi.QueuedJob) { j.GPUs, j.Nodes = 12, 1 }) // Slurm doesn't know yet that it will be three
	add(func(j *epdapi.QueuedJob) { j.GPUs, j.Nodes = 7, 2 })
	add(func(j *epdapi.QueuedJob) { j.Held, j.Reason = true, "Dependency" })
	add(func(j *epdapi.QueuedJob) {
		j.Held, j.Reason, j.Tasks, j.ArrayJob, j.ArrayTasks = true, "JobHeldUser", 2, 40, "5-6"
	})
	add(func(j *epdapi.QueuedJob) { j.Tasks, j.ArrayJob, j.ArrayTasks = 3, 30, "2,7-9:2%1" })
	add(func(j *epdapi.QueuedJob) { j.ArrayJob, j.ArrayTasks = 30, "1" })
	add(func(j *epdapi.QueuedJob) { j.State, j.GPUs, j.Nodes, j.EndsS = "RUNNING", 2, 2, live.Known(900) })
	add(func(j *epdapi.QueuedJob) { j.State, j.GPUs, j.EndsS = "RUNNING", 8, live.Known(900) })
	w, err := slurmqueue.PlanQueue(t.Context(), q, usual(), slurmqueue.PlanOptions{Policy: "value"})
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(w.Jobs))
	for i := range w.Jobs {
		ids[i] = w.Jobs[i].ID
	}
	if got, want := strings.Join(ids, " "), "1 2 30_2 30_7 30_9 30_1"; got != want {
		t.Errorf("planned %s, want %s", got, want)
	}
	a := w.Result.Plan.Assignments
	if err := check.Plan(w.Result.Problem, w.Result.Plan); err != nil || len(a[0].More) != 1 ||
		len(a[1].More) != 2 {
		t.Errorf("on %d and %d nodes, want 2 and 3; %v", 1+len(a[0].More), 1+len(a[1].More), err)
	}
	if a[1].Start < 900 {
		t.Errorf("all nodes are free at %v s, want 900 s", a[1].Start)
	}
	left := w.Batch.Left
	if left.Several != 1 || left.Held != 3 ||
		left.Text() != "held or not due yet: 4 (Dependency), 40_[5-6] (JobHeldUser)" {
		t.Errorf("left out %+v: %s", left, left.Text())
	}
	if want := (slurmqueue.Running{Jobs: 2, GPUs: 10, Without: 8}); w.Batch.Running != want {
		t.Errorf("running %+v, want %+v", w.Batch.Running, want)
	}
}

// A job of a small partition doesn't run on other nodes, however free they are.
func TestJobsStayInTheirPartitions(t *testing.T) {
	q := &epdapi.Queue{Nodes: []epdapi.QueueNode{
		{GPUModel: "V100", GPUs: 4, Count: 3, Partitions: []string{"gpu", "long"}},
		{GPUModel: "V100", GPUs: 4, Count: 1, Partitions: []string{"debug"}},
	}}
	for i := range int64(8) {
		j := waits(i+1, 4, 3600, 10)
		j.Partition = []string{"gpu", "debug", "debug,long", "nowhere"}[i%4]
		q.Jobs = append(q.Jobs, j)
	}
	for _, text := range append(policy.Names(), "") {
		w, err := slurmqueue.PlanQueue(t.Context(), q, usual(), slurmqueue.PlanOptions{Policy: text})
		if err != nil {
			t.Fatal(text, err)
		}
		for i := range w.Jobs {
			a := &w.Result.Plan.Assignments[i]
			switch class := a.Node; {
			case i%4 == 3:
				if class >= 0 {
					t.Errorf("%q: a job of no partition of the cluster's is planned", text)
				}
			case class < 0:
				t.Errorf("%q: job %s isn't planned", text, w.Jobs[i].ID)
			case i%4 < 2 && w.Result.Plan.Nodes[a.Node].Class != i%4:
				t.Errorf("%q: job %s is on nodes of class %d, want %d", text, w.Jobs[i].ID,
					w.Result.Plan.Nodes[a.Node].Class, i%4)
			}
		}
		if left := w.Result.Plan.Unplaced; len(left) != 2 ||
			left[0].Why != "no node of its partition has the GPUs, CPUs and memory that it asks for" {
			t.Errorf("%q: unplaced %+v", text, left)
		}
	}
}

// Any user may ask, and may have submitted the arrays, too.
func TestTasksOfArraysThatWereNotAskedForTakeNoMemory(t *testing.T) {
	const arrays, tasks, most = 200, 10_000, 20
	q := &epdapi.Queue{Nodes: v100s(8)}
	for id := range int64(arrays) {
		j := waits(id+1, 1, 100, float64(id))
		j.Tasks, j.Held = tasks, id == arrays-1
		q.Jobs = append(q.Jobs, j)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w, err := slurmqueue.PlanQueue(t.Context(), q, usual(), slurmqueue.PlanOptions{
		Policy: "baseline", MaxTasks: most,
	})
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if want := (arrays-1)*tasks - most; len(w.Jobs) != most || w.Jobs[most-1].ID != "199/20" ||
		w.Unasked != want || q.Jobs[1].Tasks != tasks {
		t.Errorf("%d jobs up to %s, %d beyond, want %d", len(w.Jobs), w.Jobs[most-1].ID, w.Unasked, want)
	}
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 100 {
		t.Errorf("%d MiB were allocated", took)
	}
}

func TestThePlanIsOfThoseThatWaitLongest(t *testing.T) {
	w, err := slurmqueue.PlanQueue(t.Context(), crowd(9), usual(), slurmqueue.PlanOptions{MaxTasks: 2})
	if err != nil {
		t.Fatal(err)
	}
	tasks := w.Result.Problem.Tasks
	if len(w.Jobs) != 2 || tasks[0].ID != "1" || tasks[1].ID != "2" || w.Unasked != 7 {
		t.Errorf("%d beyond, tasks %+v", w.Unasked, tasks)
	}
}

func TestDeadlinesCountUnlessTheyAreRelaxed(t *testing.T) {
	for _, relaxed := range []bool{false, true} {
		w, err := slurmqueue.PlanQueue(t.Context(), crowd(3), usual(),
			slurmqueue.PlanOptions{IgnoreDeadlines: relaxed})
		if err != nil {
			t.Fatal(err)
		}
		if got := math.IsInf(w.Result.Problem.Tasks[0].Deadline, 1); got != relaxed {
			t.Errorf("relaxed %v: the deadline is %v", relaxed, w.Result.Problem.Tasks[0].Deadline)
		}
	}
}

func TestWhatCannotBePlannedIsSaid(t *testing.T) {
	unknown := crowd(2)
	unknown.Nodes[0].GPUModel = "H999"
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name   string
		ctx    context.Context
		queue  *epdapi.Queue
		policy string
		want   error
		says   string
	}{
		{"a policy that isn't one", t.Context(), crowd(2), "edlx", nil, `unknown policy "edlx"`},
		{"nothing waits", t.Context(), crowd(0), "", slurmqueue.ErrNothingWaits, ""},
		{"no GPU of a known model", t.Context(), unknown, "", slurmqueue.ErrNoNodes, ""},
		{"nobody waits for the answer", over, crowd(50), "", context.Canceled, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := slurmqueue.PlanQueue(c.ctx, c.queue, usual(), slurmqueue.PlanOptions{Policy: c.policy})
			if err == nil || c.want != nil && !errors.Is(err, c.want) ||
				!strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want %v %q", err, c.want, c.says)
			}
		})
	}
}

// A plan of the queue says how far off its saving may be where epd knows how far off its
// models are, and nothing where it doesn't.
func TestAPlanOfTheQueueSaysHowSureItsSavingIs(t *testing.T) {
	const model = `
[[model]]
workload = "cfd"
gpu_model = "V100"
form = "paper"
base_core_mhz = 1380
base_mem_mhz = 877
settings = 8
p0_w = 60
gamma_w = 0
c_w = 190
d_s = 3000
delta = 0.5
t0_s = 100
`
	for errs, known := range map[string]bool{"": false, "time_mape = 0.02\npower_mape = 0.03\n": true} {
		q := crowd(6)
		q.Models = strings.Replace(model, "settings = 8\n", "settings = 8\n"+errs, 1)
		for i := range q.Jobs {
			q.Jobs[i].Workload = "cfd"
		}
		w, err := slurmqueue.PlanQueue(t.Context(), q, usual(), slurmqueue.PlanOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s := planreport.Summarise(w.Result)
		if (s.SavingInterval != nil) != known || s.Modelled != 1 {
			t.Errorf("with %q: interval %v, %v modelled", errs, s.SavingInterval, s.Modelled)
		}
		if known && (s.SavingInterval.Low >= s.Saving() || s.SavingInterval.High <= s.Saving() ||
			s.SavingInterval.High-s.SavingInterval.Low > 0.2) {
			t.Errorf("a saving of %v in %v", s.Saving(), s.SavingInterval)
		}
	}
}

func TestAPlanOfTheQueueIsForTheObjective(t *testing.T) {
	terms := usual()
	terms.Goal.WaitWeight = 20
	w, err := slurmqueue.PlanQueue(t.Context(), crowd(9), terms, slurmqueue.PlanOptions{Policy: "marginal"})
	if err != nil {
		t.Fatal(err)
	}
	if unit := w.Result.Problem.CostUnit(); unit != "J + 20·GPU·s waited" {
		t.Errorf("planned for %s", unit)
	}
}
