package web

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/view"
)

func nodesPage(ctx context.Context, r *Request) (*View, error) {
	list, err := r.Source.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	partition := r.Query.Get("partition")
	partitions := map[string]bool{}
	var shown []*epdapi.NodeView
	for i := range list.Nodes {
		n := &list.Nodes[i]
		for _, p := range n.Partitions {
			partitions[p] = true
		}
		if partition == "" || slices.Contains(n.Partitions, partition) {
			shown = append(shown, n)
		}
	}
	view := &View{
		Title: "Nodes", Lead: "Nodes with GPUs, as Slurm names them, with what their agents told last. " +
			"Only a node's agent can read its GPUs: what isn't told here isn't known here.",
	}
	if len(partitions) > 1 || partition != "" {
		view.Sections = append(view.Sections, Section{
			ID: "filter", Still: true, Parts: []any{
				filterFormHTML("/nodes", formInput{
					Name: "partition", Label: "Partition", Value: partition,
					Options: anyOptions(commonValues(partitions)),
				}),
			},
		})
	}
	view.add("use", "", page.Tiles{powerTile(&list.Power), busyTile(&list.Power), {
		Label: "GPUs with locked clocks", Value: report.FormatCount(list.Power.Held),
		Note: "by the agents' journals",
	}})
	if list.Budgets != nil {
		view.add("budget", "Power budget", budgetParts(list.Budgets)...)
	}
	view.add("nodes", "", nodesTable(shown, list, r))
	view.add("clocks", "GPUs by clocks", clocksTable(list))
	return view, nil
}

// budgetParts are the power budgets as the command shows them.
func budgetParts(list *epdapi.BudgetList) []any { return view.Budgets(list).Parts() }

func busyTile(p *epdapi.ClusterPower) page.Tile {
	t := page.Tile{
		Label: "GPUs in use", Value: report.FormatCount(p.Busy),
		Note: "of " + report.FormatCount(p.GPUs) + " that were read",
	}
	if p.Unread > 0 {
		t.Note += ", " + report.FormatCount(p.Unread) + " can't be read"
		t.Kind = page.Warn
	}
	return t
}

func nodesTable(nodes []*epdapi.NodeView, list *epdapi.NodeList, r *Request) *page.Table {
	t := &page.Table{
		ID: "nodes-table", Caption: "Nodes: " + report.FormatCount(len(nodes)),
		Empty: "no node with GPUs is known: Slurm named none, and no agent reported",
		Columns: []page.Column{
			{Head: "Node"},
			{Head: "By Slurm"},
			{Head: "Partitions"},
			{Head: "GPUs"},
			{Head: "Core clocks now"},
			{Head: "Locked", Number: true},
			{Head: "Power", Number: true},
			{Head: "Runs", Number: true},
			{Head: "Heard"},
			{Head: "Agent"},
		},
	}
	for _, n := range nodes {
		row := []page.Cell{
			{Text: n.Name, Href: view.NodeHref(n.Name)},
			nodeState(n),
			{Text: orDash(strings.Join(n.Partitions, ", "))},
			{Text: gpusOf(n)},
		}
		agent := dash
		if n.Report == nil {
			row = append(row, page.Cells(dash, dash, dash, dash)...)
		} else {
			agent = orDash(n.Report.Version)
			row = append(row, page.Cells(coresOf(n.Report), report.FormatCount(lockedOf(n.Report)),
				powerOfNode(n.Report), report.FormatCount(len(n.Report.Runs)))...)
		}
		t.Rows = append(t.Rows, append(row, lastReportCell(n, r), page.Cell{Text: agent}))
	}
	if list.LeftOut > 0 {
		t.More = "and " + report.Plural(list.LeftOut, "further node")
	}
	return t
}

// nodeState returns what Slurm says of a node.
func nodeState(n *epdapi.NodeView) page.Cell {
	c := page.Cell{Text: orDash(strings.ReplaceAll(n.State, "+", " ")), Badge: n.State != ""}
	switch {
	case strings.Contains(n.State, "DOWN") && !strings.Contains(n.State, "POWERED_DOWN") ||
		strings.Contains(n.State, "FAIL"):
		c.Kind = page.Bad
	case strings.Contains(n.State, "DRAIN") || strings.Contains(n.State, "NOT_RESPONDING"):
		c.Kind = page.Warn
	case strings.HasPrefix(n.State, "ALLOCATED") || strings.HasPrefix(n.State, "MIXED"):
		c.Kind = page.Info
	}
	return c
}

