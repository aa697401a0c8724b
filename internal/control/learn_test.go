package control

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// Misses in a row after which a model isn't used, and runs that one is fitted to.
const offInARow, window = 3, 64

// key returns the only workload that is known.
func (r *rig) key() record.WorkloadKey {
	r.t.Helper()
	all := r.learner.ModelStatuses()
	if len(all) != 1 {
		r.t.Fatalf("%d workloads, want 1", len(all))
	}
	return all[0].WorkloadKey
}

func TestAnOutcomeChangesTheNextDecisionOfTheSameWorkload(t *testing.T) {
	r := newRig(t, nil)
	first := r.run(1, memoryBound())
	if first.Apply || first.ModelVersion != 0 || !strings.Contains(first.Reason, "no model") {
		t.Fatalf("the first run: %+v", first)
	}
	second := r.run(2, memoryBound())
	if !second.Apply || second.ModelVersion != 1 || second.Core >= base.Core {
		t.Fatalf("the second run: %+v", second)
	}
	third := r.run(3, memoryBound())
	if third.ModelVersion != 2 || third.Core >= second.Core {
		t.Fatalf("the third run of a workload that hardly slows down: %+v", third)
	}
}

// After a few runs decisions are nearly as good as those of somebody who knows
// the truth.
func TestDecisionsComeNearTheOptimumOfTheTruth(t *testing.T) {
	for name, truth := range map[string]dvfsmodel.Params{
		"memory bound": memoryBound(),
		"core bound":   coreBound(),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			var last live.Decision
			for id := range slurm.JobID(12) {
				last = r.run(id+1, truth)
			}
			best, chosen := math.Inf(1), math.NaN()
			for _, core := range ask(1).Clocks[0].Core {
				fc := float64(core / base.Core)
				pt := truth.At(dvfsmodel.Scaling{V: dvfsmodel.VoltageFor(fc), Fc: fc, Fm: 1})
				joules := float64(pt.Energy) + 25*pt.Time // the host's
				if pt.Time <= 600*1.5 {
					best = min(best, joules)
				}
				if core == last.Core || last.Core == 0 && core == base.Core {
					chosen = joules
				}
			}
			if !(chosen <= best*1.05) {
				t.Errorf("the last run takes %v J at %v MHz, the best possible %v J", chosen, last.Core, best)
			}
		})
	}
}

func TestAModelWhosePredictionsMissIsNotUsedUntilRunsAgreeAgain(t *testing.T) {
	r := newRig(t, nil)
	for id := range slurm.JobID(5) {
		r.run(id+1, memoryBound())
	}
	longer := memoryBound().Scale(3) // the same script on more data
	for id := range slurm.JobID(offInARow) {
		if d := r.run(10+id, longer); !d.Apply {
			t.Errorf("miss %d already: %s", id+1, d.Reason)
		}
	}
	r.job(20, nil)
	d := r.decide(ask(20))
	if d.Apply || d.ModelVersion != 0 || !strings.Contains(d.Reason, "missed the last 3 runs") {
		t.Fatalf("after %d misses: %+v", offInARow, d)
	}
	if _, err := r.store.Learning.Model(context.Background(), r.key()); err == nil {
		t.Error("the store still has it in use")
	}
	if got := r.status().Retired; got != 1 {
		t.Errorf("%d models retired, want 1", got)
	}
	back := slurm.JobID(0)
	for id := range slurm.JobID(2 * window) {
		if r.run(30+id, longer).Apply {
			back = id
			break
		}
	}
	if back == 0 {
		t.Error("no model came back after runs that agree")
	}
}

func TestRunTimesThatScatterGiveNoModel(t *testing.T) {
	r := newRig(t, nil)
	for id := range slurm.JobID(12) {
		d := r.run(id+1, memoryBound().Scale([]float64{1, 5, 25}[id%3]))
		if id > 6 && d.Apply {
			t.Errorf("run %d: %s", id, d.Reason)
		}
	}
}

func TestARepeatedOutcomeTeachesNothing(t *testing.T) {
	r := newRig(t, nil)
	r.job(1, nil)
	d := r.decide(ask(1))
	o := r.ran(d, "run-1", memoryBound())
	r.record(o, store.Stored)
	r.record(o, store.Repeated)
	if got := r.status().Refits; got != 1 {
		t.Errorf("%d refits, want 1", got)
	}
}

