package setup

import (
	"cmp"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/factors"
	"github.com/epplan/epplan/planner/hours"
	"github.com/epplan/epplan/slurm"
)

// Hours are how much later jobs may begin, and what energy costs over time.
type Hours struct {
	Slack  float64 // seconds
	Prices hours.Prices
	Unit   string // of costs: a currency, or g of CO2
}

// HoursFlags are about jobs that can wait for cheap or clean hours.
func HoursFlags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{
			Name: "slack", DefaultText: "none",
			Usage: "`TIME` by which jobs without a deadline may begin later, such as 4h, if energy is then cheaper or " +
				"cleaner by [factors] series",
		},
		&cli.StringFlag{
			Name: "at", DefaultText: "the batch's first date; Slurm's queue: now",
			Usage: "`TIME` of the batch's second 0, for --slack: RFC 3339, +2h or 18:00",
		},
	}
}

// maxSlack is how much later jobs may begin at most.
const maxSlack = 30 * 24 * time.Hour

// Hours returns what --slack asks for; nil: nobody waits.
func (s *Setup) Hours(t *terminal.Terminal, c *cli.Context) (*Hours, error) {
	slack := c.Duration("slack")
	switch {
	case !c.IsSet("slack") && c.IsSet("at"):
		return nil, terminal.Usagef("--at means nothing without --slack, want that too")
	case !c.IsSet("slack"):
		return nil, nil
	case slack <= 0 || slack > maxSlack:
		return nil, terminal.Usagef("--slack %v, want more than 0 and up to %v", slack, maxSlack)
	case c.IsSet(BudgetFlag):
		return nil, terminal.Usagef("--slack and --%s don't go together, want one of them", BudgetFlag)
	case s.Paper:
		return nil, terminal.Usagef("--slack isn't for --cluster paper, want another cluster")
	}
	file := s.Config.FactorSeriesFile()
	if file == "" {
		return nil, terminal.Usagef("--slack: nobody says what energy costs over time, want series in [factors] " +
			"of --config")
	}
	begin, err := s.clockStart(c)
	if err != nil {
		return nil, err
	}
	series, err := factors.ReadFile(file)
	if err != nil {
		return nil, err
	}
	kind, err := s.kindOf(series)
	if err != nil {
		return nil, err
	}
	h := &Hours{Slack: slack.Seconds(), Unit: "g of CO2"}
	if kind == factors.Money {
		h.Unit = cmp.Or(s.Config.Factors.Currency, "of its currency")
	}
	last := 0.0
	for i := range s.Problem.Tasks {
		task := &s.Problem.Tasks[i]
		for k := range task.Options {
			last = max(last, task.Arrival+task.Options[k].Response.Default().Time)
		}
	}
	span := min(time.Duration(min(last, maxSpan.Seconds())*float64(time.Second))+slack, maxSpan)
	h.Prices, _ = series.Prices(kind, begin, span+queued, &s.Config.Factors)
	if from := series.Begin(); begin.Before(from) {
		t.Message("warning", fmt.Sprintf("%s begins at %s, after the batch's second 0 (%s): its first price counts "+
			"until then", file, from.Format(time.RFC3339), begin.Format(time.RFC3339)))
	}
	if end := series.End(); end.Before(begin.Add(span)) {
		t.Message("warning", fmt.Sprintf("%s ends at %s, jobs may run until %s: the prices of its last day are "+
			"repeated", file, end.Format(time.RFC3339), begin.Add(span).Format(time.RFC3339)))
	}
	return h, nil
}

// Prices of a series' last day are repeated for a batch of up to maxSpan, and for as long as its jobs may be
// queued.
const (
	maxSpan = 10 * 366 * 24 * time.Hour
	queued  = 366 * 24 * time.Hour
)

// clockStart returns when the second 0 of the batch is.
func (s *Setup) clockStart(c *cli.Context) (begin time.Time, err error) {
	now := time.Now()
	if text := c.String("at"); text != "" {
		if begin, err = slurm.TimeAt(text, now); err != nil {
			return begin, terminal.Usagef("--at: %v", err)
		}
		return begin, nil
	}
	if s.Batch != nil {
		begin = s.Batch.Start
	}
	if !s.QueueAt.IsZero() {
		begin = s.QueueAt
	}
	if begin.IsZero() {
		return begin, terminal.Usagef("--slack: arrivals are no dates with a zone, want --at TIME for when their " +
			"second 0 is")
	}
	return begin, nil
}

// kindOf returns what hours are chosen by: what the objective says, or what the series states.
func (s *Setup) kindOf(series *factors.Series) (factors.Kind, error) {
	money, carbon := series.States(factors.Money), series.States(factors.Carbon)
	switch {
	case s.Config.CountsCarbon() && carbon:
		return factors.Carbon, nil
	case s.Config.CountsCost() && money, money && !carbon && !s.Config.CountsCarbon():
		return factors.Money, nil
	case carbon && !money && !s.Config.CountsCost():
		return factors.Carbon, nil
	case money && carbon:
		return 0, terminal.Usagef("--slack: [factors] series has prices and carbon, want [objective] name cost " +
			"or carbon")
	}
	return 0, terminal.Usagef("--slack: [factors] series doesn't state what [objective] name asks for, want " +
		"cost_per_kwh for cost or carbon_g_per_kwh for carbon")
}
