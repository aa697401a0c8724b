package agent

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
)

// v100 are levels of a V100 for work that follows the core clock altogether.
func v100(sla float64, writes int) *live.Adaptation {
	rule := &live.Adaptation{SLA: sla, TauS: 0.1, Writes: writes}
	for _, core := range []dvfsmodel.MHz{1380, 1237, 1102, 945, 802, 705, 600} {
		fc := float64(core) / 1380
		v := float64(dvfsmodel.VoltageFor(fc))
		rule.Levels = append(rule.Levels, live.AdaptLevel{
			Core: core, Stretch: 1 / fc, Cost: (50 + 130*v*v*fc) / fc / 180,
		})
	}
	return rule
}

// restingV100 are the levels of a run without a model: it is at default clocks, or at rest.
func restingV100(sla, rest float64) *live.Adaptation {
	return &live.Adaptation{
		SLA: sla, TauS: 0.1, Writes: 30, RestS: rest,
		Levels: []live.AdaptLevel{
			{Core: 1380, Stretch: 1, Cost: 1}, {Core: 135, Stretch: 1380.0 / 135, Cost: 2.002},
		},
	}
}

// world is a job on a GPU with a driver: what really happens to it.
type world struct {
	d      *clockStepper
	rule   *live.Adaptation
	now    time.Time
	period time.Duration // of the driver's samples
	window time.Time     // where the sample period of now began
	used   time.Duration // of it so far
	shown  float64       // by the driver
	took   float64
	base   float64 // at default clocks
	joules float64
	// trueWork is how much of base was work.
	trueWork float64
	log      writeTimes
	all      []time.Time // writes
	factor   float64     // of the true stretch: 0..1 of what is feared
	worst    float64     // the highest slowdown at any time
	inForce  int
	// also is told of each stretch of time.
	also func(seconds float64, busy bool)
}

func newWorld(rule *live.Adaptation, level int, period time.Duration) *world {
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return &world{
		d: newClockStepper(rule, level, begin), rule: rule, now: begin, period: period,
		window: begin.Add(-period / 3), factor: 1, worst: 1, inForce: level,
	}
}

// pass has the job be at work or not for a time.
func (w *world) pass(d time.Duration, busy bool) {
	for d > 0 {
		step := min(d, w.window.Add(w.period).Sub(w.now))
		l := w.rule.Levels[w.inForce]
		seconds := step.Seconds()
		w.took += seconds
		if w.also != nil {
			w.also(seconds, busy)
		}
		if busy {
			w.used += step
			w.base += seconds / (1 + (l.Stretch-1)*w.factor)
			w.trueWork += seconds / (1 + (l.Stretch-1)*w.factor)
			w.joules += seconds * 180 * l.Cost / l.Stretch
		} else {
			w.base += seconds
			w.joules += seconds * 30
		}
		w.worst = max(w.worst, w.took/w.base)
		w.now, d = w.now.Add(step), d-step
		if !w.now.Before(w.window.Add(w.period)) {
			w.shown, w.used, w.window = float64(w.used)/float64(w.period), 0, w.now
		}
	}
}

// tick has the adapter look, with a write that takes a while.
func (w *world) tick(util float64, delay time.Duration, busy bool) {
	if !w.d.step(w.now, util, w.log.remaining(w.now, w.rule.Writes)) {
		return
	}
	slower := w.d.level > w.inForce
	if slower {
		w.inForce = w.d.level
	}
	w.log.add(w.now)
	w.all = append(w.all, w.now)
	w.pass(delay, busy)
	w.inForce = w.d.level
	w.d.noteInForce(w.now)
}

