package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/report"
)

// paths returns the lines of a picture of charts, by their tooltips, as points.
func paths(t *testing.T, svg []byte) map[string][][2]float64 {
	t.Helper()
	found := make(map[string][][2]float64)
	dec := xml.NewDecoder(bytes.NewReader(svg))
	d, title := "", false
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			title = e.Name.Local == "title"
			for _, a := range e.Attr {
				if a.Name.Local == "d" {
					d = a.Value
				}
			}
		case xml.CharData:
			if title {
				found[string(e)], title = points(t, d), false
			}
		}
	}
}

func points(t *testing.T, d string) [][2]float64 {
	t.Helper()
	pairs := strings.FieldsFunc(d, func(r rune) bool { return r == 'M' || r == 'L' })
	all := make([][2]float64, 0, len(pairs))
	for _, pair := range pairs {
		x, y, _ := strings.Cut(pair, " ")
		px, err := strconv.ParseFloat(x, 64)
		if err != nil {
			t.Fatal(err)
		}
		py, err := strconv.ParseFloat(y, 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, [2]float64{px, py})
	}
	return all
}

func TestALineOfAChartGoesUpWithItsValuesAndSkipsWhatIsMissing(t *testing.T) {
	chart := report.Chart{Title: "Power saved", X: "load", Y: "%", Lines: []report.Series{
		{Name: "a<b", X: []float64{0, 0.5, 1, 1.3}, Y: []float64{-5, 0, math.NaN(), 15}},
	}}
	var out bytes.Buffer
	if err := report.WriteCharts(&out, "default & others", []report.Chart{chart}); err != nil {
		t.Fatal(err)
	}
	line := paths(t, out.Bytes())["a<b"]
	if len(line) != 3 {
		t.Fatalf("points %v, want three", line)
	}
	for i := 1; i < len(line); i++ {
		if line[i][0] <= line[i-1][0] || line[i][1] >= line[i-1][1] {
			t.Errorf("points %v, want each to the right of and above the last", line)
		}
	}
	if got := (line[1][1] - line[0][1]) / (line[2][1] - line[1][1]); math.Abs(got-1.0/3) > 0.01 {
		t.Errorf("5 and 15 per cent are drawn as 1 to %.3f, want 1 to 3", 1/got)
	}
	for _, want := range []string{
		"Power saved", ">load<", ">%<", ">-5<", ">1.3<",
		"prefers-color-scheme:dark",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the picture has no %q", want)
		}
	}
}

func TestChartsOfNothingAndOfOneValueCanBeDrawn(t *testing.T) {
	for _, lines := range [][]report.Series{
		nil,
		{{Name: "none"}},
		{{Name: "one", X: []float64{1}, Y: []float64{7}}},
		{{Name: "missing", X: []float64{1, 2}, Y: []float64{math.NaN(), math.Inf(1)}}},
	} {
		var out bytes.Buffer
		if err := report.WriteCharts(&out, "t", []report.Chart{{Lines: lines}}); err != nil {
			t.Fatal(err)
		}
		paths(t, out.Bytes())
		if strings.Contains(out.String(), "NaN") || strings.Contains(out.String(), "Inf") {
			t.Errorf("%v is drawn with lengths that aren't finite", lines)
		}
	}
}

func TestManyLinesOfAChartLookDifferent(t *testing.T) {
	lines := make([]report.Series, 25)
	for i := range lines {
		lines[i] = report.Series{
			Name: "policy " + strconv.Itoa(i), X: []float64{0, 1}, Y: []float64{0, float64(i)},
		}
	}
	var out bytes.Buffer
	if err := report.WriteCharts(&out, "t", []report.Chart{{Lines: lines}}); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for line := range strings.Lines(out.String()) {
		if look, _, ok := strings.Cut(line, ` d="`); ok && strings.Contains(line, "<title>") {
			if seen[look] {
				t.Errorf("two lines look like %s", look)
			}
			seen[look] = true
		}
	}
	if len(seen) != len(lines) {
		t.Errorf("%d looks, want %d", len(seen), len(lines))
	}
}
