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
		for mode, want := range map[string]int{
			"offline": c.offline, "online": c.online,
			"hindsight": c.hindsight,
		} {
			name, p, o := "simple", twoProfiled(mode == "offline", c.present), &planner.Options{}
			if c.shares {
				name = "cats"
			}
			if c.truth {
				o.Truth = p
			}
			improves, err := runsImprove(t, p, name, mode == "hindsight", o)
			if (err != nil) != (want == refused) || improves != (want == improved) {
				t.Errorf("%s, %+v: improves %v, %v", mode, c, improves, err)
			}
			if err != nil && (c.says == "" || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%s, %+v: %v, want %q", mode, c, err, c.says)
			}
			o.NoImprove = true
			if improves, err := runsImprove(t, p, name, mode == "hindsight", o); improves ||
				(err != nil) != (want == refused) {
				t.Errorf("%s, %+v, without Improve: improves %v, %v", mode, c, improves, err)
			}
		}
	}
}

// twoProfiled returns two jobs with profiles, online or offline, from the present or
// not.
func twoProfiled(offline, present bool) *planner.Problem {
	p := &planner.Problem{Mode: planner.Online, Cluster: sharedCluster(1, 32)}
	p.Tasks = []planner.Task{profiled("a", 0, 100, 4, 1.2, 50), profiled("b", 0, 50, 4, 1.2, 40)}
	if offline {
		p.Mode = planner.Offline
	}
	if present {
		p.Snapshot = &planner.Snapshot{}
	}
	return p
}

// runsImprove reports whether a policy's Improve pass is run on its plan.
func runsImprove(
	t *testing.T, p *planner.Problem, name string, hindsight bool, o *planner.Options,
) (runs bool, err error) {
	t.Helper()
	pol := *parsed(t, name)
	pol.Hindsight = hindsight
	pol.Improve = improver(func(
		_ context.Context, _ *planner.Problem, plan *planner.Plan,
	) (*planner.Plan, error) {
		runs = true
		return plan, nil
	})
	_, err = planner.Solve(t.Context(), p, &pol, o)
	return runs, err
}
