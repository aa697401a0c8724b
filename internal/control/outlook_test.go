package control

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// outlook is that of the job that [running] starts.
func (r *rig) outlook() live.Outlook {
	r.t.Helper()
	o, err := r.Outlook(context.Background(), epdapi.OutlookRequest{Job: 100, Node: "n1", RunID: ask(100).RunID})
	if err != nil {
		r.t.Fatal(err)
	}
	return o
}

// running returns a controller with a running job at low clocks, just decided about.
func running(t *testing.T) (*rig, *ctld, live.Decision) {
	t.Helper()
	r, s := newSlurmRig(t, false)
	for id := range slurm.JobID(6) {
		s.set(r.job(id+1, func(j *slurm.Job) { j.State.Base = slurm.Completed }))
		r.record(r.ran(r.decide(ask(id+1)), ask(id+1).RunID, memoryBound()), 0)
	}
	now := r.clock.read()
	r.clock.move(now.Truncate(time.Second).Add(time.Second).Sub(now)) // Slurm's times have no fractions
	j := r.job(100, func(j *slurm.Job) { j.Start = r.clock.read() })
	s.set(j)
	d := r.decide(ask(100))
	if !d.Apply {
		t.Fatal(d.Reason)
	}
	return r, s, d
}

func near(t *testing.T, what string, got live.Number, want float64) {
	t.Helper()
	if v, ok := got.Get(); !ok || math.Abs(v-want) > 1e-6*want {
		t.Errorf("%s is %s s, want %v", what, got, want)
	}
}

// nearLimit is [near] of a limit.
func nearLimit(t *testing.T, what string, got live.Limit, want float64) {
	t.Helper()
	if !got.IsSet() || got.IsUnlimited() || math.Abs(got.Seconds()-want) > max(1e-6*want, 1e-9) {
		t.Errorf("%s is %s, want %v s", what, got, want)
	}
}

func TestALimitThatAnAdministratorShortenedIsSeen(t *testing.T) {
	r, s, d := running(t)
	first := r.outlook()
	if first.Life != live.LifeAlive {
		t.Errorf("%+v", first)
	}
	nearLimit(t, "the limit", first.Limit, 3600)
	near(t, "the upper time", first.UpperS, d.Upper.Or(0))
	s.change(100, func(j *slurm.Job) { j.TimeLimit = live.LimitOf(10 * time.Minute) })
	nearLimit(t, "what was asked less than a minute ago", r.outlook().Limit, 3600)
	if err := takeList(context.Background(), r.Controller, s); err != nil {
		t.Fatal(err)
	}
	nearLimit(t, "the shortened limit", r.outlook().Limit, 600)
	s.change(100, func(j *slurm.Job) { j.TimeLimit = live.LimitOf(20 * time.Minute) })
	r.clock.move(2 * time.Minute) // no sync: Slurm is asked
	nearLimit(t, "the limit that is asked for", r.outlook().Limit, 1200)
	s.change(100, func(j *slurm.Job) { j.TimeLimit = live.Unlimited() })
	r.clock.move(2 * time.Minute)
	if o := r.outlook(); o.Life != live.LifeAlive || !o.Limit.IsUnlimited() {
		t.Errorf("without a limit: %+v", o)
	}
}

