package slurmqueue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/liveplan"
	"github.com/epplan/epplan/internal/slurmqueue"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/slurm"
)

// planned returns the terms of a plan by a policy that is wanted everywhere.
func planned(policy string) *config.Planning {
	c := config.Default().Live
	c.Plan.Mode, c.Plan.Policy = config.PlanEnforce, policy
	p, _ := c.Planning()
	return &p
}

// workloads are models of so many workloads on the V100.
func workloads(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "[[model]]\nworkload = \"w%d\"\ngpu_model = \"V100\"\nform = \"paper\"\n"+
			"base_core_mhz = 1380\nbase_mem_mhz = 877\nsettings = 8\np0_w = %d\ngamma_w = 10\nc_w = %d\n"+
			"d_s = %d\ndelta = %.2f\nt0_s = 20\n", i, 40+5*i, 90+20*i, 300+400*i, 0.2+0.6*float64(i)/float64(n))
	}
	return b.String()
}

// day returns a queue as it is every so often over a day, on a small cluster: what waits starts first
// come, first served, and takes as long as by its model, or its limit.
func day(rng *rand.Rand, snapshots int) []*epdapi.Queue {
	const step, models = 600.0, 6
	type job struct {
		epdapi.QueuedJob
		submitted, begun, takes float64
	}
	var waiting, running []*job
	days := make([]*epdapi.Queue, 0, snapshots)
	next := int64(100)
	for i := range snapshots {
		now := step * float64(i)
		for range rng.IntN(6) {
			next++
			limit := 600 + 600*float64(rng.IntN(20))
			j := &job{QueuedJob: waits(next, 1<<rng.IntN(4), limit, 0), submitted: now, takes: limit * rng.Float64()}
			switch rng.IntN(6) {
			case 0:
				j.RuntimeS, j.PowerW = live.Known(limit/2), live.Known(200)
			case 1:
				j.HandsOff = true
				j.Workload = "w0"
			case 2:
			default:
				j.Workload = fmt.Sprintf("w%d", rng.IntN(models))
			}
			if rng.IntN(8) == 0 {
				j.ArrayJob, j.ArrayTasks, j.Tasks = next, "0-2", 3
			}
			if rng.IntN(8) == 0 {
				j.DeadlineS = live.Known(2 * limit)
			}
			j.User = []string{"ada", "bob"}[rng.IntN(2)]
			waiting = append(waiting, j)
		}
		running = slices.DeleteFunc(running, func(j *job) bool { return j.begun+j.takes <= now })
		free := 32
		for _, j := range running {
			free -= j.GPUs
		}
		waiting = slices.DeleteFunc(waiting, func(j *job) bool {
			if j.GPUs > free || j.Tasks > 1 {
				return false
			}
			free -= j.GPUs
			j.begun, j.State, j.GPUModel = now, string(slurm.Running), "V100"
			running = append(running, j)
			return true
		})
		q := &epdapi.Queue{
			Models: workloads(models),
			Nodes:  []epdapi.QueueNode{{GPUModel: "V100", GPUs: 8, Count: 4, Partitions: []string{"gpu"}}},
		}
		for _, j := range waiting {
			j.AgeS = live.Known(now - j.submitted)
			q.Jobs = append(q.Jobs, j.QueuedJob)
		}
		for _, j := range running {
			j.AgeS, j.EndsS = live.Known(now-j.begun), live.Known(j.Limit.Seconds()-(now-j.begun))
			q.Jobs = append(q.Jobs, j.QueuedJob)
		}
		days = append(days, q)
	}
	return days
}

// recordedDays are queues that were drawn, and those that a controller listed over a day of the lab.
func recordedDays(t *testing.T) map[string][]*epdapi.Queue {
	t.Helper()
	days := map[string][]*epdapi.Queue{"drawn": day(rand.New(rand.NewPCG(7, 1)), 20)}
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			q := new(epdapi.Queue)
			if err := json.Unmarshal([]byte(line), q); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			days[filepath.Base(name)] = append(days[filepath.Base(name)], q)
		}
	}
	return days
}

// heldOut returns a lot that holds some jobs out.
func heldOut(which func(slurm.JobID) bool) func(slurm.JobID, string) live.Arm {
	return func(id slurm.JobID, _ string) live.Arm {
		if which(id) {
			return live.ArmHeldOut
		}
		return live.ArmTreated
	}
}

