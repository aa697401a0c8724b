package control

import (
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// powerMargin is how many times the power of a busy GPU that its profile names no GPU
// draws: boards of one name have limits up to 1.8 times apart (V100: 250 to 450 W),
// and a profile may name a mean.
const powerMargin = 3

// mostPower is more than a GPU of a model draws; 0: its profile doesn't tell.
func (s *Settings) mostPower(model string) dvfsmodel.Watt {
	p, err := s.Profiles.Lookup(model)
	if err != nil {
		return 0
	}
	return powerMargin * p.BusyW
}

// nodeEnergy completes an outcome without a measured energy of its node: that
// of its GPUs, and the host power of so many GPUs for as long as it ran. It is
// marked as modelled. An outcome without time or GPU energy gets none.
func (s *Settings) nodeEnergy(o *record.Outcome) {
	if o.NodeSource != record.Unmeasured && o.NodeSource != record.Modelled {
		return
	}
	o.NodeEnergyJ, o.NodeSource = live.Number{}, record.Unmeasured
	gpus, measured := o.GPUEnergyJ.Get()
	lasted, ended := o.TimeS.Get()
	if !measured || !ended || len(o.GPUs) == 0 {
		return
	}
	host := dvfsmodel.Watt(len(o.GPUs)) * s.HostPower(o.GPUModel)
	o.NodeEnergyJ, o.NodeSource = live.Known(gpus+float64(host.Over(lasted))), record.Modelled
}
