package agent_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/live"
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
	kept(t, h.journal, "journal")
	for _, sim := range h.sims {
		if err := sim.Set(gpu.CoreClock, gpu.Value(lowest.Core)); err != nil {
			t.Fatal(err)
		}
		if err := sim.Set(gpu.MemClock, gpu.Value(lowest.Mem)); err != nil {
			t.Fatal(err)
		}
	}
	h.wantLocked(lowest, lowest)
	report, err := h.agent(nil).Start(t.Context())
	want := map[string]agent.EntryResult{h.uuids[0]: agent.EntryRestored, h.uuids[1]: agent.EntryRestored}
	if got := fates(report); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, want %v; %v", got, want, err)
	}
	h.wantFree()
}

// What the driver told of a control before it was set is what it is given back to.
func TestAKnownValueFromBeforeIsRestored(t *testing.T) {
	for name, restore := range map[string]func(*host) error{
		"by the agent": func(h *host) error {
			_, err := h.agent(nil).Start(t.Context())
			return err
		},
		"beside an agent": func(h *host) error {
			h.claims = &claims{owners: map[string]*fuse{}}
			a := h.started()
			h.journal.put(h.uuids[0]+".json", knownPrior(h))
			_ = h.restoreBeside()
			_, err := a.Stop(t.Context())
			return err
		},
	} {
		h := newHost(t, twoGPUs)
		h.journal.put(h.uuids[0]+".json", knownPrior(h))
		if err := h.sims[0].Set(gpu.PowerLimit, 150); err != nil {
			t.Fatal(err)
		}
		if err := restore(h); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if v, err := h.sims[0].PowerLimit(); err != nil || v != 200 {
			t.Errorf("%s: power limit %v, %v, want 200", name, float64(v), err)
		}
		if left := h.journal.files(".json"); len(left) > 0 {
			t.Errorf("%s: left in the journal: %v", name, left)
		}
	}
}

// A GPU that couldn't be opened at the start comes back with the clocks that were set, and
// a job starts on it before the agent has swept.
func TestARunOnAGPUThatCameBackKeepsWhatWasBeforeItsEntry(t *testing.T) {
	for name, c := range map[string]struct {
		entry func(*host) string
		want  dvfsmodel.Setting // after the run
		kept  bool
	}{
		"an entry of ours":        {knownPrior, dvfsmodel.Setting{Cap: 200}, false},
		"an entry of another epd": {func(*host) string { return `{"schema":99}` }, dvfsmodel.Setting{Cap: 150}, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, twoGPUs)
			h.options = func(o *agent.Options) { o.Grace = 1 }
			h.journal.put(h.uuids[0]+".json", c.entry(h))
			if err := h.sims[0].Set(gpu.PowerLimit, 150); err != nil {
				t.Fatal(err)
			}
			h.faults.Add(gpu.Fault{GPU: 0, Op: gpu.OpOpen, Kind: gpu.FaultTransient, Count: 1})
			a := h.agent(nil)
			if _, err := a.Start(t.Context()); err == nil {
				t.Fatal("the GPU could be opened")
			}
			apply(h, a, "other", 1, slow, 1)
			hook := func(ctx context.Context, _ live.Run) (live.Outlook, error) { // its GPUs are open by now
				got, err := a.Apply(ctx, h.run("r1", 2, dvfsmodel.Setting{Mem: 4500}, 0))
				if got.Locked == c.kept || (err != nil) != c.kept {
					t.Errorf("%+v, %v", got, err)
				}
				if text := string(h.journal.names[h.uuids[0]+".json"].data); c.kept && text != c.entry(h) {
					t.Errorf("the other epd's file is overwritten by %s", text)
				}
				return live.Outlook{Life: live.LifeAlive}, nil
			}
			if _, err := a.Sweep(t.Context(), hook, alive); err != nil {
				t.Error(err)
			}
			end(a, 1)
			end(a, 2)
			h.wantLocked(c.want, free)
			if left := h.journal.files(".json"); len(left) > 0 {
				t.Errorf("left in the journal: %v", left)
			}
		})
	}
}

// knownPrior returns an entry of the first GPU whose power limit was at 200 W before.
func knownPrior(h *host) string {
	return fmt.Sprintf(`{"schema":1,"uuid":%q,"bus":"","model":"","boot_id":%q,"driver":"driver-1",`+
		`"domains":{"power_limit":{"value":150,"prior":"known","prior_value":200,`+
		`"since":"2000-01-01T00:03:00Z","at":"2000-01-01T00:03:00Z","run":"r1","job":1}}}`, h.uuids[0], h.boot)
}

