package store_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

func TestAListedJobIsShownAsEndedOnceAllItsRunsAre(t *testing.T) {
	s, _ := openNew(t)
	j := job(1)
	j.State = "RUNNING"
	state := func(want string, runs int) {
		t.Helper()
		page, err := s.JobRows(t.Context(), &store.JobFilter{Cluster: "alpha", State: want}, 0, 10)
		if err != nil || len(page.Jobs) != 1 || page.Jobs[0].Shown != want || page.Jobs[0].Runs != runs {
			t.Fatalf("%+v, %v, want %s after %d runs", page, err, want, runs)
		}
	}
	decide := func(node, run string, at time.Time) {
		t.Helper()
		d := decision(1)
		d.Node, d.RunID, d.Created = node, run, at
		if err := s.PutJob(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		if _, err := s.PutDecision(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	end := func(node, run, state string, at time.Time) {
		t.Helper()
		o := outcome(1)
		o.JobID, o.Submitted, o.Node, o.RunID, o.ExitState, o.Ended = j.ID, j.Submitted, node, run, state, at
		put(t, s, o, store.Stored)
	}
	begun := j.Submitted.Add(time.Minute)
	decide("n1", "a", begun)
	decide("n2", "b", begun)
	state("RUNNING", 0)
	end("n1", "a", "FAILED", begun.Add(time.Hour))
	state("RUNNING", 1)
	end("n2", "b", record.Completed, begun.Add(30*time.Minute))
	state("FAILED", 2) // on the node where it ended last
	decide("n1", "c", begun.Add(2*time.Hour))
	state("RUNNING", 2) // again
	end("n1", "c", "", begun.Add(3*time.Hour))
	state("ENDED", 3)
}

func TestAListedJobHasItsLatestDecisionAndWhatItsRunsCameTo(t *testing.T) {
	s, _ := openNew(t)
	first, second := job(1), job(1) // the id comes again
	second.Submitted = first.Submitted.Add(time.Hour)
	for i, j := range []*record.Job{first, second} {
		if err := s.PutJob(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		for node := range 2 {
			o := outcome(10*i + node)
			o.JobID, o.Submitted, o.Started, o.Ended = j.ID, j.Submitted, j.Submitted.Add(time.Minute),
				j.Submitted.Add(time.Hour)
			o.TimeS, o.GPUEnergyJ = live.Known(float64(100*(i+1)+node)), live.Known(1000)
			if i == 1 && node == 1 {
				o.GPUEnergyJ, o.Submitted = live.Number{}, time.Time{}
			}
			d := decision(1)
			d.Node, d.RunID, d.Created = fmt.Sprint("n", node), o.RunID, o.Started
			d.Setting.Core, d.Setting.Cap = 900, 210
			if _, err := s.PutDecision(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			put(t, s, o, store.Stored)
		}
	}
	page, err := s.JobRows(t.Context(), &store.JobFilter{Cluster: "alpha"}, 0, 10)
	if err != nil || len(page.Jobs) != 2 || page.Next != 0 {
		t.Fatalf("%+v, %v", page, err)
	}
	late, early := page.Jobs[0], page.Jobs[1]
	if !late.Submitted.Equal(second.Submitted) || late.Runs != 2 || late.TimeS != live.Known(201) ||
		late.EnergyJ != (live.Number{}) {
		t.Errorf("%+v", late)
	}
	if early.Runs != 2 || early.TimeS != live.Known(101) || early.EnergyJ != live.Known(2000) ||
		early.Mode != "enforce" || early.Setting.Core != 900 || early.Setting.Cap != 210 {
		t.Errorf("%+v", early)
	}
}

func TestAListedJobHasTheClocksThatItsRunsReallyHad(t *testing.T) {
	s, _ := openNew(t)
	j := job(1)
	if err := s.PutJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	for n, c := range []struct {
		locked    dvfsmodel.Setting
		unmatched bool
		want      []dvfsmodel.Setting
	}{
		{dvfsmodel.Setting{Core: 1200, Mem: 877}, true, nil},
		{dvfsmodel.Setting{Core: 1087, Mem: 877}, false, []dvfsmodel.Setting{{Core: 1087, Mem: 877}}},
		{dvfsmodel.Setting{Core: 1087, Mem: 877}, false, []dvfsmodel.Setting{{Core: 1087, Mem: 877}}},
		{dvfsmodel.Setting{}, false, []dvfsmodel.Setting{{}, {Core: 1087, Mem: 877}}},
		{
			dvfsmodel.Setting{Core: 1087, Mem: 877, Cap: 200},
			false,
			[]dvfsmodel.Setting{{}, {Core: 1087, Mem: 877}, {Core: 1087, Mem: 877, Cap: 200}},
		},
		{
			dvfsmodel.Setting{Core: 1087, Mem: 877, Profile: dvfsmodel.MaxQ},
			false,
			[]dvfsmodel.Setting{
				{},
				{Core: 1087, Mem: 877},
				{Core: 1087, Mem: 877, Profile: dvfsmodel.MaxQ},
				{Core: 1087, Mem: 877, Cap: 200},
			},
		},
	} {
		o := outcome(n)
		o.JobID, o.Submitted, o.Started, o.Setting, o.Unmatched = j.ID, j.Submitted,
			j.Submitted.Add(time.Minute), c.locked, c.unmatched
		put(t, s, o, store.Stored)
		page, err := s.JobRows(t.Context(), &store.JobFilter{Cluster: "alpha"}, 0, 10)
		if err != nil || len(page.Jobs) != 1 || !slices.Equal(page.Jobs[0].Locked, c.want) {
			t.Errorf("after %d runs: %+v, %v, want %v", n+1, page.Jobs, err, c.want)
		}
	}
}

func TestAListedJobHasWhatRunsCameToThatEpdWasRestartedUnder(t *testing.T) {
	s, _ := openNew(t)
	j := job(1)
	if err := s.PutJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	list := func() store.ListedJob {
		t.Helper()
		page, err := s.JobRows(t.Context(), &store.JobFilter{Cluster: "alpha"}, 0, 10)
		if err != nil || len(page.Jobs) != 1 {
			t.Fatalf("%+v, %v", page, err)
		}
		return page.Jobs[0]
	}
	end := func(n int, change func(o *record.Outcome)) {
		t.Helper()
		o := outcome(n)
		o.JobID, o.Submitted, o.Started, o.TimeS, o.GPUEnergyJ = j.ID, j.Submitted,
			j.Submitted.Add(time.Minute), live.Known(60), live.Known(1000)
		change(o)
		put(t, s, o, store.Stored)
	}
	end(1, func(*record.Outcome) {})
	if row := list(); row.Restarted != (record.Restarted{}) {
		t.Errorf("without such a run: %+v", row.Restarted)
	}
	end(2, func(o *record.Outcome) {
		o.TimeS, o.GPUEnergyJ, o.Restarted = live.Number{}, live.Number{}, restarted()
	})
	if row := list(); row.Restarted != (record.Restarted{
		TimeS:      live.Known(100),
		GPUEnergyJ: live.Known(21_000),
	}) || row.TimeS != live.Known(60) || row.EnergyJ != (live.Number{}) {
		t.Errorf("with one: %+v", row)
	}
	end(3, func(o *record.Outcome) { // its counters told nothing
		o.TimeS, o.GPUEnergyJ, o.Restarted = live.Number{}, live.Number{},
			record.Restarted{TimeS: live.Known(300)}
	})
	if row := list(); row.Restarted != (record.Restarted{TimeS: live.Known(300)}) {
		t.Errorf("with one of unknown energy: %+v", row)
	}
}

// A page ends after so many jobs that don't pass, and the next one goes on there.
func TestAPageLooksAtSoManyJobsAtOnceAndTheNextGoesOn(t *testing.T) {
	s, path := openNew(t)
	if err := s.PutJob(t.Context(), job(0)); err != nil {
		t.Fatal(err)
	}
	execute(t, path, `WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < 25000)
INSERT INTO jobs SELECT NULL, cluster, 10000 + i, submitted_us + i, '', 'crowd', account, partition, name, '', 'w', NULL, 1, 1, state, shown, 0, 0 FROM jobs, i`)
	filter := &store.JobFilter{Cluster: "alpha", Partition: "gpu", Account: "acc", User: "user0"}
	page, err := s.JobRows(t.Context(), filter, 0, 5) // by the user's index: at once
	if err != nil || len(page.Jobs) != 1 || page.Next != 0 {
		t.Fatalf("%d jobs, next %d, %v", len(page.Jobs), page.Next, err)
	}
	filter = &store.JobFilter{Cluster: "alpha", Partition: "gpu", Account: "nobody's"}
	pages, before := 0, int64(0)
	for {
		page, err := s.JobRows(t.Context(), filter, before, 5)
		if err != nil || len(page.Jobs) != 0 {
			t.Fatalf("%+v, %v", page, err)
		}
		pages++
		if before = page.Next; before == 0 {
			break
		}
	}
	if pages != 13 {
		t.Errorf("%d pages of 25,001 jobs", pages)
	}
	if page, err := s.JobRows(t.Context(), filter, 1<<40, 5); err != nil || len(page.Jobs) != 0 ||
		page.Next != 0 {
		t.Errorf("a page behind a job that is gone: %+v, %v", page, err)
	}
}

func TestLastDecisionsComeWithTheirJobs(t *testing.T) {
	s, _ := openNew(t)
	for i := range 6 {
		if err := s.PutJob(t.Context(), job(i)); err != nil {
			t.Fatal(err)
		}
		d := decision(i)
		d.Created, d.Mode = job(i).Submitted.Add(time.Second), []string{"advise", "enforce"}[i%2]
		if i == 4 {
			d.JobID = 0 // made at submission
		}
		if _, err := s.PutDecision(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	page, err := s.LastDecisions(t.Context(), "alpha", "", 0, 3)
	if err != nil || len(page.Decisions) != 3 || page.Decisions[0].JobID != 1005 ||
		page.Decisions[1].JobID != 1003 || page.Decisions[0].User != "user1" ||
		page.Decisions[0].Partition != "gpu" {
		t.Fatalf("%+v, %v", page, err)
	}
	rest, err := s.LastDecisions(t.Context(), "alpha", "", page.Next, 3)
	if err != nil || len(rest.Decisions) != 2 || rest.Next != 0 {
		t.Errorf("%+v, %v", rest, err)
	}
	advice, err := s.LastDecisions(t.Context(), "alpha", "advise", 0, 10)
	if err != nil || len(advice.Decisions) != 2 {
		t.Errorf("%+v, %v", advice, err)
	}
	own, err := s.LastDecisionsOf(t.Context(), "alpha", "user1", "", 10)
	if err != nil || len(own) != 3 || own[0].JobID != 1005 {
		t.Errorf("%+v, %v", own, err)
	}
	if none, err := s.LastDecisionsOf(t.Context(), "alpha", "nobody", "", 10); err != nil || len(none) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
}

func TestReadingsOfAJobComeBackAndAreExported(t *testing.T) {
	s, _ := openNew(t)
	sampler := record.NewReadingsSampler(2, time.Second)
	sampler.Add(0, 3*time.Second, 200, 1200)
	o, older := outcome(1), outcome(2)
	o.Readings, older.JobID = sampler.Readings(), o.JobID
	put(t, s, o, store.Stored)
	put(t, s, older, store.Stored)
	without := *o
	without.Readings = record.Readings{}
	put(t, s, &without, store.Repeated)
	all, err := s.Readings(t.Context(), "alpha", o.JobID)
	if err != nil || len(all) != 1 || !reflect.DeepEqual(all[o.Key()], o.Readings) {
		t.Errorf("%+v, %v", all, err)
	}
	if lines := exported(t, s, "outcome_details"); !strings.Contains(lines[0],
		`"readings":{"gpus":2,"interval_s":1,"power_w":{"mean":[200,200,200]`) {
		t.Error(lines[0])
	}
	if _, err := s.Prune(t.Context(), start.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Readings(t.Context(), "alpha", o.JobID); err != nil || len(all) != 0 {
		t.Errorf("after pruning: %+v, %v", all, err)
	}
}

// waiting is a writer that takes nothing before it is told to.
type waiting struct {
	begun chan<- struct{}
	end   <-chan struct{}
}

func (w waiting) Write(p []byte) (int, error) {
	select {
	case w.begun <- struct{}{}:
		<-w.end
	case <-w.end:
	}
	return len(p), nil
}

// What Slurm's hooks wait for doesn't wait for what people look at.
func TestDecisionsAreFoundWhileLongReadsTakeAllReaders(t *testing.T) {
	s, _ := openNew(t)
	d := decision(1)
	for i := range 40 { // more than is buffered before it is written
		if _, err := s.PutDecision(t.Context(), decision(i)); err != nil {
			t.Fatal(err)
		}
	}
	begun, end := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	defer group.Wait()
	defer close(end)
	for range 4 {
		group.Go(func() { _ = s.Export(t.Context(), waiting{begun, end}, "decisions") })
		<-begun
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if all, err := s.DecisionsOfJob(ctx, d.Cluster, d.JobID); err != nil || len(all) != 1 {
		t.Errorf("%d decisions of the job, %v", len(all), err)
	}
	if found, err := s.DecisionByToken(ctx, d.Cluster, d.Token); err != nil || found.JobID != d.JobID {
		t.Errorf("job %d by its token, %v", found.JobID, err)
	}
	if _, err := s.Learning.Profiles(ctx,
		record.WorkloadKey{Cluster: d.Cluster, Workload: d.Workload, GPUModel: d.GPUModel}, 1); err != nil {
		t.Errorf("profiles: %v", err)
	}
}

func TestAWorkloadIsKnownByTheJobOfItThatWasSubmittedLast(t *testing.T) {
	s, _ := openNew(t)
	for i := range 6 {
		j := job(i)
		j.Workload, j.Name = fmt.Sprintf("w%d", i%2), fmt.Appendf(nil, "train-%d", i)
		if i == 5 {
			j.Submitted = j.Submitted.Add(-time.Hour) // an earlier one that comes late
		}
		if err := s.PutJob(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	other := job(9)
	other.Cluster = "beta"
	if err := s.PutJob(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	got, err := s.LastJobs(t.Context(), "alpha", []string{"w0", "none", "w1", "w0"})
	if err != nil || len(got) != 2 || string(got["w0"].Name) != "train-4" ||
		string(got["w1"].Name) != "train-3" || got["w1"].User != "user1" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := s.LastJobs(t.Context(), "alpha", nil); err != nil || len(got) != 0 {
		t.Errorf("of none: %+v, %v", got, err)
	}
}