// What was decided by is shown beside what Slurm has now: a limit that `scontrol update` changed.
func TestAJobIsShownWithTheLimitThatSlurmHasNow(t *testing.T) {
	r, s, _ := running(t)
	r.flush()
	inSeconds := func(s float64) string { return fmt.Sprintf("%.0f s", s) }
	show := func() *epdapi.JobView {
		t.Helper()
		view, err := r.Queries.Job(t.Context(), query.ForEPD(), 100)
		if err != nil {
			t.Fatal(err)
		}
		nearLimit(t, "what was decided by", view.Job.Limit, 3600)
		return view
	}
	if view := show(); view.LimitNow != nil || view.LimitWords(inSeconds) != "3600 s" {
		t.Errorf("unchanged: %v, %s", view.LimitNow, view.LimitWords(inSeconds))
	}
	for limit, want := range map[live.Limit]string{
		live.LimitOf(time.Minute): "60 s now, 3600 s when its clocks were decided",
		live.Unlimited():          "unlimited now, 3600 s when its clocks were decided",
	} {
		s.change(100, func(j *slurm.Job) { j.TimeLimit = limit })
		if err := takeList(t.Context(), r.Controller, s); err != nil {
			t.Fatal(err)
		}
		if view := show(); view.LimitNow == nil || *view.LimitNow != limit ||
			view.LimitWords(inSeconds) != want {
			t.Errorf("%v, %s, want %s", view.LimitNow, view.LimitWords(inSeconds), want)
		}
	}
}

func TestADeadlineShortensTheLimitFromTheRunsBegin(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*slurm.Job)
		want   float64
	}{
		"none":             {func(*slurm.Job) {}, 3600},
		"Slurm's":          {func(j *slurm.Job) { j.Deadline = j.Start.Add(30 * time.Minute) }, 1800},
		"the user's":       {func(j *slurm.Job) { j.Comment = "epplan:deadline=+40m" }, 2400},
		"far away":         {func(j *slurm.Job) { j.Deadline = j.Start.Add(30 * time.Hour) }, 3600},
		"over":             {func(j *slurm.Job) { j.Deadline = j.Start.Add(-time.Minute) }, 0},
		"a late Prolog":    {func(j *slurm.Job) { j.Start = j.Start.Add(-10 * time.Minute) }, 3000},
		"another mode":     {func(j *slurm.Job) { j.Partition = "debug" }, 3600},
		"other devices":    {func(j *slurm.Job) { j.Allocated = slurm.TRES{"gres/gpu": 4} }, 3600},
		"opted out by now": {func(j *slurm.Job) { j.Comment = "epplan:off" }, 3600},
	} {
		t.Run(name, func(t *testing.T) {
			r, s, _ := running(t)
			margin := r.Settings().Safety.DeadlineMargin
			s.change(100, tc.change)
			r.clock.move(2 * time.Minute)
			want := tc.want
			if want < 3000 && want > 0 {
				want -= margin
			}
			nearLimit(t, "the limit", r.outlook().Limit, want)
		})
	}
}

func TestARunIsGoneWhenItsJobEndedOrWasQueuedAnew(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*rig, *ctld)
		want   live.Life
	}{
		"running": {func(*rig, *ctld) {}, live.LifeAlive},
		"suspended": {func(_ *rig, s *ctld) {
			s.change(100, func(j *slurm.Job) { j.State.Base = slurm.Suspended })
		}, live.LifeAlive},
		"its Epilogs run": {func(_ *rig, s *ctld) {
			s.change(100, func(j *slurm.Job) { j.State = slurm.ParseJobState("FAILED", "COMPLETING") })
		}, live.LifeAlive},
		"ended": {func(_ *rig, s *ctld) {
			s.change(100, func(j *slurm.Job) { j.State.Base = slurm.Failed })
		}, live.LifeGone},
		"forgotten": {func(_ *rig, s *ctld) { s.purge(100) }, live.LifeGone},
		"requeued": {func(r *rig, s *ctld) {
			s.change(100, func(j *slurm.Job) {
				j.State.Base, j.Restarts, j.Submit, j.Start = slurm.Pending, 1, r.clock.read(),
					r.clock.read().Add(time.Hour)
			})
		}, live.LifeGone},
		"running anew": {func(r *rig, s *ctld) {
			s.change(100, func(j *slurm.Job) {
				j.Restarts, j.Submit, j.Start = 1, r.clock.read(), r.clock.read()
			})
		}, live.LifeGone},
		"another job": {func(r *rig, s *ctld) {
			s.change(100, func(j *slurm.Job) {
				j.Name, j.Submit, j.Start = "other", r.clock.read(), r.clock.read()
			})
		}, live.LifeGone},
		"waits, says Slurm": {func(_ *rig, s *ctld) {
			s.change(100, func(j *slurm.Job) { j.State.Base, j.Start = slurm.Pending, time.Time{} })
		}, live.LifeGone},
		"Slurm is away": {func(_ *rig, s *ctld) { s.fail(slurm.ErrUnreachable) }, live.LifeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			r, s, d := running(t)
			r.clock.move(10 * time.Minute)
			tc.change(r, s)
			o := r.outlook()
			if o.Life != tc.want {
				t.Errorf("%s, want %s", o.Life, tc.want)
			}
			if tc.want == live.LifeUnknown {
				near(t, "the upper time", o.UpperS, d.Upper.Or(0))
			}
			if known := o.Limit.IsSet(); known != (tc.want == live.LifeAlive) {
				t.Errorf("%+v", o)
			}
		})
	}
}

