package planreport

import (
	"html/template"
	"strings"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/planner/powerbudget"
)

// How many steps of power a picture has at most, on a wide screen and on a narrow one.
const (
	maxTimelineSteps = 600
	maxNarrowSteps   = 250
)

// energyOverTime is the power of a plan by cause, and of the same jobs at
// default clocks where that plan is known.
type energyOverTime struct {
	plan, base *powerTimeline // base: nil where it isn't known
	end        float64
	turnOn     float64 // J
	budget     powerbudget.Budget
}

func newEnergyOverTime(r *Result) *energyOverTime {
	e := &energyOverTime{
		plan: newPowerTimeline(r.Problem, r.Plan), turnOn: float64(r.Plan.Ledger.TurnOn), budget: r.Budget,
	}
	e.end = e.plan.end()
	if r.Reference != nil {
		e.base = newPowerTimeline(r.Problem, r.Reference)
		e.end = max(e.end, e.base.end())
	}
	if e.end <= 0 {
		e.end = 1
	}
	return e
}

// taken is the energy of a course up to each of some times, all causes together.
func (c *powerTimeline) totalEnergyUntil(times []float64) []float64 {
	byCause, on := c.energyUntil(times)
	sums := make([]float64, len(times))
	for i := range sums {
		sums[i] = byCause[i].total() + on[i]
	}
	return sums
}

// presentCauses returns the causes that take anything.
func (e *energyOverTime) presentCauses() []powerCause {
	all, _ := e.plan.energyUntil([]float64{e.plan.end()})
	var found []powerCause
	for k := range causeCount {
		if all[0][k] > 0 {
			found = append(found, k)
		}
	}
	return found
}

const (
	timelineWidth = 1160
	timelinePlot  = 240 // height
	timelineTop   = 40
)

// timeline is a plot over time under a legend.
type timeline struct {
	*report.Canvas
	report.Frame
	keys     [][2]string // markup of each key from its left upper corner on, and its name
	keysTall float64
}

// newTimeline returns the plot of a plan that ends at a time, under these keys.
func newTimeline(c *report.Canvas, end float64, y report.Axis, keys [][2]string) *timeline {
	t := &timeline{Canvas: c, keys: keys}
	if c.Narrow() {
		t.keysTall = 20 * float64(len(keys)-1)
	}
	t.Frame = report.Frame{
		Left: report.LeftMargin, Right: c.Either(timelineWidth, report.NarrowWidth) - report.RightMargin,
		Upper: timelineTop + t.keysTall, Lower: timelineTop + t.keysTall + timelinePlot,
	}
	t.X, t.Y = report.TimeAxis(end, t.Right-t.Left), y
	return t
}

// open begins the picture with the legend and the axes.
func (t *timeline) open(title, desc string) {
	t.Open(report.PictureClass, t.Right+report.RightMargin, t.Lower+report.FootMargin, title, desc)
	x, y := t.Left, 8.0
	for _, key := range t.keys {
		t.Printf(`<g transform="translate(%s %s)">%s</g>`, report.Px(x), report.Px(y), key[0])
		t.Text(x+34, y+12, "k", key[1])
		if x += 58 + 7*float64(len(key[1])); t.Narrow() {
			x, y = t.Left, y+20
		}
	}
	t.Axes(&t.Frame)
}

// lineKey returns the key of a line.
func lineKey(class string) string { return `<path class="` + class + `" d="M0 8h26"/>` }

// drawPower draws what power goes into, piled up.
func (e *energyOverTime) drawPower(id string) template.HTML {
	return report.DrawForScreens(id, e.drawPowerOn)
}

