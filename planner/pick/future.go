package pick

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/planner"
)

// rollout draws what may happen and plays decisions in it.
type rollout struct {
	opts   Lookahead
	rng    *rand.Rand
	age    *residualTimes
	closed bool // no task arrives any more: all are known

	// The tasks that arrived: of these, future ones are drawn.
	seen        plannedTasks
	learned     float64   // their number
	total       float64   // sum of their predicted run times, each on its first class, seconds
	kWh         float64   // likewise of their energies
	saved       []float64 // by class: sum of the parts that it saves of each one's most energy
	first, last float64   // arrival
	recent      float64   // arrivals a second lately, by an exponential window that ends at last

	// What every future begins with.
	line  []int32
	runs  []plannedRunning
	count int // items

	// The future that is being played.
	plan  tentativePlan
	rooms []float64 // free GPUs by class
	view  *planner.View
}

// Times are in usual run times.
const (
	horizonRuns = 0.8  // for so long arrivals are drawn
	recentRuns  = 0.8  // so far back reaches what counts as lately
	fadeRuns    = 1.6  // in so long a rush of arrivals fades away
	mostDrawn   = 64   // arrivals in one future
	mostSeen    = 4096 // tasks that future ones are drawn of
)

func newRollout(how Lookahead, total []float64, age *residualTimes) rollout {
	return rollout{
		opts: how, plan: newTentativePlan(total, age), rng: newRand(how.Seed), age: age,
		rooms: make([]float64, len(total)), saved: make([]float64, len(total)),
	}
}

func (f *rollout) learn(arrival float64, pairs []pair) {
	if len(pairs) == 0 {
		return
	}
	if n := len(f.seen.arrival); n == 0 {
		f.first = arrival
	}
	if len(f.seen.arrival) < mostSeen {
		f.total, f.kWh, f.learned = f.total+pairs[0].Time, f.kWh+pairs[0].kWh(), f.learned+1
		f.seen.add(f.plan.classes, arrival, pairs, f.secondsPerKWh())
		f.noteSavings(pairs)
	}
	window := recentRuns * f.meanRunTime()
	f.recent = f.recent*math.Exp(-(arrival-f.last)/window) + 1/window
	f.last = arrival
}

func (f *rollout) noteSavings(pairs []pair) {
	most := 0.0
	for i := range pairs {
		most = max(most, pairs[i].kWh())
	}
	for i := range pairs {
		if most > 0 {
			f.saved[pairs[i].class] += 1 - pairs[i].kWh()/most
		}
	}
}

// What tasks to come lose by a start now: they will want the frugal classes.
const (
	rushWeight = 0.225 // seconds a second for each in a usual run time, where a class saves all energy
	maxRush    = 8     // of them at most
)

// setDelayPrices sets a draft's prices for tasks that arrive as often as lately.
func (f *rollout) setDelayPrices(d *tentativePlan, now float64) {
	lately, _ := f.arrivalRates(now)
	for class := range d.futureDelayCost {
		d.futureDelayCost[class] = 0
		if !f.closed {
			d.futureDelayCost[class] = rushWeight * min(lately*f.meanRunTime(), maxRush) *
				f.saved[class] / f.learned
		}
	}
}

func (f *rollout) meanRunTime() float64 { return f.total / f.learned }

// secondsPerKWh returns what a kWh is worth, in seconds of waiting: see [Lookahead].
func (f *rollout) secondsPerKWh() float64 {
	if f.opts.PerKWh == 0 && f.kWh > 0 {
		return f.opts.Weight * f.total / f.kWh
	}
	return f.opts.PerKWh
}

// arrivalRates are arrivals a second: lately, and over all. As long as few tasks arrived,
// the latter counts as if priorTasks more had, in priorRuns usual run times.
func (f *rollout) arrivalRates(now float64) (lately, overall float64) {
	const priorTasks, priorRuns = 3, 1.6
	usual := f.meanRunTime()
	lately = f.recent * math.Exp(-(now-f.last)/(recentRuns*usual))
	overall = (f.learned + priorTasks) / (now - f.first + priorRuns*usual)
	return lately, overall
}

