package gpu

import (
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
)

// oracle is what a simulated GTX 1080 Ti should be, worked out in small equal
// steps of time rather than from end to end.
type oracle struct {
	core, mem dvfsmodel.MHz
	energy    float64
	work      []Work
	table     *dvfsmodel.Table
	idle      float64
}

const oracleStep = 10 * time.Millisecond

func (o *oracle) clocks() (core, mem dvfsmodel.MHz) {
	core, mem = 1800, 5000
	if o.core > 0 {
		core = o.core
	}
	if o.mem > 0 {
		mem = o.mem
	}
	return core, mem
}

func (o *oracle) pass(d time.Duration) {
	core, mem := o.clocks()
	s, _ := o.table.Contains(core, mem)
	for ; d > 0; d -= oracleStep {
		step := min(d, oracleStep).Seconds()
		if len(o.work) == 0 {
			o.energy += o.idle * step
			continue
		}
		n := float64(len(o.work))
		for i := range o.work {
			w := &o.work[i]
			o.energy += step * float64(w.Model.Power(s)) / n
			w.Done += step / n / w.Model.Time(s.Fc, s.Fm)
		}
		o.work = slices.DeleteFunc(o.work, func(w Work) bool { return w.Done >= 1 })
	}
}

// machine is a simulated GPU under random calls, with its oracle, restarts of
// the process that uses it, and faults.
type machine struct {
	t      *rapid.T
	clock  *fakeClock
	dir    string
	faults *Faults
	g      *Sim
	want   oracle
	slack  float64 // joules that the oracle's steps may be off
	pid    int
}

func (m *machine) open() {
	l, err := OpenSim("sim,model=GTX1080Ti", builtinBoards, &SimOptions{
		Now: m.clock.now, Wait: m.clock.advance, Dir: m.dir, Faults: m.faults,
	})
	m.need(err)
	list, err := l.Sims()
	m.need(err)
	m.g = list[0]
}

func (m *machine) need(err error) {
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) Advance(t *rapid.T) {
	d := time.Duration(rapid.Int64Range(1, 30e9).Draw(t, "ns"))
	m.clock.advance(d)
	m.want.pass(d)
}

func (m *machine) Lock(t *rapid.T) {
	core := rapid.SampledFrom([]dvfsmodel.MHz{1600, 1700, 1800, 1900, 2000}).Draw(t, "core")
	m.need(m.g.Set(CoreClock, Value(core)))
	m.want.core = core
}

func (m *machine) LockMemory(t *rapid.T) {
	mem := rapid.SampledFrom([]dvfsmodel.MHz{4000, 4500, 5000, 5500}).Draw(t, "mem")
	m.need(m.g.Set(MemClock, Value(mem)))
	m.want.mem = mem
}

func (m *machine) Unlock(*rapid.T) {
	m.need(m.g.Release(CoreClock))
	m.need(m.g.Release(MemClock))
	m.want.core, m.want.mem = 0, 0
}

func (m *machine) Run(t *rapid.T) {
	m.pid++
	// Never above the power limit, which the oracle doesn't know.
	p := dvfsmodel.Params{P0: 50, Gamma: 30, C: 60, D: 90, Delta: 0.5, T0: 10}
	w := Work{PID: m.pid, Model: p.Scale(rapid.Float64Range(0.05, 1).Draw(t, "scale"))}
	m.need(m.g.Run(w))
	m.want.work = append(m.want.work, w)
	m.slack += 300 * oracleStep.Seconds() * 4
}

func (m *machine) Stop(t *rapid.T) {
	pid := rapid.IntRange(1, 6).Draw(t, "pid")
	m.need(m.g.Stop(pid))
	m.want.work = slices.DeleteFunc(m.want.work, func(w Work) bool { return w.PID == pid })
}

func (m *machine) Restart(*rapid.T) { m.open() }

func (m *machine) Refused(t *rapid.T) {
	kind := rapid.SampledFrom([]FaultKind{FaultPermission, FaultUnsupported, FaultTransient}).Draw(t, "kind")
	m.faults.Add(Fault{GPU: -1, Op: OpAny, Kind: kind, Count: 1})
	if err := m.g.Set(CoreClock, 1600); err == nil {
		t.Fatal("no error")
	}
}

