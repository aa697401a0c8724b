package setup

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/planner"
)

// TimeLimitFlag bounds planning by the clock.
func TimeLimitFlag(usage string) cli.Flag {
	return &cli.DurationFlag{
		Name: "time-limit", DefaultText: "none", Usage: usage,
		Action: func(_ *cli.Context, limit time.Duration) error {
			if limit <= 0 {
				return terminal.Usagef("--time-limit %v, want more than 0, such as 2s", limit)
			}
			return nil
		},
	}
}

// PlanningMonitor returns a monitor for planning that shows on a terminal how far it is. From now on
// an interrupted command isn't given up: it ends with what it has.
func PlanningMonitor(t *terminal.Terminal) (monitor *planner.Monitor, done func()) {
	t.KeepsPartial.Store(true)
	line := report.NewProgress(t.Stderr, t.Progress, t.Now, "plan", 1)
	monitor = &planner.Monitor{}
	if t.Progress {
		monitor.OnProgress = func(p planner.Progress) {
			line.Show(p.Doing, p.Done, p.Total, BestSoFarText("best", &p))
		}
	}
	return monitor, line.Finish
}

// BestSoFarText returns what the best plan so far comes to; empty: there is none.
func BestSoFarText(what string, p *planner.Progress) string {
	if !p.Planned {
		return ""
	}
	return fmt.Sprintf("%s %s, %s past due", what, report.FormatJoules(p.Energy),
		report.FormatCount(p.PastDue))
}
