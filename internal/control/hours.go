package control

import (
	"fmt"
	"strings"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/begins"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/factors"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/planner/hours"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// Prices returns what energy costs over time by what hours are chosen by; nil: no job waits for hours.
func (s *Settings) Prices() begins.Prices {
	kind := factors.Money
	switch {
	case s.series == nil || s.Live.Hours.By == config.HoursOff:
		return nil
	case s.Live.Hours.By == config.HoursCarbon:
		kind = factors.Carbon
	}
	return func(from time.Time) (hours.Prices, float64) {
		return s.series.Prices(kind, from, repeatedFor, &s.Factors)
	}
}

// repeatedFor is for how long the prices of the last day go on; jobs wait for one day of them at most.
const repeatedFor = 2 * 24 * time.Hour

// waiter is a job that is being submitted, and may begin later.
type waiter struct {
	*hooks.Submission
	gpus     int  // of a task
	shared   bool // it asks for parts of GPUs
	wishes   *slurm.Wishes
	from     jobs.Source
	expected *epdapi.Forecast // nil: none
	now      time.Time
}

// canBeginLater reports whether a job begins when we say so: not one that is interactive, one whose user says
// when it begins, nor one that Slurm ties to others, to a reservation or to a deadline, nor one on
// parts of GPUs, nor one whose AdminComment takes no word of ours.
func (w *waiter) canBeginLater() bool {
	_, foreign, _ := slurm.ParseToken(string(w.Admin))
	_, err := slurm.MergeToken(foreign, strings.Repeat("x", longestToken))
	return err == nil && slurm.IsPlainComment(foreign) && w.Kind == "batch" && w.BeginTime == 0 && !w.Held &&
		!w.Tied && !w.shared && !w.wishes.Off && len(w.Array) <= maxArrayList
}

// longestToken is more than an id with a begin time has, in bytes.
const longestToken = 64

// allGPUs returns how many GPUs a job asks for, with all of its tasks; 0: that isn't known.
func (w *waiter) allGPUs() int {
	if w.Array == "" {
		return w.gpus
	}
	tasks, _ := slurm.CountArrayTasks(string(w.Array))
	return w.gpus * tasks
}

// hourOf returns when a job that can wait had better begin, and a word to its user; zero: at once.
func (f *Foresight) hourOf(w *waiter) (begin time.Time, word string) {
	settings, partition := f.settings(), string(w.Partition)
	mode, slack := settings.Live.ModeOf(partition), settings.Live.Hours.SlackOf(partition, w.wishes)
	unsure := partition == "" && len(settings.Live.Modes) > 0 // Slurm chooses one later
	if f.options.HourAtSubmit == nil || slack <= 0 || mode == live.Observe || unsure || !w.canBeginLater() {
		return time.Time{}, ""
	}
	run, longest := f.runTimes(w)
	ask := begins.Ask{
		Partition: partition, GPUs: w.allGPUs(), Run: run, Latest: w.now.Add(slack), Note: mode == live.Enforce,
	}
	latest := w.wishes.Deadline.Add(-longest - startMargin)
	if !w.wishes.Deadline.IsZero() && latest.Before(ask.Latest) {
		ask.Latest = latest
	}
	if ask.Run <= 0 || ask.GPUs == 0 {
		return time.Time{}, ""
	}
	hour, found := f.options.HourAtSubmit(&ask)
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
	at, less := hour.Begin.In(w.now.Location()).Format("Mon 15:04"), fmt.Sprintf(less, part)
	if mode == live.Advise {
		return time.Time{}, fmt.Sprintf("epplan: from %s on %s (sbatch --begin)", at, less)
	}
	return hour.Begin, fmt.Sprintf("epplan: begins %s, when %s; at once: scontrol update JobId=<its number> "+
		"StartTime=now", at, less)
}

// startMargin is how long Slurm may take to start a job whose time has come and for which GPUs are free.
const startMargin = 5 * time.Minute

// runTimes returns how long a job that is being submitted is expected to run, and how long it runs at most;
// 0: nothing is known, not even a limit.
func (f *Foresight) runTimes(w *waiter) (likely, longest time.Duration) {
	limit, _ := f.jobs.Limit(w.Limit()).Duration()
	if upper := f.upperAtDefault(w.from.Workload(w.gpus), string(w.Partition)); upper > 0 {
		likely, longest = upper, upper
	} else if e := w.expected; e != nil && e.Time.Rung != string(predict.Prior) {
		likely = time.Duration(e.Time.Value * float64(time.Second))
		longest = time.Duration(e.Time.High * float64(time.Second))
	}
	switch {
	case likely == 0:
		return limit, limit
	case limit == 0:
		return likely, longest
	}
	return min(limit, likely), min(limit, longest)
}
