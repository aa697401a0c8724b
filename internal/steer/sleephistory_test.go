package steer_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/slurm"
)

// learning returns a cluster whose nodes may sleep after a second, as soon as it pays.
func learning(names ...string) *world {
	w := sleeper(names...)
	w.settings.Live.SleepAfter, w.settings.Live.SleepLearn = 1, true
	w.suspend, w.resume = 20*time.Second, 40*time.Second
	return w
}

// busy lets all nodes run a job for ten seconds, and then nothing for so long.
func (w *world) busy(t *testing.T, s *steer.Steerer, idle time.Duration) {
	t.Helper()
	for _, n := range w.nodes {
		n.State, n.CPUsInUse = slurm.NodeState{Base: "ALLOCATED"}, 8
	}
	step(t, s)
	w.now = w.now.Add(10 * time.Second)
	for _, n := range w.nodes {
		n.State, n.CPUsInUse = slurm.NodeState{Base: "IDLE"}, 0
	}
	step(t, s)
	w.now = w.now.Add(idle)
}

func TestANodeSleepsOnceIdlingHasCostAsMuchAsSleeping(t *testing.T) {
	w := learning("n1", "n2")
	s := w.open(t)
	step(t, s)
	w.now = w.now.Add(58 * time.Second)
	if step(t, s); w.asleep() != nil {
		t.Errorf("%q sleep before 60 s, which suspending and resuming take", w.asleep())
	}
	w.now = w.now.Add(2 * time.Second)
	if step(t, s); len(w.asleep()) != 1 {
		t.Errorf("%q sleep", w.asleep())
	}
}

func TestNodesThatAreSoonNeededStayAwakeLonger(t *testing.T) {
	w := learning("n1", "n2")
	s := w.open(t)
	step(t, s)
	for range 6 { // the longer gaps cost less than idling for the shorter one and then sleeping
		w.busy(t, s, 20*time.Second)
		w.busy(t, s, 70*time.Second)
	}
	w.busy(t, s, 65*time.Second)
	if step(t, s); w.asleep() != nil {
		t.Errorf("%q sleep, although a job comes after 70 s", w.asleep())
	}
	w.now = w.now.Add(10 * time.Second)
	if step(t, s); len(w.asleep()) != 1 {
		t.Errorf("%q sleep: beyond 70 s no job has come", w.asleep())
	}
}

func TestNodesThatMayComeBackTooLateStayAwake(t *testing.T) {
	w := learning("n1", "n2")
	w.settings.Live.WakeWait = 59
	s := w.open(t)
	step(t, s)
	w.rest(t, s, time.Hour)
	st := s.Status()
	if w.asleep() != nil || len(st.Notes) != 1 || !strings.Contains(st.Notes[0], "60 s") ||
		!strings.Contains(st.Notes[0], "wake_wait_s is 59") {
		t.Errorf("%q sleep, notes %q", w.asleep(), st.Notes)
	}
}

func TestNodesThatCameBackTooLateSleepNoMore(t *testing.T) {
	w := learning("n1", "n2")
	w.settings.Live.WakeWait = 100
	s := w.open(t)
	step(t, s)
	w.rest(t, s, 4*time.Minute)
	if !slices.Equal(w.asleep(), []string{"n1"}) {
		t.Fatalf("%q sleep", w.asleep())
	}
	w.nodes["n1"].State = slurm.NodeState{Base: "ALLOCATED", Flags: []string{"POWERING_UP"}}
	w.nodes["n1"].CPUsInUse = 8
	w.now = w.now.Add(90 * time.Second)
	step(t, s)
	w.nodes["n1"].State.Flags = nil
	step(t, s)
	if st := s.Status(); st.Wakes != 1 || st.WakeS < 90 || st.WakeS > 93 {
		t.Errorf("%d wakes, the longest %v s", st.Wakes, st.WakeS)
	}
	w.nodes["n1"].State, w.nodes["n1"].CPUsInUse = slurm.NodeState{Base: "IDLE"}, 0
	w.rest(t, s, time.Hour)
	if st := s.Status(); w.asleep() != nil || len(st.Notes) != 1 ||
		!strings.Contains(st.Notes[0], "what was seen") {
		t.Errorf("%q sleep, notes %q", w.asleep(), st.Notes)
	}
}

func TestASleepingNodeIsWokenWhereTheBoundIsLowered(t *testing.T) {
	w := learning("n1", "n2")
	s := w.open(t)
	step(t, s)
	w.rest(t, s, 4*time.Minute)
	if len(w.asleep()) != 1 {
		t.Fatalf("%q sleep", w.asleep())
	}
	w.settings.Live.WakeWait = 10
	if r := step(t, s); r.Undone != 1 || w.asleep() != nil {
		t.Errorf("%+v, %q sleep", r, w.asleep())
	}
}

func TestANodeThatWentDownInsteadOfWakingSleepsNoMore(t *testing.T) {
	w := learning("n1", "n2", "n3")
	s := w.open(t)
	step(t, s)
	w.rest(t, s, 4*time.Minute)
	if !slices.Equal(w.asleep(), []string{"n1", "n2"}) {
		t.Fatalf("%q sleep", w.asleep())
	}
	w.nodes["n1"].State = slurm.NodeState{Base: "DOWN", Flags: []string{"NOT_RESPONDING"}}
	w.nodes["n3"].State.Base = "ALLOCATED"
	step(t, s)
	w.nodes["n1"].State = slurm.NodeState{Base: "IDLE"} // an administrator brought it back
	w.nodes["n3"].State.Base = "IDLE"
	w.rest(t, s, time.Hour)
	if !slices.Equal(w.asleep(), []string{"n2", "n3"}) {
		t.Errorf("%q sleep", w.asleep())
	}
}

// Slurm powers down again what isn't back by ResumeTimeout, and sets it DOWN.
func TestANodeThatSlurmGaveUpSleepsNoMoreUntilItCameBackOnce(t *testing.T) {
	w := learning("n1", "n2", "n3")
	s := w.open(t)
	step(t, s)
	w.rest(t, s, 4*time.Minute)
	state := func(base string, flags ...string) {
		w.nodes["n1"].State = slurm.NodeState{Base: base, Flags: flags}
		step(t, s)
	}
	w.nodes["n3"].State.Base = "ALLOCATED"
	state("ALLOCATED", "POWERING_UP", "NOT_RESPONDING")
	state("DOWN", "POWERED_DOWN")
	state("DOWN", "POWERED_DOWN")
	w.nodes["n3"].State.Base = "IDLE" // as long as n1
	state("IDLE")
	if w.rest(t, s, time.Hour); !slices.Equal(w.asleep(), []string{"n2", "n3"}) {
		t.Errorf("%q sleep", w.asleep())
	}
	state("IDLE", "POWERED_DOWN")
	state("IDLE", "POWERING_UP")
	state("IDLE")
	w.nodes["n3"].State = slurm.NodeState{Base: "IDLE"}
	if w.rest(t, s, time.Hour); !slices.Equal(w.asleep(), []string{"n1", "n2"}) {
		t.Errorf("%q sleep, although n1 came back", w.asleep())
	}
}
