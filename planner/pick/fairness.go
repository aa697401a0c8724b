package pick

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// Fairness bounds how long tasks wait. A task that would wait for more than
// Patience times the longest wait that Simple would have had so far loses its
// patience: it starts wherever it fits, and where it fits nowhere, room is kept
// for it. How long tasks would have waited under Simple is played beside the real
// run.
type Fairness struct {
	Patience float64 // 0: waits aren't bounded
	Spread   float64 // standard deviation of a run time, as a part of its prediction; 0: 0.35
}

// usualSpread is the spread where none is given.
const usualSpread = 0.35

// fairness keeps the bound during a run; nil keeps none.
type fairness struct {
	patience float64
	age      *ages
	beside   *yardstick
	held     *shadow // what is kept for a task that has lost its patience; nil: nothing is
	barred   []pair  // of such tasks, refused since the last event
	last     pair    // of such a task, offered last
	bound    float64 // seconds, as of when it was last reckoned
}

func newFairness(v *planner.View, limit Fairness) *fairness {
	if limit.Patience == 0 {
		return nil
	}
	if limit.Spread == 0 {
		limit.Spread = usualSpread
	}
	age := newAges(limit.Spread)
	return &fairness{patience: limit.Patience, age: age, beside: newYardstick(v, age), last: pair{task: none}}
}

// begin begins a new event.
func (f *fairness) begin() {
	if f != nil {
		f.barred = f.barred[:0]
	}
}

func (f *fairness) arrive(task int, pairs []pair) {
	if f != nil {
		f.beside.arrive(task, pairs)
	}
}

func (f *fairness) committed(task, class int, a *planner.Assignment) {
	if f != nil {
		f.beside.starts(task, class, a.Start)
	}
}

func (f *fairness) finished(task int, a *planner.Assignment) {
	if f != nil {
		f.beside.ends(task, a.End-a.Start)
	}
}

// refused bars the pair until the next event if it was offered out of turn: its
// class has the GPUs, but not together.
func (f *fairness) refused(task int) {
	if f != nil && f.last.task == task {
		f.barred = append(f.barred, f.last)
	}
}

// before offers what comes before all rules: tasks that no class suits, to be
// given up, and one that has lost its patience, where it takes the least energy.
// It is asked before each offer.
func (l *line) before() (task int, ok bool) {
	if task, ok = l.giveUp(); ok || l.fair == nil {
		return task, ok
	}
	f := l.fair
	f.held, f.last = nil, pair{task: none}
	at := l.impatient()
	if at == none {
		return 0, false
	}
	pairs := l.known[l.waiting[at]]
	for i := range pairs {
		p := &pairs[i]
		barred := slices.ContainsFunc(f.barred, func(b pair) bool { return b.task == p.task && b.class == p.class })
		if l.fits(p) && !barred && (f.last.task == none || p.Energy < f.last.Energy) {
			f.last = *p
		}
	}
	if f.last.task != none {
		return l.offer(at, f.last.class)
	}
	f.held = newShadow(l, f.age)
	f.held.reserve(pairs)
	return 0, false
}

// open tells whether a pair fits and leaves what is kept for a task that has lost
// its patience.
func (l *line) open(p *pair) bool {
	return l.fits(p) && (l.fair == nil || l.fair.held == nil || l.fair.held.spares(p))
}

// impatient is the place in the line of the first task that will have waited for
// too long even if the next room is kept for it, or none.
func (l *line) impatient() int {
	if len(l.waiting) == 0 {
		return none
	}
	f := l.fair
	ahead := newShadow(l, f.age)
	f.beside.reckon(l.v.Now)
	f.bound = f.patience * max(leastLongest*f.beside.usual(), f.beside.longest)
	return slices.IndexFunc(l.waiting, func(task int) bool {
		wait := ahead.soonest(l.known[task]) - l.v.Problem.Tasks[task].Arrival
		return wait >= f.bound*(1-1e-9) // rounding, where Wake asked for it
	})
}

// Wake is when the next task loses its patience, for rules that leave room free;
// apart from that, starts and ends are all that changes an answer.
func (l *line) Wake() float64 {
	at := math.Inf(1)
	if l.fair == nil {
		return at
	}
	for _, task := range l.waiting {
		if out := l.v.Problem.Tasks[task].Arrival + l.fair.bound; out > l.v.Now {
			at = min(at, out)
		}
	}
	return at
}

// leastLongest is the longest wait under Simple, in usual run times, as long as
// hardly anybody had to wait there.
const leastLongest = 0.125
