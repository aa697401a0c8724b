package web

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/view"
)

func nodePage(ctx context.Context, r *Request) (*View, error) {
	list, err := r.Source.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list.Nodes, func(n epdapi.NodeView) bool { return n.Name == r.PathValue("name") })
	if at < 0 {
		return nil, notFound("There is no such node.", "Slurm names no node of that name that has GPUs, "+
			"and no agent reported from one. The page Nodes lists those that are known.")
	}
	n := &list.Nodes[at]
	view := &View{Title: "Node " + n.Name, Back: page.Link{Text: "Nodes", Href: "/nodes"}}
	view.add("about", "", aboutNode(n, r)...).State = "Node " + n.Name + ": " + orDash(n.State)
	if n.Report == nil {
		return view, nil
	}
	view.add("gpus", "GPUs", gpusTable(n.Report), journalTable(n.Report, r))
	view.add("runs", "Runs", nodeRunsTable(n.Report, r))
	if r.Viewer.SeesAll() {
		view.add("troubles", "Troubles", problemsTable(n.Report))
	}
	return view, nil
}

// aboutNode returns what Slurm says of a node, and of its agent.
func aboutNode(n *epdapi.NodeView, r *Request) []any {
	state := orDash(strings.ReplaceAll(n.State, "+", " "))
	if n.State == "" {
		state = "Slurm doesn't name it, or isn't asked"
	}
	facts := page.Facts{{Name: "By Slurm", Text: state}}
	if n.Reason != "" {
		facts = append(facts, page.Fact{Name: "Reason", Text: n.Reason})
	}
	facts = append(facts, page.Fact{Name: "Partitions", Text: orDash(strings.Join(n.Partitions, ", "))},
		page.Fact{Name: "GPUs", Text: gpusOf(n)},
		page.Fact{Name: "Agent heard", Text: lastReportCell(n, r).Text})
	if n.Report == nil {
		return []any{
			facts, &page.Notice{
				Kind: page.Warn, Text: "This node's agent didn't report since epd's start: its clocks, its " +
					"journal and its runs aren't known here. epplan status on the node asks " +
					"the agent itself.",
			},
		}
	}
	facts = append(facts,
		page.Fact{Name: "Agent", Text: "epd " + orDash(n.Report.Version) +
			", started " + view.DateTime(n.Report.Started)},
		page.Fact{Name: "Power", Text: powerOfNode(n.Report)},
		page.Fact{Name: "Outcomes that wait", Text: waitingText(n.Report)})
	parts := []any{facts}
	if !n.Fresh {
		parts = append(parts, &page.Notice{
			Kind: page.Warn, Text: "The agent hasn't reported for a while: what follows is as it was " +
				ago(n.Heard, r.Now) + ".",
		})
	}
	const muchSkew = 2
	if math.Abs(n.SkewS) > muchSkew {
		parts = append(parts, &page.Notice{
			Kind: page.Warn, Text: fmt.Sprintf("The node's clock is off by about %.1f s.", n.SkewS),
			Items: []string{
				"munge refuses what comes from too far away in time: let the machines ask one time server.",
			},
		})
	}
	return parts
}

// gpusTable returns the GPUs of a node, in the order of their device files.
func gpusTable(n *epdapi.NodeReport) *page.Table {
	t := &page.Table{
		ID: "gpus-table", Caption: "GPUs as the agent read them last",
		Note:  "At default clocks the driver chooses the clocks by itself; a lock holds them.",
		Empty: "the agent has no GPU",
		Columns: []page.Column{
			{Head: "GPU", Number: true},
			{Head: "Model"},
			{Head: "Core now", Number: true},
			{Head: "Memory now", Number: true},
			{Head: "Locked"},
			{Head: "Core range", Number: true},
			{Head: "Power", Number: true},
			{Head: "Limit", Number: true},
			{Head: "In use", Number: true},
			{Head: "Trouble"},
			{Head: "UUID", Number: true},
		},
	}
	gpus := slices.Clone(n.GPUs)
	slices.SortStableFunc(gpus, func(a, b epdapi.NodeGPU) int { return a.Minor - b.Minor })
	for i := range gpus {
		g := &gpus[i]
		core, mem, power, limit, use := dash, dash, dash, dash, dash
		if g.Read {
			core, mem, power, use = clockOr(g.Core), clockOr(g.Mem), wattsText(g.Power),
				numberOrDash(g.Utilisation, report.FormatPercent)
			if g.PowerOf == epdapi.OfModules {
				power += " (module)"
			}
		}
		if g.Read && g.Cap > 0 {
			limit = wattsText(float64(g.Cap))
		}
		trouble := page.Cell{Text: gpuProblem(g)}
		if trouble.Text == "" {
			trouble.Text = "none"
		} else {
			trouble.Kind = page.Bad
		}
		t.Rows = append(t.Rows, []page.Cell{
			{Text: report.FormatCount(g.Minor)},
			{Text: orDash(g.Model)},
			{Text: core},
			{Text: mem},
			{Text: lockText(g)},
			{Text: rangeText(g)},
			{Text: power},
			{Text: limit},
			{Text: use},
			trouble,
			{Text: g.UUID},
		})
	}
	return t
}

