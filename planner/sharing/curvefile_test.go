package sharing_test

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/planner/sharing"
)

func TestCurvesAreReadAndBadOnesRefused(t *testing.T) {
	c, err := sharing.ReadCurve(
		strings.NewReader(
			`{"exponent": 1.4, "by_task": 0.05, "by_memory": 0, "samples": 12, "outliers": 1, "residual": 0.02}`,
		), "c.json",
	)
	if err != nil || *c != (sharing.Curve{Exponent: 1.4, ByTask: 0.05}) {
		t.Errorf("%+v, %v", c, err)
	}
	for text, want := range map[string]string{
		``:                                "c.json",
		`{`:                               "c.json:1",
		`[]`:                              "c.json:1: the curve is a list, want an object",
		`{"exponent": 1.4, "by_task": 0}`: "c.json: no by_memory, want the curve's three parameters",
		`{"exponent": 0.9, "by_task": 0}`: "c.json: exponent is 0.9, want a number from 1 to 10",
		`{"exponent": 1, "by_task": -1}`:  "c.json: by_task is -1, want a number from 0 to 1000",
		`{"exponent": "1"}`:               `c.json:1: exponent is a text, want a number`,
		"{\n\"exponent\": 1,\n\n \"by_task\": []}": "c.json:4: by_task is a list, want a number",
		`{"exponent": 1, "by_job": 1}`:             "c.json: a field that no curve of contention has",
	} {
		if _, err := sharing.ReadCurve(strings.NewReader(text), "c.json"); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
}
