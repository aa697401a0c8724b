package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// snapshot is what is known of a cluster.
type snapshot struct {
	At, NodesAt time.Time
	Jobs        []slurm.Job
	Nodes       []slurm.Node
}

func (t *Tracker) snapshot() snapshot {
	queue, nodes := t.Status()
	s := snapshot{At: queue.At, NodesAt: nodes.At, Nodes: t.Nodes()}
	for _, j := range t.table.all() {
		job := j.job.Slurm(j.id)
		job.Priority = j.priority
		s.Jobs = append(s.Jobs, job)
	}
	return s
}

// status returns how a tracker fares.
func (t *Tracker) status() (s struct {
	Queue, Nodes epdapi.SyncStatus
	Jobs         int
},
) {
	s.Queue, s.Nodes = t.Status()
	s.Jobs, _ = t.Len()
	return s
}

// newTracker returns a tracker of a cluster without records and agents.
func newTracker(change func(*Options)) *Tracker {
	o := Options{
		Records: none{}, Cluster: "alpha", ResolveTimeout: epdapi.JobWait, Fresh: time.Minute,
		StoreTimeout: time.Second / 4,
		Clock:        time.Now, Log: slog.New(slog.DiscardHandler),
		SeeUser: func(uint32, string, string, string) {}, Reports: func(string) bool { return false },
		Write: func(*record.Job) {}, LowerGCPercent: func() (end func()) { return func() {} },
	}
	if change != nil {
		change(&o)
	}
	return New(&o)
}

// none are no records.
type none struct{ Records }

// squeue is a source that is asked in a bubble.
type squeue struct {
	mu     sync.Mutex
	list   []slurm.Job
	err    error
	took   time.Duration
	asked  []time.Time // for jobs
	nodes  int         // questions for nodes
	during func()
	unread slurm.Unread
}

func (s *squeue) EachJob(ctx context.Context, each func(*slurm.Job) error) (slurm.Unread, error) {
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
		return slurm.Unread{}, ctx.Err()
	}
	for i := range list {
		if err := each(&list[i]); err != nil {
			return slurm.Unread{}, err
		}
	}
	return s.unread, err
}

func (s *squeue) Nodes(context.Context) ([]slurm.Node, slurm.Unread, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes++
	return []slurm.Node{{Name: "n1"}, {Name: "n2"}}, slurm.Unread{}, s.err
}

// pass lets a bubble's time pass.
func pass(d time.Duration) { <-time.After(d) }

// pauses returns those between questions for jobs.
func (s *squeue) pauses() []time.Duration {
	var all []time.Duration
	for i := 1; i < len(s.asked); i++ {
		all = append(all, s.asked[i].Sub(s.asked[i-1]))
	}
	return all
}

// bubble runs a sync for a time.
func bubble(t *testing.T, s *squeue, every, lasts time.Duration, look func(*testing.T, *Tracker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newTracker(nil)
		ctx, cancel := context.WithTimeout(t.Context(), lasts)
		defer cancel()
		c.Sync(ctx, s, every)
		look(t, c)
	})
}

func TestASyncAsksForJobsEveryTenSecondsAndForNodesEveryMinute(t *testing.T) {
	s := &squeue{list: []slurm.Job{{ID: 1, State: slurm.JobState{Base: slurm.Pending}}}}
	bubble(t, s, 0, 95*time.Second, func(t *testing.T, c *Tracker) {
		t.Helper()
		if len(s.asked) != 10 || s.nodes != 2 || slices.Max(s.pauses()) != 10*time.Second {
			t.Errorf("asked %d times for jobs, %d times for nodes, %v apart", len(s.asked),
				s.nodes, s.pauses())
		}
		snapshot, status := c.snapshot(), c.status()
		if !snapshot.At.Equal(s.asked[9]) || len(snapshot.Jobs) != 1 || len(snapshot.Nodes) != 2 ||
			!status.Queue.At.Equal(snapshot.At) || status.Jobs != 1 {
			t.Errorf("%+v %+v", snapshot, status)
		}
	})
}

