//go:build cgo && linux

package gpu

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// nvmlLibrary is the driver's management library, libnvidia-ml.so.1.
type nvmlLibrary struct {
	api nvml.Interface
	// stale is set once a call said that the driver went away.
	stale atomic.Bool
}

// OpenNVML finds the GPUs of this machine. Without the NVIDIA driver the error
// says so, and is ErrNotSupported.
func OpenNVML() (Library, error) { return openNVML() }

func openNVML(opts ...nvml.LibraryOption) (*nvmlLibrary, error) {
	l := &nvmlLibrary{api: nvml.New(opts...)}
	if err := l.init(); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *nvmlLibrary) init() error {
	switch ret := l.api.Init(); ret {
	case nvml.SUCCESS:
		return nil
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return fmt.Errorf("NVML: no libnvidia-ml.so.1 on this machine, is the NVIDIA driver installed? %w",
			ErrNotSupported)
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return fmt.Errorf("NVML: the NVIDIA driver isn't loaded, or there is no NVIDIA GPU: %w",
			ErrNotSupported)
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return fmt.Errorf("NVML: the loaded driver and the library of this process are of different "+
			"versions, restart it: %w", ErrReloaded)
	default:
		return fmt.Errorf("NVML: init: %w", nvmlError(ret))
	}
}

// hasSymbol reports whether the driver's library knows a function. One that it doesn't
// know must not be called: the dynamic linker would end the process.
func (l *nvmlLibrary) hasSymbol(symbol string) bool {
	return l.api.Extensions().LookupSymbol(symbol) == nil
}

// Devices is part of [Library]. It opens the library anew, too, after the driver
// was reloaded.
func (l *nvmlLibrary) Devices() ([]Device, error) {
	if l.stale.Load() {
		_ = l.api.Shutdown() // of what is gone
		if err := l.init(); err != nil {
			return nil, err
		}
		l.stale.Store(false)
	}
	n, ret := l.api.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("NVML: count GPUs: %w", l.callError(ret))
	}
	devices := make([]Device, max(n, 0))
	var errs []error
	for i := range devices {
		d, err := l.open(i)
		if err != nil {
			errs = append(errs, fmt.Errorf("NVML: open GPU %d: %w", i, err))
			continue
		}
		devices[i] = d
	}
	return devices, errors.Join(errs...)
}

// Close gives the library back.
func (l *nvmlLibrary) Close() error {
	if ret := l.api.Shutdown(); ret != nvml.SUCCESS {
		return fmt.Errorf("NVML: shutdown: %w", nvmlError(ret))
	}
	return nil
}

// callError is the error of a return code, and remembers what it says of the
// library.
func (l *nvmlLibrary) callError(ret nvml.Return) error {
	err := nvmlError(ret)
	if errors.Is(err, ErrReloaded) {
		l.stale.Store(true)
	}
	return err
}

func (l *nvmlLibrary) open(i int) (*nvmlDevice, error) {
	handle, ret := l.api.DeviceGetHandleByIndex(i)
	if ret != nvml.SUCCESS {
		return nil, l.callError(ret)
	}
	d := &nvmlDevice{library: l, handle: handle, now: time.Now}
	if err := d.identify(); err != nil {
		return nil, err
	}
	d.detectCapability()
	return d, nil
}

// nvmlDevice is a GPU behind NVML. What it can do follows from its
// architecture, and from what it answers when asked for the first time.
type nvmlDevice struct {
	library *nvmlLibrary
	handle  nvml.Device
	id      Identity
	now     func() time.Time

	cantSet   [NumControls]atomic.Bool
	cantCount atomic.Bool
	limits    PowerRange   // of power, as of when it was opened
	profiles  profileRules // of power, as of when it was opened

	mu     sync.Mutex
	clocks *Clocks // nil: not asked yet
}

func (d *nvmlDevice) identify() error {
	uuid, ret := d.handle.GetUUID()
	if ret != nvml.SUCCESS {
		return fmt.Errorf("UUID: %w", d.library.callError(ret))
	}
	pci, ret := d.handle.GetPciInfo()
	if ret != nvml.SUCCESS {
		return fmt.Errorf("PCI bus id: %w", d.library.callError(ret))
	}
	name, ret := d.handle.GetName()
	if ret != nvml.SUCCESS {
		return fmt.Errorf("name: %w", d.library.callError(ret))
	}
	minor, ret := d.handle.GetMinorNumber()
	if ret != nvml.SUCCESS {
		return fmt.Errorf("minor number: %w", d.library.callError(ret))
	}
	d.id = Identity{UUID: uuid, Bus: cString(pci.BusId[:]), Model: name, Minor: minor}
	return nil
}

