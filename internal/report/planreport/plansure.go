package planreport

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/planner"
)

// whoParts are users and workloads, where the batch names them.
func (p *PlanPage) whoParts(*Summary) []any {
	if p.Jobs == nil {
		return nil
	}
	var parts []any
	for _, kind := range []struct {
		id, what string
		name     func(task int) string
	}{
		{"users", "user", func(task int) string { return p.Jobs[task].User }},
		{"workloads", "workload", p.workloadOf},
	} {
		groups := p.Result.groupJobs(func(task int) string {
			if name := kind.name(task); name != "" {
				return name
			}
			return "(none)"
		})
		if len(groups) == 1 && groups[0].name == "(none)" {
			continue
		}
		table := groupTable(kind.what, groups).Page("By "+kind.what,
			"Energies are of GPUs while jobs run: the plan's, and those of the same jobs at default clocks.",
			maxGroups)
		parts = append(parts, &page.Group{
			Heading: "By " + kind.what, Columns: true, Parts: []any{groupFigure(kind.id, kind.what, groups), table},
		})
	}
	return parts
}

// workloadOf returns the workload of a job, or whose model it has.
func (p *PlanPage) workloadOf(task int) string {
	j := &p.Jobs[task]
	switch {
	case j.Model != nil && j.Workload == "":
		return "(its own model)"
	default:
		return j.Workload
	}
}

// certaintyParts say what the figures rest on.
func (p *PlanPage) certaintyParts(s *Summary) []any {
	facts := page.Facts{}
	if s.ObjectiveBound > 0 {
		part, side := s.boundDistance()
		least := s.objectiveText(s.ObjectiveBound, energyScale(dvfsmodel.Joule(s.ObjectiveBound)))
		text := fmt.Sprintf("at most %s above the best schedule there is: that one takes %s or more.", part,
			least)
		if side == "below" {
			text = fmt.Sprintf("not told: schedules that keep all deadlines take %s or more, and this one "+
				"doesn't keep them.", least)
		}
		facts = append(facts, page.Fact{
			Name: "Against the best", Text: text +
				" The bound follows from the batch alone, and may lie below what any schedule can reach.",
		})
	}
	if s.Baseline > 0 {
		facts = append(facts, page.Fact{
			Name: "Against default clocks",
			Text: "the saving is what models say, not a measurement. epplan savings measures, with runs " +
				"that a lot held out.",
		})
	}
	facts = append(facts, page.Fact{Name: "Models", Text: p.modelledText()})
	facts = append(facts, page.Fact{
		Name: "Run times",
		Text: "as the batch states them; a job that takes longer or shorter moves what comes after it.",
	})
	if text := p.typicalError(); text != "" {
		facts = append(facts, page.Fact{Name: "Model errors", Text: text})
	}
	facts = append(facts, page.Fact{
		Name: "Checked", Text: "places, times, clocks, deadlines and energy were computed again by code " +
			"that the planner doesn't share.",
	})
	parts := []any{facts}
	if used := p.usedModels(); len(used) > 0 {
		parts = append(parts,
			modelTable(used).Page("Models of the planned jobs",
				"Errors are means of |predicted / measured − 1| at settings that were left out of the fit; "+
					"– is not known.", maxGroups))
	}
	return parts
}

// modelledText says how many jobs have a model.
func (p *PlanPage) modelledText() string {
	without, prior, planned := 0, 0, 0
	for _, a := range p.Result.eachPlanned {
		planned++
		switch {
		case a.Reason.Prior:
			prior++
		case a.Reason.Clocks == planner.ClocksNoModel:
			without++
		}
	}
	text := ""
	if prior > 0 {
		text = " " + report.Plural(prior, "job has none and is", "jobs have none and are") +
			" planned as others on the GPU model respond, to end in time if it takes as long as " +
			"19 of 20 of these."
		if without == 0 {
			return "others stand for those that are missing." + text
		}
	}
	return p.withoutModelText(without, prior, planned) + text
}

// withoutModelText says how many jobs run at default clocks for want of a model.
func (p *PlanPage) withoutModelText(without, prior, planned int) string {
	switch without {
	case 0:
		return "every planned job has one."
	case planned:
		return "no planned job has one: all run at default clocks, for as long as the batch says."
	}
	planned -= prior
	return fmt.Sprintf("%s of %s have one; the others run at default clocks, for as long as the batch says.",
		report.FormatCount(planned-without), report.Plural(planned, "planned job"))
}

type modelUse struct {
	FittedModel
	jobs   int
	energy float64
}

// usedModels returns the models of planned jobs, those with the most energy first.
func (p *PlanPage) usedModels() []modelUse {
	if p.Jobs == nil {
		return nil
	}
	type key struct{ workload, gpuModel string }
	index := make(map[key]int)
	all := make([]modelUse, len(p.Models))
	for i := range p.Models {
		all[i].FittedModel = p.Models[i]
		index[key{p.Models[i].Workload, p.Models[i].GPUModel}] = i
	}
	for task, a := range p.Result.eachPlanned {
		t := &p.Result.Problem.Tasks[task]
		if i, ok := index[key{p.Jobs[task].Workload, t.Options[a.Option].Model}]; ok &&
			p.Jobs[task].Model == nil {
			all[i].jobs++
			all[i].energy += float64(a.Energy(t))
		}
	}
	all = slices.DeleteFunc(all, func(m modelUse) bool { return m.jobs == 0 })
	slices.SortStableFunc(all, func(a, b modelUse) int { return cmp.Compare(b.energy, a.energy) })
	return all
}

// typicalError returns the mean error of the models, weighted by the energy of what
// runs by them.
func (p *PlanPage) typicalError() string {
	energy, timeError, powerError := 0.0, 0.0, 0.0
	for _, m := range p.usedModels() {
		if m.TimeError > 0 || m.PowerError > 0 {
			energy += m.energy
			timeError += m.energy * m.TimeError
			powerError += m.energy * m.PowerError
		}
	}
	if energy == 0 {
		return ""
	}
	return fmt.Sprintf("weighted by energy, models are off by %s in run time and %s in power at settings "+
		"that they hadn't seen.",
		report.FormatPercent(timeError/energy), report.FormatPercent(powerError/energy))
}

func modelTable(models []modelUse) *report.Table {
	return report.NewTable([]report.Column{
		{Head: "workload", Left: true, Max: 60},
		{Head: "GPU model", Left: true},
		{Head: "jobs"},
		{Head: "energy", Unit: report.Joules},
		{Head: "settings"},
		{Head: "error in time", Unit: report.Fraction, Digits: 2, Group: 1},
		{Head: "in power", Unit: report.Fraction, Digits: 2, Group: 1},
		{Head: "source", Left: true, Max: 60},
	}, len(models), func(i int) []report.Value {
		m := &models[i]
		return []report.Value{
			report.Text(m.Workload), report.Text(m.GPUModel), report.Count(m.jobs), report.Number(m.energy),
			countIfAny(m.Settings), report.NonZero(m.TimeError), report.NonZero(m.PowerError), report.Text(m.Source),
		}
	})
}
