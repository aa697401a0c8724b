package page_test

import (
	"bytes"
	"html/template"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/report/page"
)

// evil is text as nobody's job should be called.
const evil = `<script>alert(1)</script>"'&` + "\x1b[31m\u202e\u200b"

// every returns one of each part, all with the same text.
func every(text string) []any {
	table := &page.Table{
		ID: "jobs", Caption: text, Note: text, More: text,
		Columns: []page.Column{{Head: text}, {Head: "n", Unit: text, Number: true}, {Head: "state"}},
		Rows: [][]page.Cell{
			{
				{Text: text, Href: "/job/1"},
				{Text: text, Kind: page.Bad, Title: text},
				{Text: text, Kind: page.Warn, Badge: true},
			},
		},
	}
	return []any{
		page.Text(text),
		page.Tiles{{Label: text, Value: text, Note: text, Kind: page.Good, ID: "saved"}},
		page.Facts{
			{Name: text, Text: text},
			{Name: "link", Text: text, Href: "/x"},
		},
		&page.Notice{Kind: page.Warn, Text: text, Items: []string{text}},
		&page.Details{
			Summary: text, Parts: []any{
				table, &page.Table{Caption: "empty", Columns: []page.Column{{Head: "a"}}},
			},
		},
		&page.Group{
			Heading: text, Columns: true, Parts: []any{
				page.Text(text), page.Text(text),
			},
		},
		&page.Figure{
			ID: "fig", Caption: text, SVG: `<svg class="pic"></svg>`,
			Numbers: &page.Table{Caption: "numbers", Columns: []page.Column{{Head: "a"}}},
		},
	}
}

// written returns a report of all parts.
func written(tb rapid.TB, text string) []byte {
	tb.Helper()
	var out bytes.Buffer
	err := page.WriteReport(&out, &page.Report{
		Title: text, Lead: text, Parts: every(text)[:1], Foot: page.Facts{{Name: text, Text: text}},
		Sections: []page.Section{{ID: "all", Heading: text, Parts: every(text)}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// elements calls f for each element of a page.
func elements(tb rapid.TB, text []byte, f func(n *html.Node, attributes map[string]string)) {
	tb.Helper()
	root, err := html.Parse(bytes.NewReader(text))
	if err != nil {
		tb.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			attributes := make(map[string]string)
			for _, a := range n.Attr {
				attributes[a.Key] = a.Val
			}
			f(n, attributes)
		}
	}
}

func TestHostileTextIsShownAndDoesNothing(t *testing.T) {
	text := written(t, evil)
	if bytes.ContainsAny(text, "\x1b\u202e\u200b") {
		t.Error("control characters reach the page")
	}
	if !bytes.Contains(text, []byte("&lt;script&gt;alert(1)&lt;/script&gt;")) ||
		!bytes.Contains(text, []byte(`\x1b[31m\u202e\u200b`)) {
		t.Error("the text isn't shown as it is")
	}
	elements(t, text, func(n *html.Node, attributes map[string]string) {
		if n.Data == "script" {
			t.Error("there is a script")
		}
		for key := range attributes {
			if strings.HasPrefix(key, "on") || key == "style" || key == "src" {
				t.Errorf("%s has %s", n.Data, key)
			}
		}
	})
}

func TestAnyTextLeavesTheStructureAlone(t *testing.T) {
	names := func(text []byte) string {
		var all []string
		elements(t, text, func(n *html.Node, _ map[string]string) { all = append(all, n.Data) })
		return strings.Join(all, " ")
	}
	want := names(written(t, "a"))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.OneOf(rapid.SampledFrom([]rune(`<>&"'/=; -![]{}`)),
			rapid.Rune())).Filter(func(s string) bool { return s != "" }).Draw(t, "text")
		if got := names(written(t, text)); got != want {
			t.Fatalf("elements of a page with %q are\n%s, want\n%s", text, got, want)
		}
	})
}

