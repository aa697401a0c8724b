package policy_test

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/policy"
)

// onlineBatches returns how many batches a test draws.
func onlineBatches() uint64 { return shareddata.Rounds[uint64](12, 60, 60) }

// kinds are ways to draw a batch that arrives over time.
var kinds = []struct {
	name  string
	draw  func(tb testing.TB, seed uint64, least, most float64) *planner.Problem
	worse float64 // part of batches in which more deadlines may be missed than by EASY
}{{"one node each", drawOnline, 0}, {"some on several nodes", drawGangsOnline, 0.1}}

// TestTheOnlineDefaultKeepsWhatEasyAtDefaultClocksKeeps draws batches that arrive over
// time, as users write them. Nobody can promise each job its end under EASY without
// knowing what comes: past due counts in the mean.
func TestTheOnlineDefaultKeepsWhatEasyAtDefaultClocksKeeps(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			var f figures
			// Not those that numbers were chosen on.
			for seed := uint64(20_000); seed < 20_000+onlineBatches(); seed++ {
				p := kind.draw(t, seed, 20, 2000)
				keepsPromises(t, seed, p, &f)
			}
			t.Log(&f)
			if most := int(float64(onlineBatches()) * kind.worse); f.misses > 0 || f.worse > most {
				t.Errorf("%d deadlines more are missed than by EASY, and more in %d batches, want none "+
					"and %d at most", f.misses, f.worse, most)
			}
			for _, goal := range []struct {
				name string
				of   []float64
				most float64
			}{
				{"energy", f.energy, 0.85},
				{"mean turnaround", f.mean, 1},
				{"p95 of turnaround", f.p95, 1.1},
				{"jobs more past due, a part", f.late, 0.01},
			} {
				if mean, _ := meanOf(goal.of); mean > goal.most {
					t.Errorf("%s against EASY at default clocks: %.3f in the mean, want %v at most",
						goal.name, mean, goal.most)
				}
			}
		})
	}
}

// TestTheOnlineDefaultKeepsEasysPaceOnARealLog, in the mean over windows of it.
func TestTheOnlineDefaultKeepsEasysPaceOnARealLog(t *testing.T) {
	var f figures
	for seed := range uint64(20) {
		p := drawWindow(t, seed)
		base, _ := pastDue(t, p, policy.EasyDefault)
		plan, _ := pastDue(t, p, policy.DefaultName(planner.Online))
		ours, easy := serviceOf(p, plan), serviceOf(p, base)
		f.add(p, &ours, &easy)
	}
	t.Log(&f)
	mean, _ := meanOf(f.mean)
	if energy, _ := meanOf(f.energy); mean > 1 || energy > 0.85 || f.lost > 0 {
		t.Errorf("mean turnaround %.3f and energy %.3f of EASY's, %d more left out, want 1 and .85 at most, none", mean,
			energy, f.lost)
	}
}

// keepsPromises looks at what the online default promises of each batch.
func keepsPromises(t *testing.T, seed uint64, p *planner.Problem, f *figures) {
	t.Helper()
	// mean turnaround of a batch, as a multiple of EASY's.
	const longest = 1.15
	plan, _ := pastDue(t, p, policy.DefaultName(planner.Online)) // which checks it
	base, _ := pastDue(t, p, policy.EasyDefault)
	ours, easy := serviceOf(p, plan), serviceOf(p, base)
	f.add(p, &ours, &easy)
	if ours.lost > easy.lost {
		t.Errorf("seed %d, %d jobs: %d left out, by EASY %d", seed, len(p.Tasks), ours.lost, easy.lost)
	}
	if ours.mean > longest*easy.mean {
		t.Errorf("seed %d, %d jobs: %v s in the system on average, by EASY %v s, want %v times that at most",
			seed, len(p.Tasks), ours.mean, easy.mean, longest)
	}
	if more, most := ours.late-easy.late, max(3, len(p.Tasks)/20); more > most {
		t.Errorf("seed %d: %d of %d jobs more are past due than by EASY, want %d at most", seed, more,
			len(p.Tasks), most)
	}
	if ours.slow > 0 {
		t.Errorf("seed %d: %d of %d runs take more than 1.5 times as long as at default clocks", seed,
			ours.slow, len(p.Tasks))
	}
}

