package epdapi

import (
	"context"
	"net/url"
	"time"
)

// PathUsage is the path of [Usage].
const PathUsage = "/v1/usage"

// MaxUsageGroups limits the groups of a [Usage].
const MaxUsageGroups = 1000

// Usage holds the energy, GPU time and savings of runs that ended in a period.
type Usage struct {
	Since time.Time `json:"since,omitzero"` // absent: since the first record
	Until time.Time `json:"until,omitzero"` // absent: up to now
	By    string    `json:"by"`             // user, account, partition, workload or gpu
	// Log is the accounting log whose jobs these are, without savings; "": epd's records.
	Log string `json:"log,omitempty"`
	// Own says that only runs of User count, who asked; "": not known, and so there are none.
	Own  bool   `json:"own,omitempty"`
	User string `json:"user,omitempty"`
	// Total covers all runs, including Pruned, but for those of a user's own usage.
	Total UsageSum `json:"total"`
	// Groups are sorted by energy, the largest first. Others sums the groups beyond [MaxUsageGroups].
	Groups     []UsageSum `json:"groups"`
	Others     *UsageSum  `json:"others,omitempty"`
	OtherCount int        `json:"other_groups,omitempty"`
	// Pruned sums runs of which only monthly totals remain, for the same months as Savings. No group and no
	// part of the period includes them. In a user's own usage they are those of all users.
	Pruned *UsageSum `json:"pruned,omitempty"`
	// Over divides the period into days, or into months if it is longer than 62 days, in the controller's time
	// zone; a user's own usage has no parts.
	Over    []UsagePart `json:"over"`
	Factors Factors     `json:"factors"`
	Savings *Savings    `json:"savings,omitempty"` // of the same period; left out of a user's own usage
}

// UsageSum sums runs. A run on several nodes counts once for each node.
type UsageSum struct {
	Key string `json:"key"` // of the group; "": not known
	// LastJob is the last job of a workload.
	LastJob LastJob `json:"last_job,omitzero"`
	Jobs    int64   `json:"jobs"` // that are known
	Runs    int64   `json:"runs"` // on one node each
	GPUS    float64 `json:"gpu_s"`
	// IdleGPUS is the part of GPUS in which the GPUs had no work, of runs whose utilisation is known, and IdleJ
	// what GPUs of known models draw idle in that time.
	IdleGPUS float64 `json:"idle_gpu_s"`
	IdleJ    float64 `json:"idle_j"`
	// EnergyJ is the energy of EnergyRuns: of the node if it is known, otherwise of the GPUs. The energy of
	// the other runs isn't known.
	EnergyJ     float64 `json:"energy_j"`
	EnergyRuns  int64   `json:"energy_runs"`
	EnergyGPUS  float64 `json:"energy_gpu_s"` // the part of GPUS of these runs
	GPUEnergyJ  float64 `json:"gpu_energy_j"`
	NodeEnergyJ float64 `json:"node_energy_j"`
	NodeRuns    int64   `json:"node_runs"`
	// NodeModelledJ is the part of NodeEnergyJ in which only the GPUs are measured, and the hosts modelled.
	NodeModelledJ float64 `json:"node_modelled_j"`
	HeldOutJ      float64 `json:"held_out_j"` // part of EnergyJ used by held-out runs
	// Modelled is the models' estimate of the GPU energy that treated runs saved.
	Modelled ModelledUse `json:"modelled"`
	// Measured is what the jobs of a group saved; absent: none of them was compared.
	Measured *GroupSaving `json:"measured,omitempty"`
}

// MinHeldOut is the number of compared held-out jobs from which on the saving of a group is stated. Which
// groups have them depends on the draw, not on what they saved, so leaving out the others causes no bias.
const MinHeldOut = 5

// GroupSaving is what the jobs of a group saved, by the experiment of [Savings]: against held-out jobs of
// the same group, workload and GPU model. A figure without runs is unknown: fewer than [MinHeldOut] held-out
// jobs can be compared.
type GroupSaving struct {
	// Treated and HeldOut are all completed jobs, compared or not.
	Treated  int64  `json:"treated_runs"`
	HeldOut  int64  `json:"held_out_runs"`
	EnergyOf string `json:"energy_of,omitempty"` // as that of [Savings]
	GPU      Saving `json:"gpu"`
	Node     Saving `json:"node"`
	Time     Longer `json:"time"`
}

// Best returns the saving of the nodes if it is known, else that of the GPUs.
func (g *GroupSaving) Best() (saving *Saving, of string) { return bestOf(&g.Node, &g.GPU) }

// Best returns the saving of the nodes if they are measured, else that of the GPUs.
func (s *Savings) Best() (saving *Saving, of string) { return bestOf(&s.Node, &s.GPU) }

func bestOf(node, gpu *Saving) (saving *Saving, of string) {
	if node.Runs > 0 {
		return node, "nodes"
	}
	return gpu, "GPUs"
}

// Add adds other runs.
func (u *UsageSum) Add(o *UsageSum) {
	u.Jobs, u.Runs, u.GPUS = u.Jobs+o.Jobs, u.Runs+o.Runs, u.GPUS+o.GPUS
	u.IdleGPUS, u.IdleJ = u.IdleGPUS+o.IdleGPUS, u.IdleJ+o.IdleJ
	u.EnergyJ, u.EnergyRuns = u.EnergyJ+o.EnergyJ, u.EnergyRuns+o.EnergyRuns
	u.EnergyGPUS += o.EnergyGPUS
	u.GPUEnergyJ += o.GPUEnergyJ
	u.NodeEnergyJ, u.NodeRuns = u.NodeEnergyJ+o.NodeEnergyJ, u.NodeRuns+o.NodeRuns
	u.NodeModelledJ += o.NodeModelledJ
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
	// PrunedJ is the energy of pruned runs of the months whose middle lies in the part; UsageSum doesn't have it.
	PrunedJ float64 `json:"pruned_j,omitzero"`
}

// Usage asks for the usage of runs that ended in a period, the caller's own ones or all, by groups. A zero time leaves the period open.
func (c *Client) Usage(ctx context.Context, since, until time.Time, by string, own bool) (*Usage, error) {
	query := periodQuery(since, until)
	if own {
		query.Set("own", "true")
	}
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
