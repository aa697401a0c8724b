package view

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/live"
)

// Plan returns the view of the plan of Slurm's queue that is in force: with tables of so many tasks
// that are to start first, and of how the last starts kept to it.
func Plan(p *live.Plan, most int) *View {
	v := &View{}
	made := fmt.Sprintf("%s of %s: %s", p.Policy, DateTime(p.At), report.Plural(len(p.Jobs), "task"))
	if p.EnergyJ > 0 {
		made += ", " + report.FormatJoules(p.EnergyJ)
	}
	if made += ", made in " + report.FormatSeconds(p.TookS); p.Without > 0 {
		made += fmt.Sprintf("; %d have no place in it", p.Without)
	}
	v.add("Plan", made)
	v.addKept(&p.Record)
	if p.Stale != "" {
		v.notice(page.Warn, "The plan counts no more: "+p.Stale+
			"; jobs get the clocks that they would have without it")
	}
	if p.Trouble != "" {
		v.notice(page.Warn, "There is no newer plan: "+p.Trouble)
	}
	if n := min(len(p.Jobs), most); n > 0 {
		v.Tables = append(v.Tables, Table{"What is planned next", plannedTable(p.Jobs[:n])})
	}
	if len(p.Recent) > 0 {
		v.Tables = append(v.Tables, Table{"How the last starts kept to it", startsTable(p.Recent)})
	}
	return v
}

// keptWords are how starts keep to plans, the best first.
var keptWords = []struct {
	how  live.PlanKept
	what string
}{
	{live.KeptAsPlanned, "as planned"},
	{live.KeptEarlier, "earlier"},
	{live.KeptLater, "later"},
	{live.KeptElsewhere, "on another GPU model"},
	{live.KeptUnknown, "not known to the plan"},
	{live.KeptNoPlace, "without a place in it"},
	{live.KeptStale, "while it was stale"},
	{live.KeptHeldOut, "held out at random"},
}

// addKept adds how starts and runs kept to plans, if any did.
func (v *View) addKept(r *live.PlanRecord) {
	var parts []string
	for _, w := range keptWords {
		if n := r.Starts[w.how]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, w.what))
		}
	}
	if len(parts) == 0 {
		return
	}
	text := strings.Join(parts, ", ")
	if part, ok := r.KeptShare().Get(); ok {
		text = report.FormatPercent(part) + " as planned (" + text + ")"
	}
	v.add("Starts", text)
	if r.Ended > 0 {
		v.add("Runs", fmt.Sprintf("%d at planned clocks, planned %s, measured %s; %d took over a tenth longer",
			r.Ended, report.FormatJoules(r.PlannedJ), report.FormatJoules(r.MeasuredJ), r.Longer))
	}
	if r.NotLocked > 0 {
		v.add("Not locked", report.Plural(int(r.NotLocked), "run")+" didn't get the planned clocks, see epplan status")
	}
}

// startsTable returns the last starts beside what was planned for them.
func startsTable(list []live.PlanStart) *report.Table {
	return report.TableOf(list, func(row *report.Row, s *live.PlanStart) {
		start, nodes := dash, dash
		if s.Planned != nil {
			start, nodes = DateTime(s.Planned.Start), s.Planned.NodeClass
		}
		how := string(s.How)
		for _, w := range keptWords {
			if w.how == s.How {
				how = w.what
			}
		}
		job := strconv.FormatUint(uint64(s.Job), 10)
		row.Add(report.Column{Key: "job_id", Head: "started", Left: true}, report.Text(job))
		row.Add(report.Column{Key: "user", Head: "user", Left: true, Max: 16}, report.Text(s.User))
		row.Add(report.Column{Key: "at", Head: "at", Left: true}, report.Text(DateTime(s.At)))
		row.Add(report.Column{Key: "gpu_model", Head: "on", Left: true, Max: 24}, report.Text(s.GPUModel))
		row.Add(report.Column{Key: "planned", Head: "planned", Left: true}, report.Text(start))
		row.Add(report.Column{Key: "node_class", Head: "nodes", Left: true, Max: 24}, report.Text(nodes))
		row.Add(report.Column{Key: "how", Head: "how", Left: true}, report.Text(how))
	})
}

// plannedTable returns what a plan has for tasks.
func plannedTable(list []live.PlannedJob) *report.Table {
	return report.TableOf(list, func(row *report.Row, j *live.PlannedJob) {
		why := j.Reason
		if j.HeldOut {
			why += "; held out at random"
		}
		row.Add(report.Column{Key: "task", Head: "planned", Left: true, Max: 24}, report.Text(j.Task))
		row.Add(report.Column{Key: "user", Head: "user", Left: true, Max: 16}, report.Text(j.User))
		row.Add(report.Column{Key: "start", Head: "start", Left: true}, report.Text(DateTime(j.Start)))
		row.Add(report.Column{Key: "end", Head: "end", Left: true}, report.Text(DateTime(j.End)))
		row.Add(report.Column{Key: "node_class", Head: "nodes", Left: true, Max: 24}, report.Text(j.NodeClass))
		row.Add(report.Column{Key: "clocks", Head: "clocks", Left: true}, report.Text(j.Words()))
		row.Add(report.Column{Key: "reason", Head: "why", Left: true, Max: 80}, report.Text(why))
	})
}
