package web

import (
	"fmt"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/view"
)

// healthReport is what is wrong, worst first.
type healthReport struct {
	parts []any
	state string
	good  bool // nothing is wrong
}

// healthOf tells what is wrong with epd, as far as the viewer may know: names of
// jobs and nodes are for those who see all.
func healthOf(o *epdapi.Overview, nodes *epdapi.NodeList, r *Request) healthReport {
	bad, warn := view.Problems(&o.Status)
	silent, stuck, held := nodeProblems(nodes, r)
	warn = append(warn, silent...)
	bad = append(bad, stuck...)
	var h healthReport
	h.parts = append(noticeOf(page.Bad, "Somebody should look at this:", bad),
		noticeOf(page.Warn, "This may need a look:", warn)...)
	switch {
	case len(bad) > 0:
		h.state = "Health: " + report.Plural(len(bad), "problem")
	case len(warn) > 0:
		h.state = "Health: " + report.Plural(len(warn), "warning")
	default:
		h.state, h.good = "Health: nothing is wrong", true
		h.parts = append(h.parts, &page.Notice{Kind: page.Good, Text: "Nothing is wrong that epd knows of."})
	}
	h.parts = append(h.parts, &page.Details{Summary: "Slurm, records and clocks", Parts: []any{page.Facts{
		{Name: "Slurm's jobs", Text: syncText(&o.Status.Queue, r.Now)},
		{Name: "Slurm's nodes", Text: syncText(&o.Status.Nodes, r.Now)},
		{
			Name: "Records", Text: fmt.Sprintf("%s outcomes since the start, %s waiting to be written",
				report.FormatCount(int(o.Status.Outcomes)), report.FormatCount(int(o.Status.Unwritten))),
		},
		{Name: "Slowest decision", Text: report.FormatSeconds(o.Status.SlowestDecideS)},
		{Name: "Clocks held", Text: held},
	}}})
	return h
}

// syncText returns how epd keeps up with Slurm.
func syncText(s *epdapi.SyncStatus, now time.Time) string {
	if s.At.IsZero() {
		return "Slurm didn't tell of them yet, or isn't asked"
	}
	return "told " + ago(s.At, now)
}

// nodeProblems returns those of nodes: silent agents, GPUs whose clocks can't be
// given back; and how many clocks are held, for everybody.
func nodeProblems(nodes *epdapi.NodeList, r *Request) (silent, stuck []string, held string) {
	const most = 8
	quiet, stuckGPUs, locked := 0, 0, 0
	for i := range nodes.Nodes {
		n := &nodes.Nodes[i]
		warn, bad := problemsOfNode(n, r)
		if r.Viewer.SeesAll() {
			silent = append(silent, warn[:min(len(warn), most-len(silent))]...)
			stuck = append(stuck, bad[:min(len(bad), most-len(stuck))]...)
		}
		if !n.Fresh {
			quiet++
			continue
		}
		locked += lockedOf(n.Report)
		for k := range n.Report.GPUs {
			if n.Report.GPUs[k].Stuck {
				stuckGPUs++
			}
		}
	}
	if quiet > 0 && (!r.Viewer.SeesAll() || quiet > len(silent)) {
		silent = append(silent, report.Plural(quiet, "node")+" whose agents aren't heard now")
	}
	if stuckGPUs > 0 && !r.Viewer.SeesAll() {
		stuck = append(stuck, report.Plural(stuckGPUs, "GPU")+" whose clocks can't be given back")
	}
	return silent, stuck, "on " + report.Plural(locked, "GPU")
}

// problemsOfNode returns what is wrong with one node, by its name.
func problemsOfNode(n *epdapi.NodeView, r *Request) (warn, bad []string) {
	if !n.Fresh {
		return []string{n.Name + ": its agent was last heard " + ago(n.Heard, r.Now)}, nil
	}
	for i := range n.Report.GPUs {
		if g := &n.Report.GPUs[i]; g.Stuck || g.ExternalChange != "" || g.Refused != "" || g.Unsure != "" {
			bad = append(bad, n.Name+", GPU "+shortUUID(g.UUID)+": "+gpuProblem(g))
		}
	}
	if last := len(n.Report.Troubles) - 1; last >= 0 && r.Now.Sub(n.Report.Troubles[last].At) < time.Hour {
		warn = append(warn,
			n.Name+", "+ago(n.Report.Troubles[last].At, r.Now)+": "+n.Report.Troubles[last].Message)
	}
	return warn, bad
}

// gpuProblem returns what is wrong with a GPU; empty: nothing.
func gpuProblem(g *epdapi.NodeGPU) string {
	switch {
	case g.Stuck:
		return "its clocks can't be given back"
	case g.ExternalChange != "":
		return "somebody else sets its clocks: " + g.ExternalChange
	case g.Refused != "":
		return "its driver refused to lock a clock: " + g.Refused
	case g.Unsure != "":
		return g.Unsure
	case !g.Read:
		return "it can't be read"
	}
	return ""
}

// shortUUID is enough of a GPU's UUID to tell it from others of a node.
func shortUUID(uuid string) string {
	const most = 12
	if len(uuid) <= most {
		return uuid
	}
	return uuid[:most] + "…"
}
