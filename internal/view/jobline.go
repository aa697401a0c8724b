package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/slurm"
)

// JobLine returns one line on the clocks of a job's last run, for the end of its own output: what they change
// by its model, and what it took once that is recorded. It is empty if nothing was decided.
func JobLine(v *epdapi.JobView) string {
	last := lastDecisions(v.Decisions)
	if len(last) == 0 {
		return ""
	}
	const longest = 200
	d := last[0]
	why := slurm.Printable(strings.TrimPrefix(d.Reason, d.Setting.Words()+": "), longest)
	line := "epplan: " + d.Setting.Words()
	took, ran := measuredPoint(v, last)
	if ran {
		line += " took " + report.FormatSeconds(took.TimeS) + ", " + report.EnergyText(took.EnergyJ) +
			" of the GPUs"
	}
	if d.Setting == (dvfsmodel.Setting{}) {
		return line + ": " + why
	}
	standard, chosen := sumPredictions(last)
	against := againstDefault(standard, chosen)
	if against == "" {
		return line + ": " + why
	}
	saved := standard.EnergyJ - chosen.EnergyJ
	if ran && chosen.EnergyJ > 0 {
		saved *= took.EnergyJ / chosen.EnergyJ
	}
	word := "saving"
	if saved < 0 {
		word = "costing"
	}
	return line + ": " + against + ", " + word + " " + report.EnergyText(max(saved, -saved))
}

// lastDecisions returns the decisions of a job's last run, one for each node.
func lastDecisions(all []epdapi.Decision) (last []*epdapi.Decision) {
	for i := range all {
		d := &all[i]
		at := slices.IndexFunc(last, func(other *epdapi.Decision) bool { return other.Node == d.Node })
		switch {
		case at < 0:
			last = append(last, d)
		case d.Created.After(last[at].Created):
			last[at] = d
		}
	}
	slices.SortFunc(last, func(a, b *epdapi.Decision) int { return cmp.Compare(a.Node, b.Node) })
	return last
}

// sumPredictions returns the predictions of decisions at default and at chosen clocks: energies added up, the
// longest time. They are nil if one of the decisions has none.
func sumPredictions(all []*epdapi.Decision) (standard, chosen *epdapi.Point) {
	standard, chosen = &epdapi.Point{}, &epdapi.Point{}
	for _, d := range all {
		if d.Default == nil || d.Chosen == nil {
			return nil, nil
		}
		add := func(sum, one *epdapi.Point) {
			sum.Setting = one.Setting
			sum.EnergyJ += one.EnergyJ
			sum.TimeS = max(sum.TimeS, one.TimeS)
		}
		add(standard, d.Default)
		add(chosen, d.Chosen)
	}
	return standard, chosen
}

// measuredPoint returns what the runs of decisions took, if that is recorded of all of them.
func measuredPoint(v *epdapi.JobView, all []*epdapi.Decision) (took epdapi.Point, known bool) {
	for _, d := range all {
		at := slices.IndexFunc(v.Outcomes, func(o epdapi.Outcome) bool { return o.DecisionID == d.ID })
		if at < 0 {
			return took, false
		}
		time, timed := v.Outcomes[at].TimeS.Get()
		energy, metered := v.Outcomes[at].GPUEnergyJ.Get()
		if !timed || !metered {
			return took, false
		}
		took.TimeS, took.EnergyJ = max(took.TimeS, time), took.EnergyJ+energy
	}
	return took, true
}
