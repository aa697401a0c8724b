// Package begins has jobs that can wait begin in Slurm when energy is cheap, or clean.
package begins

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/hours"
	"github.com/epplan/epplan/slurm"
)

// Prices returns what energy costs over time, seconds from a moment on, and until when that is known.
type Prices func(from time.Time) (prices hours.Prices, known float64)

// Terms are those by which jobs wait.
type Terms struct {
	Prices    Prices
	LeastGain float64 // part of what its energy costs that a job must save
	// Upper is how long a job runs at most, where that is known; nil: nowhere.
	Upper func(*slurm.Job) (time.Duration, bool)
}

// Rooms are the GPUs of Slurm's partitions over time.
type Rooms struct {
	at          time.Time // from which on they are, in seconds
	known       float64   // until when prices are known
	leastGain   float64
	byPartition map[string]*room
}

type room struct {
	*hours.Room
	gpusOf map[string]int // by node
	full   bool           // jobs wait for GPUs there
}

const (
	// fullAfter is for how long a job must have waited for GPUs: before, Slurm may not have looked at it.
	fullAfter = time.Minute
	// repeatedFor is for how long prices count that nobody states, but are those of the last day.
	repeatedFor = 24 * time.Hour
	// unknownRun is how long a job is taken to run of which nothing is known, not even a limit.
	unknownRun = 365 * 24 * time.Hour
)

// NewRooms returns the GPUs that jobs leave, by what Slurm shows at a time. Begins are when those jobs begin
// that wait for it.
func NewRooms(
	at time.Time, jobs []slurm.Job, nodes []slurm.Node, begins map[slurm.JobID]time.Time, terms *Terms,
) *Rooms {
	r := &Rooms{at: at, leastGain: terms.LeastGain, byPartition: make(map[string]*room)}
	r.addNodes(nodes, terms)
	waitsIn := make(map[string]bool)
	for i := range jobs {
		j := &jobs[i]
		begin, waits := begins[j.ID]
		if !waits { // a component of a job that waits as a whole, if it is in there
			begin, waits = begins[j.HetJob]
		}
		switch {
		case j.GPUCount() == 0 || j.State.Base.Ended():
		case j.State.Base != slurm.Pending:
			r.addRunning(j, terms)
		case waits:
			if one := r.byPartition[j.Partition]; one != nil {
				r.addUse(one, begin, terms.runTime(j), float64(j.GPUCount()*tasksOf(j)))
			}
		case j.WaitKind() == slurm.WaitTurn && !j.Held() && !j.Eligible.IsZero() && at.Sub(j.Eligible) >= fullAfter:
			waitsIn[j.Partition] = true
		}
	}
	r.noteFull(waitsIn)
	return r
}

// addNodes adds the partitions with GPUs, as yet without jobs.
func (r *Rooms) addNodes(nodes []slurm.Node, terms *Terms) {
	prices, known := terms.Prices(r.at)
	r.known = known
	gpus := make(map[string]int)
	for i := range nodes {
		n := &nodes[i]
		count := n.GPUCount()
		if count == 0 || !n.State.Usable() {
			continue
		}
		for _, name := range n.Partitions {
			if r.byPartition[name] == nil {
				r.byPartition[name] = &room{gpusOf: make(map[string]int)}
			}
			r.byPartition[name].gpusOf[n.Name] = count
			gpus[name] += count
		}
	}
	for name, one := range r.byPartition {
		one.Room = hours.NewRoom(prices, float64(gpus[name]))
	}
}

// runTime returns how long a job is taken to run.
func (t *Terms) runTime(j *slurm.Job) time.Duration {
	run := unknownRun
	if limit, limited := j.TimeLimit.Duration(); limited && limit > 0 {
		run = min(run, limit)
	}
	if t.Upper != nil {
		if upper, known := t.Upper(j); known {
			run = min(run, upper)
		}
	}
	return run
}

// addRunning notes the GPUs of a job that runs, in each partition that has its nodes.
func (r *Rooms) addRunning(j *slurm.Job, terms *Terms) {
	left := max(fullAfter, j.Start.Add(terms.runTime(j)).Sub(r.at)).Seconds()
	each := float64(j.GPUCount()) / float64(max(1, len(j.Nodes)))
	for _, one := range r.byPartition {
		gpus := 0.0
		for _, node := range j.Nodes {
			if one.gpusOf[node] > 0 {
				gpus += each
			}
		}
		if gpus > 0 {
			one.AddUse(planner.Interval{To: left}, gpus)
		}
	}
}

