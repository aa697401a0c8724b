package view_test

import (
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/view"
	"github.com/epplan/epplan/live"
)

// A job with everything that can be known of it says all of that, on a terminal and on a page.
func TestTerminalAndPageHaveTheSameFactsOfAJob(t *testing.T) {
	at := time.Date(2026, 5, 4, 9, 0, 0, 0, time.Local)
	within := func(low, value, high float64) record.Interval {
		return record.Interval{Low: live.Known(low), Value: live.Known(value), High: live.Known(high)}
	}
	v := &epdapi.JobView{
		Job: &epdapi.Job{
			ID: 4711, ArrayID: "47_3", Name: "evil\x1b[2J", User: "ada", Account: "physics", Partition: "gpu",
			State: "FAILED", Submitted: at, GPUs: 3, Nodes: 1, Workload: "5ca1ab1e", Scripted: true,
			Limit: live.LimitOf(2 * time.Hour),
		},
		Submission: &record.Decision{
			Created: at.Add(time.Minute), Mode: "advise", Reason: "noted so", Rung: "repeat/similar/prior",
			TimeS: within(30, 40, 50), EnergyJ: within(100, 200, 300), PowerW: within(5, 6, 7),
		},
		Outcomes: []epdapi.Outcome{{Outcome: record.Outcome{
			Ended: at.Add(time.Hour), TimeS: live.Known(45), GPUEnergyJ: live.Known(400), ExitState: record.Completed,
		}}},
		Wishes: &epdapi.Wishes{Deadline: at.Add(3 * time.Hour), Warnings: []string{"epplan:what"}},
		Plan:   &epdapi.JobPlan{Policy: "edl:0.8", Mode: "enforce", Why: "it is stale"},
	}
	d := &epdapi.Decision{
		Decision: record.Decision{
			Setting: dvfsmodel.Setting{Core: 1087}, Reason: "because", Mode: "enforce", Arm: live.ArmHeldOut,
			ConfigVersion: "c0ffee", TimeS: within(10, 20, 30), EnergyJ: within(1, 2, 3),
		},
		Default: &epdapi.Point{Setting: dvfsmodel.Setting{Core: 1380}, TimeS: 16, EnergyJ: 4},
		Chosen:  &epdapi.Point{Setting: dvfsmodel.Setting{Core: 1087}, TimeS: 20, EnergyJ: 3},
	}
	job, decision := view.Job(v), view.Decision(d)
	var html strings.Builder
	r := page.Report{Title: "job", Parts: append(job.Parts(), decision.Page())}
	if err := page.WriteReport(&html, &r); err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{
		"terminal": job.Text() + decision.Text("  "), "page": strings.ReplaceAll(html.String(), "\u00a0", " "),
	}
	for _, want := range []string{
		"4711 (47_3) evil", "ada, account physics", "gpu", "FAILED", "2026-05-04 09:00:00",
		"3 GPUs, 1 node", "2:00:00",
		"5ca1ab1e, by user and script", "2026-05-04 09:01:00, mode advise: noted so",
		"40.00 s (30.00 s to 50.00 s), took 45.00 s", "200.0 J (100.0 J to 300.0 J), took 400.0 J, outside",
		"6.000 W (5.000 W to 7.000 W)", "time by runs of the same job; energy by runs of similar jobs; power by",
		"to end by 2026-05-04 12:00:00", "wish not understood: epplan:what",
		"edl:0.8 has nothing for it: it is stale",
		"core 1087 MHz", "by its model 25.0 % less energy of the GPUs than at default clocks, 25.0 % longer",
		"because", "mode enforce, held out for comparison, configuration c0ffee",
		"20.00 s (10.00 s to 30.00 s), 2.000 J (1.000 J to 3.000 J)",
	} {
		for where, text := range shown {
			if !strings.Contains(text, want) {
				t.Errorf("%q isn't on the %s:\n%s", want, where, text)
			}
			if strings.Contains(text, "\x1b") {
				t.Errorf("the %s acts on a terminal", where)
			}
		}
	}
}
