package policy_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/planner/sharing"
)

// optionValues are values of every key of a policy string, each far from the
// default.
func optionValues() map[string][]string {
	return map[string][]string{
		"clocks": {"default", "optimum", "adapted", "lowest", "cheapest"},
		"pick": {
			"fcfs", "edf", "deadline-first", "lpt", "largest",
			"simple", "simple-backfill", "easy", "greedy", "value", "posted-price", "lookahead",
		},
		"place": append(policy.PlaceNames(), "fgd", "random"),
		"park":  {"drs", "never", "periodic", "break-even"},
		"theta": {"0.5"}, "rho": {"50"}, "stretch": {"1"}, "pace": {"4"},
		"alpha": {"0"}, "gamma": {"0", "1e12"}, "kappa": {"0", "1"}, "base": {"1000"}, "perday": {"0", "1e9"},
		"price": {"1e9"}, "steepness": {"0", "50"}, "scale": {"1", "1e9"}, "weight": {"0", "1e6"},
		"perkwh": {"1e9"},
		"spread": {"0.01", "2"}, "futures": {"0"}, "ageing": {"1e6"}, "patience": {"0.01", "1"},
		"seed": {"7", "8"},
	}
}

// predicted is a problem, and how it turns out where that is something else.
type predicted struct{ problem, truth *planner.Problem }

// differing are problems on which options have something to change: small ones of
// all kinds, busy queues with run times that are known or aren't, and GPUs that are shared.
func differing() (all []predicted) {
	for seed := range 60 {
		drawn := rapid.Custom(func(t *rapid.T) *planner.Problem {
			return drawProblem(t, atZero, atWholeSeconds, atAnyTime)
		})
		all = append(all, predicted{problem: drawn.Example(seed)})
	}
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 1))
		all = append(all, busyQueue(rng, false), busyQueue(rng, true), sharedCrowd(rng))
	}
	return all
}

// busyQueue returns a queue for two classes of nodes that are too few.
func busyQueue(rng *rand.Rand, uncertain bool) predicted {
	p := &planner.Problem{Mode: planner.Online, Cluster: planner.Cluster{Classes: []planner.NodeClass{
		{Name: "a", Model: "A", Count: 2, GPUs: 4, IdleW: 37, TurnOn: 90},
		{Name: "b", Model: "B", Count: 3, GPUs: 2, IdleW: 20, HostW: 25, TurnOn: 90},
	}}}
	interval := dvfsmodel.WideRange()
	for i := range 40 {
		t := planner.Task{
			ID: fmt.Sprint("job", i), Share: 1, Arrival: 200 * rng.Float64(), Limit: math.Inf(1),
			Deadline: math.Inf(1),
		}
		t.Due = t.Arrival + 1000*rng.Float64()
		gpus := 1 + rng.IntN(3)
		for _, model := range []string{"A", "B"}[:1+rng.IntN(2)] {
			params := dvfsmodel.Params{
				P0: 60, Gamma: 30, C: dvfsmodel.Watt(50 + 100*rng.Float64()), D: 10 + 100*rng.Float64(),
				Delta: rng.Float64(),
			}
			t.Options = append(t.Options, planner.Option{
				Model: model, GPUs: min(gpus, 2), Response: &dvfsmodel.Continuous{
					Params: params, Range: &interval,
				},
			})
		}
		p.Tasks = append(p.Tasks, t)
	}
	if !uncertain {
		return predicted{problem: p}
	}
	truth := *p
	truth.Tasks = slices.Clone(p.Tasks)
	for i := range truth.Tasks {
		truth.Tasks[i].Options = slices.Clone(truth.Tasks[i].Options)
		for j := range truth.Tasks[i].Options {
			o := &truth.Tasks[i].Options[j]
			c := *o.Response.(*dvfsmodel.Continuous) //nolint:errcheck // made above
			c.Params.D *= 0.3 + 1.7*rng.Float64()
			o.Response = &c
		}
	}
	return predicted{p, &truth}
}

