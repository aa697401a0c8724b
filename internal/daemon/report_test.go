package daemon_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm/hooks"
)

// last waits for a report that is as wanted.
func (h *house) last(t *testing.T, what string, wanted func(*epdapi.NodeReport) bool) epdapi.NodeReport {
	t.Helper()
	ticker := time.NewTicker(25 * time.Millisecond)
	defer ticker.Stop()
	for range 400 {
		h.mu.Lock()
		all := slices.Clone(h.reported)
		h.mu.Unlock()
		if n := len(all); n > 0 && wanted(&all[n-1]) {
			return all[n-1]
		}
		<-ticker.C
	}
	t.Fatalf("no report came of %s", what)
	return epdapi.NodeReport{}
}

func TestANodeReportsItsGPUsItsRunsAndWhatIsJournalled(t *testing.T) {
	j := &judge{every: 1, reason: "slow"}
	h := open(t, t.TempDir(), "sim:2", "", j)
	j.mu.Lock()
	j.setting = slow(t, h.sims[0])
	j.mu.Unlock()
	idle := h.last(t, "an idle node", func(r *epdapi.NodeReport) bool { return len(r.GPUs) == 2 })
	if idle.Node != "n1" || idle.Version != "test" || idle.At.IsZero() || len(idle.Runs) != 0 {
		t.Errorf("%+v", idle)
	}
	for _, g := range idle.GPUs {
		if !g.Read || !(g.Power > 0) || g.Journal != nil || !(g.MinCore > 0 && g.MinCore < g.MaxCore) {
			t.Errorf("%+v", g)
		}
	}
	answer := h.hook(t, hooks.Prolog, 7, 1)
	r := h.last(t, "a run with readings", func(r *epdapi.NodeReport) bool {
		return len(r.Runs) == 1 && !r.Runs[0].Readings.IsZero()
	})
	if run := &r.Runs[0]; run.ID != string(answer.Run) || run.Job != 7 || run.Readings.GPUs != 1 ||
		!run.Readings.Power[0].Known {
		t.Errorf("%+v", run)
	}
	g := &r.GPUs[1]
	if g.Journal == nil || g.Journal.RunID != string(answer.Run) || g.Journal.Job != 7 ||
		g.LockedCore != j.setting.Core || r.GPUs[0].Journal != nil {
		t.Errorf("%+v", r.GPUs)
	}
	h.hook(t, hooks.Epilog, 7, 1)
	h.last(t, "the end", func(r *epdapi.NodeReport) bool {
		return len(r.Runs) == 0 && r.GPUs[1].Journal == nil
	})
}

// A GPU that doesn't answer is told of as such, and holds up nothing else.
func TestAReportSaysWhichGPUsDontAnswer(t *testing.T) {
	h := open(t, t.TempDir(), "sim:2", "1/read:permission", &judge{every: 1})
	r := h.last(t, "both GPUs", func(r *epdapi.NodeReport) bool { return len(r.GPUs) == 2 })
	if !r.GPUs[0].Read || r.GPUs[1].Read || r.GPUs[1].Power != 0 {
		t.Errorf("%+v", r.GPUs)
	}
}

// Nothing depends on reports: a controller that won't hear of them is no trouble.
func TestAControllerThatTakesNoReportsIsNoTrouble(t *testing.T) {
	for name, deaf := range map[string]error{
		"deaf": &epdapi.RefusedError{Path: epdapi.PathReport, Status: http.StatusNotFound},
		"away": errors.New("nobody is there"),
	} {
		h := open(t, t.TempDir(), "sim:1", "", &judge{deaf: deaf})
		h.last(t, name, func(*epdapi.NodeReport) bool { return true })
		h.hook(t, hooks.Prolog, 7, 0)
		h.hook(t, hooks.Epilog, 7, 0)
		status, err := h.client.Status(t.Context())
		if err != nil || len(status.Troubles) != 0 {
			t.Errorf("%s: %+v, %v", name, status, err)
		}
		h.stop()
	}
}
