package web

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
)

// maxPlottedMems is how many memory clocks a picture of a fit has lines for.
const maxPlottedMems = 3

type fitQuantity struct {
	name  string
	curve func(p *epdapi.Point) (value, low, high float64)
	run   func(p *epdapi.FitPoint) (float64, bool)
	scale func(most float64) (factor float64, unit string)
}

// fitQuantities returns those of a fit, each with a chart of its own.
func fitQuantities() []fitQuantity {
	none := math.NaN()
	return []fitQuantity{
		{
			"time", func(p *epdapi.Point) (value, low, high float64) { return p.TimeS, p.LowerS, p.UpperS },
			func(p *epdapi.FitPoint) (float64, bool) { return p.TimeS.Get() },
			unitChooser([]displayUnit{{3 * 3600, 3600, "h"}, {1200, 60, "min"}, {0, 1, "s"}}),
		},
		{
			"power", func(p *epdapi.Point) (value, low, high float64) { return p.PowerW, none, none },
			func(p *epdapi.FitPoint) (float64, bool) { return p.PowerW.Get() },
			unitChooser([]displayUnit{{0, 1, "W"}}),
		},
		{
			"energy", func(p *epdapi.Point) (value, low, high float64) { return p.EnergyJ, none, none },
			func(p *epdapi.FitPoint) (float64, bool) { return p.EnergyJ.Get() },
			unitChooser([]displayUnit{{2e6, 1e6, "MJ"}, {2e3, 1e3, "kJ"}, {0, 1, "J"}}),
		},
	}
}

// displayUnit is what values from a least one on are shown in.
type displayUnit struct {
	from, factor float64
	name         string
}

// unitChooser chooses among units, the largest first, by the largest value.
func unitChooser(units []displayUnit) func(most float64) (factor float64, name string) {
	return func(most float64) (factor float64, name string) {
		for _, u := range units {
			if most >= u.from {
				return u.factor, u.name
			}
		}
		return 1, ""
	}
}

// fitParts returns the picture of a fit with its numbers, or why there is none.
func fitParts(fit *epdapi.ModelFit) []any {
	mems := memClocksOf(fit)
	if len(mems) == 0 {
		return []any{page.Text("There is no picture yet: no run has ended and no model is in use.")}
	}
	all := fitQuantities()
	charts := make([]report.Chart, len(all))
	for i := range all {
		charts[i] = all[i].chart(fit, mems)
	}
	title := "Time, power and energy of " + fit.Workload + " on " + fit.GPUModel + " over the core clock"
	caption := "Dots are runs, one GPU each; hollow ones aren't part of a fit."
	if fit.Model != nil {
		caption += " Lines are the model in use. The band is where it expects run times to lie."
	}
	switch fit.Clocks {
	case epdapi.ClocksFromProfile:
		caption += " Clocks are those of the GPU model's profile: no GPU has told its own yet."
	case epdapi.ClocksFromModel:
		caption += " Only the default clocks are known: no GPU of this model has told its clocks."
	}
	return []any{&page.Figure{
		ID: "fit-picture", Caption: caption, SVG: report.InlineCharts("fitted", title, charts),
		Numbers: curveTable(fit, mems),
	}}
}

// memClocksOf returns the memory clocks of a picture: the default one, and those that most
// runs had.
func memClocksOf(fit *epdapi.ModelFit) []dvfsmodel.MHz {
	runs := make(map[dvfsmodel.MHz]int)
	for i := range fit.Curve {
		runs[fit.Curve[i].Mem] += 0
	}
	for i := range fit.Points {
		runs[nearestMem(fit, fit.Points[i].Mem)]++
	}
	var mems []dvfsmodel.MHz
	for mem, n := range runs {
		if n > 0 || mem == fit.BaseMem {
			mems = append(mems, mem)
		}
	}
	slices.SortFunc(mems, func(a, b dvfsmodel.MHz) int {
		return cmp.Or(cmp.Compare(runs[b], runs[a]), cmp.Compare(b, a))
	})
	mems = mems[:min(len(mems), maxPlottedMems)]
	slices.SortFunc(mems, func(a, b dvfsmodel.MHz) int { return cmp.Compare(b, a) })
	return mems
}

// nearestMem returns the memory clock of the curve that is next to a measured one; the
// measured one itself where there is no curve.
func nearestMem(fit *epdapi.ModelFit, mem dvfsmodel.MHz) dvfsmodel.MHz {
	best := mem
	off := math.Inf(1)
	for i := range fit.Curve {
		if d := math.Abs(float64(fit.Curve[i].Mem - mem)); d < off {
			best, off = fit.Curve[i].Mem, d
		}
	}
	return best
}

