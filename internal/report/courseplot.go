package report

import (
	"io"
	"strings"

	"github.com/epplan/epplan/internal/report/page"
)

// mostSteps is how many steps of power a picture has at most.
const mostSteps = 600

// energyOverTime is the power of a plan by cause, and of the same jobs at
// default clocks where that plan is known.
type energyOverTime struct {
	plan, base *course // base: nil where it isn't known
	end        float64
	turnOn     float64 // J
}

func newEnergyOverTime(r *Result) *energyOverTime {
	e := &energyOverTime{plan: newCourse(r.Problem, r.Plan), turnOn: float64(r.Plan.Ledger.TurnOn)}
	e.end = e.plan.end()
	if r.Reference != nil {
		e.base = newCourse(r.Problem, r.Reference)
		e.end = max(e.end, e.base.end())
	}
	if e.end <= 0 {
		e.end = 1
	}
	return e
}

// taken is the energy of a course up to each of some times, all causes together.
func (c *course) sums(times []float64) []float64 {
	byCause, on := c.taken(times)
	sums := make([]float64, len(times))
	for i := range sums {
		sums[i] = byCause[i].total() + on[i]
	}
	return sums
}

// present are the causes that take anything.
func (e *energyOverTime) present() []cause {
	all, _ := e.plan.taken([]float64{e.plan.end()})
	var found []cause
	for k := range causes {
		if all[0][k] > 0 {
			found = append(found, k)
		}
	}
	return found
}

const (
	courseWidth  = 1160
	courseHeight = 330
	courseLeft   = 84
	courseTop    = 40
	courseFoot   = 50
)

// courseFrame is the plot under a legend.
func courseFrame(end float64, y side) frame {
	f := frame{left: courseLeft, right: courseWidth - rightMargin, upper: courseTop, lower: courseHeight - courseFoot}
	f.x, f.y = timed(end, f.right-f.left), y
	return f
}

// drawPower draws what power goes into, piled up.
func (e *energyOverTime) drawPower(w io.Writer, id string) error {
	c := newCanvas(w, id)
	plan, causes := e.plan.coarse(mostSteps), e.present()
	highest := plan.peak()
	var base *course
	if e.base != nil {
		base = e.base.coarse(mostSteps)
		highest = max(highest, base.peak())
	}
	scale := CommonScale(Watts, significantDigits, highest)
	f := courseFrame(e.end, measured("power", scale, highest, 6))
	names := make([]string, len(causes))
	for i, k := range causes {
		names[i] = causeLooks[k].name
	}
	c.open(anyPicture, courseWidth, courseHeight, "Power over time",
		"Power piled up by what it goes into: "+strings.Join(names, ", ")+". At most "+scale.With(plan.peak())+".")
	x := f.left
	for _, k := range causes {
		c.printf(`<rect class="%s" x="%s" y="10" width="14" height="12"/>`, causeLooks[k].class, px(x))
		c.text(x+20, 20, "k", causeLooks[k].name)
		x += 90
	}
	if base != nil {
		c.printf(`<path class="ln dash base" d="M%s 16h26"/>`, px(x))
		c.text(x+34, 20, "k", "all of it at default clocks")
	}
	c.axes(&f)
	for i := range causes {
		c.printf(`<path class="%s" d="%s"><title>%s</title></path>`+"\n", causeLooks[causes[i]].class, pile(&f, plan, causes[:i], causes[:i+1]), causeLooks[causes[i]].name)
	}
	if base != nil {
		c.printf(`<path class="ln dash base" d="%s"><title>default clocks</title></path>`+"\n", stairs(&f, base, nil, true))
	}
	return c.close()
}

// pile is the area between the sums of some causes and of more.
func pile(f *frame, c *course, below, upTo []cause) string {
	if len(below) == 0 {
		return stairs(f, c, upTo, true) + "z"
	}
	return stairs(f, c, upTo, true) + strings.Replace(stairs(f, c, below, false), "M", "L", 1) + "z"
}

// stairs is the sum of causes, of all where none is named, from left to right or
// back.
func stairs(f *frame, c *course, some []cause, forward bool) string {
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
		return "M" + px(f.left) + " " + px(f.lower)
	}
	if forward {
		b.WriteString("M" + px(f.px(c.at[0])) + " " + px(f.lower))
		for i := range n {
			b.WriteString("H" + px(f.px(c.at[i])) + "V" + px(f.py(sum(i))))
		}
		return b.String()
	}
	b.WriteString("M" + px(f.px(c.at[n-1])) + " " + px(f.py(sum(n-1))))
	for i := n - 1; i > 0; i-- {
		b.WriteString("H" + px(f.px(c.at[i])) + "V" + px(f.py(sum(i-1))))
	}
	return b.String() + "H" + px(f.px(c.at[0])) + "V" + px(f.lower)
}

