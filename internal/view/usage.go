package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// Usage returns the view of the energy that jobs used in a period, of its cost, and of the savings.
func Usage(u *epdapi.Usage) *View {
	period := periodText(u.Since, u.Until)
	v, nobodys := &View{Title: "Energy of jobs " + period}, "no job"
	if u.Own {
		v.Title, nobodys = "Energy of your jobs "+period, "no job of "+slurm.Printable(u.User, 40)
	}
	switch {
	case u.Own && u.User == "":
		v.add("Used", "nobody knows who you are, so no job is yours")
		return v
	case u.Total.Runs == 0:
		v.addPruned(u)
		v.add("Used", nobodys+" ended "+period)
		return v
	}
	v.addUsed(u)
	v.addPruned(u)
	if u.Log == "" {
		v.addSavings(u)
	}
	what := groupWord(u.By)
	if len(u.Groups) > 0 {
		groups := UsageGroups(u)
		v.Tables = append(v.Tables, Table{"By " + what, groups})
		v.addSection("groups", "By "+what, usageFigure(u, what), groups.Page("By "+what, groupsNote(u), -1))
		if u.Log == "" {
			saved := GroupSavings(u)
			v.Tables = append(v.Tables, saved)
			v.addSection("saved-by", saved.Caption, saved.Page(saved.Caption, savedNote, -1))
		}
	}
	if len(u.Over) > 1 {
		parts := usageParts(u)
		v.Tables = append(v.Tables, Table{"Over time", parts})
		v.addSection("time", "Over time", usageOverFigure(u), parts.Page("Over time",
			"A run counts on the day it ended.", -1))
	}
	return v
}

// addSavings adds what was saved: as it was measured, where that is known, and by the models.
func (v *View) addSavings(u *epdapi.Usage) {
	s := u.Savings
	if s == nil {
		if m := &u.Total.Modelled; m.Runs > 0 {
			v.add("Saved", modelledText(m))
		} else {
			v.add("Saved", "unknown: none of them ended at chosen clocks with a known energy")
		}
		return
	}
	v.Lead = savingsLead(s)
	best, of := s.Best()
	all := comparisonsOf(s)
	for i := range all {
		if all[i].saving == best {
			v.add("Saved, "+of, all[i].text()...)
			v.Tiles = append(v.Tiles, savingTile("Saved of "+of+", measured", best, ""))
		}
	}
	if s.Time.Runs > 0 {
		v.add("Time", "at chosen clocks "+s.Time.Words(heldOut))
		v.Tiles = append(v.Tiles, timeTile(&s.Time))
	}
	if best.Runs > 0 && FootprintText(&s.Factors, 1) != "" {
		v.add("Worth", worthText(s))
	}
	if m := &u.Total.Modelled; m.Runs > 0 {
		v.add("Modelled", modelledText(m))
	}
	v.Notices = append(v.Notices, savingsNotices(s)...)
}

// addPruned says which runs are in no group.
func (v *View) addPruned(u *epdapi.Usage) {
	if u.Pruned == nil {
		return
	}
	runs, ofThem := report.Plural(int(u.Pruned.Runs), "run"), "no group and no part of the period includes them"
	if u.Own {
		runs, ofThem = runs+" of all users", "yours among them don't count here"
	}
	v.notice(page.Warn, fmt.Sprintf("of %s with %s only monthly totals remain (keep_days): %s", runs,
		report.EnergyText(u.Pruned.EnergyJ), ofThem))
}

// groupKey returns the key of the column with the groups, in JSON and CSV.
func groupKey(by string) string {
	if slices.Contains(record.Groupings, by) {
		return by
	}
	return "group"
}

// groupWord returns the heading of the groups.
func groupWord(by string) string {
	if by == "gpu" {
		return "GPU model"
	}
	return groupKey(by)
}

