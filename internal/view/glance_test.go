package view_test

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/view"
	"github.com/epplan/epplan/live"
)

func TestWhoWaitsIsThoseWhoWantTheMostGPUs(t *testing.T) {
	q := &epdapi.Queue{Jobs: []epdapi.QueuedJob{
		{User: "ada", State: "RUNNING", GPUs: 64},
		{User: "ada", State: "PENDING", GPUs: 2, AgeS: live.Known(60)},
		{User: "grace", State: "PENDING", GPUs: 1, Tasks: 5, AgeS: live.Known(120)},
		{User: "ada", State: "PENDING", GPUs: 2, AgeS: live.Known(3600)},
	}}
	got := view.Waiting(q)
	rows := make([]string, 0, len(got.Rows))
	for _, row := range got.Rows {
		texts := make([]string, 0, len(row))
		for _, cell := range row {
			texts = append(texts, cell.Text)
		}
		rows = append(rows, strings.Join(texts, " "))
	}
	if text := strings.Join(rows, "; "); text != "grace 5 5 0:02:00; ada 2 4 1:00:00" || got.More != "" {
		t.Errorf("%q, %q", text, got.More)
	}
	for _, name := range []string{"b", "c", "d", "e"} {
		q.Jobs = append(q.Jobs, epdapi.QueuedJob{User: name, State: "PENDING", GPUs: 1})
	}
	if got := view.Waiting(q); len(got.Rows) != 5 || got.More != "and 1 more user; see the queue" {
		t.Errorf("%d rows, %q", len(got.Rows), got.More)
	}
}

func TestPowerOverTimeIsAPictureOnceAJobHasEnded(t *testing.T) {
	hours := make([]epdapi.HourPower, epdapi.OverviewHours)
	if _, none := view.PowerOverTime(hours).(page.Text); !none {
		t.Error("there is a picture of nothing")
	}
	hours[3] = epdapi.HourPower{UsedW: 2500, DefaultW: 3000, HeldOutW: 100}
	f, is := view.PowerOverTime(hours).(*page.Figure)
	if !is || !strings.Contains(string(f.SVG), ">kW<") || f.Numbers.Rows[len(hours)-4][1].Text != "2.500 kW" {
		t.Errorf("%+v", f)
	}
}

func TestMonthsStandBesideEachOther(t *testing.T) {
	saved := epdapi.Saving{Runs: 60, Against: 9, SavedJ: 20, LowJ: 10, HighJ: 30, BaselineJ: 100}
	got := view.Months(&epdapi.Overview{Months: []epdapi.Day{
		{Runs: 7, Saved: &epdapi.GroupSaving{Treated: 7}},
		{Runs: 70, GPUEnergyJ: 3.6e6, Saved: &epdapi.GroupSaving{GPU: saved}},
	}})
	if len(got.Columns) != 3 || got.Rows[0][1].Text != "7" || got.Rows[0][2].Text != "70" ||
		got.Rows[3][2].Text != "1.000 kWh" || got.Rows[5][1].Text != "too few held-out runs" ||
		got.Rows[5][2].Text != "20.0 % of the GPUs (10.0 % to 30.0 %)" || got.Rows[6][2].Text != "–" {
		t.Errorf("%+v", got)
	}
}