// addUse notes the GPUs of a job that waits for when it begins.
func (r *Rooms) addUse(one *room, begin time.Time, run time.Duration, gpus float64) {
	from := max(0, begin.Sub(r.at).Seconds())
	one.AddUse(planner.Interval{From: from, To: from + run.Seconds()}, gpus)
}

// tasksOf returns how many tasks a record has that haven't begun.
func tasksOf(j *slurm.Job) int {
	n, ok := slurm.CountArrayTasks(j.ArrayTasks)
	if !ok {
		return 1
	}
	return n
}

// noteFull notes that jobs wait for GPUs, in each partition that has nodes of those where they do.
func (r *Rooms) noteFull(waitsIn map[string]bool) {
	for partitions := range waitsIn {
		for name := range strings.SplitSeq(partitions, ",") {
			own := r.byPartition[name]
			if own == nil {
				continue
			}
			for _, one := range r.byPartition {
				for node := range own.gpusOf {
					one.full = one.full || one.gpusOf[node] > 0
				}
			}
		}
	}
}

// IsFull reports whether jobs wait for GPUs in a partition, or nothing is known of it: then nobody waits for
// an hour there, as the GPUs work through the dear ones anyway.
func (r *Rooms) IsFull(partition string) bool {
	one := r.byPartition[partition]
	return one == nil || one.full
}

// SetDefault has a partition be that of jobs which name none.
func (r *Rooms) SetDefault(partition string) {
	if one := r.byPartition[partition]; one != nil {
		r.byPartition[""] = one
	}
}

// Book says when jobs begin that are being submitted. It is safe for concurrent use.
type Book struct {
	Clock func() time.Time // nil: time.Now

	mu    sync.Mutex // guards what follows
	rooms *Rooms     // nil: nobody waits
	given []given    // since them
}

// given is when a job begins that was submitted, and may not be in Slurm's list yet.
type given struct {
	partition  string
	gpus       float64
	begin, now time.Time
	run        time.Duration
}

// SetRooms has rooms count from now on; nil: nobody waits.
func (b *Book) SetRooms(rooms *Rooms) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rooms = rooms
	if rooms == nil {
		b.given = nil
		return
	}
	b.given = slices.DeleteFunc(b.given, func(g given) bool { return g.now.Before(rooms.at) })
	for _, g := range b.given {
		if one := rooms.byPartition[g.partition]; one != nil {
			rooms.addUse(one, g.begin, g.run, g.gpus)
		}
	}
}

// Ask is a job that is being submitted and can wait.
type Ask struct {
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

// staleAfter is for how long what Slurm showed says when jobs that come had better begin.
const staleAfter = time.Minute

// BestBegin returns when a job had better begin; false: at once, as nothing is known that costs less, or jobs
// wait for GPUs, or GPUs aren't free for it both now and then.
func (b *Book) BestBegin(ask *Ask) (Hour, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, r := time.Now(), b.rooms
	if b.Clock != nil {
		now = b.Clock()
	}
	if r == nil || r.IsFull(ask.Partition) || now.Sub(r.at) > staleAfter {
		return Hour{}, false
	}
	one, earliest := r.byPartition[ask.Partition], now.Sub(r.at).Seconds()
	latest := ask.Latest.Truncate(time.Second) // Slurm's times are whole: of the submission, too, which counts
	run := &hours.Run{
		GPUs: float64(ask.GPUs), Time: ask.Run.Seconds(), Earliest: earliest,
		Latest:    min(latest.Sub(r.at).Seconds(), r.known+(repeatedFor-ask.Run).Seconds()),
		LeastGain: r.leastGain,
	}
	if one.First(run) > earliest {
		return Hour{}, false
	}
	begin, later := one.BestBegin(run)
	if !later {
		return Hour{}, false
	}
	at := r.at.Add(time.Duration(begin * float64(time.Second))).Truncate(time.Millisecond)
	if whole := at.Truncate(time.Second); whole.Before(at) {
		at = whole.Add(time.Second)
	}
	if at.After(latest) {
		at = latest
	}
	if ask.Note {
		g := given{ask.Partition, float64(ask.GPUs), at, now, ask.Run}
		b.given = append(b.given, g)
		r.addUse(one, g.begin, g.run, g.gpus)
	}
	hour := Hour{Begin: at}
	if first, then := one.Cost(run, earliest), one.Cost(run, begin); then > 0 {
		hour.Saves = (first - then) / first
	}
	return hour, true
}
