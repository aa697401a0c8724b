package agent

import (
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/live"
)

// What a driver says of utilisation is the mean over its latest finished sample
// period, which is as long as this (NVML's documentation of
// nvmlDeviceGetUtilizationRates).
const (
	minPeriod = time.Second / 6
	maxPeriod = time.Second
)

// How an adapter weighs what it sees. Numbers without a unit are seconds.
const (
	// priorBusy is for how long a run counts as having been at work before it began,
	// so that its first pause doesn't stand for all of it.
	priorBusy = 5.0
	// minHorizon is the time within which spare time is spent, or as long as the
	// run has lasted, if that is longer.
	minHorizon = 10.0
	// minDwell is for how long a clock at which the run loses must be affordable for it
	// to be begun.
	minDwell = 2.0
	// patience is for how long nothing must have run before the floor is a good place.
	patience = time.Second
	// calm is how long after the last change clocks may fall, at the earliest.
	calm = time.Second
	// hysteresis is by how much more than it should the present clock may stretch
	// work and still be kept: the paper's 5 %.
	hysteresis = 1.05
	// rounding is the rounding that sums of times may carry.
	rounding = 1e-9
)

// clockStepper chooses a run's core clock. It sees nothing but times and utilisations,
// and the levels that are in force.
//
// The run's time so far, elapsed, is what it took; base is what the same work
// would have taken at default clocks at least. The run is within its SLA while
// elapsed ≤ SLA·base. What wasn't idle for sure counts as work, at the slowest
// clock at which it may have been done; so does what the driver can't have shown
// yet. Times are seconds.
type clockStepper struct {
	rule      *live.Adaptation
	stepDelay float64 // that may pass until the next step takes effect

	level       int       // index in rule.Levels, as asked for
	changed     time.Time // when it was
	lowestLevel int       // the lowest level so far
	stretch     float64   // of the level in force; while a faster one is being set, still of the slower one

	// The last step.
	last     time.Time
	seen     float64 // utilisation, 0 to 1
	passed   float64 // from the step before
	workPart float64 // the part of passed that counts as work

	// The run so far.
	elapsed     float64
	base        float64
	workSeconds float64   // of elapsed: what counts as work
	worked      float64   // of base: the same work at default clocks
	busyAt      time.Time // when something ran last

	// What may have been work though it isn't booked as such.
	unbooked  []unbookedWork
	maxUnseen float64     // before the last step, at most
	shown     []shownUtil // over the last sample period
}

// unbookedWork is work that may have been done at a clock that isn't in force any more,
// and isn't booked. By the time that it ends, the driver has shown all of it.
// Those of an adapter are sorted by falling stretch, all slower than what is in
// force.
type unbookedWork struct {
	stretch, seconds float64
	until            time.Time
}

// shownUtil is the utilisation that counted at a step.
type shownUtil struct {
	at   time.Time
	util float64 // 0 to 1
}

// newClockStepper begins with a run at a level of the rule.
func newClockStepper(rule *live.Adaptation, level int, now time.Time) *clockStepper {
	const ticks = 5 // periods by which a step may be late
	return &clockStepper{
		rule: rule, stepDelay: ticks * rule.TauS, level: level, lowestLevel: level,
		last: now, busyAt: now, changed: now, seen: 1, stretch: rule.Levels[level].Stretch,
	}
}

// core returns the clock that is asked for.
func (d *clockStepper) core() dvfsmodel.MHz { return d.rule.Levels[d.level].Core }

// lowest returns the lowest clock so far.
func (d *clockStepper) lowest() dvfsmodel.MHz { return d.rule.Levels[d.lowestLevel].Core }

