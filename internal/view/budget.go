package view

import (
	"fmt"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/live"
)

// Budgets returns the view of power budgets, of what the nodes take, and of the events that lower budgets.
func Budgets(list *epdapi.BudgetList) *View {
	v := &View{}
	if len(list.Scopes) == 0 {
		v.notice(page.Info, "There is no power budget: the configuration has none in [budget]")
		return v
	}
	kept := "by the GPUs' power limits (enforce)"
	if list.Mode != live.Enforce {
		kept = fmt.Sprintf("not at all: it is only watched (%s)", list.Mode)
	}
	v.add("Kept", kept)
	for i := range list.Scopes {
		v.noticesOf(&list.Scopes[i], list.Mode)
	}
	v.Tables = append(v.Tables, Table{"Budgets of GPUs with their hosts", scopeTable(list.Scopes)})
	if len(list.Events) > 0 {
		v.Tables = append(v.Tables, Table{"Events that lower a budget", eventTable(list.Events)})
	}
	return v
}

// noticesOf says what keeps a budget from being kept.
func (v *View) noticesOf(s *epdapi.BudgetScope, mode live.Mode) {
	if mode == live.Enforce && s.Short > 0 {
		v.notice(
			page.Bad,
			fmt.Sprintf("%s: the least power limits, and what can't be limited, are %s above the budget",
				s.Scope, report.FormatWatts(s.Short)),
		)
	}
	if over := float64(s.Measured) - s.Budget.Or(float64(s.Measured)); over > 0 {
		v.notice(
			page.Bad,
			fmt.Sprintf("%s: measured power is %s above the budget", s.Scope, report.FormatWatts(over)),
		)
	}
	for _, kind := range []struct {
		one, many string
		names     []string
	}{
		{"1 GPU draws more than its power limit", "%d GPUs draw more than their power limits", s.Ignoring},
		{
			"1 GPU has no power limit that can be set, and counts by what its board takes at most",
			"%d GPUs have no power limits that can be set, and count by what their boards take at most", s.Unlimited,
		},
		{
			"1 node doesn't report: its limits stay as they last were",
			"%d nodes don't report: their limits stay as they last were", s.Silent,
		},
	} {
		n := len(kind.names)
		if n == 0 || mode != live.Enforce {
			continue
		}
		text := kind.one
		if n > 1 {
			text = fmt.Sprintf(kind.many, n)
		}
		v.notice(page.Warn, s.Scope+": "+text, kind.names[:min(n, maxNamed)]...)
	}
}

// maxNamed is how many GPUs or nodes a notice names.
const maxNamed = 20

func scopeTable(list []epdapi.BudgetScope) *report.Table {
	return report.TableOf(list, func(row *report.Row, s *epdapi.BudgetScope) {
		row.Add(report.Column{Key: "scope", Head: "scope", Left: true, Max: 24}, report.Text(s.Scope))
		row.Add(report.Column{Key: "kind", Head: "of", Left: true}, report.Text(s.Kind))
		watts := func(key, head string, w live.Number) {
			text := dash
			if x, known := w.Get(); known {
				text = report.FormatWatts(x)
			}
			row.Add(report.Column{Key: key, Head: head}, report.Text(text))
		}
		watts("budget_w", "budget", s.Budget)
		watts("in_force_w", "allowed by limits", live.Known(float64(s.InForce)))
		watts("measured_w", "measured", live.Known(float64(s.Measured)))
		watts("spare_w", "spare", s.Spare)
		row.Add(report.Column{Key: "gpus", Head: "GPUs"}, report.Text(report.FormatCount(s.GPUs)))
		slowed := report.FormatCount(s.Slowed)
		if times, known := s.Slowdown.Get(); known {
			slowed += " by " + report.FormatPercent(times-1)
		}
		row.Add(report.Column{Key: "slowed_gpus", Head: "slowed"}, report.Text(slowed))
	})
}

func eventTable(list []epdapi.BudgetEvent) *report.Table {
	return report.TableOf(list, func(row *report.Row, e *epdapi.BudgetEvent) {
		row.Add(report.Column{Key: "id", Head: "id", Left: true}, report.Text(e.ID))
		row.Add(report.Column{Key: "scope", Head: "scope", Left: true, Max: 24}, report.Text(e.Scope))
		row.Add(report.Column{Key: "watts", Head: "budget"}, report.Text(report.FormatWatts(e.Watts)))
		row.Add(report.Column{Key: "from", Head: "from", Left: true}, report.Text(DateTime(e.From)))
		row.Add(report.Column{Key: "until", Head: "until", Left: true}, report.Text(DateTime(e.Until)))
		row.Add(report.Column{Key: "ramp_s", Head: "ramp"}, report.Text(report.FormatSeconds(e.RampS)))
		row.Add(report.Column{Key: "by", Head: "set by", Left: true, Max: 16}, report.Text(e.By))
	})
}
