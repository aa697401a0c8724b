// Package fitreport shows what models of workloads say, and how well they predict and choose.
package fitreport

import (
	"math"
	"slices"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/joint"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/report"
)

// EvaluationTable returns a row for each application of a table that was fitted together, and one for all.
func EvaluationTable(result *joint.EvaluationReport) *report.Table {
	overall := result.Overall
	overall.App = "(all)"
	rows := append(slices.Clone(result.Apps), overall)
	return report.TableOf(rows, func(row *report.Row, e *joint.Evaluation) {
		row.Add(report.Column{Key: "app", Head: "application", Left: true, Max: 32}, report.Text(e.App))
		row.Add(report.Column{Key: "settings", Head: "settings"}, report.Count(e.Settings))
		row.Add(report.Column{Key: "form", Head: "form", Left: true}, report.Text(e.Form))
		row.Add(report.Column{Key: "time_mape", Head: "time error", Unit: report.Fraction},
			report.Number(e.TimeMAPE))
		row.Add(report.Column{Key: "power_mape", Head: "power error", Unit: report.Fraction},
			report.Number(e.PowerMAPE))
		row.Add(report.Column{Key: "full_fit_regret", Head: "regret, full fit", Unit: report.Fraction},
			report.Number(e.FullFit.Mean))
		row.Add(report.Column{Key: "loso_regret", Head: "regret, left out", Unit: report.Fraction},
			report.Number(e.LOSO.Mean))
		row.Add(report.Column{Key: "own_fit_regret", Head: "own fit alone", Unit: report.Fraction},
			report.Number(e.OwnFit.Mean))
		row.Add(
			report.Column{Key: "degrees_of_freedom", Head: "freedom"},
			report.Number(roundTenth(e.DegreesOfFreedom)),
		)
		if e.Violations != nil {
			row.Add(report.Column{Key: "violations", Head: "too slow", Unit: report.Fraction},
				report.Number(*e.Violations))
		}
	})
}

// Rounded returns a report with its regrets rounded as tables of them are.
func Rounded(r pooled.Evaluation) pooled.Evaluation {
	r.RegretMean, r.RegretMax = roundThousandths(r.RegretMean), roundThousandths(r.RegretMax)
	return r
}

// roundThousandths rounds as tables of regrets are.
func roundThousandths(x float64) float64 {
	const digits = 1000
	return math.Round(x*digits) / digits
}

func roundTenth(x float64) float64 {
	const digits = 10
	return math.Round(x*digits) / digits
}

// LeftOutTable returns a row for each left-out application, and one for all.
func LeftOutTable(r *pooled.Evaluation) *report.Table {
	const percent = 100
	part := func(x float64) report.Value { return report.Number(x / percent) }
	all := pooled.LeftOutResult{
		App: "(all)", Regret: r.RegretMean, TimeMAPE: r.TimeMAPE, PowerMAPE: r.PowerMAPE, Violations: r.Violations,
	}
	clocks := func(o *pooled.LeftOutResult, list ...dvfsmodel.Setting) report.Value {
		if o.Chosen == (dvfsmodel.Setting{}) { // of all workloads there are none
			return report.Value{}
		}
		texts := make([]string, len(list))
		for i, s := range list {
			texts[i] = s.Short()
		}
		return report.Text(strings.Join(texts, " "))
	}
	rows := append(slices.Clone(r.Workloads), all)
	return report.TableOf(rows, func(row *report.Row, o *pooled.LeftOutResult) {
		row.Add(report.Column{Key: "app", Head: "application", Left: true, Max: 32}, report.Text(o.App))
		row.Add(report.Column{Key: "probes", Head: "probes", Left: true, Note: "core/memory MHz"},
			clocks(o, o.Probes...))
		row.Add(report.Column{Key: "chosen", Head: "chosen", Left: true}, clocks(o, o.Chosen))
		row.Add(report.Column{Key: "best", Head: "best", Left: true}, clocks(o, o.Best))
		row.Add(report.Column{Key: "regret", Head: "regret", Unit: report.Fraction}, part(o.Regret))
		row.Add(report.Column{Key: "time_mape", Head: "time error", Unit: report.Fraction},
			part(float64(o.TimeMAPE)))
		row.Add(report.Column{Key: "power_mape", Head: "power error", Unit: report.Fraction},
			part(float64(o.PowerMAPE)))
		if o.Violations != nil {
			row.Add(report.Column{Key: "violations", Head: "too slow", Unit: report.Fraction},
				report.Number(*o.Violations))
		}
	})
}