// step books what was seen since the last step and chooses the level from now
// on. A utilisation that isn't known (NaN, or below 0) counts as work; left is
// how many clock writes there may still be in this minute.
func (d *clockStepper) step(now time.Time, util float64, left int) (changed bool) {
	d.book(now, util)
	if now.Sub(d.changed) < d.rule.WritePause() {
		return false
	}
	want := d.bestLevel(now)
	urgent := d.spareMargin(d.level) < -rounding
	if !d.canAfford(want, left, urgent) {
		want = d.level
		if safe := d.slowest(d.rule.SLA); urgent || safe < d.level && d.canAfford(safe, left, false) {
			want = safe
		}
	}
	if want > d.level && now.Sub(d.changed) < calm {
		return false
	}
	return d.setLevel(now, want)
}

// stepShared is a step of a run that is alone on its GPUs. Another one goes to its
// ceiling, whatever that costs.
func (d *clockStepper) stepShared(now time.Time, util float64, left int, alone bool) (changed bool) {
	if alone {
		return d.step(now, util, left)
	}
	d.book(now, 1)
	return d.setLevel(now, 0)
}

// setLevel asks for a level. A slower one counts as in force at once, a faster one
// from [clockStepper.noteInForce] on.
func (d *clockStepper) setLevel(now time.Time, level int) bool {
	if level == d.level {
		return false
	}
	d.level, d.changed, d.lowestLevel = level, now, max(d.lowestLevel, level)
	if stretch := d.rule.Levels[level].Stretch; stretch > d.stretch {
		d.stretch = stretch
		d.unbooked = slices.DeleteFunc(d.unbooked, func(x unbookedWork) bool { return x.stretch <= stretch })
	}
	return true
}

// noteInForce tells that the level that was asked for is in force.
func (d *clockStepper) noteInForce(now time.Time) {
	stretch := d.rule.Levels[d.level].Stretch
	if stretch >= d.stretch {
		return
	}
	open := min(d.maxUnseen, d.unbookedSeconds()) + max(0, now.Sub(d.last)).Seconds()
	for _, x := range d.unbooked {
		open -= x.seconds
	}
	if open > 0 {
		d.unbooked = append(d.unbooked, unbookedWork{d.stretch, open, now.Add(2 * maxPeriod)})
	}
	d.stretch = stretch
}

// book counts the time since the last step.
func (d *clockStepper) book(now time.Time, util float64) {
	if !gpu.IsMeasured(util) {
		util = 1
	}
	util = min(1, util)
	passed := max(0, now.Sub(d.last))
	charge := max(util, d.seen)
	if passed > minPeriod { // there may have been more that nobody saw
		charge = 1
	}
	d.maxUnseen = d.unbookedSeconds() + (1-charge)*passed.Seconds()
	d.unbooked = slices.DeleteFunc(d.unbooked, func(x unbookedWork) bool { return x.until.Before(d.last) })
	t, work := passed.Seconds(), charge*passed.Seconds()
	d.passed, d.workPart = t, charge
	lost := d.maxLoss(work, d.stretch, true)
	d.elapsed += t
	d.workSeconds += work
	d.worked += work - lost
	d.base += t - lost
	d.last, d.seen = now, util
	if charge > 0 {
		d.busyAt = now
	}
	d.shown = append(d.shown, shownUtil{now, charge})
	d.shown = slices.DeleteFunc(d.shown, func(s shownUtil) bool { return s.at.Before(now.Add(-maxPeriod)) })
}

// maxLoss returns how much longer so many seconds of work took at most than they would have
// at default clocks. Debts count first, each at its own stretch or at the given one
// if that is slower, and the rest at the given one. With pay, what was counted is
// taken off the debts.
func (d *clockStepper) maxLoss(work, stretch float64, pay bool) float64 {
	lost := 0.0
	for i := range d.unbooked {
		x := &d.unbooked[i]
		part := min(work, x.seconds)
		lost += part * (1 - 1/max(stretch, x.stretch))
		if work -= part; pay {
			x.seconds -= part
		}
	}
	return lost + work*(1-1/stretch)
}

// unbookedSeconds is for how long, in seconds, the run may have been at work without that
// being booked: all of the sample period that isn't over, and of the one before as
// much as the highest utilisation shown since says. It is no more than what counts as
// idle.
func (d *clockStepper) unbookedSeconds() float64 {
	most := 0.0
	for _, s := range d.shown {
		most = max(most, s.util)
	}
	return max(0, min(maxPeriod.Seconds()*(1+most), d.elapsed-d.workSeconds))
}

