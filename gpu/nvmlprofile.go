//go:build cgo && linux

package gpu

import (
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/epplan/epplan/dvfsmodel"
)

// Workload power profiles by NVML: which there are, those that are requested by whomever, and those of them
// that are in force. Requests are for root alone, add up, and are gone with the driver.

// profileSet returns a mask of NVML's as a set. Profiles beyond [dvfsmodel.MaxPowerProfile] aren't in it.
func profileSet(m *nvml.Mask255) ProfileSet {
	all := ProfileSet(m.Mask[0]) | ProfileSet(m.Mask[1])<<32
	return all & (1<<dvfsmodel.MaxPowerProfile - 1)
}

// profileMask returns a set as a mask of NVML's.
func profileMask(s ProfileSet) (m nvml.Mask255) {
	m.Mask[0], m.Mask[1] = uint32(s), uint32(s>>32) //nolint:gosec // the lower half, and the upper one
	return m
}

// changeProfiles requests profiles beside others, or takes requests back. The functions of older drivers
// have been deprecated since CUDA 13.1, whose drivers have one in their place.
func changeProfiles(d *nvmlDevice, op nvml.PowerProfileOperation, mask nvml.Mask255) nvml.Return {
	if mask == (nvml.Mask255{}) {
		return nvml.SUCCESS
	}
	if d.library.hasSymbol(fnProfileNew) {
		return d.handle.WorkloadPowerProfileUpdateProfiles_v1(op, profileTypes(&mask))
	}
	request := nvml.WorkloadPowerProfileRequestedProfiles{RequestedProfilesMask: mask}
	request.Version = nvml.STRUCT_VERSION(request, 1)
	if op == nvml.POWER_PROFILE_OPERATION_CLEAR {
		return d.handle.WorkloadPowerProfileClearRequestedProfiles(&request)
	}
	return d.handle.WorkloadPowerProfileSetRequestedProfiles(&request)
}

// profileTypes returns the profiles of a mask.
func profileTypes(m *nvml.Mask255) (list []nvml.PowerProfileType) {
	for i, word := range m.Mask {
		for bit := range 32 {
			if word&(1<<bit) != 0 {
				list = append(list, nvml.PowerProfileType(32*i+bit))
			}
		}
	}
	return list
}

// readProfiles returns what the driver says of the GPU's profiles; none where they can't be requested, or
// what is requested can't be read.
func readProfiles(d *nvmlDevice) profileRules {
	hasOld := d.library.hasSymbol(fnProfileSet) && d.library.hasSymbol(fnProfileClear)
	if !d.library.hasSymbol(fnProfileInfo) || !hasOld && !d.library.hasSymbol(fnProfileNew) {
		return nil
	}
	if _, ret := d.handle.WorkloadPowerProfileGetCurrentProfiles(); ret != nvml.SUCCESS {
		return nil
	}
	info, ret := d.handle.WorkloadPowerProfileGetProfilesInfo()
	if ret != nvml.SUCCESS {
		return nil
	}
	rules := make(profileRules)
	for p := range profileSet(&info.PerfProfilesMask).All() {
		one := &info.PerfProfile[p-1]
		rules[p] = profileRule{priority: one.Priority, excludes: profileSet(&one.ConflictingMask)}
	}
	return rules
}

// Profiles asks the driver.
func (d *nvmlDevice) Profiles() (Profiles, error) {
	if len(d.profiles) == 0 {
		return Profiles{}, d.callError(OpProfiles, nvml.ERROR_NOT_SUPPORTED)
	}
	now, ret := d.handle.WorkloadPowerProfileGetCurrentProfiles()
	if ret != nvml.SUCCESS {
		return Profiles{}, d.callError(OpProfiles, ret)
	}
	return Profiles{
		Requested: profileSet(&now.RequestedProfilesMask), Enforced: profileSet(&now.EnforcedProfilesMask),
	}, nil
}

// Admissible goes by the priorities of the profiles and what they exclude.
func (d *nvmlDevice) Admissible() (ProfileSet, error) {
	now, err := d.Profiles()
	if err != nil {
		return 0, err
	}
	return d.profiles.admissible(now.Requested), nil
}

// Withdraw takes a request back.
func (d *nvmlDevice) Withdraw(p dvfsmodel.PowerProfile) error {
	return d.change(OpRelease, WorkloadProfile, func() nvml.Return {
		return changeProfiles(d, nvml.POWER_PROFILE_OPERATION_CLEAR, profileMask(ProfilesOf(p)))
	})
}

// How often, and after which pauses, a profile is looked for that was requested: no documentation says that
// it is in force as soon as the request is taken.
const (
	profileLooks = 5
	profilePause = 20 * time.Millisecond
)

// requestProfile requests a profile if that puts it in force, and looks whether it is. One that isn't is taken
// back: then nothing is set, as [ErrNotSupported] says.
func requestProfile(d *nvmlDevice, v Value, set func() error) error {
	wanted, _ := profilesIn(v)
	before, err := d.Profiles()
	if err != nil {
		return err
	}
	if d.profiles.admissible(before.Requested)&wanted == 0 {
		return fmt.Errorf("GPU %s: power profile %s: %s is requested, which excludes it: %w", d.id.Bus, wanted,
			before.Requested, ErrNotSupported)
	}
	if err := set(); err != nil {
		return err
	}
	var now Profiles
	for look := range profileLooks {
		if look > 0 {
			<-time.After(profilePause)
		}
		if now, err = d.Profiles(); err != nil {
			return err
		}
		if now.Requested&now.Enforced&wanted == wanted {
			return nil
		}
	}
	if before.Requested&wanted == 0 {
		if err := d.Withdraw(wanted.lastProfile()); err != nil {
			return fmt.Errorf("power profile %s isn't in force, and can't be taken back: %s", wanted, err.Error())
		}
	}
	return fmt.Errorf("GPU %s: power profile %s was requested and isn't in force (%s is): %w", d.id.Bus,
		wanted, now.Enforced, ErrNotSupported)
}
