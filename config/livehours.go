package config

import (
	"slices"
	"time"

	"github.com/epplan/epplan/slurm"
)

// HoursBy is what energy is to cost less of at the hours that jobs wait for.
type HoursBy string

// What hours are chosen by.
const (
	HoursOff    HoursBy = "off" // no job waits for them
	HoursCost   HoursBy = "cost"
	HoursCarbon HoursBy = "carbon"
)

var hoursWords = []string{string(HoursOff), string(HoursCost), string(HoursCarbon)}

// LiveHours has jobs that can wait begin when energy is cheap, or clean.
type LiveHours struct {
	By     HoursBy
	Slacks map[string]float64 // seconds that jobs can wait whose users say nothing, by partition
	// MinGain is the least part of what a job's energy costs that it must save to begin later.
	MinGain float64
}

func defaultHours() LiveHours { return LiveHours{By: HoursOff, MinGain: 0.05} }

func (h *LiveHours) fields() []field {
	return []field{
		choiceField("by",
			"How jobs that can wait (epplan:slack=4h) choose their hour: off (none waits), or by cost or\n"+
				"carbon, from the series in [factors]. In mode enforce such a job begins when its energy costs\n"+
				"least, if GPUs are free for it both now and then.", (*string)(&h.By),
			hoursWords...),
		partitionNumberField("slack_s",
			"Seconds that jobs can wait if their users don't say, by partition.",
			&h.Slacks, numberRange{max: slurm.MaxSlack.Seconds()}),
		numberField("min_gain", "Least fraction of its energy's cost that a job must save to begin later.",
			&h.MinGain, numberRange{max: 1}),
	}
}

// SlackOf returns how much later a job of a partition may begin: as its user wishes, else as the partition's
// jobs may, of several, with commas between, the least.
func (h *LiveHours) SlackOf(partitions string, w *slurm.Wishes) time.Duration {
	if w.HasSlack {
		return w.Slack
	}
	return time.Duration(chooseOverPartitions(partitions, h.Slacks, 0, slices.Min) * float64(time.Second))
}

// check notes hours that nobody says anything of.
func (h *LiveHours) check(d *document, f *Factors) {
	if h.By != HoursOff && f.Series == "" {
		d.faultAt("live.hours.by", "live.hours.by is %q, want series in [factors] beside it: what energy costs "+
			"over time", string(h.By))
	}
}
