package daemon

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/pause"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// How often a node reports to its controller, unless that says otherwise. What it
// says is kept within bounds, and the times of many nodes are spread.
const (
	reportEvery   = 15 * time.Second
	reportSooner  = time.Second
	reportLater   = 10 * time.Minute
	reportBound   = 5 * time.Second
	reportSpread  = 0.2 // of the time between two
	reportedTexts = 300 // bytes of what went wrong
)

// reportLoop tells the controller how the node fares, again and again until the
// context ends. Nothing depends on it, so that what fails is no trouble: the next
// one comes.
func (d *AgentServer) reportLoop(ctx context.Context) {
	for pause.For(ctx, d.rest) == nil {
		d.rest = d.report(ctx)
	}
}

// report tells the controller once, and returns how long to wait for the next time.
func (d *AgentServer) report(ctx context.Context) time.Duration {
	r := d.nodeReport()
	ctx, cancel := context.WithTimeout(ctx, reportBound)
	defer cancel()
	answer, err := d.options.Controller.Report(ctx, r)
	every := reportEvery
	switch {
	case err != nil:
		d.options.Log.Debug("the controller wasn't told how the node fares", "error", err)
	case answer.EveryS > 0:
		every = min(max(live.Known(answer.EveryS).Duration(), reportSooner), reportLater)
	}
	if err == nil && answer.Budget {
		d.leaser.trigger()
	}
	if err == nil && d.options.Site.update(answer.SiteClocks) {
		if err := d.options.Agent.Settle(ctx); err != nil {
			d.problems.note(fmt.Errorf("set the site's clocks: %w", err))
		}
	}
	spread := 1 + reportSpread*(rand.Float64()-0.5) //nolint:gosec // no secret
	return time.Duration(spread * float64(every))
}

// Site holds the highest clocks that the site allows on each GPU of the node, as the controller told last.
type Site struct {
	mu      sync.Mutex
	isKnown bool
	byUUID  map[string]dvfsmodel.Setting
}

// Of returns the highest clocks of a GPU, 0 for any; false before the controller told.
func (s *Site) Of(id gpu.Identity) (ceiling dvfsmodel.Setting, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byUUID[id.UUID], s.isKnown
}

// update takes what the controller told, and reports whether it is news; nil: the controller doesn't say.
func (s *Site) update(list []epdapi.SiteClocks) (news bool) {
	if s == nil || list == nil {
		return false
	}
	next := make(map[string]dvfsmodel.Setting, len(list))
	for _, c := range list {
		if c.Core >= 0 && c.Mem >= 0 {
			next[c.UUID] = dvfsmodel.Setting{Core: c.Core, Mem: c.Mem}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	news = !s.isKnown || !maps.Equal(next, s.byUUID)
	s.isKnown, s.byUUID = true, next
	return news
}

// nodeReport returns how the node fares now.
func (d *AgentServer) nodeReport() *epdapi.NodeReport {
	state := d.options.Agent.State()
	r := &epdapi.NodeReport{
		Node: d.options.Node, Version: d.options.Version, Started: d.started, At: time.Now(),
		GPUs: []epdapi.NodeGPU{}, Runs: []epdapi.NodeRun{}, Troubles: []epdapi.Problem{},
		Unrecorded: d.options.Spool.Len(), Steps: state.Steps, Prologs: d.prologs.jobs(),
	}
	if aside, err := d.options.Spool.Aside(); err == nil {
		r.Aside = len(aside)
	}
	r.GPUs = append(r.GPUs, make([]epdapi.NodeGPU, len(state.GPUs))...)
	var group sync.WaitGroup
	for i := range state.GPUs { // side by side: a driver may be slow
		group.Go(func() { r.GPUs[i] = d.reportGPU(&state.GPUs[i]) })
	}
	group.Wait()
	slices.SortFunc(r.GPUs, func(a, b epdapi.NodeGPU) int { return cmp.Compare(a.Minor, b.Minor) })
	for i := range state.Runs {
		run := &state.Runs[i]
		if run.Ended {
			r.Unrecorded++
		}
		r.Runs = append(r.Runs, epdapi.NodeRun{
			Run: runOfStatus(run), Partition: d.outbox.partition(run.ID), Readings: run.Readings,
		})
	}
	latest, troubled := d.problems.latestProblems()
	r.Troubled = troubled
	for _, t := range latest[max(0, len(latest)-epdapi.MaxReportTroubles):] {
		r.Troubles = append(r.Troubles, epdapi.Problem{
			At: t.At, Message: slurm.Printable(t.Message, reportedTexts),
		})
	}
	r.LeftOut = max(0, len(r.GPUs)-epdapi.MaxReportGPUs) + max(0, len(r.Runs)-epdapi.MaxReportRuns)
	r.GPUs, r.Runs = r.GPUs[:min(len(r.GPUs), epdapi.MaxReportGPUs)],
		r.Runs[:min(len(r.Runs), epdapi.MaxReportRuns)]
	return r
}

// reportGPU returns one GPU with what it measures now, if it can.
func (d *AgentServer) reportGPU(state *agent.GPUState) epdapi.NodeGPU {
	out := epdapi.NodeGPU{Writes: state.Writes, SuspectedLimit: state.Suspected}
	out.GPU, out.Read, out.Utilisation = d.readGPU(state)
	if table, err := d.options.Agent.GPUs().Clocks(state.Identity.UUID); err == nil {
		for _, cores := range table.Core {
			for _, f := range cores {
				out.MaxCore = max(out.MaxCore, f)
				if out.MinCore == 0 || f < out.MinCore {
					out.MinCore = f
				}
			}
		}
	}
	if state.Entry == nil {
		return out
	}
	for control := range gpu.NumControls {
		h, ok := state.Entry.Controls[control]
		if ok && h.Run != "" && (out.Journal == nil || h.Since.Before(out.Journal.Since)) {
			out.Journal = &epdapi.JournalEntry{Since: h.Since, RunID: h.Run, Job: h.Job}
		}
	}
	return out
}

// recentPrologs are the jobs whose Prologs came last, for the controller, which knows from Slurm whose should
// have.
type recentPrologs struct {
	mu   sync.Mutex
	list []slurm.JobID // oldest first
}

func (p *recentPrologs) add(job slurm.JobID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, job)
	p.list = p.list[max(0, len(p.list)-epdapi.MaxReportPrologs):]
}

func (p *recentPrologs) jobs() []slurm.JobID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]slurm.JobID{}, p.list...)
}
