package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// ctld is a slurmctld with the jobs that it knows, and a slurmdbd.
type ctld struct {
	mu    sync.Mutex
	jobs  map[slurm.JobID]slurm.Job
	rows  []slurm.AccountingRecord
	err   error // for all questions
	asked int
	books int // questions to accounting
}

func (s *ctld) set(j slurm.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs == nil {
		s.jobs = make(map[slurm.JobID]slurm.Job)
	}
	s.jobs[j.ID] = j
}

func (s *ctld) change(id slurm.JobID, change func(*slurm.Job)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[id]
	change(&j)
	s.jobs[id] = j
}

func (s *ctld) purge(id slurm.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.jobs, id)
}

func (s *ctld) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *ctld) resolve(_ context.Context, id slurm.JobID) (slurm.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	j, ok := s.jobs[id]
	switch {
	case s.err != nil:
		return slurm.Job{}, s.err
	case !ok:
		return slurm.Job{}, fmt.Errorf("job %d: %w", id, slurm.ErrNotFound)
	}
	return j, nil
}

func (s *ctld) account(_ context.Context, since time.Time, only ...slurm.JobID) (slurm.Accounting, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.books++
	if s.err != nil {
		return slurm.Accounting{}, s.err
	}
	var a slurm.Accounting
	for _, row := range s.rows {
		if (len(only) == 0 || slices.Contains(only, row.ID)) && (row.End.IsZero() || row.End.After(since)) {
			a.Jobs = append(a.Jobs, row)
		}
	}
	return a, nil
}

// EachJob and Nodes make it a source.
func (s *ctld) EachJob(_ context.Context, each func(*slurm.Job) error) (slurm.Unread, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return slurm.Unread{}, s.err
	}
	for _, j := range s.jobs {
		if err := each(&j); err != nil {
			return slurm.Unread{}, err
		}
	}
	return slurm.Unread{}, nil
}

func (s *ctld) Nodes(context.Context) ([]slurm.Node, slurm.Unread, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []slurm.Node{{Name: "n1", CPUs: 8}}, slurm.Unread{}, s.err
}

// newSlurmRig returns a controller with a Slurm to ask.
func newSlurmRig(t *testing.T, accounts bool) (*rig, *ctld) {
	t.Helper()
	s := &ctld{}
	return newRig(t, func(o *Options) {
		o.Resolve = s.resolve
		if accounts {
			o.Account = s.account
		}
	}), s
}

// begin starts a job's first run and decides about it.
func (r *rig) begin(s *ctld, id slurm.JobID) (slurm.Job, *record.Outcome) {
	r.t.Helper()
	j := r.job(id, nil)
	r.clock.move(10 * time.Second)
	j.Start = r.clock.read()
	s.set(j)
	r.Jobs.Observe([]slurm.Job{j})
	d := r.decide(ask(id))
	o := r.ran(d, ask(id).RunID, memoryBound())
	o.ExitState, o.Started = "", d.Created
	return j, o
}

// patience is how long an outcome waits for Slurm to say how its job ended.
const patience = time.Minute