// cString returns a C string in a fixed field.
func cString(field []int8) string {
	b := make([]byte, 0, len(field))
	for _, c := range field {
		if c == 0 {
			break
		}
		b = append(b, byte(c)) //nolint:gosec // a char is a byte
	}
	return string(b)
}

// Functions that drivers in use don't all have.
const (
	fnArchitecture = "nvmlDeviceGetArchitecture"
	fnEnergy       = "nvmlDeviceGetTotalEnergyConsumption"
	fnReasons      = "nvmlDeviceGetCurrentClocksEventReasons"
	fnReasonsOld   = "nvmlDeviceGetCurrentClocksThrottleReasons"
	fnMIG          = "nvmlDeviceGetMigMode"
	fnMPS          = "nvmlDeviceGetMPSComputeRunningProcesses"
	fnLimit        = "nvmlDeviceGetPowerManagementLimit"
	fnDefaultLimit = "nvmlDeviceGetPowerManagementDefaultLimit"
	fnLimitRange   = "nvmlDeviceGetPowerManagementLimitConstraints"
	fnLimitInForce = "nvmlDeviceGetEnforcedPowerLimit"
	fnProfiles     = "nvmlDeviceWorkloadPowerProfileGetCurrentProfiles"
	fnProfileInfo  = "nvmlDeviceWorkloadPowerProfileGetProfilesInfo"
	fnProfileSet   = "nvmlDeviceWorkloadPowerProfileSetRequestedProfiles"
	fnProfileClear = "nvmlDeviceWorkloadPowerProfileClearRequestedProfiles"
	fnProfileNew   = "nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1"
)

// detectCapability finds out what the GPU can do without changing it. An unknown
// architecture is taken to be new.
func (d *nvmlDevice) detectCapability() {
	arch := nvml.DeviceArchitecture(nvml.DEVICE_ARCH_UNKNOWN)
	if d.library.hasSymbol(fnArchitecture) {
		if a, ret := d.handle.GetArchitecture(); ret == nvml.SUCCESS {
			arch = a
		}
	}
	for c := range NumControls {
		by := &nvmlControls[c]
		d.cantSet[c].Store(arch < by.since || !d.library.hasSymbol(by.setFunction) ||
			!d.library.hasSymbol(by.releaseFunction))
	}
	if d.limits = readLimits(d); d.limits == (PowerRange{}) {
		d.cantSet[PowerLimit].Store(true)
	}
	if !d.cantSet[WorkloadProfile].Load() {
		d.profiles = readProfiles(d)
		d.cantSet[WorkloadProfile].Store(len(d.profiles) == 0)
	}
	d.cantCount.Store(true)
	if d.library.hasSymbol(fnEnergy) {
		_, ret := d.handle.GetTotalEnergyConsumption()
		d.cantCount.Store(errors.Is(nvmlError(ret), ErrNotSupported))
	}
}

// readLimits returns what the board takes for a power limit; zero where that or the limit that is set
// can't be read.
func readLimits(d *nvmlDevice) PowerRange {
	if !d.library.hasSymbol(fnLimit) || !d.library.hasSymbol(fnLimitRange) {
		return PowerRange{}
	}
	if _, ret := d.handle.GetPowerManagementLimit(); ret != nvml.SUCCESS {
		return PowerRange{}
	}
	low, high, ret := d.handle.GetPowerManagementLimitConstraints()
	if ret != nvml.SUCCESS {
		return PowerRange{}
	}
	return PowerRange{Min: milliwatt(low).watt(), Max: milliwatt(high).watt()}
}

// Identity returns what NVML said when the device was opened.
func (d *nvmlDevice) Identity() Identity { return d.id }

// Capability is by architecture, less what the GPU refused since.
func (d *nvmlDevice) Capability() Capability {
	can := Capability{Energy: !d.cantCount.Load(), Limits: d.limits, Profiles: d.profiles.all()}
	for c := range NumControls {
		if !d.cantSet[c].Load() {
			can.Controls |= ControlsOf(c)
		}
	}
	return can
}

func (d *nvmlDevice) callError(op Op, ret nvml.Return) error {
	return fmt.Errorf("GPU %s: %v: %w", d.id.Bus, op, d.library.callError(ret))
}
