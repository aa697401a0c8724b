package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
)

var capped = dvfsmodel.Setting{Core: 1600, Cap: 150}

// limits returns the power limits in force.
func (h *host) limits() []dvfsmodel.Watt {
	h.t.Helper()
	limits := make([]dvfsmodel.Watt, len(h.sims))
	for i, g := range h.sims {
		set, err := g.Held(gpu.PowerLimit)
		if limits[i] = dvfsmodel.Watt(set); err == nil && set == 0 {
			limits[i], err = g.PowerLimit()
		}
		if err != nil {
			h.t.Fatal(err)
		}
	}
	return limits
}

func TestThePowerLimitFromBeforeIsWhatIsGivenBack(t *testing.T) {
	h := newHost(t, twoGPUs)
	if err := h.sims[0].LimitPower(200); err != nil { // the administrator's, 250 as delivered
		t.Fatal(err)
	}
	a := h.started()
	if got, err := a.Apply(t.Context(), h.run("r1", 1, capped, 0, 1)); err != nil || !got.Locked {
		t.Fatalf("%+v, %v", got, err)
	}
	if got := h.limits(); got[0] != 150 || got[1] != 150 {
		t.Errorf("limits %v, want 150", got)
	}
	held := a.State().GPUs[entryOf(a)].Entry.Controls[gpu.PowerLimit]
	if want := h.limits(); held.Prior != agent.PriorKnown || held.Value != gpu.Value(want[0]) {
		t.Errorf("journalled %+v", held)
	}
	end(a, 1)
	if got := h.limits(); got[0] != 200 || got[1] != 250 {
		t.Errorf("limits %v after the run, want 200 and 250", got)
	}
	apply(h, a, "r2", 2, capped, 0, 1)
	b := h.started() // the first one was killed
	if got := h.limits(); got[0] != 200 || got[1] != 250 {
		t.Errorf("limits %v after a restart, want 200 and 250", got)
	}
	end(b, 2)
}

func TestAPowerLimitIsNeverRaisedNorOutsideWhatTheBoardTakes(t *testing.T) {
	for name, c := range map[string]struct {
		limit dvfsmodel.Watt
		want  string
	}{
		"above the one from before": {210, "it was at 200 before"},
		"too low for the board":     {99, "power limit 99 W is outside what the board takes, 100 to 250 W"},
		"too high for the board":    {251, "outside what the board takes"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, twoGPUs)
			if err := h.sims[0].LimitPower(200); err != nil {
				t.Fatal(err)
			}
			a := h.started()
			got, err := a.Apply(t.Context(), h.run("r1", 1, dvfsmodel.Setting{Core: 1600, Cap: c.limit}, 0))
			if !errors.Is(err, agent.ErrSetting) || !strings.Contains(err.Error(), c.want) || got.Locked {
				t.Errorf("%+v, %v: want %q", got, err, c.want)
			}
			h.wantFree()
			if got := h.limits(); got[0] != 200 {
				t.Errorf("limits %v", got)
			}
			end(a, 1)
		})
	}
}

func TestAPowerLimitThatIsRefusedCostsNothingElseAndIsNoted(t *testing.T) {
	for name, fault := range map[string]gpu.Fault{
		"not permitted":   {GPU: 0, Op: gpu.OpSet, Kind: gpu.FaultPermission, After: 1, Count: 1},
		"not supported":   {GPU: 0, Op: gpu.OpSet, Kind: gpu.FaultUnsupported, After: 1, Count: 1},
		"can't be read":   {GPU: 0, Op: gpu.OpPowerLimit, Kind: gpu.FaultUnsupported},
		"mustn't be read": {GPU: 0, Op: gpu.OpPowerLimit, Kind: gpu.FaultPermission},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, twoGPUs)
			h.faults.Add(fault)
			a := h.started()
			core := dvfsmodel.Setting{Core: 1600}
			got, err := a.Apply(t.Context(), h.run("r1", 1, capped, 0))
			if !got.Locked || err != nil {
				t.Errorf("%+v, %v", got, err)
			}
			h.wantLocked(core)
			closed, err := a.End(t.Context(), 1, "n1")
			if out := closed.Outcome; err != nil || out.Setting != core || len(out.Notes) != 1 ||
				!strings.Contains(out.Notes[0], "refused the power limit") {
				t.Errorf("%v, %+v, notes %q", err, out.Setting, out.Notes)
			}
			h.wantFree()
			h.faults.Clear()
			a = h.started() // knows nothing of it, and what is in the journal doesn't need the limit
			h.wantFree()
			if _, err := a.Apply(t.Context(), h.run("r2", 2, capped, 0)); err != nil {
				t.Errorf("after a restart: %v", err)
			}
			h.wantLocked(capped)
			end(a, 2)
		})
	}
}

