package report_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/textfile"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/queue"
)

func TestALongTableShowsItsFirstRowsAndCountsTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have, most := rapid.IntRange(0, 60).Draw(t, "rows"), rapid.IntRange(-1, 40).Draw(t, "shown")
		tab := report.Table{Columns: []report.Column{{Key: "n", Head: "row"}}}
		rows := make([][]report.Value, have)
		for i := range rows {
			rows[i] = []report.Value{report.Text(fmt.Sprint("r", i))}
		}
		if tab.Rows = slices.Values(rows); rapid.Bool().Draw(t, "counted before") {
			tab.Len = have
		}
		text := tab.Text(&report.TextOptions{Rows: most})
		shown := have
		if most == 0 {
			most = report.DefaultRows
		}
		if most > 0 {
			shown = min(have, most)
		}
		if got := len(regexp.MustCompile(`r[0-9]`).FindAllString(text, -1)); got != shown {
			t.Fatalf("%d of %d rows are shown, want %d:\n%s", got, have, shown, text)
		}
		rest := fmt.Sprintf("… %d more;", have-shown)
		if strings.Contains(text, rest) != (have > shown) || strings.Count(text, "more") > 1 {
			t.Fatalf("%d of %d rows, want %q:\n%s", shown, have, rest, text)
		}
	})
}

func TestColumnsAreAlignedWithOneUnitEach(t *testing.T) {
	rows := [][]report.Value{
		{report.Text("a"), report.Number(1500.0), report.Number(.5), report.GPUs(0b1011), report.Value{}},
		{
			report.Text("longer"), report.Number(2.5e6), report.Number(math.Inf(1)), report.GPUs(1),
			report.Value{},
		},
	}
	tab := report.Table{Rows: slices.Values(rows), Columns: []report.Column{
		{Key: "id", Head: "id", Left: true, Max: 4},
		{Key: "energy_j", Head: "energy", Unit: report.Joules},
		{Key: "saving", Head: "saving", Unit: report.Fraction},
		{Key: "gpus", Head: "GPUs"},
		{Key: "empty", Head: "empty", Optional: true},
	}}
	var text, asJSON, asCSV bytes.Buffer
	if err := tab.WriteText(&text, nil); err != nil {
		t.Fatal(err)
	}
	if err := tab.WriteJSON(&asJSON); err != nil {
		t.Fatal(err)
	}
	if err := tab.WriteCSV(&asCSV); err != nil {
		t.Fatal(err)
	}
	check := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	}
	check(text.String(), `
id      energy  saving   GPUs
            kJ       %
a         1.50    50.0  0-1,3
lon…  2,500.00       –      0
`[1:])
	check(asJSON.String(), `
[
  {"id": "a", "energy_j": 1500, "saving": 0.5, "gpus": [0, 1, 3]},
  {"id": "longer", "energy_j": 2500000, "saving": null, "gpus": [0]}
]
`[1:])
	check(asCSV.String(), "id,energy_j,saving,gpus,empty\na,1500,0.5,0 1 3,\nlonger,2500000,,0,\n")
}

func TestATableWithoutRowsIsStillWellFormed(t *testing.T) {
	tab := report.Table{
		Rows: slices.Values([][]report.Value(nil)), Columns: []report.Column{{Key: "id", Head: "id"}},
	}
	var asJSON, asCSV bytes.Buffer
	if err := tab.WriteJSON(&asJSON); err != nil || asJSON.String() != "[]\n" {
		t.Errorf("%q, %v", asJSON.String(), err)
	}
	if err := tab.WriteCSV(&asCSV); err != nil || asCSV.String() != "id\n" {
		t.Errorf("%q, %v", asCSV.String(), err)
	}
}

func TestEveryValueReadsBackTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		number := rapid.Float64().Draw(t, "number")
		set := planner.GPUSet(rapid.Uint64().Draw(t, "set"))
		tab := report.Table{
			Rows: slices.Values([][]report.Value{
				{report.Text(text), report.Number(number), report.GPUs(set)},
			}),
			Columns: []report.Column{{Key: "text_" + text}, {Key: "number_" + text}, {Key: "set_" + text}},
		}
		var asJSON, asCSV bytes.Buffer
		if err := tab.WriteJSON(&asJSON); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(asJSON.String(), "\x1b\u202e\u200b\u0085") {
			t.Fatalf("control characters in %q", asJSON.String())
		}
		var back []map[string]any
		if err := json.Unmarshal(asJSON.Bytes(), &back); err != nil {
			t.Fatalf("%v in %s", err, asJSON.String())
		}
		finite := !math.IsNaN(number) && !math.IsInf(number, 0)
		got, isNumber := back[0]["number_"+text].(float64)
		list, _ := back[0]["set_"+text].([]any)
		if back[0]["text_"+text] != text || isNumber != finite || (finite && got != number) ||
			len(list) != set.Len() {
			t.Fatalf("%q, %v and %b became %v", text, number, set, back)
		}
		if err := tab.WriteCSV(&asCSV); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&asCSV).ReadAll()
		if err != nil || textfile.UnescapeFormula(rows[1][0]) != queue.Printable(text) {
			t.Fatalf("%q became %q, %v", text, rows, err)
		}
	})
}

