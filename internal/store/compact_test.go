package store_test

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// asked returns all that reports, models and lists ask of the records of cluster "cluster".
func asked(tb testing.TB, y *year) map[string]any {
	tb.Helper()
	ctx, s := tb.Context(), y.store
	all := make(map[string]any)
	keep := func(what string, value any, err error) {
		if err != nil {
			tb.Fatalf("%s: %v", what, err)
		}
		all[what] = value
	}
	for _, since := range []time.Time{{}, start, start.Add(7 * time.Minute), start.Add(26 * time.Hour)} {
		v, err := s.Strata(ctx, "cluster", since, time.Time{})
		keep("savings since "+since.String(), v, err)
	}
	days, err := s.RunDays(ctx, "cluster", time.Time{})
	keep("days", days, err)
	for what, f := range map[string]store.JobFilter{
		"all": {}, "user": {User: "user119"}, "workload": {Workload: hexOf("script", 3)[:24] + "x2"},
		"completed": {State: "COMPLETED"}, "failed": {State: "FAILED"}, "partition": {Partition: "gpu2"},
		"since": {From: start.Add(time.Minute)}, "id": {ID: 100_007}, "requeued": {State: "REQUEUED"},
	} {
		f.Cluster = "cluster"
		page, err := s.JobRows(ctx, &f, 0, 1000)
		keep("jobs: "+what, page, err)
		if len(page.Jobs) == 0 && what != "requeued" {
			tb.Errorf("no jobs: %s", what)
		}
	}
	ended, err := s.Learning.EndedJobs(ctx, "cluster", 1000)
	for i := range ended { // when they were submitted; for the page of a job alone
		e := &ended[i]
		e.PredictedS, e.PredictedPowerW, e.PredictedJ = record.Interval{}, record.Interval{}, record.Interval{}
		e.Rung = ""
	}
	keep("ended jobs", ended, err)
	for w := range y.workloads {
		key := record.WorkloadKey{
			Cluster: "cluster", Workload: fmt.Sprintf("%sx%d", hexOf("script", w)[:24], y.gpus), GPUModel: "H100",
		}
		page, err := s.Learning.OutcomesOf(ctx, key, 0, 1000)
		for i := range page.Outcomes {
			withoutCurves(&page.Outcomes[i])
		}
		keep("outcomes of "+key.Workload, page, err)
	}
	for id := int64(100_000); id < 100_040; id++ {
		decisions, err := s.DecisionsOfJob(ctx, "cluster", id)
		for i := range decisions {
			inWholeUnits(&decisions[i])
		}
		keep(fmt.Sprintf("decisions of job %d", id), decisions, err)
	}
	return all
}

// inWholeUnits takes away what goes of a decision.
func inWholeUnits(d *record.Decision) {
	d.Reason = ""
	for _, p := range []*record.Interval{&d.TimeS, &d.PowerW, &d.EnergyJ} {
		for _, n := range []*live.Number{&p.Value, &p.Low, &p.High} {
			if x, known := n.Get(); known {
				*n = live.Known(math.Round(x))
			}
		}
	}
}

// withoutCurves takes away what goes of an outcome, and the digits that aren't kept.
func withoutCurves(o *record.Outcome) {
	o.Series, o.Readings, o.Profile = record.Series{}, record.Readings{}, record.Profile{}
	for i := range o.Clocks {
		o.Clocks[i].Seconds = float64(float32(o.Clocks[i].Seconds))
	}
	for reason, seconds := range o.ThrottledS {
		o.ThrottledS[reason] = float64(float32(seconds))
	}
	for _, n := range []*live.Number{&o.WorkClock.CoreMHz, &o.WorkClock.SpreadMHz} {
		if x, known := n.Get(); known {
			*n = live.Known(float64(float32(x)))
		}
	}
}

// sameAnswers wants answers to be equal but for the rounding of sums.
func sameAnswers(tb testing.TB, got, want map[string]any) {
	tb.Helper()
	for what, w := range want {
		strata, compared := w.([]record.Stratum)
		if now, ok := got[what].([]record.Stratum); ok && compared {
			sameStrata(tb, now, strata)
		} else if !reflect.DeepEqual(got[what], w) {
			tb.Errorf("%s: %.3000s\nwas %.3000s", what, fmt.Sprintf("%+v", got[what]), fmt.Sprintf("%+v", w))
		}
	}
}

