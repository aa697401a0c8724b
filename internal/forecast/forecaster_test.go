package forecast

import (
	"context"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/predict"
	words "github.com/epplan/epplan/internal/predict/source"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/storetest"
	"github.com/epplan/epplan/live"
)

// start is when everything in the tests happens.
var start = time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)

// rig is a forecaster at work on a real store.
type rig struct {
	*Forecaster
	store   *store.Store
	pending sync.WaitGroup
}

func newRig(t *testing.T, change func(*Options)) *rig {
	t.Helper()
	storetest.NeedSQLite(t)
	clock := func() time.Time { return start }
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "epd.db"), &store.Options{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{store: s}
	settings := config.Default().Predict
	o := Options{
		Records: s.Learning, Cluster: "alpha", Settings: func() *config.Predict { return &settings },
		GPUPower: func() (idle, busy dvfsmodel.Watt) { return 0, dvfsmodel.Watt(math.Inf(1)) },
		Clock:    clock, Log: slog.New(slog.DiscardHandler),
		Pending: func() func() { r.pending.Add(1); return r.pending.Done },
	}
	if change != nil {
		change(&o)
	}
	r.Forecaster = New(o)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// submitted returns a job that nobody ran yet.
func submitted(uid uint32) *Job {
	return &Job{
		UID: uid, Name: "old", Partition: "gpu", GPUs: 1, Nodes: 1, Limit: live.LimitOf(time.Hour),
		Source: "000102030405060708090a0b", Script: "#!/bin/sh\ntrain --epochs 3\n",
	}
}

// panicking are records that do so when a training reads them.
type panicking struct{ Records }

func (panicking) EndedJobs(context.Context, string, int) ([]record.EndedJob, error) {
	panic("index out of range")
}

func TestAPanicWhileLearningEndsNothing(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.Records = panicking{o.Records}
		o.UserName = func(uid uint32) string {
			if uid == 7 {
				panic("no such table")
			}
			return "bob"
		}
	})
	err := r.Train(t.Context())
	if err == nil || !strings.Contains(err.Error(), "panic: index out of range") {
		t.Errorf("%v", err)
	}
	r.Predict(submitted(7)) // the name is looked up, which panics
	r.Predict(submitted(8)) // and so is this one, by the same goroutine
	r.pending.Wait()
	if user := r.users.get(8).name; user != "bob" {
		t.Errorf("uid 8 is %q", user)
	}
}

func TestUsersThatNoJobIsKnownOfAreAskedFor(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.UserName = func(uid uint32) string { return map[uint32]string{7: "bob"}[uid] }
	})
	past := record.HistoryJob{
		Cluster: "alpha", JobID: "77",
		Submitted: start.Add(-2 * time.Hour), Started: start.Add(-2 * time.Hour),
		Ended: start.Add(-time.Hour), User: "bob", Partition: "gpu", Name: []byte("old"),
		GPUs: live.Known(1), Nodes: live.Known(1), State: "COMPLETED",
	}
	if _, err := r.store.Learning.AddHistory(t.Context(), []record.HistoryJob{past}); err != nil {
		t.Fatal(err)
	}
	if err := r.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Predict(submitted(7)) // his name is looked up meanwhile
	r.pending.Wait()
	if user := r.users.get(7).name; user != "bob" {
		t.Errorf("uid 7 is %q", user)
	}
	f := r.Predict(submitted(7))
	if math.Abs(f.Time.Value-3600) > 1e-6 || f.Time.Rung != string(predict.Similar) {
		t.Errorf("%+v", f)
	}
}

func TestOfALongScriptWhatPredictionsLookAtIsKept(t *testing.T) {
	r := newRig(t, nil)
	job := submitted(1000)
	job.Script = "#!/bin/sh\npython train.py --epochs 3\n" + strings.Repeat("# word\n", embedScript/7) +
		"python other.py --layers 9\n"
	r.KeepScript(job, true)
	r.pending.Wait()
	kept, err := r.store.Learning.Features(t.Context(), "alpha", 10)
	if err != nil || len(kept) != 1 || kept[0].Source != job.Source {
		t.Fatal(kept, err)
	}
	want := toFloat32(words.Embed(words.Read(job.Script[:embedScript])))
	if !slices.Equal(kept[0].Script, want) {
		t.Error("features of a long script are not those that it is predicted by")
	}
}

// growing are records in which one more job has ended each time that they are read, and
// which keep what a training came to once they may.
type growing struct {
	Records
	reads int
	keep  chan struct{}
}

func (g *growing) EndedJobs(context.Context, string, int) ([]record.EndedJob, error) {
	g.reads++
	ended := make([]record.EndedJob, g.reads)
	for i := range ended {
		ended[i] = record.EndedJob{
			Job:   record.Job{ID: int64(i + 1), Submitted: start, User: "ada", GPUs: 1, Nodes: 1},
			Ended: start.Add(time.Hour), TimeS: live.Known(3600.0), Completed: true, Runs: 1,
		}
	}
	return ended, nil
}

func (*growing) VisitHistory(context.Context, *store.HistoryFilter, func(record.HistoryJob) error) error {
	return nil
}

func (*growing) Features(context.Context, string, int) ([]record.Features, error) { return nil, nil }

func (g *growing) PutModel(_ context.Context, m *record.Model) (int64, error) {
	if m.Samples == 1 {
		<-g.keep
	}
	return int64(m.Samples), nil
}

func TestATrainingIsNotUndoneByOneThatBeganBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := config.Default().Predict
		records := &growing{keep: make(chan struct{})}
		f := New(Options{
			Records: records, Cluster: "alpha", Settings: func() *config.Predict { return &settings },
			GPUPower: func() (idle, busy dvfsmodel.Watt) { return 0, dvfsmodel.Watt(math.Inf(1)) },
			Clock:    func() time.Time { return start }, Log: slog.New(slog.DiscardHandler),
		})
		var trainings sync.WaitGroup
		for range 2 {
			trainings.Go(func() {
				if err := f.Train(t.Context()); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		close(records.keep)
		trainings.Wait()
		if got := f.Status(); got.Version != 2 || got.Jobs != 2 {
			t.Errorf("version %d of %d jobs, want the second, of 2 jobs", got.Version, got.Jobs)
		}
	})
}
