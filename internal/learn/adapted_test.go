package learn

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/statedir"
)

// steps are the clocks between which the runs of these tests are stepped.
var steps = []dvfsmodel.MHz{1380, 1237, 1102, 945, 802, 705, 600}

// burstsOf returns a job of ten minutes of work, in bursts of some seconds with waiting in
// between.
func burstsOf(truth dvfsmodel.Params, busy, wait float64) gpu.Work {
	return gpu.Work{PID: 7, Mem: 1 << 30, Phases: []gpu.Phase{{Busy: busy, Wait: wait}}, Model: truth}
}

// simulated runs work on a simulated GPU under an agent: at a clock, or stepped if
// the SLA is above 1.
func simulated(t *testing.T, work gpu.Work, core dvfsmodel.MHz, sla float64) (o *record.Outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		library, err := gpu.OpenSim("sim:1,model=V100-2022,bursty=20/0.4", config.BuiltinProfiles().Board, nil)
		if err != nil {
			t.Fatal(err)
		}
		sims, err := library.Sims()
		if err != nil {
			t.Fatal(err)
		}
		a, stop := watching(t, library)
		run := live.Run{
			ID: "r", Job: 1, Node: "n1", GPUs: []string{sims[0].Identity().UUID},
			Setting: dvfsmodel.Setting{Core: core}, Started: time.Now(),
		}
		if sla > 1 {
			run.Adapt = &live.Adaptation{SLA: sla, TauS: 0.1, Writes: 30}
			for i, f := range steps {
				run.Adapt.Levels = append(run.Adapt.Levels, live.AdaptLevel{
					Core: f, Stretch: float64(steps[0] / f), Cost: 1 - 0.1*float64(i),
				})
			}
		}
		if err := sims[0].Run(work); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Apply(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		for ended := 0; ended == 0; {
			<-time.After(100 * time.Millisecond)
			all, err := sims[0].Ended()
			if err != nil {
				t.Fatal(err)
			}
			ended = len(all)
		}
		closed, err := a.End(t.Context(), 1, "n1")
		if err != nil {
			t.Fatal(err)
		}
		stop()
		o = &closed.Outcome
		o.ExitState = record.Completed
	})
	return o
}

