package agent_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/gpu"
)

// kept puts the files of a folder of testdata on a disk.
func kept(t *testing.T, d *disk, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Clean(name))
		if err != nil {
			t.Fatal(err)
		}
		d.put(filepath.Base(name), string(text))
	}
}

// An agent that is upgraded while jobs run gives back what the one before locked.
func TestAJournalOfSchema1IsGivenBack(t *testing.T) {
	h := newHost(t, twoGPUs)
	kept(t, h.journal, "journal1")
	for _, sim := range h.sims {
		if err := sim.Lock(gpu.Core, slow.Core); err != nil {
			t.Fatal(err)
		}
		if err := sim.Lock(gpu.Mem, slow.Mem); err != nil {
			t.Fatal(err)
		}
	}
	h.wantLocked(slow, slow)
	report, err := h.agent(nil).Start(t.Context())
	want := map[string]agent.EntryResult{h.uuids[0]: agent.EntryRestored, h.uuids[1]: agent.EntryRestored}
	if got := fates(report); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, want %v; %v", got, want, err)
	}
	h.wantFree()
}

// An agent that is upgraded while jobs run closes their runs, and hands over those that
// ended before.
func TestRunsOfSchema2AreKnownAgain(t *testing.T) {
	h := newHost(t, twoGPUs)
	kept(t, h.runs, "runs2")
	a := h.agent(nil)
	report, err := a.Start(t.Context())
	if err != nil || len(report.Notes) > 0 {
		t.Errorf("%+v, %v", report, err)
	}
	runs := map[string]agent.RunState{}
	for _, r := range a.State().Runs {
		runs[r.ID] = r
	}
	if len(runs) != 3 {
		t.Fatalf("%+v", runs)
	}
	if r := runs["open"]; r.Job != 2 || !slices.Equal(r.GPUs, h.uuids) || r.Setting != slow ||
		r.Limit != time.Hour || r.Upper != 50*time.Minute || !r.Learning {
		t.Errorf("%+v", r.Run)
	}
	r := runs["adapted"]
	if !r.Wish.Fixed || r.HandsOff == "" || r.Adapt == nil || r.Adapt.SLA != 1.1 ||
		r.Adapt.Tau() != 100*time.Millisecond || len(r.Adapt.Levels) != 2 {
		t.Errorf("%+v", r)
	}
	ended := a.Ended()
	if len(ended) != 1 || ended[0].Run.ID != "ended" {
		t.Fatalf("%+v", ended)
	}
	o := &ended[0].Outcome
	if len(o.GPUs) != 1 || o.GPUs[0].Energy != 22183.38 || o.Series.Len() != 3 ||
		o.Ended.Sub(o.Started) != 3*time.Minute || o.Readings.IsZero() || o.Profile.IsZero() {
		t.Errorf("%+v", o)
	}
	if _, err := a.End(t.Context(), 2, "n1"); err != nil {
		t.Error(err)
	}
}
