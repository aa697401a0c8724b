package taskset_test

import (
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/lab/taskset"
	"github.com/epplan/epplan/lab/trace"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/policy"
)

// queueCase is a queue for two GPU types as predicted and as it turns out.
type queueCase struct {
	name             string
	jobs             []trace.KnapsackJob
	predicted, truth *planner.Problem
	params           policy.Params
}

func newQueueCase(
	tb testing.TB, jobs []trace.KnapsackJob, pool *trace.KnapsackPool, model trace.EnergyModel,
) *queueCase {
	tb.Helper()
	q := &queueCase{name: pool.Name, jobs: jobs, params: policy.DefaultParams()}
	if model == trace.Coupled {
		q.params.Queue = taskset.CoupledQueueParams()
	}
	var err error
	if q.predicted, q.truth, err = trace.KnapsackProblem(jobs, pool); err != nil {
		tb.Fatal(err)
	}
	for i := range jobs {
		q.params.Queue.Posted.Scale += float64(jobs[i].GPUs[0]) * jobs[i].Forecast[0].Seconds /
			float64(len(jobs))
	}
	return q
}

// givenQueues returns the instances of the folder by name.
func givenQueues(t *testing.T, model trace.EnergyModel) map[string]*queueCase {
	t.Helper()
	folder := shareddata.Path(t, "knapsack")
	pools := readFile(t, filepath.Join(folder, "clusters.csv"), trace.ReadKnapsackPools)
	all := make(map[string]*queueCase, len(pools))
	for i := range pools {
		jobs := readFile(t, filepath.Join(folder, pools[i].Name+".csv"),
			func(r io.Reader, name string) ([]trace.KnapsackJob, error) {
				return trace.ReadKnapsack(r, name, model)
			})
		all[pools[i].Name] = newQueueCase(t, jobs, &pools[i], model)
	}
	return all
}