// TestTheLivePlanOfARecordedDayIsTheOfflineOne holds what is in force, after each snapshot of a queue,
// against what epplan plan --from-slurm says of it, and against the engine itself.
func TestTheLivePlanOfARecordedDayIsTheOfflineOne(t *testing.T) {
	terms := usual()
	terms.Arm = heldOut(func(id slurm.JobID) bool { return id%7 == 0 })
	terms.Admissible = func(q *liveplan.ClockQuestion) (clocks []dvfsmodel.Setting, ok bool) {
		for core := dvfsmodel.MHz(135); core <= 1380; core += 7.5 {
			if float64(core) > 700+20_000/q.Limit {
				clocks = append(clocks, dvfsmodel.Setting{Core: dvfsmodel.MHz(int(core)), Mem: 877})
			}
		}
		return clocks, true
	}
	var seen daySeen
	for name, snapshots := range recordedDays(t) {
		for i, q := range snapshots {
			text := []string{"edl:0.8", "value", "edl-bin", "cats-safe"}[i%4]
			if i == 5 {
				text = config.Best
			}
			t.Run(fmt.Sprintf("%s/%d by %s", name, i, text), func(t *testing.T) {
				seen.compare(t, renewed(t, q, terms, text), q, terms, text)
			})
		}
	}
	t.Logf("%d tasks, %d at lower clocks, %d shortened by theta", seen.tasks, seen.slowed, seen.shortened)
	if seen.slowed == 0 || seen.tasks < 100 {
		t.Error("the days show nothing")
	}
}

// daySeen counts what was compared.
type daySeen struct{ tasks, slowed, shortened int }

// renewed returns the plan that a planner puts in force for a queue.
func renewed(t *testing.T, q *epdapi.Queue, terms *slurmqueue.PlanTerms, policy string) *live.Plan {
	t.Helper()
	settings := config.Default().Live
	settings.Plan.Mode, settings.Plan.Policy = config.PlanEnforce, policy
	p := slurmqueue.LivePlanner{
		Queue:    func(context.Context) (*epdapi.Queue, error) { return q, nil },
		Settings: func() (*config.Live, *slurmqueue.PlanTerms) { return &settings, terms },
		InForce:  new(liveplan.InForce), Clock: func() time.Time { return dayStart },
	}
	p.Renew(t.Context())
	inForce := p.InForce.Plan(dayStart)
	if inForce == nil || inForce.Trouble != "" || inForce.Stale != "" {
		t.Fatalf("%+v", inForce)
	}
	return inForce
}

// compare holds a plan in force against the offline ones of the same queue.
func (s *daySeen) compare(
	t *testing.T, inForce *live.Plan, q *epdapi.Queue, terms *slurmqueue.PlanTerms, policy string,
) {
	t.Helper()
	if policy == config.Best {
		policy = "edl-align"
	}
	offline, err := slurmqueue.PlanQueue(t.Context(), q, terms, slurmqueue.PlanOptions{Policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	direct, err := planner.Solve(t.Context(), offline.Result.Problem, policyOf(t, policy), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := byTask(inForce)
	if len(got) != len(offline.Jobs) {
		t.Errorf("%d tasks in force, %d offline", len(got), len(offline.Jobs))
	}
	for task, job := range offline.Jobs {
		a, j := &offline.Result.Plan.Assignments[task], got[job.ID]
		s.tasks++
		if j.Core > 0 && j.Core < 1380 {
			s.slowed++
		}
		if strings.HasPrefix(j.Reason, "readjusted") {
			s.shortened++
		}
		if j.HeldOut && j.Setting != (dvfsmodel.Setting{}) {
			t.Errorf("job %s is held out at %s", job.ID, j.Words())
		}
		want := live.PlannedJob{
			Start: after(a.Start), End: after(a.End), Setting: dvfsmodel.Setting{Core: a.Point.Core, Mem: a.Point.Mem},
			Reason: a.Reason.String(),
		}
		at := offline.Result.Problem.Tasks[task].Options[a.Option].Response.Default()
		if want.Mem == at.Mem {
			want.Mem = 0
		}
		if want.Mem == 0 && want.Core == at.Core {
			want.Core = 0
		}
		is := live.PlannedJob{Start: j.Start, End: j.End, Setting: j.Setting, Reason: j.Reason}
		if is != want {
			t.Errorf("job %s in force %+v\noffline %+v", job.ID, is, want)
		}
		// A search depends on the order of tasks; SolveChecked has its own.
		if policy != "edl-align" && !reflect.DeepEqual(*a, direct.Assignments[task]) {
			t.Errorf("job %s offline %+v\nby the engine itself %+v", job.ID, *a, direct.Assignments[task])
		}
	}
}

var dayStart = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func after(seconds float64) time.Time { return dayStart.Add(live.Known(seconds).Duration()) }

func byTask(p *live.Plan) map[string]live.PlannedJob {
	all := make(map[string]live.PlannedJob, len(p.Jobs))
	for _, j := range p.Jobs {
		all[j.Task] = j
	}
	return all
}

// drawnQueue returns one of a drawn day.
func drawnQueue(t *rapid.T) *epdapi.Queue {
	seed := rapid.Uint64().Draw(t, "seed")
	snapshots := day(rand.New(rand.NewPCG(seed, 2)), rapid.IntRange(1, 8).Draw(t, "snapshots"))
	q := snapshots[len(snapshots)-1]
	if rapid.Bool().Draw(t, "two kinds") {
		q.Nodes = append(q.Nodes, epdapi.QueueNode{GPUModel: "T4", GPUs: 4, Count: 3, Partitions: []string{"gpu"}},
			epdapi.QueueNode{GPUModel: "V100", GPUs: 8, Count: 2, Partitions: []string{"other"}})
	}
	for i := range q.Jobs { // jobs that can run nowhere, or need no GPU
		if j := &q.Jobs[i]; j.State == string(slurm.Pending) {
			switch rapid.IntRange(0, 20).Draw(t, "oddity") {
			case 0:
				j.GPUModel = "H100"
			case 1:
				j.GPUs = 0
			case 2:
				j.GPUs = 64
			case 3:
				j.Partition = "closed"
			}
		}
	}
	return q
}

func TestThePlanDoesNotDependOnTheOrderOfRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawnQueue(t)
		wanted := planned(rapid.SampledFrom([]string{"edl:0.7", "value", "edl-bin"}).Draw(t, "policy"))
		wanted.Window = rapid.IntRange(1, 30).Draw(t, "window")
		first, err := slurmqueue.NewPlan(t.Context(), q, usual(), wanted, dayStart)
		if err != nil {
			t.Fatal(err)
		}
		other := *q
		other.Jobs = rapid.Permutation(q.Jobs).Draw(t, "jobs")
		other.Nodes = rapid.Permutation(q.Nodes).Draw(t, "nodes")
		again, err := slurmqueue.NewPlan(t.Context(), &other, usual(), wanted, dayStart)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(first, again) {
			t.Fatalf("%+v\nwant %+v", again, first)
		}
	})
}