// chart returns the picture of one quantity: for each memory clock the curve and the
// runs, in one colour. All charts have the same lines, so that one legend is
// enough.
func (q *fitQuantity) chart(fit *epdapi.ModelFit, mems []dvfsmodel.MHz) report.Chart {
	factor, name := q.scale(q.largest(fit))
	c := report.Chart{Title: q.name, X: "core clock, MHz", Y: q.name + ", " + name}
	for i, mem := range mems {
		at := ""
		if len(mems) > 1 {
			at = ", memory at " + mhzText(mem)
		}
		if len(fit.Curve) > 0 {
			c.Lines = append(c.Lines,
				q.addCurve(fit, mem, factor, report.Series{Name: "model" + at, Color: i + 1}))
		}
		for _, used := range []bool{true, false} {
			dots := report.Series{Name: "runs" + at, Color: i + 1, Mark: report.Dots}
			if !used {
				dots.Name, dots.Mark = "runs outside of fits"+at, report.Hollow
			}
			if slices.ContainsFunc(fit.Points,
				func(p epdapi.FitPoint) bool { return p.Used == used && nearestMem(fit, p.Mem) == mem }) {
				c.Lines = append(c.Lines, q.addRuns(fit, mem, factor, used, dots))
			}
		}
	}
	return c
}

func (q *fitQuantity) largest(fit *epdapi.ModelFit) float64 {
	most := 0.0
	for i := range fit.Curve {
		value, _, _ := q.curve(&fit.Curve[i])
		most = max(most, value)
	}
	for i := range fit.Points {
		if v, ok := q.run(&fit.Points[i]); ok {
			most = max(most, v)
		}
	}
	return most
}

// addCurve adds the model's curve at a memory clock.
func (q *fitQuantity) addCurve(
	fit *epdapi.ModelFit, mem dvfsmodel.MHz, factor float64, s report.Series,
) report.Series {
	banded := false
	for i := range fit.Curve {
		p := &fit.Curve[i]
		if p.Mem != mem {
			continue
		}
		value, low, high := q.curve(p)
		s.X, s.Y = append(s.X, float64(p.Core)), append(s.Y, value/factor)
		s.Low, s.High = append(s.Low, low/factor), append(s.High, high/factor)
		banded = banded || high > low
	}
	if !banded {
		s.Low, s.High = nil, nil
	}
	return s
}

// addRuns adds the runs at a memory clock.
func (q *fitQuantity) addRuns(
	fit *epdapi.ModelFit, mem dvfsmodel.MHz, factor float64, used bool, s report.Series,
) report.Series {
	for i := range fit.Points {
		p := &fit.Points[i]
		v, ok := q.run(p)
		if p.Used != used || !ok || nearestMem(fit, p.Mem) != mem {
			continue
		}
		s.X, s.Y = append(s.X, float64(p.Core)), append(s.Y, v/factor)
		note := "job " + strconv.FormatInt(p.JobID, 10) + ", " + p.Words()
		if !used {
			note += ": " + p.Why
		}
		s.Notes = append(s.Notes, note)
	}
	return s
}

// curveTable returns the model's curve in numbers.
func curveTable(fit *epdapi.ModelFit, mems []dvfsmodel.MHz) *page.Table {
	t := &page.Table{
		Caption: "The model's curve, of one GPU",
		Columns: []page.Column{
			{Head: "Core clock", Unit: "MHz", Number: true},
			{Head: "Memory clock", Unit: "MHz", Number: true},
			{Head: "Time", Number: true},
			{Head: "At least", Number: true},
			{Head: "At most", Number: true},
			{Head: "Power", Number: true},
			{Head: "Energy", Number: true},
		},
		Empty: "no model is in use",
	}
	for i := range fit.Curve {
		p := &fit.Curve[i]
		if slices.Contains(mems, p.Mem) {
			t.Rows = append(t.Rows, page.Cells(fmt.Sprintf("%.0f", p.Core), fmt.Sprintf("%.0f", p.Mem),
				report.FormatSeconds(p.TimeS),
				report.FormatSeconds(p.LowerS), report.FormatSeconds(p.UpperS), wattsText(p.PowerW),
				joulesText(p.EnergyJ)))
		}
	}
	return t
}
