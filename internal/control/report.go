package control

import (
	"context"
	"fmt"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/slurm"
)

// Report keeps what a node's agent tells, in place of what it told before, and
// says when it is wanted to tell again. The error is [ErrRequest].
func (c *Controller) Report(_ context.Context, r *epdapi.NodeReport) (epdapi.ReportAnswer, error) {
	if err := checkReport(r); err != nil {
		return epdapi.ReportAnswer{}, err
	}
	c.Jobs.Hooks.Reported(r)
	kept := *r
	kept.Prologs = nil
	every := c.reports.Put(c.options.Clock(), &kept, func(id slurm.JobID) bool {
		return sharesGPU(c.Jobs.Get(id))
	})
	s := c.settings.Load()
	c.Budget.watch(s, r)
	answer := epdapi.ReportAnswer{EveryS: every.Seconds(), Budget: c.Budget.isEnforced(s)}
	if len(s.Live.SiteClocks.Partitions) == 0 || len(c.Jobs.Nodes()) > 0 { // else the node's aren't known yet
		answer.SiteClocks = []epdapi.SiteClocks{}
	}
	var suspected dvfsmodel.MHz
	for i := range r.GPUs {
		g := &r.GPUs[i]
		suspected = max(suspected, g.SuspectedLimit)
		if site, named := c.decider.SiteClocks(&s.Settings, g.Model, "", r.Node); named &&
			answer.SiteClocks != nil {
			answer.SiteClocks = append(answer.SiteClocks,
				epdapi.SiteClocks{UUID: g.UUID, Core: site.Core, Mem: site.Mem})
		}
	}
	if len(r.GPUs) > 0 {
		c.decider.GPUs.See(r.Node, s.ModelName(r.GPUs[0].Model), suspected)
	}
	return answer, nil
}

// sharesGPU reports whether a job that is known has a part of a GPU; nil: it isn't.
func sharesGPU(job *jobs.Job) bool {
	if job == nil {
		return false
	}
	_, shares := colocate.ShareRequestOf(&slurm.Job{TRESPerNode: job.TRESPerNode(), NodeCount: int(job.Nodes)})
	return shares
}

// maxGPUWatts is more than any GPU takes.
const maxGPUWatts = 1e5

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
	if n := len(r.Prologs); n > epdapi.MaxReportPrologs {
		return fmt.Errorf("%w: a report of %d Prologs, want at most %d", ErrRequest, n, epdapi.MaxReportPrologs)
	}
	for i := range r.Runs {
		if n := len(r.Runs[i].GPUs); n > epdapi.MaxReportGPUs {
			return fmt.Errorf("%w: a run on %d GPUs, want at most %d", ErrRequest, n, epdapi.MaxReportGPUs)
		}
	}
	for i := range r.GPUs {
		g := &r.GPUs[i]
		if !(g.Power >= 0 && g.Power <= maxGPUWatts) || !isPossibleClock(g.Core) || !isPossibleClock(g.Mem) ||
			!isPossibleClock(g.SuspectedLimit) || !isPossibleClock(g.LockedCore) || !isPossibleClock(g.LockedMem) ||
			!(g.Cap >= 0 && g.Cap <= maxGPUWatts) ||
			!(g.LockedCap >= 0 && g.LockedCap <= maxGPUWatts) || !arePossible(g.Profiles) ||
			!arePossible(g.ProfilesInForce) || g.LockedProfile > dvfsmodel.MaxPowerProfile {
			return fmt.Errorf("%w: GPU %s reports what no GPU can", ErrRequest,
				slurm.Printable(g.UUID, epdapi.MaxModelName))
		}
	}
	return nil
}

// arePossible reports whether these may be the names of a GPU's power profiles.
func arePossible(profiles []string) bool {
	strange := func(name string) bool { return !epdapi.IsPrintable(name, epdapi.MaxProfileName) }
	return len(profiles) <= int(dvfsmodel.MaxPowerProfile) && !slices.ContainsFunc(profiles, strange)
}

// isPossibleClock reports whether there can be such a clock; 0 is none.
func isPossibleClock(f dvfsmodel.MHz) bool { return f >= 0 && f <= epdapi.MaxMHz }
