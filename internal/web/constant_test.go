package web

import (
	"fmt"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/live"
)

// The pages tell of the constant arm where there is one, and nothing else changes.
func TestThePagesTellOfTheConstantArm(t *testing.T) {
	s := epdapi.Savings{
		GPU: epdapi.Saving{
			Runs: 30, Against: 4, SavedJ: 1e6, LowJ: 8e5, HighJ: 12e5, BaselineJ: 9e6,
		},
		HoldOut:      0.05,
		TreatedEnded: epdapi.EndingCounts{Ended: 60, Completed: 60},
		HeldOutEnded: epdapi.EndingCounts{Ended: 40, Completed: 40},
	}
	if text := fmt.Sprint(savingsParts(&s)...); strings.Contains(text, "onstant") {
		t.Error(text)
	}
	s.Constant = &epdapi.ConstantArm{
		Part: 0.1, Runs: 9, Ended: epdapi.EndingCounts{Ended: 20, Completed: 9},
		GPU: epdapi.Saving{Runs: 9, Against: 4, SavedJ: 3e5, LowJ: 1e5, HighJ: 5e5, BaselineJ: 3e6},
		AddedGPU: epdapi.AddedSaving{
			Runs: 30, Against: 9, SavedJ: 2e5, LowJ: -1e5, HighJ: 5e5, BaselineJ: 82e5, Needed: 12,
		},
		AddedTime: epdapi.AddedTime{Runs: 30, Against: 9, LongerS: 50, LowS: 10, HighS: 90, BaselineS: 1000},
	}
	parts := savingsParts(&s)
	facts := make(map[string]string)
	first, _ := parts[0].(page.Facts)
	for _, f := range first {
		facts[f.Name] = f.Text
	}
	for name, want := range map[string]string{
		"Added by choosing": "by 30 runs against 9 at constant clocks; about 12 more runs at " +
			"constant clocks tell it from chance",
		"Added, run time":          "5.0 % longer than at constant clocks; between 1.0 % and 9.0 %",
		"At constant clocks":       "by 9 runs against 4 held out",
		"Measured at the GPUs":     "by 30 runs against 4 held out",
		"Runs of the constant arm": "9; 10",
	} {
		if !strings.Contains(facts[name], want) {
			t.Errorf("%s: %q, want %q", name, facts[name], want)
		}
	}
	notices := 0
	for _, p := range parts {
		if n, ok := p.(*page.Notice); ok && strings.Contains(n.Text, "don't complete alike") {
			notices++
		}
	}
	if notices != 1 {
		t.Errorf("%d notices of 9 of 20 against 60 of 60", notices)
	}
	if got := armWords(live.ArmConstant); got != "constant clocks, for comparison" {
		t.Error(got)
	}
}

// Beside what was saved stands by how much a job may take longer, whether or not it is known how much it was.
func TestASavingIsShownWithTheBoundOnRunTimes(t *testing.T) {
	s := epdapi.Savings{
		GPU:         epdapi.Saving{Runs: 30, Against: 4, SavedJ: 1e6, LowJ: 8e5, HighJ: 12e5, BaselineJ: 9e6},
		MaxSlowdown: 1.1, MaxSlowdowns: map[string]float64{"long": 1.3},
	}
	for _, took := range []epdapi.Longer{{}, {Runs: 30, Against: 4, LongerS: 80, BaselineS: 1000}} {
		s.Time = took
		if note := savedTile(&s).Note; !strings.Contains(note, "a job may take up to 1.3 times as long") {
			t.Errorf("%+v: %q", took, note)
		}
		const want = "up to 1.1 times as long as at default clocks, within its limit (max_slowdown; in " +
			"partition long 1.3)"
		if text := fmt.Sprint(savingsParts(&s)...); !strings.Contains(text, want) {
			t.Errorf("%+v: %s", took, text)
		}
	}
}

func TestDaysHaveAColumnOfTheConstantArmWhereThereIsOne(t *testing.T) {
	o := epdapi.Overview{Days: []epdapi.Day{
		{Runs: 5, Completed: 4, Treated: 3, HeldOut: 1}, {Runs: 6, Treated: 4},
	}}
	table := func() *page.Table {
		switch p := daysParts(&o)[0].(type) {
		case *page.Table:
			return p
		case *page.Figure:
			return p.Numbers
		}
		t.Fatal("no table")
		return nil
	}
	without := table()
	o.Days[1].Constant = 2
	with := table()
	if len(with.Columns) != len(without.Columns)+1 || with.Columns[5].Head != "Constant" ||
		with.Columns[6].Head != "GPU energy" ||
		with.Rows[0][5].Text != "2" || with.Rows[1][5].Text != "0" || with.Rows[1][4].Text != "1" {
		t.Errorf("%+v", with)
	}
}