// TestTheOnlineDefaultKnowsOfNoJobBeforeItArrives: what starts before a time is the
// same without the jobs that arrive from then on.
func TestTheOnlineDefaultKnowsOfNoJobBeforeItArrives(t *testing.T) {
	for seed := range onlineBatches() {
		p := kinds[seed%2].draw(t, seed, 20, 200)
		slices.SortStableFunc(p.Tasks, func(a, b planner.Task) int { return int(a.Arrival - b.Arrival) })
		whole, _ := pastDue(t, p, policy.DefaultName(planner.Online))
		first := *p
		half := len(p.Tasks) / 2
		for half > 1 && p.Tasks[half].Arrival == p.Tasks[half-1].Arrival {
			half--
		}
		first.Tasks = p.Tasks[:half]
		part, _ := pastDue(t, &first, policy.DefaultName(planner.Online))
		for i := range first.Tasks {
			a, b := &whole.Assignments[i], &part.Assignments[i]
			// a node may have taken a minute to switch on.
			started := min(a.Start, b.Start)+60 < p.Tasks[half].Arrival
			if started && (a.Start != b.Start || a.End != b.End || a.Option != b.Option) {
				t.Errorf("seed %d: %s runs from %v to %v s, and from %v to %v s if the jobs from %v "+
					"s on are unknown",
					seed, p.Tasks[i].ID, a.Start, a.End, b.Start, b.End, p.Tasks[half].Arrival)
			}
		}
	}
}

// TestAHigherWeightOnTimeTakesLessTimeOnline, for more energy, over batches together.
func TestAHigherWeightOnTimeTakesLessTimeOnline(t *testing.T) {
	weights := []float64{0, 100, 1000}
	energy, time := make([]float64, 0, len(weights)), make([]float64, 0, len(weights))
	for _, weight := range weights {
		sum, mean := 0.0, 0.0
		for seed := range onlineBatches() / 2 {
			p := drawOnline(t, seed, 20, 200)
			p.Objective.TimeWeight = weight
			plan, _ := pastDue(t, p, policy.DefaultName(planner.Online))
			s := serviceOf(p, plan)
			sum, mean = sum+s.energy, mean+s.mean
		}
		energy, time = append(energy, sum), append(time, mean)
	}
	for i := 1; i < len(time); i++ {
		if time[i] >= time[i-1] || energy[i] <= energy[i-1] {
			t.Errorf("by rising weight %v J and %v s, want more energy and less time with each", energy, time)
		}
	}
}

// TestASlowerPaceTakesLessEnergyAndMoreTime, over batches together; no batch takes much longer than its pace.
func TestASlowerPaceTakesLessEnergyAndMoreTime(t *testing.T) {
	paces := []float64{1, 1.05, 1.1, 1.25, 1.5}
	energy, time := make([]float64, len(paces)), make([]float64, len(paces))
	for seed := uint64(21_000); seed < 21_000+2*onlineBatches(); seed++ {
		p := kinds[seed%2].draw(t, seed, 20, 300)
		base, _ := pastDue(t, p, policy.EasyDefault)
		easy := serviceOf(p, base)
		for i, pace := range paces {
			plan, _ := pastDue(t, p, policy.WithNumber("replan", "pace", pace))
			s := serviceOf(p, plan)
			energy[i], time[i] = energy[i]+s.energy/easy.energy, time[i]+s.mean/easy.mean
			if most := pace + 0.25; s.mean > most*easy.mean {
				t.Errorf("seed %d, %d jobs, pace %v: mean turnaround is %.3f times EASY's, want %.2f at most", seed,
					len(p.Tasks), pace, s.mean/easy.mean, most)
			}
		}
	}
	t.Log(energy, time)
	for i := 1; i < len(paces); i++ {
		if energy[i] >= energy[i-1] || time[i] <= time[i-1] {
			t.Errorf("by pace %v: energy %.3f and turnaround %.3f, want less and more with each", paces, energy, time)
		}
	}
}

