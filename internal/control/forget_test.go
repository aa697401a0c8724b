package control

import (
	"context"
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// kept returns the recorded runs of a job.
func (r *rig) kept(job slurm.JobID) []record.RecordedRun {
	r.t.Helper()
	page, err := r.store.RecordedRuns(context.Background(),
		&store.RunFilter{Cluster: "alpha", JobID: int64(job)}, false, 0, 100)
	if err != nil {
		r.t.Fatal(err)
	}
	return page.Runs
}

// forget takes the runs of jobs out, as an administrator does.
func (r *rig) forget(jobs ...slurm.JobID) *epdapi.RunsChanged {
	r.t.Helper()
	var ids epdapi.RunIDs
	for _, job := range jobs {
		for _, k := range r.kept(job) {
			ids.Runs = append(ids.Runs, k.ID)
		}
	}
	done, err := r.Queries.Forget(context.Background(), query.ForEPD(), &ids)
	if err != nil || done.Runs != int64(len(ids.Runs)) {
		r.t.Fatalf("%+v, %v", done, err)
	}
	r.flush()
	return done
}

// slow is a run of a workload that took ten times as long, as a forged outcome says.
func (r *rig) slow(id slurm.JobID) {
	r.t.Helper()
	r.job(id, nil)
	o := r.ran(r.decide(ask(id)), ask(id).RunID, memoryBound())
	o.TimeS, o.GPUEnergyJ = live.Known(10*o.TimeS.Or(0)), live.Known(10*o.GPUEnergyJ.Or(0))
	r.record(o, store.Stored)
}

// A model that learnt from what was taken out is fitted to what is left: it predicts
// what it would have, had these runs never come.
func TestAModelForgetsTheRunsThatAreTakenOut(t *testing.T) {
	r, clean := newRig(t, nil), newRig(t, nil)
	for id := range slurm.JobID(6) {
		r.run(id+1, memoryBound())
		clean.run(id+1, memoryBound())
	}
	bad := []slurm.JobID{20, 21, 22, 23, 24, 25}
	for _, id := range bad {
		r.slow(id)
	}
	key := r.keyOfRun(1)
	spoilt := r.learner.Model(key).Model
	done := r.forget(bad...)
	if len(done.Models) != 1 || done.Models[0].WorkloadKey != key || done.Models[0].Version == 0 {
		t.Errorf("%+v", done)
	}
	now, want := r.learner.Model(key).Model, clean.learner.Model(key).Model
	if now == nil || want == nil {
		t.Fatalf("model %v, want %v", now, want)
	}
	if now.Prior != want.Prior || now.Base != want.Base || now.Low != want.Low || now.High != want.High ||
		math.Abs(now.Margin-want.Margin) > 0.01 {
		t.Errorf("%+v, want %+v; before %+v", now.Model, want.Model, spoilt)
	}
	for _, core := range ask(1).Clocks[0].Core {
		a, b := now.At(core, base.Mem), want.At(core, base.Mem)
		if math.Abs(a.Time/b.Time-1) > 0.01 || math.Abs(float64(a.Power/b.Power)-1) > 0.01 {
			t.Errorf("%v MHz: %+v, want %+v; before %+v", float64(core), a, b, spoilt)
		}
	}
	a, err := r.Queries.Savings(context.Background(), query.ForEPD(), time.Time{}, time.Time{})
	b, wrong := clean.Queries.Savings(context.Background(), query.ForEPD(), time.Time{}, time.Time{})
	if err != nil || wrong != nil || a.Treated != b.Treated || a.TreatedEnded != b.TreatedEnded {
		t.Errorf("savings of %+v, want %+v; %v, %v", a, b, err, wrong)
	}
}

// A model with no run left that it could have learnt from isn't used, unless an
// administrator chose it.
func TestAModelOfRunsThatAreAllTakenOutIsNotUsed(t *testing.T) {
	for _, pinned := range []bool{false, true} {
		r := newRig(t, nil)
		for id := range slurm.JobID(4) {
			r.run(id+1, memoryBound())
		}
		key := r.keyOfRun(1)
		version := r.learner.Model(key).Model.Version
		if pinned {
			if err := r.useModel(key, version, "tested"); err != nil {
				t.Fatal(err)
			}
		}
		if over, err := r.Queries.Overview(context.Background(), query.ForEPD()); err != nil ||
			over.Savings.TreatedEnded.Ended != 3 {
			t.Errorf("the overview's savings: %+v, %v", over.Savings, err)
		}
		taken := slices.Concat(r.kept(1), r.kept(2), r.kept(3), r.kept(4))
		done := r.forget(1, 2, 3, 4)
		if m := done.Models[0]; (m.Version == version) != pinned || m.Pinned != pinned ||
			(m.Note == "") != pinned {
			t.Errorf("pinned %v: %+v", pinned, m)
		}
		if m := r.learner.Model(key).Model; (m != nil) != pinned {
			t.Errorf("pinned %v: it is used: %v", pinned, m)
		}
		if over, err := r.Queries.Overview(context.Background(), query.ForEPD()); err != nil ||
			over.Savings.TreatedEnded.Ended != 0 {
			t.Errorf("the overview's savings are those of before: %+v, %v", over.Savings, err)
		}
		back, err := r.Queries.Remember(context.Background(), query.ForEPD(), taken)
		if err != nil || back.Runs != 4 || len(back.Models) != 1 || back.Models[0].Version == 0 {
			t.Errorf("put back: %+v, %v", back, err)
		}
	}
}

func TestRunsAreListedTakenOutAndPutBackByTheAPI(t *testing.T) {
	r := newRig(t, nil)
	r.run(1, memoryBound())
	r.run(2, memoryBound())
	c := r.serve(t)
	var page epdapi.RunPage
	if status := c.call(http.MethodGet, "/v1/runs?job=1", nil, &page); status != http.StatusOK ||
		len(page.Runs) != 1 || page.Next != 0 {
		t.Fatalf("%d, %+v", status, page)
	}
	for _, path := range []string{
		"/v1/runs", "/v1/runs?since=2026-01-01T00:00:00Z", "/v1/runs?job=x",
		"/v1/runs?job=1&until=now", "/v1/runs?job=1&after=-1",
	} {
		if status := c.call(http.MethodGet, path, nil, nil); status != http.StatusBadRequest {
			t.Errorf("%s: status %d", path, status)
		}
	}
	var done epdapi.RunsChanged
	if status := c.post("/v1/runs/forget", epdapi.RunIDs{Runs: []int64{page.Runs[0].ID, 999}},
		&done); status != http.StatusOK || done.Runs != 1 || done.Conflicts != 0 {
		t.Errorf("%d, %+v", status, done)
	}
	if len(r.kept(1)) != 0 || len(r.kept(2)) != 1 {
		t.Error("others were taken out")
	}
	if status := c.post("/v1/runs/forget", epdapi.RunIDs{Runs: make([]int64, epdapi.MaxRuns+1)},
		nil); status != http.StatusBadRequest {
		t.Errorf("too many: status %d", status)
	}
	other := page.Runs[0]
	other.Outcome.Cluster = "beta"
	if status := c.post("/v1/runs/remember", epdapi.RunList{Runs: []record.RecordedRun{other}},
		nil); status != http.StatusBadRequest {
		t.Errorf("of another cluster: status %d", status)
	}
	if status := c.post("/v1/runs/remember", epdapi.RunList{Runs: page.Runs},
		&done); status != http.StatusOK || done.Runs != 1 || len(r.kept(1)) != 1 {
		t.Errorf("%d, %+v", status, done)
	}
}
