//go:build cgo && linux

package gpu

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/epplan/epplan/dvfsmodel"
)

// Clocks asks the GPU once.
func (d *nvmlDevice) Clocks() (Clocks, error) {
	d.mu.Lock()
	known := d.clocks
	d.mu.Unlock()
	if known == nil {
		table, ret := nvmlClocks(d.id.UUID)
		if ret != nvml.SUCCESS {
			return Clocks{}, d.callError(OpClocks, ret)
		}
		known = &table
		d.mu.Lock()
		d.clocks = known
		d.mu.Unlock()
	}
	return known.Clone(), nil
}

// Set sets the range of the core clock from the lowest one of the table on, so that the
// driver may lower it while nothing runs. Where there is no table, it is at one value.
func (d *nvmlDevice) Set(c Control, v Value) error {
	low := v
	if clocks, err := d.Clocks(); err == nil && c == CoreClock {
		low = min(v, clocks.LowestCore())
	}
	return d.setRange(c, low, v)
}

// Fix sets the range of a clock to one value.
func (d *nvmlDevice) Fix(c Control, v Value) error { return d.setRange(c, v, v) }

// setRange sets a control, of a clock to a range. NVML rounds a clock that a GPU doesn't support to
// something near, so that it is refused here, as far as the table can be read.
func (d *nvmlDevice) setRange(c Control, low, v Value) error {
	if d.cantSet[c].Load() {
		return fmt.Errorf("GPU %s: %v %v: %w", d.id.Bus, OpSet, c, ErrNotSupported)
	}
	if err := c.CheckBounds(d.Capability(), v); err != nil {
		return fmt.Errorf("GPU %s: %w", d.id.Bus, err)
	}
	if c == CoreClock || c == MemClock {
		if err := checkClock(d, c, v); err != nil {
			return err
		}
	}
	set := func() error {
		return d.change(OpSet, c, func() nvml.Return { return nvmlControls[c].set(d, low, v) })
	}
	if c == WorkloadProfile {
		return requestProfile(d, v, set)
	}
	return set()
}

// checkClock says why a clock can't be set, as far as that is known.
func checkClock(d *nvmlDevice, c Control, v Value) error {
	clocks, err := d.Clocks()
	switch {
	case errors.Is(err, ErrNotSupported):
		if !(v >= 1 && v <= math.MaxInt16) || v != Value(math.Trunc(float64(v))) {
			return fmt.Errorf("GPU %s: lock %v at %v %s: not a clock", d.id.Bus, c, float64(v), c.Unit())
		}
	case err != nil:
		return err
	case !clocks.supportsOne(c, v):
		return fmt.Errorf("GPU %s: lock %v at %v %s: not in its table of clocks", d.id.Bus, c, float64(v),
			c.Unit())
	}
	return nil
}

// Release resets the range of a clock, or sets the power limit that the board was delivered with.
func (d *nvmlDevice) Release(c Control) error {
	return d.change(OpRelease, c, func() nvml.Return { return nvmlControls[c].release(d) })
}

// change makes a call that needs a capability, and remembers when the GPU
// hasn't got it.
func (d *nvmlDevice) change(op Op, c Control, call func() nvml.Return) error {
	ret := nvml.ERROR_NOT_SUPPORTED
	if !d.cantSet[c].Load() {
		ret = call()
	}
	if ret == nvml.SUCCESS {
		return nil
	}
	err := d.library.callError(ret)
	if errors.Is(err, ErrNotSupported) {
		d.cantSet[c].Store(true)
	}
	return fmt.Errorf("GPU %s: %v %v: %w", d.id.Bus, op, c, err)
}

// PowerLimit returns what nvidia-smi -pl sets.
func (d *nvmlDevice) PowerLimit() (dvfsmodel.Watt, error) {
	if !d.library.hasSymbol(fnLimit) {
		return 0, d.callError(OpPowerLimit, nvml.ERROR_NOT_SUPPORTED)
	}
	mw, ret := d.handle.GetPowerManagementLimit()
	if ret != nvml.SUCCESS {
		return 0, d.callError(OpPowerLimit, ret)
	}
	return milliwatt(mw).watt(), nil
}

// Read asks for one value after the other. A value that can't be had is
// missing in the reading; it is an error when the GPU or the driver is gone, or
// when there is none at all.
func (d *nvmlDevice) Read() (Reading, error) {
	r := Reading{
		At: d.now(), Power: dvfsmodel.Watt(math.NaN()), Energy: dvfsmodel.Joule(math.NaN()),
		Core: dvfsmodel.MHz(math.NaN()), Mem: dvfsmodel.MHz(math.NaN()), Utilisation: math.NaN(), MemUsed: -1,
		Limit: dvfsmodel.Watt(math.NaN()),
	}
	var first error
	got := 0
	for _, read := range []func(*Reading) nvml.Return{
		d.readEnergy, d.readPower, d.readCore, d.readMem, d.readUtilisation, d.readMemory, d.readThrottle,
		d.readLimit,
	} {
		ret := read(&r)
		if ret == nvml.SUCCESS {
			got++
			continue
		}
		err := d.callError(OpRead, ret)
		if errors.Is(err, ErrLost) || errors.Is(err, ErrReloaded) {
			return Reading{}, err
		}
		if first == nil {
			first = err
		}
	}
	if got == 0 {
		return Reading{}, first
	}
	return r, nil
}

