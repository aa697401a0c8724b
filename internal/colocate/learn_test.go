package colocate_test

import (
	"math"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/internal/store/record"
)

func TestRunsThatAgreeMakeAProfileWithNarrowIntervals(t *testing.T) {
	runs := make([]colocate.SoloRun, 0, colocate.MaxRuns+1)
	for i := range 4 {
		u := 0.01 * float64(i)
		runs = append(runs, colocate.SoloRun{
			TimeS: 64 + float64(i), Slowdown: 1,
			Profile: recorded(64+i, 2+float64(i)/10, func(s int) float64 {
				return square(true)(min(s, 63)) + u
			}),
		})
	}
	p := colocate.Learn(runs, &rules)
	if p.Unknown != "" || p.Runs != 4 || len(p.Mean) != colocate.Slots || len(p.Low) != colocate.Slots ||
		len(p.High) != colocate.Slots {
		t.Fatalf("%+v", p)
	}
	near(t, "the utilisation at first", p.Mean[3], 0.915, 1e-2)
	near(t, "the utilisation at last", p.Mean[60], 0.065, 1e-2)
	near(t, "the run time", p.TimeS.Mean, 65.5, 1e-9)
	// t(0.95, 3) = 2.3534, s = 1.29099, sqrt(1+1/4) = 1.11803: 3.39683.
	near(t, "its upper end", p.TimeS.High.Or(0), 65.5+3.39683, 1e-4)
	near(t, "its lower end", p.TimeS.Low.Or(0), 65.5-3.39683, 1e-4)
	near(t, "the peak of memory", p.PeakMem.Mean/(1<<30), 2.15, 1e-6)
	if high := p.PeakMem.High.Or(0) / (1 << 30); !(high > 2.3 && high < 2.6) || p.MemTotal != 16<<30 {
		t.Errorf("memory up to %v GB of %d", high, p.MemTotal)
	}
	if len(p.Phases) != 2 || p.Phases[0].From != 0 || p.Phases[1].To != 1 {
		t.Errorf("phases %+v", p.Phases)
	}
	near(t, "the first phase's end", p.Phases[0].To, 0.5, 0.05)
	for i := range p.Mean {
		if !(p.Low[i] <= p.Mean[i] && p.Mean[i] <= p.High[i] && p.Low[i] >= 0 && p.High[i] <= 1) {
			t.Errorf("slot %d: %v in [%v, %v]", i, p.Mean[i], p.Low[i], p.High[i])
		}
	}
}

func TestAProfileThatRestsOnTooLittleIsUnknown(t *testing.T) {
	good := func() colocate.SoloRun {
		return colocate.SoloRun{TimeS: 64, Slowdown: 1, Profile: recorded(64, 2, square(true))}
	}
	with := func(change func(*colocate.SoloRun)) []colocate.SoloRun {
		odd := good()
		change(&odd)
		return []colocate.SoloRun{good(), good(), odd}
	}
	for name, c := range map[string]struct {
		runs []colocate.SoloRun
		why  string
	}{
		"no run":   {nil, "no run"},
		"two runs": {[]colocate.SoloRun{good(), good()}, "2 of 3 runs"},
		"another shape": {
			with(func(r *colocate.SoloRun) { r.Profile = recorded(64, 2, square(false)) }),
			"utilisation to within",
		},
		"another run time": {with(func(r *colocate.SoloRun) {
			r.TimeS, r.Profile = 128, recorded(128, 2, func(s int) float64 { return square(true)(s / 2) })
		}), "run time to within"},
		"no memory": {
			with(func(r *colocate.SoloRun) { r.Profile.GPUs[0].PeakMem = -1 }), "memory wasn't measured",
		},
		"hardly sampled": {
			with(func(r *colocate.SoloRun) { r.Profile = recorded(30, 2, square(true)) }), "2 of 3 runs",
		},
		"without series": {
			with(func(r *colocate.SoloRun) { r.Profile.GPUs[0].Utilisation = record.Series{} }), "2 of 3 runs",
		},
		"without a profile": {with(func(r *colocate.SoloRun) { r.Profile = nil }), "2 of 3 runs"},
		"without GPUs":      {with(func(r *colocate.SoloRun) { r.Profile.GPUs = nil }), "2 of 3 runs"},
		"no run time":       {with(func(r *colocate.SoloRun) { r.TimeS = math.NaN() }), "2 of 3 runs"},
	} {
		if p := colocate.Learn(c.runs, &rules); !strings.Contains(p.Unknown, c.why) {
			t.Errorf("%s: %q, want %q", name, p.Unknown, c.why)
		}
	}
	if p := colocate.Learn([]colocate.SoloRun{good(), good(), good()}, &rules); p.Unknown != "" {
		t.Errorf("three alike: %q", p.Unknown)
	}
}

func TestRunsAtLowerClocksCountByTheirTimeAtDefaultClocks(t *testing.T) {
	runs := make([]colocate.SoloRun, 0, colocate.MaxRuns+1)
	for i := range 4 {
		slowdown := 1 + float64(i)/4
		seconds := int(64 * slowdown)
		runs = append(runs, colocate.SoloRun{
			TimeS: float64(seconds), Slowdown: slowdown, Profile: recorded(seconds, 2, func(s int) float64 {
				return square(true)(int(float64(s) / slowdown))
			}),
		})
	}
	p := colocate.Learn(runs, &rules)
	if p.Unknown != "" {
		t.Fatal(p.Unknown)
	}
	near(t, "the run time", p.TimeS.Mean, 64, 1e-9)
	near(t, "the utilisation at first", p.Mean[20], 0.9, 1e-2)
}

func TestOnlyTheLastRunsCountAndEveryGPUOfARun(t *testing.T) {
	runs := make([]colocate.SoloRun, 0, colocate.MaxRuns+1)
	for range colocate.MaxRuns {
		r := colocate.SoloRun{TimeS: 64, Slowdown: 1, Profile: recorded(64, 2, func(int) float64 { return 1 })}
		r.Profile.GPUs = append(r.Profile.GPUs, recorded(64, 5, func(int) float64 { return 0 }).GPUs...)
		runs = append(runs, r)
	}
	runs = append(runs, colocate.SoloRun{
		TimeS: 640, Slowdown: 1, Profile: recorded(640, 9, func(int) float64 { return 0 }),
	})
	p := colocate.Learn(runs, &rules)
	if p.Runs != colocate.MaxRuns || p.Unknown != "" {
		t.Fatalf("%+v", p)
	}
	near(t, "the mean over GPUs", p.Mean[0], 0.5, 1e-9)
	near(t, "the memory of the GPU that uses most", p.PeakMem.Mean/(1<<30), 5, 1e-9)
	if len(p.Phases) != 1 || p.Phases[0] != (colocate.Phase{From: 0, To: 1, Utilisation: 0.5}) {
		t.Errorf("a series that doesn't vary has phases %+v", p.Phases)
	}
}
