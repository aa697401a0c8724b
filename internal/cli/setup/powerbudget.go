package setup

import (
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/budget"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/planner/powerbudget"
	"github.com/epplan/epplan/slurm"
)

// BudgetFlag names the power budget of a plan, budgetOfConfig that of [budget] in the configuration.
const (
	BudgetFlag     = "budget"
	budgetOfConfig = "config"
)

// PowerBudget is the power that a plan may take over time.
type PowerBudget struct {
	standing dvfsmodel.Watt // 0: there is only the series
	series   *budget.Series // nil: there is none
	begin    time.Time      // of the plan, where the series has times of a clock
}

// PowerBudget reads what --budget says: a power such as 300kW, a CSV file with watts over time, or config. It
// is nil if there is none.
func (s *Setup) PowerBudget(t *terminal.Terminal, c *cli.Context) (b *PowerBudget, err error) {
	own, text := &s.Config.Budget, c.String(BudgetFlag)
	if text == "" {
		return nil, nil
	}
	b, file := &PowerBudget{}, text
	if b.standing, err = budget.ParseWatts(text); err == nil {
		return b, nil
	}
	switch {
	case text == budgetOfConfig && own.Cluster == 0 && own.Series == "":
		return nil, terminal.Usagef("--%s config: want cluster_w or series in [budget] of --config", BudgetFlag)
	case text == budgetOfConfig:
		b.standing, file = dvfsmodel.Watt(own.Cluster), s.Config.BudgetSeriesFile()
		if len(own.Partitions)+len(own.Nodes) > 0 {
			t.Warningf("partitions_w and nodes_w of [budget] aren't kept: a plan's budget is the cluster's")
		}
	case !strings.ContainsAny(text, "./"):
		return nil, terminal.Usagef("--%s: %v, a CSV file with the columns time_s or time, and watts, or config",
			BudgetFlag, err)
	}
	if file == "" {
		return b, nil
	}
	if b.series, err = terminal.ParseFile(t, file, budget.ReadPlanSeries); err != nil {
		return nil, err
	}
	if b.series.HasClock() {
		b.begin, err = s.clockStart(c, BudgetFlag)
	}
	return b, err
}

// Until returns the budget of a plan that would end at a time, seconds, without it. From twice that on it
// is the least that is to come.
func (b *PowerBudget) Until(end float64) (all powerbudget.Budget) {
	if b.series == nil {
		return powerbudget.Budget{{Watts: b.standing}}
	}
	const day, more = 24 * time.Hour, 2
	days := int(min(2*end, maxTime.Seconds())/day.Seconds()) + more
	for _, step := range b.series.Ahead(b.begin.Local(), b.standing, days) {
		from := max(0, step.From.Sub(b.begin).Seconds())
		if n := len(all); n > 0 && all[n-1].From >= from {
			all = all[:n-1]
		}
		all = append(all, powerbudget.Step{From: from, Watts: step.Watts})
	}
	return all
}

// noteBudget says that a configuration's budget isn't kept, and what keeps it.
func (s *Setup) noteBudget(t *terminal.Terminal, c *cli.Context) {
	if !s.Config.Budget.IsSet() || c.IsSet(BudgetFlag) {
		return
	}
	how := "epplan plan --" + BudgetFlag + " " + budgetOfConfig + " keeps it"
	if slices.ContainsFunc(c.Command.Flags, func(f cli.Flag) bool { return f.Names()[0] == BudgetFlag }) {
		how = "--" + BudgetFlag + " " + budgetOfConfig + " keeps it"
	}
	if s.Config.Budget.Cluster == 0 && s.Config.Budget.Series == "" {
		how = "plans keep only cluster_w and series"
	}
	t.Notef("[budget] of the configuration isn't kept here: %s", how)
}

// maxTime is how far ahead a window may be, and how long.
const maxTime = 366 * 24 * time.Hour

// Times reads a flag with times such as 15m,4h, each of so much at least, in seconds.
func Times(c *cli.Context, flag string, least time.Duration) (all []float64, err error) {
	for text := range strings.SplitSeq(c.String(flag), ",") {
		d, err := time.ParseDuration(strings.TrimSpace(text))
		if err != nil || d < least || d > maxTime {
			return nil, terminal.Usagef("--%s %q, want times such as 15m,4h", flag, c.String(flag))
		}
		all = append(all, d.Seconds())
	}
	return all, nil
}

// Moments reads a flag with times of a plan, in seconds: from its begin on, such as 1h, or as --at has them.
func (s *Setup) Moments(c *cli.Context, flag string) (all []float64, err error) {
	for text := range strings.SplitSeq(c.String(flag), ",") {
		from, wrong := time.ParseDuration(strings.TrimSpace(text))
		if wrong != nil {
			var begin, at time.Time
			begin, err = s.clockStart(c, flag)
			at, wrong = slurm.TimeAt(strings.TrimSpace(text), begin.Local().Add(-1)) // it may be the begin itself
			from = at.Sub(begin)
		}
		switch {
		case wrong != nil || err == nil && (from < 0 || from > maxTime):
			return nil, terminal.Usagef("--%s %q, want times such as 1h or 17:00", flag, c.String(flag))
		case err != nil:
			return nil, err
		}
		all = append(all, from.Seconds())
	}
	return all, nil
}
