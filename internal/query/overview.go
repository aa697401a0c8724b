package query

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// How much of each an overview shows.
const (
	glanceDecisions = 20
	glanceJobs      = 10
)

// Overview returns the cluster at a glance, as far as a caller may see it. None of it takes
// longer the more jobs there were.
func (s *Service) Overview(ctx context.Context, who Caller) (*epdapi.Overview, error) {
	now := s.options.Clock()
	o := &epdapi.Overview{
		At: now, Status: s.Status(ctx, who), Power: s.Power(), Queue: s.options.Tracker.QueueCounts(),
	}
	month := monthOf(now)
	first := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-epdapi.OverviewDays)
	sums, err := s.options.Records.Sums.RunDays(ctx, s.options.Cluster, earlier(first, month.AddDate(0, -1, 0)))
	if err != nil {
		return nil, err
	}
	o.Days, o.Months, o.States = daysOf(sums, first), monthsOf(sums, month), statesOf(sums, first)
	saved, err := s.savings.get(ctx, s)
	if err != nil {
		return nil, err
	}
	o.Savings, o.Hours = saved.of, saved.hours
	for i := range o.Months {
		o.Months[i].Saved = saved.months[o.Months[i].Day]
	}
	// What others are shown, too, isn't the caller's to change.
	o.Savings.ByWorkload = slices.Clone(o.Savings.ByWorkload)
	if Operators.Admits(who) != nil {
		o.Savings.ByWorkload = nil
	}
	decisions, err := s.Decisions(ctx, who, "", 0, glanceDecisions)
	if err != nil {
		return nil, err
	}
	o.Decisions = decisions.Decisions
	jobs, err := s.Jobs(ctx, who, &epdapi.JobQuery{Limit: glanceJobs})
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
		addRunDay(&days[at], s)
	}
	return days
}

// monthsOf returns the sums of the month that begins on a day, and of the one before.
func monthsOf(sums []record.RunDay, month time.Time) []epdapi.Day {
	months := []epdapi.Day{{Day: month}, {Day: month.AddDate(0, -1, 0)}}
	for i := range months {
		for k := range sums {
			if day := sums[k].Day; !day.Before(months[i].Day) && day.Before(months[i].Day.AddDate(0, 1, 0)) {
				addRunDay(&months[i], &sums[k])
			}
		}
	}
	return months
}

// monthOf returns the begin of a time's month, in UTC.
func monthOf(t time.Time) time.Time {
	t = t.UTC()
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func addRunDay(d *epdapi.Day, s *record.RunDay) {
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

// statesOf counts the runs since a day by how they ended, the most first.
func statesOf(sums []record.RunDay, first time.Time) []epdapi.StateCount {
	byState := make(map[string]int64)
	for i := range sums {
		if !sums[i].Day.Before(first) {
			byState[sums[i].ExitState] += sums[i].Runs
		}
	}
	states := make([]epdapi.StateCount, 0, len(byState))
	for _, state := range slices.Sorted(maps.Keys(byState)) {
		states = append(states, epdapi.StateCount{State: state, Runs: byState[state]})
	}
	slices.SortStableFunc(states, func(a, b epdapi.StateCount) int { return cmp.Compare(b.Runs, a.Runs) })
	return states
}
