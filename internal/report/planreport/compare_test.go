package planreport_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/planreport"
)

func comparison(t *testing.T) []planreport.Run {
	t.Helper()
	names := []string{"edl", "edl:0.8", "lpt-ff,clocks=default"}
	runs := make([]planreport.Run, 0, len(names))
	for _, name := range names {
		r := rounded(solve(t, smallProblem(t), name))
		run := planreport.Run{Summary: planreport.Summarise(r), Planning: 1234 * time.Microsecond}
		if theta, ok := strings.CutPrefix(name, "edl:"); ok {
			run.Params = append(run.Params, planreport.Param{Key: "theta", Value: report.Text(theta)})
		}
		run.Params = append(run.Params, planreport.Param{Key: "l", Value: report.Count(2)})
		runs = append(runs, run)
	}
	return runs
}

func TestComparisonsLookLikeTheirGoldenFiles(t *testing.T) {
	runs := comparison(t)
	compared := planreport.Comparison(runs)
	var text, asJSON, asCSV bytes.Buffer
	if err := planreport.WriteComparison(&text, runs, nil); err != nil {
		t.Fatal(err)
	}
	if err := compared.WriteJSON(&asJSON); err != nil {
		t.Fatal(err)
	}
	if err := compared.WriteCSV(&asCSV); err != nil {
		t.Fatal(err)
	}
	golden(t, "compare.txt", text.Bytes())
	golden(t, "compare.json", asJSON.Bytes())
	golden(t, "compare.csv", asCSV.Bytes())
}
