package config

import (
	"maps"
	"slices"

	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// Budget says how many watts the cluster and parts of it may take, hosts and idle GPUs included.
type Budget struct {
	// Mode says whether it is only watched, or kept by the GPUs' power limits.
	Mode    live.Mode
	Cluster float64 // W; 0: no budget
	// Partitions have those of the nodes of partitions, Nodes those of the nodes of hostlists, W.
	Partitions, Nodes map[string]float64
	// Series is a file with budgets of the cluster over time; empty: there is none.
	Series string
	// Lease is how many seconds a node whose controller is away keeps the limits that it was given.
	Lease float64

	byList map[string][]string // the names of the nodes of each hostlist of Nodes
}

// IsSet reports whether there is any budget.
func (b *Budget) IsSet() bool {
	return b.Cluster > 0 || b.Series != "" || len(b.Partitions) > 0 || len(b.Nodes) > 0
}

// NodesOf returns the names of the nodes of a hostlist of Nodes.
func (b *Budget) NodesOf(list string) []string { return b.byList[list] }

// allNodes returns the names of the nodes of all hostlists.
func (b *Budget) allNodes() []string { return slices.Concat(slices.Collect(maps.Values(b.byList))...) }

func defaultBudget() Budget { return Budget{Mode: live.Observe, Lease: 3} }

const budgetNodes = "nodes_w"

func (b *Budget) fields() []field {
	watts := numberRange{max: 1e12, above: true}
	nodes := partitionNumberField(budgetNodes,
		"Watts by hostlist, such as a rack: {\"gpu[01-16]\" = 40000}.", &b.Nodes, watts)
	nodes.expected = "a table of hostlists, each with " + watts.String()
	return []field{
		choiceField("mode",
			"observe and advise show what is measured beside the budget. enforce keeps it: every GPU under a\n"+
				"budget has a power limit at all times, whoever's job runs there.", (*string)(&b.Mode), modeWords...),
		numberField("cluster_w",
			"Watts of all nodes with GPUs, hosts (host_w_per_gpu) and idle GPUs included; 0: no budget.",
			&b.Cluster, numberRange{max: 1e12}),
		textField("series",
			"File (CSV) with the cluster's budget over time: columns time (RFC 3339, or 17:00 for every day\n"+
				"in the machine's time zone) and watts, each row from its time on. A lower cluster_w counts.",
			&b.Series),
		partitionNumberField("partitions_w", "Watts by partition.",
			&b.Partitions, watts),
		nodes,
		numberField("lease_s",
			"Seconds for which a node keeps its limits without word from the controller. Then, and after a\n"+
				"restart, they fall to shares that keep the budget together.", &b.Lease, numberRange{min: 1, max: 600}),
	}
}

// checkTogether notes hostlists that can't be read.
func (b *Budget) checkTogether(d *document) {
	if len(b.Nodes) > 0 {
		b.byList = make(map[string][]string)
	}
	for _, list := range slices.Sorted(maps.Keys(b.Nodes)) {
		names, err := slurm.ExpandHostlist(list)
		if err != nil {
			at := joinKey("budget."+budgetNodes, list)
			d.fault(d.keyPosition(at), "%s: %v", at, err)
		}
		b.byList[list] = names
	}
}
