package view

import (
	"fmt"
	"strings"

	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/slurm"
)

// Levers returns the view of what epd moves in Slurm beside clocks, and of what it would.
func Levers(s *steer.Status) *View {
	v := &View{}
	v.add("Last step", DateTime(s.At))
	moved := MovedLines(s)
	if len(moved) == 0 {
		moved = []string{"nothing in Slurm is changed"}
	}
	v.add("Moved", moved...)
	if n := len(s.Left); n > 0 {
		v.add("Left alone", report.Plural(n, "job")+" that somebody else changed: "+firstIDs(s.Left))
	}
	order := "deadlines alone count"
	if s.Policy != "" {
		order = "by policy " + s.Policy + reasonSuffix(firstIDs(s.Order))
	}
	v.add("Order", order)
	if s.Shared != nil {
		v.add("Shared GPUs", sharedOrderTexts(s.Shared)...)
	}
	if s.Paused {
		v.notice(page.Info, "All levers were taken back. Nothing is moved before the configuration is another one")
	}
	if len(s.Notes) > 0 {
		v.notice(page.Info, "What the levers can't do now:", s.Notes...)
	}
	if s.Trouble != "" {
		v.notice(page.Bad, "The last step failed: "+s.Trouble)
	}
	if len(s.Advice) > 0 {
		v.Tables = []Table{{"Advice about Slurm's queue and nodes", adviceTable(s.Advice)}}
		if s.More > 0 {
			v.notice(page.Info, report.FormatCount(s.More)+" more advices aren't listed")
		}
	}
	return v
}

// MovedLines returns what is moved in Slurm now, a line for each kind of lever.
func MovedLines(s *steer.Status) []string {
	var all []string
	for _, one := range []struct {
		n         int
		one, many string
	}{
		{s.Nice, "job behind others by its Nice", "jobs behind others by their Nice"},
		{s.Prefer, "job that prefers nodes with a feature", "jobs that prefer nodes with a feature"},
		{s.Begin, "job that begins when energy costs less", "jobs that begin when energy costs less"},
		{s.Weights, "node with another weight", "nodes with another weight"},
		{s.Asleep, "node powered down", "nodes powered down"},
	} {
		if one.n > 0 {
			all = append(all, report.Plural(one.n, one.one, one.many))
		}
	}
	return all
}

// sharedOrderTexts say in which order nodes suit the next job for a part of a GPU.
func sharedOrderTexts(o *colocate.Order) []string {
	job := "for job " + o.Job.String()
	if o.Note != "" {
		return []string{job + " nodes are as they were: " + o.Note}
	}
	const most = 10
	all := []string{job + " nodes in this order:"}
	for i := range o.Nodes[:min(len(o.Nodes), most)] {
		n := &o.Nodes[i]
		what := fmt.Sprintf("a GPU alone, for %.0f W more", n.RisesW)
		switch {
		case !n.Fits:
			what = "doesn't fit: " + n.Why
		case len(n.Beside) > 0:
			what = fmt.Sprintf("correlation %.2f, %.2f times the time alone, for %.0f W more", n.Correlation,
				n.Slowdown, n.RisesW)
		}
		all = append(all, n.Name+": "+what)
	}
	return all
}

// firstIDs lists jobs, the first first, and says how many there are if they are too many.
func firstIDs(ids []slurm.JobID) string {
	const most = 20
	words := make([]string, min(len(ids), most))
	for i := range words {
		words[i] = ids[i].String()
	}
	text := strings.Join(words, ", ")
	if len(ids) > most {
		text += fmt.Sprintf(" … (%d)", len(ids))
	}
	return text
}

func adviceTable(list []steer.Advice) *report.Table {
	return report.TableOf(list, func(row *report.Row, a *steer.Advice) {
		about := report.Text(a.Node).Linked(NodeHref(a.Node))
		if a.Job > 0 {
			about = report.Text("job " + a.Job.String()).Linked(JobHref(int64(a.Job)))
		}
		row.Add(report.Column{Key: "kind", Head: "advice", Left: true}, report.Text(string(a.Kind)))
		row.Add(report.Column{Key: "about", Head: "about", Left: true}, about)
		row.Add(report.Column{Key: "user", Head: "user", Left: true, Max: 16}, report.Text(a.User))
		row.Add(report.Column{Key: "partition", Head: "partition", Left: true, Max: 16}, report.Text(a.Partition))
		row.Add(report.Column{Key: "text", Head: "what", Left: true, Max: 100}, report.Text(a.Text))
	})
}