// TestTasksHaveThePaceOfTheirOwn: where it is that of all, the plan is that of the pace, and where every
// second task has a slower one, these take longer, the others no longer, and all take less energy.
func TestTasksHaveThePaceOfTheirOwn(t *testing.T) {
	const slower = 1.5
	var energy, slow, others float64 // parts of what they are where nobody has one
	batches := 2 * onlineBatches()
	for seed := uint64(24_000); seed < 24_000+batches; seed++ {
		p := kinds[seed%2].draw(t, seed, 20, 300)
		all, half := *p, *p
		all.Tasks, half.Tasks = slices.Clone(p.Tasks), slices.Clone(p.Tasks)
		for i := range p.Tasks {
			all.Tasks[i].Pace = slower
			if i%2 == 0 {
				half.Tasks[i].Pace = slower
			}
		}
		want, _ := pastDue(t, p, policy.WithNumber("replan", "pace", slower))
		if got, _ := pastDue(t, &all, "replan,pace=1"); !reflect.DeepEqual(got.Assignments, want.Assignments) {
			t.Fatalf("seed %d: all have pace %v of their own, and another plan than at that pace", seed, slower)
		}
		unpaced, _ := pastDue(t, p, "replan")
		if got, _ := pastDue(t, &all, "replan"); !reflect.DeepEqual(got.Assignments, unpaced.Assignments) {
			t.Fatalf("seed %d: the policy has no pace, and those of tasks count", seed)
		}
		usual, _ := pastDue(t, p, "replan,pace=1")
		plan, _ := pastDue(t, &half, "replan,pace=1")
		var sums [2][2]float64
		for i := range p.Tasks {
			sums[0][i%2] += usual.Assignments[i].End - p.Tasks[i].Arrival
			sums[1][i%2] += plan.Assignments[i].End - p.Tasks[i].Arrival
		}
		energy += float64(plan.Ledger.Total()/usual.Ledger.Total()) / float64(batches)
		slow, others = slow+sums[1][0]/sums[0][0]/float64(batches), others+sums[1][1]/sums[0][1]/float64(batches)
	}
	t.Logf("energy %.3f, turnaround %.3f of tasks with a slower pace and %.3f of others", energy, slow, others)
	if energy >= 1 || slow <= 1.02 || others > 1.02 {
		t.Error("want less energy, longer turnarounds of those with a slower pace, and no longer ones of others")
	}
}

