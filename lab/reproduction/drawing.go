package reproduction

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
)

// curveSections are the sections whose curves come in full, in the order of [Curves].
var curveSections = []string{"savings", "grar"} //nolint:gochecknoglobals // constant

// drawn returns the pictures of an exhibit; none if nothing of it was computed.
func (r *Result) drawn(e *Exhibit) []any {
	if e.Kind == TableKind || e.WhyNot != "" {
		return nil
	}
	if pictures := r.fullCurves(e); len(pictures) > 0 {
		return pictures
	}
	var all []panel
	for i := range r.Findings {
		f := &r.Findings[i]
		if !e.Has(f) {
			continue
		}
		name := e.group(f, "panel")
		at := slices.IndexFunc(all, func(p panel) bool { return p.name == name && p.unit == f.Unit })
		if at < 0 {
			at, all = len(all), append(all, panel{name: name, unit: f.Unit})
		}
		all[at].findings = append(all[at].findings, f)
	}
	pictures := make([]any, len(all))
	for i := range all {
		id, caption := r.pictureID(e, i), e.caption()
		if len(all) > 1 {
			caption = e.caption(all[i].name, all[i].unit)
		}
		if e.x == "" {
			pictures[i] = all[i].bars(e, id, caption)
		} else {
			pictures[i] = report.ChartFigure(id, caption, all[i].lines(e, caption))
		}
	}
	return pictures
}

// panel is one of the pictures of an exhibit.
type panel struct {
	name, unit string
	findings   []*Finding
}

func (r *Result) pictureID(e *Exhibit, i int) string {
	return fmt.Sprintf("%s-%d-%d", r.Paper.Name, e.Number, i+1)
}

func (e *Exhibit) caption(parts ...string) string {
	all := slices.DeleteFunc(append([]string{e.Shows}, parts...), func(part string) bool { return part == "" })
	return e.Name() + ": " + strings.Join(all, ", ")
}

// group returns what a group of the exhibit's expression matches in a finding's name.
func (e *Exhibit) group(f *Finding, name string) string {
	match, at := e.rows.FindStringSubmatch(f.What), e.rows.SubexpIndex(name)
	if match == nil || at < 0 {
		return ""
	}
	return match[at]
}

// fullCurves returns the curves of the families that a figure shows.
func (r *Result) fullCurves(e *Exhibit) (pictures []any) {
	for _, c := range r.Curves {
		shown := &Finding{What: c.Family + ", pwr, "}
		for i, section := range curveSections {
			shown.Section = section
			if e.Has(shown) {
				chart := c.Charts[i]
				chart.Title = c.Family + ": " + chart.Title
				pictures = append(pictures, report.ChartFigure(r.pictureID(e, len(pictures)),
					e.caption(chart.Title), &chart))
			}
		}
	}
	return pictures
}

// otherCurves returns the curves that no figure of the paper shows.
func (r *Result) otherCurves() (pictures []any) {
	for _, c := range r.Curves {
		for i := range c.Charts[len(curveSections):] {
			chart := &c.Charts[len(curveSections)+i]
			pictures = append(pictures, report.ChartFigure(fmt.Sprintf("%s-%s-%d", r.Paper.Name, c.Family, i+1),
				c.Family+": "+chart.Title+" (not in the paper)", chart))
		}
	}
	return pictures
}

// lines returns a chart with a line for each of the exhibit's.
func (p *panel) lines(e *Exhibit, title string) *report.Chart {
	chart := &report.Chart{Title: title, X: e.x, Y: p.unit}
	for _, f := range p.findings {
		name := e.group(f, "line")
		x, err := strconv.ParseFloat(e.group(f, "x"), 64)
		if err != nil {
			continue
		}
		at := slices.IndexFunc(chart.Lines, func(s report.Series) bool { return s.Name == name })
		if at < 0 {
			at, chart.Lines = len(chart.Lines), append(chart.Lines, report.Series{Name: name})
		}
		line := &chart.Lines[at]
		place, found := slices.BinarySearch(line.X, x)
		if !found { // a paper states some points of a line that is computed again in full
			line.X, line.Y = slices.Insert(line.X, place, x), slices.Insert(line.Y, place, f.Ours)
		}
	}
	return chart
}

// bars returns a bar for each finding, the paper's number as its outline.
func (p *panel) bars(e *Exhibit, id, caption string) *page.Figure {
	rows, values := make([]report.BarRow, len(p.findings)), make([]float64, 0, 2*len(p.findings))
	against := ""
	for i, f := range p.findings {
		rows[i] = report.BarRow{Name: cmp.Or(e.group(f, "line"), f.What), Value: f.Ours, Reference: f.Paper}
		values = append(values, f.Ours, f.Paper)
		if f.Paper != 0 {
			rows[i].Note, against = fmt.Sprintf(" (%s)", pageNumber(f.Paper)), "the paper's"
		}
	}
	const digits = 3
	numbers := report.TableOf(p.findings, func(row *report.Row, f **Finding) {
		row.Add(report.Column{Head: "what", Left: true}, report.Text((*f).What))
		row.Add(report.Column{Head: "ours", Note: p.unit}, report.Number((*f).Ours))
		row.Add(report.Column{Head: "paper", Note: p.unit}, report.NonZero((*f).Paper))
	})
	return &page.Figure{
		ID: "figure-" + id, Caption: caption,
		SVG: report.DrawBarRows(id, caption, "A bar for each number, with an outline for the paper's.",
			cmp.Or(p.unit, "number"), against, report.CommonScale(report.Plain, digits, values...), rows),
		Numbers: numbers.Page(caption, "", -1),
	}
}
