package planreport

import (
	"fmt"
	"math"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/hours"
	"github.com/epplan/epplan/planner/powerbudget"
	"github.com/epplan/epplan/queue"
)

// FlexTable returns what a plan can do without in some windows of time, a row each, and what that costs: in a
// currency, too, where there are prices.
func FlexTable(
	p *planner.Problem, plan *planner.Plan, all []*powerbudget.Flex, prices hours.Prices, currency string,
) *report.Table {
	turnaround := func(plan *planner.Plan) float64 {
		s := (&Result{Problem: p, Plan: plan}).summary()
		return s.Turnaround.Mean
	}
	cost := func(plan *planner.Plan) float64 {
		money, err := prices.Cost(p, plan)
		if err != nil { // GPUs are shared, which no window is for
			return math.NaN()
		}
		return money
	}
	before := turnaround(plan)
	return report.TableOf(all, func(row *report.Row, f **powerbudget.Flex) {
		add := func(key, head string, unit report.Unit, group int, v float64) {
			row.Add(report.Column{Key: key, Head: head, Unit: unit, Group: group}, report.Number(v))
		}
		x := *f
		add("from_s", "from", report.Seconds, 0, x.Window.From)
		add("for_s", "for", report.Seconds, 0, x.Window.To-x.Window.From)
		add("mean_w", "takes", report.Watts, 1, float64(x.Mean))
		add("peak_w", "at most", report.Watts, 1, float64(x.Peak))
		add("then_mean_w", "then", report.Watts, 1, float64(x.KeptMean))
		add("cap_w", "then at most", report.Watts, 1, float64(x.Cap))
		add("gives_w", "gives", report.Watts, 1, float64(x.Reduction()))
		after := turnaround(x.Kept)
		row.Add(report.Column{Head: "turnaround", Unit: report.Fraction}, report.Number(after/before-1))
		row.Add(report.Column{Head: "energy", Unit: report.Fraction},
			report.Number(float64(x.Kept.Ledger.Total()/plan.Ledger.Total())-1))
		if len(prices.Function) > 0 {
			now, then := cost(plan), cost(x.Kept)
			row.Add(report.Column{Head: "cost", Note: queue.Printable(currency)},
				report.Text(fmt.Sprintf("%+.2f", then-now)))
			row.Add(report.Column{Key: "cost"}, report.Number(now))
			row.Add(report.Column{Key: "then_cost"}, report.Number(then))
		}
		row.Add(report.Column{Key: "turnaround_mean_s"}, report.Number(before))
		row.Add(report.Column{Key: "then_turnaround_mean_s"}, report.Number(after))
		row.Add(report.Column{Key: "energy_j"}, report.Number(float64(plan.Ledger.Total())))
		row.Add(report.Column{Key: "then_energy_j"}, report.Number(float64(x.Kept.Ledger.Total())))
	})
}