// lastReportCell returns when a node's agent told last.
func lastReportCell(n *epdapi.NodeView, r *Request) page.Cell {
	switch {
	case n.Heard.IsZero():
		return page.Cell{Text: "not since epd's start", Kind: page.Warn}
	case !n.Fresh:
		return page.Cell{Text: ago(n.Heard, r.Now), Kind: page.Warn}
	}
	return page.Cell{Text: ago(n.Heard, r.Now)}
}

// gpusOf returns how many GPUs of which models a node has.
func gpusOf(n *epdapi.NodeView) string {
	if n.Report == nil || len(n.Report.GPUs) == 0 {
		return report.FormatCount(n.GPUs)
	}
	counts := map[string]int{}
	for i := range n.Report.GPUs {
		counts[n.Report.GPUs[i].Model]++
	}
	var words []string
	for _, model := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, report.FormatCount(counts[model])+" × "+orDash(model))
	}
	return strings.Join(words, ", ")
}

// coresOf returns the span of the core clocks of a node's GPUs.
func coresOf(r *epdapi.NodeReport) string {
	var least, most dvfsmodel.MHz
	for i := range r.GPUs {
		if core := r.GPUs[i].Core; core > 0 {
			if least == 0 || core < least {
				least = core
			}
			most = max(most, core)
		}
	}
	switch {
	case most == 0:
		return "can't be read"
	case least == most:
		return mhzText(least)
	}
	return strconv.FormatFloat(float64(least), 'f', 0, 64) + " to " + mhzText(most)
}

func lockedOf(r *epdapi.NodeReport) (n int) {
	for i := range r.GPUs {
		if r.GPUs[i].IsLocked() {
			n++
		}
	}
	return n
}

// powerOfNode returns what a node's GPUs draw, as far as they could be read.
func powerOfNode(r *epdapi.NodeReport) string {
	sum, read := 0.0, 0
	for i := range r.GPUs {
		if r.GPUs[i].Read {
			sum += r.GPUs[i].Power
			read++
		}
	}
	if read == 0 {
		return dash
	}
	return wattsText(sum)
}

// lockedClocks is GPUs that are alike in their clocks.
type lockedClocks struct {
	model  string
	locked dvfsmodel.Setting
}

// clocksTable counts GPUs by what their clocks are locked at.
func clocksTable(list *epdapi.NodeList) *page.Table {
	counts, power := map[lockedClocks]int{}, map[lockedClocks]float64{}
	for i := range list.Nodes {
		n := &list.Nodes[i]
		if !n.Fresh {
			continue
		}
		for k := range n.Report.GPUs {
			g := &n.Report.GPUs[k]
			key := lockedClocks{g.Model, g.Locked()}
			counts[key]++
			power[key] += g.Power
		}
	}
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b lockedClocks) int {
		return cmp.Or(cmp.Compare(a.model, b.model), b.locked.Compare(a.locked))
	})
	t := &page.Table{
		ID: "clocks-table", Caption: "GPUs by the clocks that are locked", Empty: "no agent told lately",
		Columns: []page.Column{
			{Head: "GPU model"},
			{Head: "Locked"},
			{Head: "GPUs", Number: true},
			{Head: "Power", Number: true},
		},
	}
	const most = 40
	for _, key := range keys[:min(len(keys), most)] {
		t.Rows = append(t.Rows, page.Cells(orDash(key.model), key.locked.Words(),
			report.FormatCount(counts[key]), wattsText(power[key])))
	}
	if len(keys) > most {
		t.More = fmt.Sprintf("and %d further pairs of clocks", len(keys)-most)
	}
	return t
}

// powerTile returns what the GPUs draw, as far as agents told lately.
func powerTile(p *epdapi.ClusterPower) page.Tile {
	t := page.Tile{Label: "GPU power now", Value: dash, ID: "power"}
	if p.Nodes == 0 {
		t.Note = "no agent told lately"
		return t
	}
	t.Value = wattsText(p.GPUW)
	t.Note = report.Plural(p.GPUs, "GPU") + " of " + report.Plural(p.Nodes, "node")
	if p.Silent > 0 {
		t.Note += ", " + report.Plural(p.Silent, "node") + " silent"
		t.Kind = page.Warn
	}
	return t
}
