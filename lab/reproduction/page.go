package reproduction

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/report/page"
)

// WritePage writes the report of papers: the summary, and for each paper what it states, why ours differs,
// its figures drawn, those that can't be, and all that was computed. Only has the exhibits to draw; nil: all.
func WritePage(w io.Writer, all []*Result, only []*Exhibit, warning string, foot page.Facts) error {
	r := &page.Report{
		Title: "The papers' figures, computed anew",
		Lead: "Each figure that a paper states beside ours, how far apart they are, and why. Parts of " +
			"something differ by percentage points, " +
			"all else by per cent of the paper's figure.",
		Foot: foot,
	}
	if warning != "" {
		r.Parts = append(r.Parts, &page.Notice{Kind: page.Warn, Text: warning})
	}
	tiles := make(page.Tiles, len(all))
	for i, one := range all {
		n := countAgreement(one)
		short, _, _ := strings.Cut(one.Paper.Title, ":")
		tiles[i] = page.Tile{
			Label: short + ": within 10 %", Value: fmt.Sprintf("%d of %d", n.same+n.near,
				n.same+n.near+n.far),
			Note: fmt.Sprintf("%d within 1 %%; %d more can't be compared", n.same, n.incomparable),
		}
		r.Sections = append(r.Sections, one.section(only))
	}
	r.Parts = append(r.Parts, tiles)
	return page.WriteReport(w, r)
}

func (r *Result) section(only []*Exhibit) page.Section {
	s := page.Section{ID: r.Paper.Name, Heading: r.Paper.Title}
	if len(r.Notes) > 0 {
		s.Parts = append(s.Parts, &page.Notice{Kind: page.Info, Text: "How it was computed", Items: r.Notes})
	}
	s.Parts = append(s.Parts,
		statedTable(withPaperValue(explain([]*Result{r})), "What the paper states"))
	for i := range r.Paper.Exhibits() {
		if e := &r.Paper.Exhibits()[i]; only == nil || slices.Contains(only, e) {
			s.Parts = append(s.Parts, r.drawn(e)...)
		}
	}
	if only == nil {
		s.Parts = append(s.Parts, r.otherCurves()...)
	}
	s.Parts = append(s.Parts,
		&page.Details{
			Summary: "All that was computed, also what the paper doesn't state",
			Parts:   []any{r.Table.Page("All figures", "", -1)},
		},
		&page.Details{
			Summary: "The paper's figures and tables, and why some aren't computed",
			Parts:   []any{ExhibitsTable([]*Paper{r.Paper}).Page("Figures and tables", "", -1)},
		},
		page.Text("Readings of the paper, and what in it doesn't go together: "+r.Paper.Page+"."))
	return s
}

func statedTable(list []explained, caption string) *page.Table {
	t := &page.Table{
		Caption: caption,
		Columns: []page.Column{
			{Head: "number"},
			{Head: "in the paper"},
			{Head: "ours", Number: true},
			{Head: "paper", Number: true},
			{Head: "unit"},
			{Head: "deviation", Number: true},
			{Head: "why"},
		},
		Empty: "nothing",
	}
	for i := range list {
		f := &list[i]
		row := page.Cells(f.What, f.of.Shown(&f.Finding), pageNumber(f.Ours), "–", f.Unit, "–", f.why)
		if f.Paper != 0 {
			row[3].Text, row[5] = pageNumber(f.Paper), page.Cell{Text: f.differenceText(), Kind: f.kind()}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (f *Finding) kind() page.Severity {
	switch off := math.Abs(f.difference()); {
	case off <= samePct:
		return page.Good
	case off <= nearPct:
		return page.Plain
	}
	return page.Warn
}

func pageNumber(x float64) string {
	const digits = 6
	return strconv.FormatFloat(x, 'g', digits, 64)
}
