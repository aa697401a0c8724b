package store_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// runsOf returns the run ids that a filter lists, in pages of two.
func runsOf(
	t *testing.T, s *store.Store, f store.RunFilter, conflicts bool,
) (runs []string, all []record.RecordedRun) {
	t.Helper()
	f.Cluster = "alpha"
	for after, pages := int64(0), 0; pages == 0 || after != 0; pages++ {
		page, err := s.RecordedRuns(t.Context(), &f, conflicts, after, 2)
		if err != nil {
			t.Fatal(err)
		}
		all, after = append(all, page.Runs...), page.Next
	}
	for i := range all {
		runs = append(runs, strings.TrimPrefix(all[i].Outcome.RunID, "run-00000"))
	}
	return runs, all
}

// ids returns those of some runs.
func ids(runs []record.RecordedRun) []int64 {
	all := make([]int64, len(runs))
	for i, k := range runs {
		all[i] = k.ID
	}
	return all
}

func TestRecordedRunsAreFoundByRunJobNodeAndTime(t *testing.T) {
	s, _ := openNew(t)
	for i := range 6 {
		o := outcome(i)
		o.JobID, o.Node = int64(i/2+1), []string{"n1", "n2"}[i%2]
		put(t, s, o, store.Stored)
		o.TimeS = live.Known(1)
		if i < 2 {
			put(t, s, o, store.Conflicting)
		}
	}
	end := func(i int) time.Time { return outcome(i).Ended }
	for name, c := range map[string]struct {
		filter     store.RunFilter
		want, also string
	}{
		"all":           {store.RunFilter{}, "0 1 2 3 4 5", "0 1"},
		"a run":         {store.RunFilter{RunID: "run-000003"}, "3", ""},
		"a job":         {store.RunFilter{JobID: 1}, "0 1", "0 1"},
		"a job's node":  {store.RunFilter{JobID: 1, Node: "n2"}, "1", "1"},
		"a node":        {store.RunFilter{Node: "n1"}, "0 2 4", "0"},
		"from a time":   {store.RunFilter{Since: end(4)}, "4 5", ""},
		"before a time": {store.RunFilter{Until: end(2)}, "0 1", "0 1"}, // conflicts by when they came
		"in a time":     {store.RunFilter{Node: "n2", Since: end(1), Until: end(4)}, "1 3", ""},
		"nothing":       {store.RunFilter{RunID: "run-000003", Node: "n1"}, "", ""},
	} {
		for _, conflicts := range []bool{false, true} {
			want := c.want
			if conflicts {
				want = c.also
			}
			if got, _ := runsOf(t, s, c.filter, conflicts); strings.Join(got, " ") != want {
				t.Errorf("%s, conflicts %v: %q, want %q", name, conflicts, got, want)
			}
		}
	}
}

// everything returns all tables, but for what says nothing: sums without jobs, and in
// which order conflicts lie.
func everything(t *testing.T, s *store.Store) map[string][]string {
	t.Helper()
	tables := make(map[string][]string)
	for _, table := range store.Tables() {
		lines := exported(t, s, table)
		switch table {
		case "energy_sums":
			lines = slices.DeleteFunc(lines, func(line string) bool {
				return strings.Contains(line, `"ended":0,"done":0,`) && !strings.Contains(line, `"day":-1,`)
			})
		case "outcome_conflicts":
			for i := range lines {
				_, lines[i], _ = strings.Cut(lines[i], ",")
			}
			slices.Sort(lines)
		}
		tables[table] = lines
	}
	return tables
}