// trial is a choice and what it cost in the futures so far, in seconds of waiting.
type trial struct {
	choice     int       // index in choices; none: to wait
	item       int32     // the task, or none
	class      int32     // where it starts
	costs      []float64 // by future
	sum        float64   // of costs
	eliminated bool      // it can't be the best any more
}

// futuresPerRound is how many futures are played between two looks at which
// choices have fallen behind, surely their distance in standard errors.
const (
	futuresPerRound = 25
	decisiveSigmas  = 2.5
)

// bestChoice returns the choice that costs least; ok is false when waiting does. Items of
// the draft are the residents, and the waiting tasks after them.
func (f *rollout) bestChoice(
	from *tentativePlan, now float64, free []float64, residents int, waiting []int, choices []pair,
) (best pair, ok bool) {
	f.begin(from)
	trials := make([]trial, 0, len(choices)+1)
	if residents > 0 { // or else there is nothing to wait for
		trials = append(trials, trial{choice: noPair, item: noPair})
	}
	for i := range choices {
		item := residents + slices.Index(waiting, choices[i].task)
		trials = append(trials, trial{choice: i, item: int32(item), class: int32(choices[i].class)})
	}
	lead := 0
	for n := 1; n <= f.opts.Futures; n++ {
		f.drawFuture(now)
		for i := range trials {
			if t := &trials[i]; !t.eliminated {
				if f.isStopped() {
					return pair{}, false
				}
				cost := f.playOut(now, free, t.item, t.class)
				t.costs, t.sum = append(t.costs, cost), t.sum+cost
			}
		}
		if n%futuresPerRound == 0 || n == f.opts.Futures {
			var decided bool
			if lead, decided = dropWorseTrials(trials); decided {
				break
			}
		}
	}
	if trials[lead].choice == noPair {
		return pair{}, false
	}
	return choices[trials[lead].choice], true
}

// isStopped accounts for the work since it was called last, and reports whether nobody waits
// for the answer any more.
func (f *rollout) isStopped() bool {
	f.view.Evaluations += f.plan.placed
	f.plan.placed = 0
	return f.view.IsStopped()
}

// dropWorseTrials takes out the trials that are surely worse than the one that leads.
// It reports whether none is left.
func dropWorseTrials(trials []trial) (lead int, decided bool) {
	for i := range trials {
		if trials[lead].eliminated || (!trials[i].eliminated && trials[i].sum < trials[lead].sum) {
			lead = i
		}
	}
	decided = true
	for i := range trials {
		if t := &trials[i]; i != lead && !t.eliminated {
			t.eliminated = t.isSurelyWorse(&trials[lead])
			decided = decided && t.eliminated
		}
	}
	return lead, decided
}

// isSurelyWorse reports whether a trial costs surely more than another one in the same
// futures.
func (t *trial) isSurelyWorse(lead *trial) bool {
	n := float64(len(t.costs))
	mean, squares := (t.sum-lead.sum)/n, 0.0
	for i := range t.costs {
		d := t.costs[i] - lead.costs[i] - mean
		squares += d * d
	}
	return mean > decisiveSigmas*math.Sqrt(squares/max(n-1, 1)/n)
}

// begin takes over what the draft of the real run knows.
func (f *rollout) begin(from *tentativePlan) {
	d := &f.plan
	d.items.truncate(d.classes, 0)
	for i := range from.items.arrival {
		d.items.appendFrom(d.classes, &from.items, i)
	}
	f.count = len(d.items.arrival)
	f.line, f.runs = append(f.line[:0], from.line...), append(f.runs[:0], from.running...)
}

// drawFuture draws a future: when the running tasks end, how long the waiting ones
// take, and what arrives if anything may.
func (f *rollout) drawFuture(now float64) {
	d := &f.plan
	d.items.truncate(d.classes, f.count)
	for i := range f.runs {
		o := &f.runs[i]
		o.end = now + f.age.draw(f.rng, d.items.time[d.index(o.item, o.class)], now-o.start)
	}
	for _, item := range f.line {
		f.drawTimes(int(item))
	}
	if !f.closed {
		f.drawArrivals(now)
	}
}

