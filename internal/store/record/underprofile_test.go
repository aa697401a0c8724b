package record_test

import (
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
)

func TestAWorkloadUnderAProfileIsOneOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for p := range dvfsmodel.MaxPowerProfile + 1 {
		key := record.UnderProfile("0123abcdx4", p)
		if seen[key] || record.ProfileOf(key) != p {
			t.Errorf("profile %v: %q, read as %v", p, key, record.ProfileOf(key))
		}
		seen[key] = true
	}
	if got := record.UnderProfile("", dvfsmodel.MaxQ); got != "" {
		t.Errorf("a workload that isn't known: %q", got)
	}
}
