package web

import (
	"fmt"
	"html"
	"html/template"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/view"
	"github.com/epplan/epplan/live"
)

// Every figure of what was saved, and every warning, stands on the terminal, in the report and on the overview:
// drawn savings, each of whose numbers is written here anew.
func TestTerminalReportAndOverviewHaveTheSameFactsOfASaving(t *testing.T) {
	for seed := range uint64(200) {
		s, figures := drawnSavings(rand.New(rand.NewPCG(seed, 9)))
		shown := view.Savings(s)
		var file strings.Builder
		if err := page.WriteReport(&file, shown.Report(nil)); err != nil {
			t.Fatal(err)
		}
		overview := renderedText(t, "{{range .}}{{part .}}{{end}}", shown.Parts("measured", "how"))
		for where, text := range map[string]string{
			"terminal": strings.Join(strings.Fields(shown.Text()), " "), "report": plainText(file.String()),
			"overview": overview,
		} {
			for _, figure := range figures {
				if !strings.Contains(text, figure) {
					t.Fatalf("seed %d: %q isn't in the %s: %s", seed, figure, where, text)
				}
			}
			for _, fact := range shown.Facts {
				for _, line := range fact.Text {
					if !strings.Contains(text, fact.Name) || !strings.Contains(text, line) {
						t.Fatalf("seed %d: %s, %q isn't in the %s", seed, fact.Name, line, where)
					}
				}
			}
			if s.Constant == nil && strings.Contains(strings.ToLower(text), "constant") {
				t.Fatalf("seed %d: the %s tells of constant clocks: %s", seed, where, text)
			}
		}
	}
}

// drawnSavings draws savings whose numbers are all different, and lists what has to be said of them.
func drawnSavings(random *rand.Rand) (s *epdapi.Savings, figures []string) {
	n := 10 + random.IntN(10)
	count := func() int64 { n += 1 + random.IntN(30); return int64(n) }
	say := func(format string, args ...any) {
		for i, a := range args {
			if n, is := a.(int64); is {
				args[i] = report.FormatCount(int(n))
			}
		}
		figures = append(figures, fmt.Sprintf(strings.ReplaceAll(format, "%d", "%v"), args...))
	}
	kWh := func(j float64) string { return report.EnergyText(j) }
	part := func(x float64) string { return report.FormatPercent(x) }
	some := func() bool { return random.IntN(3) > 0 }
	saving := func(against string) epdapi.Saving {
		if !some() {
			return epdapi.Saving{}
		}
		e := epdapi.Saving{Runs: count(), Against: count(), BaselineJ: 1e7 * (1 + random.Float64())}
		e.SavedJ = e.BaselineJ * (random.Float64() - .3)
		half := e.BaselineJ * random.Float64() / 3
		e.LowJ, e.HighJ = e.SavedJ-half, e.SavedJ+half
		if e.LowJ < 0 && e.HighJ > 0 {
			e.Needed = count()
			say("may be chance")
			say("about %s would do", map[string]string{
				"held out":           report.FormatCount(int(e.Needed)) + " more held-out runs",
				"at constant clocks": report.FormatCount(int(e.Needed)) + " more runs at constant clocks",
			}[against])
		}
		say("%s of %s (%s) saved by %d runs against %d %s", kWh(e.SavedJ), kWh(e.BaselineJ), part(e.SavedJ/e.BaselineJ),
			e.Runs, e.Against, against)
		say("between %s and %s (%s to %s) in 95 of 100 cases", kWh(e.LowJ), kWh(e.HighJ), part(e.LowJ/e.BaselineJ),
			part(e.HighJ/e.BaselineJ))
		return e
	}
	longer := func(against string) epdapi.Longer {
		if !some() {
			return epdapi.Longer{}
		}
		say("10.0 %% longer than %s; between 5.0 %% and 15.0 %% in 95 of 100 cases", against)
		return epdapi.Longer{Runs: count(), Against: count(), LongerS: 100, LowS: 50, HighS: 150, BaselineS: 1000}
	}
	s = &epdapi.Savings{
		GPU: saving("held out"), Node: saving("held out"), Time: longer("held out"), MaxSlowdown: 1.1,
		MaxSlowdowns: map[string]float64{"long": 1.3}, Workloads: int(count()), Alone: int(count()), HoldOut: .07,
		Treated: count(), HeldOut: count(), TreatedEnded: epdapi.EndingCounts{Completed: count(), Ended: 4 * count()},
		HeldOutEnded: epdapi.EndingCounts{Completed: count(), Ended: count()},
	}
	say("%d at chosen clocks", s.Treated)
	say("%d held out, since the first record", s.HeldOut)
	say("7 %% of the jobs are held out now")
	say("%d of %d workloads", s.Workloads, s.Workloads+s.Alone)
	say("%d workloads have no run in one of the groups", s.Alone)
	say("(max_slowdown; in partition long 1.3)")
	for _, e := range []epdapi.EndingCounts{s.TreatedEnded, s.HeldOutEnded} {
		say("%d of %d", e.Completed, e.Ended)
	}
	if s.TreatedCompleteLess() {
		say("fewer jobs complete at chosen clocks")
	}
	if some() {
		module := saving("held out")
		s.Module = &module
	}
	if some() {
		s.Modelled = epdapi.ModelledUse{Runs: count(), DefaultJ: 5e8, UsedJ: 4e8}
		say("%s of %s (20.0 %%) at the GPUs by %d runs", kWh(1e8), kWh(5e8), s.Modelled.Runs)
	}
	if some() {
		added := saving("at constant clocks")
		addedNode := saving("at constant clocks")
		addedTime := longer("at constant clocks")
		s.Constant = &epdapi.ConstantArm{
			Part: .11, Runs: count(), Ended: epdapi.EndingCounts{Completed: count(), Ended: count()}, GPU: saving("held out"),
			Node: saving("held out"), Time: longer("held out"), AddedGPU: epdapi.AddedSaving(added),
			AddedNode: epdapi.AddedSaving(addedNode), AddedTime: epdapi.AddedTime(addedTime),
		}
		say("%d at constant clocks", s.Constant.Runs)
		say("11 %% run at constant clocks")
		say("%d of %d at constant clocks", s.Constant.Ended.Completed, s.Constant.Ended.Ended)
		if s.ConstantCompletesUnlike() {
			say("don't complete alike")
		}
	}
	if s.GPU.Runs > 0 && some() {
		s.Factors = epdapi.Factors{PUE: 1.2, CostPerKWh: .25, Currency: "EUR"}
		say("EUR, from ")
		say("with a PUE of 1.2")
	}
	return s, figures
}

