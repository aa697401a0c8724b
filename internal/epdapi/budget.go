package epdapi

import (
	"context"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
)

// Paths of power budgets: what an agent asks for its GPUs, and what people ask and set.
const (
	PathLease  = "/v1/lease"
	PathBudget = "/v1/budget"
	// PathBudgetCancel takes an event back.
	PathBudgetCancel = "/v1/budget/cancel"
)

// LeaseRequest is what an agent tells of its GPUs under a power budget, in exchange for new leases.
type LeaseRequest struct {
	Node string `json:"node"`
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
	Job     uint32         `json:"job,omitempty"`
}

// LeaseAnswer has the power limits that GPUs may have for a time. Without any the node is under no budget:
// the agent gives its limits back.
type LeaseAnswer struct {
	EveryS float64 `json:"every_s"` // when to ask again
	// ForS is how long the leases hold, counted from when the request was sent. A lease that isn't
	// renewed falls to its safe share.
	ForS   float64 `json:"for_s"`
	Leases []Lease `json:"leases"`
}

// Lease is the power limit that a GPU may have.
type Lease struct {
	UUID  string         `json:"uuid"`
	Watts dvfsmodel.Watt `json:"watts"`
	// Safe is what it has when the lease ends: the safe shares of all GPUs together are within the budget.
	Safe dvfsmodel.Watt `json:"safe_w"`
}

// BudgetList is what the nodes may take, and what they do.
type BudgetList struct {
	At     time.Time     `json:"at"`
	Mode   live.Mode     `json:"mode"`
	Scopes []BudgetScope `json:"scopes"` // the cluster, then partitions, then lists of nodes
	Events []BudgetEvent `json:"events"` // that aren't over, by when they begin
}

// BudgetScope is a set of nodes under a budget. Powers are of GPUs and hosts together.
type BudgetScope struct {
	Scope string `json:"scope"`
	Kind  string `json:"kind"` // cluster, partition or nodes
	// Budget is what holds now, null where nothing does; Spare is what is left of it.
	Budget live.Number `json:"budget_w"`
	Spare  live.Number `json:"spare_w"`
	// InForce is what the power limits in force allow at most. Nodes of which no agent told count by the
	// highest limits of their GPUs.
	InForce  dvfsmodel.Watt `json:"in_force_w"`
	Measured dvfsmodel.Watt `json:"measured_w"`
	// Short is by how much the GPUs' least limits exceed the budget: it isn't kept.
	Short dvfsmodel.Watt `json:"short_w"`
	GPUs  int            `json:"gpus"`
	// Slowed GPUs run jobs that take longer under their limits, so many times as long in the mean.
	Slowed   int         `json:"slowed_gpus"`
	Slowdown live.Number `json:"slowdown"`
	// Unlimited are GPUs whose limits can't be set: they count by what their boards take at most. Ignoring
	// are GPUs that draw more than their limits, and Silent nodes whose agents don't tell: their limits stay.
	Unlimited []string `json:"unlimited_gpus"`
	Ignoring  []string `json:"ignoring_gpus"`
	Silent    []string `json:"silent_nodes"`
}

// BudgetCancel names an event to cancel.
type BudgetCancel struct {
	ID string `json:"id"`
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

// BudgetsOf asks for the power budgets.
func BudgetsOf(ctx context.Context, c *Client) (*BudgetList, error) {
	return get[BudgetList](ctx, c, PathBudget, nil)
}