// mostWrites returns how many writes there were in any minute.
func (w *world) mostWrites() int {
	most := 0
	for i := range w.all {
		n := 0
		for _, at := range w.all[i:] {
			if at.Sub(w.all[i]) < time.Minute {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// jobLoad is how a job uses its GPU: in phases that come and go between steps; or
// contrary, at work when it is told that clocks are low, and knows that at once.
type jobLoad struct {
	random     *rand.Rand
	mean, duty float64
	contrary   int // 1: at work at the floor; 2: at all clocks at which it loses
	busy       bool
	left       float64
}

// pass has the job go on for some seconds.
func (j *jobLoad) pass(w *world, seconds float64) {
	for seconds > 0 {
		if j.left <= 0 {
			j.busy = !j.busy
			part := j.duty
			if !j.busy {
				part = 1 - j.duty
			}
			j.left = j.random.ExpFloat64() * j.mean * 2 * part
		}
		d := min(seconds, j.left)
		if j.contrary > 0 {
			d = min(seconds, 0.02)
			j.busy = w.inForce == len(w.rule.Levels)-1 || j.contrary == 2 && w.d.lossRate(w.inForce) > 0
		}
		w.pass(time.Duration(d*1e9)+1, j.busy)
		seconds, j.left = seconds-d, j.left-d
	}
}

// Whatever the run does, whatever the driver says of it in its own time, and
// however late the steps are, up to half a second: at no moment has the run
// taken longer than its SLA allows, and no minute has more writes than allowed.
func TestTheSLAHoldsAtEveryMomentForAnyUtilisation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rule := v100(rapid.Float64Range(1, 2).Draw(rt, "sla"), rapid.IntRange(0, 60).Draw(rt, "writes"))
		rule.WritePauseS = rapid.SampledFrom([]float64{0, 1, 5, 10}).Draw(rt, "pause")
		if rest := rapid.SampledFrom([]float64{0, 0, 3, 20}).Draw(rt, "rest"); rest > 0 {
			rule = restingV100(rule.SLA, rest)
		}
		first := 0
		for i, l := range rule.Levels {
			if l.Stretch <= rule.SLA {
				first = i
			}
		}
		w := newWorld(rule, first,
			time.Duration(rapid.Int64Range(int64(minPeriod), int64(maxPeriod)).Draw(rt, "period")))
		w.factor = rapid.SampledFrom([]float64{1, 1, 0.5}).Draw(rt, "factor")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		late := rapid.SampledFrom([]float64{0, 0.05, 0.3}).Draw(rt, "late")
		mean := rapid.SampledFrom([]float64{0.02, 0.3, 2, 15}).Draw(rt, "phase")
		duty := rapid.Float64Range(0.02, 1).Draw(rt, "duty")
		j := &jobLoad{
			random: random, mean: mean, duty: duty,
			contrary: rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(rt, "contrary"),
		}
		for range 3000 {
			step := rule.TauS
			if random.Float64() < late {
				step = 0.1 + 0.35*random.Float64()
			}
			j.pass(w, step)
			util := w.shown
			if random.IntN(50) == 0 {
				util = math.NaN()
			}
			w.tick(util, time.Duration(random.IntN(40))*time.Millisecond, j.busy)
		}
		if w.worst > rule.SLA*(1+1e-6) {
			rt.Fatalf("took %v times as long, SLA %v", w.worst, rule.SLA)
		}
		if got := w.mostWrites(); got > rule.Writes {
			rt.Fatalf("%d writes in a minute, want at most %d", got, rule.Writes)
		}
		for i := 1; i < len(w.all); i++ {
			if pause := w.all[i].Sub(w.all[i-1]); pause < rule.WritePause() {
				rt.Fatalf("%s from one write to the next, want %s at least", pause, rule.WritePause())
			}
		}
	})
}

// A run without a model is at its lowest clock only after a rest, for most of a long one, and at default
// clocks one look after it is seen at work.
func TestARunWithoutAModelIsSlowOnlyAtRest(t *testing.T) {
	const rest = 60.0
	w := newWorld(restingV100(1.002, rest), 0, minPeriod)
	random, quiet, low, long := rand.New(rand.NewPCG(7, 7)), 0.0, 0.0, 0.0
	for range 40 {
		busy := true
		for _, seconds := range []float64{600 * random.Float64(), 600 * random.Float64()} {
			for range int(10 * seconds) {
				w.pass(100*time.Millisecond, busy)
				if quiet += 0.1; busy {
					quiet = 0
				}
				was := w.inForce
				w.tick(w.shown, 0, busy)
				if w.inForce == 1 {
					low += 0.1
				}
				if w.inForce == 1 && (was == 0 && quiet < rest-1 || w.shown > 0) {
					t.Fatalf("at %v MHz after %.1f s without work, seen at work for %v of the time",
						float64(w.rule.Levels[1].Core), quiet, w.shown)
				}
			}
			if !busy {
				long += max(0, seconds-rest)
			}
			busy = false
		}
	}
	t.Logf("%.0f s of the %.0f s of long rests at the lowest clock, %.5f times as long at most", low, long,
		w.worst)
	if low < 0.8*long || w.worst > 1.002 {
		t.Error("want four fifths, and two thousandths")
	}
}

// An adversary who begins to work as soon as clocks are low, and stops as soon
// as they are high.
func TestNobodyGainsByWorkingWhenClocksAreLow(t *testing.T) {
	for _, contrary := range []bool{false, true} {
		w := newWorld(v100(1.2, 30), 1, minPeriod)
		for range 36_000 {
			low := w.inForce > 1
			w.pass(100*time.Millisecond, low != contrary)
			w.tick(w.shown, 10*time.Millisecond, low != contrary)
		}
		if w.worst > 1.2 || w.mostWrites() > 30 {
			t.Errorf("took %v times as long, %d writes in a minute", w.worst, w.mostWrites())
		}
	}
}

// play has a job of bursts of work and waiting in turn for a time.
func (w *world) play(seconds int, busy, wait time.Duration) {
	begin := w.now
	for w.now.Sub(begin) < time.Duration(seconds)*time.Second {
		at := w.now.Sub(begin) % (busy + wait)
		w.pass(100*time.Millisecond, at < busy)
		w.tick(w.shown, 5*time.Millisecond, at < busy)
	}
}

func TestPausesAreSpentOnLowerClocksAndWorkWithoutThemIsAtTheSafeOne(t *testing.T) {
	for _, c := range []struct {
		name          string
		busy, wait    time.Duration
		least, most   float64 // slowdown
		writes        int     // in ten minutes, at most
		lowest, floor bool
	}{
		{name: "always at work", busy: time.Hour, wait: time.Second, least: 1.14, most: 1.2, writes: 20},
		{
			name: "half of the time", busy: 20 * time.Second, wait: 20 * time.Second, least: 1.12, most: 1.2,
			writes: 90, floor: true,
		},
		{
			name: "short bursts", busy: 300 * time.Millisecond, wait: 700 * time.Millisecond, least: 1.1,
			most: 1.2, writes: 20,
		},
		{
			name: "never at work", busy: time.Nanosecond, wait: time.Hour, least: 1, most: 1.2,
			writes: 4, floor: true,
		},
	} {
		w := newWorld(v100(1.2, 30), 1, minPeriod)
		w.play(600, c.busy, c.wait)
		t.Logf("%s: %.3f times as long, %d writes, level %d, deepest %d, %.0f W", c.name, w.took/w.base,
			len(w.all), w.d.level, w.d.lowestLevel, w.joules/w.took)
		if got := w.took / w.base; got < c.least || got > c.most {
			t.Errorf("%s: %v times as long, want %v to %v", c.name, got, c.least, c.most)
		}
		if len(w.all) > c.writes || (w.d.lowestLevel == len(w.rule.Levels)-1) != c.floor {
			t.Errorf("%s: %d writes, deepest level %d", c.name, len(w.all), w.d.lowestLevel)
		}
	}
}

// What can't be known is work.
func TestWithoutAUtilisationARunCountsAsAlwaysAtWork(t *testing.T) {
	for _, util := range []float64{math.NaN(), -1, math.Inf(1)} {
		w := newWorld(v100(1.2, 30), 1, minPeriod)
		for range 6000 {
			w.pass(100*time.Millisecond, false)
			w.tick(util, time.Millisecond, false)
		}
		if w.d.lowestLevel > 2 || w.d.slowdown() > 1.2 || w.d.slowdown() < 1.1 {
			t.Errorf("utilisation %v: level %d, counts as %v times as long", util, w.d.lowestLevel,
				w.d.slowdown())
		}
	}
}

// A process that stood still at low clocks, and was at work all that time, has
// broken the SLA; it comes back to it at the ceiling.
func TestAfterALongGapTheRunCatchesUpAtTheCeiling(t *testing.T) {
	w := newWorld(v100(1.2, 30), 1, minPeriod)
	w.play(60, time.Nanosecond, time.Hour)
	if w.d.level != len(w.rule.Levels)-1 {
		t.Fatalf("level %d while nothing runs", w.d.level)
	}
	w.pass(5*time.Minute, true)
	w.tick(w.shown, 5*time.Millisecond, true)
	if w.d.level != 0 {
		t.Errorf("level %d after a gap in which all was lost", w.d.level)
	}
	broken := w.took / w.base
	w.play(1800, time.Hour, time.Second)
	if got := w.took / w.base; broken < 1.2 || got > 1.2 {
		t.Errorf("%v times as long after the gap, %v half an hour later", broken, got)
	}
}

func TestAnAdaptationThatCannotBeIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(*live.Adaptation){
		"sla":        func(a *live.Adaptation) { a.SLA = 0.9 },
		"no sla":     func(a *live.Adaptation) { a.SLA = math.NaN() },
		"tau":        func(a *live.Adaptation) { a.TauS = 0 },
		"writes":     func(a *live.Adaptation) { a.Writes = -1 },
		"pause":      func(a *live.Adaptation) { a.WritePauseS = 11 },
		"no pause":   func(a *live.Adaptation) { a.WritePauseS = math.NaN() },
		"no levels":  func(a *live.Adaptation) { a.Levels = nil },
		"no ceiling": func(a *live.Adaptation) { a.Levels = a.Levels[1:] },
		"order":      func(a *live.Adaptation) { a.Levels[2].Core = 1300 },
		"cost":       func(a *live.Adaptation) { a.Levels[2].Cost = math.Inf(1) },
		"stretch":    func(a *live.Adaptation) { a.Levels[2].Stretch = 1 },
		"clock":      func(a *live.Adaptation) { a.Levels[6].Core = 0 },
	} {
		rule := v100(1.2, 30)
		if err := checkAdaptation(rule); err != nil {
			t.Fatal(err)
		}
		spoil(rule)
		if checkAdaptation(rule) == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// In the long run a job costs about as little as at the best static clock for its
// own use of the GPU, which nobody knows before, and less than at the best one
// that is safe without knowing it.
func TestInTheLongRunClocksCostNoMoreThanTheBestStaticOneThatNobodyKnows(t *testing.T) {
	rule := v100(1.2, 30)
	for _, duty := range []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1} {
		const period, seconds = 30.0, 7200
		busy := time.Duration(duty * period * 1e9)
		wait := time.Duration(period*1e9) - busy
		w := newWorld(rule, 1, maxPeriod)
		w.play(seconds, busy, wait)
		work := w.trueWork
		static := func(l live.AdaptLevel) (joules, slowdown float64) {
			return 180*l.Cost*work + 30*(w.base-work), 1 + (l.Stretch-1)*work/w.base
		}
		standard, _ := static(rule.Levels[0])
		best, safe := math.Inf(1), math.Inf(1)
		for _, l := range rule.Levels {
			joules, slowdown := static(l)
			if slowdown <= rule.SLA {
				best = min(best, joules)
			}
			if l.Stretch <= rule.SLA {
				safe = min(safe, joules)
			}
		}
		part := func(joules float64) float64 { return 100 * (1 - joules/standard) }
		t.Logf("at work for %3.0f %%: %.3f times as long, saved %.1f %%; the best static clock %.1f %%, "+
			"one that is safe for any use %.1f %%; %.1f writes a minute",
			100*work/w.base, w.took/w.base, part(w.joules), part(best), part(safe),
			float64(len(w.all))/seconds*60)
		if w.worst > rule.SLA || w.joules > 1.1*best || w.joules > safe*1.001 {
			t.Errorf("at work for %v: %v times as long, %v J, best static %v J, safe %v J", duty, w.worst,
				w.joules, best, safe)
		}
	}
}
