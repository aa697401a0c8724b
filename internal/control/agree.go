package control

import (
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// Nodes of one run must not be at different clocks: the whole job goes at the
// pace of the slowest. The first decision of a run leads, and those of its other
// nodes follow it, whatever was learnt or configured in between.

// leadKey names decisions of which one may lead the others.
type leadKey struct {
	job      slurm.JobID
	gpuModel string
}

func (d *decided) leadKey() leadKey { return leadKey{slurm.JobID(d.Job), d.GPUModel} }

// soon is for how long a decision that was made without knowing the job leads.
const soon = time.Minute

// agree makes a decision follow that of another node of its run, or lead. The
// lock is held.
func (c *Controller) agree(d *decided) {
	if d.gpus == 0 {
		return
	}
	key := d.leadKey()
	lead := c.leads[key]
	if lead != nil && lead.leads(d) {
		d.follow(lead)
		return
	}
	c.leads[key] = d
}

// leads reports whether another decision is for a node of the same run, and asks
// the same.
func (d *decided) leads(other *decided) bool {
	if d.Node == other.Node || d.shared != other.shared || d.clocks != other.clocks {
		return false
	}
	if d.submitted == 0 || other.submitted == 0 {
		return other.at.Sub(d.at) < soon
	}
	return d.submitted == other.submitted
}

// follow makes a decision what another one is, but for its own node.
func (d *decided) follow(lead *decided) {
	own := d.Decision
	// One lot was drawn for the job.
	d.Decision, d.parts = lead.Decision, lead.parts
	// A lead from the store has no wish.
	d.ID, d.Node, d.Wish, d.Created, d.DefaultJ = own.ID, own.Node, own.Wish, own.Created, own.DefaultJ
	if power, ok := d.PowerW.Get(); ok {
		d.EnergyJ = live.Known(power * d.Predicted.Or(0) * float64(d.gpus))
	}
}

// leads reports whether a decision from the store may lead the one for a request.
func leads(d *record.Decision, r *DecideRequest, s *Settings) bool {
	return r.GPUs > 0 && !r.Shared && d.Reason != reasonShared && d.Reason != reasonLeft &&
		d.Reason != reasonNoGPUs && d.GPUModel == s.modelName(r.GPUModel)
}

// has reports whether clocks of a decision are among the device's.
func (t *table) has(setting dvfsmodel.Setting) bool {
	pair := t.base
	if setting.Core > 0 {
		pair.Core = setting.Core
	}
	if setting.Mem > 0 {
		pair.Mem = setting.Mem
	}
	return setting == dvfsmodel.Setting{} || t.supports(pair)
}

// dropDecided forgets a decision. The lock is held.
func (c *Controller) dropDecided(key decisionKey, d *decided) {
	delete(c.decided, key)
	if c.leads[d.leadKey()] == d {
		delete(c.leads, d.leadKey())
	}
}
