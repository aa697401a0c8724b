package control

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/nodes"
	"github.com/epplan/epplan/internal/share"
	"github.com/epplan/epplan/slurm"
)

func (c *Controller) postReport(r *http.Request) (any, error) {
	var report epdapi.NodeReport
	if err := DecodeJSON(http.MaxBytesReader(nil, r.Body, epdapi.MaxReport), &report); err != nil {
		return nil, err
	}
	return c.Report(r.Context(), &report)
}

// Report keeps what a node's agent tells, in place of what it told before, and
// says when it is wanted to tell again. The error is [ErrRequest].
func (c *Controller) Report(_ context.Context, r *epdapi.NodeReport) (epdapi.ReportAnswer, error) {
	if err := checkReport(r); err != nil {
		return epdapi.ReportAnswer{}, err
	}
	every := c.reports.Put(c.options.Clock(), r, c.sharesGPU)
	if len(r.GPUs) > 0 {
		c.nodes.put(r.Node, c.settings.Load().modelName(r.GPUs[0].Model))
	}
	return epdapi.ReportAnswer{EveryS: every.Seconds()}, nil
}

// sharesGPU reports whether a job that is known has a part of a GPU.
func (c *Controller) sharesGPU(id slurm.JobID) bool {
	job := c.jobs.Get(id)
	if job == nil {
		return false
	}
	_, shares := share.WishOf(&slurm.Job{TRESPerNode: job.TRESPerNode(), NodeCount: int(job.Nodes)})
	return shares
}

// checkReport reports whether a report can be kept.
func checkReport(r *epdapi.NodeReport) error {
	if err := slurm.ValidNode(r.Node); err != nil {
		return fmt.Errorf("%w: a report is of a node: %w", ErrRequest, err)
	}
	if len(r.GPUs) > epdapi.MaxReportGPUs || len(r.Runs) > epdapi.MaxReportRuns ||
		len(r.Troubles) > epdapi.MaxReportTroubles {
		return fmt.Errorf("%w: a report of %d GPUs, %d runs and %d troubles, want at most %d, %d and %d",
			ErrRequest, len(r.GPUs), len(r.Runs),
			len(r.Troubles), epdapi.MaxReportGPUs, epdapi.MaxReportRuns, epdapi.MaxReportTroubles)
	}
	for i := range r.Runs {
		if n := len(r.Runs[i].GPUs); n > epdapi.MaxReportGPUs {
			return fmt.Errorf("%w: a run on %d GPUs, want at most %d", ErrRequest, n, epdapi.MaxReportGPUs)
		}
	}
	const mostWatts = 1e5
	for i := range r.GPUs {
		g := &r.GPUs[i]
		if !(g.Power >= 0 && g.Power <= mostWatts) || !possible(g.Core) || !possible(g.Mem) ||
			!possible(g.LockedCore) || !possible(g.LockedMem) {
			return fmt.Errorf("%w: GPU %s reports what no GPU can", ErrRequest,
				slurm.Printable(g.UUID, maxModel))
		}
	}
	return nil
}

// possible reports whether there can be such a clock; 0 is none.
func possible(f dvfsmodel.MHz) bool { return f >= 0 && f <= maxMHz }

// maxNodesShown is how many nodes a list has at most.
const maxNodesShown = 5000

func (c *Controller) getNodes(r *http.Request) (any, error) { return c.Nodes(r.Context()), nil }

// Nodes is what is known of the nodes with GPUs, as far as the caller of the
// context may see it: what Slurm said last, and what their agents reported.
func (c *Controller) Nodes(ctx context.Context) *epdapi.NodeList {
	now, heard := c.options.Clock(), c.reports.All()
	out := &epdapi.NodeList{At: now, Nodes: []epdapi.NodeView{}}
	byName := c.nodesWithGPUs()
	names := slices.Collect(maps.Keys(byName))
	for name := range heard {
		if byName[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	out.Power = powerOf(heard, byName, now)
	who := CallerOf(ctx)
	fresh := nodes.FreshAge(len(heard))
	for _, name := range names[:min(len(names), maxNodesShown)] {
		out.Nodes = append(out.Nodes, c.viewNode(name, byName[name], heard[name], now, fresh, who))
	}
	out.LeftOut = len(names) - len(out.Nodes)
	return out
}

// gpusOfNode is how many GPUs a node has by Slurm.
func gpusOfNode(n *slurm.Node) (gpus int) {
	for _, g := range n.Gres {
		if g.Name == "gpu" {
			gpus += int(g.Count)
		}
	}
	return gpus
}

// viewNode is a node for whoever asks.
func (c *Controller) viewNode(
	name string, node *slurm.Node, h *nodes.Report, now time.Time, fresh time.Duration, who Caller,
) epdapi.NodeView {
	v := epdapi.NodeView{Name: name, Partitions: []string{}}
	if node != nil {
		v.State = strings.Join(append([]string{node.State.Base}, node.State.Flags...), "+")
		v.Reason, v.Partitions, v.GPUs = slurm.ValidUTF8(node.Reason), list(node.Partitions), gpusOfNode(node)
	}
	if h == nil {
		return v
	}
	v.GPUs = cmp.Or(v.GPUs, len(h.Message.GPUs))
	v.Heard, v.Fresh = h.Received, now.Sub(h.Received) <= fresh
	v.SkewS = math.Round(1e3*h.Message.At.Sub(h.Received).Seconds()) / 1e3
	v.Report = c.shownTo(who, h.Message)
	return v
}

// shownTo is what a caller may see of a report.
func (c *Controller) shownTo(who Caller, r *epdapi.NodeReport) *epdapi.NodeReport {
	out := *r
	out.GPUs, out.Runs, out.Troubles = list(slices.Clone(r.GPUs)), []epdapi.NodeRun{}, list(r.Troubles)
	all := who.All || who.Control
	for i := range r.Runs {
		if job := c.jobs.Get(slurm.JobID(r.Runs[i].Job)); all || job != nil && job.UID == who.UID {
			out.Runs = append(out.Runs, r.Runs[i])
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

// ClusterPower is the power of the GPUs of all nodes that reported lately.
func (c *Controller) ClusterPower() epdapi.ClusterPower {
	return powerOf(c.reports.All(), c.nodesWithGPUs(), c.options.Clock())
}

// nodesWithGPUs are those of Slurm's last answer, by name.
func (c *Controller) nodesWithGPUs() map[string]*slurm.Node {
	byName := make(map[string]*slurm.Node)
	all := c.jobs.Nodes()
	for i := range all {
		if gpusOfNode(&all[i]) > 0 {
			byName[all[i].Name] = &all[i]
		}
	}
	return byName
}

// powerOf adds up the fresh reports.
func powerOf(heard map[string]*nodes.Report, slurms map[string]*slurm.Node, now time.Time) epdapi.ClusterPower {
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