// TestHindsightTakesNoMoreThanAnOnlinePlan: neither where it keeps that plan's promises and pace, nor where it
// keeps those that can be kept, as clairvoyant plans do.
func TestHindsightTakesNoMoreThanAnOnlinePlan(t *testing.T) {
	params := policy.DefaultParams()
	params.Effort = 0.02
	search, err := policy.Parse(policy.DefaultName(planner.Offline), params)
	if err != nil {
		t.Fatal(err)
	}
	less, lessKnown := 0.0, 0.0
	const first = 22_000
	for seed := uint64(first); seed < first+onlineBatches(); seed++ {
		p := kinds[seed%2].draw(t, seed, 10, 60)
		plan, past := pastDue(t, p, "replan")
		online := serviceOf(p, plan)
		found, err := policy.Hindsight(context.Background(), p, plan)
		if err != nil {
			t.Fatal(err)
		}
		same := serviceOf(p, found)
		for _, task := range found.PastDue(p) {
			later := found.Assignments[task].End - plan.Assignments[task].End
			if !slices.Contains(plan.PastDue(p), task) || later > 1e-6 {
				t.Errorf("seed %d: in hindsight %s ends later than it is due and than online", seed, p.Tasks[task].ID)
			}
		}
		known := *p
		known.Mode = planner.Clairvoyant
		seen, err := policy.SolveChecked(context.Background(), &known, search, nil)
		if err != nil {
			t.Fatal(err)
		}
		best := serviceOf(p, seen)
		if same.energy > online.energy || same.mean > online.mean*(1+1e-9) || best.energy > online.energy {
			t.Errorf("seed %d: online %.6g J and %.6g s, in hindsight %.6g J and %.6g s, clairvoyant %.6g J", seed,
				online.energy, online.mean, same.energy, same.mean, best.energy)
		}
		if best.lost > online.lost || best.late > past {
			t.Errorf("seed %d: %d past due and %d left out, online %d and %d", seed, best.late, best.lost, past,
				online.lost)
		}
		less += (1 - same.energy/online.energy) / float64(onlineBatches())
		lessKnown += (1 - best.energy/online.energy) / float64(onlineBatches())
	}
	t.Logf("at the same pace %.3f less, by due times alone %.3f", less, lessKnown)
	if less < 0.02 || lessKnown < 0.1 {
		t.Errorf("hindsight is worth %.3f at the same pace, %.3f by due times alone: want more", less, lessKnown)
	}
}

// TestTheOnlineDefaultPlansWhereRunTimesAreUncertain: jobs take up to a third more or
// less than predicted.
func TestTheOnlineDefaultPlansWhereRunTimesAreUncertain(t *testing.T) {
	pol, err := policy.Parse(policy.DefaultName(planner.Online), policy.DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for seed := range onlineBatches() / 4 {
		p := drawOnline(t, seed, 20, 200)
		for i := range p.Tasks { // limits and deadlines are for what is predicted
			p.Tasks[i].Limit, p.Tasks[i].Deadline, p.Tasks[i].Due = math.Inf(1), math.Inf(1), math.Inf(1)
		}
		truth := *p
		truth.Tasks = slices.Clone(p.Tasks)
		for i := range truth.Tasks {
			factor := 0.67 + 0.66*rng.Float64()
			options := slices.Clone(p.Tasks[i].Options)
			for o := range options {
				options[o].Response = dvfsmodel.Repeat(options[o].Response, factor)
			}
			truth.Tasks[i].Options = options
		}
		plan, err := planner.Solve(context.Background(), p, pol, &planner.Options{Truth: &truth})
		if err != nil {
			t.Fatal(err)
		}
		if err := check.Plan(&truth, plan); err != nil || len(plan.Unplaced) > 0 {
			t.Errorf("seed %d: %d of %d jobs left out, %v", seed, len(plan.Unplaced), len(p.Tasks), err)
		}
	}
}

// TestTheOnlineDefaultGoesOnFromThePresent, with tasks that run and tasks that wait.
func TestTheOnlineDefaultGoesOnFromThePresent(t *testing.T) {
	pol, err := policy.Parse(policy.DefaultName(planner.Online), policy.DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	running, waiting, gangs := 0, 0, 0
	for seed := range onlineBatches() / 2 {
		p := kinds[seed%2].draw(t, seed, 20, 200)
		whole, _ := pastDue(t, p, policy.DefaultName(planner.Online))
		left := halfway(p, whole)
		plan, err := planner.Solve(context.Background(), left, pol, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(plan.Unplaced) > 0 {
			t.Errorf("seed %d: %d of %d jobs left out", seed, len(plan.Unplaced), len(left.Tasks))
		}
		for _, r := range left.Snapshot.Running {
			a := &plan.Assignments[r.Task]
			if a.Start != r.Start || a.End != r.End {
				t.Errorf("seed %d: %s runs from %v to %v s, is planned from %v to %v s", seed,
					left.Tasks[r.Task].ID, r.Start, r.End, a.Start, a.End)
			}
			if running++; len(a.More) > 0 {
				gangs++
			}
		}
		for i := range left.Tasks {
			if left.Tasks[i].Arrival <= left.Snapshot.Now {
				waiting++
			}
		}
		waiting -= len(left.Snapshot.Running)
	}
	if running == 0 || waiting == 0 || gangs == 0 {
		t.Errorf("%d jobs ran, %d of them on several nodes, and %d waited, want some of each", running,
			gangs, waiting)
	}
}

// halfway returns what a plan leaves of its problem once half of the tasks have arrived.
func halfway(p *planner.Problem, plan *planner.Plan) *planner.Problem {
	now := p.Tasks[len(p.Tasks)/2].Arrival
	left, present := *p, planner.Snapshot{Now: now}
	left.Tasks, left.Snapshot = nil, &present
	for i := range p.Tasks {
		a, task := &plan.Assignments[i], p.Tasks[i]
		if a.End <= now {
			continue
		}
		task.Deadline, task.Due = math.Inf(1), math.Inf(1) // some can't be met any more
		if a.Start <= now {
			present.Running = append(present.Running, planner.RunningTask{
				Task: len(left.Tasks), Class: plan.Nodes[a.Node].Class, Start: a.Start, End: a.End,
			})
		}
		left.Tasks = append(left.Tasks, task)
	}
	return &left
}

// BenchmarkReplan times planning of 2,000 jobs of which most wait for most of the time:
// as many are planned at each event as there ever are.
func BenchmarkReplan(b *testing.B) {
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) { timeReplan(b, kind.draw(b, 3, 2000, 2000)) })
	}
}