// addUsed adds the energy used, its cost, and the number of runs without a known energy.
func (v *View) addUsed(u *epdapi.Usage) {
	t := &u.Total
	var who []string
	if t.Jobs > 0 {
		who = append(who, report.Plural(int(t.Jobs), "job"))
	}
	if t.Runs != t.Jobs {
		who = append(who, report.Plural(int(t.Runs), "run")+" of one node each")
	}
	if t.GPUS > 0 {
		who = append(who, report.AmountText(t.GPUS/3600)+" GPU-hours")
	}
	by, known, of := strings.Join(who, ", "), knownText(u), energyOf(u)
	used := []string{report.EnergyText(t.EnergyJ) + " by " + by, of}
	if unknown := t.Runs - t.EnergyRuns; unknown > 0 && u.Pruned == nil {
		used = append(used, "the energy of "+report.Plural(int(unknown), "run")+" isn't known")
	}
	v.add("Used", used...)
	v.Tiles = append(v.Tiles, page.Tile{
		Label: "Used", Value: report.EnergyText(t.EnergyJ), Note: strings.TrimSpace(by + "; " + of + " " + known),
	})
	if t.IdleGPUS > 0 {
		v.add("Idle", "GPUs that jobs held had no work for "+report.AmountText(t.IdleGPUS/3600)+" GPU-hours",
			report.EnergyText(t.IdleJ)+" at their idle power")
	}
	if cost := FootprintText(&u.Factors, t.EnergyJ); cost == "" {
		v.add("Cost", "unknown: the configuration states no constant [factors]")
	} else {
		lines := []string{cost + fmt.Sprintf(", with a PUE of %v", max(1, u.Factors.PUE))}
		if known != "" {
			lines = append(lines, known)
		}
		if u.Factors.Series {
			lines = append(lines, "by constant factors: what [factors] series has by the hour doesn't count")
		}
		v.add("Cost", lines...)
		of := cmp.Or(known, "of all that was used")
		v.Tiles = append(v.Tiles, page.Tile{Label: "Cost", Value: cost, Note: of})
	}
}

// knownText says of which part of the runs the energy is known, "" if of all.
func knownText(u *epdapi.Usage) string {
	t, runs := &u.Total, u.Total.Runs
	if u.Pruned != nil { // nobody knows of how many of these
		runs -= u.Pruned.Runs
	}
	if t.EnergyRuns >= runs {
		return ""
	}
	text := "of the " + report.FormatPercent(float64(t.EnergyRuns)/float64(runs)) +
		" of the runs whose energy is known"
	if t.EnergyGPUS > 0 {
		text += ", with " + report.AmountText(t.EnergyGPUS/3600) + " of " + report.AmountText(t.GPUS/3600) +
			" GPU-hours"
	}
	return text
}

// energyOf says whether an energy covers nodes or GPUs alone.
func energyOf(usage *epdapi.Usage) string {
	u := &usage.Total
	switch known := max(1, u.EnergyRuns); {
	case usage.Log != "":
		return "energy as the log states it, of GPUs or nodes"
	case u.NodeRuns == 0:
		return "energy of the GPUs alone"
	case u.NodeRuns >= known:
		return "energy of the nodes"
	default:
		return "energy of the nodes for " + report.FormatPercent(float64(u.NodeRuns)/float64(known)) +
			" of the runs, of the GPUs alone for the others"
	}
}

// UsageGroups returns the table of the groups.
func UsageGroups(u *epdapi.Usage) *report.Table { return groupTable(u, allGroups(u)) }

// UsageTotal returns the table of the groups with a last row for all runs.
func UsageTotal(u *epdapi.Usage) *report.Table {
	total := u.Total
	total.Key = "total"
	return groupTable(u, append(slices.Clip(allGroups(u)), total))
}

func allGroups(u *epdapi.Usage) []epdapi.UsageSum {
	all := u.Groups
	if u.Others != nil {
		others := *u.Others
		others.Key = "the other " + report.FormatCount(u.OtherCount)
		all = append(slices.Clip(all), others)
	}
	return all
}

