package gpu

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
)

// fakeClock is a clock that moves when told.
type fakeClock struct{ t time.Time }

func newClock() *fakeClock {
	return &fakeClock{t: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func (c *fakeClock) now() time.Time          { return c.t }
func (c *fakeClock) advance(d time.Duration) { c.t = c.t.Add(d) }

// builtinBoards finds the GPU models that epplan knows.
func builtinBoards(model string) (*dvfsmodel.Board, error) {
	return config.BuiltinProfiles().Board(model)
}

// openSim makes simulated GPUs on a clock; slow calls advance it.
func openSim(t *testing.T, spec string, o SimOptions) (*SimLibrary, *fakeClock) {
	t.Helper()
	clock := newClock()
	o.Now, o.Wait = clock.now, clock.advance
	l, err := OpenSim(spec, builtinBoards, &o)
	if err != nil {
		t.Fatal(err)
	}
	return l, clock
}

func sims(t *testing.T, l *SimLibrary) []*Sim {
	t.Helper()
	list, err := l.Sims()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func oneSim(t *testing.T, o SimOptions) (*Sim, *fakeClock) {
	t.Helper()
	l, clock := openSim(t, "sim", o)
	return sims(t, l)[0], clock
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, d Device) Reading {
	t.Helper()
	r, err := d.Read()
	must(t, err)
	return r
}

// someParams take 100 s at default clocks and draw 180 W there.
func someParams() dvfsmodel.Params {
	return dvfsmodel.Params{P0: 50, Gamma: 30, C: 100, D: 90, Delta: 0.5, T0: 10}
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// A simulated GPU in compressed time does the same at the same power, sooner.
func TestWorkAtASpeedTakesLessTimeAndEnergyBothByThatFactor(t *testing.T) {
	seconds, joules := make(map[string]float64), make(map[string]float64)
	for _, spec := range []string{"sim", "sim,speed=60"} {
		l, clock := openSim(t, spec, SimOptions{Dir: t.TempDir()})
		g := sims(t, l)[0]
		must(t, g.Set(CoreClock, 945))
		must(t, g.Run(Work{PID: 1, Model: someParams()}))
		begin := read(t, g)
		near(t, "power", float64(begin.Power), float64(someParams().Power(at(t, g, 945))), 0.001)
		for work := []Work{{}}; len(work) > 0; {
			clock.advance(10 * time.Millisecond)
			var err error
			work, err = g.Work()
			must(t, err)
		}
		end := read(t, g)
		seconds[spec], joules[spec] = end.At.Sub(begin.At).Seconds(), float64(end.Energy-begin.Energy)
	}
	near(t, "seconds", 60*seconds["sim,speed=60"], seconds["sim"], 1)
	near(t, "joules", 60*joules["sim,speed=60"], joules["sim"], 180)
	if speed, err := SimSpeed("sim:3,speed=60,mps"); err != nil || speed != 60 {
		t.Errorf("speed %v, %v", speed, err)
	}
	if speed, err := SimSpeed("sim:3"); err != nil || speed != 1 {
		t.Errorf("without one: speed %v, %v", speed, err)
	}
}

// at returns the setting of a core clock.
func at(t *testing.T, g *Sim, core dvfsmodel.MHz) dvfsmodel.Scaling {
	t.Helper()
	m := g.library.machine.model
	s, ok := m.table.Contains(core, m.def.Mem)
	if !ok {
		t.Fatalf("%v MHz isn't in the table", float64(core))
	}
	return s
}

func TestABusyGPUDrawsWhatWorkDoesWithoutAny(t *testing.T) {
	l, _ := openSim(t, "sim:2,busy", SimOptions{})
	g := sims(t, l)[0]
	full := g.library.machine.model.limit
	near(t, "power", float64(read(t, g).Power), float64(full), 0.001)
	if core := read(t, g).Core; core != 1380 {
		t.Errorf("core %v MHz, want the default", float64(core))
	}
	must(t, g.Set(CoreClock, 802))
	if locked := read(t, g).Power; locked >= full || locked <= 0.4*full {
		t.Errorf("%v W at 802 MHz, %v W at default clocks", locked, full)
	}
	must(t, g.Run(Work{PID: 7, Model: someParams()}))
	near(t, "power of work", float64(read(t, g).Power), float64(someParams().Power(at(t, g, 802))), 0.001)
}

func TestALockedGPUFallsToTheLowestClockWhileItHasNothingToDo(t *testing.T) {
	g, clock := oneSim(t, SimOptions{Dir: t.TempDir()})
	lowest := read(t, g).Core
	for _, set := range []struct {
		by   func(Control, Value) error
		idle dvfsmodel.MHz
	}{{g.Set, lowest}, {g.Fix, 1087}, {g.Set, lowest}} {
		must(t, set.by(CoreClock, 1087))
		must(t, g.Run(Work{PID: 7, Model: someParams()}))
		if r := read(t, g); r.Core != 1087 {
			t.Errorf("core clock %v MHz at work, set to 1087", float64(r.Core))
		}
		clock.advance(time.Hour)
		if r := read(t, g); r.Core != set.idle {
			t.Errorf("core clock %v MHz with nothing to do, want %v", float64(r.Core), float64(set.idle))
		}
		if fixed, err := g.IsFixed(CoreClock); err != nil || fixed != (set.idle == 1087) {
			t.Errorf("fixed %v, %v", fixed, err)
		}
	}
	must(t, g.Fix(CoreClock, 1087))
	must(t, g.Release(CoreClock))
	if fixed, err := g.IsFixed(CoreClock); err != nil || fixed {
		t.Errorf("fixed %v, %v after it was given back", fixed, err)
	}
}

func TestWorkRunsAtTheSpeedAndPowerOfItsModel(t *testing.T) {
	for _, core := range []dvfsmodel.MHz{802, 945, 1087, 1237, 1380} {
		g, clock := oneSim(t, SimOptions{})
		must(t, g.Set(CoreClock, Value(core)))
		setting, ok := g.library.machine.model.table.Contains(core, 877)
		if !ok {
			t.Fatal(core)
		}
		want := someParams().At(setting)
		must(t, g.Run(Work{PID: 7, Model: someParams()}))
		before := read(t, g)
		near(t, "power", float64(before.Power), float64(want.Power), 0.0005)
		half := time.Duration(want.Time / 2 * 1e9)
		clock.advance(half)
		work, err := g.Work()
		must(t, err)
		near(t, "progress", work[0].Done, 0.5, 1e-9)
		clock.advance(time.Hour)
		after := read(t, g)
		idle := 30 * (time.Hour.Seconds() - want.Time/2)
		near(t, "energy", float64(after.Energy-before.Energy), float64(want.Energy)+idle,
			0.0005*want.Time+0.01)
		if pids, err := g.Processes(); err != nil || len(pids) > 0 {
			t.Errorf("processes %v, %v after the work's end", pids, err)
		}
	}
}

func TestALockOutlivesTheProcessAndWorkGoesOnWithoutIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	clock := newClock()
	open := func() []*Sim {
		l, err := OpenSim("sim:2,model=GTX1080Ti", builtinBoards, &SimOptions{Now: clock.now, Dir: dir})
		must(t, err)
		return sims(t, l)
	}
	first := open()
	must(t, first[1].Set(CoreClock, 1600))
	must(t, first[1].Set(MemClock, 4500))
	must(t, first[1].Run(Work{PID: 3, Model: someParams()}))
	e := read(t, first[1]).Energy
	clock.advance(20 * time.Second)
	second := open()
	r := read(t, second[1])
	if r.Core != 1600 || r.Mem != 4500 {
		t.Errorf("clocks %v/%v after a restart, want 1600/4500", r.Core, r.Mem)
	}
	near(t, "energy", float64(r.Energy-e), float64(r.Power)*20, 0.002)
	must(t, second[1].Release(CoreClock))
	if f, err := first[1].Held(CoreClock); err != nil || f != 0 {
		t.Errorf("the first process sees a lock at %v, %v that the second dropped", f, err)
	}
	if f, _ := second[0].Held(CoreClock); f != 0 {
		t.Errorf("the other GPU is locked at %v", f)
	}
}

func TestAStateThatIsNotOneIsAClearError(t *testing.T) {
	dir := t.TempDir()
	l, _ := openSim(t, "sim:2", SimOptions{Dir: dir})
	path := filepath.Join(dir, simFile)
	good, err := os.ReadFile(path)
	must(t, err)
	for name, bad := range map[string]string{
		"empty": "", "cut": string(good[:len(good)/2]), "twice": string(good) + string(good),
		"other": `{"Version":2,"Model":"V100","GPUs":[]}`, "version": `{"Version":9}`,
		"older":   strings.Replace(string(good), `"Version": 2`, `"Version": 1`, 1),
		"control": strings.Replace(string(good), `"UUID"`, `"Set": {"fan": 1}, "UUID"`, 1),
	} {
		must(t, os.WriteFile(path, []byte(bad), 0o600))
		if _, err := OpenSim("sim:2", builtinBoards, &SimOptions{Dir: dir}); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := l.Sims(); err == nil {
			t.Errorf("%s: no error from an open simulator", name)
		}
	}
	must(t, os.WriteFile(path, good, 0o600))
	if _, err := OpenSim("sim:3", builtinBoards, &SimOptions{Dir: dir}); err == nil {
		t.Error("a state of two GPUs became three")
	}
}

func TestAReloadOfTheDriverDropsLocksAndMakesHandlesStale(t *testing.T) {
	l, _ := openSim(t, "sim", SimOptions{})
	g := sims(t, l)[0]
	must(t, g.Set(CoreClock, 802))
	must(t, g.InjectFault(FaultReload))
	if _, err := g.Read(); !errors.Is(err, ErrReloaded) {
		t.Errorf("read: %v, want ErrReloaded", err)
	}
	again := sims(t, l)[0]
	if r := read(t, again); r.Throttle&ThrottleLocked != 0 {
		t.Error("still locked")
	}
}
