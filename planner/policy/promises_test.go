package policy_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
	"github.com/epplan/epplan/planner/improve"
	"github.com/epplan/epplan/planner/policy"
)

// site draws clusters and batches of the kind that users write: some tens to
// hundreds of jobs with limits, some with deadlines, some on several GPUs.
type site struct {
	*rand.Rand
	tables    []*dvfsmodel.Table // by GPU model
	workloads [][]dvfsmodel.Params
}

// drawBatch returns the problem of a seed, its jobs due within a drawn multiple of
// what first come, first served takes.
func drawBatch(tb testing.TB, seed uint64) *planner.Problem {
	tb.Helper()
	const least, most = 20, 80 // jobs
	return drawBatchOf(tb, seed, least, most)
}

// drawBatchOf draws a batch of so many jobs.
func drawBatchOf(tb testing.TB, seed uint64, least, most float64) *planner.Problem {
	tb.Helper()
	s := &site{Rand: rand.New(rand.NewPCG(seed, seed))}
	p := &planner.Problem{Cluster: s.cluster(tb)}
	n := int(least * math.Pow(most/least, s.Float64()))
	work, gpus := 0.0, 0.0
	for i := range n {
		t := s.job(p, i)
		work += t.Options[0].Response.Default().Time * float64(t.Options[0].GPUs)
		p.Tasks = append(p.Tasks, t)
	}
	for i := range p.Cluster.Classes {
		gpus += float64(p.Cluster.Classes[i].Count * p.Cluster.Classes[i].GPUs)
	}
	s.deadlines(p, work/gpus)
	stretch := []float64{1, 1.2, 1.5, 2}[s.IntN(4)]
	if err := policy.ImplyDue(context.Background(), p, stretch); err != nil {
		tb.Fatal(err)
	}
	return p
}

// cluster has nodes of one or two GPU models, whose workloads it draws too.
func (s *site) cluster(tb testing.TB) planner.Cluster {
	tb.Helper()
	c := planner.Cluster{}
	for m := range 1 + s.IntN(2) {
		var pairs []dvfsmodel.Setting
		for core := dvfsmodel.MHz(600); core <= 1500; core += 100 {
			pairs = append(pairs, dvfsmodel.Setting{Core: core, Mem: 900})
		}
		table, err := dvfsmodel.NewTable(dvfsmodel.Setting{Core: 1400, Mem: 900}, pairs, nil)
		if err != nil {
			tb.Fatal(err)
		}
		const kinds = 8
		loads := make([]dvfsmodel.Params, 0, kinds)
		for range kinds {
			loads = append(loads, dvfsmodel.Params{
				P0: dvfsmodel.Watt(30 + 40*s.Float64()), Gamma: dvfsmodel.Watt(10 + 20*s.Float64()),
				C: dvfsmodel.Watt(60 + 120*s.Float64()),
				D: (0.5 + s.Float64()) * float64(1+m), Delta: s.Float64(), T0: 0.2 * s.Float64(),
			})
		}
		s.tables, s.workloads = append(s.tables, table), append(s.workloads, loads)
		c.Classes = append(c.Classes, planner.NodeClass{
			Name: gpuModels[m], Model: gpuModels[m], Count: 1 + s.IntN(5), GPUs: 4 << s.IntN(2),
			IdleW: dvfsmodel.Watt(15 + 30*s.Float64()), HostW: dvfsmodel.Watt(20 + 30*s.Float64()),
			TurnOn: 2000, TurnOnDelay: 60,
		})
	}
	return c
}

// job draws a run time, on how many GPUs, and mostly a limit.
func (s *site) job(p *planner.Problem, number int) planner.Task {
	t := planner.NewTask(fmt.Sprint("t", number))
	load, count := s.IntN(8), []int{1, 1, 1, 1, 1, 2, 2, 4}[s.IntN(8)]
	runtime := 3600 * math.Exp(1.2*s.NormFloat64())
	for m := range p.Cluster.Classes {
		params := s.workloads[m][load]
		if m > 0 && s.IntN(10) == 0 {
			continue // nobody has measured it there
		}
		scale := runtime / s.workloads[0][load].At(dvfsmodel.DefaultScaling()).Time
		params.D, params.T0 = params.D*scale, params.T0*scale
		at := s.tables[m].Nearest(1400, 900)
		t.Options = append(t.Options, planner.Option{
			Model: gpuModels[m], GPUs: count, Response: &dvfsmodel.Discrete{
				Params: params, Table: s.tables[m], At: at,
			},
		})
	}
	if s.IntN(8) > 0 {
		const hour = 3600
		t.Limit = hour *
			math.Ceil(t.Options[len(t.Options)-1].Response.Default().Time*(1.2+2*s.Float64())/hour)
	}
	return t
}

