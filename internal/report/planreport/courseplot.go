package planreport

import (
	"html/template"
	"strings"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
)

// maxTimelineSteps is how many steps of power a picture has at most.
const maxTimelineSteps = 600

// energyOverTime is the power of a plan by cause, and of the same jobs at
// default clocks where that plan is known.
type energyOverTime struct {
	plan, base *powerTimeline // base: nil where it isn't known
	end        float64
	turnOn     float64 // J
}

func newEnergyOverTime(r *Result) *energyOverTime {
	e := &energyOverTime{plan: newPowerTimeline(r.Problem, r.Plan), turnOn: float64(r.Plan.Ledger.TurnOn)}
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
	timelineWidth  = 1160
	timelineHeight = 330
	timelineTop    = 40
)

// timelineFrame returns the plot under a legend.
func timelineFrame(end float64, y report.Axis) report.Frame {
	f := report.Frame{
		Left: report.LeftMargin, Right: timelineWidth - report.RightMargin, Upper: timelineTop,
		Lower: timelineHeight - report.FootMargin,
	}
	f.X, f.Y = report.TimeAxis(end, f.Right-f.Left), y
	return f
}

// drawPower draws what power goes into, piled up.
func (e *energyOverTime) drawPower(id string) template.HTML {
	c := report.NewCanvas(id)
	plan, causes := e.plan.downsample(maxTimelineSteps), e.presentCauses()
	highest := plan.peak()
	var base *powerTimeline
	if e.base != nil {
		base = e.base.downsample(maxTimelineSteps)
		highest = max(highest, base.peak())
	}
	scale := report.CommonScale(report.Watts, report.SignificantDigits, highest)
	f := timelineFrame(e.end, report.UnitAxis("power", scale, highest, 6))
	names := make([]string, len(causes))
	for i, k := range causes {
		names[i] = causeStyles[k].name
	}
	c.Open(report.PictureClass, timelineWidth, timelineHeight, "Power over time",
		"Power piled up by what it goes into: "+strings.Join(names, ", ")+
			". At most "+scale.With(plan.peak())+".")
	x := f.Left
	for _, k := range causes {
		c.Printf(`<rect class="%s" x="%s" y="10" width="14" height="12"/>`, causeStyles[k].class, report.Px(x))
		c.Text(x+20, 20, "k", causeStyles[k].name)
		x += 90
	}
	if base != nil {
		c.Printf(`<path class="ln dash base" d="M%s 16h26"/>`, report.Px(x))
		c.Text(x+34, 20, "k", "all of it at default clocks")
	}
	c.Axes(&f)
	for i := range causes {
		c.Printf(`<path class="%s" d="%s"><title>%s</title></path>`+"\n", causeStyles[causes[i]].class,
			areaPath(&f, plan, causes[:i], causes[:i+1]), causeStyles[causes[i]].name)
	}
	if base != nil {
		c.Printf(`<path class="ln dash base" d="%s"><title>default clocks</title></path>`+"\n",
			stepPath(&f, base, nil, true))
	}
	return c.Close()
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
	c := report.NewCanvas(id)
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
	f := timelineFrame(e.end, report.UnitAxis("energy so far", scale, highest, 6))
	c.Open(report.PictureClass, timelineWidth, timelineHeight, "Energy over time",
		desc+". In the end "+scale.With(plan[len(plan)-1])+".")
	for i, line := range lines {
		c.Printf(`<path class="%s" d="M%s 16h26"/>`, line.class, report.Px(f.Left+float64(i)*130))
		c.Text(f.Left+float64(i)*130+34, 20, "k", line.name)
	}
	c.Axes(&f)
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
	return []any{
		&page.Figure{ID: "figure-power", Caption: caption, SVG: e.drawPower("power"), Numbers: e.table()},
		&page.Figure{ID: "figure-energy", Caption: "Energy taken so far, over time.", SVG: e.drawEnergy("energy")},
	}
}
