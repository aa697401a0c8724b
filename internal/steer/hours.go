package steer

import (
	"strconv"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/begins"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
)

// planHours wants jobs to go on waiting for the hours that they were submitted with, while nobody waits for
// GPUs, and says which GPUs are free for others that can wait.
func (p *Plan) planHours(s *Snapshot, set *Settings, ours *OwnChanges) {
	if set.Prices == nil || set.Live.Hours.By == config.HoursOff {
		return
	}
	waits := make(map[slurm.JobID]time.Time)
	for i := range s.Jobs {
		if j := &s.Jobs[i]; ours.Begin[j.ID] != "" {
			if begin, wanted := set.waitsUntil(j, ours.Begin[j.ID]); wanted {
				waits[j.ID] = begin
			}
		}
	}
	p.rooms = begins.NewRooms(s.At, s.Jobs, s.Nodes, waits,
		&begins.Terms{Prices: set.Prices, LeastGain: set.Live.Hours.MinGain, Upper: set.Upper})
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if _, wanted := waits[j.ID]; wanted && !p.rooms.IsFull(j.Partition) {
			u := lever.Undo{Lever: lever.Begin, Job: j.ID, After: ours.Begin[j.ID]}
			p.Wants = append(p.Wants, WantedChange{u, "its energy costs less then"})
		}
	}
}

// waitsUntil returns when a job begins that was submitted with a begin time of ours, if its user and the
// settings still want it.
func (set *Settings) waitsUntil(j *slurm.Job, value string) (begin time.Time, wanted bool) {
	seconds, err := strconv.ParseInt(value, 10, 64)
	begin = time.Unix(seconds, 0)
	wishes := requestsOf(j)
	slack := set.Live.Hours.SlackOf(j.Partition, &wishes)
	return begin, err == nil && !wishes.Off && !begin.After(j.Submit.Add(slack)) &&
		set.Live.ModeOf(j.Partition) == live.Enforce
}
