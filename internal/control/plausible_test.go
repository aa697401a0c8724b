package control

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// One glitch of a counter costs the energy, and nothing else of the run.
func TestWhatCantBeOfAnOutcomeIsKeptAndCountsNowhere(t *testing.T) {
	r := newRig(t, nil)
	for id := range slurm.JobID(4) {
		r.run(id+1, memoryBound())
	}
	before, err := r.Queries.Savings(context.Background(), query.ForEPD(), time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	model := r.learner.Model(r.keyOfRun(4)).Model
	glitches := []func(*record.Outcome){
		func(o *record.Outcome) { o.GPUEnergyJ = live.Known(1.7e308) },
		func(o *record.Outcome) { o.GPUEnergyJ = live.Known(1.7e308) },
		// More than three V100s draw.
		func(o *record.Outcome) { o.GPUEnergyJ = live.Known(2000 * o.TimeS.Or(0)) },
		func(o *record.Outcome) { o.TimeS = live.Known(-60) },
	}
	for i, glitch := range glitches {
		id := slurm.JobID(10 + i)
		r.job(id, nil)
		o := r.ran(r.decide(ask(id)), ask(id).RunID, memoryBound())
		glitch(o)
		o.MeanPowerW = live.Number{}
		r.record(o, store.Stored)
		r.record(o, store.Repeated)
		all, err := r.store.OutcomesOfJob(context.Background(), "alpha", int64(id))
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		_, energy := all[0].GPUEnergyJ.Get()
		if _, timed := all[0].TimeS.Get(); energy || timed != (i < 3) ||
			all[0].ExitState != record.Completed || all[0].DecisionID == 0 || all[0].Implausible.IsZero() {
			t.Errorf("glitch %d: %+v", i, all[0])
		}
	}
	after, err := r.Queries.Savings(context.Background(), query.ForEPD(), time.Time{}, time.Time{})
	if err != nil || after.Treated != before.Treated ||
		after.TreatedEnded.Completed != before.TreatedEnded.Completed+int64(len(glitches)) {
		t.Errorf("savings of %+v, before %+v, %v", after, before, err)
	}
	if now := r.learner.Model(r.keyOfRun(4)).Model; now != model {
		t.Errorf("the model learnt from it: %+v, before %+v", now, model)
	}
	s := r.status()
	if s.Implausible != 4 || !strings.Contains(s.LastImplausible, "run-13 of job 13 on n1: time -60 s") {
		t.Errorf("status: %d, %q", s.Implausible, s.LastImplausible)
	}
	ada := query.Caller{UID: 1000, Name: "ada"}
	if s := r.Queries.Status(context.Background(), ada); s.LastImplausible != "" {
		t.Errorf("users are told of others' jobs: %q", s.LastImplausible)
	}
}

// keyOfRun returns the workload of a job that ran.
func (r *rig) keyOfRun(id slurm.JobID) record.WorkloadKey {
	r.t.Helper()
	all, err := r.store.OutcomesOfJob(context.Background(), "alpha", int64(id))
	if err != nil || len(all) == 0 {
		r.t.Fatalf("job %d: %v", id, err)
	}
	return record.WorkloadKey{Cluster: "alpha", Workload: all[0].Workload, GPUModel: all[0].GPUModel}
}

// A GPU model whose power nobody knows may draw more than any known one.
func TestTheEnergyOfAnUnknownGPUModelIsBelievedForLonger(t *testing.T) {
	r := newRig(t, nil)
	for model, want := range map[string]bool{"Tesla V100": false, "NVIDIA Z9000": true} {
		o := &record.Outcome{
			RunID: "run-" + model, Node: "n1", GPUModel: model, GPUs: []string{"GPU-a"},
			ExitState: record.Completed, Ended: start,
			TimeS: live.Known(100), GPUEnergyJ: live.Known(2000 * 100), GPUSource: record.Counter,
		}
		r.record(o, store.Stored)
		all, err := r.store.OutcomesOfJob(context.Background(), "alpha", 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			if _, known := all[i].GPUEnergyJ.Get(); all[i].RunID == o.RunID && known != want {
				t.Errorf("%s: %+v", model, all[i])
			}
		}
	}
}

func TestOutcomesWithoutBoundsAreRefusedBeforeTheyTakeRoom(t *testing.T) {
	r := newRig(t, nil)
	c := r.serve(t)
	for range 20 {
		o := &record.Outcome{RunID: "r", Node: "n1", GPUs: []string{strings.Repeat("x", 900_000)}}
		if status := c.post("/v1/outcome", o, nil); status != http.StatusBadRequest {
			t.Fatalf("status %d", status)
		}
	}
	if all, err := r.store.OutcomesOfJob(context.Background(), "alpha", 0); err != nil || len(all) != 0 {
		t.Errorf("%d outcomes stored, %v", len(all), err)
	}
}