// deadlines gives some jobs deadlines, of a batch that is worth so many seconds
// of the cluster: none, some that first come, first served mostly keeps, or
// many that nobody can keep.
func (s *site) deadlines(p *planner.Problem, length float64) {
	part := []float64{0, 0.2, 0.4, 0.6}[s.IntN(4)]
	from := []float64{3, 1, 0.3}[s.IntN(3)]
	for i := range p.Tasks {
		if t := &p.Tasks[i]; s.Float64() < part {
			run := t.Options[len(t.Options)-1].Response.Default().Time
			t.Deadline = 1.3*run + length*from*(0.5+s.Float64())
			t.Due = t.Deadline
		}
	}
}

// pastDue returns a policy's plan, and how many tasks it ends late.
func pastDue(tb testing.TB, p *planner.Problem, text string) (plan *planner.Plan, late int) {
	tb.Helper()
	plan, broken := promisesOf(tb, p, text)
	return plan, broken.Late
}

// promisesOf returns a policy's plan, and the promises that it breaks.
func promisesOf(tb testing.TB, p *planner.Problem, text string) (*planner.Plan, planner.PlanRank) {
	tb.Helper()
	pol, err := policy.Parse(text, policy.DefaultParams())
	if err != nil {
		tb.Fatal(err)
	}
	plan, err := policy.SolveChecked(context.Background(), p, pol, nil)
	if err != nil {
		tb.Fatal(err)
	}
	broken := p.RankOf(plan)
	broken.Cost = 0
	return plan, broken
}

// TestTheDefaultPlanKeepsWhatOthersKeep draws batches as users write them.
func TestTheDefaultPlanKeepsWhatOthersKeep(t *testing.T) {
	t.Parallel()
	batches := shareddata.Rounds[uint64](4, 4, 20)
	kept, saved := 0, 0.0
	for seed := range batches {
		p := drawBatch(t, seed)
		plan, broken := promisesOf(t, p, policy.DefaultName(planner.Offline))
		base, byBase := promisesOf(t, p, "baseline")
		if plan.Clocks != nil {
			t.Errorf("seed %d: the plan says that clocks are the same for all tasks of a GPU model: %v",
				seed, plan.Clocks)
		}
		saved += 1 - float64(plan.Ledger.Total()/base.Ledger.Total())
		names := []string{"baseline", policy.EasyDefault}
		if byBase.Late == 0 {
			kept++
		} else {
			names = append(names, policy.Names()...)
		}
		for _, name := range names {
			if name == "lookahead" {
				continue // takes minutes
			}
			if _, byOther := promisesOf(t, p, name); broken.Compare(byOther) > 0 {
				t.Errorf("seed %d, %d jobs: %+v, by %s %+v", seed, len(p.Tasks), broken, name, byOther)
			}
		}
	}
	t.Logf("first come, first served keeps every promise in %d of %d batches; %.1f %% saved on average", kept,
		batches, 100*saved/float64(batches))
	if kept == 0 || kept == int(batches) {
		t.Errorf("first come, first served keeps every promise in %d of %d batches, want some of both kinds",
			kept, batches)
	}
}

// drawWideBatch returns a drawn batch in which every fifth job runs on two nodes. By seed,
// jobs also need cores of which their nodes run short, keep to partitions, or find
// GPUs that others still use.
func drawWideBatch(tb testing.TB, seed uint64) *planner.Problem {
	tb.Helper()
	p := drawBatch(tb, seed)
	widen(tb, p, seed)
	return p
}