// putDecided stores a decision for a run, and what it came to.
func putDecided(t *testing.T, s *store.Store, i int) *record.Outcome {
	t.Helper()
	o, d := outcome(i), decision(i)
	o.Profile, o.Stays, o.Restarted = profile(), stays(), restarted()
	o.JobID, o.Workload = int64(1000+i/2), "w0"
	sampler := record.NewReadingsSampler(2, time.Second)
	sampler.Add(0, 3*time.Second, 200, 1200)
	o.Readings = sampler.Readings()
	d.JobID, d.RunID, d.HoldOut = o.JobID, o.RunID, live.Known(0.1)
	id, err := s.PutDecision(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if o.DecisionID = id; i == 4 {
		o.GPUEnergyJ = live.Known(1.7e308)
	}
	put(t, s, o, store.Stored)
	return o
}

// What was taken out is nowhere, what is left isn't changed, and what is put back is
// as it was.
func TestRunsThatAreTakenOutCanBePutBackAsTheyWere(t *testing.T) {
	s, path := openNew(t)
	fill(t, s)
	for i := 3; i < 9; i++ {
		o := putDecided(t, s, i)
		o.TimeS = live.Known(3)
		put(t, s, o, store.Conflicting)
	}
	before := everything(t, s)
	_, outcomes := runsOf(t, s, store.RunFilter{Node: "n1"}, false)
	_, conflicts := runsOf(t, s, store.RunFilter{Node: "n1"}, true)
	wire, err := json.Marshal(append(slices.Clone(outcomes), conflicts...)) // as a file has them
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Forget(t.Context(), ids(outcomes), ids(conflicts))
	if err != nil || f.Runs != 7 || f.Conflicts != 7 || len(f.Workloads) != 2 {
		t.Fatalf("%+v, %v", f, err)
	}
	for table, want := range map[string]int{
		"outcomes": 0, "outcome_details": 0, "outcome_profiles": 0,
		"outcome_conflicts": 0, "run_days": 1, "decisions": len(before["decisions"]), "models": 1,
	} {
		if lines := exported(t, s, table); len(lines) != want {
			t.Errorf("%d rows are left in %s, want %d: %.300s", len(lines), table, want, lines)
		}
	}
	put(t, s, outcome(8), store.Conflicting) // which isn't stored again
	repeat := outcomes[1].Outcome
	put(t, s, &repeat, store.Repeated)
	_, late := runsOf(t, s, store.RunFilter{}, true)
	if _, err := s.Forget(t.Context(), nil, ids(late)); err != nil {
		t.Fatal(err)
	}
	var back []record.RecordedRun
	if err := json.Unmarshal(wire, &back); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.Remember(t.Context(), back); err != nil {
			t.Fatal(err)
		}
	}
	after := everything(t, s)
	for _, table := range store.Tables() {
		if !slices.Equal(after[table], before[table]) {
			t.Errorf("%s differs:\n%s\nbefore\n%s", table, strings.Join(after[table], ""),
				strings.Join(before[table], ""))
		}
	}
	if found, err := store.Check(t.Context(), path); err != nil || len(found) > 0 {
		t.Errorf("Check found %q, %v", found, err)
	}
}

// A job whose run is taken out doesn't look as if it ran still.
func TestAJobWhoseRunIsTakenOutStaysEnded(t *testing.T) {
	s, _ := openNew(t)
	j, o, d := job(1), outcome(1), decision(1)
	j.State, o.Submitted, o.ExitState = "RUNNING", j.Submitted, "FAILED"
	o.JobID, d.JobID, d.RunID = j.ID, j.ID, o.RunID
	d.Created = j.Submitted.Add(time.Second)
	if err := s.PutJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutDecision(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	put(t, s, o, store.Stored)
	_, all := runsOf(t, s, store.RunFilter{JobID: j.ID}, false)
	if _, err := s.Forget(t.Context(), ids(all), nil); err != nil {
		t.Fatal(err)
	}
	if got := lastJob(t, s, j.ID); got.State != "FAILED" {
		t.Errorf("%+v", got)
	}
	rows, err := s.JobRows(t.Context(), &store.JobFilter{Cluster: "alpha"}, 0, 9)
	if err != nil || len(rows.Jobs) != 1 || rows.Jobs[0].Shown != "FAILED" || rows.Jobs[0].Runs != 0 {
		t.Errorf("%+v, %v", rows, err)
	}
}

func TestOnlyWhatWasTakenOutIsPutBack(t *testing.T) {
	s, _ := openNew(t)
	put(t, s, outcome(1), store.Stored)
	put(t, s, outcome(2), store.Stored)
	_, all := runsOf(t, s, store.RunFilter{RunID: "run-000001"}, false)
	taken := all[0]
	for name, spoil := range map[string]func(k *record.RecordedRun){
		"never recorded":   func(k *record.RecordedRun) { k.Outcome.RunID = "run-000099" },
		"of another node":  func(k *record.RecordedRun) { k.Outcome.Node = "n9" },
		"recorded":         func(k *record.RecordedRun) { k.Outcome.RunID = "run-000002" },
		"another digest":   func(k *record.RecordedRun) { k.Digest = make([]byte, 32) },
		"no digest":        func(k *record.RecordedRun) { k.Digest = nil },
		"no time":          func(k *record.RecordedRun) { k.Received = time.Time{} },
		"no id":            func(k *record.RecordedRun) { k.ID = 0 },
		"what can't be":    func(k *record.RecordedRun) { k.Outcome.GPUs = make([]string, 99) },
		"another's row id": func(k *record.RecordedRun) { k.ID++ },
	} {
		if _, err := s.Forget(t.Context(), []int64{taken.ID}, nil); err != nil {
			t.Fatal(err)
		}
		k := taken
		spoil(&k)
		if _, err := s.Remember(t.Context(), []record.RecordedRun{k}); err == nil ||
			name != "another's row id" && !errors.Is(err, record.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if f, err := s.Remember(t.Context(), []record.RecordedRun{taken}); err != nil || f.Runs != 1 {
			t.Errorf("after %s: %+v, %v", name, f, err)
		}
	}
	if n := len(exported(t, s, "outcomes")); n != 2 {
		t.Errorf("%d outcomes", n)
	}
}
