package main

import (
	"cmp"
	"io"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/trace/joblog"
)

// logSums sums the jobs of an accounting log.
type logSums struct {
	by, layout string // of the parts of the period: a day or a month
	groups     map[string]epdapi.UsageSum
	parts      map[string]epdapi.UsageSum
	noGPUs     int
}

// usageOfLog returns the usage of the jobs of --log that ended in the flags' period.
func usageOfLog(t *terminal.Terminal, c *cli.Context, by string) (*epdapi.Usage, error) {
	if by == "workload" || !slices.Contains(record.Groupings, by) {
		return nil, terminal.Usagef("--by %q, want user, account, partition or gpu with --log", by)
	}
	since, until, err := periodOf(c, time.Now())
	if err != nil {
		return nil, err
	}
	s := &setup.Setup{}
	if err := s.Configure(t, c); err != nil {
		return nil, err
	}
	name, layout := c.String("log"), time.DateOnly
	if since.IsZero() || cmp.Or(until.Unix(), time.Now().Unix())-since.Unix() > int64((62*24*time.Hour).Seconds()) {
		layout = "2006-01"
	}
	sums := &logSums{
		by: by, layout: layout, groups: make(map[string]epdapi.UsageSum), parts: make(map[string]epdapi.UsageSum),
	}
	var tally *joblog.Tally
	err = t.Read(name, func(r io.Reader, name string) (err error) {
		tally, err = joblog.ReadAny(setup.NewProgressReader(c.Context, r, nil), name,
			&joblog.Options{Zone: time.Local, Profiles: s.Config.Profiles()}, func(p *record.HistoryJob) error {
				if !p.Ended.Before(since) && (until.IsZero() || p.Ended.Before(until)) {
					sums.add(p)
				}
				return nil
			})
		return err
	})
	if err != nil {
		return nil, err
	}
	setup.WarnOfLog(t, tally)
	if sums.noGPUs > 0 {
		t.Notef("left out: %s without GPUs", report.Plural(sums.noGPUs, "job"))
	}
	return sums.usage(&epdapi.Usage{
		Since: since, Until: until, By: by, Log: name, Factors: epdapi.NewFactors(&s.Config.Factors),
	}), tally.CheckBad(joblog.MaxBad)
}

func (l *logSums) add(p *record.HistoryJob) {
	seconds, ran := p.RunTime().Get()
	gpus, _ := p.GPUs.Get()
	switch {
	case !ran || seconds <= 0:
		return
	case gpus <= 0:
		l.noGPUs++
		return
	}
	one := epdapi.UsageSum{Jobs: 1, Runs: 1, GPUS: gpus * seconds}
	if joules, known := p.EnergyJ.Get(); known {
		one.EnergyJ, one.EnergyRuns, one.EnergyGPUS = joules, 1, one.GPUS
	}
	for sums, key := range map[*map[string]epdapi.UsageSum]string{
		&l.groups: map[string]string{
			"user": p.User, "account": p.Account, "partition": p.Partition, "gpu": p.GPUModel,
		}[l.by],
		&l.parts: p.Ended.Local().Format(l.layout),
	} {
		sum := (*sums)[key]
		sum.Add(&one)
		sum.Key = key
		(*sums)[key] = sum
	}
}

// usage adds the sums to a usage, as epd does.
func (l *logSums) usage(u *epdapi.Usage) *epdapi.Usage {
	for _, g := range l.groups {
		u.Groups = append(u.Groups, g)
		u.Total.Add(&g)
	}
	slices.SortFunc(u.Groups, func(a, b epdapi.UsageSum) int {
		return cmp.Or(cmp.Compare(b.EnergyJ, a.EnergyJ), cmp.Compare(a.Key, b.Key))
	})
	if n := len(u.Groups) - epdapi.MaxUsageGroups; n > 0 {
		u.OtherCount, u.Others = n, &epdapi.UsageSum{}
		for i := range u.Groups[epdapi.MaxUsageGroups:] {
			u.Others.Add(&u.Groups[epdapi.MaxUsageGroups+i])
		}
		u.Groups = u.Groups[:epdapi.MaxUsageGroups]
	}
	for _, sum := range l.parts {
		from, err := time.ParseInLocation(l.layout, sum.Key, time.Local)
		if err != nil {
			continue // it was formatted so
		}
		until := from.AddDate(0, 0, 1)
		if l.layout != time.DateOnly {
			until = from.AddDate(0, 1, 0)
		}
		sum.Key = ""
		u.Over = append(u.Over, epdapi.UsagePart{From: from, Until: until, UsageSum: sum})
	}
	slices.SortFunc(u.Over, func(a, b epdapi.UsagePart) int { return a.From.Compare(b.From) })
	return u
}