// widen makes a batch one of [drawWideBatch].
func widen(tb testing.TB, p *planner.Problem, seed uint64) {
	tb.Helper()
	s := &site{Rand: rand.New(rand.NewPCG(seed, 2))}
	for i := range p.Cluster.Classes {
		k := &p.Cluster.Classes[i]
		k.Count = max(k.Count, 2)
		if seed%4 == 1 {
			k.CPUs = float64(6 * k.GPUs)
		}
		if seed%4 == 2 {
			k.Partitions = []string{"all", k.Name}
		}
	}
	for i := range p.Tasks {
		t := &p.Tasks[i]
		t.Due = t.Deadline
		if s.IntN(5) == 0 {
			for o := range t.Options {
				t.Options[o].GPUs, t.Options[o].Nodes = 2*t.Options[o].GPUs, 2
			}
		}
		if seed%4 == 1 {
			t.CPUs = float64(t.Options[0].GPUs * (1 + s.IntN(12)))
		}
		if name := p.Cluster.Classes[s.IntN(len(p.Cluster.Classes))].Name; seed%4 == 2 &&
			t.Option(name) >= 0 {
			t.Partitions = []string{name}
		}
	}
	if seed%4 == 3 {
		s.present(p)
	}
	if err := policy.ImplyDue(context.Background(), p, 1.5); err != nil {
		tb.Fatal(err)
	}
}

// present has some nodes still run what nobody plans.
func (s *site) present(p *planner.Problem) {
	p.Snapshot = &planner.Snapshot{}
	for class := range p.Cluster.Classes {
		k := &p.Cluster.Classes[class]
		end := 3600 * (1 + 5*s.Float64())
		at := p.Tasks[0].Options[0].Response.Default()
		at.Time, at.Energy = end, at.Power.Over(end)
		p.Snapshot.Running = append(p.Snapshot.Running, planner.RunningTask{
			Task: len(p.Tasks), Class: class, End: end,
		})
		p.Tasks = append(p.Tasks, planner.NewTask("running on "+k.Name, planner.Option{
			Model: k.Model, GPUs: 1 + s.IntN(k.GPUs), Response: &dvfsmodel.Fixed{At: at},
		}))
	}
}

// TestPlansOfJobsOverNodesKeepWhatOthersKeep and save what plans of other jobs do.
func TestPlansOfJobsOverNodesKeepWhatOthersKeep(t *testing.T) {
	t.Parallel()
	batches, saved := shareddata.Rounds[uint64](2, 2, 8), 0.0
	for seed := range batches {
		p := drawWideBatch(t, 300+seed)
		plan, broken := promisesOf(t, p, policy.DefaultName(planner.Offline)) // which checks it
		for _, name := range []string{"baseline", policy.EasyDefault, "marginal", "value"} {
			other, byOther := promisesOf(t, p, name)
			if broken.Compare(byOther) > 0 {
				t.Errorf("seed %d, %d jobs: %+v, by %s %+v", seed, len(p.Tasks), broken, name, byOther)
			}
			if name == policy.EasyDefault {
				less := 1 - float64(plan.Ledger.Total()/other.Ledger.Total())
				saved += less / float64(batches)
				lower := bound.Of(p, plan)
				t.Logf("seed %d, %d jobs: %.1f %% less than EASY, gap %.1f %%", seed, len(p.Tasks), 100*less,
					100*lower.Gap(plan.Ledger.Total()))
			}
		}
	}
	if saved < 0.15 {
		t.Errorf("%.1f %% saved over EASY at default clocks, want 15 %% or more", 100*saved)
	}
}

