package page

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"io"

	"github.com/epplan/epplan/queue"
)

// Frame is what surrounds the content of a page.
type Frame struct {
	Title  string // of the window; the site's name follows it
	Site   string // name in the header; empty: "epplan"
	Home   string // address that the name leads to; empty: none
	Nav    []Link
	NavFor string // what the links are, for screen readers; empty: "Pages"
	Style  string // address of the stylesheet; empty: it is in the page
	Script string // address of a script that is run after the page; empty: none
	Main   any    // what the template main is given
}

// CSS returns the stylesheet, for pages that have it inside.
func (*Frame) CSS() template.CSS { return template.CSS(stylesheet) } //nolint:gosec // our own

// SiteName returns the name in the header.
func (f *Frame) SiteName() string {
	return cmp.Or(f.Site, "epplan")
}

// NavName returns what the links are.
func (f *Frame) NavName() string {
	return cmp.Or(f.NavFor, "Pages")
}

//go:embed templates/*.html
var templateFiles embed.FS

// frameTemplates has the frame with an empty main; partials has the parts.
var frameTemplates, partTemplates = parseTemplates()

func parseTemplates() (frames, partials *template.Template) {
	show := template.FuncMap{"show": queue.Printable, "prose": Prose}
	partials = template.Must(
		template.New("parts").Funcs(show).Funcs(template.FuncMap{"part": partPlaceholder}).ParseFS(
			templateFiles, "templates/parts.html",
		),
	)
	partials.Funcs(template.FuncMap{"part": render(partials)})
	frames = template.Must(
		template.New("frame").Funcs(show).Funcs(template.FuncMap{"part": render(partials)}).ParseFS(
			templateFiles, "templates/frame.html",
		),
	)
	return frames, partials
}

// partPlaceholder stands for part while its templates are read.
func partPlaceholder(any) (template.HTML, error) { return "", nil }

// Templates returns a copy of the frame's templates with the functions part, show and
// prose, to which a page adds its main.
func Templates() *template.Template { return template.Must(frameTemplates.Clone()) }

// Execute writes a page by templates that began as [Templates]. Nothing is
// written where one of them fails.
func Execute(w io.Writer, t *template.Template, f *Frame) error {
	var out bytes.Buffer
	if err := t.ExecuteTemplate(&out, "frame", f); err != nil {
		return fmt.Errorf("page %q: %w", f.Title, err)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// render returns the function part.
func render(t *template.Template) func(part any) (template.HTML, error) {
	return func(part any) (template.HTML, error) {
		var name string
		switch p := part.(type) {
		case nil:
			return "", nil
		case template.HTML:
			return p, nil
		case *Table:
			return p.html(), nil
		case *Figure:
			name = "figure"
		case Tiles:
			name = "tiles"
		case Facts:
			name = "facts"
		case *Notice:
			name = "notice"
		case *Details:
			name = "details"
		case *Group:
			name = "group"
		case Text:
			name = "text"
		default:
			return "", fmt.Errorf("a part of a page is a %T, want one of package page", part)
		}
		var out bytes.Buffer
		if err := t.ExecuteTemplate(&out, name, part); err != nil {
			return "", err
		}
		return template.HTML(out.String()), nil //nolint:gosec // escaped by the template
	}
}
