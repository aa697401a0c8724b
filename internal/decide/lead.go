package decide

import (
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
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

func (d *Decided) leadKey() leadKey { return leadKey{slurm.JobID(d.Job), d.GPUModel} }

// leadWindow is for how long a decision that was made without knowing the job leads.
const leadWindow = time.Minute

// followOrLead makes a decision follow that of another node of its run, or lead. The
// lock is held.
func (dr *Decider) followOrLead(d *Decided) {
	if d.gpus == 0 {
		return
	}
	key := d.leadKey()
	lead := dr.leads[key]
	if lead != nil && lead.canLead(d) {
		d.copyLead(lead)
		return
	}
	dr.leads[key] = d
}

// canLead reports whether another decision is for a node of the same run, and asks
// the same.
func (d *Decided) canLead(other *Decided) bool {
	if d.Node == other.Node || d.shared != other.shared || d.clockHash != other.clockHash ||
		d.Cap > 0 && !other.limit.Takes(d.Cap) ||
		d.Profile != 0 && !slices.Contains(other.profiles, d.Profile.String()) {
		return false
	}
	if d.submitted == 0 || other.submitted == 0 {
		return other.At.Sub(d.At) < leadWindow
	}
	return d.submitted == other.submitted
}

// copyLead makes a decision what another one is, but for its own node.
func (d *Decided) copyLead(lead *Decided) {
	own := d.Decision
	// One lot was drawn for the job.
	d.Decision, d.armShares = lead.Decision, lead.armShares
	// A lead from the store has no wish.
	d.ID, d.Node, d.Wish, d.Created, d.DefaultJ = own.ID, own.Node, own.Wish, own.Created, own.DefaultJ
	if power, ok := d.PowerW.Get(); ok {
		d.EnergyJ = live.Known(power * d.Predicted.Or(0) * float64(d.gpus))
	}
}

// storedCanLead reports whether a decision from the store may lead the one for a request.
func storedCanLead(d *record.Decision, r *epdapi.DecideRequest, s *Settings) bool {
	return r.GPUs > 0 && !r.Shared && !isReason(d.Reason, reasonShared) && !isReason(d.Reason, reasonLeft) &&
		d.Reason != reasonNoGPUs && d.GPUModel == s.ModelName(r.GPUModel) &&
		(d.Setting.Cap == 0 || r.PowerLimit.Takes(d.Setting.Cap)) &&
		(d.Setting.Profile == 0 || r.HasProfile(d.Setting.Profile))
}

// hasSetting reports whether clocks of a decision are among the device's.
func (t *ClockTable) hasSetting(setting dvfsmodel.Setting) bool {
	pair := t.Base
	if setting.Core > 0 {
		pair.Core = setting.Core
	}
	if setting.Mem > 0 {
		pair.Mem = setting.Mem
	}
	return setting.Core == 0 && setting.Mem == 0 || t.supports(pair) && t.isUnderSite(pair)
}

// drop forgets a decision. The lock is held.
func (dr *Decider) drop(key jobOnNode, d *Decided) {
	delete(dr.decided, key)
	if dr.leads[d.leadKey()] == d {
		delete(dr.leads, d.leadKey())
	}
}