// TestAPlanKeepsToTheClocksThatMayBeSet draws which those are by workload and limit.
func TestAPlanKeepsToTheClocksThatMayBeSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawnQueue(t)
		lowest := dvfsmodel.MHz(rapid.IntRange(500, 1380).Draw(t, "lowest"))
		terms := usual()
		terms.Admissible = func(*liveplan.ClockQuestion) (all []dvfsmodel.Setting, ok bool) {
			for core := lowest; core <= 1380; core++ {
				all = append(all, dvfsmodel.Setting{Core: core, Mem: 877})
			}
			return all, true
		}
		held := slurm.JobID(rapid.IntRange(2, 4).Draw(t, "every held out"))
		terms.Arm = heldOut(func(id slurm.JobID) bool { return id%held == 0 })
		p, err := slurmqueue.NewPlan(t.Context(), q, terms, planned("edl:0.7"), dayStart)
		if err != nil {
			t.Fatal(err)
		}
		handsOff := make(map[uint32]bool)
		tasks := 0
		for i := range q.Jobs {
			j := &q.Jobs[i]
			handsOff[uint32(j.ID)] = j.HandsOff
			if j.State == string(slurm.Pending) && j.GPUs > 0 {
				tasks += j.Tasks
			}
		}
		if len(p.Jobs)+p.Without != tasks {
			t.Fatalf("%d planned and %d without a place, of %d", len(p.Jobs), p.Without, tasks)
		}
		for i, j := range p.Jobs {
			switch {
			case j.Core != 0 && j.Core < lowest:
				t.Fatalf("job %s at %s, the lowest is %v MHz", j.Task, j.Words(), float64(lowest))
			case (handsOff[j.Job] || j.HeldOut) && j.Setting != (dvfsmodel.Setting{}):
				t.Fatalf("job %s at %s", j.Task, j.Words())
			case j.HeldOut != (j.Job%uint32(held) == 0):
				t.Fatalf("job %s is held out: %v", j.Task, j.HeldOut)
			case i > 0 && j.Start.Before(p.Jobs[i-1].Start):
				t.Fatalf("job %s is to start before the one before it", j.Task)
			}
		}
	})
}

