package policy_test

import (
	"errors"
	"testing"

	"github.com/epplan/epplan/planner/policy"
)

// Whatever somebody calls a policy or a placement: it is one, or the error points into the text.
func FuzzParse(f *testing.F) {
	for _, name := range policy.Names() {
		f.Add(name)
	}
	for _, name := range policy.PlacementNames() {
		f.Add(name + ":1")
	}
	for _, text := range []string{
		"edl:0.5", "edl,theta=0.9,clocks=optimum", "fcfs,place=pwr", "edl:NaN",
		"edl:1e999", ",", ":", "=", "edl,,", "\xff",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		made, err := policy.Parse(text, policy.Params{})
		checkParsed(t, text, made != nil, err)
		placed, err := policy.ParsePlacement(text)
		checkParsed(t, text, placed != nil, err)
		for _, key := range []string{"theta", "rho", "clocks"} {
			_, _ = policy.AcceptsNumber(text, key), policy.HasOption(text, key)
		}
	})
}

func checkParsed(t *testing.T, text string, made bool, err error) {
	t.Helper()
	wrong, ok := errors.AsType[*policy.SyntaxError](err)
	if made != (err == nil) || err != nil && !ok || ok && (wrong.Offset < 0 || wrong.Offset > len(text)) {
		t.Fatalf("%q: made %t, %v", text, made, err)
	}
}
