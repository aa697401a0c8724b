package planreport

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/queue"
)

// Hours are jobs that could wait for hours in which energy costs less.
type Hours struct {
	Slack  float64 // that they could begin later, seconds
	Unit   string  // of the costs: a currency, or g of CO2
	Cost   float64 // of the plan's energy, by the hour
	AtOnce float64 // of that of the same policy's plan in which all may start when they arrive
	Later  int     // jobs that begin later
	Bound  float64 // that no plan costs less than which promises as much; 0: not known
}

// text returns one line.
func (h *Hours) text() string {
	slack := report.FormatSeconds(h.Slack)
	if h.Later == 0 {
		return fmt.Sprintf("jobs could begin up to %s later, none does: that costs no less than %s %s, or ends "+
			"jobs late", slack, report.AmountText(h.Cost), queue.Printable(h.Unit))
	}
	part := ""
	if h.AtOnce > 0 { // prices are below 0 at times
		part = fmt.Sprintf("%+.1f %% of ", 100*(h.Cost/h.AtOnce-1))
	}
	bound := ""
	if h.Bound > 0 {
		bound = "; no plan costs less than " + report.AmountText(h.Bound)
	}
	return fmt.Sprintf("%s %s by the hour, %sthe %s that it costs if all begin at once; %d jobs "+
		"begin later, up to %s%s", report.AmountText(h.Cost), queue.Printable(h.Unit), cmp.Or(part, "not "),
		report.AmountText(h.AtOnce), h.Later, slack, bound)
}

// object returns it as JSON.
func (h *Hours) object() report.Value {
	unit, err := json.Marshal(h.Unit)
	if err != nil { // a string
		unit = []byte(`""`)
	}
	bound := report.NonZero(h.Bound)
	return report.JSON(fmt.Sprintf(
		`{"slack_s": %v, "unit": %s, "cost": %v, "cost_at_once": %v, "cost_bound": %s, "jobs_later": %d}`,
		h.Slack, unit, h.Cost, h.AtOnce, bound.AppendJSON(nil), h.Later))
}
