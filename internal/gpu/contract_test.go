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

// checkLocks is what any device keeps that may be changed: each clock that it
// says it locks is locked and given back, and what it doesn't have is refused.
func checkLocks(t *testing.T, d Device) {
	t.Helper()
	c, err := d.Clocks()
	must(t, err)
	can := d.Capability()
	low := c.Core[0][len(c.Core[0])-1]
	if can.LockCore {
		must(t, d.Lock(Core, low))
		if r := read(t, d); r.Core != low {
			t.Errorf("core at %v, locked at %v", r.Core, low)
		}
		if d.Lock(Core, 1.5) == nil || d.Lock(Core, -1) == nil || d.Lock(Core, 1e9) == nil {
			t.Error("locked at no clock")
		}
		must(t, d.Unlock(Core))
		must(t, d.Unlock(Core))
	}
	if can.LockMem {
		last := c.Mem[len(c.Mem)-1]
		must(t, d.Lock(Mem, last))
		if r := read(t, d); r.Mem != last {
			t.Errorf("memory at %v, locked at %v", r.Mem, last)
		}
		must(t, d.Unlock(Mem))
		must(t, d.Unlock(Mem))
	}
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
				checkLocks(t, d)
				want := Sharing{MIG: strings.HasSuffix(spec, ",mig"), MPS: strings.HasSuffix(spec, ",mps")}
				if got, err := d.Sharing(); err != nil || got != want {
					t.Errorf("%s: sharing %+v, %v", spec, got, err)
				}
			}
			must(t, l.Close())
		}
	}
}
