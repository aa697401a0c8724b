package policy_test

import (
	"testing"

	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/planner/share"
)

func TestOnlyStagesThatShareLetTasksShareGPUs(t *testing.T) {
	for text, want := range map[string]bool{
		"cats": true, "cats-safe": true, "hotcloud": true, "first": true, "edl": false,
		"cats,place=lightest": false, "cats,place=pwr": false,
		"hotcloud,place=share-fgd,clocks=adapted,park=never":             true,
		"edl,place=share-safe,clocks=cheapest,pick=fcfs,park=break-even": true,
		"cats,clocks=lowest,park=periodic":                               true,
	} {
		p, err := policy.Parse(text, policy.DefaultParams())
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if p.Share != want {
			t.Errorf("%s shares: %v, want %v", text, p.Share, want)
		}
	}
}

func TestEveryRuleOfConsolidationIsAPlaceStage(t *testing.T) {
	for _, rule := range share.Policies() {
		_, err := policy.Parse("cats,place=share-"+rule.Name, policy.DefaultParams())
		if wanted := rule.Name != "hotcloud-lowest-f"; (err == nil) != wanted { // the same places as hotcloud
			t.Errorf("share-%s: %v", rule.Name, err)
		}
	}
}
