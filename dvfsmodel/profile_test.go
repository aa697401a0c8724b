package dvfsmodel_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
)

func TestAPowerProfileComesBackFromItsName(t *testing.T) {
	for p := range dvfsmodel.MaxPowerProfile + 1 {
		text, err := json.Marshal(dvfsmodel.Setting{Core: 945, Profile: p})
		var again dvfsmodel.Setting
		if err != nil || json.Unmarshal(text, &again) != nil || again.Profile != p {
			t.Errorf("profile %d: %s, %v, read as %v", p, text, err, again.Profile)
		}
		if strings.Contains(string(text), "profile") != (p != 0) {
			t.Errorf("%s", text)
		}
	}
	for _, name := range []string{"", "max-q", "profile-3", "profile-52", "profile-x", "Max-Q "} {
		p, err := dvfsmodel.ParsePowerProfile(name)
		if err == nil || !strings.Contains(err.Error(), "Max-P, Max-Q") {
			t.Errorf("%q is %v, %v", name, p, err)
		}
	}
	if _, err := json.Marshal(dvfsmodel.MaxPowerProfile + 1); err == nil {
		t.Error("a profile that there can't be is written")
	}
	at := dvfsmodel.Setting{Core: 945, Cap: 200, Profile: dvfsmodel.MaxQ}
	if at.Words() != "core 945 MHz, power at most 200 W, power profile Max-Q" ||
		at.Short() != "945/–@200W+Max-Q" {
		t.Errorf("%s; %s", at.Words(), at.Short())
	}
}
