package gpu

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// checkReadOnly is what any device keeps that is fit to be read.
func checkReadOnly(t *testing.T, d Device) {
	t.Helper()
	id := d.Identity()
	if !strings.HasPrefix(id.UUID, "GPU-") || id.Bus == "" || id.Model == "" || id.Minor < 0 {
		t.Errorf("identity %+v", id)
	}
	if again := d.Identity(); again != id {
		t.Errorf("identity changed from %v to %v", id, again)
	}
	checkClocks(t, d)
	limit, err := d.PowerLimit()
	if err != nil || !(limit > 0) {
		t.Errorf("power limit %v, %v", limit, err)
	}
	first, second := read(t, d), read(t, d)
	if second.At.Before(first.At) {
		t.Errorf("time went from %v to %v", first.At, second.At)
	}
	if d.Capability().Energy && !(second.Energy >= first.Energy) {
		t.Errorf("energy went from %v to %v", first.Energy, second.Energy)
	}
	if u := first.Utilisation; !math.IsNaN(u) && (u < 0 || u > 1) {
		t.Errorf("utilisation %v", u)
	}
	if first.Power < 0 || first.MemUsed < -1 {
		t.Errorf("reading %+v", first)
	}
	pids, err := d.Processes()
	if err != nil || !slices.IsSorted(pids) {
		t.Errorf("processes %v, %v", pids, err)
	}
	if _, err := d.Sharing(); err != nil {
		t.Errorf("sharing: %v", err)
	}
}

func checkClocks(t *testing.T, d Device) {
	t.Helper()
	c, err := d.Clocks()
	must(t, err)
	if len(c.Mem) == 0 || len(c.Mem) != len(c.Core) {
		t.Fatalf("%d memory clocks with %d lists", len(c.Mem), len(c.Core))
	}
	slices.Reverse(c.Mem)
	if !slices.IsSorted(c.Mem) {
		t.Errorf("memory clocks don't fall: %v", c.Mem)
	}
	for _, list := range c.Core {
		slices.Reverse(list)
		if len(list) == 0 || !slices.IsSorted(list) {
			t.Errorf("core clocks don't fall: %v", list)
		}
	}
	again, err := d.Clocks()
	must(t, err)
	if again.Mem[0] < again.Mem[len(again.Mem)-1] {
		t.Error("a caller's change of the table reached the device")
	}
}

// checkControls is what any device keeps that may be changed: each control that it
// says it sets is set and given back, and what it doesn't have is refused.
func checkControls(t *testing.T, d Device) {
	t.Helper()
	clocks, err := d.Clocks()
	must(t, err)
	lowest := map[Control]Value{
		CoreClock: Value(clocks.Core[0][len(clocks.Core[0])-1]), MemClock: Value(clocks.Mem[len(clocks.Mem)-1]),
	}
	for c := range NumControls {
		if !d.Capability().Can(c) {
			if d.Set(c, lowest[c]) == nil || d.Fix(c, lowest[c]) == nil || d.Release(c) == nil {
				t.Errorf("%v set or given back, which it can't", c)
			}
			continue
		}
		must(t, d.Set(c, lowest[c]))
		r := read(t, d)
		if v, _, ok := c.Shown(&r); ok && v != lowest[c] {
			t.Errorf("%v at %v, set to %v", c, float64(v), float64(lowest[c]))
		}
		for _, set := range []func(Control, Value) error{d.Set, d.Fix} {
			if set(c, 1.5) == nil || set(c, -1) == nil || set(c, 1e9) == nil {
				t.Errorf("%v set to what it isn't", c)
			}
		}
		must(t, d.Release(c))
		must(t, d.Release(c))
	}
	if d.Capability().Can(CoreClock) {
		checkCoreRange(t, d, Value(clocks.Core[0][0]))
	}
}

// checkCoreRange is what any device keeps of its core clock that has nothing to do: it is
// at a value that was fixed, and no higher than one that was set.
func checkCoreRange(t *testing.T, d Device, v Value) {
	t.Helper()
	must(t, d.Fix(CoreClock, v))
	if r := read(t, d); Value(r.Core) != v {
		t.Errorf("core clock at %v MHz, fixed at %v", float64(r.Core), float64(v))
	}
	must(t, d.Set(CoreClock, v))
	if r := read(t, d); Value(r.Core) > v {
		t.Errorf("core clock at %v MHz, set to %v", float64(r.Core), float64(v))
	}
	must(t, d.Release(CoreClock))
}

func TestSimulatedGPUsKeepTheContract(t *testing.T) {
	for _, spec := range []string{
		"sim", "sim:3", "sim:2,model=GTX1080Ti", "sim,lock=none", "sim,model=RTX2070S,lock=core",
		"sim,energy=off", "sim:2,minor=reverse,mig", "sim,mps",
	} {
		for _, dir := range []string{"", t.TempDir()} {
			l, _ := openSim(t, spec, SimOptions{Dir: dir})
			devices, err := l.Devices()
			must(t, err)
			for _, d := range devices {
				checkReadOnly(t, d)
				checkControls(t, d)
				want := Sharing{MIG: strings.HasSuffix(spec, ",mig"), MPS: strings.HasSuffix(spec, ",mps")}
				if got, err := d.Sharing(); err != nil || got != want {
					t.Errorf("%s: sharing %+v, %v", spec, got, err)
				}
			}
			must(t, l.Close())
		}
	}
}
