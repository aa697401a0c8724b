package slurmqueue_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/liveplan"
	"github.com/epplan/epplan/internal/slurmqueue"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// site is what a planner works with.
type site struct {
	slurmqueue.LivePlanner
	live  config.Live
	queue *epdapi.Queue
	err   error
	now   time.Time
	asked int
	terms *slurmqueue.PlanTerms
}

func newSite() *site {
	s := &site{
		terms: usual(),
		live:  config.Default().Live, now: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC),
		queue: &epdapi.Queue{
			Nodes: v100s(1), Jobs: []epdapi.QueuedJob{waits(1, 1, 1000, 100), waits(2, 1, 10, 50)},
		},
	}
	s.InForce = new(liveplan.InForce)
	s.live.Mode, s.live.Pick.Policy = live.Advise, "value"
	s.Queue = func(context.Context) (*epdapi.Queue, error) {
		s.asked++
		return s.queue, s.err
	}
	s.Settings = func() (*config.Live, *slurmqueue.PlanTerms) { return &s.live, s.terms }
	s.Clock = func() time.Time { return s.now }
	return s
}

func TestTheOrderFollowsTheConfiguredPolicy(t *testing.T) {
	s := newSite()
	if again := s.Renew(t.Context()); again != time.Minute {
		t.Errorf("again in %s", again)
	}
	if r := s.Ranking(); r == nil || r.Policy != "value" ||
		!maps.Equal(r.Place, map[slurm.JobID]int{2: 0, 1: 1}) || r.Trouble != "" || !r.At.Equal(s.now) ||
		!r.Until.Equal(s.now.Add(10*time.Minute)) {
		t.Errorf("%+v", r)
	}
	s.live.Pick.Policy, s.queue.At = "simple", s.now.Add(-20*time.Second)
	s.Renew(t.Context())
	if r := s.Ranking(); !maps.Equal(r.Place, map[slurm.JobID]int{1: 0, 2: 1}) || !r.At.Equal(s.queue.At) {
		t.Errorf("%+v", r) // jobs that came within these seconds aren't in it
	}
	asked := s.asked
	s.live.Pick.Policy = config.PickDeadline
	if s.Renew(t.Context()); s.Ranking() != nil {
		t.Errorf("for deadlines: %+v", s.Ranking())
	}
	s.live.Pick.Policy, s.live.Mode = "simple", live.Observe
	if s.Renew(t.Context()); s.Ranking() != nil || s.asked != asked {
		t.Errorf("while observing: %+v, asked %d times", s.Ranking(), s.asked)
	}
}

func TestAnOrderThatCantBeRenewedIsKeptForAWhile(t *testing.T) {
	s := newSite()
	s.Renew(t.Context())
	first := s.Ranking()
	s.now, s.err = s.now.Add(time.Minute), errors.New("slurm doesn't answer")
	if again := s.Renew(t.Context()); again > 10*time.Second {
		t.Errorf("again in %s", again)
	}
	if r := s.Ranking(); !maps.Equal(r.Place, first.Place) || r.Trouble != "slurm doesn't answer" ||
		!r.Until.Equal(first.Until) || first.Trouble != "" {
		t.Errorf("%+v", r)
	}
	s.live.Pick.Policy = "simple" // another policy's order is none of this one
	s.Renew(t.Context())
	if r := s.Ranking(); len(r.Place) != 0 || r.Policy != "simple" || r.Trouble == "" {
		t.Errorf("%+v", r)
	}
	s.err = nil
	s.Renew(t.Context())
	if r := s.Ranking(); len(r.Place) != 2 || r.Trouble != "" {
		t.Errorf("%+v", r)
	}
	s.live.Pick.Policy = "nonsense"
	s.Renew(t.Context())
	if r := s.Ranking(); len(r.Place) != 0 || !strings.Contains(r.Trouble, "nonsense") {
		t.Errorf("%+v", r)
	}
}

func TestAPolicyThatPanicsIsOneThatFailed(t *testing.T) {
	s := newSite()
	s.Renew(t.Context())
	first := s.Ranking()
	s.Queue = func(context.Context) (*epdapi.Queue, error) { panic("index out of range") }
	for range 2 {
		if again := s.Renew(t.Context()); again > 10*time.Second {
			t.Errorf("again in %s", again)
		}
		if r := s.Ranking(); !maps.Equal(r.Place, first.Place) || r.Trouble != "panic: index out of range" {
			t.Errorf("%+v", r)
		}
	}
}

func TestTheOrderIsMadeAnewEverySoOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute+time.Second)
		defer cancel()
		s.Run(ctx)
		if s.asked != 6 {
			t.Errorf("asked %d times in five minutes", s.asked)
		}
	})
}

func TestAnOrderThatTakesTooLongIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		s.Queue = func(ctx context.Context) (*epdapi.Queue, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		begun := time.Now()
		s.Clock = nil
		again := s.Renew(t.Context())
		if r, took := s.Ranking(), time.Since(begun); took != 10*time.Second || again != 9*took ||
			!strings.Contains(r.Trouble, "deadline exceeded") {
			t.Errorf("after %s, again in %s: %+v", took, again, r)
		}
	})
}