// Whatever stands in cells: in Markdown each row has as many cells as the table has columns, and nothing in
// them is HTML, a link or emphasis.
func TestMarkdownCellsStayCells(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringOf(rapid.RuneFrom([]rune("ab|\\`*_[]()<>&!~#\x00\n\x1b é…"))), 1, 8).
			Draw(rt, "texts")
		table := report.NewTable([]report.Column{
			{Key: "n", Head: "n"}, {Key: "text", Head: "te|xt", Left: true},
		}, len(texts), func(i int) []report.Value { return []report.Value{report.Count(i), report.Text(texts[i])} })
		lines := strings.Split(strings.TrimSuffix(table.Text(&report.TextOptions{Rows: -1, Markup: report.Markdown}), "\n"), "\n")
		if len(lines) != len(texts)+3 { // heading, line, rows, an empty line
			rt.Fatalf("%d lines of %d texts: %q", len(lines), len(texts), lines)
		}
		for _, line := range lines[:len(lines)-1] {
			row, ok := strings.CutPrefix(line, report.MarkupRow)
			bare := regexp.MustCompile(`\\.|&(amp|lt|gt);`).ReplaceAllString(row, "")
			if !ok || strings.Count(bare, "|") != 3 || strings.ContainsAny(bare, "<>&*_[]`~!\x00\x1b") {
				rt.Fatalf("%q", line)
			}
		}
	})
}

// A table is as wide as the terminal if cutting texts makes it, and no number is cut.
// Whatever stands in cells: in LaTeX each row has as many cells as the table has columns, and cells have only
// characters that print themselves, and what the table writes for others.
func TestLaTeXCellsStayCells(t *testing.T) {
	printed := regexp.MustCompile(
		"^([^\\\\{}$&#%_~^<>|\"`\\[\\]*\\x00-\\x1f]" + `|\\[{}$&#%_]|\\[a-z]+\{\}|\{[][*]?\}|\{\\char34\}|\$[^$]+\$)*$`)
	rapid.Check(t, func(rt *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringOf(rapid.RuneFrom([]rune("ab|\\`'*_[]{}()<>&!?,-~#$%^\"\x00\n\r\x1b éδθ×…"))),
			1, 8).Draw(rt, "texts")
		table := report.NewTable([]report.Column{
			{Key: "n", Head: "n"}, {Key: "text", Head: "te&xt", Note: "%", Left: true},
		}, len(texts), func(i int) []report.Value { return []report.Value{report.Count(i), report.Text(texts[i])} })
		lines := strings.Split(strings.TrimSuffix(table.Text(&report.TextOptions{Rows: -1, Markup: report.LaTeX}), "\n"), "\n")
		if len(lines) != len(texts)+7 { // begin, line, heading, line; rows; line, end, an empty line
			rt.Fatalf("%d lines of %d texts: %q", len(lines), len(texts), lines)
		}
		for _, line := range slices.Concat(lines[2:3], lines[4:4+len(texts)]) {
			row, ok := strings.CutPrefix(line, report.MarkupRow)
			row, ended := strings.CutSuffix(row, ` \\`)
			cells := strings.Split(row, " & ")
			if !ok || !ended || len(cells) != 2 {
				rt.Fatalf("%q", line)
			}
			for _, cell := range cells {
				if !printed.MatchString(cell) || regexp.MustCompile("--|''|,,|[!?]`").MatchString(cell) {
					rt.Fatalf("%q", cell)
				}
			}
		}
	})
}

func TestATableFitsTheTerminal(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-z ]{0,60}`), 1, 6).Draw(rt, "words")
		width := rapid.IntRange(1, 120).Draw(rt, "width")
		table := report.NewTable([]report.Column{
			{Head: "name", Left: true}, {Head: "count"}, {Head: "why", Left: true},
		}, len(words), func(i int) []report.Value {
			return []report.Value{
				report.Text("n" + words[i]), report.Count(123456), report.Text("w" + words[len(words)-1-i]),
			}
		})
		for line := range strings.Lines(table.Text(&report.TextOptions{Rows: -1, Width: width})) {
			const least = 12 + 2 + 7 + 2 + 12
			if got := utf8.RuneCountInString(line) - 1; got > max(width, least) {
				rt.Fatalf("%d columns of %d: %q", got, width, line)
			}
			if !strings.HasPrefix(line, "name") && !strings.Contains(line, "123,456") {
				rt.Fatalf("a number was cut: %q", line)
			}
		}
	})
}
