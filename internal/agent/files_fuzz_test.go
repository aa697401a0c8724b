package agent_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
)

// Whatever is in the journal and in a run's file when an agent starts: a GPU whose entry can't be understood
// is given back, another one is touched only if the entry lists it, no run comes back with its clocks, and
// every outcome that is read can be recorded.
func FuzzFilesOfAnAgent(f *testing.F) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		return string(text)
	}
	entry := read("journal/" + firstGPU + ".json")
	for _, run := range []string{
		"runs/open.json", "runs/ended.json", "runs/adapted.json", "runs/unlimited.json",
	} {
		f.Add(entry, read(run))
	}
	for _, change := range [][2]string{
		{`"schema":`, `"schema":9`}, {firstGPU, secondGPU}, {"boot", "other"}, {"core", "x"}, {"1", "1e999"},
	} {
		f.Add(strings.ReplaceAll(entry, change[0], change[1]),
			strings.ReplaceAll(read("runs/ended.json"), change[0], change[1]))
	}
	f.Add("", "")
	f.Add("{", "null")
	f.Fuzz(startsFrom)
}

// startsFrom has an agent start from a journal entry and a run's file.
func startsFrom(t *testing.T, entry, run string) {
	t.Helper()
	h := newHost(t, twoGPUs)
	for _, s := range h.sims {
		if err := s.Set(gpu.CoreClock, gpu.Value(coreLow.Core)); err != nil {
			t.Fatal(err)
		}
	}
	h.journal.put(firstGPU+".json", entry)
	h.runs.put("r1.json", run)
	a := h.agent(nil)
	report, err := a.Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range report.GPUs {
		if g.Result == agent.EntrySetAside && h.locked(0) != free {
			t.Fatalf("the GPU is locked at %v: %+v", h.locked(0), report)
		}
	}
	if h.locked(1) != coreLow && !strings.Contains(strings.ToLower(entry), strings.ToLower(secondGPU)) {
		t.Fatalf("the other GPU is locked at %v: %+v", h.locked(1), report)
	}
	for _, r := range a.State().Runs {
		if r.ID != "r1" || !r.Ended && r.Wants != free {
			t.Fatalf("%+v", r)
		}
		_, _ = a.End(context.Background(), r.Job, r.Node)
	}
	for _, c := range a.Runs().Ended() {
		out := c.Outcome
		out.Cluster = "alpha"
		if _, err := json.Marshal(out); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
	}
}

// The GPUs of the files in testdata, which are those of a simulated host.
const (
	firstGPU  = "GPU-374708ff-f771-9dd5-979e-c875d56cd228"
	secondGPU = "GPU-7c3ccd10-bb7e-c37b-46d3-7926ae627426"
)