// watching returns an agent that watches a machine's GPUs until stop, which waits for it.
func watching(t *testing.T, library gpu.Library) (a *agent.Agent, stop func()) {
	t.Helper()
	folder := func() statedir.FS {
		f, err := statedir.OpenFolder(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	a = agent.New(agent.Options{
		Journal: folder(), Runs: folder(), Library: library, Boot: "boot", Driver: "driver",
	})
	if _, err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	alive := func(context.Context, live.Run) (live.Outlook, error) {
		return live.Outlook{Life: live.LifeAlive}, nil
	}
	go func() {
		defer close(done)
		a.Watch(ctx, agent.WatchHooks{
			Slurm: alive, Processes: alive, OnClosed: func(agent.ClosedRun) {},
			OnProblem: func(err error) { t.Error(err) },
		})
	}()
	return a, func() {
		cancel()
		<-done
	}
}

// What was drawn at a clock is no power of the job there, as clocks are low while it
// waits; what runs are taken for is what runs at one clock take.
func TestModelsOfAdaptedRunsAloneAreThoseOfRunsAtOneClock(t *testing.T) {
	work := burstsOf(dvfsmodel.Params{P0: 40, Gamma: 10, C: 150, D: 300, Delta: 1}, 8, 12)
	slas := []float64{1.05, 1.35, 2}
	stepped, static := make([]dvfsmodel.Sample, 0, len(slas)), make([]dvfsmodel.Sample, 0, len(slas))
	for _, sla := range slas {
		s, why := sampled(simulated(t, work, steps[0], sla), base)
		if why != "" {
			t.Fatalf("SLA %v: %s", sla, why)
		}
		truth, why := sampled(simulated(t, work, s.Core, 0), base)
		time, power := s.Time/truth.Time-1, float64(s.Power/truth.Power)-1
		t.Logf("SLA %v: a sample of %v MHz, time off by %+.2f %%, power by %+.2f %%", sla, float64(s.Core),
			100*time, 100*power)
		if why != "" || math.Abs(time) > 0.01 || math.Abs(power) > 0.02 {
			t.Errorf("SLA %v: %+v, truly %+v; %s", sla, s, truth, why)
		}
		stepped, static = append(stepped, s), append(static, truth)
	}
	mine, _, _, err1 := fitTo(stepped, base, pooled.BuiltinCurves())
	theirs, _, _, err2 := fitTo(static, base, pooled.BuiltinCurves())
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	for _, core := range steps {
		at := dvfsmodel.Point{Core: core, Mem: base.Mem}
		a, b := mine.At(at.Core, at.Mem), theirs.At(at.Core, at.Mem)
		if math.Abs(a.Time/b.Time-1) > 0.02 || math.Abs(float64(a.Power/b.Power)-1) > 0.03 {
			t.Errorf("%v MHz: %v s at %v W, by runs at one clock %v s at %v W", float64(core), a.Time,
				float64(a.Power), b.Time, float64(b.Power))
		}
	}
}

// truth is a workload as it is: work that follows the clock by a part, and
// waiting.
type truth struct {
	work, follows, wait     float64 // seconds at the highest clock; a part; seconds
	watts, clocked, resting float64 // of work: by itself and by the clock; of waiting by the clock
}

func (j *truth) at(core dvfsmodel.MHz) (work float64, busy, waiting float64) {
	f := float64(core / steps[0])
	return j.work * (j.follows/f + 1 - j.follows), j.watts + j.clocked*f*f, 30 + j.resting*f*f
}

// static returns a run at one clock.
func (j *truth) static(core dvfsmodel.MHz) dvfsmodel.Sample {
	work, busy, waiting := j.at(core)
	return dvfsmodel.Sample{
		Core: core, Mem: base.Mem, Time: work + j.wait,
		Power: dvfsmodel.Watt((work*busy + j.wait*waiting) / (work + j.wait)),
	}
}

// stepped returns a run that did a part of its work at a neighbouring clock, and waited
// for the most at the floor. Its time and its power are off by some factors.
func (j *truth) stepped(at int, part, off, watts float64) *record.Outcome {
	o := &record.Outcome{
		ExitState: record.Completed, GPUs: []string{"GPU-a"}, Details: record.Details{Slowdown: live.Known(1.1)},
		Setting: dvfsmodel.Setting{Core: steps[len(steps)-1]},
	}
	seconds, joules := 0.0, 0.0
	for _, c := range []struct {
		level        int
		share, waits float64
		begun        int
	}{{at, 1 - part, 0.1, 30}, {at - 1, part, 0, 4}, {len(steps) - 1, 0, 0.9, 28}} {
		work, busy, waiting := j.at(steps[c.level])
		s := dvfsmodel.ClockResidency{
			Core: steps[c.level], Work: off * c.share * work, Rest: off * c.waits * j.wait, Begun: c.begun,
		}
		s.Seconds = s.Work + s.Rest
		s.RestEnergy = dvfsmodel.Joule(watts * waiting * s.Rest)
		s.Energy = dvfsmodel.Joule(watts*busy*s.Work) + s.RestEnergy
		seconds, joules = seconds+s.Seconds, joules+float64(s.Energy)
		o.Stays = append(o.Stays, s)
		o.Clocks = append(o.Clocks, live.Residency{
			Setting: dvfsmodel.Setting{Core: s.Core, Mem: base.Mem}, Seconds: s.Seconds,
		})
	}
	o.TimeS, o.GPUEnergyJ = live.Known(seconds), live.Known(joules)
	return o
}

// worst returns how far a model is off at most at any clock, in time and in power.
func (j *truth) worst(m *Model) (time, power float64) {
	for _, core := range steps {
		s, pt := j.static(core), m.At(core, base.Mem)
		time, power = max(time, math.Abs(math.Log(pt.Time/s.Time))),
			max(power, math.Abs(math.Log(float64(pt.Power/s.Power))))
	}
	return time, power
}

func TestAnAdaptedRunIsASampleOnlyWhereItsStaysSaySo(t *testing.T) {
	j := &truth{600, 0.7, 300, 60, 100, 20}
	for name, c := range map[string]struct {
		part   float64 // of the work at a second clock
		change func(*record.Outcome)
		why    string
	}{
		"all work at one clock": {},
		"a tenth at another":    {part: 0.1},
		"half at another":       {part: 0.5, why: "at work at several: at 945 MHz"},
		"no residencies": {
			change: func(o *record.Outcome) { o.Stays = nil }, why: "at none of them for nearly all",
		},
		"shared for a while": {
			change: func(o *record.Outcome) { o.TimeS = live.Known(o.TimeS.Or(0) * 1.1) },
			why:    "wasn't alone",
		},
		"impossible": {change: func(o *record.Outcome) { o.Stays[0].Work = -1 }, why: "-1"},
		"above its ceiling": {change: func(o *record.Outcome) {
			o.Clocks = append(o.Clocks, live.Residency{
				Setting: dvfsmodel.Setting{Core: 1530, Mem: 877}, Seconds: 100,
			})
		}, why: "higher clocks"},
	} {
		o := j.stepped(3, c.part, 1, 1)
		if c.change != nil {
			c.change(o)
		}
		s, why := sampled(o, base)
		if !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
			t.Errorf("%s: %q, want %q", name, why, c.why)
		}
		if want := j.static(945); why == "" && (s.Core != 945 || math.Abs(s.Time/want.Time-1) > 0.01 ||
			math.Abs(float64(s.Power/want.Power)-1) > 0.01) {
			t.Errorf("%s: %+v, want %+v", name, s, want)
		}
	}
}

// misses are how far models are off at the clock where they are off most: the mean
// over trials, and in how many it is more than others by more than noise.
type misses struct {
	time, power float64
	worse       int
}

func (e *misses) add(j *truth, m *Model, than [2]float64) [2]float64 {
	time, power := j.worst(m)
	e.time, e.power = e.time+time/trials, e.power+power/trials
	if time > than[0]+noise || power > than[1]+noise {
		e.worse++
	}
	return [2]float64{time, power}
}

const (
	noise  = 0.02 // of the runs of a trial
	trials = 100
)

// Adapted runs teach as much as so many runs at the clock at which they were at
// work.
func TestAdaptedRunsMakeAModelOfOthersNoWorse(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 2))
	const runs = 30
	near := func() float64 { return math.Exp(noise * random.NormFloat64()) }
	fit := func(samples []dvfsmodel.Sample) *Model {
		m, _, _, err := fitTo(samples, base, pooled.BuiltinCurves())
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, clocks := range []int{1, 2, 3, 5, 7} {
		var without, with, static misses
		taught := 0
		for range trials {
			j := &truth{
				600, random.Float64(), 600 * random.Float64(), 40 + 40*random.Float64(),
				50 + 150*random.Float64(), 40 * random.Float64(),
			}
			noisy := func(core dvfsmodel.MHz) dvfsmodel.Sample {
				s := j.static(core)
				s.Time, s.Power = s.Time*near(), s.Power*dvfsmodel.Watt(near())
				return s
			}
			var samples []dvfsmodel.Sample
			for i := range 4 * clocks {
				samples = append(samples, noisy(steps[i/4*(len(steps)-1)/max(1, clocks-1)]))
			}
			before := without.add(j, fit(samples), [2]float64{1, 1})
			level := 1 + random.IntN(len(steps)-2)
			adapted, same := slices.Clone(samples), slices.Clone(samples)
			for range runs {
				s, why := sampled(j.stepped(level, 0.2*random.Float64(), near(), near()), base)
				if same = append(same, noisy(steps[level])); why == "" {
					adapted = append(adapted, s)
				}
			}
			taught += len(adapted) - len(samples)
			with.add(j, fit(adapted), before)
			static.add(j, fit(same), before)
		}
		show := func(e misses) string {
			return fmt.Sprintf("%.1f %% in time, %.1f %% in power", 100*e.time, 100*e.power)
		}
		t.Logf("runs at %d clocks: off by %s; with adapted ones %s, with as many at one more clock %s; "+
			"worse by more than the noise in %d and %d of %d jobs; %.0f %% of the runs taught",
			clocks, show(without), show(with), show(static), with.worse, static.worse, trials,
			100*float64(taught)/trials/runs)
		if with.time > without.time+noise/4 || with.power > without.power+noise/4 ||
			with.worse > static.worse+trials/25 || taught < trials*runs*2/3 {
			t.Errorf("runs at %d clocks: off by %+v, with adapted ones by %+v, with as many others by %+v",
				clocks, without, with, static)
		}
	}
}