// drawEnergy draws the energy taken so far.
func (e *energyOverTime) drawEnergy(w io.Writer, id string) error {
	c := newCanvas(w, id)
	times := evenly(e.end, mostSteps/2)
	plan := e.plan.sums(times)
	highest := plan[len(plan)-1]
	lines := []struct {
		name, class string
		sums        []float64
	}{{"this plan", "ln c1", plan}}
	desc := "Energy taken so far"
	if e.base != nil {
		base := e.base.sums(times)
		highest = max(highest, base[len(base)-1])
		lines = append(lines, lines[0])
		lines[1].name, lines[1].class, lines[1].sums = "default clocks, first come, first served", "ln dash c2", base
		desc += ", by this plan and at default clocks"
	}
	scale := CommonScale(Joules, significantDigits, highest)
	f := courseFrame(e.end, measured("energy so far", scale, highest, 6))
	c.open(anyPicture, courseWidth, courseHeight, "Energy over time", desc+". In the end "+scale.With(plan[len(plan)-1])+".")
	for i, line := range lines {
		c.printf(`<path class="%s" d="M%s 16h26"/>`, line.class, px(f.left+float64(i)*130))
		c.text(f.left+float64(i)*130+34, 20, "k", line.name)
	}
	c.axes(&f)
	for _, line := range lines {
		s := Series{X: times, Y: line.sums}
		c.printf(`<path class="%s" d="%s"><title>%s</title></path>`+"\n", line.class, linePath(&s, f.px, f.py), line.name)
	}
	return c.close()
}

// spansInTable is how many rows the table beside the pictures has.
const spansInTable = 12

// table is the numbers of both pictures: means over equal spans, whose last
// row has the totals.
func (e *energyOverTime) table() *page.Table {
	times := evenly(e.end, spansInTable)
	byCause, on := e.plan.taken(times)
	causes := e.present()
	columns := []Column{{Head: "until", Unit: Seconds}}
	for _, k := range causes {
		columns = append(columns, Column{Head: causeLooks[k].name, Note: "", Unit: Watts, Group: 1})
	}
	columns = append(columns, Column{Head: "power", Unit: Watts, Group: 1}, Column{Head: "energy so far", Unit: Joules, Group: 2, Digits: 5})
	var base []float64
	if e.base != nil {
		columns = append(columns, Column{Head: "at default clocks", Unit: Joules, Group: 2, Digits: 5})
		base = e.base.sums(times)
	}
	t := &Table{Columns: columns, Len: spansInTable, Rows: func(yield func([]Value) bool) {
		for i := 1; i < len(times); i++ {
			row := []Value{Number(times[i])}
			took, total := times[i]-times[i-1], 0.0
			for _, k := range causes {
				power := (byCause[i][k] - byCause[i-1][k]) / took
				total += power
				row = append(row, Number(power))
			}
			row = append(row, Number(total), Number(byCause[i].total()+on[i]))
			if base != nil {
				row = append(row, Number(base[i]))
			}
			if !yield(row) {
				return
			}
		}
	}}
	note := "Powers are means over the time since the row before."
	if e.turnOn > 0 {
		note += " Energy includes switching nodes on, which is in no power."
	}
	return t.Page("Power and energy over time", note, -1)
}

// figures are the two pictures.
func (e *energyOverTime) figures() ([]any, error) {
	power, err := inline(func(w io.Writer) error { return e.drawPower(w, "power") })
	if err != nil {
		return nil, err
	}
	energy, err := inline(func(w io.Writer) error { return e.drawEnergy(w, "energy") })
	if err != nil {
		return nil, err
	}
	caption := "Power over time, piled up by what it goes into."
	if e.base != nil {
		caption += " The dashed line is the power of the same jobs at default clocks, first come, first served."
	}
	return []any{
		&page.Figure{ID: "figure-power", Caption: caption, SVG: power, Numbers: e.table()},
		&page.Figure{ID: "figure-energy", Caption: "Energy taken so far, over time.", SVG: energy},
	}, nil
}