// strange are runs other than those of a year: what few runs have must be kept, too.
func strange(tb testing.TB, y *year) {
	tb.Helper()
	for i, change := range []func(*record.Outcome){
		func(o *record.Outcome) { o.ExitState = "FAILED" },
		func(o *record.Outcome) { o.Stays, o.Notes = stays(), []string{"a note"} },
		func(o *record.Outcome) { o.MoveToRestarted(record.Restarted{Late: true}) },
		func(o *record.Outcome) {
			o.Implausible.Why, o.Implausible.TimeS = "no run lasts so long", live.Known(1e12)
		},
		func(o *record.Outcome) { o.Unmatched, o.DecisionID = true, 0 },
		func(o *record.Outcome) {
			o.DecisionID, o.Clocks, o.ThrottledS, o.WorkClock = 0, nil, nil, record.WorkClock{}
		},
		func(o *record.Outcome) { o.Arm = live.ArmExcluded },
		func(o *record.Outcome) { o.Setting = dvfsmodel.Setting{Core: 900} }, // other than was decided
		func(o *record.Outcome) { o.GPUs = nil },
		func(o *record.Outcome) { o.ExitState = "REQUEUED" }, // its job is to run again
	} {
		y.change = change
		y.run(tb, 30+i)
	}
	y.change = nil
}

func TestCompactingChangesNothingThatReportsModelsAndListsShow(t *testing.T) {
	y, path := newYear(t, 2, 7, 30)
	strange(t, y)
	before := asked(t, y)
	if d := y.store; len(exported(t, d, "decisions")) != 2*40 {
		t.Fatalf("%d decisions", len(exported(t, d, "decisions")))
	}
	half := start.Truncate(time.Second).Add(2*time.Hour + 40*time.Minute) // some have ended
	n, err := y.store.Compact(t.Context(), half)
	if err != nil || n == 0 || n > 35 {
		t.Fatalf("compacted %d runs, %v", n, err)
	}
	sameAnswers(t, asked(t, y), before)
	oldest, err := y.store.OldestInDetail(t.Context())
	if err != nil || oldest.Before(half) {
		t.Errorf("the oldest in detail is of %v, %v", oldest, err)
	}
	rest, err := y.store.Compact(t.Context(), y.now.Add(24*time.Hour))
	if err != nil || n+rest != 40 {
		t.Fatalf("compacted %d and %d runs, %v", n, rest, err)
	}
	if oldest, err := y.store.OldestInDetail(t.Context()); err != nil || !oldest.IsZero() {
		t.Errorf("the oldest in detail is of %v, %v", oldest, err)
	}
	if again, err := y.store.Compact(t.Context(), y.now.Add(24*time.Hour)); err != nil || again != 0 {
		t.Errorf("compacted %d runs again, %v", again, err)
	}
	sameAnswers(t, asked(t, y), before)
	for table, want := range map[string]int{
		"old_runs": 40, "outcome_profiles": 0, "outcome_details": 3,
		"decisions": 3, // of runs whose outcome doesn't name them, and of the job that runs again
		"outcomes":  40, "jobs": 40,
	} {
		if got := len(exported(t, y.store, table)); got != want {
			t.Errorf("%d rows of %s, want %d", got, table, want)
		}
	}
	if found, err := store.Check(t.Context(), path); err != nil || len(found) > 0 {
		t.Errorf("Check found %q, %v", found, err)
	}
}