// Where clocks are adapted nearly all runs are, and what was learnt at other clocks
// would be out of sight after a window of them.
func TestRunsAtOneClockAreNotForgottenWhileClocksAreAdapted(t *testing.T) {
	l, records := onStore(t)
	key := keyOf("train")
	n := 0
	put := func(seconds float64, core dvfsmodel.MHz, stepped bool) {
		n++
		o := &record.Outcome{
			Cluster: key.Cluster, RunID: fmt.Sprint("more-", n), Workload: key.Workload,
			GPUModel: key.GPUModel, Arm: live.ArmTreated, GPUs: []string{"GPU-a"},
			ExitState: record.Completed, TimeS: live.Known(seconds), GPUEnergyJ: live.Known(150 * seconds),
			Setting: dvfsmodel.Setting{Core: core}, Utilisation: live.Known(0.9),
		}
		if stepped {
			o.Slowdown = live.Known(1.1)
			for _, f := range steps {
				o.Clocks = append(o.Clocks, live.Residency{
					Setting: dvfsmodel.Setting{Core: f, Mem: 877}, Seconds: 100,
				})
			}
		}
		if _, err := records.PutOutcome(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	seen := func() *evidence {
		e, err := l.evidenceOf(t.Context(), key, base)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	put(600, 0, false)
	for _, core := range []dvfsmodel.MHz{802, 945, 1087, 1380} {
		put(600*1380/float64(core), core, false)
	}
	for range fitWindow {
		put(700, 802, true)
	}
	put(600, 0, false)
	if e := seen(); len(e.recent) != 1 || len(e.older) != 5 || !hasSeveralSettings(e.samples()) {
		t.Errorf("%+v", e)
	}
	put(1200, 0, false) // twice as much work now
	if e := seen(); len(e.recent) != 2 || len(e.older) != 0 {
		t.Errorf("after a run that took twice as long: %+v", e)
	}
	for range lookBack * fitWindow {
		put(700, 802, true)
	}
	if e := seen(); len(e.samples()) != 0 || e.measured || e.usage != 0 {
		t.Errorf("after very many adapted runs: %+v", e)
	}
}
