package pick

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/planner"
)

// yardstick plays Simple beside the real run, to tell how long tasks would have
// waited there. Of run times it takes what is known: the true one of a task that
// has ended on the class where Simple runs it; of one that still runs there, that
// it is longer than so far. What isn't known is drawn, and Simple played several
// times.
type yardstick struct {
	v       *planner.View
	age     *ages
	rng     *rand.Rand
	total   []float64  // GPUs by class
	tasks   []*besides // from the first one on that hasn't ended
	byTask  map[int]*besides
	settled [plays]aside // up to the first of these tasks
	played  aside        // scratch
	stale   bool         // what follows is of an earlier time
	longest float64      // wait, seconds, of the play that shortPlay says

	// Of the tasks that arrived: how many, and the sum of their predicted run
	// times, each on its first class.
	count, time float64
}

// aside is a run of Simple.
type aside struct {
	run     []lodger
	last    float64 // start of the last task: none overtakes
	longest float64 // wait
}

// besides is a task that arrived.
type besides struct {
	task    int
	arrival float64
	pairs   []pair
	drawn   []float64 // run times by play and pair
	class   int       // where it really runs or ran, or none
	start   float64   // there
	took    float64   // there; 0: it still runs
}

// plays is how often Simple is played, and shortPlay which of their longest waits
// counts, from the shortest one on: the true one is longer most of the time, so that
// what is bounded by it keeps its bound.
const (
	plays     = 16
	shortPlay = 1
)

// newYardstick has seen no task yet.
func newYardstick(v *planner.View, age *ages) *yardstick {
	return &yardstick{v: v, age: age, rng: rngOf(planner.DefaultSeed), total: newUse(v).total, byTask: make(map[int]*besides)}
}

// usual is the mean of the predicted run times.
func (y *yardstick) usual() float64 { return y.time / y.count }

// arrive notes a task, and draws its run times.
func (y *yardstick) arrive(task int, pairs []pair) {
	b := &besides{task: task, arrival: y.v.Problem.Tasks[task].Arrival, pairs: pairs, class: none}
	for range plays {
		for i := range pairs {
			b.drawn = append(b.drawn, y.age.draw(y.rng, pairs[i].Time, 0))
		}
	}
	y.tasks, y.byTask[task] = append(y.tasks, b), b
	y.count, y.time = y.count+1, y.time+pairs[0].Time
	y.stale = true
}

// starts notes where a task really starts; one that started before this stage was
// made isn't known.
func (y *yardstick) starts(task, class int, at float64) {
	if b := y.byTask[task]; b != nil {
		b.class, b.start = class, at
	}
}

// ends notes how long a task really took, seconds.
func (y *yardstick) ends(task int, took float64) {
	if b := y.byTask[task]; b != nil {
		b.took, y.stale = took, true
	}
}

// reckon plays Simple up to the tasks that are there.
func (y *yardstick) reckon(now float64) {
	if !y.stale {
		return
	}
	y.settle()
	var waits [plays]float64
	y.stale = false
	for play := range y.settled {
		from, s := &y.settled[play], &y.played
		run := append(s.run[:0], from.run...)
		*s = *from
		s.run = run
		for _, b := range y.tasks {
			y.next(s, b, play, now)
		}
		waits[play] = s.longest
	}
	slices.Sort(waits[:])
	y.longest = waits[shortPlay]
}

// settle forgets the first tasks if they have ended: of them nothing changes any
// more.
func (y *yardstick) settle() {
	for len(y.tasks) > 0 && y.tasks[0].took > 0 {
		b := y.tasks[0]
		for play := range y.settled {
			y.next(&y.settled[play], b, play, 0)
		}
		delete(y.byTask, b.task)
		y.tasks = y.tasks[1:]
	}
}

// next starts a task: first come, first served.
func (y *yardstick) next(s *aside, b *besides, play int, now float64) {
	at := max(b.arrival, s.last)
	i := y.roomAt(s, &at, b)
	if i == none {
		return // no node has as many GPUs as its class has in all
	}
	p := &b.pairs[i]
	s.run = append(s.run, lodger{end: at + y.takes(b, play, i, now), gpus: p.GPUs, class: int32(p.class)})
	s.last, s.longest = at, max(s.longest, at-b.arrival)
}

// roomAt moves a time to when a pair of the task fits first, and tells which one.
func (y *yardstick) roomAt(s *aside, at *float64, b *besides) int {
	for {
		s.run = slices.DeleteFunc(s.run, func(r lodger) bool { return r.end <= *at })
		for i := range b.pairs {
			if b.pairs[i].GPUs <= y.free(s, b.pairs[i].class)+shareSlack {
				return i
			}
		}
		next := math.Inf(1)
		for i := range s.run {
			next = min(next, s.run[i].end)
		}
		if math.IsInf(next, 1) {
			return none
		}
		*at = next
	}
}

// takes is how long a task takes on the class of a pair in one of the plays.
func (y *yardstick) takes(b *besides, play, pair int, now float64) float64 {
	p, drawn := &b.pairs[pair], b.drawn[play*len(b.pairs)+pair]
	switch {
	case b.class != p.class:
		return drawn
	case b.took > 0:
		return b.took
	case drawn > now-b.start:
		return drawn
	}
	return now - b.start + y.age.remaining(p.Time, now-b.start)
}

// free is the number of GPUs of a class that nothing runs on.
func (y *yardstick) free(s *aside, class int) float64 {
	free := y.total[class]
	for i := range s.run {
		if s.run[i].class == int32(class) {
			free -= s.run[i].gpus
		}
	}
	return free
}

// lodger is a task that runs under Simple.
type lodger struct {
	end, gpus float64
	class     int32
}
