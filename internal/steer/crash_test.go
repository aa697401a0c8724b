package steer_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/internal/testkit/spooltest"
	"github.com/epplan/epplan/slurm"
)

// ownNice is what users set themselves.
var ownNice = map[slurm.JobID]int64{1: 7}

// busy returns a world in which each kind of lever is moved.
func busy() *world {
	w := newWorld()
	w.saving = true
	w.settings.Live.Weights, w.settings.Live.SleepAfter = true, 60
	w.job(1, 10, 1000, "")
	w.setNice(1, ownNice[1])
	w.job(2, 10, 900, deadline(2*time.Hour))
	w.job(3, 10, 950, deadline(time.Hour))
	w.job(4, 20, 940, "")
	w.settings.Live.Hours.By, w.settings.Prices = config.HoursCost, anyPrices
	w.waiting(6, start.Add(2*time.Hour))
	w.node("a1", "a100", "cpu")
	w.node("t1", "t4", "cpu")
	w.node("t2", "t4", "cpu")
	return w
}

// ranked is such a world whose queue a policy puts in order, too.
func ranked() *world {
	w := busy()
	w.settings.Live.Reorder = config.ReorderAll
	w.rankAs("value", 4, 1, 3, 2)
	return w
}

// worlds returns those that crash.
func worlds() map[string]func() *world {
	return map[string]func() *world{"deadlines": busy, "a policy's order": ranked}
}

// How far play got.
const (
	atSteps = iota
	atUndoAll
	atEnd
)

// play runs steps that set, change and take back, and tells how far it got.
func play(t *testing.T, w *world) (got int) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			if err, ok := r.(error); !ok || !errors.Is(err, errCrash) {
				panic(r)
			}
		}
	}()
	s := w.open(t)
	steps := []func(){
		func() {},
		func() { w.now = w.now.Add(2 * time.Minute) },
		func() { w.job(5, 10, 800, deadline(30*time.Minute)) }, // others go further back
		func() { delete(w.jobs, 5); delete(w.jobs, 2) },        // and come forward again
		func() { w.settings.Live.Weights = false },
		func() {
			if w.settings.Ranking != nil {
				w.rankAs("value", 1, 4, 3)
			}
		},
	}
	for _, change := range steps {
		change()
		if _, err := s.Step(t.Context()); err != nil && !errors.Is(err, spooltest.ErrCrashed) {
			t.Fatal(err)
		}
		if w.disk.Crashed() {
			return got
		}
	}
	got = atUndoAll
	if _, err := s.UndoAll(t.Context()); err == nil && !w.disk.Crashed() {
		got = atEnd
	}
	return got
}

// checkUndone starts anew after a crash, and takes everything back. Jobs may be
// taken for changed by someone else, and left alone, only where left says so.
func checkUndone(t *testing.T, w *world, left bool, what string) {
	t.Helper()
	w.crash = 0
	s := w.open(t)
	for range 2 {
		if r, err := s.UndoAll(t.Context()); err != nil || r.Failed > 0 || r.Waiting > 0 {
			t.Fatal(what, r, err)
		}
	}
	if st := s.Status(); !left && len(st.Left) > 0 || st.InForce() > 0 {
		t.Errorf("%s: %+v", what, st)
	}
	for id, j := range w.jobs {
		if j.Nice != ownNice[id] {
			t.Errorf("%s: nices %v", what, w.nices())
		}
		if j.Eligible.After(w.now) {
			t.Errorf("%s: job %d begins at %v", what, id, j.Eligible)
		}
	}
	for name, n := range w.nodes {
		if n.Weight != 1 || n.State.IsPoweredDown() {
			t.Errorf("%s: node %s: %+v", what, name, n)
		}
	}
}

func TestACrashAtAnyCommandLeavesEverythingToBeTakenBack(t *testing.T) {
	points := 0
	for name, world := range worlds() {
		for _, after := range []bool{false, true} {
			for n := 1; ; n++ {
				w := world()
				w.crash, w.after = n, after
				got := play(t, w)
				points++
				w.disk = w.disk.Reboot(true, rand.New(rand.NewPCG(1, uint64(n))))
				checkUndone(t, w, false, fmt.Sprintf("%s, command %d, after %t", name, n, after))
				if got == atEnd {
					break
				}
			}
		}
	}
	t.Logf("%d crash points", points)
	if points < 60 {
		t.Errorf("only %d crash points", points)
	}
}

// Before each command an administrator takes back by hand what was steered, and some
// commands later the process ends.
func TestACrashAfterSomebodyTookLeversBackLeavesTheirOwnValues(t *testing.T) {
	points := 0
	for name, world := range worlds() {
		last := world()
		play(t, last)
		for n := 1; n <= last.calls; n++ {
			for _, later := range []int{0, 1, 2, 5, 1 << 20} {
				for _, after := range []bool{false, true} {
					w := world()
					w.meddle, w.crash, w.after = n, n+later, after
					play(t, w)
					points++
					w.disk = w.disk.Reboot(true, rand.New(rand.NewPCG(3, uint64(n))))
					checkUndone(t, w, true,
						fmt.Sprintf("%s, taken back before command %d, crash %d later, after %t", name, n,
							later, after))
				}
			}
		}
	}
	t.Logf("%d crash points", points)
	if points < 200 {
		t.Errorf("only %d crash points", points)
	}
}

func TestACrashAtAnyFileOperationLeavesEverythingToBeTakenBack(t *testing.T) {
	points := 0
	for name, world := range worlds() {
		for _, kind := range []struct{ powerCut, after bool }{
			{false, false},
			{false, true},
			{true, false},
			{true, true},
		} {
			for n := 0; ; n++ {
				w := world()
				w.disk.CrashAt(n, kind.after)
				got := play(t, w)
				points++
				w.disk = w.disk.Reboot(kind.powerCut, rand.New(rand.NewPCG(2, uint64(n))))
				// With the disk gone, UndoAll takes back what it can't write down.
				checkUndone(t, w, got == atUndoAll, fmt.Sprintf("%s, file operation %d, %+v", name, n, kind))
				if got == atEnd {
					break
				}
			}
		}
	}
	t.Logf("%d crash points", points)
	if points < 300 {
		t.Errorf("only %d crash points", points)
	}
}

func TestAfterACrashASteererGoesOnWhereItWas(t *testing.T) {
	want := busy()
	s := want.open(t)
	for range 3 {
		step(t, s)
	}
	for n := 1; n <= 4; n++ {
		w := busy()
		w.crash, w.after = n, n%2 == 0
		play(t, w)
		w.crash, w.settings.Live.Weights = 0, true
		w.now = start
		s := w.open(t)
		var last steer.StepReport
		for range 3 {
			last = step(t, s)
		}
		if !maps.Equal(w.nices(), want.nices()) || last.Set+last.Undone > 0 || len(s.Status().Left) > 0 {
			t.Errorf("command %d: nices %v, want %v; %+v, %+v", n, w.nices(), want.nices(), last, s.Status())
		}
	}
}
