package reproduction

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestAFigureIsApartInPointsWhereItIsAPartOfSomething(t *testing.T) {
	for _, c := range []struct {
		f    Finding
		want string
	}{
		{Finding{Unit: "W", Ours: 110, Paper: 100}, "+10.0 %"},
		{Finding{Unit: "W", Ours: 99.99, Paper: 100}, "+0.0 %"},
		{Finding{Unit: "s", Ours: 50, Paper: 100}, "-50.0 %"},
		{Finding{Unit: "% saved", Ours: 35, Paper: 33.5}, "+1.5 points"},
		{Finding{Unit: "%", Ours: -2.5, Paper: 2.5}, "-5.0 points"},
		{Finding{Unit: "GRAR", Ours: 0.0247, Paper: 0.02}, "+0.5 points"},
		{Finding{Unit: "load", Ours: 0.89, Paper: 0.88}, "+1.0 points"},
	} {
		if got := c.f.differenceText(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.f, got, c.want)
		}
	}
}

func TestFiguresThatSayNothingOfThePaperAreCountedApart(t *testing.T) {
	r := &Result{Paper: &Paper{Name: "cats"}, Findings: []Finding{
		{Section: "testbed", What: "mean of both stages: cats", Unit: "W", Ours: 502, Paper: 301},
		// Fitted
		{Section: "testbed", What: "mean of both stages: hotcloud", Unit: "W", Ours: 385.8, Paper: 385.8},
		// Another machine.
		{Section: "table1", What: "2 tasks, as-printed", Unit: "s", Ours: 0.02, Paper: 0.02},
		// The paper gives none.
		{Section: "pai", What: "bf: power", Unit: "W", Ours: 1},
	}}
	if got, want := countAgreement(r), (agreementCount{far: 1, incomparable: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	r.Paper, r.Findings = &Paper{Name: "edl"}, []Finding{
		{Section: "table3", What: "J1 (δ 0, deadline 50) power", Unit: "W", Ours: 125, Paper: 125.23},
		{Section: "online", What: "run energy with DVFS", Unit: "MJ", Ours: 76.2, Paper: 79.87},
	}
	if got, want := countAgreement(r), (agreementCount{same: 1, near: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestEveryExhibitHasItsNumberOnce(t *testing.T) {
	for name, list := range exhibits {
		next := map[Kind]int{TableKind: 1, FigureKind: 1}
		for i := range list {
			e := &list[i]
			if e.Number != next[e.Kind] || e.Shows == "" || (e.WhyNot == "") != (len(e.sections) > 0) {
				t.Errorf("%s: %+v, want number %d", name, e, next[e.Kind])
			}
			next[e.Kind]++
			got, err := (&Paper{Name: name}).Exhibit(e.Kind, strconv.Itoa(e.Number))
			if (err == nil) != (e.WhyNot == "") || err == nil && got != e {
				t.Errorf("%s, %s: %v, %v", name, e.Name(), got, err)
			}
		}
	}
}

func TestAFindingNamesTheFiguresAndTablesThatShowIt(t *testing.T) {
	for _, c := range []struct{ paper, section, what, want string }{
		{"edl", "table3", "J1 (δ 0, deadline 50) power", "Table 3"},
		{"edl", "offline", "edl:1, U 0.2, l 16", "Figures 8, 9"},
		{"edl", "offline", "lpt-ff without DVFS, U 0.2, l 16", "Figure 6"},
		{"edl", "online", "total without sleep, edl:1, l 16", ""},
		{"pwr", "savings", "default, the mixes at least, load 0.15 to 0.8", "Figure 3"},
		{"pwr", "savings", "synthetic, pwr+fgd:0.1, load 0.2", "Figures 2, 3"},
		{"pwr", "grar", "multigpu50, fgd, load 1.0", "Figure 9"},
		{"pwr", "grar", "multigpu30, fgd, load 1.0", ""},
		{"predict", "table2", "value tuned for energy: energy, coupled energy", "Table 2, Figure 7"},
		{"predict", "table2", "value tuned for energy: energy saved", "Table 2"},
		{"predict", "table1", "value: energy saved", "Table 1, Figure 4"},
		{"cats", "philly", "cats: power", "Figures 9, 10"},
		{"cats", "philly", "cats-safe: power", ""},
	} {
		if got := (&Paper{Name: c.paper}).Shown(&Finding{Section: c.section, What: c.what}); got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.paper, c.what, got, c.want)
		}
	}
}

// A paper states some points of a line that is computed again in full: each is drawn once.
func TestALineHasEachPointOnce(t *testing.T) {
	e, err := (&Paper{Name: "edl"}).Exhibit(FigureKind, "12")
	if err != nil {
		t.Fatal(err)
	}
	p := &panel{unit: "MJ", findings: []*Finding{
		{Section: "online", What: "total, edl:1, l 16", Ours: 3},
		{Section: "online", What: "total, edl:1, l 2", Ours: 2},
		{Section: "online", What: "total, edl:1, l 16", Ours: 3},
		{Section: "online", What: "total, edl:0.9, l 16", Ours: 4},
	}}
	chart := p.lines(e, "")
	if len(chart.Lines) != 2 || !slices.Equal(chart.Lines[0].X, []float64{2, 16}) ||
		!slices.Equal(chart.Lines[0].Y, []float64{2, 3}) {
		t.Errorf("%+v", chart.Lines)
	}
	if got := e.caption("l 4", "", "MJ"); !strings.HasSuffix(got, "readjustment, l 4, MJ") {
		t.Error(got)
	}
}
