package gpu

import "github.com/epplan/epplan/dvfsmodel"

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
}

// controlInfo is one line of the table.
type controlInfo struct {
	key   string // in the journal and in the simulator's file: never changed
	name  string // in messages
	unit  string
	field settingField
	// supports reports whether a GPU of such clocks can be set to a value.
	supports func(*Clocks, Value) bool
	// shown is what a reading shows of it, by which it may exceed what is set by
	// the tolerance; NaN: not measured. nil: a reading doesn't show it.
	shown     func(*Reading) Value
	tolerance Value
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

// TellsPrior reports whether the driver tells what the control is at before it is set.
// Where it doesn't, only whoever sets a control knows, and only of what it set itself.
func (c Control) TellsPrior() bool { return controls[c].prior != nil }

// Prior asks a device what the control is at. [Control.TellsPrior] must hold.
func (c Control) Prior(d Device) (Value, error) { return controls[c].prior(d) }