func (d *nvmlDevice) readEnergy(r *Reading) nvml.Return {
	if d.cantCount.Load() {
		return nvml.ERROR_NOT_SUPPORTED
	}
	mj, ret := d.handle.GetTotalEnergyConsumption()
	if ret == nvml.SUCCESS {
		r.Energy = dvfsmodel.Joule(mj) / 1000
	}
	return ret
}

func (d *nvmlDevice) readPower(r *Reading) nvml.Return {
	mw, ret := d.handle.GetPowerUsage()
	if ret == nvml.SUCCESS {
		r.Power = milliwatt(mw).watt()
	}
	return ret
}

// readLimit returns the limit in force, which may be lower than the one that is set.
func (d *nvmlDevice) readLimit(r *Reading) nvml.Return {
	if !d.library.hasSymbol(fnLimitInForce) {
		return nvml.ERROR_FUNCTION_NOT_FOUND
	}
	mw, ret := d.handle.GetEnforcedPowerLimit()
	if ret == nvml.SUCCESS {
		r.Limit = milliwatt(mw).watt()
	}
	return ret
}

func (d *nvmlDevice) readCore(r *Reading) nvml.Return {
	return d.readClock(nvml.CLOCK_GRAPHICS, &r.Core)
}

func (d *nvmlDevice) readMem(r *Reading) nvml.Return {
	return d.readClock(nvml.CLOCK_MEM, &r.Mem)
}

func (d *nvmlDevice) readClock(which nvml.ClockType, f *dvfsmodel.MHz) nvml.Return {
	mhz, ret := d.handle.GetClockInfo(which)
	if ret == nvml.SUCCESS {
		*f = dvfsmodel.MHz(mhz)
	}
	return ret
}

func (d *nvmlDevice) readUtilisation(r *Reading) nvml.Return {
	u, ret := d.handle.GetUtilizationRates()
	if ret == nvml.SUCCESS {
		r.Utilisation = float64(u.Gpu) / 100
	}
	return ret
}

func (d *nvmlDevice) readMemory(r *Reading) nvml.Return {
	m, ret := d.handle.GetMemoryInfo()
	if ret == nvml.SUCCESS {
		r.MemUsed = int64(min(m.Used, math.MaxInt64))
		r.MemTotal = int64(min(m.Total, math.MaxInt64))
	}
	return ret
}

func (d *nvmlDevice) readThrottle(r *Reading) nvml.Return {
	ask := d.handle.GetCurrentClocksEventReasons
	switch {
	case d.library.hasSymbol(fnReasons):
	case d.library.hasSymbol(fnReasonsOld):
		ask = d.handle.GetCurrentClocksThrottleReasons
	default:
		return nvml.ERROR_FUNCTION_NOT_FOUND
	}
	bits, ret := ask()
	if ret == nvml.SUCCESS {
		r.Throttle = nvmlThrottle(bits)
	}
	return ret
}

// Processes returns those that compute, draw or are clients of MPS, by pid.
func (d *nvmlDevice) Processes() ([]int, error) {
	var pids []int
	for _, list := range d.processLists() {
		infos, ret := list()
		if ret != nvml.SUCCESS && ret != nvml.ERROR_NOT_SUPPORTED {
			return nil, d.callError(OpProcesses, ret)
		}
		for _, info := range infos {
			pids = append(pids, int(info.Pid))
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

func (d *nvmlDevice) processLists() []func() ([]nvml.ProcessInfo, nvml.Return) {
	lists := []func() ([]nvml.ProcessInfo, nvml.Return){
		d.handle.GetComputeRunningProcesses, d.handle.GetGraphicsRunningProcesses,
	}
	if d.hasMPS() {
		lists = append(lists, d.handle.GetMPSComputeRunningProcesses)
	}
	return lists
}

// hasMPS reports whether the driver lists clients of MPS, by any version of the
// function.
func (d *nvmlDevice) hasMPS() bool {
	return d.library.hasSymbol(fnMPS) || d.library.hasSymbol(fnMPS+"_v2") || d.library.hasSymbol(fnMPS+"_v3")
}

// mpsServer is the process that runs the kernels of MPS clients.
const mpsServer = "nvidia-cuda-mps-server"

// Sharing tells MPS by its clients, or by its server among the processes.
func (d *nvmlDevice) Sharing() (Sharing, error) {
	var s Sharing
	if d.library.hasSymbol(fnMIG) {
		mode, _, ret := d.handle.GetMigMode()
		if ret != nvml.SUCCESS && ret != nvml.ERROR_NOT_SUPPORTED {
			return s, d.callError(OpSharing, ret)
		}
		s.MIG = ret == nvml.SUCCESS && mode == nvml.DEVICE_MIG_ENABLE
	}
	if d.hasMPS() {
		clients, ret := d.handle.GetMPSComputeRunningProcesses()
		if ret != nvml.SUCCESS && ret != nvml.ERROR_NOT_SUPPORTED {
			return s, d.callError(OpSharing, ret)
		}
		s.MPS = len(clients) > 0
	}
	if s.MPS {
		return s, nil
	}
	infos, ret := d.handle.GetComputeRunningProcesses()
	if ret != nvml.SUCCESS && ret != nvml.ERROR_NOT_SUPPORTED {
		return s, d.callError(OpSharing, ret)
	}
	s.MPS = slices.ContainsFunc(infos, func(info nvml.ProcessInfo) bool {
		name, ret := d.library.api.SystemGetProcessName(int(info.Pid))
		return ret == nvml.SUCCESS && path.Base(name) == mpsServer
	})
	return s, nil
}
