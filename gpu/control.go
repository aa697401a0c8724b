package gpu

import (
	"fmt"
	"math"

	"github.com/epplan/epplan/dvfsmodel"
)

// NumControls is how many there are: range over it to reach each in its order.
const NumControls = Control(len(controls))

const allControls ControlSet = 1<<NumControls - 1

// controls is the table of controls.
var controls = [...]controlInfo{
	CoreClock: {
		key: "core", name: "core clock", unit: "MHz",
		field:    fieldOf(func(s *dvfsmodel.Setting) *dvfsmodel.MHz { return &s.Core }),
		supports: (*Clocks).hasCore,
		shown:    func(r *Reading) Value { return Value(r.Core) }, tolerance: 20,
	},
	MemClock: {
		key: "memory", name: "memory clock", unit: "MHz",
		field:    fieldOf(func(s *dvfsmodel.Setting) *dvfsmodel.MHz { return &s.Mem }),
		supports: (*Clocks).hasMem,
		shown:    func(r *Reading) Value { return Value(r.Mem) }, tolerance: 20,
	},
	PowerLimit: {
		key: "power_limit", name: "power limit", unit: "W",
		field:  fieldOf(func(s *dvfsmodel.Setting) *dvfsmodel.Watt { return &s.Cap }),
		bounds: func(can Capability) (low, high Value) { return Value(can.Limits.Min), Value(can.Limits.Max) },
		shown:  func(r *Reading) Value { return Value(r.Limit) }, tolerance: 1, asSet: true,
		prior: func(d Device) (Value, error) {
			limit, err := d.PowerLimit()
			return Value(limit), err
		},
	},
	WorkloadProfile: {
		key: "power_profile", name: "power profile", unit: "profile",
		field: settingField{
			get: func(s *dvfsmodel.Setting) Value { return Value(ProfilesOf(s.Profile)) },
			put: func(s *dvfsmodel.Setting, v Value) {
				set, _ := profilesIn(v)
				s.Profile = set.lastProfile()
			},
		},
		isChoice: true, prior: requestedValue, giveBack: withdrawUnless,
	},
}

// controlInfo is one line of the table.
type controlInfo struct {
	key   string // in the journal and in the simulator's file: never changed
	name  string // in messages
	unit  string
	field settingField
	// supports reports whether a GPU of such clocks can be set to a value; nil: it is no clock.
	supports func(*Clocks, Value) bool
	// bounds are the least and the most that a GPU takes; nil: it has a table of values.
	bounds func(Capability) (low, high Value)
	// shown is what a reading shows of it, by which it may exceed what is set by
	// the tolerance; NaN: not measured. nil: a reading doesn't show it.
	shown     func(*Reading) Value
	tolerance Value
	// asSet: what is shown is what the control is set to, whatever runs; else it is what the
	// GPU runs at, which load and throttling lower.
	asSet bool
	// prior asks the driver what the control is at. nil: the driver doesn't tell.
	prior func(Device) (Value, error)
	// isChoice: its values have no order. One is set beside those that are there, and is given back alone.
	isChoice bool
	// giveBack gives back one that was set; nil: to what was there before.
	giveBack func(d Device, set, before Value) error
}

// settingField is where a [dvfsmodel.Setting] has a control.
type settingField struct {
	get func(*dvfsmodel.Setting) Value
	put func(*dvfsmodel.Setting, Value)
}

func fieldOf[T ~float64](at func(*dvfsmodel.Setting) *T) settingField {
	return settingField{
		get: func(s *dvfsmodel.Setting) Value { return Value(*at(s)) },
		put: func(s *dvfsmodel.Setting, v Value) { *at(s) = T(v) },
	}
}

// String returns the control in messages, such as "core clock".
func (c Control) String() string { return controls[c].name }

// Key returns the control's name in files, such as "core".
func (c Control) Key() string { return controls[c].key }

// MarshalText writes the control's key.
func (c Control) MarshalText() ([]byte, error) { return []byte(c.Key()), nil }

// UnmarshalText reads a control's key, and refuses others.
func (c *Control) UnmarshalText(key []byte) error {
	for *c = range NumControls {
		if c.Key() == string(key) {
			return nil
		}
	}
	return fmt.Errorf("unknown control %q", key)
}