// An agent that is upgraded while jobs run closes their runs, and hands over those that
// ended before.
func TestRunsOfSchema3AreKnownAgain(t *testing.T) {
	h := newHost(t, twoGPUs)
	kept(t, h.runs, "runs")
	a := h.agent(nil)
	report, err := a.Start(t.Context())
	if err != nil || len(report.Notes) > 0 {
		t.Errorf("%+v, %v", report, err)
	}
	runs := map[string]agent.RunState{}
	for _, r := range a.State().Runs {
		runs[r.ID] = r
	}
	if len(runs) != 4 {
		t.Fatalf("%+v", runs)
	}
	if r := runs["open"]; r.Job != 2 || !slices.Equal(r.GPUs, h.uuids) || r.Setting != lowest ||
		r.Limit != live.LimitOf(time.Hour) || r.Upper != 50*time.Minute || !r.Learning {
		t.Errorf("%+v", r.Run)
	}
	r := runs["adapted"]
	if !r.Wish.Fixed || r.HandsOff == "" || r.Adapt == nil || r.Adapt.SLA != 1.1 ||
		r.Adapt.Interval() != 100*time.Millisecond || len(r.Adapt.Levels) != 2 {
		t.Errorf("%+v", r)
	}
	ended := a.Runs().Ended()
	if len(ended) != 1 || ended[0].Run.ID != "ended" {
		t.Fatalf("%+v", ended)
	}
	o := &ended[0].Outcome
	if len(o.GPUs) != 1 || o.GPUEnergyJ != live.Known(22183.38) || o.Series.Len() != 3 ||
		o.Ended.Sub(o.Started) != 3*time.Minute || o.Readings.IsZero() || o.Profile.IsZero() {
		t.Errorf("%+v", o)
	}
	if r := runs["unlimited"]; r.Limit != live.Unlimited() {
		t.Errorf("%+v", r.Run)
	}
	if _, err := a.End(t.Context(), 2, "n1"); err != nil {
		t.Error(err)
	}
}

// From before v0.1.0: what the file says has another meaning now.
func TestARunsFileOfAnOlderSchemaIsSetAsideAndNamed(t *testing.T) {
	for _, schema := range []string{`"schema":1`, `"schema":2`, `"schema":0`, `"schemas":3`} {
		h := newHost(t, twoGPUs)
		kept(t, h.runs, "runs")
		text := strings.Replace(string(h.runs.names["open.json"].data), `"schema":3`, schema, 1)
		h.runs.put("open.json", text)
		a := h.agent(nil)
		report, err := a.Start(t.Context())
		if err != nil || len(report.Notes) != 1 || !strings.Contains(report.Notes[0], "want 3") {
			t.Errorf("%s: %+v, %v", schema, report, err)
		}
		if aside := h.runs.files(".aside"); len(aside) != 1 || len(a.State().Runs) != 3 {
			t.Errorf("%s: set aside %v, runs %+v", schema, aside, a.State().Runs)
		}
	}
}

// Who goes back to this epd from one that writes more into the same files gives each control back to
// what it was before, and goes on with the runs.
func TestFieldsOfANewerEPDWithTheSameSchemaArePassedOver(t *testing.T) {
	h := newHost(t, twoGPUs)
	h.journal.put(h.uuids[0]+".json", strings.NewReplacer(`"schema":1`, `"colour":{"of":[1]},"schema":1`,
		`"prior":`, `"asked_by":"x","prior":`).Replace(knownPrior(h)))
	if err := h.sims[0].Set(gpu.PowerLimit, 150); err != nil {
		t.Fatal(err)
	}
	const run = `"colour":3,"run":{"run":"%s","colour":3,"job":%d,"node":"n1","gpus":["GPU-1"],"setting":{},` +
		`"wish":{"colour":3},"started":"2026-01-02T12:00:00Z"}`
	h.runs.put("open.json", `{"schema":3,`+fmt.Sprintf(run, "open", 2)+`}`)
	h.runs.put("ended.json", `{"schema":3,`+fmt.Sprintf(run, "ended", 3)+
		`,"outcome":{"colour":3,"started":"2026-01-02T12:00:00Z","ended":"2026-01-02T12:03:00Z","reason":"x"}}`)
	a := h.agent(nil)
	report, err := a.Start(t.Context())
	if err != nil || len(report.Notes) > 0 || fates(report)[h.uuids[0]] != agent.EntryRestored {
		t.Errorf("%+v, %v", report, err)
	}
	if v, err := h.sims[0].PowerLimit(); err != nil || v != 200 {
		t.Errorf("power limit %v, %v, want 200", float64(v), err)
	}
	if ended := a.Runs().Ended(); len(ended) != 1 || ended[0].Run.ID != "ended" || len(a.State().Runs) != 2 {
		t.Errorf("ended %+v of %+v", ended, a.State().Runs)
	}
}

// What a newer epd wrote in a schema of its own is there when that epd is back.
func TestARunsFileOfANewerSchemaStaysAndIsNamed(t *testing.T) {
	h := newHost(t, twoGPUs)
	const text = `{"schema":4,"job":"7"}`
	h.runs.put("new.json", text)
	for range 2 {
		report, err := h.agent(nil).Start(t.Context())
		if err != nil || len(report.Notes) != 1 || !strings.Contains(report.Notes[0],
			"written by a newer epd: schema 4, want 3") {
			t.Errorf("%+v, %v", report, err)
		}
	}
	if got := string(h.runs.names["new.json"].data); got != text || len(h.runs.files(".aside")) > 0 {
		t.Errorf("%q; files %v", got, h.runs.files(""))
	}
}
