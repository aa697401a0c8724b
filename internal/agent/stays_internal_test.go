package agent

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
)

// kind is a kind of work, or of waiting: the part of its time that follows the
// core clock, and what it draws, by itself and by the clock at the highest.
type kind struct{ follows, watts, clocked float64 }

// parallel is a job that is stepped, and what it would have taken had it been at
// one level from start to end.
type parallel struct {
	*world
	stays  *residencyTracker
	kind   kind // of work now
	drawn  float64
	time   []float64 // by level
	joules []float64 // by level
}

func newParallel(rule *live.Adaptation, period time.Duration, work kind) *parallel {
	p := &parallel{world: newWorld(rule, 1, period), stays: newResidencyTracker(rule.Levels), kind: work}
	p.time, p.joules = make([]float64, len(rule.Levels)), make([]float64, len(rule.Levels))
	p.also = func(seconds float64, busy bool) {
		k := kind{watts: 30, clocked: 40}
		if busy {
			k = p.kind
		}
		p.drawn += seconds * k.at(rule, p.inForce)
		for m, l := range rule.Levels {
			there := seconds * (1 + (l.Stretch-1)*k.follows) /
				(1 + (rule.Levels[p.inForce].Stretch-1)*k.follows)
			p.time[m] += there
			p.joules[m] += there * k.at(rule, m)
		}
	}
	return p
}

// at returns its power at a level, on a GPU whose voltage follows its clock.
func (k kind) at(rule *live.Adaptation, level int) float64 {
	fc := float64(rule.Levels[level].Core / rule.Levels[0].Core)
	return k.watts + k.clocked*fc*fc*fc
}

// look has the adapter look, and the stays booked as the agent does.
func (p *parallel) look(delay time.Duration, busy bool) {
	now, level, drawn := p.now, p.d.level, p.drawn
	p.tick(p.shown, delay, busy)
	p.stays.book(now, level, p.d.passed, p.d.workPart, dvfsmodel.Joule(drawn), true)
}

// unstepped returns what the stays say the run would have taken at a level, and that
// level.
func (p *parallel) unstepped(tb testing.TB) (*dvfsmodel.EquivalentRun, int) {
	tb.Helper()
	u, err := dvfsmodel.NewEquivalentRun(p.stays.residencies(), p.took)
	if err != nil {
		tb.Fatal(err)
	}
	return u, levelIndex(p.rule, dvfsmodel.Setting{Core: u.Core})
}

// Whatever kinds of work a job does, one after the other, and whatever the driver
// says of it in its own time: at the clock that stays tell most of it would have
// taken what they say.
func TestStaysBoundWhatARunWouldHaveTakenAtOneClock(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rule := v100(rapid.Float64Range(1.05, 2).Draw(rt, "sla"), 30)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		kinds := make([]kind, rapid.IntRange(1, 3).Draw(rt, "kinds"))
		for i := range kinds {
			kinds[i] = kind{random.Float64(), 40 + 100*random.Float64(), 50 + 150*random.Float64()}
		}
		period := time.Duration(rapid.Int64Range(int64(minPeriod), int64(maxPeriod)).Draw(rt, "period"))
		p := newParallel(rule, period, kinds[0])
		j := &jobLoad{
			random: random, mean: rapid.SampledFrom([]float64{0.3, 2, 15, 60}).Draw(rt, "phase"),
			duty: rapid.Float64Range(0.02, 1).Draw(rt, "duty"),
		}
		for range 3000 {
			before := j.busy
			if j.pass(p.world, rule.TauS); j.busy && !before {
				p.kind = kinds[random.IntN(len(kinds))]
			}
			p.look(time.Duration(random.IntN(40))*time.Millisecond, j.busy)
		}
		u, level := p.unstepped(t)
		const write, watts = 0.04, 340 // while a clock is written it is still another one
		slack := 1e-6
		for _, s := range p.stays.list {
			slack += write * float64(s.Begun)
		}
		for name, c := range map[string]struct {
			dvfsmodel.Estimate
			truth, slack float64
		}{"time": {u.Time, p.time[level], slack}, "energy": {u.Energy, p.joules[level], slack * watts}} {
			if c.truth < c.Low-c.slack || c.truth > c.High+c.slack || c.Guess < c.Low || c.Guess > c.High {
				rt.Fatalf("%s at %v MHz: %+v, truly %v; stays %+v", name, float64(u.Core), c.Estimate,
					c.truth, p.stays.residencies())
			}
		}
	})
}

// What jobs of bursts say of themselves while they are stepped, and what they drew
// at the same clock. The latter is no power of the job at that clock: clocks are
// low while it waits.
func TestARunThatIsSteppedTellsWhatItWouldHaveTakenAtOneClock(t *testing.T) {
	// off: how far the guess may be, or 1: is not to be used.
	for _, c := range []struct{ busy, wait, off float64 }{
		{8, 12, 0.02}, {20, 20, 0.02}, {0.3, 0.7, 0.01}, {2, 30, 0.02}, {60, 20, 0.01}, {300, 300, 1},
	} {
		for _, period := range []time.Duration{minPeriod, maxPeriod} {
			p := newParallel(v100(1.2, 30), period, kind{0.7, 40, 150})
			cycle := time.Duration((c.busy + c.wait) * float64(time.Second))
			for begin := p.now; p.took < 1800; {
				busy := p.now.Sub(begin)%cycle < time.Duration(c.busy*float64(time.Second))
				p.pass(100*time.Millisecond, busy)
				p.look(5*time.Millisecond, busy)
			}
			u, level := p.unstepped(t)
			seen := p.stays.list[level]
			truth := p.joules[level] / p.time[level]
			t.Logf("%3g s of work, %3g of waiting, shown each %.2f s: at %v MHz time off by %+.1f %% "+
				"(doubt %.1f %%), energy %+.1f %% (%.1f %%); the power seen at that clock %+.0f %%",
				c.busy, c.wait, period.Seconds(), float64(u.Core), 100*(u.Time.Guess/p.time[level]-1),
				100*u.Time.RelativeBound(),
				100*(u.Energy.Guess/p.joules[level]-1), 100*u.Energy.RelativeBound(),
				100*(float64(seen.Energy)/seen.Seconds/truth-1))
			off := max(u.Time.Guess/p.time[level]-1, 1-u.Time.Guess/p.time[level],
				u.Energy.Guess/p.joules[level]-1, 1-u.Energy.Guess/p.joules[level])
			if off > c.off || (u.RelativeBound() > 0.1) != (c.off == 1) {
				t.Errorf("%v s of work, %v of waiting: off by %v with a doubt of %v", c.busy, c.wait, off,
					u.RelativeBound())
			}
		}
	}
}
