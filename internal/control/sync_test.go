package control

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// memory are records that are kept nowhere, for controllers in a bubble of
// time.
type memory struct {
	everything
	mu     sync.Mutex
	pruned []time.Time // up to when
	oldest time.Time   // record
	err    error

	compacted      []time.Time // up to when
	oldestInDetail time.Time
	shrunk         int
}

func (*memory) WriteProblem() error                                         { return nil }
func (*memory) ModelsInUse(context.Context, string) ([]record.Model, error) { return nil, nil }

func (*memory) RetiredModels(context.Context, string) ([]record.RetiredModel, error) { return nil, nil }
func (*memory) PutJob(context.Context, *record.Job) error                            { return nil }
func (*memory) PutDecision(context.Context, *record.Decision) (int64, error)         { return 1, nil }

func (*memory) DecisionsOfJob(context.Context, string, int64) ([]record.Decision, error) {
	return nil, nil
}

func (*memory) EndedJobs(context.Context, string, int) ([]record.EndedJob, error) { return nil, nil }

func (*memory) Features(context.Context, string, int) ([]record.Features, error) { return nil, nil }

func (*memory) VisitHistory(
	context.Context, *store.HistoryFilter, func(record.HistoryJob) error,
) error {
	return nil
}

func (m *memory) Prune(ctx context.Context, before time.Time) (store.PruneResult, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pruned = append(m.pruned, before)
	if m.oldest.Before(before) {
		m.oldest = time.Time{}
	}
	return store.PruneResult{Outcomes: 1}, errors.Join(m.err, ctx.Err())
}

func (m *memory) Compact(ctx context.Context, before time.Time) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.compacted = append(m.compacted, before)
	if m.oldestInDetail.Before(before) {
		m.oldestInDetail = time.Time{}
	}
	return 1, errors.Join(m.err, ctx.Err())
}

func (m *memory) OldestInDetail(context.Context) (time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.oldestInDetail, nil
}

func (m *memory) Shrink(context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shrunk++
	return 0, nil
}

func (m *memory) Oldest(context.Context) (time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.oldest, nil
}

// all is up to when records were removed.
func (m *memory) all() []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.pruned)
}

func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// bare returns a controller without a database.
func bare(t *testing.T, change func(*Options)) (*Controller, *memory) {
	t.Helper()
	m := &memory{}
	o := Options{Records: recordsIn(m), Cluster: "alpha"}
	if change != nil {
		change(&o)
	}
	c, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c, m
}

// pass lets a bubble's time pass.
func pass(d time.Duration) { <-time.After(d) }

func TestOldRecordsAreRemovedDailyAndNeverWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c, m := bare(t, nil)
		pass(9 * time.Minute)
		if len(m.all()) != 0 {
			t.Error("old records are removed right at the start")
		}
		pass(2*24*time.Hour + 2*time.Minute)
		synctest.Wait()
		if len(m.all()) != 3 ||
			!m.all()[0].Equal(began.Add(10*time.Minute).AddDate(0, 0, -c.Settings().KeepDays)) ||
			c.Settings().KeepDays != 400 {
			t.Errorf("removed up to %v", m.all())
		}
		m.fail(store.ErrBusy)
		pass(24*time.Hour + time.Minute)
		before := len(m.all())
		pass(5 * time.Hour)
		if n := len(m.all()) - before; n != 5 {
			t.Errorf("tried %d times in 5 hours after a failure", n)
		}
		forever := *c.Settings()
		forever.KeepDays = 0
		if err := c.Reload(func() (*Settings, error) { return &forever, nil }); err != nil {
			t.Fatal(err)
		}
		before = len(m.all())
		pass(2 * 24 * time.Hour)
		if len(m.all()) != before {
			t.Error("records that are kept for ever are removed")
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		pass(2 * 24 * time.Hour)
		if len(m.all()) != before {
			t.Error("records are removed after the end")
		}
	})
}

func TestAClockThatIsYearsAheadCostsAWeekOfRecordsAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c, m := bare(t, func(o *Options) {
			o.Clock = func() time.Time { return time.Now().AddDate(10, 0, 0) }
		})
		m.mu.Lock()
		m.oldest = began.AddDate(0, 0, -390) // nothing is to go yet
		m.mu.Unlock()
		pass(11 * time.Minute)
		want := []time.Time{began.AddDate(0, 0, -383), began.AddDate(0, 0, -373)}
		if got := m.all(); !slices.EqualFunc(got, want[:1], time.Time.Equal) {
			t.Errorf("removed up to %v, want %v", got, want[:1])
		}
		m.mu.Lock()
		m.oldest = began.AddDate(0, 0, -380)
		m.mu.Unlock()
		pass(time.Hour)
		if got := m.all(); !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Errorf("an hour later removed up to %v, want %v", got, want)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestOldRunsAreCompactedDailyAtMostAWeekOfThemAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c, m := bare(t, nil)
		first := began.AddDate(0, 0, -400)
		m.oldestInDetail = first
		forever := *c.Settings()
		forever.KeepDays = 0 // which doesn't keep them from it
		if err := c.Reload(func() (*Settings, error) { return &forever, nil }); err != nil {
			t.Fatal(err)
		}
		pass(70*time.Minute + time.Second)
		synctest.Wait()
		m.mu.Lock()
		want := []time.Time{first.Add(7 * 24 * time.Hour), began.Add(70*time.Minute).AddDate(0, 0, -90)}
		if !slices.EqualFunc(m.compacted, want, time.Time.Equal) || m.shrunk != 2 {
			t.Errorf("compacted up to %v, want %v; room was given back %d times", m.compacted, want, m.shrunk)
		}
		m.mu.Unlock()
		whole := forever
		whole.DetailDays = 0
		if err := c.Reload(func() (*Settings, error) { return &whole, nil }); err != nil {
			t.Fatal(err)
		}
		pass(2 * 24 * time.Hour)
		m.mu.Lock()
		if len(m.compacted) != 2 {
			t.Errorf("compacted up to %v, though all is kept in detail", m.compacted)
		}
		m.mu.Unlock()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestDecisionsWhoseOutcomeNeverComesAreForgottenAfterADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := bare(t, nil)
		decide := func(id slurm.JobID) {
			if _, err := c.Decide(t.Context(),
				&epdapi.DecideRequest{Job: id, Node: "n1", RunID: "r", GPUModel: "V100", GPUs: 1}); err != nil {
				t.Fatal(err)
			}
		}
		decide(1)
		decide(2)
		c.Jobs.Observe([]slurm.Job{{ID: 2, State: slurm.JobState{Base: slurm.Running}}})
		pass(25 * time.Hour)
		decide(3)
		c.decider.ForgetStale()
		if n := c.status().Decided; n != 2 || c.decider.Kept(1, "n1") != nil {
			t.Errorf("%d decisions are kept", n)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