func (e *energyOverTime) drawPowerOn(c *report.Canvas) template.HTML {
	plan, causes := e.plan.downsample(int(c.Either(maxTimelineSteps, maxNarrowSteps))), e.presentCauses()
	highest := plan.peak()
	var base *powerTimeline
	if e.base != nil {
		base = e.base.downsample(int(c.Either(maxTimelineSteps, maxNarrowSteps)))
		highest = max(highest, base.peak())
	}
	steps := e.budgetSteps()
	for _, step := range steps {
		highest = max(highest, float64(step.Watts))
	}
	scale := report.CommonScale(report.Watts, report.SignificantDigits, highest)
	names, keys := make([]string, len(causes)), make([][2]string, len(causes))
	for i, k := range causes {
		names[i] = causeStyles[k].name
		keys[i] = [2]string{
			`<rect class="` + causeStyles[k].class + `" x="6" y="2" width="14" height="12"/>`, names[i],
		}
	}
	if base != nil {
		keys = append(keys, [2]string{lineKey("ln dash base"), "all of it at default clocks"})
	}
	if len(e.budget) > 0 {
		keys = append(keys, [2]string{lineKey("ln c2"), "budget"})
	}
	t := newTimeline(c, e.end, report.UnitAxis("power", scale, highest, 6), keys)
	t.open("Power over time", "Power piled up by what it goes into: "+strings.Join(names, ", ")+
		". At most "+scale.FormatWithUnit(plan.peak())+".")
	f := &t.Frame
	for i := range causes {
		c.Printf(`<path class="%s" d="%s"><title>%s</title></path>`+"\n", causeStyles[causes[i]].class,
			areaPath(f, plan, causes[:i], causes[:i+1]), causeStyles[causes[i]].name)
	}
	if base != nil {
		c.Printf(`<path class="ln dash base" d="%s"><title>default clocks</title></path>`+"\n",
			stepPath(f, base, nil, true))
	}
	if len(e.budget) > 0 {
		c.Printf(`<path class="ln c2" d="%s"><title>budget</title></path>`+"\n", budgetPath(f, steps))
	}
	return c.Close()
}

// budgetSteps returns the budget while the plan lasts.
func (e *energyOverTime) budgetSteps() (steps powerbudget.Budget) {
	if len(e.budget) == 0 {
		return nil
	}
	steps = powerbudget.Budget{{Watts: e.budget.At(0)}}
	for _, step := range e.budget {
		if step.From > 0 && step.From < e.end {
			steps = append(steps, step)
		}
	}
	return steps
}

// budgetPath returns the line of a budget over the whole plot.
func budgetPath(f *report.Frame, steps powerbudget.Budget) string {
	var b strings.Builder
	for i, step := range steps {
		x, y := report.Px(f.Px(step.From)), report.Px(f.Py(float64(step.Watts)))
		if i == 0 {
			b.WriteString("M" + x + " " + y)
		} else {
			b.WriteString("H" + x + "V" + y)
		}
	}
	return b.String() + "H" + report.Px(f.Right)
}

// areaPath returns the area between the sums of some causes and of more.
func areaPath(f *report.Frame, c *powerTimeline, below, upTo []powerCause) string {
	if len(below) == 0 {
		return stepPath(f, c, upTo, true) + "z"
	}
	return stepPath(f, c, upTo, true) + strings.Replace(stepPath(f, c, below, false), "M", "L", 1) + "z"
}

// stepPath returns the sum of causes, of all where none is named, from left to right or
// back.
func stepPath(f *report.Frame, c *powerTimeline, some []powerCause, forward bool) string {
	var b strings.Builder
	sum := func(i int) float64 {
		if some == nil && forward {
			return c.power[i].total()
		}
		v := 0.0
		for _, k := range some {
			v += max(0, c.power[i][k])
		}
		return v
	}
	n := len(c.at)
	if n == 0 {
		return "M" + report.Px(f.Left) + " " + report.Px(f.Lower)
	}
	if forward {
		b.WriteString("M" + report.Px(f.Px(c.at[0])) + " " + report.Px(f.Lower))
		for i := range n {
			b.WriteString("H" + report.Px(f.Px(c.at[i])) + "V" + report.Px(f.Py(sum(i))))
		}
		return b.String()
	}
	b.WriteString("M" + report.Px(f.Px(c.at[n-1])) + " " + report.Px(f.Py(sum(n-1))))
	for i := n - 1; i > 0; i-- {
		b.WriteString("H" + report.Px(f.Px(c.at[i])) + "V" + report.Px(f.Py(sum(i-1))))
	}
	return b.String() + "H" + report.Px(f.Px(c.at[0])) + "V" + report.Px(f.Lower)
}

