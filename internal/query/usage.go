package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// Usage returns the usage of runs that ended in a period, by user (""), account, partition, workload or
// gpu: of all, to operators, or of the caller's own ones. A zero time leaves the period open.
func (s *Service) Usage(
	ctx context.Context, who Caller, since, until time.Time, by string, own bool,
) (u epdapi.Usage, err error) {
	if by = cmp.Or(by, record.Groupings[0]); !slices.Contains(record.Groupings, by) {
		return u, fmt.Errorf("%w: by is %s, want one of %s", epdapi.ErrRequest, slurm.Printable(by, 40),
			strings.Join(record.Groupings, ", "))
	}
	u = epdapi.Usage{
		Since: since, Until: until, By: by, Own: own || Operators.Admits(who) != nil,
		Groups: []epdapi.UsageSum{}, Over: []epdapi.UsagePart{},
		Factors: epdapi.NewFactors(s.options.Settings().Factors),
	}
	if u.Own {
		if u.User = who.Name; u.User == "" { // nobody's job is theirs
			return u, nil
		}
	}
	if err := s.addUsageGroups(ctx, &u); err != nil {
		return u, err
	}
	pruned, err := s.options.Records.Sums.PrunedUsage(ctx, s.options.Cluster, since, until)
	if err != nil {
		return u, err
	}
	if pruned.Runs > 0 {
		sum := usageSum(&pruned)
		u.Pruned = &sum
	}
	if u.Own {
		return u, nil
	}
	if u.Pruned != nil {
		u.Total.Add(u.Pruned)
	}
	if u.Over, err = s.usageOver(ctx, since, until); err != nil {
		return u, err
	}
	saved, err := s.Savings(ctx, who, since, until)
	u.Savings = &saved
	return u, err
}

// addUsageGroups adds the groups, and their sum.
func (s *Service) addUsageGroups(ctx context.Context, u *epdapi.Usage) error {
	groups, err := s.options.Records.Sums.Usage(ctx, s.options.Cluster, u.Since, u.Until, u.By, u.User)
	if err != nil {
		return err
	}
	settings := s.options.Settings()
	for i := range groups {
		sum := usageSum(&groups[i])
		sum.Measured = groupSaving(groups[i].Strata, settings)
		for _, idle := range groups[i].Idle {
			sum.IdleGPUS += idle.GPUSeconds
			if p, err := settings.Profiles.Lookup(idle.GPUModel); err == nil {
				sum.IdleJ += idle.GPUSeconds * float64(p.IdleW)
			}
		}
		if u.Total.Add(&sum); i < epdapi.MaxUsageGroups {
			u.Groups = append(u.Groups, sum)
			continue
		}
		if u.OtherCount++; u.Others == nil {
			u.Others = &epdapi.UsageSum{}
		}
		u.Others.Add(&sum)
	}
	if u.By == "workload" {
		nameWorkloads(ctx, &s.lastJobs, u.Groups, func(g *epdapi.UsageSum) (string, *epdapi.LastJob) {
			return g.Key, &g.LastJob
		})
	}
	return nil
}

func usageSum(u *record.Usage) epdapi.UsageSum {
	return epdapi.UsageSum{
		Key: u.Key, Jobs: u.Jobs, Runs: u.Runs, GPUS: u.GPUSeconds, EnergyJ: u.EnergyJ, EnergyRuns: u.EnergyRuns,
		GPUEnergyJ: u.GPUEnergyJ, NodeEnergyJ: u.NodeEnergyJ, NodeRuns: u.NodeRuns, HeldOutJ: u.HeldOutJ,
		NodeModelledJ: u.ModelledJ, EnergyGPUS: u.EnergyGPUSeconds,
		Modelled: epdapi.ModelledUse{
			Runs: u.Predicted.Runs, DefaultJ: u.Predicted.DefaultJ, UsedJ: u.Predicted.GPUJ,
		},
	}
}

// usageOver returns the usage by days or months, between the oldest record and now.
func (s *Service) usageOver(ctx context.Context, since, until time.Time) ([]epdapi.UsagePart, error) {
	sums, cluster := s.options.Records.Sums, s.options.Cluster
	first, err := sums.Oldest(ctx)
	if err != nil || first.IsZero() {
		return []epdapi.UsagePart{}, err
	}
	now, end := s.options.Clock(), until
	if since.IsZero() {
		since = first
	}
	if end.IsZero() {
		end = now.AddDate(0, 1, 0)
	}
	if until.IsZero() || until.After(now) {
		until = now
	}
	parts := []epdapi.UsagePart{}
	for from := range partsOf(since.Local(), until.Local()) {
		part := epdapi.UsagePart{From: from[0], Until: from[1]}
		all, err := sums.Usage(ctx, cluster, part.From, part.Until, "", "")
		if err != nil {
			return nil, err
		}
		for i := range all {
			part.UsageSum = usageSum(&all[i])
		}
		prunedUntil := part.Until
		if prunedUntil.Equal(until) { // the middle of this month may be still to come
			prunedUntil = end
		}
		pruned, err := sums.PrunedUsage(ctx, cluster, part.From, prunedUntil)
		if err != nil {
			return nil, err
		}
		part.PrunedJ = pruned.EnergyJ
		parts = append(parts, part)
	}
	return parts, nil
}

// A period of up to mostDays is divided into days, a longer one into its last mostMonths months.
const (
	mostDays   = 62
	mostMonths = 120
)

// partsOf yields the days or months of a period, in the time zone of its times.
func partsOf(since, until time.Time) func(yield func([2]time.Time) bool) {
	days, months := 1, 0
	if until.Sub(since) > mostDays*24*time.Hour+time.Hour { // a clock may be put back
		days, months = 0, 1
		if earliest := until.AddDate(0, -mostMonths, 0); since.Before(earliest) {
			since = earliest
		}
	}
	return func(yield func([2]time.Time) bool) {
		for since.Before(until) {
			day := since.Day()
			if months > 0 {
				day = 1
			}
			next := time.Date(since.Year(), since.Month()+time.Month(months), day+days, 0, 0, 0, 0, since.Location())
			if next.After(until) {
				next = until
			}
			if !yield([2]time.Time{since, next}) {
				return
			}
			since = next
		}
	}
}