func TestJobsThatAreHeldOutHaveNoPlaceInTheOrder(t *testing.T) {
	s := newSite()
	s.live.Mode, s.live.Pick.Policy = live.Enforce, config.PickDeadline
	s.live.Plan.Mode, s.live.Plan.Policy = config.PlanEnforce, "value"
	s.queue.Jobs = append(s.queue.Jobs, waits(3, 1, 100, 10))
	s.terms.Arm = heldOut(func(id slurm.JobID) bool { return id == 2 })
	s.Renew(t.Context())
	if r := s.Ranking(); r == nil || !maps.Equal(r.Place, map[slurm.JobID]int{3: 0, 1: 1}) {
		t.Errorf("%+v", r)
	}
	if p := s.InForce.Plan(s.now); len(p.Jobs) != 3 || p.Jobs[0].Job != 2 || !p.Jobs[0].HeldOut {
		t.Errorf("%+v", p)
	}
}

func TestAPlanIsMadeAnewWhenTheQueueChanges(t *testing.T) {
	s := newSite()
	s.live.Plan.Mode = config.PlanObserve
	state := slurmqueue.QueueState{Digest: 1, Pending: []slurm.JobID{1, 2}}
	runFor := func(t *testing.T, d time.Duration, meanwhile func()) int {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		time.AfterFunc(d/2, meanwhile)
		s.asked = 0
		s.Run(ctx)
		return s.asked
	}
	synctest.Test(t, func(t *testing.T) {
		s.Clock, s.Watch = nil, func() slurmqueue.QueueState { return state }
		if n := runFor(t, 50*time.Second, func() {}); n != 1 {
			t.Errorf("nothing changed, and %d plans", n)
		}
		if n := runFor(t, 50*time.Second, func() { state.Digest++ }); n != 2 {
			t.Errorf("jobs changed once, and %d plans", n)
		}
		s.live.Plan.Every = 600
		s.queue.Jobs = append(s.queue.Jobs, runs(9, 1, 61))
		if n := runFor(t, 100*time.Second, func() {}); n != 2 {
			t.Errorf("a job didn't end when it was expected to, and %d plans", n)
		}
	})
}

func TestAPlanThatIsStaleSaysSo(t *testing.T) {
	s := newSite()
	s.live.Plan.Mode, s.live.Mode = config.PlanEnforce, live.Enforce
	state := slurmqueue.QueueState{Pending: []slurm.JobID{1, 2}}
	s.Watch = func() slurmqueue.QueueState { return state }
	s.Renew(t.Context())
	if a := s.InForce.AdviceFor(1, 0, s.now); a.Job == nil || a.Policy != "edl" {
		t.Fatalf("%+v", a)
	}
	s.InForce.Observe([]slurm.JobID{1, 2, 3, 4, 5})
	if a := s.InForce.AdviceFor(1, 0, s.now); a.Job != nil ||
		a.Why != "it is stale: it doesn't know 3 of the 5 jobs that wait" {
		t.Errorf("%+v", a)
	}
	if r := s.Ranking(); r.Trouble == "" || !s.now.After(r.Until) {
		t.Errorf("%+v", r)
	}
	s.InForce.Observe([]slurm.JobID{1, 2, 3})
	if a := s.InForce.AdviceFor(1, 0, s.now); a.Job == nil {
		t.Errorf("one of three is new: %+v", a)
	}
	if a := s.InForce.AdviceFor(3, 0, s.now); a.Job != nil || a.Why != "it doesn't have the job" {
		t.Errorf("%+v", a)
	}
	late := s.now.Add(10*time.Minute + time.Second)
	if a := s.InForce.AdviceFor(1, 0, late); a.Job != nil || !strings.Contains(a.Why, "couldn't be made anew") {
		t.Errorf("%+v", a)
	}
	s.live.Plan.Mode, s.live.Pick.Policy = config.PlanOff, config.PickDeadline
	s.Renew(t.Context())
	if a := s.InForce.AdviceFor(1, 0, s.now); a != (liveplan.Advice{}) || s.Ranking() != nil {
		t.Errorf("off: %+v", a)
	}
}

// TestAPlanOfAnOldQueueIsAsOld: while Slurm doesn't answer what is known of it stays as it is, and no plan of
// that is a new one.
func TestAPlanOfAnOldQueueIsAsOld(t *testing.T) {
	s := newSite()
	s.live.Plan.Mode, s.live.Mode = config.PlanEnforce, live.Enforce
	s.queue.At = s.now
	for s.now.Before(s.queue.At.Add(12 * time.Minute)) {
		again := s.Renew(t.Context())
		age := s.now.Sub(s.queue.At)
		if p := s.InForce.Plan(s.now); (p.Stale != "") != (age > 10*time.Minute) ||
			(p.Trouble != "") != (age >= 10*time.Minute) {
			t.Fatalf("a queue from %s ago: %q, %q", age, p.Stale, p.Trouble)
		}
		s.now = s.now.Add(again)
	}
	s.queue.At = s.now.Add(-20 * time.Second)
	s.Renew(t.Context())
	if p := s.InForce.Plan(s.now.Add(10 * time.Minute)); p.Stale != "" || p.Trouble != "" {
		t.Errorf("a new queue: %q, %q", p.Stale, p.Trouble)
	}
}

