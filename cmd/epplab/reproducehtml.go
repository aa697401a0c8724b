package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
)

// reproducedPage writes the report of all papers: the summary, and for each
// paper what it states, why ours differs, all that was computed, and its
// pictures.
func reproducedPage(t *terminal.Terminal, all []*reproducedPaper, quick bool) func(io.Writer) error {
	return func(w io.Writer) error {
		r := &page.Report{
			Title: "The papers' figures, computed anew",
			Lead: "Each figure that a paper states beside ours, how far apart they are, and why. Parts of " +
				"something differ by percentage points, " +
				"all else by per cent of the paper's figure.",
			Foot: page.Facts{{Name: "Written by", Text: t.Program.Name + " " + t.Program.Version}},
		}
		if quick {
			r.Parts = append(r.Parts, &page.Notice{
				Kind: page.Warn,
				Text: "Quick: few draws, so that means are rougher than those of a full run.",
			})
		}
		tiles := make(page.Tiles, len(all))
		for i, one := range all {
			n := countAgreement(one)
			short, _, _ := strings.Cut(one.paper.title, ":")
			tiles[i] = page.Tile{
				Label: short + ": within 10 %", Value: fmt.Sprintf("%d of %d", n.same+n.near,
					n.same+n.near+n.far),
				Note: fmt.Sprintf("%d within 1 %%; %d more can't be compared", n.same, n.incomparable),
			}
			r.Sections = append(r.Sections, one.section())
		}
		r.Parts = append(r.Parts, tiles)
		return page.WriteReport(w, r)
	}
}

func (r *reproducedPaper) section() page.Section {
	s := page.Section{ID: r.paper.name, Heading: r.paper.title}
	if len(r.notes) > 0 {
		s.Parts = append(s.Parts, &page.Notice{Kind: page.Info, Text: "How it was computed", Items: r.notes})
	}
	s.Parts = append(s.Parts,
		figurePage(withPaperValue(figuresOf([]*reproducedPaper{r})), "What the paper states"))
	for i := range r.charts {
		chart := &r.charts[i]
		s.Parts = append(s.Parts,
			report.ChartFigure(fmt.Sprintf("%s-%d", r.paper.name, i+1), chart.Title, chart))
	}
	s.Parts = append(s.Parts,
		&page.Details{
			Summary: "All that was computed, also what the paper doesn't state",
			Parts:   []any{r.table.Page("All figures", "", -1)},
		},
		page.Text("Readings of the paper, and what in it doesn't go together: "+r.paper.page+"."))
	return s
}

func figurePage(list []paperFigure, caption string) *page.Table {
	t := &page.Table{
		Caption: caption,
		Columns: []page.Column{
			{Head: "figure"},
			{Head: "of"},
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
		row := page.Cells(f.what, f.section, pageNumber(f.ours), "–", f.unit, "–", f.why)
		if f.paper != 0 {
			row[3].Text, row[5] = pageNumber(f.paper), page.Cell{Text: f.differenceText(), Kind: f.kind()}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (f *finding) kind() page.Severity {
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
