package policy_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
)

// Figures of plans in force over drawn batches, against each job's own clocks, printed where they are
// asked for. An arm is a policy and a price of waiting, watts:
//
//	go test ./planner/policy -v -run xxx -bench LiveFigures -benchtime 1x -in-force 'easy@100;replan@100' -seeds 1:200
var liveFigures = flag.String("in-force", "",
	"arms to print figures of, separated by semicolons, the one to compare with first")

// BenchmarkLiveFigures plays the controller and Slurm: whenever a job comes or ends, what waits is planned
// beside what runs; the jobs start that the plan has start now, and then those that backfilling by the
// plan's order starts on what is left, at their own clocks. Nodes are always on. The policy easy is what epd
// does without a plan: each job has its own clocks, which count those who wait, in the order of their
// submission, those with deadlines first.
func BenchmarkLiveFigures(b *testing.B) {
	if *liveFigures == "" {
		b.Skip("-in-force names no arms")
	}
	var first, last uint64
	if _, err := fmt.Sscanf(*onlineSeeds, "%d:%d", &first, &last); err != nil {
		b.Fatal(err)
	}
	var arms []*liveArm
	for text := range strings.SplitSeq(*liveFigures, ";") {
		arms = append(arms, newLiveArm(b, text))
	}
	for seed := first; seed <= last; seed++ {
		p := drawOnline(b, seed, 40, 400)
		var base service
		for i, arm := range arms {
			o := arm.play(b, p)
			if i == 0 {
				base = o
			}
			arm.add(p, &o, &base)
			arm.cost = append(arm.cost, (o.energy+arm.wait*o.waited)/(base.energy+arm.wait*base.waited))
			kind := "one GPU model"
			if len(p.Cluster.Classes) > 1 {
				kind = "two GPU models"
			}
			if arm.kinds[kind] == nil {
				arm.kinds[kind] = &figures{}
			}
			arm.kinds[kind].add(p, &o, &base)
			if *onlineEach {
				one := &figures{}
				one.add(p, &o, &base)
				b.Logf("seed %d, %d jobs, %s, %s: %s", seed, len(p.Tasks), kindOf(p), arm.name, one)
			}
			if o.energy <= base.energy && o.mean <= base.mean && o.p95 <= base.p95 && o.misses <= base.misses {
				arm.ahead++
			}
		}
	}
	for _, arm := range arms {
		cost, half := meanOf(arm.cost)
		b.Logf("%s: no worse in anything in %d of %d, missed %d; energy and waiting at its price %.3f±%.3f; %s",
			arm.name, arm.ahead, last-first+1, arm.missed, cost, half, arm)
		for _, kind := range slices.Sorted(maps.Keys(arm.kinds)) {
			b.Logf("%s, %s: %s", arm.name, kind, arm.kinds[kind])
		}
	}
}

// liveArm is a way to run a queue, and what it came to.
type liveArm struct {
	figures
	name        string
	plan, order *planner.Policy // order: what Slurm does with an order
	wait        float64
	ahead       int
	missed      int
	cost        []float64           // energy and waiting at its price, ratios by batch
	kinds       map[string]*figures // by how many GPU models there are
}

func newLiveArm(b *testing.B, text string) *liveArm {
	b.Helper()
	name, price, _ := strings.Cut(text, "@")
	wait, err := strconv.ParseFloat(cmp.Or(price, "0"), 64)
	if err != nil {
		b.Fatal(err)
	}
	parse := func(name string) *planner.Policy {
		pol, err := policy.Parse(name, policy.DefaultParams())
		if err != nil {
			b.Fatal(err)
		}
		return pol
	}
	return &liveArm{
		name: text, plan: parse(name), order: parse("easy"), wait: wait, kinds: make(map[string]*figures),
	}
}

// liveQueue is what waits and runs at a moment.
type liveQueue struct {
	*planner.Problem
	now          float64
	waiting      []int // tasks
	running      []liveRun
	starts, ends []float64 // by task
	energy       dvfsmodel.Joule
}

