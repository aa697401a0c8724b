package planner_test

import (
	"context"
	"strings"
	"testing"

	"github.com/epplan/epplan/planner"
)

// What a problem, a policy and options ask for at once is refused, or planned and
// then improved or not, by one table.
func TestWhatGoesTogetherIsPlannedAndTheRestRefused(t *testing.T) {
	const (
		refused = iota
		planned
		improved
	)
	for _, c := range []struct {
		truth, present, shares     bool
		offline, online, hindsight int // Mode Offline and Online, and Online with Hindsight
		says                       string
	}{
		{false, false, false, improved, planned, improved, ""},
		{false, false, true, improved, planned, improved, ""},
		{false, true, false, improved, planned, planned, ""},
		{true, false, false, planned, planned, planned, ""},
		{true, true, false, refused, refused, refused, "no other truth"},
		{false, true, true, refused, refused, refused, "shares GPUs"},
		{true, false, true, refused, refused, refused, "shares GPUs"},
		{true, true, true, refused, refused, refused, "no other truth"},
	} {
		for mode, want := range map[string]int{"offline": c.offline, "online": c.online, "hindsight": c.hindsight} {
			p := &planner.Problem{Mode: planner.Online, Cluster: sharedCluster(1, 32)}
			if mode == "offline" {
				p.Mode = planner.Offline
			}
			p.Tasks = []planner.Task{profiled("a", 0, 100, 4, 1.2, 50), profiled("b", 0, 50, 4, 1.2, 40)}
			name, o := "simple", &planner.Options{}
			if c.shares {
				name = "cats"
			}
			if c.present {
				p.Present = &planner.Present{}
			}
			if c.truth {
				o.Truth = p
			}
			got, own := planned, *parsed(t, name)
			own.Hindsight = mode == "hindsight"
			own.Improve = improver(func(_ context.Context, _ *planner.Problem, plan *planner.Plan) (*planner.Plan, error) {
				got = improved
				return plan, nil
			})
			if _, err := planner.Solve(t.Context(), p, &own, o); err != nil {
				got = refused
				if c.says == "" || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s, %+v: %v, want %q", mode, c, err, c.says)
				}
			}
			if got != want {
				t.Errorf("%s, %+v: %d, want %d", mode, c, got, want)
			}
			o.NoImprove, got = true, planned
			if _, err := planner.Solve(t.Context(), p, &own, o); (err != nil) != (want == refused) || got == improved {
				t.Errorf("%s, %+v, without Improve: %d, %v", mode, c, got, err)
			}
		}
	}
}
