//go:build cgo

package control

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/epplan/epplan/slurm"
)

func TestAWorkloadThatAnAdministratorLeftWithoutAModelStaysSoOverARestart(t *testing.T) {
	r := taught(t)
	key := r.key()
	if err := r.UseModel(context.Background(), key, 0, "it is too slow"); err != nil {
		t.Fatal(err)
	}
	r.flush()
	again := rigAt(t, r.path, r.clock, enforceAll, nil)
	all := again.Standings()
	if len(all) != 1 || !all[0].Pinned || all[0].Version != 0 || !strings.Contains(all[0].Note, "administrator") || !strings.Contains(all[0].Note, "it is too slow") {
		t.Fatalf("%+v", all)
	}
	for id := range offInARow + 1 { // further runs change nothing
		if d := again.run(60+slurm.JobID(id), memoryBound()); d.Apply || !strings.Contains(d.Reason, "it is too slow") {
			t.Errorf("%+v", d)
		}
	}
	if err := again.FreeModel(context.Background(), key); err != nil {
		t.Fatal(err)
	}
	again.run(70, memoryBound())
	third := rigAt(t, r.path, r.clock, enforceAll, nil)
	if all := third.Standings(); len(all) != 1 || all[0].Pinned || all[0].Version == 0 {
		t.Errorf("after it was freed: %+v", all)
	}
}

func TestWhyAModelWasRetiredIsKnownAfterARestart(t *testing.T) {
	r := newRig(t, nil)
	for id := range 5 {
		r.run(slurm.JobID(id+1), memoryBound())
	}
	for id := range offInARow {
		r.run(slurm.JobID(id+10), memoryBound().Scale(3))
	}
	again := rigAt(t, r.path, r.clock, enforceAll, nil)
	if all := again.Standings(); len(all) != 1 || all[0].Version != 0 || all[0].Pinned || !strings.Contains(all[0].Note, "missed the last 3 runs") {
		t.Errorf("%+v", all)
	}
}

func TestModelsAreChosenByHTTP(t *testing.T) {
	r := taught(t)
	c := r.serve(t)
	key := r.key()
	choice := func(version int64) ModelChoice {
		return ModelChoice{Workload: key.Workload, GPUModel: "Tesla V100-SXM2-16GB", Version: version, Note: "a test"}
	}
	var s ModelStanding
	if status := c.post("/v1/models/use", choice(1), &s); status != http.StatusOK || s.Version != 1 || !s.Pinned || s.WorkloadKey != key {
		t.Errorf("%d %+v", status, s)
	}
	s = ModelStanding{}
	if status := c.post("/v1/models/use", choice(0), &s); status != http.StatusOK || s.Version != 0 || !s.Pinned || !strings.Contains(s.Note, "a test") {
		t.Errorf("%d %+v", status, s)
	}
	s = ModelStanding{}
	free := choice(0)
	free.Free = true
	if status := c.post("/v1/models/use", free, &s); status != http.StatusOK || s.Pinned || s.Note != "" {
		t.Errorf("%d %+v", status, s)
	}
	other := choice(1)
	other.Workload = "nobody's"
	for name, tc := range map[string]struct {
		body any
		want int
	}{
		"a version that isn't there": {choice(99), http.StatusNotFound}, "another workload": {other, http.StatusNotFound},
		"below 0": {choice(-1), http.StatusBadRequest}, "no workload": {ModelChoice{Version: 1}, http.StatusBadRequest},
		"no such key": {map[string]any{"workload": key.Workload, "x": 1}, http.StatusBadRequest},
		"newlines":    {ModelChoice{Workload: key.Workload, GPUModel: "V100", Note: "a\nb"}, http.StatusBadRequest},
	} {
		if status := c.post("/v1/models/use", tc.body, nil); status != tc.want {
			t.Errorf("%s: status %d, want %d", name, status, tc.want)
		}
	}
}
