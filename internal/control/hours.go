package control

import (
	"fmt"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/factors"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/planner/hours"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// Prices returns what energy costs over time by what hours are chosen by; nil: no job waits for hours.
func (s *Settings) Prices() steer.Prices {
	kind := factors.Money
	switch {
	case s.series == nil || s.Live.Hours.By == config.HoursOff:
		return nil
	case s.Live.Hours.By == config.HoursCarbon:
		kind = factors.Carbon
	}
	return func(from time.Time) (hours.Prices, float64) { return s.series.Prices(kind, from, &s.Factors) }
}

// startMargin is how long Slurm may take to start a job whose time has come and for which GPUs are free.
const startMargin = 5 * time.Minute

// hourAtSubmit returns when a job that can wait had better begin, and a word to its user; zero: at once. A job
// that is interactive, one whose user says when it begins, and one that Slurm ties to others, to a reservation
// or to a deadline begins as it would.
func (c *Controller) hourAtSubmit(
	s *hooks.Submission, wishes *slurm.Wishes, from jobs.Source, expected *epdapi.Forecast, now time.Time,
) (begin time.Time, word string) {
	settings := c.settings.Load()
	partition := string(s.Partition)
	mode, slack := settings.Live.ModeOf(partition), settings.Live.SlackOf(partition, wishes)
	gpus, shared := jobs.GPUsOf(s)
	if partition == "" && len(settings.Live.Modes) > 0 {
		return time.Time{}, "" // Slurm chooses one later
	}
	if c.options.HourAtSubmit == nil || slack <= 0 || mode == live.Observe || wishes.Off || shared ||
		s.Kind != "batch" || s.BeginTime > 0 || s.Held || s.Tied || len(s.Array) > maxArrayList {
		return time.Time{}, ""
	}
	if s.Array != "" {
		tasks, _, err := slurm.ParseArrayTasks(string(s.Array))
		if err != nil {
			return time.Time{}, ""
		}
		gpus *= len(tasks)
	}
	run, longest := c.runTimes(s, from, expected)
	if run <= 0 {
		return time.Time{}, ""
	}
	ask := steer.HourAsk{
		Partition: partition, GPUs: gpus, Run: run, Latest: now.Add(slack), Note: mode == live.Enforce,
	}
	if due := wishes.Deadline; !due.IsZero() {
		if latest := due.Add(-longest - startMargin); latest.Before(ask.Latest) {
			ask.Latest = latest
		}
	}
	hour, found := c.options.HourAtSubmit(&ask)
	if !found {
		return time.Time{}, ""
	}
	part, less := "", "its energy costs %sless"
	if settings.Live.Hours.By == config.HoursCarbon {
		less = "its energy emits %sless CO2"
	}
	if hour.Saves > 0 {
		part = fmt.Sprintf("%.0f %% ", 100*hour.Saves)
	}
	less = fmt.Sprintf(less, part)
	at := hour.Begin.In(now.Location()).Format("Mon 15:04")
	if mode == live.Advise {
		return time.Time{}, fmt.Sprintf("epplan: from %s on %s (sbatch --begin)", at, less)
	}
	return hour.Begin, fmt.Sprintf("epplan: begins %s, when %s; at once: scontrol update JobId=<its number> StartTime=now",
		at, less)
}

// runTimes returns how long a job that is being submitted is expected to run, and how long it runs at most; 0:
// nothing is known, not even a limit.
func (c *Controller) runTimes(
	s *hooks.Submission, from jobs.Source, expected *epdapi.Forecast,
) (run, longest time.Duration) {
	run, _ = c.Jobs.Limit(s.Limit()).Duration()
	gpus, _ := jobs.GPUsOf(s)
	upper, likely := c.Foresight.upperAtDefault(from.Workload(gpus), string(s.Partition)), time.Duration(0)
	switch {
	case upper > 0:
		likely = upper
	case expected != nil && expected.Time.Rung != string(predict.Prior):
		upper = time.Duration(expected.Time.High * float64(time.Second))
		likely = time.Duration(expected.Time.Value * float64(time.Second))
	default:
		return run, run
	}
	if run == 0 {
		return likely, upper
	}
	return min(run, likely), min(run, upper)
}
