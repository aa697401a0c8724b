//go:build cgo && linux

package gpu

import (
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// nvmlControls are the calls that set controls: which functions of the driver's library
// they need, and from which architecture on GPUs have them.
var nvmlControls = [NumControls]struct {
	since                        nvml.DeviceArchitecture
	setFunction, releaseFunction string
	// set sets a range. Controls that are at one value take its upper end.
	set     func(d nvml.Device, low, high Value) nvml.Return
	release func(nvml.Device) nvml.Return
}{
	CoreClock: {
		since:       nvml.DEVICE_ARCH_VOLTA,
		setFunction: "nvmlDeviceSetGpuLockedClocks", releaseFunction: "nvmlDeviceResetGpuLockedClocks",
		set: func(d nvml.Device, low, high Value) nvml.Return {
			return d.SetGpuLockedClocks(uint32(low), uint32(high))
		},
		release: nvml.Device.ResetGpuLockedClocks,
	},
	MemClock: {
		since:       nvml.DEVICE_ARCH_AMPERE,
		setFunction: "nvmlDeviceSetMemoryLockedClocks", releaseFunction: "nvmlDeviceResetMemoryLockedClocks",
		set: func(d nvml.Device, _, v Value) nvml.Return {
			return d.SetMemoryLockedClocks(uint32(v), uint32(v))
		},
		release: nvml.Device.ResetMemoryLockedClocks,
	},
	PowerLimit: {
		since:       nvml.DEVICE_ARCH_KEPLER,
		setFunction: "nvmlDeviceSetPowerManagementLimit", releaseFunction: fnDefaultLimit,
		set: func(d nvml.Device, _, v Value) nvml.Return {
			return d.SetPowerManagementLimit(uint32(math.Round(1000 * float64(v))))
		},
		release: func(d nvml.Device) nvml.Return {
			delivered, ret := d.GetPowerManagementDefaultLimit()
			if ret != nvml.SUCCESS {
				return ret
			}
			return d.SetPowerManagementLimit(delivered)
		},
	},
}