func TestCellsAreBrokenByWhatIsInThem(t *testing.T) {
	for _, c := range []struct {
		cell page.Cell
		want string
	}{
		{page.Cell{Text: "a name"}, "<td>a name</td>"},
		{page.Cell{Text: strings.Repeat("w", 20)}, "<td class=\"long\">" + strings.Repeat("w", 20) + "</td>"},
		{page.Cell{Text: "wwwwwwwwww-wwwwwwwwww"}, "<td>wwwwwwwwww-wwwwwwwwww</td>"},
		{
			page.Cell{Text: strings.Repeat("word ", 8), Kind: page.Warn},
			"<td class=\"warn text\">" + strings.Repeat("word ", 8) + "</td>",
		},
		{
			page.Cell{Text: "core 1 MHz, <memory> 2 MHz", Listed: true},
			"<td><span class=\"whole\">core 1 MHz,</span> <span class=\"whole\">&lt;memory&gt; 2 " +
				"MHz</span></td>",
		},
	} {
		table := &page.Table{
			Columns: []page.Column{{Head: "a"}, {Head: "b"}}, Rows: [][]page.Cell{{{Text: "1"}, c.cell}},
		}
		html, err := page.Render(table)
		if err != nil || !strings.Contains(string(html), c.want) {
			t.Errorf("%+v gives %s (%v), want %s", c.cell, html, err, c.want)
		}
	}
}

func TestShortCellsOfACardStandBesideEachOther(t *testing.T) {
	table := &page.Table{
		Columns: []page.Column{
			{Head: "job"},
			{Head: "GPUs", Number: true},
			{Head: "time", Unit: "s"},
			{Head: "state"},
		},
		Rows: [][]page.Cell{{
			{Text: "1"}, {Text: "8"}, {Text: "123456789012"}, {Text: "COMPLETED", Badge: true},
		}},
	}
	html, err := page.Render(table)
	if err != nil || strings.Count(string(html), "half") != 1 ||
		!strings.Contains(string(html), `<td class="n half" data-head="GPUs">8</td>`) {
		t.Errorf("%s, %v", html, err)
	}
	table.Columns, table.Rows[0] = table.Columns[:3], table.Rows[0][:3]
	if html, err := page.Render(table); err != nil || strings.Contains(string(html), "half") {
		t.Errorf("a table that fits has %s, %v", html, err)
	}
}

// A number's bounds stand below it, and a card says of which column a heading is that several have.
func TestNumbersWithBoundsAreNarrowAndCardsTellHeadingsApart(t *testing.T) {
	table := &page.Table{
		Columns: []page.Column{
			{Head: "figure"},
			{Head: "FCFS", Number: true},
			{Head: "change", Number: true},
			{Head: "EASY", Number: true},
			{Head: "change", Number: true},
			{Head: "text"},
		},
		Rows: [][]page.Cell{page.Cells("energy", "12.3 (11.0 to 13.0)", "+1 %", "7", "+2 %", "a (b)")},
	}
	html, err := page.Render(table)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`data-head="FCFS">12.3<br>(11.0 to 13.0)</td>`, `data-head="FCFS, change">+1 %`,
		`data-head="EASY, change">+2 %`,
		">a (b)</td>",
	} {
		if !strings.Contains(string(html), want) {
			t.Errorf("no %s in %s", want, html)
		}
	}
}

func TestTablesHaveCaptionsAndHeadersWithAScope(t *testing.T) {
	text := written(t, "words")
	ids, tables := map[string]bool{}, 0
	elements(t, text, func(n *html.Node, attributes map[string]string) {
		switch n.Data {
		case "table":
			tables++
			if first := n.FirstChild.NextSibling; first.Data != "caption" {
				t.Errorf("a table begins with %q", first.Data)
			}
			if p := n.Parent; attributeOf(p, "tabindex") != "0" || attributeOf(p, "role") != "region" ||
				attributeOf(p, "aria-label") == "" {
				t.Error("a table's region can't be reached or has no name")
			}
		case "th":
			if s := attributes["scope"]; s != "col" && s != "row" {
				t.Errorf("a header has the scope %q", s)
			}
		}
		if id := attributes["id"]; id != "" && ids[id] {
			t.Errorf("id %s is there twice", id)
		} else if id != "" {
			ids[id] = true
		}
	})
	if tables != 3 || !ids["main"] || !ids["jobs"] || !ids["fig"] || !ids["all"] {
		t.Errorf("%d tables, ids %v", tables, ids)
	}
}

