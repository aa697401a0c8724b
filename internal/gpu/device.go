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

// Domain is one of the clocks of a GPU that can be locked.
type Domain uint8

// The core clock can be locked from Volta on, the memory clock from Ampere on.
const (
	Core Domain = iota
	Mem
)

// String is the domain's name in messages and in the journal.
func (d Domain) String() string {
	if d == Mem {
		return "memory"
	}
	return "core"
}

// Identity says which GPU a device is. It never changes while the device is open.
type Identity struct {
	UUID  string // as NVML prints it, "GPU-…"
	Bus   string // PCI bus id in NVML's long form, "00000000:3B:00.0"
	Model string // product name
	// Minor is the number of the character device, /dev/nvidia<Minor>: how a
	// line of gres.conf finds its GPU.
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
	LockCore, LockMem bool // that clock can be locked
	Energy            bool // it counts energy
}

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
	// Lock fixes a clock at a supported value; it holds until Unlock, a reboot
	// or a reload of the driver, whoever runs on the GPU. NVML doesn't tell
	// afterwards what is locked.
	Lock(d Domain, f dvfsmodel.MHz) error
	// Unlock gives a clock back to the driver. Unlocking what isn't locked is
	// no error.
	Unlock(d Domain) error
	// PowerLimit is the limit in force.
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
