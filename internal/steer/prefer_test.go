package steer_test

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// choosy returns a cluster of two GPU models on which jobs need so many joules.
func choosy(joules map[string]float64) *world {
	w := newWorld()
	w.settings.Live.Prefer = true
	w.settings.Energy = func(_ *slurm.Job, model string) (float64, bool) {
		energy, known := joules[model]
		return energy, known
	}
	w.node("a1", "a100", "gpu").Features = []string{"gpu", "ampere"}
	w.node("a2", "a100", "gpu").Features = []string{"ampere", "gpu", "big"}
	w.node("v1", "v100", "gpu").Features = []string{"gpu", "volta"}
	for id := range slurm.JobID(2) {
		w.job(id+1, 10, 100, "").TRESPerNode = "gres:gpu:1"
	}
	return w
}

func TestAJobPrefersTheGPUModelOnWhichItNeedsClearlyLess(t *testing.T) {
	w := choosy(map[string]float64{"A100": 700, "V100": 1000})
	s := w.open(t)
	if r := step(t, s); r.Set != 2 || w.jobs[1].Prefer != "ampere" || s.Status().Prefer != 2 {
		t.Errorf("%+v, prefers %q", r, w.jobs[1].Prefer)
	}
	if r := step(t, s); r != (steer.StepReport{}) {
		t.Errorf("again: %+v", r)
	}
	w.jobs[1].Prefer = "volta" // the user
	w.jobs[2].Features = "big" // the user
	if r := step(t, s); r != (steer.StepReport{Undone: 1}) || w.jobs[1].Prefer != "volta" ||
		w.jobs[2].Prefer != "" || len(s.Status().Left) != 1 {
		t.Errorf("%+v, prefer %q and %q, %+v", r, w.jobs[1].Prefer, w.jobs[2].Prefer, s.Status())
	}
	if r, err := s.UndoAll(t.Context()); err != nil || r != (steer.StepReport{}) ||
		w.jobs[1].Prefer != "volta" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestNothingIsPreferredWhereItIsNotClearOrTheUserChose(t *testing.T) {
	for name, change := range map[string]func(*world){
		"little less": func(w *world) {
			w.settings.Energy = func(*slurm.Job, string) (float64, bool) { return 900, true }
		},
		"energy not known": func(w *world) {
			w.settings.Energy = func(*slurm.Job, string) (float64, bool) { return 0, false }
		},
		"model not known": func(w *world) { w.node("x1", "unheard-of", "gpu") },
		"one model only":  func(w *world) { delete(w.nodes, "v1") },
		"no feature":      func(w *world) { w.nodes["a2"].Features = []string{"gpu"} },
		"other partition": func(w *world) { w.nodes["v1"].Partitions = []string{"other"} },
		"out of order":    func(w *world) { w.nodes["v1"].State.Flags = []string{"DRAIN"} },
		"not asked for":   func(w *world) { w.settings.Live.Prefer = false },
		"own features":    func(w *world) { w.jobs[1].Features, w.jobs[2].Features = "gpu", "gpu" },
		"own preference":  func(w *world) { w.jobs[1].Prefer, w.jobs[2].Prefer = "gpu", "gpu" },
		"own type": func(w *world) {
			w.jobs[1].TRESPerNode, w.jobs[2].TRESPerNode = "gres:gpu:v100:1", "gres:shard:1"
		},
		"own type, counted": func(w *world) {
			w.jobs[1].Requested, w.jobs[2].Requested = slurm.TRES{"gres/gpu:v100": 1},
				slurm.TRES{"gres/gpu:v100": 1}
		},
		"opted out, or held": func(w *world) { w.jobs[1].Comment, w.jobs[2].Priority = "epplan:off", 0 },
		"without GPUs":       func(w *world) { w.jobs[1].TRESPerNode, w.jobs[2].TRESPerNode = "", "" },
		"observed": func(w *world) {
			w.settings.Live.Modes = map[string]live.Mode{"gpu": live.Observe}
		},
	} {
		w := choosy(map[string]float64{"A100": 700, "V100": 1000})
		change(w)
		s := w.open(t)
		if r := step(t, s); r != (steer.StepReport{}) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestAPreferenceIsAdvisedInAdviseMode(t *testing.T) {
	w := choosy(map[string]float64{"A100": 700, "V100": 1000})
	w.settings.Live.Mode = live.Advise
	s := w.open(t)
	step(t, s)
	if st := s.Status(); len(st.Advice) != 2 || st.Advice[0].Kind != steer.KindPrefer ||
		!strings.HasPrefix(st.Advice[0].Text, "--prefer=ampere: on A100 it needs 30 % less energy") {
		t.Errorf("%+v", st.Advice)
	}
}

// TestAJobPrefersTheGPUModelOfAPlanThatIsEnforced: one that is held out prefers nothing, whatever it needs.
func TestAJobPrefersTheGPUModelOfAPlanThatIsEnforced(t *testing.T) {
	w := choosy(map[string]float64{"A100": 700, "V100": 1000})
	w.settings.Live.Plan.Mode = config.PlanEnforce
	w.rankAs("edl", 1, 2)
	w.settings.Ranking.GPUModel = map[slurm.JobID]string{1: "V100"}
	w.settings.Ranking.HeldOut = map[slurm.JobID]bool{2: true}
	s := w.open(t)
	step(t, s)
	if w.jobs[1].Prefer != "volta" || w.jobs[2].Prefer != "" {
		t.Errorf("prefer %q and %q", w.jobs[1].Prefer, w.jobs[2].Prefer)
	}
	w.settings.Live.Plan.Mode = config.PlanObserve
	step(t, s)
	step(t, s)
	if w.jobs[1].Prefer != "ampere" || w.jobs[2].Prefer != "ampere" {
		t.Errorf("only observed: prefer %q and %q", w.jobs[1].Prefer, w.jobs[2].Prefer)
	}
	if _, err := s.UndoAll(t.Context()); err != nil || w.jobs[1].Prefer != "" {
		t.Errorf("undone: %q, %v", w.jobs[1].Prefer, err)
	}
}
