package gpu

import (
	"errors"
	"fmt"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
)

// Errors that devices return, wrapped with what was tried. Anything else is a
// fault of the driver that trying again may mend.
var (
	// ErrPermission tells that the process may not do it: locking clocks needs
	// root, or the administrator took the right away.
	ErrPermission = errors.New("permission denied")
	// ErrNotSupported tells that this GPU or driver can't do it at all.
	ErrNotSupported = errors.New("not supported by this GPU")
	// ErrLost tells that the GPU fell off the bus; only a reboot brings it back.
	ErrLost = errors.New("GPU is lost")
	// ErrReloaded tells that the driver was unloaded since the device was
	// opened: the handle is stale, and locks are gone with the driver.
	ErrReloaded = errors.New("the driver was reloaded")
)

// Control is something of a GPU that has a value from before and can be set to
// another. What journals, restoring and the simulator know of a control is its
// line in a table (control.go), so that they are the same for all.
type Control uint8

// The controls, in the order in which they are set and given back.
const (
	// CoreClock can be set from Volta on.
	CoreClock Control = iota
	// MemClock can be set from Ampere on. Which core clocks there are depends on it.
	MemClock
	// PowerLimit is the most that the GPU may draw, for which it lowers its clocks. The driver
	// tells what it is set to.
	PowerLimit
	// WorkloadProfile is a power profile that is requested. Its values are a [ProfileSet] of one, and what
	// was there before is the set of all that are requested. What has it is a [ProfileDevice].
	WorkloadProfile
)

// Value is what a control is set to, in its unit; 0: to nothing, it is the driver's.
type Value float64

// ControlSet is a set of controls.
type ControlSet uint32

// ControlsOf returns the set of some controls.
func ControlsOf(list ...Control) ControlSet {
	var s ControlSet
	for i := range list {
		s |= 1 << list[i]
	}
	return s
}

// Has reports whether a control is in the set.
func (s ControlSet) Has(c Control) bool { return s&(1<<c) != 0 }

// with returns the set with a control or without it.
func (s ControlSet) with(c Control, is bool) ControlSet {
	if is {
		return s | ControlsOf(c)
	}
	return s &^ ControlsOf(c)
}

// Identity says which GPU a device is. It never changes while the device is open.
type Identity struct {
	UUID  string // as the driver's own tools print it, "GPU-…"
	Bus   string // PCI bus id in NVML's long form, "00000000:3B:00.0"
	Model string // product name
	// Minor is the number of the character device, /dev/nvidia<Minor> or, of AMD's GPUs,
	// /dev/dri/renderD<Minor>: how a line of gres.conf finds its GPU.
	Minor int
}

// String names the GPU in messages.
func (i Identity) String() string { return fmt.Sprintf("%s at %s (%s)", i.Model, i.Bus, i.UUID) }

// Clocks is the table of clocks that a GPU supports: for each memory clock, in
// falling order, the core clocks that go with it, in falling order.
type Clocks struct {
	Mem  []dvfsmodel.MHz
	Core [][]dvfsmodel.MHz // by index of Mem
}

// Capability is what can be done with a device.
type Capability struct {
	Controls ControlSet // what can be set
	Energy   bool       // it counts energy
	Limits   PowerRange // of power, that the board takes; zero: not known
	Profiles ProfileSet // that it has
}

// PowerRange is the least and the most that a power limit can be.
type PowerRange struct{ Min, Max dvfsmodel.Watt }

// Can reports whether a control can be set.
func (c Capability) Can(control Control) bool { return c.Controls.Has(control) }

// Reading is what a device measures at a moment. NaN and -1 stand for what it
// can't measure.
type Reading struct {
	At          time.Time
	Power       dvfsmodel.Watt
	Energy      dvfsmodel.Joule // since the driver was loaded; only differences mean anything
	Core, Mem   dvfsmodel.MHz   // running now
	Utilisation float64         // part of the last sample period in which a kernel ran, 0..1
	MemUsed     int64           // bytes
	MemTotal    int64           // of the GPU, bytes; 0: not known
	Throttle    Throttle
	// Limit is the power limit in force: the lowest of all that are set, by whomever. 0 or NaN: not
	// known.
	Limit dvfsmodel.Watt
}

// Throttle is a set of reasons why clocks are below what was asked.
type Throttle uint16

// Reasons in NVML's words. Idle and Locked (NVML: applications clocks setting)
// are no cause for concern.
const (
	ThrottleIdle Throttle = 1 << iota
	ThrottleLocked
	ThrottlePowerCap
	ThrottleThermal
	ThrottleHardware // power brake or a slowdown signal
	ThrottleOther
)

// Sharing is how a GPU is divided among jobs.
type Sharing struct {
	MIG bool // MIG mode is on
	MPS bool // an MPS server runs on it
}

// Device is a GPU. Its methods may be called by several goroutines; each may
// take as long as the driver likes, so that callers bound their waiting and
// never hold a lock over a call.
type Device interface {
	Identity() Identity
	Capability() Capability
	// Clocks is the table of supported clocks.
	Clocks() (Clocks, error)
	// Set sets a control to a supported value, above which it isn't any more. It holds
	// until Release, a reboot or a reload of the driver, whoever runs on the GPU. The
	// core clock of a GPU that has nothing to do may fall below, down to the lowest one
	// of its table. NVML doesn't tell afterwards which clocks are locked.
	Set(c Control, v Value) error
	// Fix is Set for a clock that isn't to fall below the value either.
	Fix(c Control, v Value) error
	// Release gives a control back to the driver. Releasing what isn't set is
	// no error.
	Release(c Control) error
	// PowerLimit is what the power limit is set to, by whomever. A lower one may be in force
	// ([Reading.Limit]).
	PowerLimit() (dvfsmodel.Watt, error)
	Read() (Reading, error)
	// Processes are the pids that use the GPU now.
	Processes() ([]int, error)
	Sharing() (Sharing, error)
}

// Library finds the GPUs of a machine.
type Library interface {
	// Devices opens the GPUs, in the driver's order, which is that of their PCI bus
	// ids and not that of their device files. One that the driver counts but that
	// can't be opened is nil in its place and named in the error; the others come
	// with it.
	Devices() ([]Device, error)
	Close() error
}
