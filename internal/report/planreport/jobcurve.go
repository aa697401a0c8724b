package planreport

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/queue"
)

// jobCurve is what a job could run at: the least energy by run time, where it
// runs, and where it would at default clocks. All are of one GPU, with its share
// of the host's power, for that is what clocks are chosen by.
type jobCurve struct {
	task                 int
	id, label            string
	optimalPoints        []dvfsmodel.Point // by rising time
	chosen, defaultPoint dvfsmodel.Point
	host                 dvfsmodel.Watt
}

func (j *jobCurve) energy(pt *dvfsmodel.Point) float64 {
	return float64(pt.Energy + j.host.Over(pt.Time))
}

// curveSamples is at how many run times a job's curve is asked for.
const curveSamples = 60

// curveOf returns a job's; false where its clocks make no difference.
func (r *Result) curveOf(task int) (*jobCurve, bool) {
	t, a := &r.Problem.Tasks[task], &r.Plan.Assignments[task]
	class := r.Plan.Nodes[a.Node].Class
	response := t.Options[a.Option].Response
	j := &jobCurve{
		task: task, id: t.ID, label: shortReason(a.Reason), chosen: a.Point, defaultPoint: response.Default(),
		host: r.Problem.Cluster.Classes[class].HostW,
	}
	price := r.Problem.ClassObjective(class)
	slowest, err := response.Optimum(price, math.Inf(1))
	if err != nil {
		return nil, false
	}
	fastest := response.MinTime()
	for i := range curveSamples + 1 {
		limit := fastest * math.Pow(slowest.Time/fastest, float64(i)/curveSamples) * (1 + report.RelativeTolerance)
		pt, err := response.Optimum(price, limit)
		if n := len(j.optimalPoints); err == nil &&
			(n == 0 || pt.Time > j.optimalPoints[n-1].Time*(1+report.RelativeTolerance)) {
			j.optimalPoints = append(j.optimalPoints, pt)
		}
	}
	return j, len(j.optimalPoints) > 1
}

// representativeCurves are up to three jobs whose curves tell how clocks were chosen: the one
// that saves most, one that its deadline makes run faster than it would, and the
// one that takes the most energy.
func (r *Result) representativeCurves() []*jobCurve {
	saved := func(task int) float64 {
		a := &r.Plan.Assignments[task]
		return r.defaultEnergy(task) - float64(a.Energy(&r.Problem.Tasks[task]))
	}
	hurried := func(task int) float64 {
		if a := &r.Plan.Assignments[task]; a.Reason.Clocks == planner.ClocksDeadline &&
			a.Reason.TimeBudget > 0 {
			return a.Reason.Want / a.Reason.TimeBudget
		}
		return 0
	}
	taken := func(task int) float64 {
		return float64(r.Plan.Assignments[task].Energy(&r.Problem.Tasks[task]))
	}
	var chosen []*jobCurve
	for _, by := range []func(int) float64{saved, hurried, taken} {
		best, most := -1, 0.0
		for task := range r.eachPlanned {
			if v := by(task); v > most &&
				!slices.ContainsFunc(chosen, func(j *jobCurve) bool { return j.task == task }) {
				best, most = task, v
			}
		}
		if best < 0 {
			continue
		}
		if j, ok := r.curveOf(best); ok {
			chosen = append(chosen, j)
		}
	}
	return chosen
}

const (
	jobPanel       = 380.0
	jobPanelHeight = 330.0
)

// drawJobCurves draws jobs beside each other.
func drawJobCurves(id string, jobs []*jobCurve) template.HTML {
	names := make([]string, len(jobs))
	for i, j := range jobs {
		names[i] = j.id
	}
	return report.DrawForScreens(id, func(c *report.Canvas) template.HTML {
		across, down := jobPanel, 0.0
		if c.Narrow() { // below each other
			across, down = 0, jobPanelHeight
		}
		more := float64(len(jobs) - 1)
		c.Open(report.PictureClass, jobPanel+across*more, jobPanelHeight+down*more,
			"Energy by run time of "+strings.Join(names, ", "),
			"For each job the least energy that each run time takes, the point at which it runs, and the one "+
				"at default clocks.")
		for i, j := range jobs {
			j.draw(c, across*float64(i), down*float64(i))
		}
		return c.Close()
	})
}

