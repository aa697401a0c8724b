package view

import (
	"math"
	"strconv"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
)

// Year returns the view of a year's usage by months: the IT energy of GPU nodes while jobs ran on them.
func Year(u *epdapi.Usage, now time.Time) *View {
	year := strconv.Itoa(u.Since.Local().Year())
	v := &View{Title: "IT energy of GPU nodes in " + year}
	if u.Total.Runs == 0 {
		v.add("Used", "no job ended in "+year)
	} else {
		v.addUsed(u)
		v.addSavings(u)
	}
	v.notice(page.Info, "IT energy is that of GPU nodes while jobs ran on them. Idle nodes, nodes without epd, "+
		"storage and network aren't included: it is a part of the E_IT that Delegated Regulation (EU) 2024/1364 "+
		"asks for.")
	all := yearMonths(u, now)
	total := yearMonth{name: year}
	for i := range all {
		total.add(&all[i].UsagePart)
	}
	if total.isEmpty() {
		total.data = noData
	}
	months := yearTable(u, append(all, total))
	v.Tables = []Table{{"By month", months}}
	v.addSection("months", "By month", months.Page("By month", "Measured: GPUs and CPUs by their counters, or "+
		"nodes by Slurm's accounting. Hosts modelled: GPUs measured, the rest of the node estimated. GPUs alone: "+
		"the rest isn't known. Pruned: of these runs only sums are kept.", -1))
	return v
}

// YearMonths returns the table of a year's months, without their sum.
func YearMonths(u *epdapi.Usage, now time.Time) *report.Table {
	return yearTable(u, yearMonths(u, now))
}

// noData marks a past month in which no job is known to have ended.
const noData = "no data"

// yearMonth is the usage of a month, and what there is to say of its data.
type yearMonth struct {
	epdapi.UsagePart
	name, data string
}

func (m *yearMonth) add(p *epdapi.UsagePart) {
	m.Add(&p.UsageSum)
	m.PrunedJ += p.PrunedJ
}

// isEmpty reports whether no job is known to have ended in the month.
func (m *yearMonth) isEmpty() bool { return m.Runs == 0 && m.PrunedJ == 0 }

// yearMonths returns the twelve months of a year, also those without data.
func yearMonths(u *epdapi.Usage, now time.Time) []yearMonth {
	all := make([]yearMonth, 12)
	for i := range all {
		m := &all[i]
		m.From = time.Date(u.Since.Local().Year(), time.Month(1+i), 1, 0, 0, 0, 0, time.Local)
		m.Until = m.From.AddDate(0, 1, 0)
		m.name = m.From.Format("2006-01")
		known := m.From
		for k := range u.Over {
			if p := &u.Over[k]; !p.From.Before(m.From) && p.From.Before(m.Until) {
				m.add(p)
				known = p.Until
			}
		}
		switch {
		case m.From.After(now):
			m.data = "to come"
		case m.Until.After(now):
			m.data = "so far"
		case m.isEmpty():
			m.data = noData
		case known.Before(m.Until):
			m.data = "until " + known.Local().Format(time.DateOnly)
		}
	}
	return all
}

func yearTable(u *epdapi.Usage, months []yearMonth) *report.Table {
	return report.TableOf(months, func(row *report.Row, m *yearMonth) {
		known := func(joules float64) float64 {
			if m.isEmpty() {
				return math.NaN()
			}
			return joules
		}
		add := func(key, head string, joules float64) {
			joules = known(joules)
			row.Add(report.Column{Key: key}, report.Number(dvfsmodel.Joule(joules).KWh()))
			row.Add(report.Column{Head: head, Unit: report.KilowattHours, Group: 1}, report.Number(joules))
		}
		row.Add(report.Column{Key: "month", Head: "month", Left: true}, report.Text(m.name))
		row.Add(report.Column{Key: "runs", Head: "runs"}, report.Count(int(m.Runs)))
		add("measured_kwh", "measured", m.NodeEnergyJ-m.NodeModelledJ)
		add("host_modelled_kwh", "hosts modelled", m.NodeModelledJ)
		add("gpus_alone_kwh", "GPUs alone", m.EnergyJ-m.NodeEnergyJ)
		add("pruned_kwh", "pruned", m.PrunedJ)
		it := m.EnergyJ + m.PrunedJ
		add("it_kwh", "IT energy", it)
		if u.Factors.PUE > 1 {
			add("site_kwh", "with PUE", it*u.Factors.PUE)
		}
		addFootprint(row, &u.Factors, known(it))
		row.Add(report.Column{Key: "energy_unknown_runs", Head: "energy unknown"},
			report.Count(int(m.Runs-m.EnergyRuns)))
		row.Add(report.Column{Key: "data", Head: "data", Left: true}, report.NonEmpty(m.data))
	})
}
