package planner_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/planner/pick"
	"github.com/epplan/epplan/planner/place"
	"github.com/epplan/epplan/planner/tune"
)

// pair returns two tasks on a node of two GPUs; online, the second arrives when the
// node of the first could have gone off.
func pair(mode planner.Mode) *planner.Problem {
	p := &planner.Problem{
		Mode: mode,
		Cluster: planner.Cluster{
			Classes: []planner.NodeClass{{Name: "n", Model: "A", Count: 2, GPUs: 2, IdleW: 10}},
		},
		Tasks: []planner.Task{job("a", fixed(50)), job("b", fixed(50))},
	}
	if mode == planner.Online {
		p.Tasks[1].Arrival = 500
	}
	return p
}

// plain returns a policy of stages that are known to be sound.
func plain() *planner.Policy {
	return &planner.Policy{
		Name: "mine", Pick: pick.EDF, Place: place.Marginal, Tune: tune.None, Park: park.Never{},
	}
}

// answers is a Place stage whose answers are spoilt.
type answers struct {
	planner.Placer
	spoil func(*planner.Placement, *planner.Verdict)
}

func (a answers) Place(task int) (planner.Placement, planner.Verdict) {
	pl, verdict := a.Placer.Place(task)
	a.spoil(&pl, &verdict)
	return pl, verdict
}

// stubborn is a Pick stage that always does the same.
type stubborn struct {
	planner.Picker
	task  int
	offer bool
	wake  float64
}

func (s stubborn) Next() (int, bool) { return s.task, s.offer }
func (s stubborn) Wake() float64     { return s.wake }

// offAt is a Park stage.
type offAt float64

func (o offAt) OffAt(*planner.Cluster, float64) float64 { return float64(o) }

// nothing is an Improve pass that has no plan.
type nothing struct{}

func (nothing) Improve(context.Context, *planner.Problem, *planner.Plan, *rand.Rand) (*planner.Plan, error) {
	return nil, nil //nolint:nilnil // that is what is wrong with it
}

// wantStageError wants Solve to blame a stage.
func wantStageError(t *testing.T, p *planner.Problem, policy *planner.Policy, stage, said string) {
	t.Helper()
	_, err := planner.Solve(t.Context(), p, policy, nil)
	fault, ok := errors.AsType[*planner.StageError](err)
	if !ok || fault.Stage != stage || !strings.Contains(err.Error(), said) {
		t.Errorf("error is %v, want one of %s with %q", err, stage, said)
	}
}

func TestAPolicyWithoutAStageIsRefused(t *testing.T) {
	for stage, leave := range map[string]func(*planner.Policy){
		"tune":  func(p *planner.Policy) { p.Tune = nil },
		"place": func(p *planner.Policy) { p.Place = nil },
		"pick":  func(p *planner.Policy) { p.Pick = nil },
		"park":  func(p *planner.Policy) { p.Park = nil },
	} {
		policy := plain()
		leave(policy)
		wantStageError(t, pair(planner.Offline), policy, stage, "no such stage")
	}
}

func TestAConstructorWithoutAStageIsRefused(t *testing.T) {
	for stage, spoil := range map[string]func(*planner.Policy){
		"tune":  func(p *planner.Policy) { p.Tune = func(*planner.Problem) planner.Tuner { return nil } },
		"place": func(p *planner.Policy) { p.Place = func(*planner.View) planner.Placer { return nil } },
		"pick": func(p *planner.Policy) {
			p.Pick = func(*planner.View, planner.Placer) planner.Picker { return nil }
		},
	} {
		policy := plain()
		spoil(policy)
		wantStageError(t, pair(planner.Offline), policy, stage, "made no stage")
	}
}

func TestAPlacementThatCannotBeBookedIsAnError(t *testing.T) {
	type placement = planner.Placement
	for said, spoil := range map[string]func(*placement, *planner.Verdict){
		"node 99":                  func(pl *placement, _ *planner.Verdict) { pl.Node = 99 },
		"node -7":                  func(pl *placement, _ *planner.Verdict) { pl.Node = -7 },
		"node class 9 of 1":        func(pl *placement, _ *planner.Verdict) { pl.Class = 9 },
		"option -1 of 1":           func(pl *placement, _ *planner.Verdict) { pl.Option = -1 },
		"option 3 of 1":            func(pl *placement, _ *planner.Verdict) { pl.Option = 3 },
		"GPUs [] of":               func(pl *placement, _ *planner.Verdict) { pl.GPUs = 0 },
		"GPUs [40] of":             func(pl *placement, _ *planner.Verdict) { pl.GPUs = 1 << 40 },
		"GPUs [0 1] of":            func(pl *placement, _ *planner.Verdict) { pl.GPUs = 3 },
		"starts at NaN s":          func(pl *placement, _ *planner.Verdict) { pl.Start = math.NaN() },
		"starts at +Inf s":         func(pl *placement, _ *planner.Verdict) { pl.Start = math.Inf(1) },
		"starts at -1 s":           func(pl *placement, _ *planner.Verdict) { pl.Start = -1 },
		"verdict 77":               func(_ *placement, v *planner.Verdict) { *v = 77 },
		`job "a": node 0, want -1`: func(pl *placement, _ *planner.Verdict) { *pl = placement{} },
	} {
		policy := plain()
		policy.Place = func(v *planner.View) planner.Placer { return answers{place.Marginal(v), spoil} }
		wantStageError(t, pair(planner.Offline), policy, "place", said)
	}
	for said, spoil := range map[string]func(*placement, *planner.Verdict){
		"run time NaN": func(pl *placement, _ *planner.Verdict) { pl.Point.Time = math.NaN() },
		"run time -3":  func(pl *placement, _ *planner.Verdict) { pl.Point.Time = -3 },
		"power -1":     func(pl *placement, _ *planner.Verdict) { pl.Point.Power = -1 },
		"energy +Inf": func(pl *placement, _ *planner.Verdict) {
			pl.Point.Energy = dvfsmodel.Joule(math.Inf(1))
		},
	} {
		policy := plain()
		policy.Place = func(v *planner.View) planner.Placer { return answers{place.Marginal(v), spoil} }
		wantStageError(t, pair(planner.Offline), policy, "tune", said)
	}
}

