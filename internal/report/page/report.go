package page

import (
	"html/template"
	"io"
)

// Report is a page that stands alone in a file.
type Report struct {
	Title    string
	Lead     string // what it says, in a paragraph
	Parts    []any  // before the first section
	Sections []Section
	Foot     Facts // where it comes from
}

// Section is a part of a report with a heading.
type Section struct {
	ID, Heading string
	Parts       []any
}

// Sort of content that every report has in its main.
const reportMain = `{{define "main"}}<h1>{{show .Title}}</h1>
{{with .Lead}}<p class="lead">{{prose .}}</p>
{{end}}{{range .Parts}}{{part .}}{{end}}{{range .Sections}}<section aria-labelledby="{{.ID}}">
<h2 id="{{.ID}}">{{show .Heading}}</h2>
{{range .Parts}}{{part .}}{{end}}</section>
{{end}}{{end}}
{{define "foot"}}{{with .Main.Foot}}<p>Where this comes from:</p>{{part .}}{{end}}{{end}}`

var reportTemplate = template.Must(Templates().Parse(reportMain))

// WriteReport writes a report with its stylesheet in it: the file needs nothing
// from outside, and runs no script. The header leads to its sections.
func WriteReport(w io.Writer, r *Report) error {
	f := &Frame{Title: r.Title, NavFor: "Sections", Main: r}
	for i := range r.Sections {
		f.Nav = append(f.Nav, Link{Text: r.Sections[i].Heading, Href: "#" + r.Sections[i].ID})
	}
	return Execute(w, reportTemplate, f)
}
