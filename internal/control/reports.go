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
	"sync"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm"
)

// Bounds of what agents report and of what is kept of it.
const (
	maxReports    = 20_000 // nodes
	maxNodesShown = 5000
	reportEvery   = 15 * time.Second // at least
	// reportRate is how many reports a second all agents together are asked for at
	// most: those of more nodes are further apart.
	reportRate  = 100.0
	freshFor    = 3 // times as old as reports are apart, they still count
	freshSlack  = 5 * time.Second
	reportsKept = 24 * time.Hour
)

// reports are what agents reported last, in memory: after a restart they come
// again by themselves.
type reports struct {
	mu       sync.RWMutex
	byNode   map[string]*heardOf
	bySize   bySize               // the same reports
	lately   map[string][]*lately // by node: the GPUs that jobs share, of which there are
	followed int                  // so many
	swept    time.Time            // when old ones were looked for last
	bytes    int                  // that the reports take together
	most     int                  // that they may take
}

func (r *reports) init() {
	r.most = maxHeard
	r.byNode, r.lately = make(map[string]*heardOf), make(map[string][]*lately)
}

// of is a node's last report; nil: there is none.
func (r *reports) of(node string) *heardOf {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byNode[node]
}

// all are all reports, by node.
func (r *reports) all() map[string]*heardOf {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return maps.Clone(r.byNode)
}

// put keeps a report, if there is room, with what it adds to what GPUs did that
// jobs share, and tells of how many nodes there are.
func (r *reports) put(h *heardOf, on map[string][]slurm.JobID) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.at.Sub(r.swept) > reportEvery {
		r.swept = h.at
		for node, old := range r.byNode {
			if h.at.Sub(old.at) > reportsKept {
				r.set(node, nil)
			}
		}
		r.unfollow()
	}
	if _, known := r.byNode[h.report.Node]; known || len(r.byNode) < maxReports {
		r.set(h.report.Node, h)
		r.follow(h, on)
	}
	return len(r.byNode)
}

// apart is how far apart the reports of so many nodes are to be.
func apart(nodes int) time.Duration {
	return max(reportEvery, time.Duration(float64(nodes)/reportRate*float64(time.Second)))
}

// run is a run that was reported; nil: it wasn't.
func (h *heardOf) run(id string) *epdapi.NodeRun {
	for i := range h.report.Runs {
		if r := &h.report.Runs[i]; id != "" && r.ID == id {
			return r
		}
	}
	return nil
}

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
	nodes := c.reports.put(hear(c.options.Clock(), r), jobsOn(r, c.sharesGPU))
	if len(r.GPUs) > 0 {
		c.nodes.put(r.Node, c.settings.Load().ModelName(r.GPUs[0].Model))
	}
	return epdapi.ReportAnswer{EveryS: apart(nodes).Seconds()}, nil
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
				slurm.Printable(g.UUID, epdapi.MaxModelName))
		}
	}
	return nil
}

// possible reports whether there can be such a clock; 0 is none.
func possible(f dvfsmodel.MHz) bool { return f >= 0 && f <= epdapi.MaxMHz }

func (c *Controller) getNodes(r *http.Request) (any, error) { return c.Nodes(r.Context()), nil }

// Nodes is what is known of the nodes with GPUs, as far as the caller of the
// context may see it: what Slurm said last, and what their agents reported.
func (c *Controller) Nodes(ctx context.Context) *epdapi.NodeList {
	now, heard := c.options.Clock(), c.reports.all()
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
	fresh := freshAge(len(heard))
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

// freshAge is how old a report may be that still counts.
func freshAge(nodes int) time.Duration { return freshFor*apart(nodes) + freshSlack }

// viewNode is a node for whoever asks.
func (c *Controller) viewNode(
	name string, node *slurm.Node, h *heardOf, now time.Time, fresh time.Duration, who Caller,
) epdapi.NodeView {
	v := epdapi.NodeView{Name: name, Partitions: []string{}}
	if node != nil {
		v.State = strings.Join(append([]string{node.State.Base}, node.State.Flags...), "+")
		v.Reason, v.Partitions, v.GPUs = slurm.ValidUTF8(node.Reason), list(node.Partitions), gpusOfNode(node)
	}
	if h == nil {
		return v
	}
	v.GPUs = cmp.Or(v.GPUs, len(h.report.GPUs))
	v.Heard, v.Fresh = h.at, now.Sub(h.at) <= fresh
	v.SkewS = math.Round(1e3*h.report.At.Sub(h.at).Seconds()) / 1e3
	v.Report = c.shownTo(who, h.report)
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
	return powerOf(c.reports.all(), c.nodesWithGPUs(), c.options.Clock())
}

// nodesWithGPUs are those of Slurm's last answer, by name.
func (c *Controller) nodesWithGPUs() map[string]*slurm.Node {
	byName := make(map[string]*slurm.Node)
	nodes := c.jobs.Nodes()
	for i := range nodes {
		if gpusOfNode(&nodes[i]) > 0 {
			byName[nodes[i].Name] = &nodes[i]
		}
	}
	return byName
}

// powerOf adds up the fresh reports.
func powerOf(heard map[string]*heardOf, slurms map[string]*slurm.Node, now time.Time) epdapi.ClusterPower {
	var p epdapi.ClusterPower
	fresh := freshAge(len(heard))
	for name := range slurms {
		if heard[name] == nil {
			p.Silent++
		}
	}
	for _, h := range heard {
		age := now.Sub(h.at)
		if age > fresh {
			p.Silent++
			continue
		}
		p.Nodes++
		p.Oldest = max(p.Oldest, age.Seconds())
		busy := make(map[string]bool)
		for i := range h.report.Runs {
			for _, uuid := range h.report.Runs[i].GPUs {
				busy[uuid] = busy[uuid] || !h.report.Runs[i].Ended
			}
		}
		for i := range h.report.GPUs {
			g := &h.report.GPUs[i]
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
