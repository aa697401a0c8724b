package daemon

import (
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
)

// settable is what can be set of a GPU, and the power limit in force where that is among it.
type settable struct {
	can   gpu.Capability
	limit dvfsmodel.Watt
}

// powerLimit returns what is known of the power limit of GPUs, zero where it can't be set on all of them,
// and whether the core clock of any can't be locked.
func (d *AgentServer) powerLimit(uuids []string) (limit epdapi.PowerLimit, coreFixed bool) {
	held := make(map[string]agent.Held) // limits that may be left of another run
	for _, g := range d.options.Agent.State().GPUs {
		if g.Entry != nil {
			held[g.Identity.UUID] = g.Entry.Controls[gpu.PowerLimit]
		}
	}
	answers, errs := agent.CallGPUs(d.options.Agent.GPUs(), uuids, settableOf)
	limit = epdapi.PowerLimit{InForce: record.MaxGPUPower, Max: record.MaxGPUPower}
	for i, a := range answers {
		if h := held[uuids[i]]; a.limit > 0 && h.IsOurs(gpu.PowerLimit, gpu.Value(a.limit)) {
			a.limit = max(a.limit, dvfsmodel.Watt(h.PriorValue))
		}
		if most := d.options.Agent.Leases().Share(uuids[i]); most > 0 {
			a.limit = min(a.limit, most)
		}
		coreFixed = coreFixed || errs[i] == nil && !a.can.Can(gpu.CoreClock)
		limit.InForce = min(limit.InForce, a.limit)
		limit.Min, limit.Max = max(limit.Min, a.can.Limits.Min), min(limit.Max, a.can.Limits.Max)
	}
	if !(limit.InForce > 0) || len(uuids) == 0 {
		limit = epdapi.PowerLimit{}
	}
	return limit, coreFixed
}

// settableOf asks a GPU. A limit that can't be read can't be set either.
func settableOf(dev gpu.Device) (s settable, err error) {
	if s.can = dev.Capability(); !s.can.Can(gpu.PowerLimit) {
		return s, nil
	}
	if s.limit, err = dev.PowerLimit(); err != nil {
		return settable{can: s.can}, nil //nolint:nilerr // it is said where it is set
	}
	if r, err := dev.Read(); err == nil && gpu.IsMeasured(r.Limit) && r.Limit > 0 {
		s.limit = min(s.limit, r.Limit)
	}
	return s, nil
}
