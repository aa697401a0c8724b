// Package gputest is what every device of package gpu keeps, for the tests of each: a GPU behind NVML or
// its stand-in, the simulator, a folder like that of the amdgpu driver.
package gputest

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
)

// CheckReadOnly is what any device keeps that is fit to be read.
func CheckReadOnly(t *testing.T, d gpu.Device) {
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

func checkClocks(t *testing.T, d gpu.Device) {
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

// CheckControls is what any device keeps that may be changed: each control that it
// says it sets is set and given back, and what it doesn't have is refused.
func CheckControls(t *testing.T, d gpu.Device) {
	t.Helper()
	clocks, err := d.Clocks()
	must(t, err)
	lowest := map[gpu.Control]gpu.Value{
		gpu.CoreClock:       gpu.Value(clocks.Core[0][len(clocks.Core[0])-1]),
		gpu.MemClock:        gpu.Value(clocks.Mem[len(clocks.Mem)-1]),
		gpu.PowerLimit:      gpu.Value(d.Capability().Limits.Min),
		gpu.WorkloadProfile: gpu.Value(gpu.ProfilesOf(dvfsmodel.MaxQ)),
	}
	for c := range gpu.NumControls {
		if !d.Capability().Can(c) {
			if d.Set(c, lowest[c]) == nil || d.Fix(c, lowest[c]) == nil || d.Release(c) == nil {
				t.Errorf("%v set or given back, which it can't", c)
			}
			continue
		}
		var before gpu.Value
		if c.TellsPrior() {
			before, err = c.Prior(d)
			must(t, err)
		}
		must(t, d.Set(c, lowest[c]))
		r := read(t, d)
		if v, _, ok := c.Shown(&r); ok && v != lowest[c] {
			t.Errorf("%v at %v, set to %v", c, float64(v), float64(lowest[c]))
		}
		for _, set := range []func(gpu.Control, gpu.Value) error{d.Set, d.Fix} {
			if set(c, 1.5) == nil || set(c, -1) == nil || set(c, 1e9) == nil {
				t.Errorf("%v set to what it isn't", c)
			}
		}
		if c.TellsPrior() {
			checkPrior(t, d, c, lowest[c], before)
		}
		must(t, d.Release(c))
		must(t, d.Release(c))
	}
	checkProfiles(t, d)
	if d.Capability().Can(gpu.CoreClock) {
		checkCoreRange(t, d, gpu.Value(clocks.Core[0][0]))
	}
}

// checkCoreRange is what any device keeps of its core clock that has nothing to do: it is
// at a value that was fixed, and no higher than one that was set.
func checkCoreRange(t *testing.T, d gpu.Device, v gpu.Value) {
	t.Helper()
	must(t, d.Fix(gpu.CoreClock, v))
	if r := read(t, d); gpu.Value(r.Core) != v {
		t.Errorf("core clock at %v MHz, fixed at %v", float64(r.Core), float64(v))
	}
	must(t, d.Set(gpu.CoreClock, v))
	if r := read(t, d); gpu.Value(r.Core) > v {
		t.Errorf("core clock at %v MHz, set to %v", float64(r.Core), float64(v))
	}
	must(t, d.Release(gpu.CoreClock))
}

// checkPrior is what a device keeps of a control that tells what it is at: it is at what it was
// set to, and then at what it was before.
func checkPrior(t *testing.T, d gpu.Device, c gpu.Control, set, before gpu.Value) {
	t.Helper()
	if now, err := c.Prior(d); err != nil || !c.IsAt(now, set) {
		t.Errorf("%v is said to be at %v, set to %v: %v", c, float64(now), float64(set), err)
	}
	must(t, c.GiveBack(d, set, before))
	if now, err := c.Prior(d); err != nil || now != before {
		t.Errorf("%v at %v, given back to %v: %v", c, float64(now), float64(before), err)
	}
}

// checkProfiles is what any device keeps of its power profiles: one is in force beside others that it
// doesn't exclude, and is given back alone; one that wouldn't be in force isn't requested.
func checkProfiles(t *testing.T, d gpu.Device) {
	t.Helper()
	can := d.Capability()
	admissible, err := gpu.AdmissibleProfiles(d)
	if err != nil || can.Can(gpu.WorkloadProfile) != (admissible != 0) || admissible != can.Profiles {
		t.Errorf("profiles %v can be set, of %v: %v", admissible, can.Profiles, err)
	}
	if !can.Can(gpu.WorkloadProfile) {
		if _, err := gpu.ProfilesOn(d); !errors.Is(err, gpu.ErrNotSupported) {
			t.Errorf("profiles of a GPU that has none: %v", err)
		}
		return
	}
	state := func(want gpu.Profiles) {
		t.Helper()
		if now, err := gpu.ProfilesOn(d); err != nil || now != want {
			t.Errorf("profiles %+v, %v; want %+v", now, err, want)
		}
	}
	value := func(p dvfsmodel.PowerProfile) gpu.Value { return gpu.Value(gpu.ProfilesOf(p)) }
	maxP, maxQ := value(dvfsmodel.MaxP), value(dvfsmodel.MaxQ)
	both := gpu.ProfilesOf(dvfsmodel.MaxP, dvfsmodel.MaxQ)

	must(t, d.Set(gpu.WorkloadProfile, maxQ))
	state(gpu.Profiles{Requested: gpu.ProfilesOf(dvfsmodel.MaxQ), Enforced: gpu.ProfilesOf(dvfsmodel.MaxQ)})
	must(t, d.Set(gpu.WorkloadProfile, maxP)) // which excludes the other and goes before it
	state(gpu.Profiles{Requested: both, Enforced: gpu.ProfilesOf(dvfsmodel.MaxP)})
	must(t, gpu.WorkloadProfile.GiveBack(d, maxQ, 0))
	state(gpu.Profiles{Requested: gpu.ProfilesOf(dvfsmodel.MaxP), Enforced: gpu.ProfilesOf(dvfsmodel.MaxP)})
	if err := d.Set(gpu.WorkloadProfile, maxQ); !errors.Is(err, gpu.ErrNotSupported) {
		t.Errorf("a profile that isn't in force was requested: %v", err)
	}
	state(gpu.Profiles{Requested: gpu.ProfilesOf(dvfsmodel.MaxP), Enforced: gpu.ProfilesOf(dvfsmodel.MaxP)})
	must(t, gpu.WorkloadProfile.GiveBack(d, maxP, maxP)) // it was requested before
	state(gpu.Profiles{Requested: gpu.ProfilesOf(dvfsmodel.MaxP), Enforced: gpu.ProfilesOf(dvfsmodel.MaxP)})
	must(t, d.Release(gpu.WorkloadProfile))
	state(gpu.Profiles{})
	if d.Set(gpu.WorkloadProfile, maxP+maxQ) == nil ||
		d.Set(gpu.WorkloadProfile, value(dvfsmodel.MaxPowerProfile)) == nil {
		t.Error("two profiles at once were requested, or one that the GPU doesn't have")
	}
	state(gpu.Profiles{})
}

func read(t *testing.T, d gpu.Device) gpu.Reading {
	t.Helper()
	r, err := d.Read()
	must(t, err)
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
