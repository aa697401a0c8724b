package setup

import (
	"cmp"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/factors"
	"github.com/epplan/epplan/planner/hours"
	"github.com/epplan/epplan/planner/steps"
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
			Name:        "slack",
			DefaultText: "none",
			Usage: "`TIME` by which jobs without a deadline may begin later, such as 4h, if energy is then cheaper or " +
				"cleaner by [factors] series",
		},
		AtFlag("prices by the hour, --slack and --budget FILE"),
	}
}

// AtFlag says when a batch begins, for others that name times by the clock.
func AtFlag(others string) cli.Flag {
	return &cli.StringFlag{
		Name: "at", DefaultText: "the batch's first date; Slurm's queue: now",
		Usage: "`TIME` of the batch's second 0, for " + others + ": RFC 3339, +2h or 18:00",
	}
}

// PriceEnergy finds out what energy costs in plans of the problem, and warns of what nobody says.
func (s *Setup) PriceEnergy(t *terminal.Terminal, c *cli.Context) error {
	file := s.Config.FactorSeriesFile()
	var begin time.Time
	var err error
	if file != "" {
		s.clocked = true
		begin, err = s.batchStart(c)
	}
	if err != nil {
		return err
	}
	if s.Rates, err = factors.NewRates(&s.Config.Factors, file, begin, s.LastArrival()); err != nil {
		t.Message("warning", err.Error())
	}
	return nil
}

// LastArrival returns when the last job arrives, seconds.
func (s *Setup) LastArrival() (last float64) {
	for i := range s.Problem.Tasks {
		last = max(last, s.Problem.Tasks[i].Arrival)
	}
	return last
}

// WarnOfPrices warns if plans go on when the series has no prices, or share GPUs by profile.
func (s *Setup) WarnOfPrices(t *terminal.Terminal, end float64, shared bool) {
	if !s.Rates.Hourly() {
		return
	}
	file, known := s.Config.FactorSeriesFile(), s.Rates.Known
	clock := func(seconds float64) time.Duration {
		return time.Duration(seconds * float64(time.Second)).Round(time.Second)
	}
	if known.To < end {
		t.Message("warning", fmt.Sprintf("%s ends %s after second 0 of the jobs: the prices of its last day are "+
			"repeated", file, clock(known.To)))
	}
	if known.From > 0 {
		t.Message("warning", fmt.Sprintf("%s begins %s after second 0 of the jobs: its first prices hold before",
			file, clock(known.From)))
	}
	if shared {
		t.Message("warning", "jobs that share GPUs by profile: nothing is priced by the hour")
	}
}

// maxSlack is how much later jobs may begin at most.
const maxSlack = 30 * 24 * time.Hour

// Hours returns what --slack asks for; nil: nobody waits.
func (s *Setup) Hours(t *terminal.Terminal, c *cli.Context) (*Hours, error) {
	slack := c.Duration("slack")
	switch {
	case !c.IsSet("slack"):
		return nil, nil
	case slack <= 0 || slack > maxSlack:
		return nil, terminal.Usagef("--slack %v, want more than 0 and up to %v", slack, maxSlack)
	case s.Paper:
		return nil, terminal.Usagef("--slack isn't for --cluster paper, want another cluster")
	}
	file := s.Config.FactorSeriesFile()
	if file == "" {
		return nil, terminal.Usagef("--slack: nobody says what energy costs over time, want series in [factors] " +
			"of --config")
	}
	begin, err := s.clockStart(c, "slack")
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
	span := min(s.span()+slack, maxSpan)
	h.Prices, _ = series.Prices(kind, begin, span+factors.MaxQueued, &s.Config.Factors)
	if from := series.Begin(); begin.Before(from) {
		t.Message(
			"warning",
			fmt.Sprintf("%s begins at %s, after the batch's second 0 (%s): its first price counts "+
				"until then", file, from.Format(time.RFC3339), begin.Format(time.RFC3339)),
		)
	}
	if end := series.End(); end.Before(begin.Add(span)) {
		t.Message("warning", fmt.Sprintf("%s ends at %s, jobs may run until %s: the prices of its last day are "+
			"repeated", file, end.Format(time.RFC3339), begin.Add(span).Format(time.RFC3339)))
	}
	return h, nil
}

// maxSpan is the longest batch for which prices of a series' last day are repeated.
const maxSpan = 10 * 366 * 24 * time.Hour

// span returns how long after second 0 the last job ends if all start as they arrive, at default clocks.
func (s *Setup) span() time.Duration {
	last := 0.0
	for i := range s.Problem.Tasks {
		task := &s.Problem.Tasks[i]
		for k := range task.Options {
			last = max(last, task.Arrival+task.Options[k].Response.Default().Time)
		}
	}
	return time.Duration(min(last, maxSpan.Seconds()) * float64(time.Second))
}

// CheckClock refuses an --at that nothing asked for.
func (s *Setup) CheckClock(c *cli.Context) error {
	if c.IsSet("at") && !s.clocked {
		return terminal.Usagef("--at means nothing here: want it with a flag whose times are a clock's, such as " +
			"--slack, or left out")
	}
	return nil
}

// clockStart returns when the second 0 of the batch is, for the times of a flag.
func (s *Setup) clockStart(c *cli.Context, flag string) (begin time.Time, err error) {
	s.clocked = true
	if begin, err = s.batchStart(c); err == nil && begin.IsZero() {
		err = terminal.Usagef(
			"--%s: arrivals are no dates with a zone, want --at TIME for when their second 0 is",
			flag,
		)
	}
	return begin, err
}

// batchStart returns when the second 0 of the batch is; zero: nobody says.
func (s *Setup) batchStart(c *cli.Context) (begin time.Time, err error) {
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

// Money returns what energy costs over time: by [factors] series where it has prices and the batch's second 0
// is known, else by cost_per_kwh; none where neither says.
func (s *Setup) Money(t *terminal.Terminal, c *cli.Context) (prices hours.Prices, err error) {
	f := &s.Config.Factors
	if file := s.Config.FactorSeriesFile(); file != "" {
		series, err := factors.ReadFile(file)
		if err != nil {
			return prices, err
		}
		begin, unknown := s.clockStart(c, "from")
		switch {
		case !series.States(factors.Money):
		case unknown == nil:
			prices, _ = series.Prices(factors.Money, begin, s.span()+factors.MaxQueued, f)
			return prices, nil
		case c.IsSet("at"):
			return prices, unknown
		default:
			t.Notef("costs aren't by the hours of [factors] series: --at TIME says when second 0 is")
		}
	}
	if f.CostPerKWh > 0 {
		prices.Function = steps.Constant(f.Footprint(dvfsmodel.Joule(1)).Cost)
	}
	return prices, nil
}
