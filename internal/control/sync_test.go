package control

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// memory are records that are kept nowhere, for controllers in a bubble of
// time.
type memory struct {
	Records
	mu     sync.Mutex
	pruned []time.Time // up to when
	oldest time.Time   // record
	err    error
}

func (*memory) Trouble() error                                               { return nil }
func (*memory) ModelsInUse(context.Context, string) ([]record.Model, error)  { return nil, nil }
func (*memory) ModelsOut(context.Context, string) ([]record.ModelOut, error) { return nil, nil }
func (*memory) PutJob(context.Context, *record.Job) error                    { return nil }
func (*memory) PutDecision(context.Context, *record.Decision) (int64, error) { return 1, nil }
func (*memory) DecisionsOfJob(context.Context, string, int64) ([]record.Decision, error) {
	return nil, nil
}

func (*memory) Ended(context.Context, string, int) ([]record.Ended, error)       { return nil, nil }
func (*memory) Features(context.Context, string, int) ([]record.Features, error) { return nil, nil }
func (*memory) History(context.Context, string, time.Time, func(record.Past) error) error {
	return nil
}

func (m *memory) Prune(ctx context.Context, before time.Time) (store.Pruned, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pruned = append(m.pruned, before)
	if m.oldest.Before(before) {
		m.oldest = time.Time{}
	}
	return store.Pruned{Outcomes: 1}, errors.Join(m.err, ctx.Err())
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

// bare is a controller without a database.
func bare(t *testing.T, change func(*Options)) (*Controller, *memory) {
	t.Helper()
	m := &memory{}
	o := Options{Store: m, Cluster: "alpha"}
	if change != nil {
		change(&o)
	}
	c, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c, m
}

// squeue is a source that is asked in a bubble.
type squeue struct {
	mu     sync.Mutex
	list   []slurm.Job
	err    error
	took   time.Duration
	asked  []time.Time // for jobs
	nodes  int         // questions for nodes
	during func()
}

func (s *squeue) EachJob(ctx context.Context, each func(*slurm.Job) error) error {
	s.mu.Lock()
	s.asked = append(s.asked, time.Now())
	list, err := slices.Clone(s.list), s.err
	s.mu.Unlock() // what waits for a lock stops the bubble's time
	if s.during != nil {
		s.during()
	}
	select {
	case <-time.After(s.took):
	case <-ctx.Done():
		return ctx.Err()
	}
	for i := range list {
		if err := each(&list[i]); err != nil {
			return err
		}
	}
	return err
}

func (s *squeue) Nodes(context.Context) ([]slurm.Node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes++
	return []slurm.Node{{Name: "n1"}, {Name: "n2"}}, s.err
}

// pass lets a bubble's time pass.
func pass(d time.Duration) { <-time.After(d) }

// pauses are those between questions for jobs.
func (s *squeue) pauses() []time.Duration {
	var all []time.Duration
	for i := 1; i < len(s.asked); i++ {
		all = append(all, s.asked[i].Sub(s.asked[i-1]))
	}
	return all
}

// bubble runs a sync for a time.
func bubble(t *testing.T, s *squeue, every, lasts time.Duration, look func(*testing.T, *Controller)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, _ := bare(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), lasts)
		defer cancel()
		c.Sync(ctx, s, every)
		look(t, c)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestASyncAsksForJobsEveryTenSecondsAndForNodesEveryMinute(t *testing.T) {
	s := &squeue{list: []slurm.Job{{ID: 1, State: slurm.JobState{Base: slurm.Pending}}}}
	bubble(t, s, 0, 95*time.Second, func(t *testing.T, c *Controller) {
		t.Helper()
		if len(s.asked) != 10 || s.nodes != 2 || slices.Max(s.pauses()) != 10*time.Second {
			t.Errorf("asked %d times for jobs, %d times for nodes, %v apart", len(s.asked), s.nodes, s.pauses())
		}
		snapshot, status := c.Snapshot(), c.Status(t.Context())
		if !snapshot.At.Equal(s.asked[9]) || len(snapshot.Jobs) != 1 || len(snapshot.Nodes) != 2 || !status.Queue.At.Equal(snapshot.At) || status.Jobs != 1 {
			t.Errorf("%+v %+v", snapshot, status)
		}
	})
}

func TestASlurmThatFailsIsAskedLessOftenAndShownAsTrouble(t *testing.T) {
	s := &squeue{list: []slurm.Job{{ID: 1, State: slurm.JobState{Base: slurm.Running}}}}
	synctest.Test(t, func(t *testing.T) {
		c, _ := bare(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var syncing sync.WaitGroup
		syncing.Go(func() { c.Sync(ctx, s, 10*time.Second) })
		pass(time.Second)
		s.mu.Lock()
		s.err = slurm.ErrUnreachable
		s.mu.Unlock()
		pass(5 * time.Minute)
		status := c.Status(ctx)
		if status.Queue.Failures < 3 || status.Queue.Trouble == "" || status.Nodes.Failures == 0 || status.Jobs != 1 || time.Since(status.Queue.At) < 5*time.Minute {
			t.Errorf("while Slurm is away: %+v", status)
		}
		want := []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute}
		if got := s.pauses()[:5]; !slices.Equal(got, want) {
			t.Errorf("asked %v apart", got)
		}
		s.mu.Lock()
		s.err = nil
		s.mu.Unlock()
		pass(75 * time.Second)
		if status := c.Status(ctx); status.Queue.Failures != 0 || status.Queue.Trouble != "" || time.Since(status.Queue.At) > 15*time.Second {
			t.Errorf("after it is back: %+v", status)
		}
		cancel()
		syncing.Wait()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestASlurmThatIsSlowIsLeftAloneForLonger(t *testing.T) {
	s := &squeue{took: 4 * time.Second}
	bubble(t, s, 10*time.Second, 3*time.Minute, func(t *testing.T, _ *Controller) {
		t.Helper()
		if got := s.pauses()[0]; got != 40*time.Second {
			t.Errorf("asked again after %s", got)
		}
	})
	hung := &squeue{took: time.Hour}
	bubble(t, hung, 10*time.Second, 90*time.Second, func(t *testing.T, c *Controller) {
		t.Helper()
		if status := c.Status(t.Context()); status.Queue.Failures != 1 || status.Queue.Trouble == "" {
			t.Errorf("%+v", status)
		}
	})
}

func TestAListThatAnotherAsksForServesTheControllerToo(t *testing.T) {
	s := &squeue{list: []slurm.Job{{ID: 1, State: slurm.JobState{Base: slurm.Running}}}, took: time.Second / 10}
	synctest.Test(t, func(t *testing.T) {
		c, _ := bare(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		var both sync.WaitGroup
		both.Go(func() { c.Sync(ctx, s, 10*time.Second) })
		also, heard, failed := c.Overheard(s), 0, errors.New("the steerer's own")
		both.Go(func() {
			for ctx.Err() == nil {
				pass(20 * time.Second)
				_ = also.EachJob(ctx, func(*slurm.Job) error { heard++; return nil })
				if got := c.Snapshot(); ctx.Err() == nil && time.Since(got.At) > time.Second {
					t.Errorf("the controller's list is %s old", time.Since(got.At))
				}
			}
		})
		pass(5 * time.Second)
		s.mu.Lock()
		s.list = append(s.list, slurm.Job{ID: 2, State: slurm.JobState{Base: slurm.Pending}})
		s.mu.Unlock()
		if err := also.EachJob(ctx, func(*slurm.Job) error { return failed }); !errors.Is(err, failed) || len(c.Snapshot().Jobs) != 1 || c.Status(ctx).Queue.Failures > 0 {
			t.Errorf("a list that was refused half-way: %v, %+v", err, c.Status(ctx).Queue)
		}
		both.Wait()
		// One list every ten seconds, whoever asks, and the one above.
		if n := len(s.asked); n < 12 || n > 14 || heard < 8 || len(c.Snapshot().Jobs) != 2 {
			t.Errorf("asked %d times in 2 minutes, %v apart; the other one heard %d jobs; known: %+v", n, s.pauses(), heard, c.Snapshot().Jobs)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAJobThatVanishedFromTheQueueIsForgotten(t *testing.T) {
	job := func(id slurm.JobID, state slurm.State) slurm.Job {
		return slurm.Job{ID: id, State: slurm.JobState{Base: state}}
	}
	s := &squeue{list: []slurm.Job{job(1, slurm.Running), job(2, slurm.Pending), job(3, slurm.Running), job(4, slurm.Completed)}}
	bubble(t, s, 0, 5*time.Second, func(t *testing.T, c *Controller) {
		t.Helper()
		s.list = []slurm.Job{job(2, slurm.Running), job(3, slurm.Failed), job(5, slurm.Pending)}
		if err := c.syncJobs(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		queued := c.Snapshot().Jobs
		ids := make([]slurm.JobID, 0, len(queued))
		for _, j := range queued {
			ids = append(ids, j.ID)
		}
		if !slices.Equal(ids, []slurm.JobID{2, 5}) || c.jobs.over(3).job == nil || c.jobs.over(4).job != nil {
			t.Errorf("known: %v", ids)
		}
		s.err = errors.New("no answer")
		if err := c.syncJobs(t.Context(), s); err == nil || len(c.Snapshot().Jobs) != 2 {
			t.Error("what is known doesn't stay without an answer")
		}
	})
}

// halfList is a source whose list breaks off.
type halfList struct {
	*squeue
	err error
}

func (h halfList) EachJob(ctx context.Context, each func(*slurm.Job) error) error {
	return errors.Join(h.squeue.EachJob(ctx, each), h.err)
}

func TestAListThatBreaksOffChangesNothing(t *testing.T) {
	job := func(id slurm.JobID, state slurm.State) slurm.Job {
		return slurm.Job{ID: id, ArrayTask: -1, State: slurm.JobState{Base: state}}
	}
	s := &squeue{list: []slurm.Job{job(1, slurm.Pending), job(2, slurm.Running), job(3, slurm.Running), job(4, slurm.Completed)}}
	bubble(t, s, 0, 5*time.Second, func(t *testing.T, c *Controller) {
		t.Helper()
		token := strings.Repeat("a", 16)
		c.jobs.putToken(token, submitted{at: time.Now().Add(-time.Hour).Unix()})
		before := c.Snapshot()
		scripted := job(1, slurm.Running)
		scripted.AdminComment = "epplan:" + token
		s.list = []slurm.Job{scripted, job(2, slurm.Failed), job(5, slurm.Pending)}
		if err := c.syncJobs(t.Context(), halfList{s, slurm.ErrUnreachable}); !errors.Is(err, slurm.ErrUnreachable) {
			t.Error(err)
		}
		_, kept := c.jobs.token(token)
		if !reflect.DeepEqual(c.Snapshot().Jobs, before.Jobs) || c.jobs.over(2).job != nil || c.jobs.over(4).job == nil || !kept {
			t.Errorf("before %+v\nafter %+v", before.Jobs, c.Snapshot().Jobs)
		}
		if err := c.syncJobs(t.Context(), s); err != nil {
			t.Error(err)
		}
		_, kept = c.jobs.token(token)
		if j := c.jobs.get(1); len(c.Snapshot().Jobs) != 2 || c.jobs.over(2).job == nil || kept || !j.scripted {
			t.Errorf("the whole list: %+v", c.Snapshot().Jobs)
		}
	})
}

func TestAnOldAnswerNeverReplacesANewerOne(t *testing.T) {
	old := slurm.Job{ID: 1, State: slurm.JobState{Base: slurm.Pending}, TimeLimit: live.LimitOf(time.Hour)}
	young := old
	young.State.Base, young.TimeLimit = slurm.Running, live.LimitOf(10*time.Minute)
	synctest.Test(t, func(t *testing.T) {
		c, _ := bare(t, func(o *Options) {
			o.Resolve = func(_ context.Context, id slurm.JobID) (slurm.Job, error) {
				j := young
				j.ID = id
				return j, nil
			}
		})
		s := &squeue{list: []slurm.Job{old}, took: 3 * time.Second}
		s.during = func() { // asked for later than the list, and answered sooner
			for _, id := range []slurm.JobID{1, 2} {
				if _, err := c.resolve(t.Context(), id); err != nil {
					t.Error(err)
				}
			}
		}
		if err := c.syncJobs(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if j := c.jobs.get(1); j == nil || j.state.state() != slurm.Running || j.limit != live.LimitOf(10*time.Minute) {
			t.Errorf("the list's answer: %+v", j)
		}
		if c.jobs.get(2) == nil {
			t.Error("a job that came after the list is forgotten")
		}
		s.during = nil
		if err := c.syncJobs(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if j := c.jobs.get(1); j.state.state() != slurm.Pending || c.jobs.get(2) != nil {
			t.Error("a newer list doesn't count")
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestASnapshotHasWhatSlurmSaid(t *testing.T) {
	at := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	want := slurm.Job{
		ID: 12, ArrayJob: 10, ArrayTask: 4, ArrayTasks: "", HetJob: 9, HetOffset: 1, Name: "näme\nJobId=1", Comment: "epplan:off",
		AdminComment: "epplan:abc", User: "ada", UID: 1000, Account: "physics", Partition: "gpu", QOS: "normal",
		State: slurm.JobState{Base: slurm.Completed, Flags: []slurm.State{slurm.Completing}}, Reason: "None", Priority: 4294901751, Nice: -5,
		TimeLimit: live.LimitOf(90 * time.Minute), Submit: at, Start: at.Add(time.Hour), Deadline: at.Add(time.Hour * 24),
		Restarts: 2, NodeList: "n[1-2]", Nodes: []string{"n1", "n2"}, NodeCount: 2, Features: "a&b", Prefer: "c", GPUFreq: "low",
		TRESPerNode: "gres:gpu:h200:2", Requested: slurm.TRES{"cpu": 4, "gres/gpu": 4, "mem": 8 << 30, "gres/gpu:h200": 4},
		Allocated: slurm.TRES{"cpu": 4, "billing": 0.5},
	}
	c, _ := bare(t, nil)
	defer c.Close(t.Context()) //nolint:errcheck // nothing was written
	c.Observe([]slurm.Job{want, {ID: 11, ArrayTask: -1, ArrayTasks: "2-4%2", State: slurm.JobState{Base: slurm.Pending}, Submit: at}})
	got := c.Snapshot().Jobs
	if len(got) != 2 || !reflect.DeepEqual(got[1], want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if j := got[0]; j.ID != 11 || j.ArrayTasks != "2-4%2" || !j.Held() || j.TimeLimit.IsSet() || !j.Start.IsZero() || j.GPUCount() != 0 {
		t.Errorf("%+v", j)
	}
	for range c.Queued() {
		break
	}
}

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
		if len(m.all()) != 3 || !m.all()[0].Equal(began.Add(10*time.Minute).AddDate(0, 0, -c.Settings().KeepDays)) || c.Settings().KeepDays != 400 {
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

func TestDecisionsWhoseOutcomeNeverComesAreForgottenAfterADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := bare(t, nil)
		decide := func(id slurm.JobID) {
			if _, err := c.Decide(t.Context(), &DecideRequest{Job: id, Node: "n1", RunID: "r", GPUModel: "V100", GPUs: 1}); err != nil {
				t.Fatal(err)
			}
		}
		decide(1)
		decide(2)
		c.Observe([]slurm.Job{{ID: 2, State: slurm.JobState{Base: slurm.Running}}})
		pass(25 * time.Hour)
		decide(3)
		c.tidy()
		if n := c.Status(t.Context()).Decided; n != 2 || c.decided[decisionKey{1, "n1"}] != nil || len(c.leads) != 2 {
			t.Errorf("%d decisions are kept, %d lead", n, len(c.leads))
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
