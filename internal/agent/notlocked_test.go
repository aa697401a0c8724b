package agent_test

import (
	"context"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/live"
)

// Whatever keeps a run from its clocks, or takes them from it before its end: the record says what, and
// doesn't say that it had them.
func TestARecordSaysWhyDecidedClocksWerentSet(t *testing.T) {
	fault := func(f gpu.Fault) func(*host, *live.Run) {
		return func(h *host, _ *live.Run) { h.faults.Add(f) }
	}
	for name, c := range map[string]struct {
		spec  string
		run   func(*host, *live.Run)
		while func(*host, *agent.Agent) // it runs
		want  live.NotLockedKind
	}{
		"nothing": {want: ""},
		"late": {run: func(_ *host, r *live.Run) {
			r.HookDeadline = time.Now().Add(-time.Second)
		}, want: live.NotLockedLate},
		"permission": {
			run:  fault(gpu.Fault{GPU: 0, Op: gpu.OpSet, Kind: gpu.FaultPermission}),
			want: live.NotLockedPermission,
		},
		"lost":   {run: fault(gpu.Fault{GPU: 0, Op: gpu.OpSet, Kind: gpu.FaultLost}), want: live.NotLockedLost},
		"no GPU": {run: func(_ *host, r *live.Run) { r.GPUs = []string{"GPU-1"} }, want: live.NotLockedLost},
		"no such clocks": {run: func(_ *host, r *live.Run) {
			r.Setting.Core = 1
		}, want: live.NotLockedSetting},
		"divided": {spec: twoGPUs + ",mig", want: live.NotLockedShared},
		"the limit came near": {while: func(h *host, a *agent.Agent) {
			_ = a.Guard(h.t.Context(), func(context.Context, live.Run) (live.Outlook, error) {
				return live.Outlook{Limit: live.LimitOf(time.Minute), UpperS: live.Known(3600)}, nil
			})
		}, want: live.NotLockedLimit},
		"epd restore": {while: func(h *host, a *agent.Agent) {
			if _, err := a.Restore(h.t.Context(), "epplan restore"); err != nil {
				h.t.Fatal(err)
			}
		}, want: live.NotLockedRestart},
		"another run that wants default clocks": {while: func(h *host, a *agent.Agent) {
			apply(h, a, "r2", 2, dvfsmodel.Setting{}, 0)
		}, want: live.NotLockedShared},
		"no decision came": {run: func(_ *host, r *live.Run) {
			r.Setting, r.Unset = dvfsmodel.Setting{}, live.NotLocked{Kind: live.NotLockedController, Why: "slow"}
		}, want: live.NotLockedController},
		"default clocks were decided": {run: func(_ *host, r *live.Run) { r.Setting = dvfsmodel.Setting{} }},
		"the user opted out":          {run: func(_ *host, r *live.Run) { r.Wish.OptOut = true }},
	} {
		t.Run(name, func(t *testing.T) {
			spec := c.spec
			if spec == "" {
				spec = twoGPUs
			}
			h := newHost(t, spec)
			a := h.started()
			r := h.run("r1", 1, quick, 0)
			if c.run != nil {
				c.run(h, &r)
			}
			_, _ = a.Apply(t.Context(), r)
			h.faults.Clear()
			if c.while != nil {
				c.while(h, a)
			}
			closed, err := a.End(t.Context(), 1, "n1")
			if err != nil && name != "lost" {
				t.Fatal(err)
			}
			o := closed.Outcome
			if o.NotLocked.Kind != c.want || (o.NotLocked.Why == "") != (c.want == "") {
				t.Errorf("not locked: %+v, want %s", o.NotLocked, c.want)
			}
			had := c.want == "" && r.Setting != (dvfsmodel.Setting{}) && !r.Wish.OptOut
			if (o.Setting != (dvfsmodel.Setting{})) != had && !r.Wish.OptOut {
				t.Errorf("locked at %v: not locked %+v", o.Setting, o.NotLocked)
			}
		})
	}
}

// The clocks were set while no agent ran, and are given back when the next one starts.
func TestAfterARestartTheReasonSaysWhatWasSetUntilThen(t *testing.T) {
	h := newHost(t, twoGPUs)
	r := h.run("r1", 1, quick, 0)
	apply(h, h.started(), "r1", 1, r.Setting, 0)
	closed, err := h.started().End(t.Context(), 1, "n1")
	want := live.NotLocked{
		Kind: live.NotLockedRestart, Why: r.Setting.Words() + " until the agent was restarted",
	}
	if got := closed.Outcome.NotLocked; err != nil || got != want {
		t.Errorf("%+v, want %+v; %v", got, want, err)
	}
}
