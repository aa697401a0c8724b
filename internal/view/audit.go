package view

import (
	"fmt"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/audit"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
)

// Audit returns the view of what a change did to the energy and the times of jobs, and of what that is worth.
func Audit(r *audit.Result, f *config.Factors) *View {
	v := &View{
		Title: "What a change did", Lead: "Jobs after it, held against jobs of the same kinds before it: one " +
			"program of one user on as many GPUs of a model.",
		Tiles: page.Tiles{
			{Label: "Saved after the change", Value: "not known", Note: "too few kinds of jobs"},
			effectTile("Energy of the same jobs", &r.Energy), effectTile("Time of the same jobs", &r.Time),
		},
	}
	if r.Energy.IsKnown() {
		joules, low, high := r.Saved()
		interval := report.EnergyText(low) + " to " + report.EnergyText(high) + " in 95 of 100 cases"
		saved := report.EnergyText(joules) + " (" + interval + ")"
		if worth := report.FootprintText(f, dvfsmodel.Joule(joules)); worth != "" {
			saved += ": " + worth
			interval += "; " + worth
		}
		v.Tiles[0].Value, v.Tiles[0].Note = report.EnergyText(joules), interval
		v.add("Saved", saved+", by jobs of the same kinds since the change")
	}
	v.add("Before", auditPeriod(&r.Before))
	v.add("After", auditPeriod(&r.After))
	v.add("Energy", effectWords(&r.Energy))
	v.add("Time", "of a GPU, "+effectWords(&r.Time))
	v.add("Means", signedPercent(r.Naive)+" energy for a job in the mean, whatever the jobs were")
	v.add("Use", fmt.Sprintf("%s GPU-hours a day before, %s after; %s and %s jobs a day",
		report.AmountText(r.Before.GPUHoursPerDay), report.AmountText(r.After.GPUHoursPerDay),
		report.AmountText(r.Before.RunsPerDay), report.AmountText(r.After.RunsPerDay)))
	v.add("Check", "between the halves of the jobs before, where nothing was changed: "+effectWords(&r.Placebo))
	const half = 0.5
	if !r.Energy.IsKnown() {
		v.notice(page.Warn, fmt.Sprintf("%s ran before and after: nothing can be said, want %d or more",
			report.Plural(r.Energy.Kinds, "kind of jobs", "kinds of jobs"), audit.LeastKinds))
		return v
	}
	if r.Placebo.IsKnown() && (r.Placebo.Low > 0 || r.Placebo.High < 0) {
		v.notice(page.Warn, "jobs of the same kinds changed before the change already, by "+
			signedPercent(r.Placebo.Change)+": what is measured may be that")
	}
	if r.After.MatchedJoules < half*r.After.Joules {
		v.notice(page.Warn, fmt.Sprintf("%s of the energy after is of jobs whose kind didn't run before: of "+
			"these nothing can be said", report.FormatPercent(1-r.After.MatchedJoules/r.After.Joules)))
	}
	v.notice(page.Info, "what can't be concluded: whether users submit more, or other work, because of the "+
		"change (Use and Means have that in them), and what else changed at the same time")
	return v
}

func auditPeriod(p *audit.Period) string {
	if p.Runs == 0 {
		return "no jobs"
	}
	return fmt.Sprintf("%s from %s to %s with %s; %s of it by kinds that ran before and after",
		report.Plural(p.Runs, "job"), DateTime(p.From), DateTime(p.Until), report.EnergyText(p.Joules),
		report.FormatPercent(p.MatchedJoules/max(p.Joules, 1)))
}

func effectWords(e *audit.Effect) string {
	if !e.IsKnown() {
		return "too few kinds of jobs"
	}
	return fmt.Sprintf("%s (%s to %s in 95 of 100 cases) for jobs of the same kinds, %d of them",
		signedPercent(e.Change), signedPercent(e.Low), signedPercent(e.High), e.Kinds)
}

func effectTile(label string, e *audit.Effect) page.Tile {
	if !e.IsKnown() {
		return page.Tile{Label: label, Value: "not known", Note: effectWords(e)}
	}
	return page.Tile{
		Label: label, Value: signedPercent(e.Change),
		Note: signedPercent(e.Low) + " to " + signedPercent(e.High) + " in 95 of 100 cases",
	}
}

func signedPercent(part float64) string { return fmt.Sprintf("%+.1f %%", 100*part) }
