package steer

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/hours"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
)

// Prices returns what energy costs over time, seconds from a moment on, and until when that is known.
type Prices func(from time.Time) (prices hours.Prices, known float64)

// partitionRoom is the GPUs of a partition over time, seconds from the snapshot on.
type partitionRoom struct {
	*hours.Room
	gpusOf    map[string]int // by node
	full      bool           // jobs wait for GPUs there
	known     float64        // until when prices are known
	leastGain float64        // part of what its energy costs that a job must save
}

const (
	// fullAfter is for how long a job must have waited for GPUs: before, Slurm may not have looked at it.
	fullAfter = time.Minute
	// repeatedFor is for how long prices count that nobody states, but are those of the last day.
	repeatedFor = 24 * time.Hour
	// unknownRun is how long a job is taken to run of which nothing is known, not even a limit.
	unknownRun = 365 * 24 * time.Hour
)

// hours notes the GPUs of partitions over time, and wants jobs to go on waiting for the hours that they
// were submitted with, while nobody waits for GPUs: where jobs wait, the GPUs work through dear hours anyway.
func (p *Plan) hours(s *Snapshot, set *Settings, ours *OwnChanges) {
	if set.Prices == nil || set.Live.Hours.By == config.HoursOff {
		return
	}
	p.rooms = roomsOf(s, set)
	waitsIn := make(map[string]bool)
	for i := range s.Jobs {
		j := &s.Jobs[i]
		switch {
		case j.GPUCount() == 0 || j.State.Base.Ended():
		case j.State.Base != slurm.Pending:
			set.noteRunning(p.rooms, j, s.At)
		case set.waitsForHour(j, ours):
			set.noteBegin(p.rooms[j.Partition], j, ours.Begin[j.ID], s.At)
		case ours.Begin[j.HetJob].Job != 0: // a component of a job that waits as a whole
			set.noteBegin(p.rooms[j.Partition], j, ours.Begin[j.HetJob], s.At)
		case isRunnable(j, s.At) && j.WaitKind() == slurm.WaitTurn && s.At.Sub(j.Eligible) >= fullAfter:
			waitsIn[j.Partition] = true
		}
	}
	noteFull(p.rooms, waitsIn)
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if room := p.rooms[j.Partition]; room != nil && !room.full && set.waitsForHour(j, ours) {
			p.Wants = append(p.Wants, WantedChange{ours.Begin[j.ID], "its energy costs less then"})
		}
	}
}

// roomsOf returns the partitions with GPUs, by name: as yet without jobs.
func roomsOf(s *Snapshot, set *Settings) map[string]*partitionRoom {
	prices, known := set.Prices(s.At)
	rooms := make(map[string]*partitionRoom)
	gpus := make(map[string]int)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		count := 0
		for _, g := range n.Gres {
			if g.Name == "gpu" {
				count += int(g.Count)
			}
		}
		if count == 0 || !n.State.Usable() {
			continue
		}
		for _, name := range n.Partitions {
			if rooms[name] == nil {
				rooms[name] = &partitionRoom{
					gpusOf: make(map[string]int), known: known, leastGain: set.Live.Hours.MinGain,
				}
			}
			rooms[name].gpusOf[n.Name] = count
			gpus[name] += count
		}
	}
	for name, room := range rooms {
		room.Room = hours.NewRoom(prices, float64(gpus[name]))
	}
	return rooms
}

// runTime returns how long a job is taken to run.
func (set *Settings) runTime(j *slurm.Job) time.Duration {
	run := unknownRun
	if limit, limited := j.TimeLimit.Duration(); limited && limit > 0 {
		run = min(run, limit)
	}
	if set.Upper != nil {
		if upper, known := set.Upper(j); known {
			run = min(run, upper)
		}
	}
	return run
}

// noteRunning notes the GPUs of a job that runs, in each partition that has its nodes.
func (set *Settings) noteRunning(rooms map[string]*partitionRoom, j *slurm.Job, at time.Time) {
	left := max(fullAfter, j.Start.Add(set.runTime(j)).Sub(at)).Seconds()
	each := float64(j.GPUCount()) / float64(max(1, len(j.Nodes)))
	for _, room := range rooms {
		gpus := 0.0
		for _, node := range j.Nodes {
			if room.gpusOf[node] > 0 {
				gpus += each
			}
		}
		if gpus > 0 {
			room.Use(planner.Interval{To: left}, gpus)
		}
	}
}

// noteBegin notes the GPUs of a job that waits for its hour.
func (set *Settings) noteBegin(room *partitionRoom, j *slurm.Job, u lever.Undo, at time.Time) {
	hour, err := strconv.ParseInt(u.After, 10, 64)
	if room == nil || err != nil {
		return
	}
	begin := max(0, time.Unix(hour, 0).Sub(at).Seconds())
	gpus := float64(j.GPUCount()) * float64(tasksOf(j))
	room.Use(planner.Interval{From: begin, To: begin + set.runTime(j).Seconds()}, gpus)
}