// liveRun is a task that runs on nodes of a class.
type liveRun struct {
	task, class, gpus int
	end               float64
}

// play has the tasks of a problem run as they arrive.
func (arm *liveArm) play(b *testing.B, p *planner.Problem) service {
	b.Helper()
	alwaysOn := *p
	alwaysOn.WaitWeight, alwaysOn.Mode = arm.wait, planner.Offline
	alwaysOn.Cluster.Classes = slices.Clone(p.Cluster.Classes)
	for i := range alwaysOn.Cluster.Classes {
		alwaysOn.Cluster.Classes[i].TurnOnDelay, alwaysOn.Cluster.Classes[i].TurnOn = 0, 0
	}
	n := len(p.Tasks)
	q := &liveQueue{Problem: &alwaysOn, starts: make([]float64, n), ends: make([]float64, n)}
	coming := make([]int, n)
	for i := range coming {
		coming[i] = i
	}
	planner.SortByKey(coming, func(i int) float64 { return p.Tasks[i].Arrival })
	for len(coming)+len(q.waiting)+len(q.running) > 0 {
		q.now = math.Inf(1)
		if len(coming) > 0 {
			q.now = p.Tasks[coming[0]].Arrival
		}
		for i := range q.running {
			q.now = min(q.now, q.running[i].end)
		}
		if math.IsInf(q.now, 1) {
			b.Fatalf("%s: %d tasks wait, and nothing runs", arm.name, len(q.waiting))
		}
		q.running = slices.DeleteFunc(q.running, func(r liveRun) bool { return r.end <= q.now })
		for len(coming) > 0 && p.Tasks[coming[0]].Arrival <= q.now {
			q.waiting, coming = append(q.waiting, coming[0]), coming[1:]
		}
		slices.SortStableFunc(q.waiting, func(i, k int) int {
			return cmp.Or(cmp.Compare(p.Tasks[i].Deadline, p.Tasks[k].Deadline), cmp.Compare(i, k))
		})
		if !policy.CountsDue(arm.plan.Name) { // jobs with deadlines go first
			all := q.waiting
			q.waiting = slices.DeleteFunc(slices.Clone(all), func(i int) bool {
				return math.IsInf(p.Tasks[i].Deadline, 1)
			})
			q.start(b, arm.order)
			q.waiting = slices.DeleteFunc(all, func(i int) bool { return q.starts[i] > 0 || q.ends[i] > 0 })
		}
		if !q.start(b, arm.plan) && arm.plan.Name != arm.order.Name {
			q.start(b, arm.order)
		}
	}
	o := q.service()
	arm.missed += o.misses
	return o
}

// start has the tasks start that a plan has start now, puts the others in its order, and reports whether
// nothing waits any more.
func (q *liveQueue) start(b *testing.B, by *planner.Policy) (none bool) {
	b.Helper()
	if len(q.waiting) == 0 {
		return true
	}
	now := q.problem()
	if err := policy.ImplyDue(context.Background(), now, 1.5); err != nil {
		b.Fatal(err)
	}
	plan, err := planner.Solve(context.Background(), now, by, &planner.Options{NoImprove: true})
	if err != nil {
		b.Fatal(err)
	}
	planned := make(map[int]float64)
	q.waiting = slices.Clone(q.waiting)
	for k, i := range q.waiting {
		a := &plan.Assignments[k]
		planned[i] = a.Start
		if a.Node < 0 {
			planned[i] = math.Inf(1)
		}
		if planned[i] > 1e-6 {
			continue
		}
		run := liveRun{i, plan.Nodes[a.Node].Class, a.GPUCount(), q.now + a.Point.Time}
		idle := q.Cluster.Classes[run.class].IdleW.Over(a.Point.Time)
		q.starts[i], q.ends[i] = q.now, run.end
		q.energy += (a.Point.Energy - idle) * dvfsmodel.Joule(run.gpus)
		q.running = append(q.running, run)
		planned[i] = -1
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(i int) bool { return planned[i] < 0 })
	slices.SortStableFunc(q.waiting, func(i, k int) int {
		return cmp.Or(cmp.Compare(q.Tasks[i].Deadline, q.Tasks[k].Deadline), cmp.Compare(planned[i], planned[k]))
	})
	return len(q.waiting) == 0
}

