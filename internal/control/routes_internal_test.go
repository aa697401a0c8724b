package control

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/query"
)

// The reference of the API says who may ask for what; the routes decide it.
func TestTheReferenceSaysWhoMayAskWhat(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var reference struct {
		Paths map[string]map[string]struct {
			Access map[string]string `json:"x-access"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(text, &reference); err != nil {
		t.Fatal(err)
	}
	tiers := map[query.Tier]string{
		query.Anybody: "anybody", query.Operators: "operators", query.Administrators: "control",
		query.Agents: "nodes",
	}
	served := 0
	for _, r := range (&api{}).routes() {
		method, path, _ := strings.Cut(r.pattern, " ")
		if got := reference.Paths[path][strings.ToLower(method)].Access["controller"]; got != tiers[r.who] {
			t.Errorf("%s is for %s, the reference says %q (internal/testkit/apidoc/operations.go)", r.pattern,
				tiers[r.who], got)
		}
		served++
	}
	if served < 10 {
		t.Errorf("only %d routes", served)
	}
}