func TestASlurmThatFailsIsAskedLessOftenAndShownAsTrouble(t *testing.T) {
	s := &squeue{list: []slurm.Job{{ID: 1, State: slurm.JobState{Base: slurm.Running}}}}
	synctest.Test(t, func(t *testing.T) {
		c := newTracker(nil)
		ctx, cancel := context.WithCancel(t.Context())
		var syncing sync.WaitGroup
		syncing.Go(func() { c.Sync(ctx, s, 10*time.Second) })
		pass(time.Second)
		s.mu.Lock()
		s.err = slurm.ErrUnreachable
		s.mu.Unlock()
		pass(5 * time.Minute)
		status := c.status()
		if status.Queue.Failures < 3 || status.Queue.Trouble == "" || status.Nodes.Failures == 0 ||
			status.Jobs != 1 || time.Since(status.Queue.At) < 5*time.Minute {
			t.Errorf("while Slurm is away: %+v", status)
		}
		want := []time.Duration{
			10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute,
		}
		if got := s.pauses()[:5]; !slices.Equal(got, want) {
			t.Errorf("asked %v apart", got)
		}
		s.mu.Lock()
		s.err = nil
		s.mu.Unlock()
		pass(75 * time.Second)
		if status := c.status(); status.Queue.Failures != 0 || status.Queue.Trouble != "" ||
			time.Since(status.Queue.At) > 15*time.Second {
			t.Errorf("after it is back: %+v", status)
		}
		cancel()
		syncing.Wait()
	})
}

func TestASlurmThatIsSlowIsLeftAloneForLonger(t *testing.T) {
	s := &squeue{took: 4 * time.Second}
	bubble(t, s, 10*time.Second, 3*time.Minute, func(t *testing.T, _ *Tracker) {
		t.Helper()
		if got := s.pauses()[0]; got != 40*time.Second {
			t.Errorf("asked again after %s", got)
		}
	})
	hung := &squeue{took: time.Hour}
	bubble(t, hung, 10*time.Second, 150*time.Second, func(t *testing.T, c *Tracker) {
		t.Helper()
		if status := c.status(); status.Queue.Failures != 1 || status.Queue.Trouble == "" {
			t.Errorf("%+v", status)
		}
	})
}

// TestAListThatTakesMoreThanAMinuteIsTaken: squeue prints 1,500 jobs of Slurm 24.11 in .46 s, and 100,000 in
// half a minute, on a head node that has little else to do.
func TestAListThatTakesMoreThanAMinuteIsTaken(t *testing.T) {
	long := &squeue{
		list: []slurm.Job{{ID: 1, State: slurm.JobState{Base: slurm.Running}}}, took: 100 * time.Second,
	}
	bubble(t, long, 10*time.Second, 2*time.Minute, func(t *testing.T, c *Tracker) {
		t.Helper()
		if status := c.status(); status.Queue.At.IsZero() || status.Jobs != 1 {
			t.Errorf("%+v", status)
		}
	})
}

func TestAListThatAnotherAsksForServesTheControllerToo(t *testing.T) {
	s := &squeue{
		list: []slurm.Job{{ID: 1, State: slurm.JobState{Base: slurm.Running}}}, took: time.Second / 10,
	}
	synctest.Test(t, func(t *testing.T) {
		c := newTracker(nil)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		var both sync.WaitGroup
		both.Go(func() { c.Sync(ctx, s, 10*time.Second) })
		also, heard, failed := c.Tee(s), 0, errors.New("the steerer's own")
		both.Go(func() {
			for ctx.Err() == nil {
				pass(20 * time.Second)
				_, _ = also.EachJob(ctx, func(*slurm.Job) error { heard++; return nil })
				if got := c.snapshot(); ctx.Err() == nil && time.Since(got.At) > time.Second {
					t.Errorf("the controller's list is %s old", time.Since(got.At))
				}
			}
		})
		pass(5 * time.Second)
		s.mu.Lock()
		s.list = append(s.list, slurm.Job{ID: 2, State: slurm.JobState{Base: slurm.Pending}})
		s.mu.Unlock()
		if _, err := also.EachJob(ctx, func(*slurm.Job) error { return failed }); !errors.Is(err, failed) ||
			len(c.snapshot().Jobs) != 1 || c.status().Queue.Failures > 0 {
			t.Errorf("a list that was refused half-way: %v, %+v", err, c.status().Queue)
		}
		both.Wait()
		// One list every ten seconds, whoever asks, and the one above.
		if n := len(s.asked); n < 12 || n > 14 || heard < 8 || len(c.snapshot().Jobs) != 2 {
			t.Errorf("asked %d times in 2 minutes, %v apart; the other one heard %d jobs; known: %+v", n,
				s.pauses(), heard, c.snapshot().Jobs)
		}
	})
}

