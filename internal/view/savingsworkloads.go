package view

import (
	"math"
	"strconv"

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
		row.Add(report.Column{Head: "workload", Left: true, Max: 80},
			report.Text(w.LastJob.WordsOf(w.Workload)))
		row.Add(report.Column{Head: "key", Left: true}, report.Text(epdapi.ShortWorkload(w.Workload)))
		row.Add(report.Column{Head: "GPU model", Left: true}, report.Text(w.GPUModel))
		addSaving(row, &w.Saving, &w.Time)
	})
	note := "Only workloads with runs in both groups."
	if t.Len == epdapi.MaxWorkloads {
		note += " Those with less energy than these " + report.FormatCount(t.Len) + " aren't listed."
	}
	return []any{figure, t.Page("Measured at the GPUs, by workload", note, -1)}
}

// addSaving adds the columns of a saving and of its cost in time, if they are known.
func addSaving(row *report.Row, e *epdapi.Saving, took *epdapi.Longer) {
	certain := "may be chance"
	switch {
	case e.Runs == 0:
		certain = "unknown: fewer than " + strconv.Itoa(epdapi.MinHeldOut) + " held-out runs to compare"
	case e.IsCertain():
		certain = "sure"
	case e.Needed > 0:
		certain += ": about " + report.Plural(int(e.Needed), "more held-out run")
	}
	known := func(x float64) report.Value {
		if e.Runs == 0 {
			x = math.NaN()
		}
		return report.Number(x)
	}
	percent := func(key, head string, group int, x float64) {
		row.Add(report.Column{Key: key, Head: head, Unit: report.Fraction, Digits: 2, Group: group},
			report.Number(x))
	}
	row.Add(report.Column{Key: "compared_runs", Head: "runs"}, report.Count(int(e.Runs)))
	row.Add(report.Column{Key: "compared_held_out_runs", Head: "held out"}, report.Count(int(e.Against)))
	row.Add(report.Column{Key: "baseline_j", Head: "at default", Unit: report.KilowattHours, Group: 1},
		known(e.BaselineJ))
	row.Add(report.Column{Key: "saved_j", Head: "saved", Unit: report.KilowattHours, Group: 1}, known(e.SavedJ))
	row.Add(report.Column{Key: "saved_low_j"}, known(e.LowJ))
	row.Add(report.Column{Key: "saved_high_j"}, known(e.HighJ))
	percent("saved", "saved", 2, e.SavedJ/e.BaselineJ)
	percent("saved_low", "low", 2, e.LowJ/e.BaselineJ)
	percent("saved_high", "high", 2, e.HighJ/e.BaselineJ)
	percent("longer", "longer", 3, took.Part(took.LongerS))
	percent("longer_low", "low", 3, took.Part(took.LowS))
	percent("longer_high", "high", 3, took.Part(took.HighS))
	row.Add(report.Column{Key: "sure", Head: "how sure", Left: true}, report.Text(certain))
}