// endings are what Slurm says after a run, and what is recorded of it.
var endings = []struct {
	name    string
	slurm   func(*slurm.Job)
	want    string // exit state; empty: not yet
	later   string // after a minute of patience
	restart int
}{
	{name: "completed", slurm: func(j *slurm.Job) { j.State.Base = slurm.Completed }, want: "COMPLETED"},
	{name: "out of time", slurm: func(j *slurm.Job) { j.State.Base = slurm.Timeout }, want: "TIMEOUT"},
	{name: "cancelled", slurm: func(j *slurm.Job) { j.State.Base = slurm.Cancelled }, want: "CANCELLED"},
	{name: "node failed", slurm: func(j *slurm.Job) { j.State.Base = slurm.NodeFail }, want: "NODE_FAIL"},
	{name: "still running", slurm: func(*slurm.Job) {}, later: "FAILED"},
	{
		name:  "epilogs not done (23.11 on)",
		slurm: func(j *slurm.Job) { j.State = slurm.ParseJobState("COMPLETED", "COMPLETING") },
		later: "FAILED",
	},
	{
		name: "epilogs not done (22.05)", slurm: func(j *slurm.Job) { j.State.Base = slurm.Completing },
		later: "FAILED",
	},
	{
		name: "requeued", want: "REQUEUED",
		slurm: func(j *slurm.Job) {
			j.State.Base, j.Restarts, j.Submit, j.Start = slurm.Pending, 1, j.Start.Add(time.Minute),
				j.Start.Add(3*time.Minute)
		},
	},
	{
		name: "requeued and running again", want: "REQUEUED", restart: 1,
		slurm: func(j *slurm.Job) {
			j.Restarts, j.Submit, j.Start = 2, j.Start.Add(time.Minute), j.Start.Add(time.Minute)
		},
	},
	{
		name: "requeued at once and completed since", want: "REQUEUED",
		slurm: func(j *slurm.Job) {
			j.Restarts, j.State.Base, j.Submit, j.Start = 1, slurm.Completed, j.Start.Add(time.Second),
				j.Start.Add(time.Second)
		},
	},
	{
		name: "the id is another job's", want: "FAILED",
		slurm: func(j *slurm.Job) {
			j.Submit, j.Start, j.Name = j.Start.Add(time.Hour), j.Start.Add(time.Hour), "other"
		},
	},
	{
		name: "an old answer", later: "FAILED",
		slurm: func(j *slurm.Job) { j.State.Base, j.Start = slurm.Pending, time.Time{} },
	},
}

func TestAnOutcomeIsRecordedWithHowSlurmSaysThatItsJobEnded(t *testing.T) {
	for _, tc := range endings {
		t.Run(tc.name, func(t *testing.T) {
			r, s := newSlurmRig(t, false)
			j, o := r.begin(s, 7)
			s.change(7, tc.slurm)
			o.ExitState = "FAILED" // as far as the Epilog knew
			_, err := r.Record(context.Background(), o)
			if tc.want == "" {
				if !errors.Is(err, ErrNotYet) {
					t.Fatalf("at once: %v", err)
				}
				r.clock.move(patience - time.Second)
				if _, err := r.Record(context.Background(), o); !errors.Is(err, ErrNotYet) {
					t.Fatalf("after less than a minute: %v", err)
				}
				r.clock.move(time.Second)
				_, err = r.Record(context.Background(), o)
				tc.want = tc.later
			}
			if err != nil {
				t.Fatal(err)
			}
			all, err := r.store.OutcomesOfJob(context.Background(), "alpha", 7)
			if err != nil || len(all) != 1 {
				t.Fatalf("%d outcomes, %v", len(all), err)
			}
			if got := all[0]; got.ExitState != tc.want || got.Restart != tc.restart ||
				!got.Submitted.Equal(j.Submit) || got.DecisionID == 0 {
				t.Errorf("%s, restart %d, submitted %s; want %s, %d, %s", got.ExitState, got.Restart,
					got.Submitted, tc.want, tc.restart, j.Submit)
			}
		})
	}
}

// Slurm then has the job start before it was submitted.
func TestAJobThatWaitedWhileTheClockWasSetBackLastsAndEndsAsAnyOther(t *testing.T) {
	r, s := newSlurmRig(t, false)
	ahead := func(j *slurm.Job) { j.Submit = j.Submit.Add(time.Hour) }
	j := r.job(7, ahead)
	r.clock.move(10 * time.Second)
	j.Start = r.clock.read()
	s.set(j)
	r.Jobs.Observe([]slurm.Job{j})
	d := r.decide(ask(7))
	r.flush()
	r.clock.move(time.Second)
	second := rigAt(t, r.path, r.clock, enforceAll, func(o *Options) { o.Resolve = s.resolve })
	if again := second.decide(ask(7)); !again.Created.Equal(d.Created) {
		t.Errorf("after a restart it is decided anew: %+v, before: %+v", again, d)
	}
	look, err := r.Outlook(context.Background(), epdapi.OutlookRequest{Job: 7, Node: "n1", RunID: ask(7).RunID})
	if err != nil || look.Life != live.LifeAlive {
		t.Errorf("while it runs: %+v, %v", look, err)
	}
	o := r.ran(d, ask(7).RunID, memoryBound())
	o.ExitState, o.Started = "", d.Created
	s.change(7, func(j *slurm.Job) { j.State.Base = slurm.Completed })
	r.record(o, store.Stored)
	all, err := r.store.OutcomesOfJob(context.Background(), "alpha", 7)
	if err != nil || len(all) != 1 || all[0].ExitState != "COMPLETED" {
		t.Errorf("%+v, %v", all, err)
	}
}

