package query

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/nodes"
	"github.com/epplan/epplan/slurm"
)

// maxNodesShown is how many nodes a list has at most.
const maxNodesShown = 5000

// Nodes returns what is known of the nodes with GPUs, as far as a caller may see it: what
// Slurm said last, and what their agents reported.
func (s *Service) Nodes(_ context.Context, who Caller) *epdapi.NodeList {
	now, heard := s.options.Clock(), s.options.Reports.All()
	out := &epdapi.NodeList{At: now, Nodes: []epdapi.NodeView{}}
	byName := nodesWithGPUs(s.options.Tracker)
	names := slices.Collect(maps.Keys(byName))
	for name := range heard {
		if byName[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	out.Power = powerOf(heard, byName, now)
	out.Budgets = s.options.Budgets()
	fresh := nodes.FreshAge(len(heard))
	for _, name := range names[:min(len(names), maxNodesShown)] {
		out.Nodes = append(out.Nodes, s.reader.node(name, byName[name], heard[name], now, fresh, who))
	}
	out.LeftOut = len(names) - len(out.Nodes)
	return out
}

func (r *reader) node(
	name string, node *slurm.Node, h *nodes.Report, now time.Time, fresh time.Duration, who Caller,
) epdapi.NodeView {
	v := epdapi.NodeView{Name: name, Partitions: []string{}}
	if node != nil {
		v.State = strings.Join(append([]string{node.State.Base}, node.State.Flags...), "+")
		v.Reason, v.Partitions = slurm.ValidUTF8(node.Reason), nonNil(node.Partitions)
		v.GPUs = node.GPUCount()
	}
	if h == nil {
		return v
	}
	v.GPUs = cmp.Or(v.GPUs, len(h.Message.GPUs))
	v.Heard, v.Fresh = h.Received, now.Sub(h.Received) <= fresh
	v.SkewS = math.Round(1e3*h.Message.At.Sub(h.Received).Seconds()) / 1e3
	v.Report = r.shownTo(who, h.Message)
	return v
}

// shownTo returns what a caller may see of a report.
func (r *reader) shownTo(who Caller, m *epdapi.NodeReport) *epdapi.NodeReport {
	out := *m
	out.GPUs, out.Runs, out.Troubles = nonNil(slices.Clone(m.GPUs)), []epdapi.NodeRun{}, nonNil(m.Troubles)
	all := who.canSeeAll()
	for i := range m.Runs {
		if job := r.options.Tracker.Get(slurm.JobID(m.Runs[i].Job)); all || job != nil && job.UID == who.UID {
			out.Runs = append(out.Runs, m.Runs[i])
		}
	}
	if !all {
		out.Troubles = []epdapi.Problem{}
		for i := range out.GPUs {
			out.GPUs[i].Journal, out.GPUs[i].ExternalChange = nil, ""
		}
	}
	return &out
}

// Power is that of the GPUs of all nodes that reported lately. It is nobody's own.
func (s *Service) Power() epdapi.ClusterPower {
	return powerOf(s.options.Reports.All(), nodesWithGPUs(s.options.Tracker), s.options.Clock())
}

// nodesWithGPUs returns those of Slurm's last answer, by name.
func nodesWithGPUs(tracker *jobs.Tracker) map[string]*slurm.Node {
	byName := make(map[string]*slurm.Node)
	all := tracker.Nodes()
	for i := range all {
		if all[i].GPUCount() > 0 {
			byName[all[i].Name] = &all[i]
		}
	}
	return byName
}

// powerOf adds up the fresh reports.
func powerOf(
	heard map[string]*nodes.Report, slurms map[string]*slurm.Node, now time.Time,
) epdapi.ClusterPower {
	var p epdapi.ClusterPower
	fresh := nodes.FreshAge(len(heard))
	for name := range slurms {
		if heard[name] == nil {
			p.Silent++
		}
	}
	for _, h := range heard {
		age := now.Sub(h.Received)
		if age > fresh {
			p.Silent++
			continue
		}
		p.Nodes++
		p.Oldest = max(p.Oldest, age.Seconds())
		busy := make(map[string]bool)
		for i := range h.Message.Runs {
			for _, uuid := range h.Message.Runs[i].GPUs {
				busy[uuid] = busy[uuid] || !h.Message.Runs[i].Ended
			}
		}
		for i := range h.Message.GPUs {
			g := &h.Message.GPUs[i]
			if !g.Read {
				p.Unread++
				continue
			}
			p.GPUs++
			p.GPUW += g.Power
			if busy[g.UUID] {
				p.Busy++
			}
			if g.Journal != nil {
				p.Held++
			}
		}
	}
	return p
}