func (j *jobCurve) draw(c *report.Canvas, left, top float64) {
	s := report.Series{X: make([]float64, len(j.optimalPoints)), Y: make([]float64, len(j.optimalPoints))}
	for i := range j.optimalPoints {
		s.X[i], s.Y[i] = j.optimalPoints[i].Time, j.energy(&j.optimalPoints[i])
	}
	times := append(slices.Clone(s.X), j.chosen.Time, j.defaultPoint.Time)
	energies := append(slices.Clone(s.Y), j.energy(&j.chosen), j.energy(&j.defaultPoint))
	f := report.Frame{
		X:    report.TightAxis("run time", report.Seconds, times, 4),
		Y:    report.TightAxis("energy of a GPU", report.Joules, energies, 5),
		Left: left + 78, Right: left + jobPanel - 18, Upper: top + 54,
		Lower: top + jobPanelHeight - report.FootMargin,
	}
	c.Text(f.Left, top+18, "h", report.Truncate(queue.Printable(j.id), 36))
	c.Text(f.Left, top+36, "", report.Truncate(j.label, 44))
	c.Axes(&f)
	c.Printf(`<path class="ln c1" d="%s"/>`, report.LinePath(&s, f.Px, f.Py))
	for i := range s.X {
		c.Printf(`<circle class="a1" cx="%s" cy="%s" r="2"/>`, report.Px(f.Px(s.X[i])), report.Px(f.Py(s.Y[i])))
	}
	mark := func(class, title, text string, pt *dvfsmodel.Point) {
		x, y := f.Px(pt.Time), f.Py(j.energy(pt))
		c.Printf(`<circle class="%s" cx="%s" cy="%s" r="6"><title>%s</title></circle>`, class, report.Px(x),
			report.Px(y), title)
		anchor, dx := "k", 10.0
		if x > (f.Left+f.Right)/2 {
			anchor, dx = "k e", -10
		}
		c.Text(x+dx, y-8, anchor+" halo", text)
	}
	const near = 12 // pixels: names of dots that are closer lie on top of each other
	apart := math.Hypot(f.Px(j.defaultPoint.Time)-f.Px(j.chosen.Time),
		f.Py(j.energy(&j.defaultPoint))-f.Py(j.energy(&j.chosen)))
	if apart < near {
		mark("late", "default", "", &j.defaultPoint)
		mark("dot a2", "runs here", "runs here, default", &j.chosen)
		return
	}
	mark("late", "default", "default", &j.defaultPoint)
	mark("dot a2", "runs here", "runs here", &j.chosen)
}

// jobCurveTable has the points of the curves.
func jobCurveTable(jobs []*jobCurve) *page.Table {
	var rows [][]report.Value
	for _, j := range jobs {
		add := func(what string, pt *dvfsmodel.Point) {
			clocks := fmt.Sprintf("%.3f/%.3f", pt.Scaling.Fc, pt.Scaling.Fm)
			if pt.Core > 0 {
				clocks = fmt.Sprintf("%.0f/%.0f MHz", float64(pt.Core), float64(pt.Mem))
			}
			if pt.Cap != 0 {
				clocks += fmt.Sprintf(", at most %g W", float64(pt.Cap))
			}
			rows = append(rows, []report.Value{
				report.Text(j.id), report.Text(what), report.Text(clocks), report.Number(pt.Time),
				report.Number(pt.Power), report.Number(j.energy(pt)),
			})
		}
		add("default", &j.defaultPoint)
		add("runs here", &j.chosen)
		every := 1 + len(j.optimalPoints)/12
		for i := 0; i < len(j.optimalPoints); i += every {
			add("least energy", &j.optimalPoints[i])
		}
	}
	t := &report.Table{
		Columns: []report.Column{
			{Head: "job", Left: true, Max: maxName},
			{Head: "point", Left: true},
			{Head: "core/mem", Left: true},
			{Head: "run time", Unit: report.Seconds},
			{Head: "power", Unit: report.Watts},
			{Head: "energy of a GPU", Unit: report.Joules},
		},
		Len: len(rows), Rows: slices.Values(rows),
	}
	return t.Page("Run times and energies of these jobs", "", -1)
}

// jobCurves returns the figure of the telling jobs; nil where no job's clocks make a
// difference.
func (r *Result) jobCurves() *page.Figure {
	jobs := r.representativeCurves()
	if len(jobs) == 0 {
		return nil
	}
	slices.SortStableFunc(jobs, func(a, b *jobCurve) int { return cmp.Compare(a.task, b.task) })
	return &page.Figure{
		ID: "figure-curves", SVG: drawJobCurves("curves", jobs), Numbers: jobCurveTable(jobs),
		Caption: "What clocks trade: the least energy of a GPU, its share of the host's included, by how " +
			"long the job may take; and where the plan has it run.",
	}
}
