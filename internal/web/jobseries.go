package web

import (
	"math"
	"strconv"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// maxSeriesRuns is how many runs have pictures.
const maxSeriesRuns = 4

// seriesParts returns what runs did to their GPUs over time.
func seriesParts(v *epdapi.JobView, s *epdapi.JobSeries, now time.Time) []any {
	var parts []any
	for i := range s.Runs[:min(len(s.Runs), maxSeriesRuns)] {
		parts = append(parts, runParts(v, &s.Runs[i], i, now))
	}
	if more := len(s.Runs) - maxSeriesRuns; more > 0 {
		parts = append(parts,
			page.Text("and "+report.Plural(more, "further run")+", see the time series as JSON."))
	}
	return parts
}

// runParts returns the pictures of one run.
func runParts(v *epdapi.JobView, run *epdapi.RunSeries, n int, now time.Time) *page.Group {
	g := &page.Group{Heading: "On " + orDash(run.Node) + ", " + report.Plural(run.GPUs, "GPU")}
	if run.GPUModel != "" {
		g.Heading += " (" + run.GPUModel + ")"
	}
	if run.Live {
		g.Parts = append(g.Parts, page.Text("The run lasts. Its node told of it "+ago(run.At, now)+"."))
	}
	if run.Missing != "" {
		g.Parts = append(g.Parts, &page.Notice{
			Kind: page.Info, Text: "There is no power and no clock over time: " + run.Missing,
		})
	}
	axis := axisOf(run)
	for _, c := range []struct {
		id, caption string
		chart       *report.Chart
	}{
		{
			"power", "Power of one GPU: the mean, and between the least and the most that was read of any.",
			powerChart(v, run, axis),
		},
		{
			"core", "Core clock: the mean, and between the least and the most that was read of any GPU.",
			coreChart(run, axis),
		},
		{
			"use", "Utilisation: the part of the time in which a GPU was at work, mean over the GPUs.",
			useChart(run, axis),
		},
	} {
		if c.chart != nil {
			g.Parts = append(g.Parts, report.ChartFigure("run"+strconv.Itoa(n)+"-"+c.id, c.caption, c.chart))
		}
	}
	return g
}

// timeAxis is in what time is told.
type timeAxis struct {
	unit string
	of   float64 // seconds
}

// axisOf suits the length of a run.
func axisOf(run *epdapi.RunSeries) timeAxis {
	length := max(run.Power.IntervalS*float64(len(run.Power.Mean)),
		run.Utilisation.IntervalS*float64(len(run.Utilisation.Values)))
	switch {
	case length > 48*3600:
		return timeAxis{"days", 24 * 3600}
	case length > 3*3600:
		return timeAxis{"h", 3600}
	case length > 180:
		return timeAxis{"min", 60}
	}
	return timeAxis{"s", 1}
}

func (a timeAxis) title() string { return "time since the run began, " + a.unit }

// times returns the middles of so many intervals.
func (a timeAxis) times(n int, interval float64) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = (float64(i) + 0.5) * interval / a.of
	}
	return xs
}

// plotValues are numbers for a picture: what isn't known leaves a gap.
func plotValues(all []live.Number, scale float64) []float64 {
	ys := make([]float64, len(all))
	for i, n := range all {
		ys[i] = math.NaN()
		if v, ok := n.Get(); ok {
			ys[i] = v * scale
		}
	}
	return ys
}

// bandLine returns a quantity over time with its spread.
func bandLine(name string, b *epdapi.Band, a timeAxis) report.Series {
	return report.Series{
		Name: name, X: a.times(len(b.Mean), b.IntervalS), Y: plotValues(b.Mean, 1), Low: plotValues(b.Low, 1),
		High: plotValues(b.High, 1),
	}
}

// constantLine returns a value that stays as long as a line lasts.
func constantLine(name string, value float64, like *report.Series, color int) report.Series {
	last := len(like.X) - 1
	return report.Series{
		Name: name, X: []float64{like.X[0], like.X[last]}, Y: []float64{value, value}, Mark: report.Dashed,
		Color: color,
	}
}

// powerChart returns the power of a GPU beside what was predicted; nil where it wasn't
// read twice.
func powerChart(v *epdapi.JobView, run *epdapi.RunSeries, a timeAxis) *report.Chart {
	if len(run.Power.Mean) < 2 {
		return nil
	}
	c := &report.Chart{
		Title: "Power", X: a.title(), Y: "W of one GPU", Zero: true,
		Lines: []report.Series{bandLine("measured", &run.Power, a)},
	}
	d := decisionOfRun(v, record.RunKey{Node: run.Node, RunID: run.RunID})
	if d == nil {
		return c
	}
	if w, ok := d.PowerW.Value.Get(); ok {
		c.Lines = append(c.Lines, constantLine("predicted: "+wattsText(w), w, &c.Lines[0], 2))
	}
	if w, ok := defaultPower(d); ok && d.Setting.Core > 0 {
		c.Lines = append(c.Lines, constantLine("at default clocks: "+wattsText(w), w, &c.Lines[0], 7))
	}
	return c
}

// defaultPower returns what a GPU was predicted to draw at default clocks.
func defaultPower(d *epdapi.Decision) (float64, bool) {
	one, ok := d.PowerW.Value.Get()
	if d.Default == nil || d.Chosen == nil || !ok || d.Chosen.PowerW <= 0 {
		return 0, false
	}
	return one * d.Default.PowerW / d.Chosen.PowerW, true
}

// coreChart returns the core clock beside the one that was locked; nil where it wasn't
// read twice.
func coreChart(run *epdapi.RunSeries, a timeAxis) *report.Chart {
	if len(run.Core.Mean) < 2 {
		return nil
	}
	c := &report.Chart{
		Title: "Core clock", X: a.title(), Y: "MHz", Zero: true,
		Lines: []report.Series{bandLine("read", &run.Core, a)},
	}
	if core := run.Setting.Core; core > 0 {
		c.Lines = append(c.Lines, constantLine("locked: "+mhzText(core), float64(core), &c.Lines[0], 2))
	}
	return c
}

// useChart is utilisation; nil where it wasn't read twice.
func useChart(run *epdapi.RunSeries, a timeAxis) *report.Chart {
	u := &run.Utilisation
	if len(u.Values) < 2 { // nothing over time
		return nil
	}
	const percent = 100
	return &report.Chart{
		Title: "Utilisation", X: a.title(), Y: "% of the time", Zero: true,
		Lines: []report.Series{{
			Name: "measured", X: a.times(len(u.Values), u.IntervalS),
			Y: plotValues(u.Values, percent), Color: 3,
		}},
	}
}

// decisionOfRun returns the decision that a run was under, nil without one.
func decisionOfRun(v *epdapi.JobView, run record.RunKey) *epdapi.Decision {
	for i := range v.Decisions {
		if run.RunID != "" && v.Decisions[i].Key() == run {
			return &v.Decisions[i]
		}
	}
	return nil
}