func TestOfARunThatIsGoneSlurmSaysWhenItEnded(t *testing.T) {
	const later = 5 * time.Minute
	for name, tc := range map[string]struct {
		change func(s *ctld, at time.Time)
		known  bool
	}{
		"running": {func(s *ctld, at time.Time) {
			s.change(100, func(j *slurm.Job) { j.End = at.Add(time.Hour) })
		}, false},
		"ended": {func(s *ctld, at time.Time) {
			s.change(100, func(j *slurm.Job) { j.State.Base, j.End = slurm.Completed, at })
		}, true},
		"requeued": {func(s *ctld, at time.Time) {
			s.change(100, func(j *slurm.Job) {
				j.State.Base, j.Restarts, j.Submit, j.Start, j.End = slurm.Pending, 1, at,
					at.Add(time.Hour), time.Time{}
			})
		}, true},
		"completed after a requeue": {func(s *ctld, at time.Time) {
			s.change(100, func(j *slurm.Job) {
				j.State.Base, j.Restarts, j.Submit, j.Start, j.End = slurm.Completed, 1, at, at,
					at.Add(time.Minute)
			})
		}, true},
		"another job": {func(s *ctld, at time.Time) {
			s.change(100, func(j *slurm.Job) {
				j.State.Base, j.Submit, j.Start, j.End = slurm.Completed, at, at, at
			})
		}, false},
		"forgotten": {func(s *ctld, _ time.Time) { s.purge(100) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, s, _ := running(t)
			at := r.clock.read().Add(later).UTC()
			r.clock.move(2 * later)
			tc.change(s, at)
			if o := r.outlook(); tc.known && !o.Ended.Equal(at) || !tc.known && !o.Ended.IsZero() ||
				(o.Life == live.LifeGone) != (name != "running") {
				t.Errorf("%+v, want an end at %s: %v", o, at, tc.known)
			}
		})
	}
}

func TestARunThatJustBeganIsNotGoneBecauseOfAnOldAnswer(t *testing.T) {
	r, s, _ := running(t)
	s.change(100, func(j *slurm.Job) { j.State.Base, j.Start = slurm.Pending, time.Time{} })
	r.Jobs.Observe([]slurm.Job{s.jobs[100]})
	r.clock.move(5 * time.Second)
	if o := r.outlook(); o.Life != live.LifeUnknown {
		t.Errorf("%+v", o)
	}
}

func TestAnOutlookGoesByTheModelInUseNow(t *testing.T) {
	r, s, _ := running(t)
	before := r.outlook().UpperS.Or(0)
	s.set(r.job(50, func(j *slurm.Job) { j.State.Base = slurm.Completed }))
	r.record(r.ran(r.decide(ask(50)), ask(50).RunID, memoryBound().Scale(1.08)), 0)
	after := r.outlook().UpperS.Or(0)
	if !(after > before*1.001) {
		t.Errorf("upper time %v s before, %v s after a longer run", before, after)
	}
	if err := r.useModel(r.key(), 0, ""); err != nil {
		t.Fatal(err)
	}
	if o := r.outlook(); o.UpperS != (live.Number{}) {
		t.Errorf("without a model: %+v", o)
	}
}