// waitingText returns the outcomes that the controller doesn't have yet.
func waitingText(n *epdapi.NodeReport) string {
	text := report.FormatCount(n.Unrecorded)
	if n.Aside > 0 {
		text += ", and " + report.FormatCount(n.Aside) + " that the controller refused for good"
	}
	return text
}

func clockOr(f dvfsmodel.MHz) string {
	if f <= 0 {
		return dash
	}
	return mhzText(f)
}

func lockText(g *epdapi.NodeGPU) string {
	if !g.IsLocked() {
		return "no"
	}
	return g.Locked().Words()
}

// rangeText returns the core clocks that the driver has.
func rangeText(g *epdapi.NodeGPU) string {
	if g.MaxCore <= 0 {
		return "not told"
	}
	return fmt.Sprintf("%.0f to %s", g.MinCore, mhzText(g.MaxCore))
}

// journalTable returns what the journal says is held.
func journalTable(n *epdapi.NodeReport, r *Request) *page.Table {
	t := &page.Table{
		ID: "journal-table", Caption: "Journal of locked clocks",
		Note: "An entry is on disk before a clock is locked and goes after it was given back, so that a " +
			"crash leaves none locked.",
		Empty: "no clock is held", Columns: []page.Column{
			{Head: "GPU", Number: true}, {Head: "Held at"}, {Head: "For job", Number: true}, {Head: "Since"},
		},
	}
	if !r.Viewer.SeesAll() {
		t.Empty = "entries are shown to operators"
	}
	for i := range n.GPUs {
		g := &n.GPUs[i]
		if g.Journal == nil {
			continue
		}
		job := page.Cell{Text: dash}
		if g.Journal.Job > 0 {
			job = jobCell(int64(g.Journal.Job))
		}
		t.Rows = append(t.Rows, []page.Cell{
			{Text: report.FormatCount(g.Minor)}, {Text: lockText(g)}, job, {Text: view.DateTime(g.Journal.Since)},
		})
	}
	return t
}

// nodeRunsTable returns the runs that the agent has, as far as the viewer sees them.
func nodeRunsTable(n *epdapi.NodeReport, r *Request) *page.Table {
	t := &page.Table{
		ID: "runs-table", Caption: "Runs of jobs", Empty: "no run",
		Columns: []page.Column{
			{Head: "Job", Number: true},
			{Head: "GPUs", Number: true},
			{Head: "Clocks wanted"},
			{Head: "Started"},
			{Head: "State"},
			{Head: "Slower by", Number: true},
		},
	}
	if !r.Viewer.SeesAll() {
		t.Caption, t.Empty = "Runs of your jobs", "none of your jobs runs here"
	}
	for i := range n.Runs {
		run := &n.Runs[i]
		state := "runs"
		switch {
		case run.Ended:
			state = "ended; its outcome isn't in the records yet"
		case run.HandsOff != "":
			state = "left alone: " + run.HandsOff
		}
		slower := dash
		if run.SLA > 0 {
			slower = fmt.Sprintf("at most %.3f times, of %.2f", run.Slowdown, run.SLA)
		}
		t.Rows = append(t.Rows, []page.Cell{
			jobCell(int64(run.Job)),
			{Text: report.FormatCount(len(run.GPUs))},
			{Text: run.Words()},
			{Text: view.DateTime(run.Started)},
			{Text: state},
			{Text: slower},
		})
	}
	return t
}

// problemsTable returns what went wrong on a node, the last first.
func problemsTable(n *epdapi.NodeReport) *page.Table {
	t := &page.Table{
		ID: "troubles-table", Caption: "What went wrong there", Empty: "nothing did since the agent started",
		Unnamed: true, Columns: []page.Column{{Head: "When"}, {Head: "What"}},
	}
	for _, trouble := range slices.Backward(n.Troubles) {
		t.Rows = append(t.Rows, page.Cells(view.DateTime(trouble.At), trouble.Message))
	}
	return t
}
