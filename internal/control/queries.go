package control

import (
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/decide"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/live"
)

// newQuery makes what answers pages and commands.
func (c *Controller) newQuery() *query.Service {
	return query.New(&query.Options{
		Records: c.options.Records.Queries, Cluster: c.options.Cluster,
		Settings: func() *query.Settings {
			s := c.settings.Load()
			return &query.Settings{
				Version: s.Version, Goal: s.Goal, Live: &s.Live, Factors: &s.Factors, Profiles: s.Profiles,
				Sharing: s.sharing(), HostW: s.HostPower, Footprint: s.footprint,
				Choose: func(q *query.Choice) (live.Decision, dvfsmodel.Setting) {
					return c.decider.Preview(&s.Settings, q.Job, q.Shared, q.GPUModel, q.Model, q.Wishes, q.Now)
				},
			}
		},
		Status: c.status, Tracker: c.Jobs, Learner: c.learner, Forecasts: c.forecasts, Reports: c.reports,
		Budgets:  c.Budget.budgetList,
		Plan:     c.Plan,
		GPUNames: c.Foresight.gpuNames,
		Clocks: func(gpuModel string) (query.Clocks, bool) {
			seen := c.decider.GPUs.Clocks(gpuModel)
			if seen == nil {
				return query.Clocks{}, false
			}
			return query.Clocks{Base: seen.Base, Pairs: slices.DeleteFunc(slices.Clone(seen.Pairs),
				func(pair dvfsmodel.Setting) bool { return pair.AtMost(seen.Site) != pair })}, true
		},
		Workload: func(workload, partition, gpuModel string) string {
			return decide.WorkloadIn(c.decider, workload, partition, gpuModel)
		},
		Scripted: func() bool { return c.counters.scripts.Load() > 0 },
		Profile:  c.Foresight.profileOf, Reload: c.reload, UserName: c.options.UserName,
		Clock: c.options.Clock, Log: c.options.Log,
	})
}
