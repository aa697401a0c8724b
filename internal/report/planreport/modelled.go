package planreport

import (
	"math"
	"slices"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/planner"
)

// addModelled tells how much of the plan's run energy is of jobs of which a model says
// how they respond to clocks, and how many jobs have a power that nobody stated.
func (s *Summary) addModelled(r *Result) {
	var all, modelled, unsure dvfsmodel.Joule
	for i := range r.Plan.Assignments {
		a, t := &r.Plan.Assignments[i], &r.Problem.Tasks[i]
		if a.Node < 0 || int(a.Option) >= len(t.Options) {
			continue
		}
		o := &t.Options[a.Option]
		if o.Assumed {
			s.Assumed++
		}
		energy, before := a.Energy(t), modelled
		all += energy
		if dvfsmodel.HasModel(o.Response) && !o.Prior || isShared(r.Plan, i) {
			modelled += energy
		}
		if o.Assumed || modelled > before && len(o.Uncertainties) == 0 {
			unsure += energy
		}
	}
	s.Modelled = math.NaN()
	if all > 0 {
		s.Modelled, s.UnknownErrorShare = float64(modelled/all), float64(unsure/all)
	}
}

// isShared reports whether a job is on GPUs that are shared by profile: how those respond to
// clocks is known.
func isShared(p *planner.Plan, task int) bool {
	if p.Shared == nil {
		return false
	}
	_, found := slices.BinarySearch(p.Shared.Tasks, task)
	return found
}

// unmodelledText says what stands behind the saving beside models; empty where nothing
// does.
func (s *Summary) unmodelledText() string {
	var parts []string
	switch {
	case s.Modelled == 0 && s.Prior == nil:
		parts = append(parts, "no job has a model: clocks save nothing")
	case s.Modelled == 0:
	case s.Modelled < 1-report.RelativeTolerance:
		parts = append(parts, "models stand for "+report.FormatPercent(s.Modelled)+" of the run energy")
	}
	if s.SavingInterval.isWorthShowing() && s.UnknownErrorShare > report.RelativeTolerance {
		parts = append(parts, "the interval takes "+report.FormatPercent(s.UnknownErrorShare)+" of it as certain, "+
			"of which no error is known")
	}
	if s.Prior != nil {
		parts = append(parts,
			report.Plural(s.Prior.Jobs, "job without a model saves ", "jobs without a model save ")+
				s.Prior.String())
	}
	if s.Assumed > 0 {
		parts = append(parts, "the power of "+report.Plural(s.Assumed, "job")+" is assumed")
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}
