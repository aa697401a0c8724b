package epdapi

import (
	"context"
	"net/url"
	"time"
)

// PathUsage is that of [Usage].
const PathUsage = "/v1/usage"

// MaxUsageGroups is how many groups a [Usage] tells apart.
const MaxUsageGroups = 1000

// Usage is what runs used that ended in a period, and what was saved by them.
type Usage struct {
	Since time.Time `json:"since,omitzero"` // the zero time: all that is known
	Until time.Time `json:"until,omitzero"` // the zero time: up to now
	By    string    `json:"by"`             // user, account, partition, workload or gpu
	// Total is all runs, those of Pruned included.
	Total UsageSum `json:"total"`
	// Groups are those that used most, the first one most of all; those beyond [MaxUsageGroups] are summed up
	// in Others.
	Groups     []UsageSum `json:"groups"`
	Others     *UsageSum  `json:"others,omitempty"`
	OtherCount int        `json:"other_groups,omitempty"`
	// Pruned are runs that aren't kept one by one any more, of months whose middle lies in the period: they are in
	// no group, and in no part of the period.
	Pruned *UsageSum `json:"pruned,omitempty"`
	// Over is the period in parts: days, from 63 days on months, by the controller's clock.
	Over    []UsagePart `json:"over"`
	Savings Savings     `json:"savings"` // of the same period
}

// UsageSum is what runs used. Of a run on several nodes each node counts.
type UsageSum struct {
	Key string `json:"key"` // of the group; "": nobody knows
	// LastJob is the last job of a workload.
	LastJob LastJob `json:"last_job,omitzero"`
	Jobs    int64   `json:"jobs"` // that are known
	Runs    int64   `json:"runs"` // on one node each
	GPUS    float64 `json:"gpu_s"`
	// EnergyJ is that of nodes, as far as it is measured or modelled, else that of GPUs, of EnergyRuns; the energy
	// of the others isn't known.
	EnergyJ     float64 `json:"energy_j"`
	EnergyRuns  int64   `json:"energy_runs"`
	GPUEnergyJ  float64 `json:"gpu_energy_j"`
	NodeEnergyJ float64 `json:"node_energy_j"`
	NodeRuns    int64   `json:"node_runs"`
	HeldOutJ    float64 `json:"held_out_j"` // part of EnergyJ that held-out runs used
	// Modelled is what the models say that treated runs saved at the GPUs; it isn't measured.
	Modelled ModelledUse `json:"modelled"`
}

// Add adds what other runs used.
func (u *UsageSum) Add(o *UsageSum) {
	u.Jobs, u.Runs, u.GPUS = u.Jobs+o.Jobs, u.Runs+o.Runs, u.GPUS+o.GPUS
	u.EnergyJ, u.EnergyRuns = u.EnergyJ+o.EnergyJ, u.EnergyRuns+o.EnergyRuns
	u.GPUEnergyJ += o.GPUEnergyJ
	u.NodeEnergyJ, u.NodeRuns = u.NodeEnergyJ+o.NodeEnergyJ, u.NodeRuns+o.NodeRuns
	u.HeldOutJ += o.HeldOutJ
	u.Modelled.Runs += o.Modelled.Runs
	u.Modelled.DefaultJ += o.Modelled.DefaultJ
	u.Modelled.UsedJ += o.Modelled.UsedJ
}

// UsagePart is a part of a period.
type UsagePart struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	UsageSum
}

// UsageOf asks what runs used that ended since a time and before another one, by groups; zero times: ever.
func UsageOf(ctx context.Context, c *Client, since, until time.Time, by string) (*Usage, error) {
	query := periodQuery(since, until)
	query.Set("by", by)
	return get[Usage](ctx, c, PathUsage, query)
}

func periodQuery(since, until time.Time) url.Values {
	query := url.Values{}
	for name, at := range map[string]time.Time{"since": since, "until": until} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339))
		}
	}
	return query
}
