package metrics_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/metrics"
)

func TestWhatIsSteeredSharedAndAsleepIsShown(t *testing.T) {
	lines := strings.Split(scrape(t, whole()), "\n")
	for _, want := range []string{
		"epplan_adapted_runs_total 11", "epplan_shared_runs_total 12", "epplan_nodes_asleep 13",
		"epplan_nodes_waking 14",
		`epplan_levers{lever="nice"} 8`, `epplan_levers{lever="prefer"} 9`, `epplan_levers{lever="sleep"} 3`,
		`epplan_levers{lever="weight"} 10`,
		"epplan_node_wakes_total 4", "epplan_node_wake_longest_seconds 90.5", "epplan_sharing_nodes_suited 5",
		"epplan_sharing_nodes_unsuited 6",
		"epplan_queue_ranked_jobs 7", "epplan_reported_power_watts 1234.5", "epplan_reporting_nodes 2",
		"epplan_silent_nodes 1",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("missing: %s", want)
		}
	}
	for line := range strings.SplitSeq(scrape(t, metrics.New(metrics.Sources{Agent: agent})), "\n") {
		if strings.HasPrefix(line, "epplan_levers") || strings.HasPrefix(line, "epplan_reported") {
			t.Errorf("an agent shows %s", line)
		}
	}
}
