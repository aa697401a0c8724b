package gpu

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
)

// bursty is work of 20 s, a second of waiting after each two.
func bursty() Work {
	return Work{
		PID: 3, Model: dvfsmodel.Params{P0: 50, C: 100, D: 20, Delta: 1}, Mem: 1 << 30,
		Phases: []Phase{{Busy: 2, Wait: 1}},
	}
}

func TestPhasesOfWorkTakeLongerAtLowerClocksAndWaitingDoesNot(t *testing.T) {
	for _, core := range []dvfsmodel.MHz{802, 1087, 1380} {
		l, clock := openSim(t, "sim,bursty,wait=0.2", SimOptions{})
		g := sims(t, l)[0]
		must(t, g.Set(CoreClock, Value(core)))
		must(t, g.Run(bursty()))
		before := read(t, g)
		clock.advance(2 * time.Minute)
		ended, err := g.Ended()
		must(t, err)
		if len(ended) != 1 || ended[0].PID != 3 {
			t.Fatalf("ended: %+v", ended)
		}
		stretch := 1380 / float64(core)
		near(t, "took", ended[0].Took, 20*stretch+9, 1e-5) // no waiting after the last part
		near(t, "at default clocks", ended[0].Default, 29, 1e-6)
		s := at(t, g, core)
		working, clocked := float64(bursty().Model.Power(s)), 100*float64(s.V*s.V)*s.Fc
		want := working*20*stretch + (30+0.2*clocked)*9
		near(t, "energy", float64(ended[0].Energy), want, 0.1)
		if idle := read(t, g).Energy - before.Energy - ended[0].Energy; idle <= 0 {
			t.Errorf("afterwards the load that never ends drew %v J", float64(idle))
		}
	}
}

func TestUtilisationIsTheMeanOfTheLastSamplePeriod(t *testing.T) {
	l, clock := openSim(t, "sim,bursty", SimOptions{Dir: t.TempDir()})
	g := sims(t, l)[0]
	clock.t = clock.t.Truncate(samplePeriod).Add(3 * samplePeriod / 2)
	w := bursty()
	w.Phases = []Phase{{Busy: 5 * samplePeriod.Seconds(), Wait: 100}}
	must(t, g.Run(w))
	// Of the period before; first there was the load that never ends.
	for i, want := range []float64{-1, 1, 1, 1, 1, 1, 0.5, 0, 0} {
		if got := read(t, g).Utilisation; want >= 0 && (got < want-1e-6 || got > want+1e-6) {
			t.Errorf("after %d periods: %v, want %v", i, got, want)
		}
		clock.advance(samplePeriod)
	}
	if r := read(t, g); r.Throttle&ThrottleIdle == 0 || r.MemUsed != 1<<30 || r.Core != 1380 {
		t.Errorf("while it waits: %+v", r)
	}
}

func TestABurstyLoadGoesOnWithoutWork(t *testing.T) {
	file := filepath.Join(t.TempDir(), "load.csv")
	must(t, os.WriteFile(file, []byte("# busy, wait\n1,2\n3, 0.5\n"), 0o600))
	for spec, want := range map[string]float64{
		"bursty=4/0.25": 0.25, "bursty": 0.5,
		"load=" + file: 4 / 6.5,
	} {
		l, clock := openSim(t, "sim,wait=0,"+spec, SimOptions{})
		g := sims(t, l)[0]
		full := float64(g.library.machine.model.limit)
		before := read(t, g)
		const cycles = 1000
		clock.advance(cycles * 260 * time.Second)
		mean := float64(read(t, g).Energy-before.Energy) / (cycles * 260)
		near(t, spec, mean, 30+want*(full-30), 0.1)
	}
}

// However often and when a GPU is looked at or its clock is set to what it is,
// its energy and its work come to the same.
func TestLookingAtBurstsChangesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		end := func(looks []int64) (Reading, []FinishedWork) {
			l, clock := openSim(t, "sim,bursty=0.7/0.3", SimOptions{})
			g := sims(t, l)[0]
			begin := clock.t
			must(t, g.Run(bursty()))
			must(t, g.Set(CoreClock, 945))
			for _, ms := range looks {
				clock.t = begin.Add(time.Duration(ms) * time.Millisecond)
				read(t, g)
				must(t, g.Set(CoreClock, 945))
			}
			clock.t = begin.Add(90 * time.Second)
			ended, err := g.Ended()
			must(t, err)
			return read(t, g), ended
		}
		looks := rapid.SliceOfN(rapid.Int64Range(0, 89_000), 0, 20).Draw(rt, "looks")
		slices.Sort(looks)
		often, endedOften := end(looks)
		never, endedNever := end(nil)
		if d := often.Energy - never.Energy; d > 0.01 || d < -0.01 || often.Utilisation != never.Utilisation {
			rt.Fatalf("%+v with looks, %+v without", often, never)
		}
		if d := endedOften[0].Took - endedNever[0].Took; d > 1e-6 || d < -1e-6 {
			rt.Fatalf("%+v with looks, %+v without", endedOften, endedNever)
		}
	})
}

func TestLoadsThatCannotBeAreRefused(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.csv")
	must(t, os.WriteFile(empty, []byte("# nothing\n"), 0o600))
	wrong := filepath.Join(t.TempDir(), "wrong.csv")
	must(t, os.WriteFile(wrong, []byte("1,1\n1;1\n"), 0o600))
	for spec, want := range map[string]string{
		"sim,bursty=10":      `bursts "10", want PERIOD/DUTY`,
		"sim,bursty=10/1":    "want 0.01 to",
		"sim,bursty=0.01/.5": "want 0.01 to",
		"sim,bursty=NaN/0.5": "want 0.01 to",
		"sim,wait=2":         "want a number from 0 to 1",
		"sim,load=/nowhere":  "no such file",
		"sim,load=" + empty:  "no phases",
		"sim,load=" + wrong:  "line 2: \"1;1\", want seconds of work and of waiting",
	} {
		if _, err := OpenSim(spec, builtinBoards, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
	}
	l, _ := openSim(t, "sim", SimOptions{})
	w := bursty()
	w.Phases[0].Busy = 0
	if err := sims(t, l)[0].Run(w); err == nil {
		t.Error("work with an empty phase was begun")
	}
}
