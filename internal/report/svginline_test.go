package report_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/report"
)

func TestAnInlineChartHasLinesBandsAndDots(t *testing.T) {
	nan := math.NaN()
	x := []float64{1, 2, 3, 4, 5}
	picture := report.InlineCharts("fit", "A <fit>", []report.Chart{{
		Title: "time", X: "core clock, MHz", Y: "s",
		Lines: []report.Series{
			{
				Name: "model", X: x, Y: []float64{5, 4, 3, 2, 1}, Low: []float64{4, 3, nan, 1, 0},
				High: []float64{6, 5, nan, 3, 2},
			},
			{Name: "predicted", X: x, Y: []float64{1, 1, nan, 1, 1}, Mark: report.Dashed},
			{
				Name: "runs", X: x, Y: []float64{5, nan, 3, 2, math.Inf(1)}, Mark: report.Dots, Color: 1,
				Notes: []string{"job <7>"},
			},
			{Name: "others", X: x[:1], Y: []float64{7}, Mark: report.Hollow},
		},
	}})
	text := string(picture)
	wide, narrow, _ := strings.Cut(text, `<svg class="pic narrow" width="360"`)
	for want, times := range map[string]int{
		`<path class="a1" fill-opacity`: 2, // the band is broken once
		`<circle class="dot a1"`:        4, // three runs and the legend
		`<circle class="ln c4"`:         2, // one run and the legend
		`class="ln dash c2"`:            2,
		`<title>job &lt;7&gt;</title>`:  1,
		`id="fit-title"`:                1,
		`A &lt;fit&gt;`:                 1,
		`NaN`:                           0,
		`Inf`:                           0,
	} {
		for _, screen := range []string{wide, strings.ReplaceAll(narrow, "fit-narrow-", "fit-")} {
			if got := strings.Count(screen, want); got != times {
				t.Errorf("%q is there %d times, want %d:\n%s", want, got, times, screen)
			}
		}
	}
	in, err := xml.NewDecoder(strings.NewReader(text)), error(nil)
	for err == nil {
		_, err = in.Token()
	}
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
