// Package view makes of one value what people see of it: a terminal, a report in HTML and a page of epd
// show the same facts in the same words.
package view

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/slurm"
)

// View is a value as people read it.
type View struct {
	Title, Lead string
	Tiles       page.Tiles // those with an ID stand on epd's overview, too
	Facts       Facts
	Notices     []*page.Notice
	Tables      []Table
	Sections    []page.Section // pictures, tables and how to read them, for pages alone
}

// Table is a table with its caption for pages.
type Table struct {
	Caption string
	*report.Table
}

// JobHref returns the address of a job's page.
func JobHref(id int64) string { return "/jobs/" + strconv.FormatInt(id, 10) }

// NodeHref returns the address of a node's page; "" for a node without a name.
func NodeHref(name string) string {
	if name == "" {
		return ""
	}
	return "/nodes/" + url.PathEscape(name)
}

// Facts are what there is to say of a value.
type Facts []Fact

// Fact is a name with what there is to say of it: a line each on a terminal.
type Fact struct {
	Name string
	Text []string
}

// add adds a fact.
func (v *View) add(name string, text ...string) { v.Facts = append(v.Facts, Fact{name, text}) }

// notice adds what its reader must not overlook.
func (v *View) notice(kind page.Severity, text string, items ...string) {
	v.Notices = append(v.Notices, &page.Notice{Kind: kind, Text: text, Items: items})
}

// addSection adds a section with parts of package page.
func (v *View) addSection(id, heading string, parts ...any) {
	v.Sections = append(v.Sections, page.Section{ID: id, Heading: heading, Parts: parts})
}

// Text returns the facts and notices as lines for a terminal.
func (v *View) Text() string {
	var b strings.Builder
	b.WriteString(v.Facts.Text(""))
	for _, n := range v.Notices {
		b.WriteString(n.Kind.Word() + ": " + printableText(n.Text) + "\n")
		for _, item := range n.Items {
			b.WriteString("  " + printableText(item) + "\n")
		}
	}
	return b.String()
}

// printableText returns a text in which nothing acts on a terminal.
func printableText(text string) string { return slurm.Printable(text, 800) }

// Text returns the facts as lines for a terminal, the names of indented ones in small letters.
func (f Facts) Text(indent string) string {
	names, width, gap := make([]string, len(f)), 12, 2
	if indent != "" {
		gap = 1
	}
	for i := range f {
		if names[i] = f[i].Name; indent != "" {
			names[i] = indent + strings.ToLower(f[i].Name)
		}
		width = max(width, len(names[i])+gap)
	}
	var b strings.Builder
	for i := range f {
		for k, text := range f[i].Text {
			if k > 0 {
				names[i] = ""
			}
			fmt.Fprintf(&b, "%-*s%s\n", width, names[i], printableText(text))
		}
	}
	return b.String()
}

// Page returns the facts as a part of a page.
func (f Facts) Page() page.Facts {
	facts := make(page.Facts, len(f))
	for i := range f {
		facts[i] = page.Fact{Name: f[i].Name, Text: strings.Join(f[i].Text, "; ")}
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
	facts := page.Section{ID: "facts", Heading: "In figures", Parts: []any{v.Facts.Page()}}
	return &page.Report{
		Title: v.Title, Lead: v.Lead, Parts: append([]any{v.Tiles}, v.notices()...),
		Sections: append([]page.Section{facts}, v.Sections...), Foot: foot,
	}
}

// Parts returns facts, notices, tables and what the named sections have, as a section of a page.
func (v *View) Parts(sections ...string) []any {
	parts := v.notices()
	if len(v.Facts) > 0 {
		parts = append([]any{v.Facts.Page()}, parts...)
	}
	for _, t := range v.Tables {
		parts = append(parts, t.Page(t.Caption, "", -1))
	}
	for _, id := range sections {
		for i := range v.Sections {
			if v.Sections[i].ID == id {
				parts = append(parts, v.Sections[i].Parts...)
			}
		}
	}
	return parts
}
