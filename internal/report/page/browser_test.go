package page_test

import (
	"html/template"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/testkit/browsertest"
)

func TestMain(m *testing.M) { os.Exit(browsertest.Run(m)) }

// form is markup of a page's own, by the classes that the stylesheet has for it.
//
//nolint:lll // markup
const form template.HTML = `<form method="get" action="#"><fieldset><legend>Which</legend><div class="fields">
<label>Name <span class="muted">– or a part</span><input name="n" value="resnet"></label>
<label>State<select name="s"><option>running</option><option>ended</option></select></label>
<label>Off<input value="off" disabled></label></div>
<label><input type="checkbox" checked> All of them</label></fieldset>
<p class="actions"><button class="primary">Show</button> <button class="danger">Undo</button> <a class="button" href="#all">Leave</a></p></form>
<pre>epplan plan batch.csv --cluster cluster.toml --models models.toml --policy edl --svg plan.svg --json</pre>
<div class="card"><p>A card, with <code>code</code>.</p></div>`

// wideTable has more columns than a telephone has room for.
func wideTable() *page.Table {
	t := &page.Table{
		Caption: "A wide table", Note: "It scrolls in a region of its own.", More: "3 more aren't shown.",
	}
	row := page.Cells("a-name-without-any-space-that-is-longer-than-a-telephone-is-wide")
	t.Columns = append(t.Columns, page.Column{Head: "name"})
	for range 12 {
		t.Columns = append(t.Columns, page.Column{Head: "energy", Unit: "kJ", Number: true})
		row = append(row, page.Cell{Text: "12,345.6"})
	}
	t.Rows = [][]page.Cell{row, row}
	return t
}

const picture template.HTML = `<svg class="pic" width="900" height="80" viewBox="0 0 900 80" role="img" aria-labelledby="p-t p-d"><title id="p-t">A line</title>` +
	`<desc id="p-d">It rises.</desc><path class="ln c1" d="M10 70L890 10"/><text x="20" y="20" class="k">rising</text></svg>`

func TestEveryPartIsReadableInABrowser(t *testing.T) {
	parts := append(every("words of a part"), wideTable(), form, &page.Figure{
		ID: "line", Caption: "A line that rises.", SVG: picture,
	})
	for _, kind := range []page.Severity{page.Plain, page.Info, page.Good, page.Warn, page.Bad} {
		parts = append(parts, &page.Notice{Kind: kind, Text: "A notice of its kind."},
			&page.Table{
				Caption: "A badge", Columns: []page.Column{{Head: "state"}},
				Rows: [][]page.Cell{{{Text: "badge " + string(kind), Kind: kind, Badge: true}}},
			},
			page.Tiles{{Label: "saved", Value: "12.3 kWh", Note: "± 1.2", Kind: kind}})
	}
	file := filepath.Join(t.TempDir(), "report.html")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	err = page.WriteReport(f, &page.Report{
		Title: "Every part", Lead: "What pages are made of.",
		Sections: []page.Section{{ID: "all", Heading: "All of them", Parts: parts}},
		Foot:     page.Facts{{Name: "version", Text: "1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	p := browsertest.Inspect(t, "parts", "file://"+file, "Every part", "What pages are made of",
		"words of a part", "A line that rises")
	p.SkipsToMain()
	for _, view := range []browsertest.View{
		{Width: browsertest.Phone},
		{Width: browsertest.Phone, Dark: true},
		{Print: true},
	} {
		p.Show(view)
		hintsAtMore(t, p, view)
	}
}

// hintsAtMore checks that what scrolls to the side is seen to do so at the side where
// there is more, and that nothing is on paper, where nothing scrolls. Covers in the
// page's colour move with the table and hide shadows that don't.
func hintsAtMore(t *testing.T, p *browsertest.Page, view browsertest.View) {
	t.Helper()
	var attached []string
	p.Eval(
		`[...document.querySelectorAll('.scroll')].map(e => getComputedStyle(e)).map(s => s.backgroundImage === 'none' ? 'none' : s.backgroundAttachment)`, &attached,
	)
	want := strings.Repeat("local, ", 2) + strings.TrimSuffix(strings.Repeat("scroll, ", 2), ", ")
	if view.Print {
		want = "none"
	}
	if len(attached) == 0 || slices.ContainsFunc(attached, func(how string) bool { return how != want }) {
		t.Errorf("%+v: backgrounds of what scrolls are %q, want %s", view, attached, want)
	}
}