func TestAnAgentCannotMoveARunToAnotherArm(t *testing.T) {
	r := newRig(t, nil)
	r.job(1, nil)
	o := r.ran(r.decide(ask(1)), "run-1", memoryBound())
	o.Arm, o.Workload, o.DecisionID = live.ArmTreated, "forged", 12345
	r.record(o, store.Stored)
	all, err := r.store.OutcomesOfJob(context.Background(), "alpha", 1)
	if err != nil || len(all) != 1 || all[0].Arm != live.ArmExcluded || all[0].Workload == "forged" ||
		all[0].DecisionID == 12345 {
		t.Errorf("stored %+v, %v", all, err)
	}
}

func TestARollbackHoldsUntilItIsFreed(t *testing.T) {
	r := newRig(t, nil)
	for id := range slurm.JobID(4) {
		r.run(id+1, memoryBound())
	}
	before := r.learner.Model(r.key()).Model.Version
	version := before - 1
	if err := r.useModel(r.key(), version, "test"); err != nil {
		t.Fatal(err)
	}
	if d := r.run(50, coreBound().Scale(1.05)); d.ModelVersion != version {
		t.Errorf("version %d, want %d", d.ModelVersion, version)
	}
	r.job(51, nil)
	if d := r.decide(ask(51)); d.ModelVersion != version {
		t.Errorf("after another outcome version %d, want %d", d.ModelVersion, version)
	}
	again := rigAt(t, r.path, r.clock, enforceAll, nil)
	if all := again.standings(); len(all) != 1 || !all[0].Pinned || all[0].Version != version {
		t.Errorf("after a restart %+v", all)
	}
	if err := r.useModel(r.key(), 0, ""); err != nil {
		t.Fatal(err)
	}
	r.job(52, nil)
	if d := r.decide(ask(52)); d.Apply || !strings.Contains(d.Reason, "administrator") {
		t.Errorf("out of use: %+v", d)
	}
	if err := r.freeModel(r.key()); err != nil {
		t.Fatal(err)
	}
	r.run(53, memoryBound())
	if all := r.standings(); all[0].Pinned || all[0].Version == 0 && all[0].Note == "" {
		t.Errorf("freed: %+v", all)
	}
}

func TestASubmissionsScriptIsItsWorkloadAlsoAfterARestart(t *testing.T) {
	r := newRig(t, nil)
	submit := func(script hooks.Hex, name string) string {
		answer, err := r.Submit(context.Background(), &hooks.Submission{
			Version: 1, Kind: "batch", UID: 1000, Name: hooks.Hex(name), TRESPerNode: "gres/gpu:1",
			Script: script, Admin: "other text",
		})
		token, foreign, found := slurm.ParseToken(string(answer.AdminComment))
		if err != nil || !found || foreign != "other text" || token == "" {
			t.Fatalf("%+v, %v", answer, err)
		}
		return string(answer.AdminComment)
	}
	workload := func(r *rig, id slurm.JobID, name, admin string) string {
		r.job(id, func(j *slurm.Job) { j.Name, j.AdminComment = name, admin })
		return r.decide(ask(id)).Workload
	}
	one := submit("#!/bin/sh\nrun", "a")
	two := submit("#!/bin/sh\nrun", "b")
	three := submit("#!/bin/sh\nother", "a")
	a, b, c := workload(r, 1, "a", one), workload(r, 2, "b", two), workload(r, 3, "a", three)
	if a != b || a == c {
		t.Errorf("workloads %s, %s, %s: want the first two alike", a, b, c)
	}
	r.flush()
	again := rigAt(t, r.path, r.clock, enforceAll, nil)
	if got := workload(again, 4, "c", one); got != a {
		t.Errorf("after a restart %s, want %s", got, a)
	}
	if got := workload(again, 5, "c", "epplan:forged"); got == a || got == "" {
		t.Errorf("with a token that nobody gave out: %s", got)
	}
}

func TestOwnFrequenciesAtSubmissionOutliveARestart(t *testing.T) {
	r := newRig(t, nil)
	answer, err := r.Submit(context.Background(), &hooks.Submission{
		Version: 1, Kind: "batch", TRESPerNode: "gres/gpu:1", TRESFreq: "gpu:low", Script: "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	r.flush()
	again := rigAt(t, r.path, r.clock, enforceAll, nil)
	again.job(1, func(j *slurm.Job) { j.AdminComment = string(answer.AdminComment) })
	if d := again.decide(ask(1)); !d.Wish.OwnFreq || d.Reason != jobs.ReasonOwnFreq {
		t.Errorf("%+v", d)
	}
}

func TestASubmissionWithoutGPUsIsLeftAlone(t *testing.T) {
	r := newRig(t, nil)
	answer, err := r.Submit(context.Background(), &hooks.Submission{
		Version: 1, Kind: "batch", Script: "x", Admin: "y",
	})
	if err != nil || answer.AdminComment != "" || answer.Message != "" {
		t.Errorf("%+v, %v", answer, err)
	}
}