// plainText returns a page's text: without tags, and with plain spaces.
func plainText(markup string) string {
	text := html.UnescapeString(regexp.MustCompile("<[^>]*>").ReplaceAllString(markup, " "))
	return strings.Join(strings.Fields(strings.ReplaceAll(text, "\u00a0", " ")), " ")
}

// renderedText returns the text of what a template makes of data.
func renderedText(t *testing.T, source string, data any) string {
	t.Helper()
	var out strings.Builder
	made := template.Must(page.Templates().New("test").Parse(source))
	if err := made.Execute(&out, data); err != nil {
		t.Fatal(err)
	}
	return plainText(out.String())
}

func TestArmsHaveWords(t *testing.T) {
	if got := armWords(live.ArmConstant); got != "constant clocks, for comparison" {
		t.Error(got)
	}
}

// Beside what was saved stands by how much a job may take longer, whether or not it is known how much it was.
func TestASavingIsShownWithTheBoundOnRunTimes(t *testing.T) {
	o := epdapi.Overview{Savings: epdapi.Savings{
		GPU:         epdapi.Saving{Runs: 30, Against: 4, SavedJ: 1e6, LowJ: 8e5, HighJ: 12e5, BaselineJ: 9e6},
		MaxSlowdown: 1.1, MaxSlowdowns: map[string]float64{"long": 1.3},
	}}
	for _, took := range []epdapi.Longer{{}, {Runs: 30, Against: 4, LongerS: 80, BaselineS: 1000}} {
		o.Savings.Time = took
		tiles := summaryTiles(&o, view.Savings(&o.Savings), &Request{})
		if note := tiles[1].Note; !strings.Contains(note, "a job may take up to 1.3 times as long") {
			t.Errorf("%+v: %q", took, note)
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