// drawEnergy draws the energy taken so far.
func (e *energyOverTime) drawEnergy(id string) template.HTML {
	return report.DrawForScreens(id, e.drawEnergyOn)
}

func (e *energyOverTime) drawEnergyOn(c *report.Canvas) template.HTML {
	times := evenTimes(e.end, maxTimelineSteps/2)
	plan := e.plan.totalEnergyUntil(times)
	highest := plan[len(plan)-1]
	lines := []struct {
		name, class string
		sums        []float64
	}{{"this plan", "ln c1", plan}}
	desc := "Energy taken so far"
	if e.base != nil {
		base := e.base.totalEnergyUntil(times)
		highest = max(highest, base[len(base)-1])
		lines = append(lines, lines[0])
		lines[1].name, lines[1].class, lines[1].sums = "default clocks, first come, first served",
			"ln dash c2", base
		desc += ", by this plan and at default clocks"
	}
	scale := report.CommonScale(report.Joules, report.SignificantDigits, highest)
	keys := make([][2]string, len(lines))
	for i, line := range lines {
		keys[i] = [2]string{lineKey(line.class), line.name}
	}
	f := newTimeline(c, e.end, report.UnitAxis("energy so far", scale, highest, 6), keys)
	f.open("Energy over time", desc+". In the end "+scale.FormatWithUnit(plan[len(plan)-1])+".")
	for _, line := range lines {
		s := report.Series{X: times, Y: line.sums}
		c.Printf(`<path class="%s" d="%s"><title>%s</title></path>`+"\n", line.class,
			report.LinePath(&s, f.Px, f.Py), line.name)
	}
	return c.Close()
}

// tableSpans is how many rows the table beside the pictures has.
const tableSpans = 12

// table returns the numbers of both pictures: means over equal spans, whose last
// row has the totals.
func (e *energyOverTime) table() *page.Table {
	times := evenTimes(e.end, tableSpans)
	byCause, on := e.plan.energyUntil(times)
	causes := e.presentCauses()
	columns := []report.Column{{Head: "until", Unit: report.Seconds}}
	for _, k := range causes {
		columns = append(columns, report.Column{Head: causeStyles[k].name, Note: "", Unit: report.Watts, Group: 1})
	}
	columns = append(columns, report.Column{Head: "power", Unit: report.Watts, Group: 1},
		report.Column{Head: "energy so far", Unit: report.Joules, Group: 2, Digits: 5})
	var base []float64
	if e.base != nil {
		columns = append(columns, report.Column{
			Head: "at default clocks", Unit: report.Joules, Group: 2, Digits: 5,
		})
		base = e.base.totalEnergyUntil(times)
	}
	t := report.NewTable(columns, tableSpans, func(i int) []report.Value {
		row := []report.Value{report.Number(times[i+1])}
		took, total := times[i+1]-times[i], 0.0
		for _, k := range causes {
			power := (byCause[i+1][k] - byCause[i][k]) / took
			total += power
			row = append(row, report.Number(power))
		}
		row = append(row, report.Number(total), report.Number(byCause[i+1].total()+on[i+1]))
		if base != nil {
			row = append(row, report.Number(base[i+1]))
		}
		return row
	})
	note := "Powers are means over the time since the row before."
	if e.turnOn > 0 {
		note += " Energy includes switching nodes on, which is in no power."
	}
	return t.Page("Power and energy over time", note, -1)
}

func (e *energyOverTime) figures() []any {
	caption := "Power over time, piled up by what it goes into."
	if e.base != nil {
		caption += " The dashed line is the power of the same jobs at default clocks, first " +
			"come, first served."
	}
	if len(e.budget) > 0 {
		caption += " The solid line is the budget, which the plan never exceeds."
	}
	return []any{
		&page.Figure{ID: "figure-power", Caption: caption, SVG: e.drawPower("power"), Numbers: e.table()},
		&page.Figure{ID: "figure-energy", Caption: "Energy taken so far, over time.", SVG: e.drawEnergy("energy")},
	}
}