// Policies whose work grows with the square of what waits aren't asked for large
// batches, those that let tasks share GPUs among them.
func TestLargeBatchesAreNotPlannedByPoliciesThatLookAtAllThatWaits(t *testing.T) {
	pol, err := policy.Parse(policy.DefaultName(planner.Offline), policy.DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	portfolio, ok := pol.Improve.(improve.Portfolio)
	if !ok {
		t.Fatalf("improved by %T, want a portfolio", pol.Improve)
	}
	for _, start := range portfolio.Rescue {
		if start.Share && start.MaxTasks != policy.MaxQueued {
			t.Errorf("%s is asked for %d tasks, want %d at most", start.Name, start.MaxTasks,
				policy.MaxQueued)
		}
	}
}

// TestWhereASearchFindsLittleOtherPoliciesAreAsked: the default plan isn't what sites run
// because nothing better was found from there.
func TestWhereASearchFindsLittleOtherPoliciesAreAsked(t *testing.T) {
	t.Parallel()
	planned := func(p *planner.Problem, rescue bool) *planner.Plan {
		pol, err := policy.Parse(policy.SearchPolicy, policy.DefaultParams())
		if err != nil {
			t.Fatal(err)
		}
		portfolio, ok := pol.Improve.(improve.Portfolio)
		if !ok {
			t.Fatalf("improved by %T, want a portfolio", pol.Improve)
		}
		portfolio.Last = asItIs{}
		portfolio.Others = slices.DeleteFunc(portfolio.Others, func(s improve.StartPolicy) bool {
			return !s.IsSitePolicy
		})
		if !rescue {
			portfolio.Rescue = nil
		}
		pol.Improve = portfolio
		plan, err := policy.SolveChecked(t.Context(), p, pol, nil)
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	asked := 0
	for seed := range uint64(12) {
		p := drawBatch(t, 300+seed)
		alone := planned(p, false)
		if alone.From != "baseline" && alone.From != policy.EasyDefault || len(alone.PastDue(p)) > 0 {
			continue
		}
		asked++
		if plan := planned(p, true); len(plan.PastDue(p)) > 0 || p.Cost(plan) > 0.95*p.Cost(alone) {
			t.Errorf("seed %d: %.0f J from %q, %d past due, of which first come, first served takes %.0f J",
				seed, p.Cost(plan), plan.From, len(plan.PastDue(p)), p.Cost(alone))
		}
	}
	if asked < 3 {
		t.Errorf("%d batches came to that, want 3", asked)
	}
}

// asItIs improves nothing.
type asItIs struct{}

func (asItIs) Improve(
	_ context.Context, _ *planner.Problem, plan *planner.Plan, _ *rand.Rand,
) (*planner.Plan, error) {
	return plan, nil
}

// tight draws a batch of a dozen jobs at clocks of their own for eight GPUs, of which half have deadlines
// that leave little room.
func tight(tb testing.TB, seed uint64) *planner.Problem {
	tb.Helper()
	s := &site{Rand: rand.New(rand.NewPCG(seed, 21))}
	p := &planner.Problem{Cluster: planner.Cluster{Classes: []planner.NodeClass{{
		Name: "A", Model: "A", Count: 2, GPUs: 4, IdleW: 68, HostW: 300, TurnOn: 90, TurnOnDelay: 2,
	}}}}
	for i := range 12 {
		at := dvfsmodel.Point{Scaling: dvfsmodel.DefaultScaling(), Time: 2000 + 7000*s.Float64()}
		at.Power = dvfsmodel.Watt(350 + 300*s.Float64())
		at.Energy = at.Power.Over(at.Time)
		t := planner.NewTask(fmt.Sprint("t", i), planner.Option{
			Model: "A", GPUs: []int{1, 2, 4}[s.IntN(3)], Response: &dvfsmodel.Fixed{At: at},
		})
		if s.IntN(2) == 0 {
			t.Deadline = at.Time * (1.3 + 1.4*s.Float64())
			t.Due = t.Deadline
		}
		p.Tasks = append(p.Tasks, t)
	}
	if err := policy.ImplyDue(context.Background(), p, 1.5); err != nil {
		tb.Fatal(err)
	}
	return p
}

// A due time that is implied may be passed, a deadline may not: it isn't missed for jobs without one, nor by the
// default where another policy keeps it.
func TestDeadlinesAreKeptBeforeDueTimes(t *testing.T) {
	t.Parallel()
	for seed := range shareddata.Rounds[uint64](8, 12, 300) {
		p := tight(t, seed)
		name := policy.DefaultName(planner.Offline)
		_, broken := promisesOf(t, p, name)
		if broken.Misses == 0 {
			continue
		}
		if loose := p.DueByDeadlines(); loose != nil {
			if _, only := promisesOf(t, loose, name); only.Misses < broken.Misses {
				t.Errorf("seed %d: %+v, without other due times %+v", seed, broken, only)
			}
		}
		for _, name := range []string{"edl", "edf-bf", policy.EasyDefault, "value"} {
			if _, other := promisesOf(t, p, name); broken.Compare(other) > 0 {
				t.Errorf("seed %d: %+v, by %s %+v", seed, broken, name, other)
			}
		}
	}
}
