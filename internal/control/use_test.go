package control

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/slurm"
)

func TestAWorkloadThatAnAdministratorLeftWithoutAModelStaysSoOverARestart(t *testing.T) {
	r := taught(t)
	key := r.key()
	if err := r.useModel(key, 0, "it is too slow"); err != nil {
		t.Fatal(err)
	}
	r.flush()
	again := rigAt(t, r.path, r.clock, enforceAll, nil)
	all := again.standings()
	if len(all) != 1 || !all[0].Pinned || all[0].Version != 0 ||
		!strings.Contains(all[0].Note, "administrator") || !strings.Contains(all[0].Note, "it is too slow") {
		t.Fatalf("%+v", all)
	}
	for id := range offInARow + 1 { // further runs change nothing
		if d := again.run(60+slurm.JobID(id), memoryBound()); d.Apply ||
			!strings.Contains(d.Reason, "it is too slow") {
			t.Errorf("%+v", d)
		}
	}
	if err := again.freeModel(key); err != nil {
		t.Fatal(err)
	}
	again.run(70, memoryBound())
	third := rigAt(t, r.path, r.clock, enforceAll, nil)
	if all := third.standings(); len(all) != 1 || all[0].Pinned || all[0].Version == 0 {
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
	if all := again.standings(); len(all) != 1 || all[0].Version != 0 || all[0].Pinned ||
		!strings.Contains(all[0].Note, "missed the last 3 runs") {
		t.Errorf("%+v", all)
	}
}

func TestWhoChoseAVersionIsKeptOverARestart(t *testing.T) {
	r := taught(t)
	key := r.key()
	choose := func(who query.Caller, body string) {
		t.Helper()
		body = fmt.Sprintf(`{"workload":%q,"gpu_model":"V100",%s}`, key.Workload, body)
		if status := r.callAs(&who, http.MethodPost, "/v1/models/use", body, nil); status != http.StatusOK {
			t.Fatal(status)
		}
	}
	check := func(of *rig, by, why string, at time.Time, version int64) {
		t.Helper()
		want := epdapi.Chosen{By: by, At: at.UTC().Truncate(time.Second), Why: why}
		if all := of.standings(); len(all) != 1 || all[0].Chosen != want {
			t.Errorf("%+v, want %+v", all, want)
		}
		versions, err := of.learner.Versions(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		for i := range versions {
			if v := &versions[i]; v.Version == version &&
				(v.Chosen != want || v.Note != "pinned: "+why && v.Note != "fits may replace it again") {
				t.Errorf("version %d: %q %+v, want %+v", version, v.Note, v.Chosen, want)
			}
		}
	}
	token := query.Caller{UID: math.MaxUint32, Name: "alice", Operator: true, Admin: true}
	for _, c := range []struct {
		who     query.Caller
		by, why string
		version int64
	}{
		{root, "root", "too slow [by eve, 2020-01-01T00:00:00Z]", 1},
		{token, "alice (token)", "", 2},
		{query.Caller{UID: 7, Admin: true}, "uid 7", "why not", 1},
		{query.Caller{UID: 8, Name: "a]b, [c", Admin: true}, "a)b, (c", "w", 2},
		{root, "root", "none is better", 0},
		{token, "alice (token)", "", 0},
	} {
		r.clock.move(time.Hour)
		at := r.clock.read()
		choose(c.who, fmt.Sprintf(`"version":%d,"note":%q`, c.version, c.why))
		check(r, c.by, c.why, at, c.version)
		r.flush()
		again := rigAt(t, r.path, r.clock, enforceAll, nil)
		check(again, c.by, c.why, at, c.version)
		if all := again.standings(); !all[0].Pinned {
			t.Errorf("%+v isn't pinned", all)
		}
	}
	r.clock.move(time.Hour)
	at := r.clock.read()
	choose(token, `"free":true`) // no version is in use
	check(r, "alice (token)", "", at, 0)
	r.flush()
	freed := rigAt(t, r.path, r.clock, enforceAll, nil)
	check(freed, "alice (token)", "", at, 0)
	if all := freed.standings(); all[0].Pinned || all[0].Note != "" {
		t.Errorf("freed without a model: %+v", all)
	}
	choose(root, `"version":1`)
	at = r.clock.read()
	choose(token, `"free":true`)
	check(r, "alice (token)", "", at, 1)
	again := rigAt(t, r.path, r.clock, enforceAll, nil)
	if check(again, "alice (token)", "", at, 1); again.standings()[0].Pinned {
		t.Error("it is pinned again")
	}
}

func TestNobodyChoseAVersionThatAFitPutInUseAfterwards(t *testing.T) {
	r := taught(t)
	if err := errors.Join(r.useModel(r.key(), 0, "too slow"), r.freeModel(r.key())); err != nil {
		t.Fatal(err)
	}
	r.run(70, memoryBound())
	r.flush()
	for name, of := range map[string]*rig{
		"at once":         r,
		"after a restart": rigAt(t, r.path, r.clock, enforceAll, nil),
	} {
		if all := of.standings(); len(all) != 1 || all[0].Version == 0 || all[0].Chosen != (epdapi.Chosen{}) {
			t.Errorf("%s: %+v", name, all)
		}
	}
}

func TestModelsAreChosenByHTTP(t *testing.T) {
	r := taught(t)
	c := r.serve(t)
	key := r.key()
	choice := func(version int64) epdapi.ModelChoice {
		return epdapi.ModelChoice{
			Workload: key.Workload, GPUModel: "Tesla V100", Version: version, Note: "a test",
		}
	}
	var s epdapi.ModelStatus
	if status := c.post("/v1/models/use", choice(1), &s); status != http.StatusOK || s.Version != 1 ||
		!s.Pinned || s.WorkloadKey != key {
		t.Errorf("%d %+v", status, s)
	}
	s = epdapi.ModelStatus{}
	if status := c.post("/v1/models/use", choice(0), &s); status != http.StatusOK || s.Version != 0 ||
		!s.Pinned || !strings.Contains(s.Note, "a test") {
		t.Errorf("%d %+v", status, s)
	}
	s = epdapi.ModelStatus{}
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
		"a version that isn't there": {choice(99), http.StatusNotFound},
		"another workload":           {other, http.StatusNotFound},
		"below 0":                    {choice(-1), http.StatusBadRequest},
		"no workload":                {epdapi.ModelChoice{Version: 1}, http.StatusBadRequest},
		"no such key": {
			map[string]any{"workload": key.Workload, "x": 1}, http.StatusBadRequest,
		},
		"newlines": {
			epdapi.ModelChoice{Workload: key.Workload, GPUModel: "V100", Note: "a\nb"}, http.StatusBadRequest,
		},
	} {
		if status := c.post("/v1/models/use", tc.body, nil); status != tc.want {
			t.Errorf("%s: status %d, want %d", name, status, tc.want)
		}
	}
}
