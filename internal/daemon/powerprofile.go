package daemon

import (
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
)

// gpuProfiles are the workload power profiles that a GPU has, and those of now.
type gpuProfiles struct {
	has gpu.ProfileSet
	now gpu.Profiles
}

// profilesOf asks a GPU; one that has none isn't asked further.
func profilesOf(dev gpu.Device) (p gpuProfiles, err error) {
	if p.has = dev.Capability().Profiles; p.has != 0 {
		p.now, err = gpu.ProfilesOn(dev)
	}
	return p, err
}

// admissibleProfiles returns the workload power profiles that can be put in force on all of some GPUs.
func (d *AgentServer) admissibleProfiles(uuids []string) gpu.ProfileSet {
	if len(uuids) == 0 {
		return 0
	}
	sets, errs := agent.CallGPUs(d.options.Agent.GPUs(), uuids, gpu.AdmissibleProfiles)
	all := gpu.ProfilesOf(dvfsmodel.MaxPowerProfile)*2 - 1
	for i, set := range sets {
		if errs[i] != nil {
			return 0
		}
		all &= set
	}
	return all
}
