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

// Every figure of what was saved, and every warning, stands on the terminal, in the report and on the
// overview: drawn savings, each of whose numbers is written here anew.
func TestTerminalReportAndOverviewHaveTheSameFactsOfASaving(t *testing.T) {
	for seed := range uint64(200) {
		s, figures := drawnSavings(rand.New(rand.NewPCG(seed, 9)))
		shown := view.Savings(s)
		var file strings.Builder
		if err := page.WriteReport(&file, shown.Report(nil)); err != nil {
			t.Fatal(err)
		}
		for _, f := range shown.Facts {
			figures = append(append(figures, f.Name), f.Text...)
		}
		for where, text := range map[string]string{
			"terminal": strings.Join(strings.Fields(shown.Text()), " "), "report": plainText(file.String()),
			"overview": renderedText(t, "{{range .}}{{part .}}{{end}}", shown.Parts("measured", "how")),
		} {
			for _, figure := range figures {
				if !strings.Contains(text, figure) {
					t.Fatalf("seed %d: %q isn't in the %s: %s", seed, figure, where, text)
				}
			}
			if s.Constant == nil && constantArm.MatchString(text) {
				t.Fatalf("seed %d: the %s tells of constant clocks: %s", seed, where, text)
			}
		}
	}
}

// constantArm is what is said of constant clocks. Factors may be constant, too.
var constantArm = regexp.MustCompile(`(?i)constant (?:clocks|arm)|constant, (?:gpus|nodes|time)`)

// savingsDraw draws savings, and lists what has to be said of them.
type savingsDraw struct {
	*rand.Rand
	last    int64
	figures []string
}

// count draws a number that none before is equal to.
func (d *savingsDraw) count() int64 {
	d.last += 1 + d.Int64N(30)
	return d.last
}

func (d *savingsDraw) some() bool { return d.IntN(3) > 0 }

func (d *savingsDraw) say(format string, args ...any) {
	for i, a := range args {
		if n, is := a.(int64); is {
			args[i] = report.FormatCount(int(n))
		}
	}
	d.figures = append(d.figures, fmt.Sprintf(format, args...))
}

func (d *savingsDraw) saving(against string) epdapi.Saving {
	if !d.some() {
		return epdapi.Saving{}
	}
	e := epdapi.Saving{Runs: d.count(), Against: d.count(), BaselineJ: 1e7 * (1 + d.Float64())}
	e.SavedJ = e.BaselineJ * (d.Float64() - .3)
	half := e.BaselineJ * d.Float64() / 3
	e.LowJ, e.HighJ = e.SavedJ-half, e.SavedJ+half
	if e.LowJ < 0 && e.HighJ > 0 {
		e.Needed = d.count()
		more := "about %v more held-out runs would do"
		if against != "held out" {
			more = "about %v more runs at constant clocks would do"
		}
		d.say(more, e.Needed)
		d.say("may be chance")
	}
	kWh, part := report.EnergyText, func(j float64) string { return report.FormatPercent(j / e.BaselineJ) }
	d.say("%s of %s (%s) saved by %v runs against %v %s", kWh(e.SavedJ), kWh(e.BaselineJ), part(e.SavedJ),
		e.Runs, e.Against, against)
	d.say("between %s and %s (%s to %s) in 95 of 100 cases", kWh(e.LowJ), kWh(e.HighJ), part(e.LowJ),
		part(e.HighJ))
	return e
}

func (d *savingsDraw) longer(against string) epdapi.Longer {
	if !d.some() {
		return epdapi.Longer{}
	}
	d.say("10.0 %% longer than %s; between 5.0 %% and 15.0 %% in 95 of 100 cases", against)
	return epdapi.Longer{
		Runs: d.count(), Against: d.count(), LongerS: 100, LowS: 50, HighS: 150, BaselineS: 1000,
	}
}

func (d *savingsDraw) constant() *epdapi.ConstantArm {
	const against = "at constant clocks"
	c := &epdapi.ConstantArm{
		Part: .11, Runs: d.count(), Ended: epdapi.EndingCounts{Completed: d.count(), Ended: d.count()},
		GPU: d.saving("held out"), Node: d.saving("held out"), Time: d.longer("held out"),
		AddedGPU: epdapi.AddedSaving(d.saving(against)), AddedNode: epdapi.AddedSaving(d.saving(against)),
		AddedTime: epdapi.AddedTime(d.longer(against)),
	}
	d.say("%v at constant clocks", c.Runs)
	d.say("11 %% run at constant clocks")
	d.say("%v of %v at constant clocks", c.Ended.Completed, c.Ended.Ended)
	return c
}

// drawnSavings draws savings whose counts are all different, and lists what has to be said of them.
func drawnSavings(random *rand.Rand) (s *epdapi.Savings, figures []string) {
	d := &savingsDraw{Rand: random, last: 10}
	s = &epdapi.Savings{
		GPU: d.saving("held out"), Node: d.saving("held out"), Time: d.longer("held out"), MaxSlowdown: 1.1,
		MaxSlowdowns: map[string]float64{"long": 1.3}, HoldOut: .07, Treated: d.count(), HeldOut: d.count(),
		Workloads: int(d.count()), Alone: int(d.count()),
		TreatedEnded: epdapi.EndingCounts{Completed: d.count(), Ended: 4 * d.count()},
		HeldOutEnded: epdapi.EndingCounts{Completed: d.count(), Ended: d.count()},
	}
	d.say("%v at chosen clocks", s.Treated)
	d.say("%v held out, since the first record", s.HeldOut)
	d.say("7 %% of the jobs are held out now")
	d.say("%v of %v workloads", s.Workloads, s.Workloads+s.Alone)
	d.say("%v workloads have no run in one of the groups", s.Alone)
	d.say("(max_slowdown; in partition long 1.3)")
	d.say("%v of %v at chosen clocks", s.TreatedEnded.Completed, s.TreatedEnded.Ended)
	d.say("%v of %v held out", s.HeldOutEnded.Completed, s.HeldOutEnded.Ended)
	if d.some() {
		module := d.saving("held out")
		s.Module = &module
	}
	if d.some() {
		s.Modelled = epdapi.ModelledUse{Runs: d.count(), DefaultJ: 5e8, UsedJ: 4e8}
		d.say("27.78 kWh of 138.9 kWh (20.0 %%) at the GPUs by %v runs", s.Modelled.Runs)
	}
	if d.some() {
		s.Constant = d.constant()
	}
	if s.TreatedCompleteLess() {
		d.say("fewer jobs complete at chosen clocks")
	}
	if s.ConstantCompletesUnlike() {
		d.say("don't complete alike")
	}
	if s.GPU.Runs > 0 && d.some() {
		s.Factors = epdapi.Factors{PUE: 1.2, CostPerKWh: .25, Currency: "EUR"}
		d.say("EUR, from ")
		d.say("with a PUE of 1.2")
	}
	return s, d.figures
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
	if got := view.ArmWords(live.ArmConstant); got != "constant clocks, for comparison" {
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
