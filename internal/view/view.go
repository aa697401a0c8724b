// Package view makes of one value what people see of it: a terminal, a report in HTML and a page of epd
// show the same facts in the same words.
package view

import (
	"fmt"
	"strings"

	"github.com/epplan/epplan/internal/report/page"
)

// View is a value as people read it.
type View struct {
	Title, Lead string
	Tiles       page.Tiles // those with an ID stand on epd's overview, too
	Facts       []Fact
	Notices     []*page.Notice
	Sections    []page.Section // pictures, tables and how to read them, for pages alone
}

// Fact is a name with what there is to say of it: a line each on a terminal.
type Fact struct {
	Name string
	Text []string
}

// add adds a fact.
func (v *View) add(name string, text ...string) { v.Facts = append(v.Facts, Fact{name, text}) }

// addSection adds a section with parts of package page.
func (v *View) addSection(id, heading string, parts ...any) {
	v.Sections = append(v.Sections, page.Section{ID: id, Heading: heading, Parts: parts})
}

// Text returns the facts and notices as lines for a terminal.
func (v *View) Text() string {
	var b strings.Builder
	width := 10
	for _, f := range v.Facts {
		width = max(width, len(f.Name))
	}
	for _, f := range v.Facts {
		name := f.Name
		for _, text := range f.Text {
			fmt.Fprintf(&b, "%-*s  %s\n", width, name, text)
			name = ""
		}
	}
	for _, n := range v.Notices {
		b.WriteString(n.Kind.Word() + ": " + n.Text + "\n")
	}
	return b.String()
}

// facts returns the facts as a part of a page.
func (v *View) facts() page.Facts {
	facts := make(page.Facts, len(v.Facts))
	for i, f := range v.Facts {
		facts[i] = page.Fact{Name: f.Name, Text: strings.Join(f.Text, "; ")}
	}
	return facts
}

// notices returns the notices as parts of a page.
func (v *View) notices() []any {
	parts := make([]any, len(v.Notices))
	for i, n := range v.Notices {
		parts[i] = n
	}
	return parts
}

// Report returns the view as a report, whose foot says where it comes from.
func (v *View) Report(foot page.Facts) *page.Report {
	facts := page.Section{ID: "facts", Heading: "In figures", Parts: []any{v.facts()}}
	return &page.Report{
		Title: v.Title, Lead: v.Lead, Parts: append([]any{v.Tiles}, v.notices()...),
		Sections: append([]page.Section{facts}, v.Sections...), Foot: foot,
	}
}

// Parts returns facts, notices and what the named sections have, as a section of a page.
func (v *View) Parts(sections ...string) []any {
	parts := append([]any{v.facts()}, v.notices()...)
	for _, id := range sections {
		for i := range v.Sections {
			if v.Sections[i].ID == id {
				parts = append(parts, v.Sections[i].Parts...)
			}
		}
	}
	return parts
}
