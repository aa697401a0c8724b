package query

import (
	"context"
	"slices"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// maxPlanned is how many jobs of a plan are listed: those that are to start first.
const maxPlanned = 1000

// Plan returns the plan in force with the jobs that a caller may see; nil: there is none that anything
// but the order of is meant.
func (s *Service) Plan(_ context.Context, who Caller) *live.Plan {
	plan := s.options.Plan.Plan(s.options.Clock())
	if plan == nil || plan.OrderOnly {
		return nil
	}
	if !who.canSeeAll() {
		plan.Jobs = slices.DeleteFunc(slices.Clone(plan.Jobs), func(j live.PlannedJob) bool {
			return !who.canSee(j.User)
		})
		plan.Recent = slices.DeleteFunc(plan.Recent, func(s live.PlanStart) bool { return !who.canSee(s.User) })
		plan.Without, plan.EnergyJ, plan.Trouble = 0, 0, ""
	}
	plan.Jobs = plan.Jobs[:min(len(plan.Jobs), maxPlanned)]
	return plan
}

// plannedFor returns what the plan in force has for a job that waits; nil: there is no plan.
func (r *reader) plannedFor(id slurm.JobID, job *jobs.Job) *epdapi.JobPlan {
	if job.State() != slurm.Pending {
		return nil
	}
	now := r.options.Clock()
	advice := r.options.Plan.AdviceFor(id, 0, now)
	if advice.Policy == "" {
		return nil
	}
	return &epdapi.JobPlan{
		Policy: advice.Policy, Mode: string(r.options.Settings().Live.PlanModeOf(job.Partition.Value())),
		Planned: advice.Job, Why: advice.Why,
	}
}