// timeReplan has the jobs of a problem arrive twenty times as fast.
func timeReplan(b *testing.B, p *planner.Problem) {
	b.Helper()
	for i := range p.Tasks {
		p.Tasks[i].Arrival *= 0.05
	}
	pol, err := policy.Parse("replan", policy.DefaultParams())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := planner.Solve(context.Background(), p, pol, nil); err != nil {
			b.Fatal(err)
		}
	}
	events := 2 * len(p.Tasks) // arrivals and ends
	b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N)/float64(events), "ms/event")
}

// A plan that knows all jobs from the start, of batches in which not every deadline can be met, is preferred
// to the plans that sites and our online policy make without knowing them: fewer late first, then the cost.
func TestAClairvoyantPlanIsPreferredToPlansWithoutForesight(t *testing.T) {
	params := policy.DefaultParams()
	params.Effort = 0.02
	search, err := policy.Parse(policy.DefaultName(planner.Offline), params)
	if err != nil {
		t.Fatal(err)
	}
	const first = 23_000
	missed := 0
	for seed := uint64(first); seed < first+onlineBatches()/2; seed++ {
		p := kinds[seed%2].draw(t, seed, 10, 40)
		for i := range p.Tasks {
			task := &p.Tasks[i]
			task.Deadline = min(task.Deadline, task.Arrival+0.5*(task.Due-task.Arrival))
			task.Due = min(task.Due, task.Deadline)
		}
		known := *p
		known.Mode = planner.Clairvoyant
		plan, err := policy.SolveChecked(t.Context(), &known, search, nil)
		if err != nil {
			t.Fatal(err)
		}
		missed += len(plan.Misses)
		for _, name := range []string{"baseline", policy.EasyDefault, "replan,pace=1"} {
			other, err := policy.Parse(name, params)
			if err != nil {
				t.Fatal(err)
			}
			blind, err := policy.SolveChecked(t.Context(), p, other, nil)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := known.RankOf(plan), known.RankOf(blind); a.Compare(b) > 0 {
				t.Errorf("seed %d: %+v, %s %+v", seed, a, name, b)
			}
		}
	}
	if missed == 0 && !testing.Short() {
		t.Error("all deadlines are met, so nothing was to be preferred")
	}
}
