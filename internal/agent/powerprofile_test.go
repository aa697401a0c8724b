package agent_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/live"
)

var thrifty = dvfsmodel.Setting{Core: 1600, Profile: dvfsmodel.MaxQ}

func (h *host) wantRequested(when string, want ...dvfsmodel.PowerProfile) {
	h.t.Helper()
	now, err := h.sims[0].Profiles()
	if err != nil || now.Requested != gpu.ProfilesOf(want...) {
		h.t.Errorf("%s: profiles %s are requested, %v; want %s", when, now.Requested, err, gpu.ProfilesOf(want...))
	}
}

func (h *host) request(list ...dvfsmodel.PowerProfile) {
	h.t.Helper()
	if err := h.sims[0].RequestProfiles(gpu.ProfilesOf(list...)); err != nil {
		h.t.Fatal(err)
	}
}

func TestOnlyTheProfileThatEpdRequestedIsGivenBack(t *testing.T) {
	for name, c := range map[string]struct{ before, meanwhile, after []dvfsmodel.PowerProfile }{
		"none before": {nil, []dvfsmodel.PowerProfile{dvfsmodel.MaxQ}, nil},
		"another before": {
			[]dvfsmodel.PowerProfile{dvfsmodel.ComputeBound},
			[]dvfsmodel.PowerProfile{dvfsmodel.ComputeBound, dvfsmodel.MaxQ},
			[]dvfsmodel.PowerProfile{dvfsmodel.ComputeBound},
		},
		"the same before": {
			[]dvfsmodel.PowerProfile{dvfsmodel.MaxQ},
			[]dvfsmodel.PowerProfile{dvfsmodel.MaxQ},
			[]dvfsmodel.PowerProfile{dvfsmodel.MaxQ},
		},
		"another meanwhile": {
			nil,
			[]dvfsmodel.PowerProfile{dvfsmodel.MaxQ, dvfsmodel.MemoryBound},
			[]dvfsmodel.PowerProfile{dvfsmodel.MemoryBound},
		},
		"taken back by somebody else": {nil, nil, nil},
	} {
		for how, giveBack := range map[string]func(*host, *agent.Agent){
			"at the end":      func(_ *host, a *agent.Agent) { end(a, 1) },
			"after a restart": func(h *host, _ *agent.Agent) { end(h.started(), 1) },
			"by epd restore":  func(h *host, _ *agent.Agent) { h.restoreBeside() },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				h := newHost(t, twoGPUs)
				h.claims = &claims{owners: map[string]*fuse{}}
				f := &fuse{}
				h.request(c.before...)
				a := h.agent(f)
				if _, err := a.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				apply(h, a, "r1", 1, thrifty, 0)
				if len(c.meanwhile) > 0 {
					h.wantRequested("while it runs", slices.Compact(append(c.before, dvfsmodel.MaxQ))...)
				}
				h.request(c.meanwhile...)
				if how != "at the end" {
					f.dead = true
				}
				giveBack(h, a)
				h.wantRequested("afterwards", c.after...)
			})
		}
	}
}

func TestARunGoesOnWithoutAProfileThatAnotherOneExcludes(t *testing.T) {
	h := newHost(t, twoGPUs)
	h.request(dvfsmodel.MaxP) // goes before Max-Q
	a := h.started()
	if got, err := a.Apply(t.Context(), h.run("r1", 1, thrifty, 0)); err != nil || !got.Locked {
		t.Errorf("%+v, %v", got, err)
	}
	h.wantRequested("beside the one that excludes it", dvfsmodel.MaxP)
	closed, err := a.End(t.Context(), 1, "n1")
	if err != nil {
		t.Fatal(err)
	}
	out := closed.Outcome
	if out.Setting != (dvfsmodel.Setting{Core: 1600}) || len(out.Notes) != 1 ||
		!strings.Contains(out.Notes[0], "refused the power profile") {
		t.Errorf("recorded at %v, notes %q", out.Setting, out.Notes)
	}
	h.wantRequested("afterwards", dvfsmodel.MaxP)
}

func TestAProfileAloneIsSetWithoutABoundAndTheGuardLeavesIt(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	run := h.run("r1", 1, dvfsmodel.Setting{Profile: dvfsmodel.MaxQ}, 0)
	run.Limit = live.LimitOf(time.Minute) // and nobody knows how long it takes
	if _, err := a.Apply(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if err := a.Guard(t.Context(), alive); err != nil {
		t.Fatal(err)
	}
	h.wantRequested("after a look at its limit", dvfsmodel.MaxQ)
	end(a, 1)
	h.wantFree()
}

// A run that follows another one whose end failed finds the other's profile.
func TestAnotherProfileTakesThePlaceOfTheOneBefore(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	apply(h, a, "r1", 1, thrifty, 0)
	apply(h, a, "r2", 2, dvfsmodel.Setting{Core: 1600, Profile: dvfsmodel.ComputeBound}, 0)
	h.wantRequested("while two runs want different ones")
	end(a, 1)
	h.wantRequested("after the first one's end", dvfsmodel.ComputeBound)
	end(a, 2)
	h.wantRequested("after both")
	h.wantFree()
}
