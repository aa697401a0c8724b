package planreport

import (
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/planner"
)

// Interval is where a figure is in 9 of 10 cases.
type Interval struct{ Low, High float64 }

// interval90 returns the interval of a figure with a variance.
func interval90(x, variance float64) *Interval {
	half := dvfsmodel.UpperSigmas * math.Sqrt(variance)
	return &Interval{Low: x - half, High: x + half}
}

// String is such as "20.1 to 23.5 %".
func (i *Interval) String() string {
	scale := report.CommonScale(report.Fraction, 3, i.Low, i.High)
	return scale.Format(i.Low) + " to " + scale.FormatWithUnit(i.High)
}

// objectValue returns the interval in JSON; null where there is none.
func (i *Interval) objectValue() report.Value {
	if i == nil {
		return report.Value{}
	}
	return newObject([]jsonField{
		{key: "low", value: report.Number(i.Low)}, {key: "high", value: report.Number(i.High)},
	})
}

// PriorSaving is what jobs without a model are said to save that run as others respond.
type PriorSaving struct {
	Jobs    int
	Saving  float64 // part of what the GPUs take for them at default clocks
	Between *Interval
}

// String says it in words: "12.3 % of their GPUs' energy as others do, 4 to 20 % in 9 of 10 cases".
func (p *PriorSaving) String() string {
	return report.FormatPercent(p.Saving) + " of what GPUs take for them if they respond as others do, " +
		p.Between.String() + " in 9 of 10 cases"
}

// objectValue returns the sum in JSON; null where there are no such jobs.
func (p *PriorSaving) objectValue() report.Value {
	if p == nil {
		return report.Value{}
	}
	return newObject([]jsonField{
		{key: "jobs", value: report.Count(p.Jobs)},
		{key: "saving", value: report.Number(p.Saving)},
		{key: "saving_interval", value: p.Between.objectValue()},
	})
}

// isWorthShowing reports whether an interval is there and worth telling: not where models are off, but
// nothing depends on it.
func (i *Interval) isWorthShowing() bool {
	return i != nil && i.High-i.Low > report.RelativeTolerance
}

// modelErrorSource is one of the things that a doubted model is off by: the same for all jobs that
// rest on it.
type modelErrorSource struct {
	of   *dvfsmodel.Uncertainty
	what uint8
}

// What a model is off by: levels at default clocks, and how time and power change with
// clocks.
const (
	levelTime uint8 = iota
	levelPower
	clocksTime
	clocksPower
)

// errorShifts are by how much an energy changes where a source is off by a standard deviation.
type errorShifts map[modelErrorSource]dvfsmodel.Joule

// add takes account of a job that runs at a point, by what its response rests on: its
// energy follows time and power, and so does what else is on for as long as it runs.
func (s errorShifts) add(o *planner.Option, at *dvfsmodel.Point, run, beside dvfsmodel.Joule) {
	for i := range o.Uncertainties {
		d := &o.Uncertainties[i]
		time, power := d.Time, d.Power
		if d.Clocks && (at.Scaling != o.Response.Default().Scaling || at.Cap != 0) {
			time, power = time-(1-d.LevelShare), power-(1-d.LevelShare)
			off := d.Uncertainty.Clocks(at.Scaling)
			s[modelErrorSource{d.Uncertainty, clocksTime}] += (run + beside) * dvfsmodel.Joule(off.Time)
			s[modelErrorSource{d.Uncertainty, clocksPower}] += run * dvfsmodel.Joule(off.Power)
		}
		s[modelErrorSource{d.Uncertainty, levelTime}] += (run + beside) * dvfsmodel.Joule(time*d.Level.Time)
		s[modelErrorSource{d.Uncertainty, levelPower}] += run * dvfsmodel.Joule(power*d.Level.Power)
	}
}

// errorShiftsOf returns those of a plan's energy, to first order. Idle GPUs and hosts are taken to
// be on for longer by the part by which jobs take longer.
func (r *Result) errorShiftsOf(plan *planner.Plan) errorShifts {
	busy := 0.0 // GPU·s
	each := func(yield func(o *planner.Option, a *planner.Assignment, run dvfsmodel.Joule)) {
		for i := range plan.Assignments {
			a, t := &plan.Assignments[i], &r.Problem.Tasks[i]
			if a.Node >= 0 && int(a.Option) < len(t.Options) {
				yield(&t.Options[a.Option], a, a.Energy(t))
			}
		}
	}
	work := func(a *planner.Assignment) float64 { return float64(a.GPUCount()) * (a.End - a.Start) }
	each(func(_ *planner.Option, a *planner.Assignment, _ dvfsmodel.Joule) { busy += work(a) })
	all, beside := make(errorShifts), plan.Ledger.Idle+plan.Ledger.Host
	each(func(o *planner.Option, a *planner.Assignment, run dvfsmodel.Joule) {
		part := dvfsmodel.Joule(0)
		if busy > 0 {
			part = beside * dvfsmodel.Joule(work(a)/busy)
		}
		all.add(o, &a.Point, run, part)
	})
	return all
}

// maxUnknownErrorShare is the part of the run energy up to which an interval of the saving is
// told though nobody knows how far off that part is.
const maxUnknownErrorShare = 0.5

// addIntervals says how far off the saving may be by the errors of the models: none
// where too few state them, or there is nothing to compare with.
func (s *Summary) addIntervals(r *Result) {
	if r.Reference == nil || !(s.Baseline > 0) {
		return
	}
	s.addPrior(r)
	if s.UnknownErrorShare > maxUnknownErrorShare {
		return
	}
	doubted := func(o planner.Option) bool { return len(o.Uncertainties) > 0 }
	if !slices.ContainsFunc(r.Problem.Tasks,
		func(t planner.Task) bool { return slices.ContainsFunc(t.Options, doubted) }) {
		return
	}
	plan := r.errorShiftsOf(r.Plan)
	// A saving of 1 − A/B changes by −(A′ − A/B·B′)/B.
	variance, kept := 0.0, dvfsmodel.Joule(energyRatio(s.Energy, s.Baseline))
	for source, before := range r.errorShiftsOf(r.Reference) {
		plan[source] -= kept * before
	}
	for _, off := range plan {
		part := float64(off / s.Baseline)
		variance += part * part
	}
	s.SavingInterval = interval90(s.Saving(), variance)
}

// addPrior adds up the jobs without a model that run as others respond.
func (s *Summary) addPrior(r *Result) {
	all := make(errorShifts)
	var sum PriorSaving
	var taken, before dvfsmodel.Joule
	for task, a := range r.eachPlanned {
		t := &r.Problem.Tasks[task]
		o := &t.Options[a.Option]
		if !o.Prior {
			continue
		}
		sum.Jobs++
		run := a.Energy(t)
		taken, before = taken+run, before+o.Response.Default().Energy*dvfsmodel.Joule(o.GPUs)
		all.add(o, &a.Point, run, 0)
	}
	if sum.Jobs == 0 {
		return
	}
	variance := 0.0
	for _, off := range all {
		variance += float64(off*off) / float64(before*before)
	}
	sum.Saving = 1 - energyRatio(taken, before)
	sum.Between = interval90(sum.Saving, variance)
	s.Prior = &sum
}