func attributeOf(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func TestAReportNeedsNothingFromOutside(t *testing.T) {
	text := written(t, "words")
	if outside := regexp.MustCompile(`https?:|//[a-z]|@import|url\(`).Find(text); outside != nil {
		t.Errorf("the page has %q", outside)
	}
	elements(t, text, func(n *html.Node, attributes map[string]string) {
		if href := attributes["href"]; href != "" && !page.IsLocal(href) {
			t.Errorf("%s leads to %q", n.Data, href)
		}
	})
}

func TestLinksThatLeaveTheSiteAreNone(t *testing.T) {
	for href, want := range map[string]bool{
		"/jobs/1": true, "?page=2": true, "#top": true, "": false, "javascript:alert(1)": false,
		"//evil.example/": false, "/\\evil.example": false, "https://evil.example": false,
		"data:text/html,x": false,
	} {
		if page.IsLocal(href) != want {
			t.Errorf("IsLocal(%q) is %v", href, !want)
		}
		text, err := page.Render(&page.Table{
			Columns: []page.Column{{}}, Rows: [][]page.Cell{{{Text: "x", Href: href}}},
		})
		if err != nil || strings.Contains(string(text), "<a ") != want {
			t.Errorf("a cell with %q is %s, %v", href, text, err)
		}
	}
}

func TestAPageHasItsStyleAndScriptByAddress(t *testing.T) {
	tmpl := template.Must(
		page.Templates().Parse(
			`{{define "main"}}<h1>{{show .Name}}</h1>{{part .Part}}{{end}}{{define "foot"}}<p>{{.Title}}</p>{{end}}`,
		),
	)
	var out bytes.Buffer
	frame := page.Frame{
		Title: "Queue", Site: "epd", Home: "/", Style: "/style.css", Script: "/live.js",
		Nav:  []page.Link{{Text: "Queue", Href: "/queue", Here: true}, {Text: "Nodes", Href: "/nodes"}},
		Main: map[string]any{"Name": "a\x1bb", "Part": page.Text("ok")},
	}
	if err := page.Execute(&out, tmpl, &frame); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`<title>Queue – epd</title>`, `<link rel="stylesheet" href="/style.css">`,
		`<script src="/live.js" defer></script>`,
		`<a href="/queue" aria-current="page">Queue</a>`, `<a href="/nodes">Nodes</a>`, `<h1>a\x1bb</h1>`,
		`<p>ok</p>`, `<p>Queue</p>`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the page lacks %s:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "<style>") {
		t.Error("the stylesheet is in the page too")
	}
}

func TestWhatIsNoPartIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	var out bytes.Buffer
	err := page.WriteReport(&out, &page.Report{Title: "x", Parts: []any{page.Table{}}})
	if err == nil || !strings.Contains(err.Error(), "page.Table") || out.Len() > 0 {
		t.Errorf("error %v after %d bytes", err, out.Len())
	}
	if err := page.WriteReport(broken{}, &page.Report{}); err == nil {
		t.Error("an error of the writer is lost")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// luminance returns the relative luminance of a colour, WCAG 2.2.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		v, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(v) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

func TestColoursContrastOnLightAndOnDark(t *testing.T) {
	tokens := map[string]page.Token{}
	for _, token := range page.Tokens() {
		tokens[token.Name] = token
	}
	contrast := func(a, b string) float64 {
		x, y := luminance(t, a), luminance(t, b)
		return (max(x, y) + 0.05) / (min(x, y) + 0.05)
	}
	want := func(least float64, front string, backs ...string) {
		t.Helper()
		for _, back := range backs {
			f, b := tokens[front], tokens[back]
			if light, dark := contrast(f.Light, b.Light), contrast(f.Dark, b.Dark); light < least ||
				dark < least {
				t.Errorf("%s on %s: %.2f light and %.2f dark, want %v", front, back, light, dark, least)
			}
		}
	}
	const text, shape = 4.5, 3
	want(text, "ink", "bg", "surface", "info-bg", "good-bg", "warn-bg", "bad-bg", "idle")
	want(text, "muted", "bg", "surface")
	want(text, "link", "bg", "surface", "info-bg")
	want(text, "on-link", "link")
	for _, kind := range []string{"info", "good", "warn", "bad"} {
		want(text, kind, "bg", "surface", kind+"-bg")
	}
	for _, front := range []string{
		"edge", "axis", "focus", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10",
		"part-run", "part-idle", "part-host", "part-on", "part-sleep",
	} {
		want(shape, front, "bg")
	}
}

func TestTheStylesheetUsesNoColourThatHasNoToken(t *testing.T) {
	css := page.Stylesheet()
	declared := map[string]bool{}
	for _, token := range page.Tokens() {
		declared[token.Name] = true
	}
	for _, m := range regexp.MustCompile(`var\(--([\w-]+)\)`).FindAllStringSubmatch(css, -1) {
		if !declared[m[1]] {
			t.Errorf("var(--%s) is declared nowhere", m[1])
		}
	}
	if strings.Count(css, "{") != strings.Count(css, "}") {
		t.Error("braces don't match")
	}
	if strings.Contains(page.PictureStyle(), "var(") {
		t.Error("the style of a picture in a file has variables")
	}
}

func TestANumberStaysOnTheLineOfItsUnit(t *testing.T) {
	const gap = "\u00a0"
	for text, want := range map[string]string{
		"this one is 4.18 % above": "this one is 4.18" + gap + "% above",
		"it takes 1,234.5 kJ (0.343 kWh), 12 s": "it takes 1,234.5" + gap + "kJ (0.343" + gap +
			"kWh), 12" + gap + "s",
		"at 1087 MHz, 16 GiB and 250 W for 5 min": "at 1087" + gap + "MHz, 16" + gap + "GiB and 250" + gap +
			"W for 5" + gap + "min",
		"3 µs of 2 ms":                   "3" + gap + "µs of 2" + gap + "ms",
		"2 jobs, 3 switches and 4 mines": "2 jobs, 3 switches and 4 mines",
		"a %, W 3 and 7":                 "a %, W 3 and 7",
	} {
		if got := page.Prose(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	table := &page.Table{
		Caption: "c", Note: "below 1 %", More: "2 s more", Columns: []page.Column{{Head: "h"}},
		Rows: [][]page.Cell{page.Cells("3 W")},
	}
	parts := []any{
		page.Text("5 %"),
		&page.Notice{Text: "6 %", Items: []string{"7 %"}},
		page.Tiles{{Label: "l", Value: "8 %", Note: "9 %"}},
		page.Facts{{Name: "n", Text: "10 %"}},
		&page.Figure{Caption: "11 %"},
		table,
	}
	var all strings.Builder
	for _, part := range parts {
		html, err := page.Render(part)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(string(html))
	}
	if err := page.WriteReport(&all, &page.Report{Title: "t", Lead: "12 %"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"5_%", "6_%", "7_%", "9_%", "10_%", "<figcaption>11_%", "below 1_%",
		"2_s more", ">3 W<", "12_%",
	} {
		if want = strings.ReplaceAll(want, "_", gap); !strings.Contains(all.String(), want) {
			t.Errorf("no %q in\n%s", want, &all)
		}
	}
}
