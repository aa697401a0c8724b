package gpu

import (
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
)

func TestEachControlHasALineOfItsOwn(t *testing.T) {
	keys, names := map[string]bool{}, map[string]bool{}
	var all dvfsmodel.Setting
	value := func(c Control) Value { return Value(uint(1) << c) } // which a control of any kind may have
	for c := range NumControls {
		if keys[c.Key()] || names[c.String()] || c.Key() == "" || c.String() == "" || c.Unit() == "" {
			t.Errorf("control %d: key %q, name %q, unit %q", c, c.Key(), c.String(), c.Unit())
		}
		keys[c.Key()], names[c.String()] = true, true
		c.SetIn(&all, value(c))
	}
	for c := range NumControls {
		if v := c.ValueIn(all); v != value(c) {
			t.Errorf("%v shares its field of a setting: %v, want %v", c, float64(v), float64(value(c)))
		}
		var one dvfsmodel.Setting
		if c.SetIn(&one, 8); one == (dvfsmodel.Setting{}) || c.ValueIn(one) != 8 {
			t.Errorf("%v of %+v is %v, want 8", c, one, float64(c.ValueIn(one)))
		}
		if !ControlsOf(c).Has(c) || ControlSet(0).Has(c) || !allControls.Has(c) {
			t.Errorf("%v in the wrong sets", c)
		}
	}
}

func TestEachProfileIsAloneInASetOfItsOwn(t *testing.T) {
	all := make([]dvfsmodel.PowerProfile, 0, dvfsmodel.MaxPowerProfile)
	for p := range dvfsmodel.MaxPowerProfile {
		all = append(all, p+1)
	}
	for _, p := range all {
		if got := slices.Collect(ProfilesOf(p).All()); !slices.Equal(got, []dvfsmodel.PowerProfile{p}) {
			t.Errorf("the set of profile %d has %d", p, got)
		}
		set, ok := profilesIn(Value(ProfilesOf(p)))
		if !ok || set != ProfilesOf(p) || set.lastProfile() != p {
			t.Errorf("as a value the set of profile %d is %v, %v", p, set, ok)
		}
	}
	if got := slices.Collect(ProfilesOf(all...).All()); !slices.Equal(got, all) {
		t.Errorf("the set of all profiles has %d", got)
	}
	if none := ProfilesOf(0, dvfsmodel.MaxPowerProfile+1); none != 0 {
		t.Errorf("profiles that there aren't: %v", none)
	}
}

// The journals of running agents have these names.
func TestTheKeysOfClocksStay(t *testing.T) {
	if CoreClock.Key() != "core" || MemClock.Key() != "memory" {
		t.Errorf("%q, %q", CoreClock.Key(), MemClock.Key())
	}
}