// drawArrivals draws tasks that arrive later, like those that did, as often as
// tasks arrived so far.
func (f *rollout) drawArrivals(now float64) {
	d := &f.plan
	lately, overall := f.arrivalRates(now)
	fade, most := fadeRuns*f.meanRunTime(), max(lately, overall)
	end := now + horizonRuns*f.meanRunTime()
	for at, n := now, 0; n < mostDrawn; n++ {
		if at += f.rng.ExpFloat64() / most; at > end {
			break
		}
		if rate := overall + (lately-overall)*math.Exp(-(at-now)/fade); f.rng.Float64()*most > rate {
			continue
		}
		d.items.appendFrom(d.classes, &f.seen, f.rng.IntN(len(f.seen.arrival)))
		item := len(d.items.arrival) - 1
		d.items.arrival[item] = at
		f.drawTimes(item)
	}
}

func (f *rollout) drawTimes(item int) {
	it := &f.plan.items
	for at := item * f.plan.classes; at < (item+1)*f.plan.classes; at++ {
		if !math.IsInf(it.cost[at], 1) {
			it.drawn[at] = f.age.draw(f.rng, it.time[at], 0)
		}
	}
}

// playOut starts a task on a class, or none, and goes on by drafts until nothing
// waits and nothing more arrives. It tells what that costs, seconds.
func (f *rollout) playOut(now float64, free []float64, item, class int32) (cost float64) {
	d := &f.plan
	d.line, d.running = append(d.line[:0], f.line...), append(d.running[:0], f.runs...)
	copy(f.rooms, free)
	began, next := now, f.count
	if item != noPair {
		cost += f.startItem(began, now, slices.Index(d.line, item), class)
		cost += f.startPlanned(began, now)
	}
	for len(d.line) > 0 || next < len(d.items.arrival) {
		now = f.nextEvent(now, next)
		d.running = slices.DeleteFunc(d.running, func(o plannedRunning) bool {
			if o.end > now {
				return false
			}
			f.rooms[o.class] += d.items.gpus[d.index(o.item, o.class)]
			return true
		})
		for next < len(d.items.arrival) && d.items.arrival[next] <= now {
			d.enqueue(int32(next))
			next++
		}
		cost += f.startPlanned(began, now)
	}
	return cost
}

// nextEvent returns when the next task arrives or ends. Where neither happens, time
// passes all the same.
func (f *rollout) nextEvent(now float64, next int) float64 {
	d, at := &f.plan, math.Inf(1)
	if next < len(d.items.arrival) {
		at = d.items.arrival[next]
	}
	for i := range d.running {
		at = min(at, d.running[i].end)
	}
	if math.IsInf(at, 1) {
		return now + wakeAfter*f.meanRunTime()
	}
	return at
}

// startPlanned plays what a draft starts now and tells what that costs.
func (f *rollout) startPlanned(began, now float64) (cost float64) {
	d := &f.plan
	if !f.anyFits() {
		return 0
	}
	d.build(now, f.rooms)
	kept := 0
	for i := range d.now {
		if d.now[i] {
			cost += f.startItem(began, now, kept, d.chosen[i])
		} else {
			kept++
		}
	}
	return cost
}

func (f *rollout) anyFits() bool {
	d := &f.plan
	for _, item := range d.line {
		for class := range int32(d.classes) {
			at := d.index(item, class)
			if d.items.gpus[at] <= f.rooms[class]+planner.ShareSlack && !math.IsInf(d.items.cost[at], 1) {
				return true
			}
		}
	}
	return false
}

// startItem starts the task at a place in the line and tells what that costs: its
// energy, and its wait since the future began.
func (f *rollout) startItem(began, now float64, place int, class int32) (cost float64) {
	d := &f.plan
	item := d.line[place]
	at := d.index(item, class)
	f.rooms[class] -= d.items.gpus[at]
	d.line = slices.Delete(d.line, place, place+1)
	d.running = append(d.running, plannedRunning{
		item: item, class: class, start: now, end: now + d.items.drawn[at],
	})
	arrival := d.items.arrival[item]
	return d.items.cost[at] + f.ageingCost(now-arrival) - f.ageingCost(max(began-arrival, 0))
}

// ageingCost returns what a wait of so many seconds costs: see [Lookahead.Ageing].
func (f *rollout) ageingCost(wait float64) float64 {
	if f.opts.Ageing == 0 {
		return wait
	}
	return wait + wait*wait/(2*f.opts.Ageing)
}
