package policy_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/queue"
)

// beliefs returns how many times as long as predicted a task takes, by what is wrong about predictions.
var beliefs = []struct {
	name   string
	factor func(rng *rand.Rand) float64
}{
	{"times off by x0.5 to 2", func(rng *rand.Rand) float64 { return math.Pow(2, 2*rng.Float64()-1) }},
	{"all take half as long", func(*rand.Rand) float64 { return 0.5 }},
	{"all take twice as long", func(*rand.Rand) float64 { return 2 }},
	{"times off by up to 10 %", func(rng *rand.Rand) float64 { return 0.9 + 0.2*rng.Float64() }},
	{"users' limits only", nil},
}

// misled returns what is believed of a problem that is drawn, and how it turns out: by a factor for each
// task, or where there is none, each task's limit is what it is believed to take at default clocks.
func misled(
	tb testing.TB, seed uint64, most float64, factor func(*rand.Rand) float64,
) (believed, truth *planner.Problem) {
	tb.Helper()
	rng := rand.New(rand.NewPCG(seed, 31))
	wrong := make([]float64, len(drawOnline(tb, seed, 20, most).Tasks))
	for i := range wrong {
		wrong[i] = 1
		if factor != nil {
			wrong[i] = factor(rng)
		}
	}
	believed = drawBelieved(tb, seed, 20, most, 0, func(i int, job *queue.Job) {
		if factor == nil && !math.IsInf(job.Limit, 1) {
			wrong[i] = job.Runtime / job.Limit
		}
		job.Runtime /= wrong[i]
	})
	tasks := slices.Clone(believed.Tasks)
	for i := range tasks {
		tasks[i].Limit *= 1 + tasks[i].LimitMargin
		options := slices.Clone(tasks[i].Options)
		for o := range options {
			options[o].Response = dvfsmodel.Repeat(options[o].Response, wrong[i])
		}
		tasks[i].Options = options
	}
	is := *believed
	is.Tasks = tasks
	return believed, &is
}

// Runs over their limits that EASY at default clocks has within, missed deadlines and turnaround against
// EASY's where predictions are wrong:
//
//	go test ./planner/policy -run xxx -bench WrongBeliefs -benchtime 1x -online 'replan,pace=1' -seeds 1:200
func BenchmarkWrongBeliefs(b *testing.B) {
	if *onlineFigures == "" {
		b.Skip("-online names no policies")
	}
	var first, last uint64
	if _, err := fmt.Sscanf(*onlineSeeds, "%d:%d", &first, &last); err != nil {
		b.Fatal(err)
	}
	for text := range strings.SplitSeq(*onlineFigures, ";") {
		for _, belief := range beliefs {
			var sum beliefFigures
			for seed := first; seed <= last; seed++ {
				believed, truth := misled(b, seed, 2000, belief.factor)
				easy := playMisled(b, believed, truth, policy.EasyDefault)
				sum.add(truth, playMisled(b, believed, truth, text), easy)
			}
			b.Logf("%s, %s: %v", text, belief.name, &sum)
		}
	}
}

// However wrong predictions are, runs keep the limits that they keep under EASY at default clocks, but for
// one in thousands before any has ended, and turnaround is EASY's or little more.
func TestWrongPredictionsBreakNoLimitsAndCostLittleTime(t *testing.T) {
	for _, belief := range beliefs {
		var sum beliefFigures
		for seed := range onlineBatches() / 3 {
			believed, truth := misled(t, seed, 500, belief.factor)
			easy := playMisled(t, believed, truth, policy.EasyDefault)
			sum.add(truth, playMisled(t, believed, truth, policy.DefaultName(planner.Online)), easy)
		}
		t.Logf("%s: %v", belief.name, &sum)
		n := float64(sum.batches)
		if 5000*sum.over > sum.runs || sum.mean/n > 1 || sum.worst > 1.4 || sum.energy/n > 0.96 {
			t.Errorf("%s: %v", belief.name, &sum)
		}
	}
}

// playMisled returns the plan that comes of wrong predictions.
func playMisled(tb testing.TB, believed, truth *planner.Problem, text string) *planner.Plan {
	tb.Helper()
	pol, err := policy.Parse(text, policy.DefaultParams())
	if err != nil {
		tb.Fatal(err)
	}
	plan, err := planner.Solve(context.Background(), believed, pol, &planner.Options{Truth: truth})
	if err != nil {
		tb.Fatal(err)
	}
	return plan
}

// beliefFigures are those of batches played by wrong predictions.
type beliefFigures struct {
	batches, runs     int
	over, overAtEasy  int     // runs over their limits: none of EASY's; EASY's
	misses, easyMiss  int     // deadlines
	energy, mean      float64 // sums of the plans' parts of EASY's
	worst             float64 // turnaround, in EASY's
	worstMisses, lost int     // missed more than EASY, in one batch; left out
}

func (f *beliefFigures) add(truth *planner.Problem, plan, easy *planner.Plan) {
	o, base := serviceOf(truth, plan), serviceOf(truth, easy)
	for i := range truth.Tasks {
		most := truth.Tasks[i].Limit * (1 + 1e-9)
		a, b := &plan.Assignments[i], &easy.Assignments[i]
		if b.Node >= 0 && b.End-b.Start > most {
			f.overAtEasy++
		} else if a.Node >= 0 && a.End-a.Start > most {
			f.over++
		}
	}
	f.batches, f.runs = f.batches+1, f.runs+len(truth.Tasks)
	f.misses, f.easyMiss = f.misses+o.misses, f.easyMiss+base.misses
	f.worstMisses, f.lost = max(f.worstMisses, o.misses-base.misses), f.lost+o.lost
	f.energy, f.mean = f.energy+o.energy/base.energy, f.mean+o.mean/base.mean
	f.worst = max(f.worst, o.mean/base.mean)
}

func (f *beliefFigures) String() string {
	n := float64(f.batches)
	return fmt.Sprintf("%d runs over limits that EASY has within (%d of %d over under EASY), "+
		"%d deadlines missed (EASY %d, more by %d at most), energy %.3f, turnaround %.3f, at most %.2f, %d lost",
		f.over, f.overAtEasy, f.runs, f.misses, f.easyMiss, f.worstMisses, f.energy/n, f.mean/n, f.worst, f.lost)
}