// Savings of pruned runs, too, are those of before, whether they were compacted or not.
func TestPruningCompactedRunsComesToTheSameSums(t *testing.T) {
	sums := make(map[bool][]string)
	for _, compacted := range []bool{false, true} {
		y, _ := newYear(t, 1, 3, 24)
		if compacted {
			if n, err := y.store.Compact(t.Context(), y.now.Add(24*time.Hour)); err != nil || n != 24 {
				t.Fatal(n, err)
			}
		}
		if p, err := y.store.Prune(t.Context(), y.now.Add(24*time.Hour)); err != nil || p.Outcomes != 24 {
			t.Fatal(p, err)
		}
		for _, table := range []string{
			"outcome_months", "energy_sums", "run_days", "pruned_runs", "old_runs", "decisions",
		} {
			sums[compacted] = append(sums[compacted], exported(t, y.store, table)...)
		}
	}
	if !reflect.DeepEqual(sums[true], sums[false]) {
		t.Errorf("%s\nwithout compacting %s", strings.Join(sums[true], ""), strings.Join(sums[false], ""))
	}
}

// What is taken out of the records and put back counts as before, though its decision was part
// of the row that went.
func TestACompactedRunIsForgottenAndRememberedWithItsDecision(t *testing.T) {
	y, _ := newYear(t, 1, 3, 12)
	savings := func() []record.Stratum {
		all, err := y.store.Strata(t.Context(), "cluster", time.Time{}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := savings()
	if n, err := y.store.Compact(t.Context(), y.now.Add(24*time.Hour)); err != nil || n != 12 {
		t.Fatal(n, err)
	}
	filter := &store.RunFilter{Cluster: "cluster", JobID: 100_007}
	page, err := y.store.RecordedRuns(t.Context(), filter, false, 0, 9)
	if err != nil || len(page.Runs) != 1 || len(page.Runs[0].Outcome.GPUs) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	if f, err := y.store.Forget(t.Context(), []int64{page.Runs[0].ID}, nil); err != nil || f.Runs != 1 {
		t.Fatal(f, err)
	}
	if d, err := y.store.DecisionsOfJob(t.Context(), "cluster", 100_007); err != nil || len(d) != 1 {
		t.Errorf("decisions of a job that was forgotten: %+v, %v", d, err)
	}
	if f, err := y.store.Remember(t.Context(), page.Runs); err != nil || f.Runs != 1 {
		t.Fatal(f, err)
	}
	sameStrata(t, savings(), before)
	o := y.outcome(7, 7200+float64(7*7919%3600), 0)
	put(t, y.store, y.last(7, o), store.Conflicting) // known still
}

// Room goes back to the file system in steps, and what is written meanwhile isn't held up.
func TestRoomOfCompactedRunsIsGivenBackWhileOthersWrite(t *testing.T) {
	y, path := newYear(t, 8, 30, 600)
	size := func() int64 {
		execute(t, path, "PRAGMA wal_checkpoint(TRUNCATE)")
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	before := size()
	var stop atomic.Bool
	var writers sync.WaitGroup
	var longest time.Duration
	writes := 0
	writers.Go(func() {
		for i := 0; !stop.Load(); i++ {
			began := time.Now()
			o := outcome(i)
			if _, err := y.store.PutOutcome(t.Context(), o); err != nil {
				t.Error(err)
			}
			longest, writes = max(longest, time.Since(began)), writes+1
		}
	})
	n, err := y.store.Compact(t.Context(), start.Add(23*time.Hour))
	if err != nil || n < 600 {
		t.Errorf("compacted %d runs, %v", n, err)
	}
	freed, err := y.store.Shrink(t.Context())
	stop.Store(true)
	writers.Wait()
	if err != nil || freed < before/4 {
		t.Errorf("%d bytes of %d were given back, %v", freed, before, err)
	}
	if again, err := y.store.Shrink(t.Context()); err != nil || again > 1<<20 {
		t.Errorf("%d bytes were given back at once again, %v", again, err)
	}
	t.Logf("%d bytes before, %d after; %d writes meanwhile, the longest took %v", before, size(), writes,
		longest)
	if writes == 0 || longest > 5*time.Second {
		t.Errorf("%d writes meanwhile, the longest took %v", writes, longest)
	}
	if after := size(); after > before*3/4 {
		t.Errorf("the file has %d bytes, before %d", after, before)
	}
	if found, err := store.Check(t.Context(), path); err != nil || len(found) > 0 {
		t.Errorf("Check found %q, %v", found, err)
	}
}
