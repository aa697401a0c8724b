package replay

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/planner/powerbudget"
)

// flexWindow is what the queue could have done without in a window of each of many days.
type flexWindow struct {
	at     string    // time of day at which it begins
	lasts  float64   // s
	takes  []float64 // W in the mean of the window, by day
	gives  []float64 // W by which the most that is taken falls
	later  []float64 // how many times as long turnarounds take
	energy []float64 // how many times as much energy all takes
}

// flexTime is a time of day with the windows that begin then.
type flexTime struct {
	clock   time.Time
	windows []*flexWindow
}

// flexTimes reads the times of day of --flex, and how long windows last.
func flexTimes(c *cli.Context) (times []flexTime, err error) {
	lasting, err := setup.Times(c, "for", time.Second)
	if err != nil {
		return nil, err
	}
	for text := range strings.SplitSeq(c.String("flex"), ",") {
		at := strings.TrimSpace(text)
		clock, err := time.Parse("15:04", at)
		if err != nil {
			return nil, terminal.Usagef("--flex %q, want times of day such as 08:00,17:00", c.String("flex"))
		}
		day := flexTime{clock: clock}
		for _, seconds := range lasting {
			day.windows = append(day.windows, &flexWindow{at: at, lasts: seconds})
		}
		times = append(times, day)
	}
	return times, nil
}

// flex tells what the queue could have done without on the days of the log: the history as the first policy
// plays it, and at the time of day a plan of what runs and waits then.
func (h *historyReplay) flex(c *cli.Context, times []flexTime) error {
	zone, err := setup.TimeZone(c.String("timezone"))
	if err != nil {
		return err
	}
	pol, err := h.setup.Policy("edl")
	if err != nil {
		return err
	}
	monitor, done := setup.PlanningMonitor(h.terminal)
	defer done()
	ctx, end := monitor.Begin(c.Context)
	defer end()
	options := &planner.Options{Seed: h.setup.Seed, NoImprove: true}
	played, err := policy.SolveChecked(ctx, h.setup.Problem, h.policies[0], options)
	if err != nil {
		return setup.WithFileLocation(h.setup.Config, err)
	}
	last := 0.0
	for i := range h.setup.Problem.Tasks {
		last = max(last, h.setup.Problem.Tasks[i].Arrival)
	}
	first, lost := h.begin.In(zone), 0
	var all []*flexWindow
	for _, t := range times {
		for day := 0; ; day++ {
			at := time.Date(first.Year(), first.Month(), first.Day()+day, t.clock.Hour(), t.clock.Minute(), 0, 0, zone)
			now := at.Sub(h.begin).Seconds()
			if now > last {
				break
			}
			if now < 0 {
				continue
			}
			unplaced, err := t.add(ctx, problemAt(h.setup.Problem, played, now), pol, options)
			if err != nil {
				return err
			}
			lost += unplaced
		}
		if len(t.windows[0].gives) == 0 {
			return fmt.Errorf("%s: no day of the log has a %s", h.name, t.windows[0].at)
		}
		all = append(all, t.windows...)
	}
	done()
	if lost > 0 {
		h.terminal.Warningf("%s left out: no place is found for them where a day is planned anew",
			report.Plural(lost, "job is", "jobs are"))
	}
	h.terminal.Notef("each day is planned anew from what ran and waited at that time, by %s; jobs that came later aren't "+
		"in it", h.policies[0].Name)
	return h.terminal.PrintTable(c, flexTable(all))
}

// add plans what runs and waits on a day, and adds what that plan can do without. Some jobs find no place.
func (t *flexTime) add(
	ctx context.Context, p *planner.Problem, pol *planner.Policy, options *planner.Options,
) (unplaced int, err error) {
	if len(p.Tasks) == 0 {
		for _, w := range t.windows {
			w.takes, w.gives = append(w.takes, 0), append(w.gives, 0)
		}
		return 0, nil
	}
	plan, err := policy.SolveChecked(ctx, p, pol, options)
	if err != nil {
		return 0, err //nolint:wrapcheck // says which
	}
	for _, w := range t.windows {
		if err := w.add(ctx, p, plan); err != nil {
			return 0, err
		}
	}
	return len(plan.Unplaced), nil
}

