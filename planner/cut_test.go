package planner_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
)

// improver is an Improve pass of a test's own.
type improver func(ctx context.Context, p *planner.Problem, plan *planner.Plan) (*planner.Plan, error)

func (f improver) Improve(
	ctx context.Context, p *planner.Problem, plan *planner.Plan, _ *rand.Rand,
) (*planner.Plan, error) {
	return f(ctx, p, plan)
}

// parsed returns a policy by its string.
func parsed(tb testing.TB, text string) *planner.Policy {
	tb.Helper()
	pol, err := policy.Parse(text, policy.DefaultParams())
	if err != nil {
		tb.Fatal(err)
	}
	return pol
}

// monitored plans under a monitor.
func monitored(
	ctx context.Context, w *planner.Monitor, p *planner.Problem, pol *planner.Policy,
) (*planner.Plan, error) {
	ctx, end := w.Begin(ctx)
	defer end()
	return planner.Solve(ctx, p, pol, nil)
}

// leastWork returns the fewest evaluations within which a policy makes its plan.
func leastWork(tb testing.TB, text string) int {
	tb.Helper()
	const most = 1 << 20
	p, pol := mixed(tb), parsed(tb, text)
	return 1 + sort.Search(most, func(i int) bool {
		_, err := monitored(tb.Context(), &planner.Monitor{MaxWork: 1 + i}, p, pol)
		if err != nil && !errors.Is(err, planner.ErrUnfinished) {
			tb.Fatalf("%s: %v", text, err)
		}
		return err == nil
	})
}

func TestHowMuchWorkAPolicyTakesFollowsFromTheProblem(t *testing.T) {
	works := make(map[string]int)
	for _, text := range []string{"baseline", "edl", "marginal", "value", "replan", "cats-safe"} {
		works[text] = leastWork(t, text)
		if again := leastWork(t, text); again != works[text] || works[text] < 2*len(mixed(t).Tasks) {
			t.Errorf("%s takes %d evaluations, and %d, want as many twice", text, works[text], again)
		}
	}
	if few, many := leastWork(t, "lookahead,futures=2"), leastWork(t, "lookahead,futures=20"); few <
		works["value"] || many < 2*few {
		t.Errorf("2 futures take %d evaluations, 20 take %d, and value %d", few, many, works["value"])
	}
}

func TestAMonitorEndsARunWithoutAPlanAndCutsTheSearchForABetterOne(t *testing.T) {
	pol := parsed(t, "edl")
	stopped, cancel := context.WithCancel(t.Context())
	pol.Improve = improver(func(
		ctx context.Context, _ *planner.Problem, plan *planner.Plan,
	) (*planner.Plan, error) {
		if ctx.Err() != nil {
			t.Error("the search is cut before anybody asked for it")
		}
		cancel()
		<-ctx.Done()
		return plan, planner.Cancelled(ctx)
	})
	plan, err := monitored(stopped, &planner.Monitor{}, paperLike(), pol)
	if err != nil || !plan.Cut {
		t.Errorf("%v, want a plan whose search was cut", err)
	}
	if _, err := monitored(stopped, &planner.Monitor{}, paperLike(), pol); !errors.Is(err,
		planner.ErrUnfinished) {
		t.Errorf("%v with a context that has ended, want %v", err, planner.ErrUnfinished)
	}
}

func TestARunThatIsOnlyCutMayStillBeStoppedBeforeItHasAPlan(t *testing.T) {
	w := &planner.Monitor{}
	ctx, end := w.Begin(t.Context())
	defer end()
	ctx, cut := context.WithCancelCause(ctx)
	cut(planner.ErrCut) // a time limit
	pol := parsed(t, "edl")
	if _, err := planner.Solve(ctx, mixed(t), pol, nil); err != nil {
		t.Fatalf("a time limit ended the first plan: %v", err)
	}
	w = &planner.Monitor{}
	ctx, end = w.Begin(t.Context())
	defer end()
	ctx, cut = context.WithCancelCause(ctx)
	cut(planner.ErrCut)
	w.Stop()
	if _, err := planner.Solve(ctx, mixed(t), pol, nil); !errors.Is(err, planner.ErrUnfinished) {
		t.Errorf("%v, want %v", err, planner.ErrUnfinished)
	}
}

func TestAMonitorIsToldOfTheBestPlanSoFar(t *testing.T) {
	var told []planner.Progress
	w := &planner.Monitor{OnProgress: func(p planner.Progress) { told = append(told, p) }}
	p := paperLike()
	p.Cluster.Classes[0].Count = 2
	plan, err := monitored(t.Context(), w, p, parsed(t, "edl-align"))
	if err != nil {
		t.Fatal(err)
	}
	if len(told) == 0 || told[0].Planned || told[0].Doing != "edl-align" {
		t.Fatalf("told of %d steps, want edl-align's own plan first, %+v", len(told),
			told[:min(1, len(told))])
	}
	least, searched := told[len(told)-1], false
	for i := range told {
		if at := &told[i]; at.Done < 0 || at.Done > at.Total {
			t.Errorf("step %d of %d", at.Done, at.Total)
		}
		searched = searched || told[i].Doing == planner.Searching
		if i > 0 && told[i-1].Planned && (told[i].PastDue > told[i-1].PastDue ||
			told[i].PastDue == told[i-1].PastDue && told[i].Energy > told[i-1].Energy) {
			t.Errorf("the best so far was %v with %d late, and is %v with %d", told[i-1].Energy,
				told[i-1].PastDue, told[i].Energy, told[i].PastDue)
		}
	}
	if !searched || !least.Planned || least.Energy < plan.Ledger.Total()*(1-1e-9) ||
		least.PastDue != len(plan.PastDue(p)) {
		t.Errorf("told of %v and %d late in the end, searched %t; the plan takes %v with %d late",
			least.Energy, least.PastDue, searched, plan.Ledger.Total(), len(plan.PastDue(p)))
	}
}