func TestAGPUWithoutAPowerLimitRunsAtTheClocks(t *testing.T) {
	h := newHost(t, "sim:2,model=GTX1080Ti,lock=both")
	a := h.started()
	for i := range 2 {
		got, err := a.Apply(t.Context(), h.run(fmt.Sprint("r", i), 1, capped, 0))
		if !got.Locked || err != nil {
			t.Errorf("run %d: %+v, %v", i, got, err)
		}
		h.wantLocked(dvfsmodel.Setting{Core: capped.Core})
		end(a, 1)
	}
}

func TestAPowerLimitThatSomebodyElseSetsMeanwhileIsNoticedAndStays(t *testing.T) {
	for _, theirs := range []dvfsmodel.Watt{130, 170} {
		watched(t, agent.WatchHooks{}, func(h *host, a *agent.Agent) {
			t := h.t
			if err := h.sims[0].Run(anyWork); err != nil {
				t.Fatal(err)
			}
			apply(h, a, "r1", 1, capped, 0)
			if err := h.sims[0].LimitPower(theirs); err != nil {
				t.Fatal(err)
			}
			sleep(10 * time.Second)
			if runs := a.State().Runs; !strings.Contains(runs[0].HandsOff, "somebody else") ||
				!strings.Contains(runs[0].HandsOff, " W") {
				t.Errorf("%+v", runs)
			}
			end(a, 1)
			h.wantFree()
			if got := h.limits(); got[0] != theirs {
				t.Errorf("limit %v after the run, want the other's %v", got[0], theirs)
			}
		})
	}
}

func TestARestoreGivesThePowerLimitBack(t *testing.T) {
	h := newHost(t, twoGPUs)
	if err := h.sims[0].LimitPower(200); err != nil {
		t.Fatal(err)
	}
	a := h.started()
	apply(h, a, "r1", 1, capped, 0)
	report, err := a.Restore(context.Background(), "test")
	if err != nil || !report.Clean() {
		t.Errorf("%+v, %v", report, err)
	}
	if got := h.limits(); got[0] != 200 {
		t.Errorf("limit %v, want 200", got[0])
	}
	end(a, 1)
}

func TestALimitThatIsChangedDuringARunIsInItsOutcome(t *testing.T) {
	watched(t, agent.WatchHooks{}, func(h *host, a *agent.Agent) {
		t := h.t
		apply(h, a, "r1", 1, dvfsmodel.Setting{Core: 1600}, 0, 1)
		sleep(30 * time.Second)
		if err := h.sims[1].LimitPower(180); err != nil { // by the operator: the clocks stay
			t.Fatal(err)
		}
		sleep(10 * time.Second)
		closed, err := a.End(t.Context(), 1, "n1")
		if err != nil || closed.HandsOff != "" {
			t.Errorf("%q, %v", closed.HandsOff, err)
		}
		out := closed.Outcome
		if other := out.OtherCapsS.Or(0); out.CapW.Or(0) != 250 || !(other >= 9 && other <= 11) {
			t.Errorf("limit %v, others for %v s", out.CapW, out.OtherCapsS)
		}
		apply(h, a, "r2", 2, capped, 0)
		sleep(30 * time.Second)
		closed, err = a.End(t.Context(), 2, "n1")
		if out := closed.Outcome; err != nil || out.CapW.Or(0) != 150 || out.OtherCapsS.Or(0) != 0 ||
			out.Setting != capped {
			t.Errorf("under a limit of epd's: %v, others for %v s, set %v, %v", out.CapW, out.OtherCapsS,
				out.Setting, err)
		}
	})
}