// add adds what the plan of a day can do without.
func (w *flexWindow) add(ctx context.Context, p *planner.Problem, plan *planner.Plan) error {
	f, err := powerbudget.NewFlex(ctx, p, plan, planner.Interval{To: w.lasts})
	if err != nil {
		return err //nolint:wrapcheck // says which
	}
	w.takes, w.gives = append(w.takes, float64(f.Mean)), append(w.gives, float64(f.Reduction()))
	w.later = append(w.later, turnaround(p, f.Kept)/turnaround(p, plan))
	w.energy = append(w.energy, float64(f.Kept.Ledger.Total()/plan.Ledger.Total()))
	return nil
}

// problemAt returns what of a problem runs and waits at a moment of a plan, which is the 0 of the new one.
func problemAt(p *planner.Problem, plan *planner.Plan, now float64) *planner.Problem {
	left := *p
	left.Tasks, left.Snapshot, left.Mode = nil, &planner.Snapshot{}, planner.Offline
	for i := range p.Tasks {
		a, task := &plan.Assignments[i], p.Tasks[i]
		if task.Arrival > now || a.Node < 0 || a.End <= now {
			continue
		}
		task.Arrival = 0
		task.Deadline, task.Due = max(0, task.Deadline-now), max(0, task.Due-now)
		if a.Start <= now {
			class := plan.Nodes[a.Node].Class
			rest := a.Point // at the clocks that it has, without what is done
			rest.Time = a.End - now
			rest.Energy = rest.Power.Over(rest.Time)
			option := task.Options[task.Option(p.Cluster.Classes[class].Model)]
			option.Response = &dvfsmodel.Fixed{At: rest}
			task.Options, task.Limit = []planner.Option{option}, math.Inf(1)
			left.Snapshot.Running = append(left.Snapshot.Running, planner.RunningTask{
				Task: len(left.Tasks), Class: class, End: a.End - now,
			})
		}
		left.Tasks = append(left.Tasks, task)
	}
	return &left
}

// turnaround returns the mean time from now to the end of placed tasks.
func turnaround(p *planner.Problem, plan *planner.Plan) float64 {
	sum, placed := 0.0, 0
	for i := range p.Tasks {
		if a := &plan.Assignments[i]; a.Node >= 0 {
			sum, placed = sum+a.End-p.Tasks[i].Arrival, placed+1
		}
	}
	return sum / float64(max(1, placed))
}

// flexTable has a row for each window: the median day, and what 19 of 20 days reach.
func flexTable(windows []*flexWindow) *report.Table {
	return report.TableOf(windows, func(row *report.Row, f **flexWindow) {
		d := *f
		of := func(all []float64) report.Interval {
			return report.IntervalOf(len(all), func(day int) float64 { return all[day] })
		}
		add := func(key, head string, unit report.Unit, group int, v float64) {
			row.Add(report.Column{Key: key, Head: head, Unit: unit, Group: group}, report.Number(v))
		}
		row.Add(report.Column{Key: "at", Head: "at", Left: true}, report.Text(d.at))
		add("for_s", "for", report.Seconds, 0, d.lasts)
		row.Add(report.Column{Key: "days", Head: "days"}, report.Count(len(d.gives)))
		gives := of(d.gives)
		add("mean_w", "takes", report.Watts, 1, of(d.takes).Value)
		add("gives_w", "gives", report.Watts, 1, gives.Value)
		add("gives_low_w", "19 of 20 days", report.Watts, 1, gives.Low)
		add("gives_high_w", "1 of 20 days", report.Watts, 1, gives.High)
		if len(d.later) > 0 {
			add("turnaround_change", "turnaround", report.Fraction, 2, of(d.later).Value-1)
			add("energy_change", "energy", report.Fraction, 2, of(d.energy).Value-1)
		}
	})
}
