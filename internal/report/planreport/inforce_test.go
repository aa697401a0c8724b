package planreport_test

import (
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/planreport"
	"github.com/epplan/epplan/live"
)

func TestAPlanInForceIsShownWithWhatItHasForWhom(t *testing.T) {
	at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	p := &live.Plan{
		Policy: "edl:0.8", At: at, TookS: 0.5, EnergyJ: 3e6, Without: 2, Stale: "it is old", Trouble: "no answer",
		Record: live.PlanRecord{
			Starts: map[live.PlanKept]int64{live.KeptAsPlanned: 3, live.KeptLater: 1, live.KeptHeldOut: 2}, Ended: 2,
			PlannedJ: 1000, MeasuredJ: 2000, Longer: 1,
		},
		Recent: []live.PlanStart{{
			Job: 11, User: "eve", At: at, GPUModel: "T4", How: live.KeptElsewhere,
			Planned: &live.PlannedJob{NodeClass: "v100x8"},
		}},
		Jobs: []live.PlannedJob{
			{
				Task: "12_3", User: "ada", Start: at, End: at.Add(time.Hour), NodeClass: "v100x4",
				Setting: dvfsmodel.Setting{Core: 1087}, Reason: "readjusted",
			},
			{Task: "13", User: "bob", HeldOut: true, Reason: "default clocks"},
		},
	}
	when := func(t time.Time) string { return t.Format(time.TimeOnly) }
	text := planreport.InForceText(p, when)
	for _, want := range []string{
		"plan edl:0.8 of 12:00:00: 2 tasks, 3.000 MJ", "2 have no place in it", "it counts no more: it is old",
		"there is no newer one: no answer", "starts as planned: 75", "3 as planned, 1 later, 2 held out by lot",
		"runs at planned clocks: 2, planned 1.000 kJ, measured 2.000 kJ; 1 took over a tenth longer",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q isn't in\n%s", want, text)
		}
	}
	shown := planreport.InForceTable(p, 20, when).Text(&report.TextOptions{})
	for _, want := range []string{
		"12_3", "13:00:00", "v100x4", "core 1087 MHz", "readjusted", "default clocks; held out by lot",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q isn't in\n%s", want, shown)
		}
	}
	started := planreport.InForceStarts(p, when).Text(&report.TextOptions{})
	for _, want := range []string{"11", "eve", "T4", "v100x8", "on another GPU model"} {
		if !strings.Contains(started, want) {
			t.Errorf("%q isn't in\n%s", want, started)
		}
	}
	if planreport.InForceText(nil, when) != "" || planreport.InForceTable(&live.Plan{}, 20, when) != nil {
		t.Error("something is shown of no plan")
	}
}
