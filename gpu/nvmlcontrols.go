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
	set     func(d *nvmlDevice, low, high Value) nvml.Return
	release func(*nvmlDevice) nvml.Return
}{
	CoreClock: {
		since:       nvml.DEVICE_ARCH_VOLTA,
		setFunction: "nvmlDeviceSetGpuLockedClocks", releaseFunction: "nvmlDeviceResetGpuLockedClocks",
		set: func(d *nvmlDevice, low, high Value) nvml.Return {
			return d.handle.SetGpuLockedClocks(uint32(low), uint32(high))
		},
		release: func(d *nvmlDevice) nvml.Return { return d.handle.ResetGpuLockedClocks() },
	},
	MemClock: {
		since:       nvml.DEVICE_ARCH_AMPERE,
		setFunction: "nvmlDeviceSetMemoryLockedClocks", releaseFunction: "nvmlDeviceResetMemoryLockedClocks",
		set: func(d *nvmlDevice, _, v Value) nvml.Return {
			return d.handle.SetMemoryLockedClocks(uint32(v), uint32(v))
		},
		release: func(d *nvmlDevice) nvml.Return { return d.handle.ResetMemoryLockedClocks() },
	},
	PowerLimit: {
		since:       nvml.DEVICE_ARCH_KEPLER,
		setFunction: "nvmlDeviceSetPowerManagementLimit", releaseFunction: fnDefaultLimit,
		set: func(d *nvmlDevice, _, v Value) nvml.Return {
			return d.handle.SetPowerManagementLimit(uint32(math.Round(1000 * float64(v))))
		},
		release: func(d *nvmlDevice) nvml.Return {
			delivered, ret := d.handle.GetPowerManagementDefaultLimit()
			if ret != nvml.SUCCESS {
				return ret
			}
			return d.handle.SetPowerManagementLimit(delivered)
		},
	},
	WorkloadProfile: {
		since:       nvml.DEVICE_ARCH_HOPPER,
		setFunction: fnProfiles, releaseFunction: fnProfiles,
		set: func(d *nvmlDevice, _, v Value) nvml.Return {
			set, _ := profilesIn(v)
			return changeProfiles(d, nvml.POWER_PROFILE_OPERATION_SET, profileMask(set))
		},
		release: func(d *nvmlDevice) nvml.Return {
			now, ret := d.handle.WorkloadPowerProfileGetCurrentProfiles()
			if ret != nvml.SUCCESS {
				return ret
			}
			return changeProfiles(d, nvml.POWER_PROFILE_OPERATION_CLEAR, now.RequestedProfilesMask)
		},
	},
}
