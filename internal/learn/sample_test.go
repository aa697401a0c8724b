package learn

import (
	"math"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// sampleOf returns what an outcome says of its workload; false: nothing.
func sampleOf(o *record.Outcome, base dvfsmodel.Setting) (dvfsmodel.Sample, bool) {
	s, why := sampled(o, base)
	return s, why == ""
}

func TestOnlyCompletedUnthrottledRunsAreSamples(t *testing.T) {
	good := func() *record.Outcome {
		return &record.Outcome{
			ExitState: record.Completed, TimeS: live.Known(100), MeanPowerW: live.Known(200),
			Setting: dvfsmodel.Setting{Core: 945},
		}
	}
	if s, ok := sampleOf(good(), base); !ok ||
		s != (dvfsmodel.Sample{Core: 945, Mem: 877, Time: 100, Power: 200}) {
		t.Errorf("a good run: %+v, %t", s, ok)
	}
	under := good()
	under.Workload, under.Setting.Profile = record.UnderProfile("w", dvfsmodel.MaxQ), dvfsmodel.MaxQ
	if _, ok := sampleOf(under, base); !ok {
		t.Error("a run under the profile of its workload is no sample")
	}
	for name, change := range map[string]func(*record.Outcome){
		"failed":          func(o *record.Outcome) { o.ExitState = "FAILED" },
		"unmatched":       func(o *record.Outcome) { o.Unmatched = true },
		"no time":         func(o *record.Outcome) { o.TimeS = live.Number{} },
		"zero time":       func(o *record.Outcome) { o.TimeS = live.Known(0) },
		"no power":        func(o *record.Outcome) { o.MeanPowerW = live.Number{} },
		"negative":        func(o *record.Outcome) { o.MeanPowerW = live.Known(-1) },
		"throttled":       func(o *record.Outcome) { o.ThrottledS = map[string]float64{"thermal": 20} },
		"no clock":        func(o *record.Outcome) { o.Setting.Core = -5 },
		"no profile":      func(o *record.Outcome) { o.Workload = "w@Max-Q" },
		"another profile": func(o *record.Outcome) { o.Setting.Profile = dvfsmodel.MaxQ },
		"another power limit meanwhile": func(o *record.Outcome) {
			o.CapW, o.OtherCapsS = live.Known(250), live.Known(5)
		},
	} {
		o := good()
		change(o)
		if s, ok := sampleOf(o, base); ok {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// A power cap, a temperature or a step's own clocks kept a run from the clock that was set:
// it is a sample of the one at which it did its work, if that was one.
func TestARunIsASampleOfTheClockThatRan(t *testing.T) {
	capped := map[string]float64{"power-cap": 99}
	for name, c := range map[string]struct {
		set, mean, spread float64
		throttled         map[string]float64
		core              dvfsmodel.MHz
		why               string
	}{
		"as set":                        {945, 945, 0, nil, 945, ""},
		"a step of the table below":     {945, 930, 4, nil, 945, ""},
		"some steps below":              {945, 876, 10, nil, 870, ""},
		"capped":                        {1380, 1195, 20, capped, 1200, ""},
		"capped, and not steady":        {1380, 1195, 200, capped, 0, "throttled"},
		"above it all the time":         {945, 1201, 10, nil, 1200, ""},
		"above it for some of the time": {945, 1000, 200, nil, 0, "higher clocks"},
		"default, as it runs by itself": {0, 1300, 10, nil, 1380, ""},
		"default, and capped":           {0, 1195, 20, capped, 1200, ""},
		"default, capped, not steady":   {0, 1195, 100, capped, 0, "throttled"},
	} {
		o := &record.Outcome{
			ExitState: record.Completed, TimeS: live.Known(100), MeanPowerW: live.Known(200),
			Setting: dvfsmodel.Setting{Core: dvfsmodel.MHz(c.set)}, ThrottledS: c.throttled,
			Details: record.Details{
				WorkClock: record.WorkClock{CoreMHz: live.Known(c.mean), SpreadMHz: live.Known(c.spread)},
			},
			Clocks: []live.Residency{
				{Setting: dvfsmodel.Setting{Core: dvfsmodel.MHz(c.mean + c.spread), Mem: 877}, Seconds: 50},
				{Setting: dvfsmodel.Setting{Core: dvfsmodel.MHz(c.mean - c.spread), Mem: 877}, Seconds: 50},
			},
		}
		s, why := sampled(o, base)
		if !strings.Contains(why, c.why) || (why == "") != (c.why == "") || why == "" && s.Core != c.core {
			t.Errorf("%s: at %v MHz, %q; want %v, %q", name, float64(s.Core), why, float64(c.core), c.why)
		}
	}
}

func TestARunWhoseClockWasAdaptedIsNoSampleOfOneClock(t *testing.T) {
	o := &record.Outcome{
		ExitState: record.Completed, TimeS: live.Known(100), MeanPowerW: live.Known(150),
		Utilisation: live.Known(0.5),
		Setting:     dvfsmodel.Setting{Core: 690},
		Clocks: []live.Residency{
			{Setting: dvfsmodel.Setting{Core: 690, Mem: 877}, Seconds: 99},
			{Setting: dvfsmodel.Setting{Core: 1380, Mem: 877}, Seconds: 1},
		},
	}
	if s, ok := sampleOf(o, base); !ok || s.Core != 690 {
		t.Errorf("nearly always at its lowest clock: %+v, %v", s, ok)
	}
	// Half of 100 s: 25 s at default clocks at least, beside 50 s of waiting.
	if got := usageOf(o, base); math.Abs(got-1.0/3) > 1e-9 {
		t.Errorf("at work for %v of the time at default clocks", got)
	}
	o.Clocks[1].Seconds = 10
	if _, ok := sampleOf(o, base); ok {
		t.Error("a tenth of the time at a higher clock")
	}
	o.Setting.Core = 0
	if _, ok := sampleOf(o, base); !ok {
		t.Error("at default clocks")
	}
}

// Clocks are lowered while a job waits: what it did at one of them says nothing of
// how long all of it would take there.
func TestAnAdaptedRunIsASampleOfTheClockThatItNearlyAlwaysHad(t *testing.T) {
	for name, c := range map[string]struct {
		lowest, higher, ceiling float64 // seconds
		core                    dvfsmodel.MHz
		why                     string
	}{
		"one clock":               {ceiling: 100, core: 1380},
		"but for a moment":        {lowest: 1, ceiling: 99, core: 1380},
		"between":                 {lowest: 0.5, higher: 99, ceiling: 0.5, core: 945},
		"for too long":            {lowest: 5, ceiling: 95, why: "adapted"},
		"as often":                {lowest: 50, ceiling: 50, why: "adapted"},
		"most at its lowest":      {lowest: 99, ceiling: 1, core: 690},
		"no clock could be read":  {core: 690},
		"too long at its ceiling": {lowest: 95, ceiling: 5, why: "adapted"},
	} {
		o := &record.Outcome{
			ExitState: record.Completed, TimeS: live.Known(100), MeanPowerW: live.Known(150),
			Setting: dvfsmodel.Setting{Core: 690}, Details: record.Details{Slowdown: live.Known(1.1)},
		}
		for core, seconds := range map[dvfsmodel.MHz]float64{690: c.lowest, 945: c.higher, 1380: c.ceiling} {
			share := live.Residency{Setting: dvfsmodel.Setting{Core: core, Mem: 877}, Seconds: seconds}
			o.Clocks = append(o.Clocks, share, share, share) // of three GPUs
		}
		s, why := sampled(o, base)
		if !strings.Contains(why, c.why) || (why == "") != (c.why == "") || why == "" && s.Core != c.core {
			t.Errorf("%s: at %v MHz, %q; want %v, %q", name, float64(s.Core), why, float64(c.core), c.why)
		}
	}
}

// A run that its power limit held down says something of its workload under that limit alone.
func TestRunsThatAnotherPowerLimitHeldDownAreNotMixed(t *testing.T) {
	run := func(limit, held float64) record.Outcome {
		return record.Outcome{
			ExitState: record.Completed, TimeS: live.Known(100), MeanPowerW: live.Known(200),
			Details: record.Details{CapW: live.Known(limit)}, ThrottledS: map[string]float64{powerCapped: held},
		}
	}
	own := run(150, 0)
	own.Setting.Cap = 150
	unknown := run(0, 5)
	unknown.CapW = live.Number{}
	outcomes := []record.Outcome{own, run(250, 5), run(300, 5), run(300, 1), unknown, run(250.5, 5)}
	today := limitOfToday(outcomes)
	if today != 250 {
		t.Fatalf("today's limit %v, want that of the newest run whose limit wasn't epd's", today)
	}
	e := &evidence{usage: 1}
	if got, _ := e.samplesOf(outcomes, base, today); len(got) != len(outcomes)-1 {
		t.Errorf("%d samples of %d runs, one of which another limit held down", len(got), len(outcomes))
	}
	if why := checkLimit(&outcomes[2], today); why != "a power limit of 300 W held it down, today it is 250 W" {
		t.Errorf("%q", why)
	}
	if today := limitOfToday(outcomes[:1]); today != 0 || checkLimit(&outcomes[2], today) != "" {
		t.Errorf("where no limit is known, today's is %v", today)
	}
}

// A run that its power limit held at one clock is one of that clock, whatever was set.
func TestARunThatAPowerLimitHeldAtOneClockIsASampleOfIt(t *testing.T) {
	run := func(set dvfsmodel.Setting, at ...float64) *record.Outcome {
		o := &record.Outcome{
			ExitState: record.Completed, TimeS: live.Known(100), MeanPowerW: live.Known(150), Setting: set,
			Details: record.Details{CapW: live.Known(150)}, ThrottledS: map[string]float64{powerCapped: 99},
		}
		for i, s := range at {
			clock := dvfsmodel.Setting{Core: []dvfsmodel.MHz{1087, 1380}[i], Mem: 877}
			o.Clocks = append(o.Clocks, live.Residency{Setting: clock, Seconds: s})
		}
		if len(at) > 0 {
			mean, spread := 1087., 2.
			if len(at) > 1 && at[1] > 1 {
				mean, spread = 1200, 143
			}
			o.WorkClock = record.WorkClock{CoreMHz: live.Known(mean), SpreadMHz: live.Known(spread)}
		}
		return o
	}
	untold := func(o *record.Outcome) *record.Outcome {
		o.WorkClock = record.WorkClock{}
		return o
	}
	for name, c := range map[string]struct {
		o    *record.Outcome
		want dvfsmodel.MHz // 0: no sample
	}{
		"by epd's limit":                        {run(dvfsmodel.Setting{Cap: 150}, 99, 1), 1080},
		"below a lock":                          {run(dvfsmodel.Setting{Core: 1237, Cap: 150}, 100), 1080},
		"by anybody's":                          {run(dvfsmodel.Setting{}, 99, 1), 1080},
		"by an agent that doesn't tell of work": {untold(run(dvfsmodel.Setting{}, 99, 1)), 1087},
		"the same, at several clocks":           {untold(run(dvfsmodel.Setting{}, 60, 40)), 0},
		"at several clocks":                     {run(dvfsmodel.Setting{Cap: 150}, 60, 40), 0},
		"at clocks nobody knows":                {run(dvfsmodel.Setting{Cap: 150}), 0},
	} {
		if s, ok := sampleOf(c.o, base); ok != (c.want > 0) || ok && (s.Core != c.want || s.Time != 100) {
			t.Errorf("%s: %+v, %v, want %v MHz", name, s, ok, float64(c.want))
		}
	}
	// Half of 100 s: 39.4 s at default clocks at least, beside 50 s of waiting.
	waits := run(dvfsmodel.Setting{Cap: 150}, 100)
	waits.Utilisation = live.Known(0.5)
	if got, want := usageOf(waits, base), 1080/(1080+1380.0); math.Abs(got-want) > 1e-9 {
		t.Errorf("at work for %v of the time at default clocks, want %v", got, want)
	}
	brief := run(dvfsmodel.Setting{}, 0, 95)
	brief.ThrottledS[powerCapped] = 5
	if s, ok := sampleOf(brief, base); !ok || s.Core != base.Core {
		t.Errorf("hardly held down: %+v, %v", s, ok)
	}
}
