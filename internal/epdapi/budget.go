package epdapi

import (
	"time"

	"github.com/epplan/epplan/dvfsmodel"
)

// Paths of power budgets: what an agent asks for its GPUs, and what people ask and set.
const (
	PathLease  = "/v1/lease"
	PathBudget = "/v1/budget"
)

// LeaseRequest is what an agent tells of its GPUs under a power budget, in exchange for new leases.
type LeaseRequest struct {
	Node string `json:"node"`
	// Seq is that of the last answer whose limits are in force; 0: none since the agent's start.
	Seq uint64 `json:"seq"`
	// Stopping tells that the agent gives its GPUs' limits back once it is granted what they were at before.
	Stopping bool       `json:"stopping,omitempty"`
	GPUs     []LeaseGPU `json:"gpus"`
}

// LeaseGPU is what a GPU takes now, and what it could take. Powers that aren't known are 0.
type LeaseGPU struct {
	UUID  string `json:"uuid"`
	Model string `json:"model"`
	// Min and Max bound its power limit; both are 0 where it has none that can be set.
	Min dvfsmodel.Watt `json:"min_w"`
	Max dvfsmodel.Watt `json:"max_w"`
	// InForce is the limit that the driver keeps now, Prior the one that it is given back to.
	InForce dvfsmodel.Watt `json:"in_force_w"`
	Prior   dvfsmodel.Watt `json:"prior_w"`
	Power   dvfsmodel.Watt `json:"power_w"` // measured
	Used    bool           `json:"used"`    // a run has it, or something runs on it
}

// LeaseAnswer has the power limits that GPUs may have for a time. Without any the node is under no budget:
// the agent gives its limits back.
type LeaseAnswer struct {
	EveryS float64 `json:"every_s"` // when to ask again
	// ForS is how long the leases hold, counted from when the request was sent. A lease that isn't
	// renewed falls to its safe share.
	ForS   float64 `json:"for_s"`
	Seq    uint64  `json:"seq"`
	Leases []Lease `json:"leases"`
}

// Lease is the power limit that a GPU may have.
type Lease struct {
	UUID  string         `json:"uuid"`
	Watts dvfsmodel.Watt `json:"watts"`
	// Safe is what it has when the lease ends: the safe shares of all GPUs together are within the budget.
	Safe dvfsmodel.Watt `json:"safe_w"`
}

// BudgetEvent lowers the budget of a scope for a time.
type BudgetEvent struct {
	ID    string         `json:"id"`
	Scope string         `json:"scope"` // of the configuration's [budget]; empty: the cluster
	Watts dvfsmodel.Watt `json:"watts"`
	From  time.Time      `json:"from"`
	Until time.Time      `json:"until"`
	// RampS is how many seconds before From the budget begins to fall, and after Until it takes to rise.
	RampS float64   `json:"ramp_s"`
	By    string    `json:"by"` // who set it
	Set   time.Time `json:"set"`
}
