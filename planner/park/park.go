// Package park decides when an idle node goes to sleep.
package park

import (
	"math"

	"github.com/epplan/epplan/planner"
)

// DRS is the dynamic resource sleep of the EDL paper (§4.2.2): a node whose
// GPUs have all been idle for rho slots goes off. Where the cluster has no
// slots, rho is in seconds.
type DRS struct{ Rho float64 }

// OffAt is rho slots after the first whole slot in which nothing runs.
func (d DRS) OffAt(c *planner.Cluster, lastEnd float64) float64 {
	if c.Slot == 0 {
		return lastEnd + d.Rho
	}
	return (math.Ceil(lastEnd/c.Slot) + d.Rho) * c.Slot
}

// Never keeps every node on.
type Never struct{}

// OffAt is never.
func (Never) OffAt(*planner.Cluster, float64) float64 { return math.Inf(1) }