func readFile[T any](t *testing.T, name string, read func(io.Reader, string) (T, error)) T {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	all, err := read(f, name)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// outcome is what a plan comes to.
type outcome struct {
	kWh, wait, running, makespan, longest float64
	delayed                               int
}

// run plans a queue and checks the plan against the truth.
func (q *queueCase) run(tb testing.TB, text string, clairvoyant bool) outcome {
	tb.Helper()
	pol, err := policy.Parse(text, q.params)
	if err != nil {
		tb.Fatal(err)
	}
	predicted := q.predicted
	if clairvoyant {
		predicted = q.truth
	}
	plan, err := planner.Solve(tb.Context(), predicted, pol, &planner.Options{Truth: q.truth})
	if err != nil {
		tb.Fatalf("%s: %s: %v", q.name, text, err)
	}
	if err := check.Plan(q.truth, plan); err != nil {
		tb.Errorf("%s: %s: %v", q.name, text, err)
	}
	var o outcome
	for i := range plan.Assignments {
		a := &plan.Assignments[i]
		wait := a.Start - q.truth.Tasks[i].Arrival
		o.kWh += q.jobs[i].Actual[a.Option].KWh
		o.wait, o.longest = o.wait+wait, max(o.longest, wait)
		o.running, o.makespan = o.running+a.End-a.Start, max(o.makespan, a.End)
		if wait > 0 {
			o.delayed++
		}
	}
	if ledger := float64(plan.Ledger.Run) / 3.6e6; math.Abs(ledger-o.kWh) > 1e-9*o.kWh {
		tb.Errorf("%s: %s: the ledger has %v kWh, the jobs took %v", q.name, text, ledger, o.kWh)
	}
	return o
}

// TestThePaperAlgorithmsReproduceTheTable compares every figure of every row, as
// it is printed.
func TestThePaperAlgorithmsReproduceTheTable(t *testing.T) {
	texts := map[string]string{"simple": "simple", "simple_backfill": "simple-backfill"}
	clairvoyant := map[string]bool{}
	for _, p := range shareddata.Rows(t, shareddata.Path(t, "knapsack/parameters.csv")) {
		key := p["model"] + p["policy"]
		clairvoyant[key] = p["clairvoyant"] == "true"
		switch name, _, _ := strings.Cut(p["policy"], "_"); name {
		case "simple":
			texts[key] = texts[p["policy"]]
		case "greedy":
			texts[key] = "greedy,alpha=" + p["alpha"] + ",gamma=" + p["gamma"]
		case "value":
			texts[key] = "value,kappa=" + p["kappa"]
		case "posted":
			texts[key] = fmt.Sprintf("posted-price,base=%s,perday=%s,price=%s,steepness=%s", p["v0"],
				p["omega_per_day"], p["p0"], p["eta"])
		}
	}
	queues := map[string]map[string]*queueCase{
		"independent": givenQueues(t, trace.Independent), "coupled": givenQueues(t, trace.Coupled),
	}
	rows := shareddata.Rows(t, shareddata.Path(t, "knapsack/results.csv"))
	for _, row := range rows {
		key := row["model"] + row["policy"]
		o := queues[row["model"]][row["instance"]].run(t, texts[key], clairvoyant[key])
		got := fmt.Sprintf("%.4f %.0f %d %.0f %.0f", o.kWh, o.wait, o.delayed, o.running, o.makespan)
		want := strings.Join([]string{
			row["total_energy_kwh"], row["total_wait_s"], row["delayed_tasks"], row["cumulative_running_s"],
			row["makespan_s"],
		}, " ")
		if got != want {
			t.Errorf("%s %s %s: %s, want %s", row["instance"], row["model"], row["policy"], got, want)
		}
	}
	if len(rows) != 200 {
		t.Errorf("%d rows, want 200", len(rows))
	}
}

// against sums a policy's outcomes over queues, each as a part of Simple's, and
// finds the longest wait as a multiple of Simple's longest there.
func against(t *testing.T, queues []*queueCase, text string) (energy, wait, longest float64) {
	t.Helper()
	var ours, simple outcome
	for _, q := range queues {
		o, s := q.run(t, text, false), q.run(t, "simple", false)
		ours.kWh, ours.wait = ours.kWh+o.kWh, ours.wait+o.wait
		simple.kWh, simple.wait = simple.kWh+s.kWh, simple.wait+s.wait
		if s.longest > 0 {
			longest = max(longest, o.longest/s.longest)
		}
	}
	t.Logf("%-40s energy %+.1f %%, waiting %+.1f %%, longest wait × %.2f", text, 100*(ours.kWh/simple.kWh-1),
		100*(ours.wait/simple.wait-1), longest)
	return ours.kWh / simple.kWh, ours.wait / simple.wait, longest
}

// drawnQueues are queues of our own: on them the numbers of the policies were
// set.
func drawnQueues(t *testing.T, count int, model trace.EnergyModel) []*queueCase {
	t.Helper()
	queues := make([]*queueCase, count)
	for seed := range queues {
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		jobs, pool := taskset.Queue(rng, model)
		queues[seed] = newQueueCase(t, jobs, &pool, model)
	}
	return queues
}

func TestOnDrawnQueuesLookaheadBeatsEachPaperAlgorithmInEnergyPlusWaiting(t *testing.T) {
	t.Parallel()
	const count = 12
	for _, model := range []trace.EnergyModel{trace.Independent, trace.Coupled} {
		queues := drawnQueues(t, count, model)
		energy, wait, _ := against(t, queues, "lookahead,futures=30")
		for _, other := range []string{
			"simple", "simple-backfill", "easy", "greedy", "value",
			"posted-price",
		} {
			if e, w, _ := against(t, queues, other); energy+wait >= e+w {
				t.Errorf("%v: %v by lookahead, %v by %s", model, energy+wait, e+w, other)
			}
		}
	}
}

// beyond counts the queues in which a job waits for more than so many times the
// longest wait under Simple.
func beyond(t *testing.T, queues []*queueCase, text string, times ...float64) (counts []int) {
	t.Helper()
	counts = make([]int, len(times))
	for _, q := range queues {
		ours, simple := q.run(t, text, false).longest, q.run(t, "simple", false).longest
		for i := range times {
			if ours > times[i]*simple {
				counts[i]++
			}
		}
	}
	t.Logf("%-30s beyond %v times: %v of %d", text, times, counts, len(queues))
	return counts
}

// TestPatienceBoundsTheLongestWaitOfEachRuleThatLetsJobsPass holds the waits of
// drawn queues against the longest under Simple there, which no policy knows
// until all is over: so there is no certainty.
func TestPatienceBoundsTheLongestWaitOfEachRuleThatLetsJobsPass(t *testing.T) {
	const count, most, greedy = 60, 3, "greedy"
	for _, model := range []trace.EnergyModel{trace.Independent, trace.Coupled} {
		queues, broken := drawnQueues(t, count, model), 0
		for _, rule := range []string{"simple-backfill", "value", "posted-price", greedy} {
			broken += beyond(t, queues, rule, most, 2.5)[0]
			got, allowed := beyond(t, queues, fmt.Sprintf("%s,patience=%d", rule, most), most, 2.5)[0], 0
			if rule == greedy {
				allowed = 1
			}
			if got > allowed {
				t.Errorf("%v: with patience %d a job of %d queues waits for more than so many times the "+
					"longest wait under simple by %s", model, most, got, rule)
			}
		}
		if broken < count/4 {
			t.Errorf("%v: without patience jobs of %d queues only wait for more than %d times the longest "+
				"wait under simple", model, broken, most)
		}
	}
}

// TestEachPolicyForQueuesMakesPlansThatPassTheCheck: run checks them.
func TestEachPolicyForQueuesMakesPlansThatPassTheCheck(t *testing.T) {
	for _, model := range []trace.EnergyModel{trace.Independent, trace.Coupled} {
		for _, q := range givenQueues(t, model) {
			for _, rule := range []string{
				"simple", "simple-backfill", "easy", "greedy", "value",
				"posted-price", "lookahead,futures=0",
			} {
				q.run(t, rule, false)
				for _, options := range []string{",patience=1,ageing=50000", ",patience=1", ",ageing=50000"} {
					if _, err := policy.Parse(rule+options, q.params); err == nil {
						q.run(t, rule+options, false)
						break
					}
				}
			}
		}
	}
}

// TestLookaheadBeatsTheTableOfTheGivenQueues holds the default policy against
// the best rows that don't know the future (lab/docs/figures.md).
func TestLookaheadBeatsTheTableOfTheGivenQueues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		model                 trace.EnergyModel
		energy, wait, longest float64
	}{{trace.Independent, 0.67, 0.59, 3.2}, {trace.Coupled, 1, 0.525, 3}} {
		queues := slices.Collect(maps.Values(givenQueues(t, c.model)))
		energy, wait, longest := against(t, queues, "lookahead")
		if energy > c.energy || wait > c.wait || longest > c.longest {
			t.Errorf("%v: energy %v, waiting %v and longest wait %v of simple's, want %v, %v and %v at most",
				c.model, energy, wait, longest, c.energy, c.wait, c.longest)
		}
	}
}
