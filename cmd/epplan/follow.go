package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/planreport"
	"github.com/epplan/epplan/planner"

	"github.com/epplan/epplan/internal/cli/terminal"
)

// timeLimitFlag bounds planning by the clock.
func timeLimitFlag(usage string) cli.Flag {
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

// planningMonitor is a monitor for planning that shows on a terminal how far it is. From now on
// an interrupted command isn't given up: it ends with what it has.
func planningMonitor(t *terminal.Terminal) (monitor *planner.Monitor, done func()) {
	t.KeepsPartial.Store(true)
	line := report.NewProgress(t.Stderr, t.Progress, t.Now, "plan", 1)
	monitor = &planner.Monitor{}
	if t.Progress {
		monitor.OnProgress = func(p planner.Progress) {
			line.Show(p.Doing, p.Done, p.Total, bestSoFarText("best", &p))
		}
	}
	return monitor, line.Finish
}

// bestSoFarText is what the best plan so far comes to; empty: there is none.
func bestSoFarText(what string, p *planner.Progress) string {
	if !p.Planned {
		return ""
	}
	return fmt.Sprintf("%s %s, %s past due", what, report.FormatJoules(p.Energy),
		report.FormatCount(p.PastDue))
}

// rowsProgress is a line on a terminal that says how far the rows of a comparison are.
type rowsProgress struct {
	mu    sync.Mutex
	line  *report.Progress
	rows  int
	done  int
	doing []string // rows under way
	best  planner.Progress
	whose string // the best plan
}

func (r *rowsProgress) begin(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doing = append(r.doing, name)
	r.show()
}

func (r *rowsProgress) end(name string, run *planreport.Run) {
	r.tell(name, planner.Progress{
		Planned: run.Planned(), PastDue: run.Summary.PastDue, Energy: run.Summary.Energy,
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	at := slices.Index(r.doing, name)
	r.doing = slices.Delete(r.doing, at, at+1)
	r.show()
}

func (r *rowsProgress) tell(name string, p planner.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if better := !r.best.Planned || p.PastDue < r.best.PastDue ||
		p.PastDue == r.best.PastDue && p.Energy < r.best.Energy; p.Planned && better {
		r.best, r.whose = p, name
	}
	r.show()
}

func (r *rowsProgress) show() {
	r.line.Show(strings.Join(r.doing, ", "), r.done, r.rows, bestSoFarText("best "+r.whose, &r.best))
}