// tasksOf returns how many tasks a record has that haven't begun.
func tasksOf(j *slurm.Job) int {
	tasks, _, err := slurm.ParseArrayTasks(j.ArrayTasks)
	if j.ArrayTasks == "" || err != nil {
		return 1
	}
	return len(tasks)
}

// noteFull notes that jobs wait for GPUs, in each partition that has nodes of those where they do.
func noteFull(rooms map[string]*partitionRoom, waitsIn map[string]bool) {
	for partitions := range waitsIn {
		for name := range strings.SplitSeq(partitions, ",") {
			own := rooms[name]
			if own == nil {
				continue
			}
			for _, room := range rooms {
				for node := range own.gpusOf {
					room.full = room.full || room.gpusOf[node] > 0
				}
			}
		}
	}
}

// waitsForHour reports whether a job waits for the hour that it was submitted with, as its user and the
// settings still want.
func (set *Settings) waitsForHour(j *slurm.Job, ours *OwnChanges) bool {
	u, ok := ours.Begin[j.ID]
	if !ok || set.Live.ModeOf(j.Partition) != live.Enforce {
		return false
	}
	begin, err := strconv.ParseInt(u.After, 10, 64)
	wishes := requestsOf(j)
	return err == nil && !wishes.Off && !time.Unix(begin, 0).After(j.Submit.Add(set.Live.SlackOf(j.Partition, &wishes)))
}

// HourAsk is a job that is being submitted and can wait.
type HourAsk struct {
	Partition string // empty: the default one
	GPUs      int
	Run       time.Duration // that it is expected to take
	Latest    time.Time     // when it may begin at the latest
	Note      bool          // it will begin as is answered
}

// Hour is when a job begins.
type Hour struct {
	Begin time.Time
	Saves float64 // the part of what its energy costs; 0: it then costs nothing, or less
}

// HourAtSubmit returns when a job that is being submitted had better begin; false: at once, as nothing is
// known that costs less, or jobs wait for GPUs, or GPUs aren't free for it both now and then.
func (s *Steerer) HourAtSubmit(ask *HourAsk) (Hour, bool) {
	s.shown.Lock()
	defer s.shown.Unlock()
	now := s.options.Clock()
	room := s.rooms[ask.Partition]
	if room == nil || room.full || now.Sub(s.roomsAt) > orderTTL || s.status.Trouble != "" {
		return Hour{}, false
	}
	earliest := now.Sub(s.roomsAt).Seconds()
	run := &hours.Run{
		GPUs: float64(ask.GPUs), Time: ask.Run.Seconds(), Earliest: earliest,
		Latest:    min(ask.Latest.Sub(s.roomsAt).Seconds(), room.known+repeatedFor.Seconds()-ask.Run.Seconds()),
		LeastGain: room.leastGain,
	}
	if room.First(run) > earliest {
		return Hour{}, false
	}
	begin, later := room.Begin(run)
	if !later {
		return Hour{}, false
	}
	at := s.roomsAt.Add(time.Duration(begin * float64(time.Second)))
	if whole := at.Truncate(time.Second); whole.Before(at) {
		at = whole.Add(time.Second)
	}
	if at.After(ask.Latest) {
		return Hour{}, false
	}
	if ask.Note {
		g := givenHour{ask.Partition, float64(ask.GPUs), at, ask.Run, now}
		s.given = append(s.given, g)
		g.use(s.rooms, s.roomsAt)
	}
	hour := Hour{Begin: at}
	if first, then := room.Cost(run, earliest), room.Cost(run, begin); then > 0 {
		hour.Saves = (first - then) / first
	}
	return hour, true
}

// givenHour is when a job begins that was submitted, and may not be in a snapshot yet.
type givenHour struct {
	partition string
	gpus      float64
	begin     time.Time
	run       time.Duration
	given     time.Time
}

func (g *givenHour) use(rooms map[string]*partitionRoom, at time.Time) {
	if room := rooms[g.partition]; room != nil {
		begin := max(0, g.begin.Sub(at).Seconds())
		room.Use(planner.Interval{From: begin, To: begin + g.run.Seconds()}, g.gpus)
	}
}

// publishRooms has a plan's rooms count, with what was given since its snapshot. The caller holds shown.
func (s *Steerer) publishRooms(plan *Plan, at time.Time) {
	s.rooms, s.roomsAt = plan.rooms, at
	s.given = slices.DeleteFunc(s.given, func(g givenHour) bool { return g.given.Before(at) })
	for i := range s.given {
		s.given[i].use(s.rooms, at)
	}
}
