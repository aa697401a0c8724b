//go:build cgo && linux

package gpu

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// nvmlError maps a return code onto this package's errors; nil for success.
func nvmlError(ret nvml.Return) error {
	var kind error
	switch ret {
	case nvml.SUCCESS:
		return nil
	case nvml.ERROR_NO_PERMISSION:
		kind = ErrPermission
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_LIBRARY_NOT_FOUND,
		nvml.ERROR_DEPRECATED, nvml.ERROR_ARGUMENT_VERSION_MISMATCH:
		kind = ErrNotSupported
	case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_RESET_REQUIRED, nvml.ERROR_GPU_NOT_FOUND:
		kind = ErrLost
	case nvml.ERROR_UNINITIALIZED, nvml.ERROR_DRIVER_NOT_LOADED, nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		kind = ErrReloaded
	default:
		return fmt.Errorf("NVML error %d (%s)", int(ret), ret.Error())
	}
	return fmt.Errorf("%w (NVML error %d)", kind, int(ret))
}

// nvmlReasons are NVML's reasons in this package's.
var nvmlReasons = []struct {
	bit    uint64
	reason Throttle
}{
	{nvml.ClocksEventReasonGpuIdle, ThrottleIdle},
	{nvml.ClocksEventReasonApplicationsClocksSetting, ThrottleLocked},
	{nvml.ClocksEventReasonSwPowerCap, ThrottlePowerCap},
	{nvml.ClocksThrottleReasonHwSlowdown, ThrottleHardware},
	{nvml.ClocksEventReasonSyncBoost, ThrottleOther},
	{nvml.ClocksEventReasonSwThermalSlowdown, ThrottleThermal},
	{nvml.ClocksThrottleReasonHwThermalSlowdown, ThrottleThermal},
	{nvml.ClocksThrottleReasonHwPowerBrakeSlowdown, ThrottleHardware},
	{nvml.ClocksEventReasonDisplayClockSetting, ThrottleOther},
}

// nvmlThrottle maps reasons; those that are newer than this list are other ones.
func nvmlThrottle(bits uint64) Throttle {
	var t Throttle
	for _, r := range nvmlReasons {
		if bits&r.bit != 0 {
			t |= r.reason
			bits &^= r.bit
		}
	}
	if bits != 0 {
		t |= ThrottleOther
	}
	return t
}
