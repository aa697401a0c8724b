package pick

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/planner"
)

// referenceRun plays Simple beside the real run, to tell how long tasks would have
// waited there. Of run times it takes what is known: the true one of a task that
// has ended on the class where Simple runs it; of one that still runs there, that
// it is longer than so far. What isn't known is drawn, and Simple played several
// times.
type referenceRun struct {
	v       *planner.View
	age     *residualTimes
	rng     *rand.Rand
	tasks   []*referenceTask // from the first one on that hasn't ended
	byTask  map[int]*referenceTask
	ended   [playCount]referencePlay // up to the first of these tasks
	played  referencePlay            // scratch
	stale   bool                     // what follows is of an earlier time
	longest float64                  // wait, seconds, of the play that shortPlay says

	// Of the tasks that arrived: how many, and the sum of their predicted run
	// times, each on its first class.
	count, time float64
}

type referencePlay struct {
	classSchedule
	last    float64 // start of the last task: none overtakes
	longest float64 // wait
}

type referenceTask struct {
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
	playCount = 16
	shortPlay = 1
)

func newReferenceRun(v *planner.View, age *residualTimes) *referenceRun {
	y := &referenceRun{
		v: v, age: age, rng: newRand(planner.DefaultSeed), byTask: make(map[int]*referenceTask),
	}
	total := newClassUsage(v).total
	for play := range y.ended {
		y.ended[play].begin(math.Inf(-1), total) // the first task may have arrived before now
	}
	return y
}

func (y *referenceRun) meanRunTime() float64 { return y.time / y.count }

func (y *referenceRun) arrive(task int, pairs []pair) {
	b := &referenceTask{task: task, arrival: y.v.Problem.Tasks[task].Arrival, pairs: pairs, class: noPair}
	for range playCount {
		for i := range pairs {
			b.drawn = append(b.drawn, y.age.draw(y.rng, pairs[i].Time, 0))
		}
	}
	y.tasks, y.byTask[task] = append(y.tasks, b), b
	y.count, y.time = y.count+1, y.time+pairs[0].Time
	y.stale = true
}

// noteStart notes where a task really starts; one that started before this stage was
// made isn't known.
func (y *referenceRun) noteStart(task, class int, at float64) {
	if b := y.byTask[task]; b != nil {
		b.class, b.start = class, at
	}
}

func (y *referenceRun) noteEnd(task int, took float64) {
	if b := y.byTask[task]; b != nil {
		b.took, y.stale = took, true
	}
}

// play plays Simple up to the tasks that are there.
func (y *referenceRun) play(now float64) {
	if !y.stale {
		return
	}
	y.forgetEnded()
	var waits [playCount]float64
	y.stale = false
	for play := range y.ended {
		from, s := &y.ended[play], &y.played
		s.copyFrom(&from.classSchedule)
		s.last, s.longest = from.last, from.longest
		for _, b := range y.tasks {
			y.startTask(s, b, play, now)
		}
		waits[play] = s.longest
	}
	slices.Sort(waits[:])
	y.longest = waits[shortPlay]
}

// forgetEnded forgets the first tasks if they have ended: of them nothing changes any
// more.
func (y *referenceRun) forgetEnded() {
	for len(y.tasks) > 0 && y.tasks[0].took > 0 {
		b := y.tasks[0]
		for play := range y.ended {
			y.startTask(&y.ended[play], b, play, 0)
		}
		delete(y.byTask, b.task)
		y.tasks = y.tasks[1:]
	}
}

// startTask starts a task: first come, first served.
func (y *referenceRun) startTask(s *referencePlay, b *referenceTask, play int, now float64) {
	s.advance(max(b.arrival, s.last))
	i, step := s.firstToStart(b.pairs)
	if i == noPair {
		return // no class has as many GPUs in all
	}
	p := &b.pairs[i]
	c := &s.curves[p.class]
	s.last = c.at[step]
	s.longest = max(s.longest, s.last-b.arrival)
	c.book(step, p.GPUs, y.runTime(b, play, i, now))
}

// runTime returns how long a task takes on the class of a pair in one of the plays.
func (y *referenceRun) runTime(b *referenceTask, play, pair int, now float64) float64 {
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