func TestTasksOfAnArrayTakeWhatIsPlannedOneAfterTheOther(t *testing.T) {
	f := new(liveplan.InForce)
	p := &live.Plan{Policy: "edl", Until: dayStart.Add(time.Hour)}
	for i := range 3 {
		p.Jobs = append(p.Jobs, live.PlannedJob{Job: 10, Task: fmt.Sprintf("10_%d", i)})
	}
	f.Put(p, []slurm.JobID{10}, 1)
	ids := []slurm.JobID{11, 11, 12, 10, 10} // the last one keeps the number of the array
	got := make([]string, 0, len(ids))
	for _, id := range ids {
		got = append(got, f.AdviceFor(id, 10, dayStart).Job.Task)
	}
	if want := []string{"10_0", "10_0", "10_1", "10_2", "10_2"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// hugeQueue is so many waiting jobs of one to eight GPUs on a site of 5,000, three of four of which are
// held by jobs that run.
func hugeQueue(waiting int) *epdapi.Queue {
	const models, kinds = 60, 3
	rng := rand.New(rand.NewPCG(5, 3))
	q := &epdapi.Queue{Models: workloads(models)}
	for i := range kinds {
		q.Nodes = append(q.Nodes, epdapi.QueueNode{
			GPUModel: "V100", GPUs: 8, Count: 625 / kinds, Partitions: []string{fmt.Sprintf("p%d", i)},
		})
	}
	add := func(j epdapi.QueuedJob) {
		j.Partition = fmt.Sprintf("p%d", rng.IntN(kinds))
		if rng.IntN(5) > 0 {
			of := rng.IntN(models)
			j.Workload = fmt.Sprintf("w%d", of)
			j.Limit = live.LimitOfSeconds(1.3*float64(320+400*of) + 600*float64(rng.IntN(20)))
		}
		q.Jobs = append(q.Jobs, j)
	}
	for id := range 1000 {
		j := runs(int64(100_000+id), 1<<rng.IntN(3), 60+20_000*rng.Float64())
		j.GPUModel = "V100"
		add(j)
	}
	for id := range waiting {
		limit := 600 * float64(1+rng.IntN(100))
		add(waits(int64(id+1), 1<<rng.IntN(4), limit, float64(200_000-id)))
	}
	return q
}

// lostDeadlines gives a fifth of the jobs that wait a deadline that nobody can keep.
func lostDeadlines(q *epdapi.Queue) *epdapi.Queue {
	for i := range q.Jobs {
		if j := &q.Jobs[i]; j.State == string(slurm.Pending) && j.ID%5 == 0 {
			j.DeadlineS = live.Known(float64(1 + j.ID%100))
		}
	}
	return q
}

// BenchmarkLivePlan makes a plan of 10,000 waiting jobs on 5,000 GPUs, without deadlines and with a fifth
// that are lost.
func BenchmarkLivePlan(b *testing.B) {
	q, lost := hugeQueue(10_000), lostDeadlines(hugeQueue(10_000))
	terms := usual()
	terms.Arm = heldOut(func(id slurm.JobID) bool { return id%20 == 0 })
	terms.Admissible = func(q *liveplan.ClockQuestion) (clocks []dvfsmodel.Setting, ok bool) {
		for core := dvfsmodel.MHz(135); core <= 1380; core++ {
			if float64(core) > 500+20_000/q.Limit {
				clocks = append(clocks, dvfsmodel.Setting{Core: core, Mem: 877})
			}
		}
		return clocks, true
	}
	for _, text := range []string{"replan,pace=1", "edl", "edl:0.8", "value", "edl-bin", config.Best} {
		for name, q := range map[string]*epdapi.Queue{text: q, text + ", lost": lost} {
			b.Run(name, func(b *testing.B) {
				wanted := planned(text)
				wanted.Window = 10_000
				tasks := 0
				for b.Loop() {
					p, err := slurmqueue.NewPlan(b.Context(), q, terms, wanted, dayStart)
					if err != nil {
						b.Fatal(err)
					}
					tasks = len(p.Jobs)
				}
				b.ReportMetric(float64(tasks), "tasks")
			})
		}
	}
}

// TestAPlanSlowsNobodyForLessThanOthersWaitingCosts: the longer the queue, the faster the clocks, where
// waiting has a price; in a partition in which nobody else waits they are as slow as ever.
func TestAPlanSlowsNobodyForLessThanOthersWaitingCosts(t *testing.T) {
	took := func(policy string, weight float64, others int) (crowded, alone float64) {
		q := &epdapi.Queue{Models: workloads(1), Nodes: []epdapi.QueueNode{
			{GPUModel: "V100", GPUs: 4, Count: 1, Partitions: []string{"a"}},
			{GPUModel: "V100", GPUs: 8, Count: 1, Partitions: []string{"b"}},
		}}
		add := func(id int64, partition string) {
			j := waits(id, 4, 3600, float64(1000-id))
			j.Workload, j.Partition = "w0", partition
			q.Jobs = append(q.Jobs, j)
		}
		add(1, "b")
		for id := range int64(others) + 1 {
			add(id+2, "a")
		}
		terms := usual()
		terms.Goal.WaitWeight = weight
		p, err := slurmqueue.NewPlan(t.Context(), q, terms, planned(policy), dayStart)
		if err != nil || len(p.Jobs) != others+2 {
			t.Fatalf("%+v, %v", p, err)
		}
		for i := range p.Jobs {
			switch p.Jobs[i].Job {
			case 1:
				alone = p.Jobs[i].TimeS
			case 2:
				crowded = p.Jobs[i].TimeS
			}
		}
		return crowded, alone
	}
	for _, policy := range []string{"edl", "value", "edl-bin", config.Best} { // replan prices time itself
		few, alone := took(policy, 20, 1)
		many, still := took(policy, 20, 40)
		free, freeAlone := took(policy, 0, 40)
		if !(many < few && few <= free) {
			t.Errorf("%s: a job takes %v s before another one, %v before forty, %v where waiting is free", policy, few,
				many, free)
		}
		if policy == config.Best {
			continue // it sees more than a job by itself
		}
		if alone != still || alone != freeAlone {
			t.Errorf("%s: alone in its partition it takes %v s, %v when others wait elsewhere, %v where "+
				"waiting is free", policy, alone, still, freeAlone)
		}
	}
}

// A deadline that can't be met doesn't cost a job its place: Slurm runs it all the same, and others wait
// for its GPUs.
func TestJobsWhoseDeadlineIsLostHaveAPlace(t *testing.T) {
	for _, text := range []string{"replan,pace=1", "edl", "value", "edl-bin", "cats-safe", config.Best} {
		q := crowd(9)
		pending := 0
		for i := range q.Jobs {
			if q.Jobs[i].State != string(slurm.Pending) {
				continue
			}
			if pending++; pending%2 == 0 {
				q.Jobs[i].DeadlineS = live.Known(1)
			}
		}
		p, err := slurmqueue.NewPlan(t.Context(), q, usual(), planned(text), dayStart)
		if err != nil || len(p.Jobs) != pending || p.Without != 0 || pending < 4 {
			t.Errorf("%s: %d of %d jobs have a place, %d don't: %v", text, len(p.Jobs), pending, p.Without, err)
		}
	}
}

// TestAJobThatCanRunNowhereKeepsNobodyElseFromBeingPlanned: it asks for GPUs that the cluster hasn't got, with
// and without a deadline.
func TestAJobThatCanRunNowhereKeepsNobodyElseFromBeingPlanned(t *testing.T) {
	for _, deadline := range []live.Number{{}, live.Known(1000)} {
		lost := waits(1, 1, 900, 90)
		lost.GPUModel, lost.DeadlineS = "H100", deadline
		q := &epdapi.Queue{
			Nodes: v100s(4), Models: workloads(1), Jobs: []epdapi.QueuedJob{lost, waits(2, 1, 900, 80)},
		}
		for _, text := range []string{"replan,pace=1", "edl", "value", config.Best} {
			p, err := slurmqueue.NewPlan(t.Context(), q, usual(), planned(text), dayStart)
			if err != nil || len(p.Jobs) != 1 || p.Jobs[0].Job != 2 || p.Without != 1 {
				t.Errorf("%s, deadline %v: %+v, %v", text, deadline, p, err)
			}
		}
		if _, err := slurmqueue.PlanQueue(t.Context(), q, usual(), slurmqueue.PlanOptions{}); err != nil {
			t.Errorf("deadline %v: %v", deadline, err)
		}
	}
}

// TestAPlannedJobEndsEarlyEnoughToBeAsLateAsIsAsPlanned draws a deadline: a job's clocks leave a
// tenth of the time until then, or all that there is.
func TestAPlannedJobEndsEarlyEnoughToBeAsLateAsIsAsPlanned(t *testing.T) {
	const shortest = 320.0 // of w0
	rapid.Check(t, func(t *rapid.T) {
		deadline := rapid.Float64Range(shortest, 3*shortest).Draw(t, "deadline")
		job := waits(1, 1, 3000, 90)
		job.Workload, job.DeadlineS = "w0", live.Known(deadline)
		q := &epdapi.Queue{Nodes: v100s(4), Models: workloads(1), Jobs: []epdapi.QueuedJob{job}}
		text := rapid.SampledFrom(
			[]string{"replan,pace=1", "edl", "edl-bin", "value", config.Best}).Draw(t, "policy")
		p, err := slurmqueue.NewPlan(t.Context(), q, usual(), planned(text), dayStart)
		if err != nil || len(p.Jobs) != 1 {
			t.Fatalf("%+v, %v", p, err)
		}
		ends := p.Jobs[0].End.Sub(dayStart).Seconds()
		if latest := max((1-liveplan.OffPlan)*deadline, shortest); ends > latest+1 {
			t.Fatalf("%s: ends after %v s, want %v at most", text, ends, latest)
		}
	})
}

// TestOfTasksThatStartTogetherThePolicysFirstComesFirst: when less comes free than is planned, it is the
// policy's own choice that gets it.
func TestOfTasksThatStartTogetherThePolicysFirstComesFirst(t *testing.T) {
	q := &epdapi.Queue{
		Nodes: []epdapi.QueueNode{{GPUModel: "V100", GPUs: 4, Count: 2}},
		Jobs:  []epdapi.QueuedJob{runs(90, 4, 1000), runs(91, 4, 1000), waits(1, 4, 900, 90), waits(2, 1, 600, 50)},
	}
	p, err := slurmqueue.NewPlan(t.Context(), q, usual(), planned("value"), dayStart)
	if err != nil || len(p.Jobs) != 2 || p.Jobs[0].Job != 2 || !p.Jobs[0].Start.Equal(p.Jobs[1].Start) {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestAPlanWaitsForRunsAtTheClocksThatTheyHave: one that was slowed down ends later than at default clocks.
func TestAPlanWaitsForRunsAtTheClocksThatTheyHave(t *testing.T) {
	running := runs(9, 4, 5000)
	running.Workload, running.GPUModel = "w0", "V100" // 320 s at default clocks, of which 100 s are over
	q := &epdapi.Queue{
		Nodes: v100s(4), Models: workloads(1), Jobs: []epdapi.QueuedJob{running, waits(1, 4, 900, 90)},
	}
	for runTime, want := range map[float64]float64{0: 220, 400: 300, 900: 800, 120: 20, 50: 50} {
		terms := usual()
		if runTime > 0 {
			terms.RunTimes = func() map[slurm.JobID]float64 { return map[slurm.JobID]float64{9: runTime} }
		}
		p, err := slurmqueue.NewPlan(t.Context(), q, terms, planned("edl"), dayStart)
		if err != nil || len(p.Jobs) != 1 || p.Jobs[0].Start.Sub(dayStart).Round(time.Second) !=
			live.Known(want).Duration() || !p.NextEnd.Equal(p.Jobs[0].Start) {
			t.Errorf("a run of %v s: %+v, %v; want a start after %v s", runTime, p, err, want)
		}
	}
}

// TestJobsOfTheConstantArmArePlannedAtItsClocks: they get those whatever a plan has, and queue as without
// one.
func TestJobsOfTheConstantArmArePlannedAtItsClocks(t *testing.T) {
	q := &epdapi.Queue{Nodes: v100s(4), Models: workloads(1)}
	for id := int64(1); id <= 4; id++ {
		j := waits(id, 1, 100_000, float64(100-id))
		j.Workload = "w0"
		q.Jobs = append(q.Jobs, j)
	}
	constant := dvfsmodel.Setting{Core: 1237, Mem: 877}
	terms := usual()
	terms.Admissible = func(*liveplan.ClockQuestion) ([]dvfsmodel.Setting, bool) {
		return []dvfsmodel.Setting{{Core: 1005, Mem: 877}}, true
	}
	terms.Arm = func(id slurm.JobID, gpuModel string) live.Arm {
		if gpuModel == "V100" {
			return map[slurm.JobID]live.Arm{
				1: live.ArmConstant, 2: live.ArmHeldOut, 3: live.ArmConstant, 4: live.ArmTreated,
			}[id]
		}
		if id == 2 {
			return live.ArmHeldOut
		}
		return live.ArmTreated
	}
	terms.Constant = func(*liveplan.ClockQuestion) dvfsmodel.Setting { return constant }
	p, err := slurmqueue.NewPlan(t.Context(), q, terms, planned("edl-bin"), dayStart)
	if err != nil {
		t.Fatal(err)
	}
	got := byTask(p)
	for task, core := range map[string]dvfsmodel.MHz{"1": 1237, "2": 0, "3": 1237} {
		if j := got[task]; j.Core != core || !j.HeldOut {
			t.Errorf("job %s: %+v", task, j)
		}
	}
	if j := got["4"]; j.HeldOut || j.Core == 1237 {
		t.Errorf("a treated job: %+v", j)
	}
	terms.Constant = func(*liveplan.ClockQuestion) dvfsmodel.Setting { return dvfsmodel.Setting{} }
	if p, err = slurmqueue.NewPlan(t.Context(), q, terms, planned("edl-bin"), dayStart); err != nil ||
		byTask(p)["1"].Setting != (dvfsmodel.Setting{}) {
		t.Errorf("not at constant clocks: %+v, %v", p, err)
	}
}

// TestAnyQueueIsPlanned: jobs that can run nowhere and jobs that need no GPU keep nobody from the answer.
func TestAnyQueueIsPlanned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawnQueue(t)
		text := rapid.SampledFrom([]string{"edl:0.7", "value", "easy", ""}).Draw(t, "policy")
		w, err := slurmqueue.PlanQueue(t.Context(), q, usual(), slurmqueue.PlanOptions{Policy: text})
		if err == nil && len(w.Result.Plan.Assignments) != len(w.Result.Problem.Tasks) {
			t.Fatalf("%d assignments of %d jobs", len(w.Result.Plan.Assignments), len(w.Result.Problem.Tasks))
		}
		if err != nil && !errors.Is(err, slurmqueue.ErrNothingWaits) {
			t.Fatal(err)
		}
	})
}

// A deadline that is over, or that nobody can meet, has its job go no earlier than without one.
func TestAHopelessDeadlineHasNobodyGoFirst(t *testing.T) {
	for _, text := range []string{"replan,pace=1", "edl", "edl:0.8", "edl-bin", "value", "best"} {
		for _, seconds := range []float64{-3600, 60} { // it takes 900 s
			q := &epdapi.Queue{Nodes: v100s(4)}
			for id := range int64(5) {
				q.Jobs = append(q.Jobs, waits(id+1, 4, 900, 10_000-float64(id)))
			}
			late := waits(9, 4, 900, 7200)
			late.DeadlineS = live.Known(seconds)
			q.Jobs = append(q.Jobs, late)
			p, err := slurmqueue.NewPlan(t.Context(), q, usual(), planned(text), dayStart)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Jobs) != 6 || p.Jobs[5].Job != 9 {
				t.Errorf("%s: %v s until its deadline: %+v", text, seconds, p.Jobs)
			}
		}
	}
}