func (m *machine) Reload(t *rapid.T) {
	m.need(m.g.InjectFault(FaultReload))
	if err := m.g.Release(CoreClock); !errors.Is(err, ErrReloaded) {
		t.Fatalf("stale handle: %v", err)
	}
	m.open()
	m.want.core, m.want.mem, m.want.work, m.want.energy = 0, 0, nil, 0
}

func (m *machine) Check(t *rapid.T) {
	core, err := m.g.Held(CoreClock)
	m.need(err)
	mem, err := m.g.Held(MemClock)
	m.need(err)
	if dvfsmodel.MHz(core) != m.want.core || dvfsmodel.MHz(mem) != m.want.mem {
		t.Fatalf("locks %v/%v, want %v/%v", core, mem, m.want.core, m.want.mem)
	}
	r := rapidRead(t, m.g)
	if math.Abs(float64(r.Energy)-m.want.energy) > 0.01+m.slack+1e-5*m.want.energy {
		t.Fatalf("energy %v, want %v", float64(r.Energy), m.want.energy)
	}
	work, err := m.g.Work()
	m.need(err)
	for _, w := range work {
		i := slices.IndexFunc(m.want.work, func(o Work) bool { return o.PID == w.PID })
		if i < 0 {
			if w.Done < 0.99 {
				t.Fatalf("%+v runs, and should have ended", w)
			}
			continue
		}
		if o := m.want.work[i].Done; math.Abs(o-w.Done) > 0.02 {
			t.Fatalf("%v is %v done, want %v", w.PID, w.Done, o)
		}
	}
}

func TestASimulatedGPUFollowsItsModelWhateverIsDoneToIt(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		m := &machine{t: t, clock: newClock(), faults: NewFaults()}
		if rapid.Bool().Draw(t, "in a folder") {
			m.dir = dir + "/" + time.Duration(n).String()
		}
		m.open()
		model := m.g.library.machine.model
		m.want = oracle{table: model.table, idle: float64(model.idle) / 1000}
		actions := map[string]func(*rapid.T){
			"": m.Check, "advance": m.Advance, "lock": m.Lock, "lock memory": m.LockMemory,
			"unlock": m.Unlock,
			"run":    m.Run, "stop": m.Stop, "refused": m.Refused, "reload": m.Reload,
		}
		if m.dir != "" {
			actions["restart"] = m.Restart
		}
		t.Repeat(actions)
	})
}

// With the same things done at the same moments, looking in between, or
// starting anew, changes no millijoule.
func TestLookingChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		watched, a := rapidSim(t)
		alone, b := rapidSim(t)
		for range rapid.IntRange(1, 10).Draw(t, "phases") {
			p := someParams().Scale(rapid.Float64Range(0.01, 1).Draw(t, "scale"))
			for _, g := range []*Sim{watched, alone} {
				if err := g.Run(Work{PID: 1, Model: p}); err != nil {
					t.Fatal(err)
				}
			}
			for range rapid.IntRange(1, 20).Draw(t, "looks") {
				d := time.Duration(rapid.Int64Range(1, 20e9).Draw(t, "ns"))
				a.advance(d)
				b.advance(d)
				rapidRead(t, watched)
			}
		}
		if x, y := rapidRead(t, watched), rapidRead(t, alone); x != y {
			t.Fatalf("%+v and %+v", x, y)
		}
	})
}

func TestAPowerLimitHoldsTheCoreClockDown(t *testing.T) {
	g, _ := oneSim(t, SimOptions{})
	must(t, g.Run(Work{PID: 1, Model: someParams()}))
	free := read(t, g)
	must(t, g.LimitPower(free.Power-20))
	r := read(t, g)
	if r.Throttle&ThrottlePowerCap == 0 || r.Core >= free.Core || r.Power > free.Power-20 {
		t.Errorf("reading %+v under a limit of %v", r, free.Power-20)
	}
	must(t, g.LimitPower(1))
	if r := read(t, g); r.Core != 802 {
		t.Errorf("core clock %v under a limit that can't be kept, want the lowest", r.Core)
	}
	if g.LimitPower(0) == nil || g.LimitPower(dvfsmodel.Watt(math.NaN())) == nil {
		t.Error("no power is no error")
	}
}