// The Prolog of a run sees one restart less than its Epilog: neither is asked.
func TestBothRunsOfARequeuedJobAreRecordedAsTheyEnded(t *testing.T) {
	r, s := newSlurmRig(t, false)
	_, first := r.begin(s, 7)
	s.change(7, func(j *slurm.Job) {
		j.State.Base, j.Restarts, j.Submit, j.Start = slurm.Pending, 1, r.clock.read(), time.Time{}
	})
	r.record(first, store.Stored)
	r.clock.move(2 * time.Minute)
	s.change(7, func(j *slurm.Job) { j.State.Base, j.Start = slurm.Running, r.clock.read() })
	request := ask(7)
	request.RunID = "second"
	d := r.decide(request)
	second := r.ran(d, "second", memoryBound())
	s.change(7, func(j *slurm.Job) { j.State.Base = slurm.Completed })
	r.record(second, store.Stored)
	r.record(first, store.Repeated) // the first acknowledgement was lost
	all, err := r.store.OutcomesOfJob(context.Background(), "alpha", 7)
	if err != nil || len(all) != 2 || all[0].ExitState != "REQUEUED" || all[1].ExitState != "COMPLETED" ||
		all[0].Restart != 0 || all[1].Restart != 1 || all[0].DecisionID == all[1].DecisionID {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestAJobThatSlurmForgotIsLookedUpInAccounting(t *testing.T) {
	for name, tc := range map[string]struct {
		accounts bool
		rows     func(j slurm.Job, end time.Time) []slurm.AccountingRecord
		want     string // empty: not yet
	}{
		"no accounting": {want: "FAILED"},
		"accounting": {
			accounts: true, want: "TIMEOUT", rows: func(j slurm.Job, end time.Time) []slurm.AccountingRecord {
				return []slurm.AccountingRecord{
					{
						ID: 6, State: slurm.JobState{Base: slurm.Completed}, Submit: j.Submit,
						Start: j.Start, End: end,
					},
					{
						ID: 7, State: slurm.JobState{Base: slurm.Timeout}, Submit: j.Submit,
						Start: j.Start, End: end,
					},
				}
			},
		},
		"accounting of several runs": {
			accounts: true, want: "PREEMPTED",
			rows: func(j slurm.Job, end time.Time) []slurm.AccountingRecord {
				return []slurm.AccountingRecord{
					{
						ID: 7, State: slurm.JobState{Base: slurm.Preempted}, Submit: j.Submit,
						Start: j.Start, End: end,
					},
					{
						ID: 7, State: slurm.JobState{Base: slurm.Completed}, Submit: end,
						Start: end.Add(time.Hour), End: end.Add(2 * time.Hour),
					},
				}
			},
		},
		"accounting is late": {accounts: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := newSlurmRig(t, tc.accounts)
			j, o := r.begin(s, 7)
			o.ExitState = "FAILED"
			s.purge(7)
			if tc.rows != nil {
				s.rows = tc.rows(j, o.Ended)
			}
			_, err := r.Record(context.Background(), o)
			if tc.want == "" {
				if !errors.Is(err, ErrNotYet) {
					t.Fatalf("got %v", err)
				}
				r.clock.move(patience)
				tc.want = "FAILED"
				_, err = r.Record(context.Background(), o)
			}
			all, listed := r.store.OutcomesOfJob(context.Background(), "alpha", 7)
			if err != nil || listed != nil || len(all) != 1 || all[0].ExitState != tc.want {
				t.Errorf("%+v, %v, %v", all, err, listed)
			}
		})
	}
}

func TestARunThatAccountingAloneKnowsAsSuspendedIsSetAside(t *testing.T) {
	for _, suspended := range []time.Duration{0, time.Second} {
		r, s := newSlurmRig(t, true)
		j, o := r.begin(s, 7)
		s.purge(7)
		s.rows = []slurm.AccountingRecord{
			{
				ID: 7, State: slurm.JobState{Base: slurm.Completed}, Submit: j.Submit, Start: j.Start,
				End: o.Ended, Suspended: suspended,
			},
		}
		r.record(o, store.Stored)
		all, err := r.store.OutcomesOfJob(context.Background(), "alpha", 7)
		if err != nil || len(all) != 1 || all[0].ExitState != record.Completed {
			t.Fatalf("%+v, %v", all, err)
		}
		want := record.Restarted{}
		if suspended > 0 {
			want = record.Restarted{
				TimeS: o.TimeS, GPUEnergyJ: o.GPUEnergyJ, NodeEnergyJ: o.NodeEnergyJ, Suspended: true,
			}
		}
		if _, timed := all[0].TimeS.Get(); all[0].Restarted != want || timed != (suspended == 0) {
			t.Errorf("suspended for %v: %v, set aside %+v, want %+v", suspended, all[0].TimeS,
				all[0].Restarted, want)
		}
	}
}

func TestManyOutcomesOfForgottenJobsAskAccountingOnce(t *testing.T) {
	r, s := newSlurmRig(t, true)
	const jobs = 20
	all := make([]*record.Outcome, 0, jobs)
	for id := range slurm.JobID(jobs) {
		j, o := r.begin(s, id+1)
		s.purge(id + 1)
		s.rows = append(s.rows, slurm.AccountingRecord{
			ID: id + 1, State: slurm.JobState{Base: slurm.Completed}, Submit: j.Submit, Start: j.Start,
			End: o.Ended,
		})
		all = append(all, o)
	}
	for _, o := range all {
		r.record(o, store.Stored)
	}
	if s.books != 1 {
		t.Errorf("accounting was asked %d times", s.books)
	}
}

func TestASlurmThatIsAwayHoldsAnOutcomeBackForAMinute(t *testing.T) {
	r, s := newSlurmRig(t, true)
	_, o := r.begin(s, 7)
	o.ExitState = "FAILED"
	s.fail(slurm.ErrUnreachable)
	c := r.serve(t)
	if status := c.post("/v1/outcome", o, nil); status != http.StatusTooEarly {
		t.Errorf("status %d", status)
	}
	r.clock.move(30 * time.Second)
	s.fail(nil)
	s.change(7, func(j *slurm.Job) { j.State.Base = slurm.Completed })
	r.record(o, store.Stored)
	all, err := r.store.OutcomesOfJob(context.Background(), "alpha", 7)
	if err != nil || len(all) != 1 || all[0].ExitState != "COMPLETED" {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestTheClockOfANodeDoesNotDecideHowLongItsOutcomeWaits(t *testing.T) {
	for name, off := range map[string]time.Duration{"behind": -24 * time.Hour, "ahead": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			r, s := newSlurmRig(t, false)
			_, o := r.begin(s, 7)
			o.Started, o.Ended = o.Started.Add(off), o.Ended.Add(off)
			if _, err := r.Record(context.Background(), o); !errors.Is(err, ErrNotYet) {
				t.Errorf("at first: %v", err)
			}
			r.clock.move(patience)
			r.record(o, store.Stored)
		})
	}
}

func TestAnEndWithoutAStartAsksNobody(t *testing.T) {
	r, s := newSlurmRig(t, true)
	r.record(&record.Outcome{RunID: "stray", JobID: 7, Node: "n1", Unmatched: true, Ended: start},
		store.Stored)
	r.record(&record.Outcome{RunID: "nonsense", JobID: -7, Node: "n1", Ended: start}, store.Stored)
	if s.asked+s.books != 0 {
		t.Errorf("asked %d times", s.asked+s.books)
	}
}

func TestAnEndThatTheLastListNamesIsNotAskedFor(t *testing.T) {
	r, s := newSlurmRig(t, false)
	_, o := r.begin(s, 7)
	s.change(7, func(j *slurm.Job) { j.State.Base = slurm.OutOfMemory })
	if err := takeList(context.Background(), r.Controller, s); err != nil {
		t.Fatal(err)
	}
	before := s.asked
	r.record(o, store.Stored)
	all, err := r.store.OutcomesOfJob(context.Background(), "alpha", 7)
	if err != nil || len(all) != 1 || all[0].ExitState != "OUT_OF_MEMORY" || s.asked != before {
		t.Errorf("%+v, %v; asked %d times", all, err, s.asked-before)
	}
}
