package agent_test

import (
	"maps"
	"math"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// sampled feeds a sampler one reading per second of a GPU.
func sampled(n int, at func(i int) gpu.Reading) (record.Outcome, agent.GPUFigures) {
	s := agent.NewSampler(live.Run{GPUs: []string{"GPU-1"}, Started: noon})
	for i := range n {
		r := at(i)
		r.At = noon.Add(time.Duration(i) * time.Second)
		s.Add("GPU-1", r)
		s.Add("GPU-2", r) // not the run's
	}
	return s.Close(noon.Add(time.Duration(n) * time.Second)), s.Figures()[0]
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func TestASteadyGPUGivesExactFigures(t *testing.T) {
	got, figures := sampled(101, func(i int) gpu.Reading {
		return gpu.Reading{
			Power: 200, Energy: dvfsmodel.Joule(1000 + 200*i), Core: 1400, Mem: 5000,
			Utilisation: 0.5, MemUsed: int64(i), Throttle: gpu.ThrottlePowerCap | gpu.ThrottleLocked,
		}
	})
	if got.GPUEnergyJ != live.Known(20000) || got.GPUSource != record.Counter || figures.Integrated != 20000 ||
		figures.Samples != 101 || figures.Covered != 100 {
		t.Errorf("energy: %+v, %+v", got, figures)
	}
	if got.MeanPowerW != live.Known(200) || got.PeakPowerW != live.Known(200) ||
		!near(got.Utilisation.Or(-1), 0.5) || got.PeakMemoryBytes != live.Known(100) {
		t.Errorf("means and peaks: %+v", got)
	}
	if !maps.Equal(got.ThrottledS, map[string]float64{"power-cap": 100}) {
		t.Errorf("throttling: %+v", got)
	}
	if len(got.Clocks) != 1 ||
		got.Clocks[0] != (live.Residency{Setting: dvfsmodel.Setting{Core: 1400, Mem: 5000}, Seconds: 100}) {
		t.Errorf("clocks: %+v", got.Clocks)
	}
	if series := &got.Series; series.Interval() != time.Minute || series.Len() != 2 ||
		series.At(0) != live.Known(0.5) || series.At(1) != live.Known(0.5) {
		t.Errorf("series: %+v", series)
	}
}

func TestEnergyIsTakenFromWhatCanBeBelieved(t *testing.T) {
	nan := dvfsmodel.Joule(math.NaN())
	for name, c := range map[string]struct {
		samples int
		power   dvfsmodel.Watt
		counter func(i int) dvfsmodel.Joule
		want    dvfsmodel.Joule
		from    gpu.EnergySource
	}{
		"agreement": {21, 100, func(i int) dvfsmodel.Joule {
			return dvfsmodel.Joule(101 * i)
		}, 2020, gpu.FromCounter},
		"no counter": {21, 100, func(int) dvfsmodel.Joule { return nan }, 2000, gpu.FromPower},
		"a counter in other units": {21, 100, func(i int) dvfsmodel.Joule {
			return dvfsmodel.Joule(i) / 10
		}, 2000, gpu.FromPower},
		"a counter that is reset": {21, 100, func(i int) dvfsmodel.Joule {
			return dvfsmodel.Joule(100 * (i % 11))
		}, 2000, gpu.FromBoth},
		"few samples": {3, 100, func(i int) dvfsmodel.Joule {
			return dvfsmodel.Joule(200 * i)
		}, 400, gpu.FromCounter},
		"no power": {21, dvfsmodel.Watt(math.NaN()), func(i int) dvfsmodel.Joule {
			return dvfsmodel.Joule(50 * i)
		}, 1000, gpu.FromCounter},
		"nothing":    {21, -1, func(int) dvfsmodel.Joule { return -1 }, -1, gpu.FromNoMeasures},
		"one sample": {1, 100, func(int) dvfsmodel.Joule { return 5 }, -1, gpu.FromNoMeasures},
	} {
		t.Run(name, func(t *testing.T) {
			got, figures := sampled(c.samples, func(i int) gpu.Reading {
				return gpu.Reading{Power: c.power, Energy: c.counter(i), Utilisation: math.NaN(), Core: -1}
			})
			if !near(got.GPUEnergyJ.Or(-1), float64(c.want)) || figures.Source != c.from {
				t.Errorf("%s J from %s, want %v from %s", got.GPUEnergyJ, figures.Source, float64(c.want), c.from)
			}
			if _, known := got.PeakPowerW.Get(); known != (c.power >= 0 && c.want >= 0) {
				t.Errorf("the highest of powers of %v W: %s", float64(c.power), got.PeakPowerW)
			}
			if got.Utilisation != (live.Number{}) || len(got.Clocks) != 0 || got.Series.Len() != 0 {
				t.Errorf("made up: %+v", got)
			}
		})
	}
}

func TestTheSeriesIsTheMeanOfTheRunsGPUs(t *testing.T) {
	s := agent.NewSampler(live.Run{GPUs: []string{"GPU-1", "GPU-2"}, Started: noon})
	for i, u := range []float64{0, 1, 0.5, math.NaN(), 0.8} {
		at := noon.Add(time.Duration(i) * time.Minute)
		s.Add("GPU-1", gpu.Reading{At: at, Utilisation: u})
		if i < 4 {
			s.Add("GPU-2", gpu.Reading{At: at, Utilisation: u / 2})
		}
	}
	got := s.Close(noon.Add(5 * time.Minute)).Series
	want := []live.Number{live.Known(0.75), live.Known(0.375), {}, live.Known(0.8)}
	if got.Len() != len(want) {
		t.Fatalf("%d points, want %d", got.Len(), len(want))
	}
	for i := range want {
		if math.Abs(got.At(i).Or(-1)-want[i].Or(-1)) > 0.0026 {
			t.Errorf("point %d is %s, want %s", i, got.At(i), want[i])
		}
	}
}

func TestAnEnergyThatIsKnownForPartOfTheTimeSaysSo(t *testing.T) {
	_, got := sampled(101, func(i int) gpu.Reading {
		r := gpu.Reading{Power: 200, Energy: -1}
		if i > 50 {
			r.Power = -1
		}
		return r
	})
	if got.Joules != 10000 || got.Uncovered != 50*time.Second || got.Mean() != 200 || got.Peak != 200 {
		t.Errorf("%+v", got)
	}
}

func TestTheClocksSeenAreBounded(t *testing.T) {
	got, _ := sampled(2000, func(i int) gpu.Reading {
		return gpu.Reading{Power: 1, Core: dvfsmodel.MHz(i % 1000), Mem: 5000}
	})
	sum := 0.0
	for _, c := range got.Clocks {
		sum += c.Seconds
	}
	if len(got.Clocks) != 256 || sum != 2*256 {
		t.Errorf("%d clocks over %v s", len(got.Clocks), sum)
	}
}

func TestReadingsThatArentLaterAreIgnored(t *testing.T) {
	s := agent.NewSampler(live.Run{GPUs: []string{"GPU-1"}, Started: noon})
	for _, d := range []time.Duration{
		0, 10 * time.Second, 10 * time.Second, 5 * time.Second,
		20 * time.Second,
	} {
		s.Add("GPU-1", gpu.Reading{At: noon.Add(d), Power: 10, Energy: -1})
	}
	if got := s.Figures()[0]; got.Covered != 20 || got.Joules != 200 || got.Samples != 3 {
		t.Errorf("%+v", got)
	}
}

func TestThePowerLimitIsTheOneThatWasLongestInForce(t *testing.T) {
	limits := func(i int) gpu.Reading {
		r := gpu.Reading{Power: 100, Energy: -1, Core: 1400, Mem: 5000, Limit: 250}
		switch {
		case i == 0: // before it is set
			r.Limit = 300
		case i > 90:
			r.Limit = 180
		}
		return r
	}
	if got, _ := sampled(101, limits); got.CapW != live.Known(250) || !near(got.OtherCapsS.Or(0), 10) {
		t.Errorf("limit %s, others for %s s", got.CapW, got.OtherCapsS)
	}
	if got, _ := sampled(91, limits); got.CapW != live.Known(250) || got.OtherCapsS != (live.Number{}) {
		t.Errorf("limit %s, others for %s s: a first reading says nothing of the time before", got.CapW,
			got.OtherCapsS)
	}
	for name, limit := range map[string]func(i int) dvfsmodel.Watt{
		"unread": func(int) dvfsmodel.Watt { return dvfsmodel.Watt(math.NaN()) },
		"none":   func(int) dvfsmodel.Watt { return 0 },
	} {
		got, _ := sampled(101, func(i int) gpu.Reading { return gpu.Reading{Power: 100, Limit: limit(i)} })
		if got.CapW != (live.Number{}) || got.OtherCapsS != (live.Number{}) {
			t.Errorf("%s: limit %s, others for %s s", name, got.CapW, got.OtherCapsS)
		}
	}
	many, _ := sampled(101, func(i int) gpu.Reading {
		return gpu.Reading{Power: 100, Limit: dvfsmodel.Watt(100 + i)}
	})
	if many.CapW.Or(0) == 0 || !near(many.OtherCapsS.Or(0), 99) {
		t.Errorf("limit %s, others for %s s of 100", many.CapW, many.OtherCapsS)
	}
}
