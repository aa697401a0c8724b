package pick_test

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/planner/pick"
	"github.com/epplan/epplan/planner/place"
	"github.com/epplan/epplan/planner/tune"
)

// TestMain lends tests from inside what only those from outside can name.
func TestMain(m *testing.M) {
	pick.AtOnce = place.AtOnce
	m.Run()
}

// bid is a job for two pools of GPUs: what it needs, and takes on each.
type bid struct {
	at      float64
	gpus    int
	seconds [2]float64
	kWh     [2]float64
}

// even returns a job that takes the same on both.
func even(at float64, gpus int, seconds float64) bid {
	return bid{at, gpus, [2]float64{seconds, seconds}, [2]float64{1, 1}}
}

type stage = func(*planner.View, planner.Placer) planner.Picker

// pools returns the problem of jobs on so many GPUs of A and of B.
func pools(a, b int, bids ...bid) *planner.Problem {
	p := &planner.Problem{Mode: planner.Online, Cluster: planner.Cluster{Classes: []planner.NodeClass{
		{Name: "A", Model: "A", Count: 1, GPUs: a}, {Name: "B", Model: "B", Count: 1, GPUs: b},
	}}}
	for i, x := range bids {
		t := planner.Task{
			ID: strconv.Itoa(i), Arrival: x.at, Deadline: math.Inf(1), Due: math.Inf(1),
			Limit: math.Inf(1), Share: 1,
		}
		for class, model := range []string{"A", "B"} {
			at := dvfsmodel.Point{Scaling: dvfsmodel.DefaultScaling(), Time: x.seconds[class]}
			at.Power = dvfsmodel.Watt(x.kWh[class] * 3.6e6 / float64(x.gpus) / at.Time)
			at.Energy = at.Power.Over(at.Time)
			t.Options = append(t.Options, planner.Option{
				Model: model, GPUs: x.gpus, Response: &dvfsmodel.Fixed{At: at},
			})
		}
		p.Tasks = append(p.Tasks, t)
	}
	return p
}

// fails is what tests and random tests have in common.
type fails interface {
	Helper()
	Fatal(args ...any)
}

// schedule runs a Pick stage on a problem and on how it turns out; nil: as
// predicted.
func schedule(t fails, p, truth *planner.Problem, s stage) *planner.Plan {
	t.Helper()
	pol := &planner.Policy{Name: "test", Tune: tune.None, Pick: s, Place: place.AtOnce, Park: park.Never{}}
	made, err := planner.Solve(context.Background(), p, pol, &planner.Options{Truth: truth})
	if err != nil {
		t.Fatal(err)
	}
	if truth == nil {
		truth = p
	}
	if err := check.Plan(truth, made); err != nil {
		t.Fatal(err)
	}
	return made
}

// where tells for each job its class and start.
func where(made *planner.Plan) string {
	var b strings.Builder
	for i := range made.Assignments {
		a := &made.Assignments[i]
		fmt.Fprintf(&b, "%c%v ", "AB"[a.Option], a.Start)
	}
	return b.String()
}

