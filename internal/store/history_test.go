package store_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// past is job i of a log, with all that one can have.
func past(i int) record.HistoryJob {
	at := start.Truncate(time.Second).Add(time.Duration(i) * time.Minute)
	return record.HistoryJob{
		Cluster: "alpha", JobID: fmt.Sprintf("%d_%d", 100+i/4, i%4), Submitted: at,
		Started: at.Add(time.Minute), Ended: at.Add(time.Hour),
		User: "ada", Account: "physics", Partition: "gpu", QOS: "normal", Name: []byte("train\xff|\n"),
		GPUs: live.Known(4), CPUs: live.Known(32), Nodes: live.Known(1), GPUModel: "V100",
		Limit: live.LimitOf(2 * time.Hour),
		State: record.Completed, ExitCode: live.Known(0), EnergyJ: live.Known(3.6e6),
		Utilisation: live.Known(0.5),
	}
}

// historyOf returns what a store has of a cluster's past since a time.
func historyOf(tb interface {
	Context() context.Context
	Fatal(args ...any)
}, s *store.Store, cluster string, after time.Time,
) []record.HistoryJob {
	var all []record.HistoryJob
	err := s.Learning.VisitHistory(tb.Context(), &store.HistoryFilter{Cluster: cluster, From: after},
		func(p record.HistoryJob) error {
			all = append(all, p)
			return nil
		})
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

func TestPastJobsAreReadAsTheyWereStoredInTheOrderOfTheirSubmissions(t *testing.T) {
	s, _ := openNew(t)
	bare := record.HistoryJob{
		Cluster: "alpha", JobID: "7", Submitted: start.Truncate(time.Second).Add(-time.Hour),
		State: "CANCELLED",
	}
	other := past(0)
	other.Cluster = "beta"
	added, err := s.Learning.AddHistory(t.Context(), []record.HistoryJob{past(2), past(1), bare, other})
	if err != nil || added != 4 {
		t.Fatalf("added %d, %v", added, err)
	}
	if got, want := historyOf(t, s, "alpha", time.Time{}), []record.HistoryJob{
		bare, past(1),
		past(2),
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := historyOf(t, s, "alpha", past(2).Submitted); len(got) != 1 || got[0].JobID != past(2).JobID {
		t.Errorf("since the last submission: %+v", got)
	}
	if got := historyOf(t, s, "gamma", time.Time{}); got != nil {
		t.Errorf("of an unknown cluster: %+v", got)
	}
}

func TestAddingPastJobsTwiceAddsNothing(t *testing.T) {
	dir := tempDir(t)
	files := 0
	rapid.Check(t, func(t *rapid.T) {
		files++
		s, err := store.Open(t.Context(), filepath.Join(dir, fmt.Sprintf("%d.db", files)), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close() //nolint:errcheck // what was read is compared
		picks := rapid.SliceOfN(rapid.IntRange(0, 20), 1, 30).Draw(t, "jobs")
		jobs := make([]record.HistoryJob, len(picks))
		distinct := map[int]bool{}
		for i, pick := range picks {
			jobs[i], distinct[pick] = past(pick), true
		}
		first, err := s.Learning.AddHistory(t.Context(), jobs)
		if err != nil || first != len(distinct) {
			t.Fatalf("added %d of %d, %v", first, len(distinct), err)
		}
		before := historyOf(t, s, "alpha", time.Time{})
		if again, err := s.Learning.AddHistory(t.Context(), before); err != nil || again != 0 {
			t.Fatalf("added %d again, %v", again, err)
		}
		if !reflect.DeepEqual(before, historyOf(t, s, "alpha", time.Time{})) {
			t.Fatal("what was there changed")
		}
	})
}

func TestOfABatchWithAPastJobThatCannotBeNothingIsStored(t *testing.T) {
	for name, spoil := range map[string]func(*record.HistoryJob){
		"no cluster":         func(p *record.HistoryJob) { p.Cluster = "" },
		"no id":              func(p *record.HistoryJob) { p.JobID = "" },
		"no submission":      func(p *record.HistoryJob) { p.Submitted = time.Time{} },
		"ended before start": func(p *record.HistoryJob) { p.Ended = p.Started.Add(-time.Second) },
		"started too early":  func(p *record.HistoryJob) { p.Started = p.Submitted.Add(-time.Second) },
		"negative energy":    func(p *record.HistoryJob) { p.EnergyJ = live.Known(-1) },
	} {
		s, _ := openNew(t)
		wrong := past(1)
		spoil(&wrong)
		if _, err := s.Learning.AddHistory(t.Context(), []record.HistoryJob{past(0), wrong}); !errors.Is(err,
			record.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if got := historyOf(t, s, "alpha", time.Time{}); got != nil {
			t.Errorf("%s: %d are stored", name, len(got))
		}
	}
}

func TestAVisitorEndsAHistory(t *testing.T) {
	s, _ := openNew(t)
	if _, err := s.Learning.AddHistory(t.Context(), []record.HistoryJob{past(0), past(1)}); err != nil {
		t.Fatal(err)
	}
	enough, seen := errors.New("enough"), 0
	all := &store.HistoryFilter{Cluster: "alpha"}
	err := s.Learning.VisitHistory(t.Context(), all, func(record.HistoryJob) error {
		seen++
		return enough
	})
	if !errors.Is(err, enough) || seen != 1 {
		t.Errorf("%d seen, %v", seen, err)
	}
}

func TestPastJobsArePrunedByWhenTheyWereImported(t *testing.T) {
	now := start.AddDate(3, 0, 0) // long after the jobs
	s := open(t, filepath.Join(tempDir(t), "epd.db"), &store.Options{Now: func() time.Time { return now }})
	const jobs = 1500 // more than a step
	all := make([]record.HistoryJob, jobs)
	for i := range all {
		all[i] = past(i)
	}
	if _, err := s.Learning.AddHistory(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Prune(t.Context(), now); err != nil || p.History != 0 {
		t.Errorf("pruned %+v, %v", p, err)
	}
	if p, err := s.Prune(t.Context(), now.Add(time.Second)); err != nil || p.History != jobs {
		t.Errorf("pruned %+v, %v", p, err)
	}
}

func BenchmarkAddHistory(b *testing.B) {
	s, _ := openNew(b)
	const batch = 1000
	jobs := make([]record.HistoryJob, batch)
	for n := 0; b.Loop(); n++ {
		for i := range jobs {
			jobs[i] = past(n*batch + i)
		}
		if _, err := s.Learning.AddHistory(b.Context(), jobs); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(math.Round(float64(b.N)*batch/b.Elapsed().Seconds()), "jobs/s")
}

func TestTheLatestPastJobsAreThoseSubmittedLast(t *testing.T) {
	s, _ := openNew(t)
	other := past(9)
	other.Cluster = "beta"
	if _, err := s.Learning.AddHistory(t.Context(),
		[]record.HistoryJob{past(2), past(0), past(1), past(3), other}); err != nil {
		t.Fatal(err)
	}
	for latest, want := range map[int]int{0: 4, 1: 1, 3: 3, 4: 4, 5: 4} {
		var got []string
		err := s.Learning.VisitHistory(t.Context(), &store.HistoryFilter{Cluster: "alpha", Latest: latest},
			func(p record.HistoryJob) error {
				got = append(got, p.JobID)
				return nil
			})
		last := past(3)
		if err != nil || len(got) != want || got[want-1] != last.JobID {
			t.Errorf("latest %d: %v, %v", latest, got, err)
		}
	}
}
