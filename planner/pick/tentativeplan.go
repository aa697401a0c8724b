package pick

import (
	"math"
	"slices"
)

// tentativePlan is a plan for the tasks that wait, by predicted run times: each in turn
// gets the class and the time where it costs least, its wait and its energy
// counted, among what the running ones leave free and the earlier ones have
// booked. Then tasks are moved to other classes one by one where that makes the
// whole plan cheaper. What the draft starts now is started; the rest of it is
// forgotten. A draft that decides alone also counts that others want the GPUs, and
// tries other orders.
type tentativePlan struct {
	classes int
	total   []float64 // GPUs by class

	// How it decides.
	// By class: seconds that tasks to come lose for each second that all of it is busy.
	futureDelayCost []float64
	behindDelayCost float64 // likewise for each task that waits behind
	rounds          int     // how often all tasks are tried before others

	// What it is of.
	items   plannedTasks
	line    []int32 // items that wait, in order of their turns
	running []plannedRunning
	start   classSchedule // what is free as the running tasks end

	// The answers, by place in line, and how they came about.
	chosen []int32       // the class
	now    []bool        // whether it starts at once
	forced []int32       // the class that it is bound to, or anyClass
	booked classSchedule // as start, less what is booked

	placed int // work done: tasks looked at for a class
}

// anyClass marks a task that the draft may put on every class.
const anyClass = -1

// plannedTasks are tasks as a draft knows them. Slices by task and class have a row of all
// classes for each task: see [tentativePlan.index].
type plannedTasks struct {
	arrival []float64 // by task, seconds
	work    []float64 // by task: GPU-seconds where that is least
	gpus    []float64 // by task and class: as predicted
	time    []float64 // by task and class: as predicted, seconds
	cost    []float64 // by task and class: of the energy, in seconds of waiting; +Inf: doesn't suit
	drawn   []float64 // by task and class: the run time in the future that is being played, seconds
}

type plannedRunning struct {
	item, class int32
	start, end  float64 // end is known in a drawn future only
}

func newTentativePlan(total []float64, age *residualTimes) tentativePlan {
	classes := len(total)
	return tentativePlan{
		classes: classes, total: total, futureDelayCost: make([]float64, classes),
		start: classSchedule{age: age},
	}
}

// index returns the place of a task and a class in the slices of items.
func (d *tentativePlan) index(item, class int32) int { return int(item)*d.classes + int(class) }

func (it *plannedTasks) add(classes int, arrival float64, pairs []pair, perKWh float64) {
	from := len(it.gpus)
	for range classes {
		it.gpus, it.time = append(it.gpus, 0), append(it.time, 0)
		it.cost, it.drawn = append(it.cost, math.Inf(1)), append(it.drawn, 0)
	}
	work := math.Inf(1)
	for i := range pairs {
		p := &pairs[i]
		at := from + p.class
		it.gpus[at], it.time[at], it.cost[at] = p.GPUs, p.Time, perKWh*p.kWh()
		work = min(work, p.work())
	}
	it.arrival, it.work = append(it.arrival, arrival), append(it.work, work)
}

func (it *plannedTasks) appendFrom(classes int, other *plannedTasks, item int) {
	from, to := item*classes, (item+1)*classes
	it.gpus, it.time = append(it.gpus, other.gpus[from:to]...), append(it.time, other.time[from:to]...)
	it.cost, it.drawn = append(it.cost, other.cost[from:to]...), append(it.drawn, other.drawn[from:to]...)
	it.arrival, it.work = append(it.arrival, other.arrival[item]), append(it.work, other.work[item])
}

func (it *plannedTasks) truncate(classes, count int) {
	it.arrival, it.work = it.arrival[:count], it.work[:count]
	count *= classes
	it.gpus, it.time, it.cost, it.drawn = it.gpus[:count], it.time[:count], it.cost[:count], it.drawn[:count]
}

// enqueue puts a task into the line: little work first.
func (d *tentativePlan) enqueue(item int32) {
	d.line = append(d.line, item)
	for i := len(d.line) - 1; i > 0 && d.items.work[d.line[i]] < d.items.work[d.line[i-1]]; i-- {
		d.line[i], d.line[i-1] = d.line[i-1], d.line[i]
	}
}

