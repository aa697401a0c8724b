package planreport

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// maxText is how many bytes of what a controller says are shown.
const maxText = 400

// InForceText returns the plan of Slurm's queue that is in force, in lines; empty: there is none.
// Times are written by when.
func InForceText(p *live.Plan, when func(time.Time) string) string {
	if p == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "plan %s of %s: %s, %s, made in %s", slurm.Printable(p.Policy, maxText), when(p.At),
		report.Plural(len(p.Jobs), "task"), report.FormatJoules(p.EnergyJ), report.FormatSeconds(p.TookS))
	if p.Without > 0 {
		fmt.Fprintf(&b, "; %d have no place in it", p.Without)
	}
	b.WriteString("\n")
	if p.Stale != "" {
		b.WriteString("it counts no more: " + slurm.Printable(p.Stale, maxText) + "\n")
	}
	if p.Trouble != "" {
		b.WriteString("there is no newer one: " + slurm.Printable(p.Trouble, maxText) + "\n")
	}
	b.WriteString(keptText(&p.Record))
	return b.String()
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
	{live.KeptHeldOut, "held out by lot"},
}

// keptText returns how starts and runs kept to plans; empty: nothing started.
func keptText(r *live.PlanRecord) string {
	var parts []string
	for _, w := range keptWords {
		if n := r.Starts[w.how]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, w.what))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	text := "starts: " + strings.Join(parts, ", ") + "\n"
	if part, ok := r.AsPlanned().Get(); ok {
		text = fmt.Sprintf("starts as planned: %s (%s)\n", report.FormatPercent(part), strings.Join(parts, ", "))
	}
	if r.Ended > 0 {
		text += fmt.Sprintf("runs at planned clocks: %d, planned %s, measured %s; %d took over a tenth longer\n",
			r.Ended, report.FormatJoules(r.PlannedJ), report.FormatJoules(r.MeasuredJ), r.Longer)
	}
	if r.NotLocked > 0 {
		text += fmt.Sprintf("runs that didn't get their planned clocks: %d, see epplan status\n", r.NotLocked)
	}
	return text
}

// InForceStarts returns the last starts beside what was planned for them; nil: there are none.
func InForceStarts(p *live.Plan, when func(time.Time) string) *report.Table {
	if p == nil || len(p.Recent) == 0 {
		return nil
	}
	return report.TableOf(p.Recent, func(row *report.Row, s *live.PlanStart) {
		start, nodes := "–", "–"
		if s.Planned != nil {
			start, nodes = when(s.Planned.Start), s.Planned.NodeClass
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
		row.Add(report.Column{Key: "at", Head: "at", Left: true}, report.Text(when(s.At)))
		row.Add(report.Column{Key: "gpu_model", Head: "on", Left: true, Max: 24}, report.Text(s.GPUModel))
		row.Add(report.Column{Key: "planned", Head: "planned", Left: true}, report.Text(start))
		row.Add(report.Column{Key: "node_class", Head: "nodes", Left: true, Max: 24}, report.Text(nodes))
		row.Add(report.Column{Key: "how", Head: "how", Left: true}, report.Text(how))
	})
}

// InForceTable returns what such a plan has for so many of the tasks that are to start first; nil:
// nothing.
func InForceTable(p *live.Plan, most int, when func(time.Time) string) *report.Table {
	if p == nil || len(p.Jobs) == 0 {
		return nil
	}
	return report.TableOf(p.Jobs[:min(len(p.Jobs), most)], func(row *report.Row, j *live.PlannedJob) {
		why := j.Reason
		if j.HeldOut {
			why += "; held out by lot"
		}
		row.Add(report.Column{Key: "task", Head: "planned", Left: true, Max: 24}, report.Text(j.Task))
		row.Add(report.Column{Key: "user", Head: "user", Left: true, Max: 16}, report.Text(j.User))
		row.Add(report.Column{Key: "start", Head: "start", Left: true}, report.Text(when(j.Start)))
		row.Add(report.Column{Key: "end", Head: "end", Left: true}, report.Text(when(j.End)))
		row.Add(report.Column{Key: "node_class", Head: "nodes", Left: true, Max: 24}, report.Text(j.NodeClass))
		row.Add(report.Column{Key: "clocks", Head: "clocks", Left: true}, report.Text(j.Words()))
		row.Add(report.Column{Key: "reason", Head: "why", Left: true, Max: 80}, report.Text(why))
	})
}