func TestAJobThatVanishedFromTheQueueIsForgotten(t *testing.T) {
	job := func(id slurm.JobID, state slurm.State) slurm.Job {
		return slurm.Job{ID: id, State: slurm.JobState{Base: state}}
	}
	s := &squeue{list: []slurm.Job{
		job(1, slurm.Running), job(2, slurm.Pending), job(3, slurm.Running), job(4, slurm.Completed),
	}}
	bubble(t, s, 0, 5*time.Second, func(t *testing.T, c *Tracker) {
		t.Helper()
		s.list = []slurm.Job{job(2, slurm.Running), job(3, slurm.Failed), job(5, slurm.Pending)}
		if err := c.syncJobs(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		queued := c.snapshot().Jobs
		ids := make([]slurm.JobID, 0, len(queued))
		for _, j := range queued {
			ids = append(ids, j.ID)
		}
		if !slices.Equal(ids, []slurm.JobID{2, 5}) || c.table.endedJob(3).job == nil ||
			c.table.endedJob(4).job != nil {
			t.Errorf("known: %v", ids)
		}
		s.err = errors.New("no answer")
		if err := c.syncJobs(t.Context(), s); err == nil || len(c.snapshot().Jobs) != 2 {
			t.Error("what is known doesn't stay without an answer")
		}
	})
}

func TestAJobWhoseRecordCantBeReadIsntGone(t *testing.T) {
	job := func(id slurm.JobID) slurm.Job {
		return slurm.Job{
			ID:    id,
			State: slurm.JobState{Base: slurm.Running},
		}
	}
	for name, c := range map[string]struct {
		unread slurm.Unread
		slurm  map[slurm.JobID]bool // jobs that Slurm has, each asked for alone
		want   []slurm.JobID
	}{
		"all are read":                  {slurm.Unread{}, nil, []slurm.JobID{1}},
		"the record says its number":    {slurm.Unread{Records: 1, Names: []string{"2"}}, nil, []slurm.JobID{1, 2}},
		"it doesn't, and one is there":  {slurm.Unread{Records: 1}, map[slurm.JobID]bool{3: true}, []slurm.JobID{1, 3}},
		"it doesn't, and Slurm is deaf": {slurm.Unread{Records: 1}, map[slurm.JobID]bool{0: true}, []slurm.JobID{1, 2, 3}},
	} {
		s := &squeue{list: []slurm.Job{job(1), job(2), job(3)}}
		tracker := newTracker(func(o *Options) {
			o.Resolve = func(_ context.Context, id slurm.JobID) (slurm.Job, error) {
				switch {
				case c.slurm[0]:
					return slurm.Job{}, slurm.ErrUnreachable
				case !c.slurm[id]:
					return slurm.Job{}, slurm.ErrNotFound
				}
				return job(id), nil
			}
		})
		err := tracker.syncJobs(t.Context(), s)
		s.list, s.unread = s.list[:1], c.unread
		if err = errors.Join(err, tracker.syncJobs(t.Context(), s)); err != nil {
			t.Fatal(err)
		}
		var known []slurm.JobID
		for id := range tracker.All() {
			known = append(known, id)
		}
		if status, _ := tracker.Status(); !slices.Equal(known, c.want) || status.Unread != c.unread.Records {
			t.Errorf("%s: known %v, want %v; %+v", name, known, c.want, status)
		}
	}
}

// requeuedBefore has one run of job 7, which was queued anew after it.
type requeuedBefore struct{ Records }

func (requeuedBefore) JobRows(_ context.Context, f *store.JobFilter, _ int64, _ int) (store.ListedPage,
	error,
) {
	if f.ID != 7 {
		return store.ListedPage{}, nil
	}
	return store.ListedPage{Jobs: []store.ListedJob{{
		Job:   record.Job{ID: 7, Submitted: time.Unix(1000, 0), State: string(slurm.Requeued)},
		Shown: string(slurm.Requeued),
	}}}, nil
}

func TestARequeuedJobThatIsCancelledWhileItWaitsIsShownSo(t *testing.T) {
	var written []string
	tracker := newTracker(func(o *Options) {
		o.Records = requeuedBefore{}
		o.Write = func(j *record.Job) { written = append(written, fmt.Sprintf("%d %s", j.ID, j.State)) }
	})
	job := func(id slurm.JobID, restarts int) slurm.Job {
		return slurm.Job{
			ID: id, State: slurm.JobState{Base: slurm.Cancelled}, Restarts: restarts, Submit: time.Unix(2000, 0),
			Requested: slurm.TRES{"gres/gpu": 1}, Name: "a",
		}
	}
	s := &squeue{list: []slurm.Job{job(7, 1), job(8, 1), job(9, 0)}} // 8 ran without epd, and 9 never
	for range 2 {
		if err := tracker.syncJobs(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(written, []string{"7 CANCELLED"}) {
		t.Errorf("written: %v", written)
	}
}

// halfList is a source whose list breaks off.
type halfList struct {
	*squeue
	err error
}

func (h halfList) EachJob(ctx context.Context, each func(*slurm.Job) error) (slurm.Unread, error) {
	unread, err := h.squeue.EachJob(ctx, each)
	return unread, errors.Join(err, h.err)
}

func TestAListThatBreaksOffChangesNothing(t *testing.T) {
	job := func(id slurm.JobID, state slurm.State) slurm.Job {
		return slurm.Job{ID: id, ArrayTask: -1, State: slurm.JobState{Base: state}}
	}
	s := &squeue{list: []slurm.Job{
		job(1, slurm.Pending), job(2, slurm.Running), job(3, slurm.Running), job(4, slurm.Completed),
	}}
	bubble(t, s, 0, 5*time.Second, func(t *testing.T, c *Tracker) {
		t.Helper()
		token := strings.Repeat("a", 16)
		c.table.putToken(token, submitted{at: time.Now().Add(-time.Hour).Unix()})
		before := c.snapshot()
		scripted := job(1, slurm.Running)
		scripted.AdminComment = "epplan:" + token
		s.list = []slurm.Job{scripted, job(2, slurm.Failed), job(5, slurm.Pending)}
		if err := c.syncJobs(t.Context(), halfList{s, slurm.ErrUnreachable}); !errors.Is(err,
			slurm.ErrUnreachable) {
			t.Error(err)
		}
		_, kept := c.table.token(token)
		if !reflect.DeepEqual(c.snapshot().Jobs, before.Jobs) || c.table.endedJob(2).job != nil ||
			c.table.endedJob(4).job == nil || !kept {
			t.Errorf("before %+v\nafter %+v", before.Jobs, c.snapshot().Jobs)
		}
		if err := c.syncJobs(t.Context(), s); err != nil {
			t.Error(err)
		}
		_, kept = c.table.token(token)
		if j := c.table.get(1); len(c.snapshot().Jobs) != 2 || c.table.endedJob(2).job == nil || kept ||
			!j.Scripted {
			t.Errorf("the whole list: %+v", c.snapshot().Jobs)
		}
	})
}

func TestAnOldAnswerNeverReplacesANewerOne(t *testing.T) {
	old := slurm.Job{ID: 1, State: slurm.JobState{Base: slurm.Pending}, TimeLimit: live.LimitOf(time.Hour)}
	young := old
	young.State.Base, young.TimeLimit = slurm.Running, live.LimitOf(10*time.Minute)
	synctest.Test(t, func(t *testing.T) {
		c := newTracker(func(o *Options) {
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
		if j := c.table.get(1); j == nil || j.state.state() != slurm.Running ||
			j.Limit != live.LimitOf(10*time.Minute) {
			t.Errorf("the list's answer: %+v", j)
		}
		if c.table.get(2) == nil {
			t.Error("a job that came after the list is forgotten")
		}
		s.during = nil
		if err := c.syncJobs(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if j := c.table.get(1); j.state.state() != slurm.Pending || c.table.get(2) != nil {
			t.Error("a newer list doesn't count")
		}
	})
}

func TestASnapshotHasWhatSlurmSaid(t *testing.T) {
	at := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	want := slurm.Job{
		ID: 12, ArrayJob: 10, ArrayTask: 4, ArrayTasks: "", HetJob: 9, HetOffset: 1, Name: "näme\nJobId=1",
		Comment:      "epplan:off",
		AdminComment: "epplan:abc", User: "ada", UID: 1000, Account: "physics", Partition: "gpu",
		QOS:   "normal",
		State: slurm.JobState{Base: slurm.Completed, Flags: []slurm.State{slurm.Completing}}, Reason: "None",
		Priority: 4294901751, Nice: -5,
		TimeLimit: live.LimitOf(90 * time.Minute), Submit: at, Start: at.Add(time.Hour),
		Deadline: at.Add(time.Hour * 24),
		Restarts: 2, NodeList: "n[1-2]", Nodes: []string{"n1", "n2"}, NodeCount: 2, Features: "a&b",
		Prefer: "c", GPUFreq: "low",
		TRESPerNode: "gres:gpu:h200:2", Requested: slurm.TRES{
			"cpu": 4, "gres/gpu": 4, "mem": 8 << 30, "gres/gpu:h200": 4,
		},
		Allocated: slurm.TRES{"cpu": 4, "billing": 0.5},
	}
	c := newTracker(nil)
	c.Observe([]slurm.Job{
		want, {
			ID: 11, ArrayTask: -1, ArrayTasks: "2-4%2",
			State: slurm.JobState{Base: slurm.Pending}, Submit: at,
		},
	})
	got := c.snapshot().Jobs
	if len(got) != 2 || !reflect.DeepEqual(got[1], want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if j := got[0]; j.ID != 11 || j.ArrayTasks != "2-4%2" || !j.Held() || j.TimeLimit.IsSet() ||
		!j.Start.IsZero() || j.GPUCount() != 0 {
		t.Errorf("%+v", j)
	}
	for range c.All() {
		break
	}
}