// Unit returns what its values are in.
func (c Control) Unit() string { return controls[c].unit }

// ValueIn returns what a setting wants of the control; 0: nothing.
func (c Control) ValueIn(s dvfsmodel.Setting) Value { return controls[c].field.get(&s) }

// SetIn makes a setting want a value of the control.
func (c Control) SetIn(s *dvfsmodel.Setting, v Value) { controls[c].field.put(s, v) }

// Shown returns what a reading shows of the control, and by how much that may exceed what is
// set. It is false where readings don't show it; NaN is what wasn't measured.
func (c Control) Shown(r *Reading) (v, tolerance Value, ok bool) {
	info := &controls[c]
	if info.shown == nil {
		return 0, 0, false
	}
	return info.shown(r), info.tolerance, true
}

// Tolerance is by how much a reading may differ from what is set.
func (c Control) Tolerance() Value { return controls[c].tolerance }

// TellsPrior reports whether the driver tells what the control is at before it is set.
// Where it doesn't, only whoever sets a control knows, and only of what it set itself.
func (c Control) TellsPrior() bool { return controls[c].prior != nil }

// Prior asks a device what the control is at. [Control.TellsPrior] must hold.
func (c Control) Prior(d Device) (Value, error) { return controls[c].prior(d) }

// ShowsWhatIsSet reports whether readings show what the control is set to, and not what the GPU
// runs at.
func (c Control) ShowsWhatIsSet() bool { return controls[c].asSet }

// IsChoice reports whether the control's values have no order. Of two none is the faster one, so that a
// GPU whose runs want different ones is set to none.
func (c Control) IsChoice() bool { return controls[c].isChoice }

// Faster returns the one of two values that suits whoever wants either; 0, nothing, is the fastest.
func (c Control) Faster(v, w Value) Value {
	if v == 0 || w == 0 || c.IsChoice() && v != w {
		return 0
	}
	return max(v, w)
}

// IsAbove reports whether a value is above what was there before, where it mustn't be.
func (c Control) IsAbove(v, before Value) bool { return !c.IsChoice() && v > before }

// IsAt reports whether the control is still at what it was set to, by what the driver says now.
func (c Control) IsAt(now, set Value) bool {
	if c.IsChoice() {
		there, _ := profilesIn(now)
		ours, _ := profilesIn(set)
		return there&ours == ours
	}
	return math.Abs(float64(now-set)) <= float64(c.Tolerance())
}

// IsPrior reports whether a driver may have told a value before the control was set.
func (c Control) IsPrior(v Value) bool { return v > 0 || c.IsChoice() && v == 0 }

// GiveBack gives back a value that was set, to one from before that is known.
func (c Control) GiveBack(d Device, set, before Value) error {
	if giveBack := controls[c].giveBack; giveBack != nil {
		return giveBack(d, set, before)
	}
	return d.Set(c, before) //nolint:wrapcheck // names the GPU
}

// Words returns a value in words, such as "945 MHz" or "Max-Q".
func (c Control) Words(v Value) string {
	if c.IsChoice() {
		set, _ := profilesIn(v)
		return set.String()
	}
	return fmt.Sprintf("%v %s", float64(v), c.Unit())
}

// CheckBounds says why a GPU doesn't take a value whatever its clocks are.
func (c Control) CheckBounds(can Capability, v Value) error {
	if c.IsChoice() {
		if set, ok := profilesIn(v); !ok || set&can.Profiles != set || v != Value(ProfilesOf(set.lastProfile())) ||
			set == 0 {
			return fmt.Errorf("%s %s isn't one of the GPU's, which has %s", c, c.Words(v), can.Profiles)
		}
		return nil
	}
	bounds := controls[c].bounds
	if bounds == nil {
		return nil
	}
	low, high := bounds(can)
	if !(v > 0 && v >= low && v <= high) {
		return fmt.Errorf("%s %v %s is outside what the board takes, %v to %v %s", c, float64(v), c.Unit(),
			float64(low), float64(high), c.Unit())
	}
	return nil
}
