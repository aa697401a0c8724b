package planreport_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/report/planreport"
)

// someUnfinished are three runs of a problem: one that is done, one that was stopped with
// the best plan so far, and one without.
func someUnfinished(t *testing.T) []planreport.Run {
	t.Helper()
	runs := runsOf(t, manyProblem(t, 20), nil, "baseline", "edl")
	runs[1].Unfinished = true
	return append(runs, planreport.Run{
		Summary: planreport.Summary{Policy: "lookahead"}, Planning: 3 * time.Second, Unfinished: true,
	})
}

func TestARowWithoutAPlanHasNoFigures(t *testing.T) {
	var out bytes.Buffer
	if err := planreport.Comparison(someUnfinished(t)).WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal(out.Bytes(), &rows); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"complete", "unfinished", "unfinished"} {
		if rows[i]["status"] != want {
			t.Errorf("row %d is %v, want %s", i, rows[i]["status"], want)
		}
	}
	if len(rows[2]) != len(rows[0]) || rows[1]["energy_j"] == nil {
		t.Errorf("%d keys, others have %d; the best plan so far takes %v J", len(rows[2]), len(rows[0]),
			rows[1]["energy_j"])
	}
	for key, value := range rows[2] {
		switch key {
		case "policy", "status":
		case "planning_s":
			if value != 3.0 {
				t.Errorf("planning took %v s, want 3", value)
			}
		default:
			if value != nil {
				t.Errorf("%s is %v without a plan", key, value)
			}
		}
	}
}

func TestPeopleSeeWhichRowsAreUnfinished(t *testing.T) {
	var out bytes.Buffer
	runs := someUnfinished(t)
	if err := planreport.WriteComparison(&out, runs, nil); err != nil {
		t.Fatal(err)
	}
	saved, shares, _ := strings.Cut(out.String(), "\n\n")
	if strings.Count(saved, "unfinished") != 2 || strings.Contains(shares, "lookahead") ||
		!strings.Contains(shares, "edl") {
		t.Errorf("want two rows unfinished, and no energy of lookahead:\n%s", &out)
	}
	out.Reset()
	if err := planreport.WriteComparison(&out, runs[:1], nil); err != nil ||
		strings.Contains(out.String(), "search") {
		t.Errorf("%v: a column about searches where all are done:\n%s", err, &out)
	}
	out.Reset()
	if err := planreport.WriteComparison(&out, runs[2:], nil); err != nil ||
		!strings.Contains(out.String(), "unfinished") {
		t.Errorf("%v: nothing about the only row:\n%s", err, &out)
	}
	d := asHTML(t, func(w io.Writer) error {
		return planreport.WriteComparePage(w, &planreport.ComparePage{Runs: runs, Name: "a batch"})
	})
	d.has(t, "Unfinished, without a plan: lookahead.", "the best plan so far")
	d = asHTML(t, func(w io.Writer) error {
		return planreport.WriteComparePage(w, &planreport.ComparePage{Runs: runs[2:], Name: "a batch"})
	})
	d.has(t, "No policy has a plan. Unfinished, without a plan: lookahead.")
}

func TestAPlanSaysThatItsSearchWasCut(t *testing.T) {
	r := solve(t, manyProblem(t, 20), "edl")
	r.Plan.Cut = true
	if text := string(written(t, func(w io.Writer, r *planreport.Result) error {
		return planreport.WritePlanTable(w,
			r, nil)
	}, r)); !strings.Contains(text, "search cut") {
		t.Errorf("nothing of it in\n%s", text)
	}
	asHTML(t, func(w io.Writer) error {
		return planreport.WritePlanPage(w, &planreport.PlanPage{Result: r, Name: "a batch"})
	}).has(t, "search cut")
}
