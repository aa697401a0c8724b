package replay

import (
	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/report"
)

// footprint is what energy costs, and how much less that is than under the baseline; nil: nobody says.
type footprint struct {
	Cost        *float64 `json:"cost,omitempty"`
	CostSaved   *float64 `json:"cost_saved,omitempty"`
	Currency    string   `json:"currency,omitempty"`
	Carbon      *float64 `json:"carbon_g,omitempty"`
	CarbonSaved *float64 `json:"carbon_saved_g,omitempty"`
	Water       *float64 `json:"water_l,omitempty"`
	WaterSaved  *float64 `json:"water_saved_l,omitempty"`
}

// footprint returns the medians of the draws.
func (h *historyReplay) footprint(
	run, base *historyRun, spent func(c *historyCost) config.Footprint,
) (f footprint) {
	for _, one := range []struct {
		is, saved **float64
		of        func(config.Footprint) float64
	}{
		{&f.Cost, &f.CostSaved, func(s config.Footprint) float64 { return s.Cost }},
		{&f.Carbon, &f.CarbonSaved, func(s config.Footprint) float64 { return s.Carbon }},
		{&f.Water, &f.WaterSaved, func(s config.Footprint) float64 { return s.Water }},
	} {
		if one.of(base.draws[0].Spent) == 0 {
			continue
		}
		is := report.IntervalOf(h.draws, func(i int) float64 { return one.of(spent(&run.draws[i])) }).Value
		saved := report.IntervalOf(h.draws, func(i int) float64 {
			return one.of(spent(&base.draws[i])) - one.of(spent(&run.draws[i]))
		}).Value
		*one.is, *one.saved = &is, &saved
	}
	if f.Cost != nil {
		f.Currency = h.setup.Config.Factors.Currency
	}
	return f
}

// text returns what is known in a line, "" if nothing is.
func (f *footprint) text() string {
	return report.StatedText(&config.StatedFootprint{Cost: f.Cost, Carbon: f.Carbon, Water: f.Water}, f.Currency)
}

// savedText is [footprint.text] of what is saved.
func (f *footprint) savedText() string {
	return report.StatedText(&config.StatedFootprint{
		Cost: f.CostSaved, Carbon: f.CarbonSaved, Water: f.WaterSaved,
	}, f.Currency)
}

// addKeys adds the columns for machines.
func (f *footprint) addKeys(row *report.Row) {
	add := func(key string, value *float64) {
		if value != nil {
			row.Add(report.Column{Key: key}, report.Number(*value))
		}
	}
	add("cost", f.Cost)
	add("cost_saved", f.CostSaved)
	if f.Cost != nil {
		row.Add(report.Column{Key: "currency"}, report.Text(f.Currency))
	}
	add("carbon_g", f.Carbon)
	add("carbon_saved_g", f.CarbonSaved)
	add("water_l", f.Water)
	add("water_saved_l", f.WaterSaved)
}

// costTable returns what each policy's energy costs, for people; nil: nobody says.
func (r *HistoryReport) costTable() *report.Table {
	if r.Policies[0].text() == "" {
		return nil
	}
	return report.TableOf(r.Policies, func(row *report.Row, p *historyPolicy) {
		row.Add(report.Column{Head: "policy", Left: true}, report.Text(p.Policy))
		row.Add(report.Column{Head: "cost", Left: true}, report.Text(p.text()))
		row.Add(report.Column{Head: "saved", Left: true}, report.Text(p.savedText()))
	})
}

// costCaption says what [HistoryReport.costTable] is of.
const costCaption = "What the cluster's energy costs"

// costText returns what the last policy's energy costs, "" if nobody says.
func (r *HistoryReport) costText() string {
	p := r.lastPolicy()
	text := p.text()
	if text == "" {
		return ""
	}
	if r.hourly {
		text += ", by the hour,"
	}
	return text + " under " + p.Policy + "; saved against the first row: " + p.savedText()
}