// build drafts the line at a time, with so many GPUs of each class free. The answers
// are in chosen and now.
func (d *tentativePlan) build(now float64, free []float64) {
	d.setStart(now, free)
	n := len(d.line)
	d.forced = slices.Grow(d.forced[:0], n)[:n]
	d.chosen = slices.Grow(d.chosen[:0], n)[:n]
	d.now = slices.Grow(d.now[:0], n)[:n]
	for i := range d.forced {
		d.forced[i], d.now[i] = anyClass, false
	}
	best := d.placeAll(now, math.Inf(1))
	stale := false // the answers are those of a draft that was no better
	for i := range min(mostFlips, n) {
		if stale {
			d.placeAll(now, math.Inf(1))
		}
		stale = false
		was, present := d.forced[i], d.chosen[i]
		for class := range int32(d.classes) {
			if class == present || math.IsInf(d.items.cost[d.index(d.line[i], class)], 1) {
				continue
			}
			d.forced[i] = class
			if cost := d.placeAll(now, best-minGain); cost < best-minGain {
				best, was, stale = cost, class, false
			} else {
				d.forced[i], stale = was, true
			}
		}
	}
	if d.reorder(now, best) || stale {
		d.placeAll(now, math.Inf(1))
	}
}

// reorder moves tasks before others where that makes the draft cheaper than best, and
// reports whether the answers may be those of another order that was tried.
func (d *tentativePlan) reorder(now, best float64) (stale bool) {
	n := min(len(d.line), maxPlaced)
	for better, round := true, 0; better && round < d.rounds; round++ {
		better = false
		for to := range n {
			for from := to + 1; from < n; from++ {
				d.shift(from, to)
				stale = true
				if cost := d.placeAll(now, best-minGain); cost < best-minGain {
					best, better = cost, true
				} else {
					d.shift(to, from)
				}
			}
		}
	}
	return stale
}

// shift moves a task of the line, with the class it is bound to, to another place.
func (d *tentativePlan) shift(from, to int) {
	item, class := d.line[from], d.forced[from]
	d.line = slices.Insert(slices.Delete(d.line, from, from+1), to, item)
	d.forced = slices.Insert(slices.Delete(d.forced, from, from+1), to, class)
}

// maxPlaced is how many tasks of the line a draft places: what starts now is
// among the first ones.
const maxPlaced = 12

// minGain is what a change must save to be made, seconds: more than rounding.
const minGain = 1e-3

// setStart sets start: what is free now, and when the running tasks are expected
// to end.
func (d *tentativePlan) setStart(now float64, free []float64) {
	d.start.begin(now, free)
	for i := range d.running {
		o := &d.running[i]
		at := d.index(o.item, o.class)
		d.start.addEnd(int(o.class), now+d.start.age.remaining(d.items.time[at], now-o.start), d.items.gpus[at])
	}
	d.start.sumUp()
}

// placeAll puts the tasks in turn where each costs least, unless a class is forced,
// and tells what all of them cost. It stops when that exceeds a bound.
func (d *tentativePlan) placeAll(now, bound float64) (cost float64) {
	d.booked.copyFrom(&d.start)
	for i, item := range d.line[:min(len(d.line), maxPlaced)] {
		least, best, when := math.Inf(1), int32(0), -1
		for class := range int32(d.classes) {
			if d.forced[i] != anyClass && d.forced[i] != class {
				continue
			}
			at := d.index(item, class)
			if math.IsInf(d.items.cost[at], 1) {
				continue
			}
			d.placed++
			c := &d.booked.curves[class]
			step := c.earliest(d.items.gpus[at], d.items.time[at])
			if step < 0 {
				continue
			}
			x := c.at[step] - now + d.items.cost[at]
			if price := d.futureDelayCost[class] + d.behindDelayCost*float64(len(d.line)-i-1); price > 0 {
				x += price * d.items.gpus[at] * d.items.time[at] / d.total[class]
			}
			if x < least {
				least, best, when = x, class, step
			}
		}
		d.chosen[i], d.now[i] = best, when == 0
		if when < 0 {
			continue
		}
		if cost += least; cost > bound {
			return cost
		}
		at := d.index(item, best)
		d.booked.curves[best].book(when, d.items.gpus[at], d.items.time[at])
	}
	return cost
}