func TestTheHeadOfTheQueueHoldsEverybodyUp(t *testing.T) {
	p := pools(4, 2, even(0, 4, 10), even(1, 4, 10), even(2, 1, 10))
	for _, c := range []struct {
		name string
		s    stage
		want string
	}{
		{"simple", pick.Simple, "A0 A10 B10 "},
		{"backfill", pick.Backfill{}.New, "A0 A10 B2 "},
		{"greedy waits for the class it wants", pick.Greedy{Alpha: 1}.New, "A0 A10 A20 "},
	} {
		if got := where(schedule(t, p, nil, c.s)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestGreedyNeverWantsAClassThatIsTooSmall(t *testing.T) {
	wide := even(0, 4, 10)
	wide.seconds[0] = 1 // A is better, but has too few GPUs
	if got := where(schedule(t, pools(2, 4, wide), nil, pick.Greedy{Alpha: 1}.New)); got != "B0 " {
		t.Errorf("%s, want B0", got)
	}
}

func TestEasyKeepsTheReservationOfTheHead(t *testing.T) {
	// The head needs all of A, free at 10. Behind it a short job may pass, a
	// long one would put it off.
	p := pools(4, 1, even(0, 2, 10), even(1, 4, 10), even(2, 2, 20), even(3, 2, 5))
	if got := where(schedule(t, p, nil, pick.Easy{Spread: 0.01}.New)); got != "A0 A10 A20 A3 " {
		t.Errorf("%s", got)
	}
	if got := where(schedule(t, p, nil, pick.Backfill{}.New)); got != "A0 A22 A2 A10 " {
		t.Errorf("without reservation: %s", got)
	}
}

func TestValueStartsTheMostValuablePairsFirst(t *testing.T) {
	frugal := bid{0, 2, [2]float64{10, 20}, [2]float64{3, 1}}
	p := pools(2, 2, even(0, 2, 30), frugal)
	if got := where(schedule(t, p, nil, pick.Value{Kappa: 0}.New)); got != "B0 A0 " {
		t.Errorf("by time: %s, want the short one on A", got)
	}
	if got := where(schedule(t, p, nil, pick.Value{Kappa: 1}.New)); got != "A0 B0 " {
		t.Errorf("by energy: %s, want the frugal pair first", got)
	}
}

func TestPostedPriceWaitsForTheFrugalClassButNotForEver(t *testing.T) {
	hungry := bid{1, 2, [2]float64{100, 100}, [2]float64{4, 1}} // A takes four times the energy
	p := pools(2, 2, bid{0, 2, [2]float64{1e6, 1e6}, [2]float64{4, 1}}, hungry)
	got := schedule(t, p, nil, pick.PostedPrice{Base: 3, PerDay: 1, Steepness: 1}.New)
	// It bids 3 − 4 for A, and a day later enough; the market is held hourly.
	if a := &got.Assignments[1]; a.Option != 0 || a.Start != 1+25*3600 {
		t.Errorf("%s, want A after a day and the hour that follows", where(got))
	}
	got = schedule(t, p, nil, pick.PostedPrice{Base: 3, Steepness: 1}.New)
	if a := &got.Assignments[1]; a.Option != 1 || a.Start != 1e6 {
		t.Errorf("%s, want B when it is free: bids don't rise", where(got))
	}
}

func TestLookaheadWaitsForTheFrugalClassIfItIsFreeSoon(t *testing.T) {
	hungry := bid{10, 2, [2]float64{100, 100}, [2]float64{4, 1}}
	p := pools(2, 2, bid{0, 2, [2]float64{100, 100}, [2]float64{4, 1}}, hungry)
	for _, c := range []struct {
		perKWh  float64
		futures int
		start   float64
	}{{1000, 100, 100}, {1, 100, 10}, {1000, 0, 100}, {1, 0, 10}} {
		o := pick.Lookahead{
			PerKWh: c.perKWh, Futures: c.futures, Seed: 1, Fairness: pick.Fairness{Spread: 0.1},
		}
		made := schedule(t, p, nil, o.New)
		if got := made.Assignments[1].Start; got != c.start {
			t.Errorf("%v s a kWh, %d futures: %s, want the second at %v", c.perKWh, c.futures,
				where(made), c.start)
		}
	}
}

// fairRules returns the rules that let small tasks pass large ones, with a limit.
func fairRules(patience float64) map[string]stage {
	limit := pick.Fairness{Patience: patience, Spread: 0.1}
	return map[string]stage{
		"backfill":  pick.Backfill{Fairness: limit}.New,
		"value":     pick.Value{Fairness: limit}.New,
		"posted":    pick.PostedPrice{Base: 3, Steepness: 1, Fairness: limit}.New,
		"rule":      pick.Lookahead{PerKWh: 1, Seed: 1, Fairness: limit}.New,
		"lookahead": pick.Lookahead{PerKWh: 1, Futures: 25, Seed: 1, Fairness: limit}.New,
	}
}

func TestPatienceKeepsRoomForATaskThatSmallOnesPass(t *testing.T) {
	jobs := []bid{even(0, 2, 10), even(1, 8, 10)}
	for at := 5.0; at < 400; at += 5 { // two GPUs are always taken by them
		jobs = append(jobs, even(at, 2, 10))
	}
	p := pools(8, 1, jobs...)
	for name := range fairRules(0) {
		wait := func(patience float64) float64 {
			return schedule(t, p, nil, fairRules(patience)[name]).Assignments[1].Start - 1
		}
		// Under Simple it waits for 9 s, and everybody else behind it.
		if without, with := wait(0), wait(2); with > 80 || without < 2*with {
			t.Errorf("%s: waits %v s without patience and %v s with", name, without, with)
		}
	}
}

func TestGreedyThatLosesPatienceTakesAnyClass(t *testing.T) {
	fast := func(at float64) bid { return bid{at, 2, [2]float64{100, 300}, [2]float64{1, 1}} }
	p := pools(2, 4, fast(0), fast(1), fast(2))
	if got := where(schedule(t, p, nil, pick.Greedy{Alpha: 1}.New)); got != "A0 A100 A200 " {
		t.Errorf("without patience: %s", got)
	}
	limit := pick.Fairness{Patience: 1, Spread: 0.1}
	made := schedule(t, p, nil, pick.Greedy{Alpha: 1, Fairness: limit}.New)
	// Nobody would wait under Simple: it takes two thirds of a quarter of a usual
	// run time.
	for i := range made.Assignments[1:] {
		if a := &made.Assignments[1+i]; a.Option != 1 || math.Abs(a.Start-float64(1+i)-100.0/6) > 1e-6 {
			t.Errorf("with patience: %s, want both others on B 16.7 s after they arrived", where(made))
		}
	}
}

func TestAgeingLetsALargeTaskPassSmallOnesThatCameLater(t *testing.T) {
	jobs := []bid{even(0, 2, 10), even(1, 2, 30)}
	for at := 2.0; at < 200; at += 9 { // a little more than there is room for
		jobs = append(jobs, even(at, 2, 10))
	}
	p := pools(2, 1, jobs...)
	if got := schedule(t, p, nil, pick.Value{}.New).Assignments[1].Start; got < 200 {
		t.Errorf("without ageing it starts at %v, want after all small ones", got)
	}
	if got := schedule(t, p, nil, pick.Value{Ageing: 10}.New).Assignments[1].Start; got > 60 {
		t.Errorf("with ageing it starts at %v, want before 60", got)
	}
}

func TestDecisionsAreMadeByPredictionsAndBookedByTruth(t *testing.T) {
	// B seems faster and is slower; the second job is thought to fit at 10.
	seems := pools(1, 1, bid{0, 1, [2]float64{20, 10}, [2]float64{1, 1}}, even(1, 1, 10))
	truth := pools(1, 1, bid{0, 1, [2]float64{20, 50}, [2]float64{1, 2}}, even(1, 1, 7))
	made := schedule(t, seems, truth, pick.Greedy{Alpha: 1}.New)
	if a := &made.Assignments[0]; a.Option != 1 || a.End != 50 {
		t.Errorf("the first runs on %c to %v, want B to 50", "AB"[a.Option], a.End)
	}
	if kWh := float64(made.Ledger.Run) / 3.6e6; math.Abs(kWh-3) > 1e-9 {
		t.Errorf("%v kWh are booked, want 3", kWh)
	}
}

// queueStages returns all Pick stages for queues.
func queueStages() map[string]stage {
	return map[string]stage{
		"simple": pick.Simple, "backfill": pick.Backfill{}.New, "easy": pick.Easy{Spread: 0.3}.New,
		"greedy": pick.Greedy{Alpha: 1, Gamma: 10}.New, "value": pick.Value{Kappa: 1e-3}.New,
		"fair backfill": pick.Backfill{Fairness: pick.Fairness{Patience: 1}}.New,
		"fair greedy":   pick.Greedy{Alpha: 1, Gamma: 10, Fairness: pick.Fairness{Patience: 1}}.New,
		"fair value":    pick.Value{Kappa: 1e-3, Ageing: 20, Fairness: pick.Fairness{Patience: 1}}.New,
		"fair posted": pick.PostedPrice{
			Base: 3, PerDay: 1000, Price: 0.3, Steepness: 4, Fairness: pick.Fairness{Patience: 1},
		}.New,
		"posted": pick.PostedPrice{Base: 3, PerDay: 1000, Price: 0.3, Steepness: 4}.New,
		"rule":   pick.Lookahead{PerKWh: 10, Fairness: pick.Fairness{Patience: 2, Spread: 0.3}}.New,
		"ahead": pick.Lookahead{
			PerKWh: 10, Futures: 1, Ageing: 50, Fairness: pick.Fairness{Patience: 1, Spread: 0.3},
		}.New,
	}
}

func TestEveryJobOfARandomQueueRunsAndUsesNothingOfTheTruthAhead(t *testing.T) {
	whole := func(t *rapid.T, label string, least, most int) float64 {
		return float64(rapid.IntRange(least, most).Draw(t, label))
	}
	rapid.Check(t, func(t *rapid.T) {
		jobs, at := rapid.IntRange(1, 12).Draw(t, "jobs"), 0.0
		seems, turns := make([]bid, 0, jobs), make([]bid, 0, jobs)
		for range jobs {
			at += whole(t, "gap", 0, 20)
			x := bid{
				at, rapid.IntRange(1, 4).Draw(t, "GPUs"),
				[2]float64{whole(t, "A", 1, 60), whole(t, "B", 1, 60)},
				[2]float64{whole(t, "eA", 0, 5), whole(t, "eB", 0, 5)},
			}
			y := x
			y.seconds = [2]float64{whole(t, "true A", 1, 90), whole(t, "true B", 1, 90)}
			seems, turns = append(seems, x), append(turns, y)
		}
		seem, truth := pools(4, 3, seems...), pools(4, 3, turns...)
		// The same queue whose last job turns out otherwise: up to its start
		// nothing may differ.
		last := len(turns) - 1
		turns[last].seconds = [2]float64{500, 500}
		other := pools(4, 3, turns...)
		for name, s := range queueStages() {
			made := schedule(t, seem, truth, s)
			if made.Status != planner.Complete {
				t.Fatalf("%s: %v: %v", name, made.Status, made.Unplaced)
			}
			again := schedule(t, seem, other, s)
			until := made.Assignments[last].Start
			for i := range made.Assignments {
				if a, b := &made.Assignments[i], &again.Assignments[i]; a.Start <= until &&
					(a.Start != b.Start || a.Option != b.Option) {
					t.Fatalf("%s: job %d starts at %v or %v, by how job %d turns out after %v", name, i,
						a.Start, b.Start, last, until)
				}
			}
		}
	})
}