// problem returns what is to be planned now, the waiting tasks first.
func (q *liveQueue) problem() *planner.Problem {
	now := *q.Problem
	now.Cluster.Classes = slices.Clone(q.Cluster.Classes)
	now.Tasks, now.Snapshot = make([]planner.Task, 0, len(q.waiting)+len(q.running)), &planner.Snapshot{}
	classes := now.Cluster.Classes
	all := make([]int, len(classes))
	for i := range classes {
		all[i] = classes[i].Count * classes[i].GPUs
	}
	free, backlog := slices.Clone(all), planner.NewBacklog(all)
	for _, i := range q.waiting {
		t := q.Tasks[i]
		longest, fastest := 0.0, math.Inf(1)
		for k := range t.Options {
			longest = max(longest, t.Options[k].Response.Default().Time)
			fastest = min(fastest, t.Options[k].Response.MinTime())
		}
		t.Limit = min(t.Limit, 1.5*longest) // max_slowdown
		if t.Deadline -= q.now; t.Deadline < fastest {
			t.Deadline = math.Inf(1) // it is lost, and runs all the same
		}
		t.Arrival, t.Due = 0, t.Deadline
		if t.Deadline > fastest { // a tenth of the time is kept free, as epd does
			t.Due = min(t.Due, max(0.9*t.Deadline, fastest))
		}
		now.Tasks = append(now.Tasks, t)
		backlog.Add(1, func(class int) float64 {
			option := t.Option(classes[class].Model)
			if !classes[class].CanRun(&t, option) {
				return 0
			}
			return float64(t.Options[option].GPUs)
		})
	}
	for i := range q.running {
		r := &q.running[i]
		free[r.class] -= r.gpus
		t := q.Tasks[r.task]
		t.Arrival, t.Due, t.Deadline, t.Limit = 0, math.Inf(1), math.Inf(1), math.Inf(1)
		t.Options = []planner.Option{t.Options[t.Option(classes[r.class].Model)]}
		now.Snapshot.Running = append(now.Snapshot.Running, planner.RunningTask{
			Task: len(now.Tasks), Class: r.class, End: r.end - q.now,
		})
		now.Tasks = append(now.Tasks, t)
	}
	for i := range classes {
		classes[i].Backlog = max(0, backlog.By[i]-float64(free[i])/float64(all[i]))
	}
	return &now
}

// service measures what was played.
func (q *liveQueue) service() service {
	last, all := slices.Max(q.ends), make([]float64, len(q.Tasks))
	for i := range q.Cluster.Classes {
		k := &q.Cluster.Classes[i]
		q.energy += (k.IdleW + k.HostW).Over(last) * dvfsmodel.Joule(k.Count*k.GPUs)
	}
	o := service{energy: float64(q.energy)}
	for i := range q.Tasks {
		t := &q.Tasks[i]
		all[i] = q.ends[i] - t.Arrival
		o.waited += float64(t.Options[0].GPUs) * (q.starts[i] - t.Arrival)
		o.wait += (q.starts[i] - t.Arrival) / float64(len(all))
		o.mean += all[i] / float64(len(all))
		if q.ends[i] > t.Deadline*(1+1e-9) {
			o.misses++
		}
		if q.ends[i] > t.Due*(1+1e-9) {
			o.late++
		}
	}
	slices.Sort(all)
	o.p95 = all[int(math.Ceil(0.95*float64(len(all))))-1]
	return o
}
