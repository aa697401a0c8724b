package savingsreport

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report/page"
)

func TestAReportWithoutASavingSaysWhyInOneLine(t *testing.T) {
	for _, s := range []*epdapi.Savings{
		{},
		{Treated: 1},
		{Treated: 1, HoldOut: 0.1, GPU: epdapi.Saving{Needed: 4}},
		{Treated: 3, HeldOut: 1},
	} {
		if lead := savingsLead(s); !strings.HasSuffix(lead, ".") || strings.Contains(lead, "\n") {
			t.Errorf("%+v: %q", s, lead)
		}
	}
}

func TestALossIsntShownInTheColourOfASaving(t *testing.T) {
	for kind, e := range map[page.Severity]epdapi.Saving{
		page.Good: {Runs: 9, BaselineJ: 100, SavedJ: 10, LowJ: 5, HighJ: 15},
		page.Warn: {Runs: 9, BaselineJ: 100, SavedJ: 10, LowJ: -5, HighJ: 25},
		page.Bad:  {Runs: 9, BaselineJ: 100, SavedJ: -10, LowJ: -15, HighJ: -5},
	} {
		if got := savingsTiles(&epdapi.Savings{GPU: e})[0]; got.Kind != kind {
			t.Errorf("%+v: %+v, want the kind %q", e, got, kind)
		}
	}
}