// A GPU under a power limit takes as long and draws as much as at the highest clock that keeps it.
func TestWorkUnderAPowerLimitIsThatAtTheClockItAllows(t *testing.T) {
	took := func(set func(*Sim)) (seconds float64, energy dvfsmodel.Joule) {
		g, clock := oneSim(t, SimOptions{})
		set(g)
		must(t, g.Run(Work{PID: 1, Model: someParams()}))
		clock.advance(1000 * time.Second)
		done, err := g.Ended()
		must(t, err)
		return done[0].Took, done[0].Energy
	}
	freeTime, freeEnergy := took(func(*Sim) {})
	cappedTime, cappedEnergy := took(func(g *Sim) { must(t, g.Set(PowerLimit, 120)) })
	g, _ := oneSim(t, SimOptions{})
	must(t, g.Run(Work{PID: 1, Model: someParams()}))
	must(t, g.Set(PowerLimit, 120))
	at := Value(read(t, g).Core)
	clockTime, clockEnergy := took(func(g *Sim) { must(t, g.Set(CoreClock, at)) })
	if cappedTime != clockTime || cappedEnergy != clockEnergy {
		t.Errorf("%v s and %v J under the limit, %v s and %v J at the %v MHz that it ran at", cappedTime,
			cappedEnergy, clockTime, clockEnergy, float64(at))
	}
	if !(cappedTime > freeTime && cappedEnergy < freeEnergy) {
		t.Errorf("%v s and %v J under the limit, %v s and %v J without", cappedTime, cappedEnergy, freeTime,
			freeEnergy)
	}
}

func TestWorkThatSharesAGPUTakesTurns(t *testing.T) {
	g, clock := oneSim(t, SimOptions{})
	must(t, g.Run(Work{PID: 9, Model: someParams(), Mem: 5}))
	must(t, g.Run(Work{PID: 2, Model: someParams(), Mem: 7}))
	clock.advance(100 * time.Second)
	if pids, err := g.Processes(); err != nil || !slices.Equal(pids, []int{2, 9}) {
		t.Fatalf("processes %v, %v", pids, err)
	}
	if r := read(t, g); r.MemUsed != 12 || r.Utilisation != 1 {
		t.Errorf("reading %+v", r)
	}
	must(t, g.Stop(9))
	clock.advance(49 * time.Second)
	work, err := g.Work()
	must(t, err)
	near(t, "progress", work[0].Done, 0.99, 1e-9)
}

func TestWorkThatCannotBeIsRefused(t *testing.T) {
	g, _ := oneSim(t, SimOptions{})
	for _, w := range []Work{
		{},
		{PID: 1},
		{PID: 1, Model: someParams(), Done: 2},
		{PID: 1, Model: someParams(), Mem: -1},
		{Model: someParams()},
	} {
		if g.Run(w) == nil {
			t.Errorf("%+v runs", w)
		}
	}
	for range maxWorkPieces {
		must(t, g.Run(Work{PID: 1, Model: someParams()}))
	}
	if g.Run(Work{PID: 1, Model: someParams()}) == nil {
		t.Error("no bound on work")
	}
}

func TestIdentitiesAreStableAndDistinct(t *testing.T) {
	l, _ := openSim(t, "sim:64,minor=reverse", SimOptions{Seed: 3})
	again, _ := openSim(t, "sim:64,minor=reverse", SimOptions{Seed: 3})
	other, _ := openSim(t, "sim:64", SimOptions{Seed: 4})
	seen := make(map[string]bool)
	for i, g := range sims(t, l) {
		id := g.Identity()
		if id != sims(t, again)[i].Identity() {
			t.Errorf("GPU %d changes its identity", i)
		}
		if id.UUID == sims(t, other)[i].Identity().UUID {
			t.Errorf("GPU %d has the same UUID on another machine", i)
		}
		if id.Minor != 63-i || seen[id.UUID] || seen[id.Bus] {
			t.Errorf("GPU %d is %+v", i, id)
		}
		seen[id.UUID], seen[id.Bus] = true, true
	}
}

func TestSeveralProcessesShareTheGPUsOfAFolder(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 4 {
		l, err := OpenSim("sim:4", builtinBoards, &SimOptions{Dir: dir})
		must(t, err)
		g := sims(t, l)[i]
		wg.Go(func() {
			for range 50 {
				if err := g.Set(CoreClock, 802); err != nil {
					t.Error(err)
				}
				if _, err := g.Read(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	l, err := OpenSim("sim:4", builtinBoards, &SimOptions{Dir: dir})
	must(t, err)
	for i, g := range sims(t, l) {
		if f, err := g.Held(CoreClock); err != nil || f != 802 {
			t.Errorf("GPU %d: a lock was overwritten: %v, %v", i, f, err)
		}
	}
}
