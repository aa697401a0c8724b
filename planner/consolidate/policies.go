package consolidate

import (
	"github.com/epplan/epplan/planner/sharing"
)

// Named is a policy of the registry.
type Named struct {
	Name   string
	About  string
	Rule   Rule
	Clocks Clocks
}

// Place is the policy's answer.
func (n *Named) Place(in *sharing.Instance) Placement { return Place(in, n.Rule, n.Clocks) }

// Policies are those that place one task at a time.
func Policies() []Named {
	return []Named{
		{"cats", "algorithms 1 to 4 as printed: GPUs that sleep are candidates, too", CATS{}, Adapted},
		{"cats-active", "the same, but GPUs wake only where no running one has the memory", CATS{Active: true}, Adapted},
		{"cats-thresholds", "running GPUs with correlation and mean utilisation below thresholds, else one wakes", CATSThresholds{}, Adapted},
		{"hotcloud", "first running GPU whose mean utilisation stays within 100 %, at f_max", HotCloud{}, AtMax},
		{"hotcloud-lowest-f", "the same placement at the lowest frequency that keeps the SLA", HotCloud{}, LowestKept},
		{"first", "as hotcloud by the first slot's utilisation", First{}, AtMax},
		{"bf", "best fit: least utilisation and memory left", BestFit{}, AtMax},
		{"dp", "least dot product of demand and what is free", DotProduct{}, AtMax},
		{"fgd", "least rise of fragmentation", FGD{}, AtMax},
		{"online-sla", "running GPU whose frequency rises least within the SLA, else the best one wakes", OnlineSLA{}, LowestKept},
		{"cats-safe", "our best online: tasks go where imagined futures end with least power, everybody's SLA kept", CATSSafe{}, LowestKept},
	}
}
