package gpu

import (
	"fmt"

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

// String is the control in messages, such as "core clock".
func (c Control) String() string { return controls[c].name }

// Key is the control's name in files, such as "core".
func (c Control) Key() string { return controls[c].key }

// Unit is what its values are in.
func (c Control) Unit() string { return controls[c].unit }

// Of is what a setting wants of the control; 0: nothing.
func (c Control) Of(s dvfsmodel.Setting) Value { return controls[c].field.get(&s) }

// Put makes a setting want a value of the control.
func (c Control) Put(s *dvfsmodel.Setting, v Value) { controls[c].field.put(s, v) }

// Shown is what a reading shows of the control, and by how much that may exceed what is
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

// CheckBounds says why a GPU doesn't take a value whatever its clocks are.
func (c Control) CheckBounds(can Capability, v Value) error {
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