// spareSeconds returns how many seconds the run is within its SLA for sure, if the level was in
// force already.
func (d *clockStepper) spareSeconds(level int) float64 {
	stretch := max(d.stretch, d.rule.Levels[level].Stretch)
	return d.rule.SLA*(d.base-d.maxLoss(d.unbookedSeconds(), stretch, false)) - d.elapsed
}

// lossRate returns what a second of work at a level takes from the spare time at most,
// seconds.
func (d *clockStepper) lossRate(level int) float64 {
	return max(0, 1-d.rule.SLA/d.rule.Levels[level].Stretch)
}

// spareMargin returns what is left of the spare time, seconds, if all is work until the step
// after the next one that may change the clock; below 0 the level must not be.
func (d *clockStepper) spareMargin(level int) float64 {
	delay := d.stepDelay
	if level != d.level {
		delay += d.rule.WritePauseS
	}
	return d.spareSeconds(level) - delay*d.lossRate(level)
}

// bestLevel returns the level that is best, were clock writes free.
func (d *clockStepper) bestLevel(now time.Time) int {
	floor := len(d.rule.Levels) - 1
	if now.Sub(d.busyAt) >= max(patience, d.rule.RestTime()) && d.canBegin(floor) {
		return floor
	}
	busy := (d.worked + priorBusy) / (d.base + priorBusy)
	return d.slowest(1 + (d.rule.SLA-1+d.spareSeconds(d.level)/max(minHorizon, d.elapsed))/busy)
}

// canBegin reports whether a level may be begun, or kept.
func (d *clockStepper) canBegin(level int) bool {
	if level == d.level {
		return d.spareMargin(level) >= -rounding
	}
	return d.spareMargin(level) >= minDwell*d.lossRate(level)-rounding
}

// slowest returns the slowest level that stretches work no more than this, may be begun,
// and isn't below the cheapest one; the ceiling where there is none.
func (d *clockStepper) slowest(stretch float64) int {
	levels := d.rule.Levels
	cheapest := 0
	for i := range levels {
		if levels[i].Cost < levels[cheapest].Cost {
			cheapest = i
		}
	}
	for i := cheapest; i > 0; i-- {
		most := stretch
		if i == d.level {
			most *= hysteresis
		}
		if levels[i].Stretch <= most+rounding && d.canBegin(i) {
			return i
		}
	}
	return 0
}

// canAfford reports whether there are writes for a level: for the change, for the
// end of the run, and, where it loses there, for the way back.
func (d *clockStepper) canAfford(level, left int, urgent bool) bool {
	const change, end, back = 1, 1, 1
	switch {
	case level == d.level:
		return true
	case d.lossRate(level) > 0:
		return left >= change+end+back
	}
	return urgent || left >= change+end
}

// slowdown returns how many times as long as at default clocks the run has taken at
// most; 1 before it began.
func (d *clockStepper) slowdown() float64 {
	base := d.base - d.maxLoss(d.unbookedSeconds(), d.stretch, false)
	if !(base > 0) {
		return 1
	}
	return d.elapsed / base
}

// writeTimes are the times of a GPU's clock writes in the last minute.
type writeTimes []time.Time

// maxCountedWrites is how far back writes count: [live.Adaptation.Writes] is by the minute.
const maxCountedWrites = time.Minute

// add notes a write.
func (w *writeTimes) add(now time.Time) {
	*w = append(slices.DeleteFunc(*w, func(at time.Time) bool { return now.Sub(at) >= maxCountedWrites }),
		now)
}

// remaining returns how many of so many there may still be now.
func (w *writeTimes) remaining(now time.Time, most int) int {
	for _, at := range *w {
		if now.Sub(at) < maxCountedWrites {
			most--
		}
	}
	return max(0, most)
}