// What runs holds GPUs of its own partition, also where the nodes of another one are alike.
func TestWhatRunsHoldsNoGPUsOfAnotherPartition(t *testing.T) {
	running := runs(90, 4, 5000)
	running.Partition, running.GPUModel = "b", "V100"
	urgent, other := waits(1, 4, 900, 90), waits(2, 4, 900, 80)
	urgent.Partition, other.Partition, urgent.DeadlineS = "a", "b", live.Known(1200)
	q := &epdapi.Queue{
		Nodes: []epdapi.QueueNode{
			{GPUModel: "V100", GPUs: 4, Count: 1, Partitions: []string{"a"}},
			{GPUModel: "V100", GPUs: 4, Count: 1, Partitions: []string{"b"}},
		},
		Jobs: []epdapi.QueuedJob{running, urgent, other},
	}
	for _, text := range []string{"replan,pace=1", "edl", "value", "best"} {
		p, err := slurmqueue.NewPlan(t.Context(), q, usual(), planned(text), dayStart)
		if err != nil {
			t.Fatal(err)
		}
		got := byTask(p)
		if got["1"].Start.After(dayStart) || got["2"].Start.Before(dayStart.Add(4000*time.Second)) {
			t.Errorf("%s: in the idle partition %s, in the full one %s", text, got["1"].Start, got["2"].Start)
		}
		want := []live.NodeNeed{{GPUModel: "V100", GPUs: 4, Partitions: []string{"a"}, At: dayStart}}
		if !reflect.DeepEqual(p.Needs, want) {
			t.Errorf("%s: nodes that are needed: %+v", text, p.Needs)
		}
		if p.CountsDeadlines != (text == "edl" || text == "best") {
			t.Errorf("%s: counts deadlines: %v", text, p.CountsDeadlines)
		}
	}
}