func groupTable(u *epdapi.Usage, all []epdapi.UsageSum) *report.Table {
	return report.TableOf(all, func(row *report.Row, g *epdapi.UsageSum) {
		row.Add(report.Column{Key: groupKey(u.By), Head: groupWord(u.By), Left: true, Max: 40},
			report.Text(groupName(u, g)))
		addUsage(row, u, g)
		if u.Log != "" {
			return
		}
		row.Add(report.Column{Key: "idle_gpu_s"}, report.Number(g.IdleGPUS))
		row.Add(report.Column{Head: "idle GPU h"}, report.Text(report.AmountText(g.IdleGPUS/3600)))
		row.Add(report.Column{Key: "idle_j", Head: "idle", Unit: report.KilowattHours, Group: 1},
			report.Number(g.IdleJ))
	})
}

// savedNote says how to read the savings of groups.
const savedNote = "Measured against held-out runs of the same group. One in 20 intervals doesn't hold the true saving. " +
	"The savings don't add up to that of all jobs: it also includes groups with few held-out runs."

// GroupSavings returns the table of what the jobs of each group saved, measured.
func GroupSavings(u *epdapi.Usage) Table {
	table := report.TableOf(u.Groups, func(row *report.Row, g *epdapi.UsageSum) {
		m := g.Measured
		if m == nil {
			m = &epdapi.GroupSaving{}
		}
		best, of := m.Best()
		if m.EnergyOf == epdapi.OfModules && best == &m.GPU {
			of = "modules"
		}
		row.Add(report.Column{Key: groupKey(u.By), Head: groupWord(u.By), Left: true, Max: 40},
			report.Text(groupName(u, g)))
		row.Add(report.Column{Key: "energy_j", Head: "used", Unit: report.KilowattHours, Group: 1},
			report.Number(g.EnergyJ))
		row.Add(report.Column{Key: "treated_runs"}, report.Count(int(m.Treated)))
		row.Add(report.Column{Key: "held_out_runs"}, report.Count(int(m.HeldOut)))
		row.Add(report.Column{Key: "saved_of", Head: "saving of", Left: true}, report.Text(of))
		addSaving(row, best, &m.Time)
	})
	return Table{"Saved by " + groupWord(u.By), table}
}

func groupName(u *epdapi.Usage, g *epdapi.UsageSum) string {
	switch {
	case g.Key == "":
		return "not known"
	case u.By == "workload":
		return g.LastJob.WordsOf(g.Key)
	}
	return slurm.Printable(g.Key, 200)
}

// usageParts returns the table of the period's parts.
func usageParts(u *epdapi.Usage) *report.Table {
	return report.TableOf(u.Over, func(row *report.Row, p *epdapi.UsagePart) {
		row.Add(report.Column{Key: "from", Head: "from", Left: true}, report.Text(partName(p)))
		addUsage(row, u, &p.UsageSum)
	})
}

// partName returns a day, or a month.
func partName(p *epdapi.UsagePart) string {
	if p.Until.Sub(p.From) <= 25*time.Hour {
		return p.From.Local().Format(time.DateOnly)
	}
	return p.From.Local().Format("2006-01")
}

