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
		"epplan_nodes_waking 14", "epplan_node_wakes_total 4", "epplan_reporting_nodes 2", "epplan_silent_nodes 1",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("missing: %s", want)
		}
	}
	for line := range strings.SplitSeq(scrape(t, metrics.New(metrics.Sources{Agent: agent})), "\n") {
		if strings.HasPrefix(line, "epplan_node_wakes") || strings.HasPrefix(line, "epplan_reporting") {
			t.Errorf("an agent shows %s", line)
		}
	}
}
