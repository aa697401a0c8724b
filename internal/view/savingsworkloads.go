package view

import (
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
)

// savingsFigure shows the savings with their bounds; nil: there are none.
func savingsFigure(s *epdapi.Savings, comparisons []comparison) *page.Figure {
	var all []report.Estimate
	for _, c := range comparisons {
		if e := c.saving; e.Runs > 0 {
			all = append(all, report.Estimate{
				Name: c.name, Value: e.SavedJ, Low: e.LowJ, High: e.HighJ,
				Note: report.Plural(int(e.Runs), "run") + ", " + report.FormatCount(int(e.Against)) + " " +
					c.against,
			})
		}
	}
	if m := &s.Modelled; m.Runs > 0 {
		all = append(all, report.Estimate{
			Name: "GPUs, modelled", Value: m.SavedJ(), Believed: true,
			Note: report.Plural(int(m.Runs), "run") + ", not measured",
		})
	}
	if len(all) == 0 {
		return nil
	}
	return report.EstimateFigure("savings", "Energy saved. The lines are intervals that hold the true "+
		"saving in 95 of 100 cases; an estimate of the models is hollow and has none. Left of 0 more energy "+
		"was used.", "saved", report.KilowattHours, all)
}

const maxEstimates = 12

func workloadSavings(s *epdapi.Savings) []any {
	all := make([]report.Estimate, min(len(s.ByWorkload), maxEstimates))
	for i := range all {
		w := &s.ByWorkload[i]
		all[i] = report.Estimate{
			Name: w.LastJob.WordsOf(w.Workload), Note: w.GPUModel + ", " + epdapi.ShortWorkload(w.Workload),
			Value: w.SavedJ / w.BaselineJ, Low: w.LowJ / w.BaselineJ, High: w.HighJ / w.BaselineJ,
		}
	}
	figure := report.EstimateFigure("by-workload",
		"What each workload saved of its energy at default clocks, measured at the GPUs, with its 95 "+
			"% interval. Those with the most energy come first.",
		"saved", report.Fraction, all)
	t := report.TableOf(s.ByWorkload, func(row *report.Row, w *epdapi.WorkloadSaving) {
		certain := "may be chance"
		if w.IsCertain() {
			certain = "sure"
		} else if w.Needed > 0 {
			certain = "may be chance: about " + report.Plural(int(w.Needed), "more held-out run")
		}
		row.Add(report.Column{Head: "workload", Left: true, Max: 80},
			report.Text(w.LastJob.WordsOf(w.Workload)))
		row.Add(report.Column{Head: "key", Left: true}, report.Text(epdapi.ShortWorkload(w.Workload)))
		row.Add(report.Column{Head: "GPU model", Left: true}, report.Text(w.GPUModel))
		row.Add(report.Column{Head: "runs"}, report.Count(int(w.Runs)))
		row.Add(report.Column{Head: "held out"}, report.Count(int(w.Against)))
		row.Add(report.Column{Head: "at default", Unit: report.KilowattHours, Group: 1}, report.Number(w.BaselineJ))
		row.Add(report.Column{Head: "saved", Unit: report.KilowattHours, Group: 1}, report.Number(w.SavedJ))
		row.Add(report.Column{Head: "saved", Unit: report.Fraction, Digits: 2, Group: 2},
			report.Number(w.SavedJ/w.BaselineJ))
		row.Add(report.Column{Head: "low", Unit: report.Fraction, Digits: 2, Group: 2},
			report.Number(w.LowJ/w.BaselineJ))
		row.Add(report.Column{Head: "high", Unit: report.Fraction, Digits: 2, Group: 2},
			report.Number(w.HighJ/w.BaselineJ))
		row.Add(report.Column{Head: "longer", Unit: report.Fraction, Digits: 2, Group: 3},
			report.Number(w.Time.Part(w.Time.LongerS)))
		row.Add(report.Column{Head: "low", Unit: report.Fraction, Digits: 2, Group: 3},
			report.Number(w.Time.Part(w.Time.LowS)))
		row.Add(report.Column{Head: "high", Unit: report.Fraction, Digits: 2, Group: 3},
			report.Number(w.Time.Part(w.Time.HighS)))
		row.Add(report.Column{Head: "how sure", Left: true}, report.Text(certain))
	})
	note := "Only workloads with runs in both groups."
	if t.Len == epdapi.MaxWorkloads {
		note += " Those with less energy than these " + report.FormatCount(t.Len) + " aren't listed."
	}
	return []any{figure, t.Page("Measured at the GPUs, by workload", note, -1)}
}
