package control

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// How much of each an overview shows.
const (
	glanceDecisions = 20
	glanceJobs      = 10
)

func (c *Controller) getOverview(r *http.Request) (any, error) { return c.Overview(r.Context()) }

// Overview is the cluster at a glance, as far as the caller of the context may see
// it. None of it takes longer the more jobs there were.
func (c *Controller) Overview(ctx context.Context) (*epdapi.Overview, error) {
	now := c.options.Clock()
	o := &epdapi.Overview{
		At: now, Status: c.Status(ctx), Power: c.ClusterPower(), Queue: c.jobs.QueueCounts(),
	}
	first := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-epdapi.OverviewDays)
	sums, err := c.options.Store.RunDays(ctx, c.options.Cluster, first)
	if err != nil {
		return nil, err
	}
	o.Days, o.States = daysOf(sums, first), statesOf(sums)
	if o.Savings, err = c.counted.savings(ctx, c); err != nil {
		return nil, err
	}
	if operators.admits(CallerOf(ctx)) != nil {
		o.Savings.ByWorkload = nil
	}
	decisions, err := c.Decisions(ctx, "", 0, glanceDecisions)
	if err != nil {
		return nil, err
	}
	o.Decisions = decisions.Decisions
	jobs, err := c.Jobs(ctx, &epdapi.JobQuery{Limit: glanceJobs})
	if err != nil {
		return nil, err
	}
	o.Jobs = jobs.Jobs
	return o, nil
}

// daysOf are sums by day, for each of the days from the first one on.
func daysOf(sums []record.RunDay, first time.Time) []epdapi.Day {
	days := make([]epdapi.Day, epdapi.OverviewDays)
	for i := range days {
		days[i].Day = first.AddDate(0, 0, i)
	}
	for i := range sums {
		s := &sums[i]
		at := int(s.Day.Sub(first) / (24 * time.Hour))
		if at < 0 || at >= len(days) { // a node's clock is ahead
			continue
		}
		d := &days[at]
		d.Runs += s.Runs
		switch s.Arm {
		case live.ArmTreated:
			d.Treated += s.Runs
		case live.ArmHeldOut:
			d.HeldOut += s.Runs
		case live.ArmConstant:
			d.Constant += s.Runs
		case live.ArmExcluded:
		}
		if s.ExitState == record.Completed {
			d.Completed += s.Runs
		}
		d.TimeS += s.TimeS
		d.Measured, d.GPUEnergyJ = d.Measured+s.GPURuns, d.GPUEnergyJ+s.GPUEnergyJ
		d.NodeRuns, d.NodeJ = d.NodeRuns+s.NodeRuns, d.NodeJ+s.NodeEnergyJ
	}
	return days
}

// statesOf counts runs by how they ended, the most first.
func statesOf(sums []record.RunDay) []epdapi.StateCount {
	byState := make(map[string]int64)
	for i := range sums {
		byState[sums[i].ExitState] += sums[i].Runs
	}
	states := make([]epdapi.StateCount, 0, len(byState))
	for _, state := range slices.Sorted(maps.Keys(byState)) {
		states = append(states, epdapi.StateCount{State: state, Runs: byState[state]})
	}
	slices.SortStableFunc(states, func(a, b epdapi.StateCount) int { return cmp.Compare(b.Runs, a.Runs) })
	return states
}

// counted is what was saved, as of a moment ago.
type counted struct {
	turn  sync.Mutex // held while savings are computed
	saved atomic.Pointer[savedAt]
}

// savedAt is what was saved at a time.
type savedAt struct {
	at time.Time
	of Savings
}

// With very many workloads savings take some tenths of a second, so that overviews
// show them again.
const (
	savingsFor   = 15 * time.Second
	savingsStale = 5 * time.Minute // from then on they aren't shown again
	savingsTime  = 4 * time.Second
)

// savings is what was ever saved, with all that operators are told, as it was at most
// a moment ago. What is older is shown for some minutes while it is computed anew.
func (s *counted) savings(ctx context.Context, c *Controller) (Savings, error) {
	last, now := s.saved.Load(), c.options.Clock()
	if last == nil || now.Sub(last.at) > savingsStale {
		s.turn.Lock()
		defer s.turn.Unlock()
		return s.compute(ctx, c, now)
	}
	if now.Sub(last.at) > savingsFor && s.turn.TryLock() {
		go func() {
			defer s.turn.Unlock()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), savingsTime)
			defer cancel()
			_, _ = s.compute(ctx, c, now) // the next one who asks tries again
		}()
	}
	return last.of, nil
}

// compute computes savings, unless somebody did meanwhile. The caller has the turn.
func (s *counted) compute(ctx context.Context, c *Controller, now time.Time) (Savings, error) {
	if last := s.saved.Load(); last != nil && !now.After(last.at) {
		return last.of, nil
	}
	fresh, err := c.Savings(As(ctx, Caller{All: true}), time.Time{}) // others are shown it, too
	if err != nil {
		return Savings{}, err
	}
	s.saved.Store(&savedAt{now, fresh})
	return fresh, nil
}

func (c *Controller) getDecisions(r *http.Request) (any, error) {
	q := r.URL.Query()
	before, err := number(q.Get("before"), 0, 1<<62)
	if err != nil {
		return nil, err
	}
	limit, err := number(q.Get("limit"), pageSize, maxPage)
	if err != nil {
		return nil, err
	}
	return c.Decisions(r.Context(), q.Get("mode"), before, int(max(1, limit)))
}

// Decisions lists decisions on runs in a mode (empty: any), the latest first, from
// before a page's Next on. Users see those of their own latest jobs, in one page.
func (c *Controller) Decisions(
	ctx context.Context, mode string, before int64, limit int,
) (*epdapi.DecisionList, error) {
	out := &epdapi.DecisionList{Decisions: []epdapi.JobDecision{}}
	limit = min(cmp.Or(max(limit, 0), pageSize), maxPage)
	var found []record.JobDecision
	var err error
	switch who := CallerOf(ctx); {
	case who.All || who.Control:
		page, listing := c.options.Store.LastDecisions(ctx, c.options.Cluster, mode, before, limit)
		found, out.Next, err = page.Decisions, page.Next, listing
	case who.own() != "" && before == 0:
		found, err = c.options.Store.LastDecisionsOf(ctx, c.options.Cluster, who.own(), mode, limit)
	}
	if err != nil {
		return nil, err
	}
	for i := range found {
		out.Decisions = append(out.Decisions, decisionOf(&found[i]))
	}
	return out, nil
}

// decisionOf is a decision for whoever asks.
func decisionOf(d *record.JobDecision) epdapi.JobDecision {
	out := epdapi.JobDecision{
		Decision: d.Decision, Name: slurm.ValidUTF8(string(d.Name)), User: d.User, Partition: d.Partition,
		Apply: d.Mode == string(live.Enforce) && d.Setting != (dvfsmodel.Setting{}),
	}
	energy, known := d.EnergyJ.Value.Get()
	if standard, predicted := d.DefaultJ.Get(); known && predicted && d.Setting != (dvfsmodel.Setting{}) {
		out.Would = live.Known(standard - energy)
	}
	return out
}
