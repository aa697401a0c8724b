package control

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/slurm"
)

func TestAWorkloadIsToldWithTheJobThatPeopleKnowItBy(t *testing.T) {
	r := newRig(t, nil)
	for id := range slurm.JobID(6) {
		r.run(id+1, memoryBound())
	}
	r.flush()
	want := epdapi.LastJob{ID: 6, Name: "train", User: "ada", Partition: "gpu"}
	told := func() epdapi.LastJob {
		t.Helper()
		var list epdapi.ModelList
		status := r.callAs(&operator, http.MethodGet, "/v1/models", "", &list)
		models := ofWorkloads(list.Models)
		if status != http.StatusOK || len(models) != 1 {
			t.Fatalf("%d, %+v", status, list)
		}
		return models[0].LastJob
	}
	if got := told(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if fit, err := r.Queries.Fit(t.Context(), query.ForEPD(), r.key().Workload, "V100"); err != nil ||
		fit.LastJob != want {
		t.Errorf("beside its curve: %+v, %v", fit.LastJob, err)
	}
	var versions epdapi.ModelVersions
	if status := r.callAs(&operator, http.MethodGet, "/v1/models?gpu_model=V100&workload="+
		url.QueryEscape(r.key().Workload), "", &versions); status != http.StatusOK ||
		versions.LastJob != want {
		t.Errorf("beside its versions: %d, %+v", status, versions.LastJob)
	}
	now := r.clock.read()
	r.run(7, memoryBound())
	r.flush()
	r.clock.move(now.Sub(r.clock.read()) + 10*time.Second)
	if got := told(); got != want {
		t.Errorf("%+v: it was looked up again at once", got)
	}
	r.clock.move(2 * time.Minute)
	if got := told(); got.ID != 7 {
		t.Errorf("two minutes later still %+v", got)
	}
}