func TestAPickStageThatGoesRoundInCirclesIsAnError(t *testing.T) {
	wait := func(v *planner.View) planner.Placer {
		return answers{place.Marginal(v), func(_ *planner.Placement, verdict *planner.Verdict) {
			*verdict = planner.Wait
		}}
	}
	for _, c := range []struct {
		name  string
		stage stubborn
		mode  planner.Mode
		place func(*planner.View) planner.Placer
		said  string
	}{
		{
			"no such task",
			stubborn{task: 9, offer: true, wake: math.Inf(1)},
			planner.Offline,
			place.Marginal, "offers task 9 of 2",
		},
		{
			"below 0",
			stubborn{task: -1, offer: true, wake: math.Inf(1)},
			planner.Offline, place.Marginal,
			"offers task -1 of 2",
		},
		{
			"placed already",
			stubborn{offer: true, wake: math.Inf(1)},
			planner.Offline, place.Marginal,
			`job "a": is offered again, and is placed`,
		},
		{
			"not there yet",
			stubborn{task: 1, offer: true, wake: math.Inf(1)},
			planner.Online,
			place.Marginal, "arrives at 500 s",
		},
		{
			"put off for ever",
			stubborn{offer: true, wake: math.Inf(1)},
			planner.Offline, wait,
			"put off each time",
		},
		{"woken at once for ever", stubborn{wake: 0}, planner.Offline, place.Marginal, "asks repeatedly"},
		{"woken in the past", stubborn{wake: -1}, planner.Offline, place.Marginal, "asks repeatedly"},
		{"woken at no time", stubborn{wake: math.NaN()}, planner.Offline, place.Marginal, "NaN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			policy := plain()
			policy.Place = c.place
			policy.Pick = func(v *planner.View, pl planner.Placer) planner.Picker {
				stage := c.stage
				stage.Picker = pick.EDF(v, pl)
				return stage
			}
			wantStageError(t, pair(c.mode), policy, "pick", c.said)
		})
	}
}

func TestARejectedTaskCannotBeOfferedAgain(t *testing.T) {
	policy := plain()
	policy.Place = func(v *planner.View) planner.Placer {
		return answers{place.Marginal(v), func(_ *planner.Placement, verdict *planner.Verdict) {
			*verdict = planner.Reject
		}}
	}
	policy.Pick = func(v *planner.View, pl planner.Placer) planner.Picker {
		return stubborn{Picker: pick.EDF(v, pl), offer: true, wake: math.Inf(1)}
	}
	wantStageError(t, pair(planner.Offline), policy, "pick", "was rejected")
}

func TestANodeThatWouldGoOffBeforeItsLastTaskEndsIsAnError(t *testing.T) {
	for _, at := range []float64{math.NaN(), -1, math.Inf(-1)} {
		policy := plain()
		policy.Park = offAt(at)
		wantStageError(t, pair(planner.Online), policy, "park", "last task")
	}
	policy := plain()
	policy.Park = park.DRS{Rho: math.NaN()}
	wantStageError(t, pair(planner.Online), policy, "park", "last task")
}

func TestAnImprovePassWithoutAPlanIsAnError(t *testing.T) {
	policy := plain()
	policy.Improve = nothing{}
	wantStageError(t, pair(planner.Offline), policy, "improve", "no plan")
}

func TestAZeroPeriodLooksAllTheTime(t *testing.T) {
	policy := plain()
	policy.Park = park.Periodic{}
	plan := solveWith(t, pair(planner.Online), policy)
	if on := plan.Nodes[0].On; len(on) != 2 || on[0].To != 50 {
		t.Errorf("node is on %v, want it off as soon as its task ends, at 50 s", on)
	}
}

func TestACancelledContextEndsAPlanBetweenTwoOffers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	policy := plain()
	offers := 0
	policy.Place = func(v *planner.View) planner.Placer {
		return answers{place.Marginal(v), func(*planner.Placement, *planner.Verdict) {
			offers++
			cancel()
		}}
	}
	_, err := planner.Solve(ctx, pair(planner.Offline), policy, nil)
	if !errors.Is(err, context.Canceled) || offers != 1 {
		t.Errorf("error %v after %d offers, want the context's after the first", err, offers)
	}
}