func TestAnOutlookIsTheSameAfterARestart(t *testing.T) {
	r, s, _ := running(t)
	before := r.outlook()
	r.flush()
	again := rigAt(t, r.path, r.clock, enforceAll, func(o *Options) { o.Resolve = s.resolve })
	if after := again.outlook(); after != before {
		t.Errorf("%+v, before the restart %+v", after, before)
	}
	c := again.serve(t)
	var o live.Outlook
	if status := c.post("/v1/outlook", epdapi.OutlookRequest{Job: 100, Node: "n1", RunID: "run-100"},
		&o); status != http.StatusOK || o != before {
		t.Errorf("by HTTP: %d, %+v", status, o)
	}
	for name, q := range map[string]epdapi.OutlookRequest{
		"no job": {Node: "n1", RunID: "x"}, "no node": {Job: 1, RunID: "x"}, "no run": {Job: 1, Node: "n1"},
		"newline": {Job: 1, Node: "n1", RunID: "x\n"}, "huge": {Job: math.MaxUint32, Node: "n1", RunID: "x"},
	} {
		if _, err := again.Outlook(context.Background(), q); !errors.Is(err, ErrRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Slurm's last list, of before the end, says that it runs.
func TestWhenARunEndedIsAskedAtItsEpilog(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*slurm.Job)
		ended  bool
		asked  int
	}{
		"22.05": {func(j *slurm.Job) {
			j.State.Base, j.End = slurm.Completing, j.Start.Add(5*time.Second)
		}, true, 1},
		"23.11 on": {func(j *slurm.Job) {
			j.State, j.End = slurm.ParseJobState("COMPLETED", "COMPLETING"), j.Start.Add(5*time.Second)
		}, true, 1},
		"all is over": {func(j *slurm.Job) {
			j.State.Base, j.End = slurm.Completed, j.Start.Add(5*time.Second)
		}, true, 1},
		"it runs, and that's when its limit is over": {func(j *slurm.Job) {
			j.End = j.Start.Add(time.Hour)
		}, false, 1},
		"an old answer about the run before": {func(j *slurm.Job) {
			j.State.Base, j.End = slurm.Completing, j.Start.Add(-time.Minute)
		}, false, 1},
		"requeued: it is to start": {func(j *slurm.Job) {
			j.State.Base, j.Restarts, j.Start, j.End = slurm.Completing, 1, j.Start.Add(time.Minute),
				j.Start.Add(2*time.Hour)
		}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, s, _ := running(t)
			began := r.clock.read()
			r.clock.move(20 * time.Second)
			s.change(100, c.change)
			before := s.asked
			if o := r.outlook(); o.Life != live.LifeAlive || !o.Ended.IsZero() || s.asked != before {
				t.Errorf("as it was: %+v, asked %d times", o, s.asked-before)
			}
			question := epdapi.OutlookRequest{Job: 100, Node: "n1", RunID: ask(100).RunID, Ending: true}
			o, err := r.Outlook(context.Background(), question)
			if err != nil || s.asked-before != c.asked {
				t.Fatalf("%v, asked %d times", err, s.asked-before)
			}
			want := time.Time{}
			if c.ended {
				want = began.Add(5 * time.Second)
			}
			if !o.Ended.Equal(want) {
				t.Errorf("ended %s, want %s", o.Ended, want)
			}
			if _, err := r.Outlook(context.Background(), question); err != nil ||
				name != "all is over" && c.ended && s.asked-before != 1 {
				t.Errorf("%v, asked %d times", err, s.asked-before)
			}
		})
	}
}