// addUsage adds the columns of a group or of a part of the period.
func addUsage(row *report.Row, u *epdapi.Usage, g *epdapi.UsageSum) {
	row.Add(report.Column{Key: "jobs", Head: "jobs"}, report.Count(int(g.Jobs)))
	row.Add(report.Column{Key: "runs"}, report.Count(int(g.Runs)))
	row.Add(report.Column{Key: "gpu_s"}, report.Number(g.GPUS))
	row.Add(report.Column{Head: "GPU h"}, report.Text(report.AmountText(g.GPUS/3600)))
	energy := func(key, head string, joules float64) {
		row.Add(report.Column{Key: key, Head: head, Unit: report.KilowattHours, Group: 1}, report.Number(joules))
	}
	energy("energy_j", "used", g.EnergyJ)
	row.Add(report.Column{Key: "gpu_energy_j"}, report.Number(g.GPUEnergyJ))
	row.Add(report.Column{Key: "node_energy_j"}, report.Number(g.NodeEnergyJ))
	row.Add(report.Column{Key: "part", Head: "part", Unit: report.Fraction, Digits: 2},
		report.Number(g.EnergyJ/max(u.Total.EnergyJ, 1)))
	addFootprint(row, &u.Factors, g.EnergyJ)
	if u.Log == "" {
		energy("held_out_j", "held out", g.HeldOutJ)
		energy("modelled_saved_j", "saved, modelled", g.Modelled.SavedJ())
	}
	row.Add(report.Column{Key: "energy_unknown_runs", Head: "energy unknown"},
		report.Count(int(g.Runs-g.EnergyRuns)))
}

// addFootprint adds the columns of what an energy costs, as far as factors are stated; NaN: it isn't known.
func addFootprint(row *report.Row, f *epdapi.Factors, joules float64) {
	cost := f.FootprintOf(joules)
	add := func(key, head, note string, value, shown float64) {
		text := ""
		if !math.IsNaN(shown) {
			text = report.AmountText(shown)
		}
		row.Add(report.Column{Key: key}, report.Number(value))
		row.Add(report.Column{Head: head, Note: note}, report.NonEmpty(text))
	}
	if f.CostPerKWh > 0 {
		add("cost", "cost", slurm.Printable(f.Currency, 12), cost.Cost, cost.Cost)
		row.Add(report.Column{Key: "currency"}, report.Text(f.Currency))
	}
	if f.CarbonPerKWh > 0 {
		add("carbon_g", "CO2", "kg", cost.Carbon, cost.Carbon/1000)
	}
	if f.WaterPerKWh > 0 {
		add("water_l", "water", "m³", cost.Water, cost.Water/1000)
	}
}

func groupsNote(u *epdapi.Usage) string {
	if u.Log != "" {
		return ""
	}
	note := "The saving is the models' estimate for the GPUs, not a measurement."
	if u.Pruned != nil {
		note += " No row includes pruned runs."
	}
	return note
}

// maxUsageBars limits the groups in the picture.
const maxUsageBars = 12

func usageFigure(u *epdapi.Usage, what string) *page.Figure {
	rows := make([]report.BarRow, min(len(u.Groups), maxUsageBars))
	for i := range rows {
		rows[i] = usageBar(groupName(u, &u.Groups[i]), &u.Groups[i])
	}
	return barsOf("by-group", "Energy by "+what, rows)
}

func usageOverFigure(u *epdapi.Usage) *page.Figure {
	rows := make([]report.BarRow, len(u.Over))
	for i := range u.Over {
		rows[i] = usageBar(partName(&u.Over[i]), &u.Over[i].UsageSum)
	}
	return barsOf("over-time", "Energy over time", rows)
}

func usageBar(name string, g *epdapi.UsageSum) report.BarRow {
	row := report.BarRow{Name: name, Value: g.EnergyJ}
	if saved := g.Modelled.SavedJ(); saved > 0 {
		row.Reference = g.EnergyJ + saved
	}
	return row
}

func barsOf(id, title string, rows []report.BarRow) *page.Figure {
	values := make([]float64, len(rows))
	for i := range rows {
		values[i] = rows[i].Value
	}
	return &page.Figure{
		ID: "figure-" + id, Caption: title + ". The outline is the models' estimate for default clocks. The table " +
			"has the numbers.",
		SVG: report.DrawBarRows(id, title, title+", a bar each.", "used", "at default clocks, modelled",
			report.CommonScale(report.KilowattHours, report.ColumnDigits, values...), rows),
	}
}