// sharedCrowd are jobs with profiles on GPUs that they may share.
func sharedCrowd(rng *rand.Rand) predicted {
	physics := sharing.PaperPhysics()
	if rng.IntN(2) == 0 {
		physics.Beta = 0.3 // slower clocks take less energy
	}
	p := &planner.Problem{Mode: planner.Online, Cluster: planner.Cluster{
		Sharing: &planner.Sharing{Physics: physics},
		Classes: []planner.NodeClass{{
			Name: "v100", Model: "A", Count: 3, GPUs: 2, IdleW: 10, HostW: 20, SleepW: 3, TurnOn: 90,
			TurnOnDelay: 1, SharedGB: []float64{16, 32},
		}},
	}}
	for i := range 30 {
		seconds := 10 + 100*rng.Float64()
		at := dvfsmodel.Params{
			P0: dvfsmodel.Watt(physics.PowerAt(physics.Max())), T0: seconds,
		}.At(dvfsmodel.DefaultScaling())
		t := planner.Task{
			ID: fmt.Sprint("job", i), Share: 1, Arrival: 200 * rng.Float64(), Limit: math.Inf(1),
			Deadline: math.Inf(1),
			Options:  []planner.Option{{Model: "A", GPUs: 1, Response: &dvfsmodel.Fixed{At: at}}},
		}
		t.Due = t.Arrival + 3*seconds*rng.Float64()
		t.Profile = &planner.UsageProfile{
			UtilPct: []float64{90 * rng.Float64(), 60 * rng.Float64(), 40 * rng.Float64()}, SlotS: 60,
			MemGB: 1 + 14*rng.Float64(), Kappa: 1.2,
		}
		if i%8 == 0 { // has GPUs to itself, at clocks of its own
			interval := dvfsmodel.WideRange()
			t.Profile, t.Options[0].GPUs = nil, 2
			t.Options[0].Response = &dvfsmodel.Continuous{
				Params: dvfsmodel.Params{P0: 60, Gamma: 30, C: 110, D: seconds, Delta: 0.5}, Range: &interval,
			}
		}
		p.Tasks = append(p.Tasks, t)
	}
	return predicted{problem: p}
}

// planText returns a policy's plan as text, or why there is none.
func (q *predicted) planText(text string) (string, error) {
	params := policy.DefaultParams()
	params.Queue.Look.Futures = 4
	pol, err := policy.Parse(text, params)
	if err != nil {
		return "", err
	}
	plan, failed := planner.Solve(context.Background(), q.problem, pol, &planner.Options{
		Truth: q.truth, Seed: planner.DefaultSeed,
	})
	if failed != nil {
		return "no plan", nil //nolint:nilerr // that there is none is what is compared
	}
	shared := planner.Shared{}
	if plan.Shared != nil {
		shared = *plan.Shared
	}
	plan.Policy, plan.Shared = "", nil
	return fmt.Sprintf("%+v %+v", *plan, shared), nil
}

// TestEveryOptionOfEveryPolicyChangesPlansOrIsRefused gives each policy each
// option. What isn't refused by name makes another plan of some problem, unless it
// is what the policy has anyway.
func TestEveryOptionOfEveryPolicyChangesPlansOrIsRefused(t *testing.T) {
	problems := differing()
	for _, name := range append(policy.Names(), "fgd") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for key, values := range optionValues() {
				for _, value := range values {
					uselessOption(t, problems, name, key, value)
				}
			}
		})
	}
}

// uselessOption gives a policy an option.
func uselessOption(t *testing.T, problems []predicted, name, key, value string) {
	t.Helper()
	beside := name
	if key == "spread" && policy.AcceptsNumber(name, "patience") && !policy.AcceptsNumber(name, "spread") {
		beside += ",patience=0.3"
	}
	option := key + "=" + value
	changes, err := changes(problems, beside, option)
	if fault, refused := errors.AsType[*policy.SyntaxError](err); refused {
		if !strings.Contains(fault.Msg, key) || !strings.Contains(fault.Msg, name) ||
			!strings.Contains(fault.Msg, "want") {
			t.Errorf("%s,%s is refused by %q, want option and policy named, and what takes it", name,
				option, fault.Msg)
		}
		return
	}
	if own := policy.OwnStage(name, key) == value || name == value; own == changes {
		t.Errorf("%s,%s changes a plan: %v; it is the policy's own: %v", name, option, changes, own)
	}
}

// changes reports whether an option makes another plan of some problem.
func changes(problems []predicted, name, option string) (bool, error) {
	for i := range problems {
		got, err := problems[i].planText(name + "," + option)
		if err != nil {
			return false, err
		}
		if plain, err := problems[i].planText(name); err != nil || got != plain {
			return err == nil, err
		}
	}
	return false, nil
}

// Deadlines count in policies that have what is due first go first, whatever else is exchanged, and in those
// that look for a plan in which nothing is late.
func TestPoliciesSayWhetherTheyCountDueTimes(t *testing.T) {
	for text, want := range map[string]bool{
		"edl": true, "edl:0.8": true, "edl-bin": true, "edf-bf": true, "marginal": true, "edl-align": true,
		"constant": true, "pwr+fgd:0.1": true, "edl,pick=fcfs": false,
		"easy,pick=edf": true, "baseline": false, "value": false, "easy": false, "simple": false, "greedy": false,
		"lpt-ff": false, "cats-safe": false,
	} {
		if _, err := policy.Parse(text, policy.DefaultParams()); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := policy.CountsDue(text); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
