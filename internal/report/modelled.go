package report

import (
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// addModelled tells how much of the plan's run energy is of jobs of which a model says
// how they respond to clocks, and how many jobs have a power that nobody stated.
func (s *Summary) addModelled(r *Result) {
	var all, modelled dvfsmodel.Joule
	for i := range r.Plan.Assignments {
		a, t := &r.Plan.Assignments[i], &r.Problem.Tasks[i]
		if a.Node < 0 || int(a.Option) >= len(t.Options) {
			continue
		}
		o := &t.Options[a.Option]
		if o.Assumed {
			s.Assumed++
		}
		energy := a.Energy(t)
		all += energy
		if _, fixed := o.Response.(*dvfsmodel.Fixed); !fixed || isShared(r.Plan, i) {
			modelled += energy
		}
	}
	s.Modelled = math.NaN()
	if all > 0 {
		s.Modelled = float64(modelled / all)
	}
}

// isShared tells whether a job is on GPUs that are shared by profile: how those respond to
// clocks is known.
func isShared(p *planner.Plan, task int) bool {
	if p.Shared == nil {
		return false
	}
	_, found := slices.BinarySearch(p.Shared.Tasks, task)
	return found
}

// unmodelled says what stands behind the saving beside models; empty where nothing
// does.
func (s *Summary) unmodelled() string {
	text := ""
	switch {
	case s.Modelled == 0:
		text = "no job has a model"
	case s.Modelled < 1-rounding:
		text = "models stand for " + FormatPercent(s.Modelled) + " of the run energy"
	}
	if s.Assumed > 0 {
		if text != "" {
			text += ", "
		}
		text += "the power of " + counting(s.Assumed, "job", "jobs") + " is assumed"
	}
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
