package consolidate_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/epplan/epplan/lab/catstest"
	"github.com/epplan/epplan/planner/share"
)

// reference is what a file of the data says of the results.
type reference struct {
	Reference struct {
		Policies map[string]referenceRow `json:"policies"`
	} `json:"reference"`
}

type referenceRow struct {
	W          float64 `json:"w"`
	GPUsOn     int     `json:"gpus_on"`
	ServersOn  int     `json:"servers_on"`
	Violations int     `json:"sla_violations"`
	Worst      float64 `json:"worst_slowdown"`
	Unplaced   int     `json:"unplaced"`
	Feasible   bool    `json:"feasible"`
}

// keys are the policies' names in the data.
var keys = map[string]string{
	"cats": "cats_as_written", "cats-active": "cats_active_first", "cats-thresholds": "cats_thresholds",
	"hotcloud": "hotcloud", "hotcloud-lowest-f": "hotcloud_lowest_f", "first": "first",
	"bf": "bf", "dp": "dp", "fgd": "fgd", "online-sla": "online_sla",
}

func TestPoliciesReproduceTheReferenceOfEveryInstance(t *testing.T) {
	for _, file := range catstest.Files(t) {
		in, want := catstest.Read(t, file), decoded[reference](t, file)
		t.Run(filepath.Base(file), func(t *testing.T) {
			seen := 0
			for _, policy := range share.Policies() {
				key, ok := keys[policy.Name]
				if !ok {
					continue // our own
				}
				row, ok := want.Reference.Policies[key]
				if !ok {
					t.Fatalf("no reference of %s", policy.Name)
				}
				seen++
				wantRow(t, policy.Name, share.Evaluate(in, share.Place(in, policy.Rule, policy.Clocks)), row)
			}
			if seen != len(keys) {
				t.Errorf("%d policies, want %d", seen, len(keys))
			}
		})
	}
}

// wantRow compares a verdict with the reference's row.
func wantRow(t *testing.T, name string, v share.Evaluation, row referenceRow) {
	t.Helper()
	got := referenceRow{
		v.PowerW, v.GPUsOn, v.ServersOn, v.Violations, v.WorstSlowdown, v.Unplaced, v.Feasible(),
	}
	if len(v.Faults) > 0 {
		t.Errorf("%s: %q", name, v.Faults)
	}
	if math.Abs(got.W-row.W) > 0.01 || math.Abs(got.Worst-row.Worst) > 1e-4 {
		t.Errorf("%s: %+v, want %+v", name, got, row)
	}
	got.W, got.Worst = row.W, row.Worst
	if got != row {
		t.Errorf("%s: %+v, want %+v", name, got, row)
	}
}
