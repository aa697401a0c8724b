package agent_test

import (
	"math"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/live"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// sampled feeds a sampler one reading per second of a GPU.
func sampled(n int, at func(i int) gpu.Reading) agent.Outcome {
	s := agent.NewSampler(live.Run{GPUs: []string{"GPU-1"}, Started: noon})
	for i := range n {
		r := at(i)
		r.At = noon.Add(time.Duration(i) * time.Second)
		s.Add("GPU-1", r)
		s.Add("GPU-2", r) // not the run's
	}
	return s.Close(noon.Add(time.Duration(n) * time.Second))
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func TestASteadyGPUGivesExactFigures(t *testing.T) {
	outcome := sampled(101, func(i int) gpu.Reading {
		return gpu.Reading{
			Power: 200, Energy: dvfsmodel.Joule(1000 + 200*i), Core: 1400, Mem: 5000,
			Utilisation: 0.5, MemUsed: int64(i), Throttle: gpu.ThrottlePowerCap | gpu.ThrottleLocked,
		}
	})
	got := outcome.GPUs[0]
	if got.Energy != 20000 || got.EnergyFrom != gpu.FromCounter || got.Integrated != 20000 ||
		got.Samples != 101 || got.Covered != 100 {
		t.Errorf("energy: %+v", got)
	}
	if got.MeanPower != 200 || got.PeakPower != 200 || !near(got.Utilisation, 0.5) || got.PeakMem != 100 {
		t.Errorf("means and peaks: %+v", got)
	}
	if got.Throttled != 100 || got.PowerCapped != 100 || got.Thermal != 0 {
		t.Errorf("throttling: %+v", got)
	}
	if len(got.Clocks) != 1 ||
		got.Clocks[0] != (live.Residency{Setting: dvfsmodel.Setting{Core: 1400, Mem: 5000}, Seconds: 100}) {
		t.Errorf("clocks: %+v", got.Clocks)
	}
	if series := &outcome.Series; series.Interval() != time.Minute || series.Len() != 2 ||
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
			outcome := sampled(c.samples, func(i int) gpu.Reading {
				return gpu.Reading{Power: c.power, Energy: c.counter(i), Utilisation: math.NaN(), Core: -1}
			})
			got := outcome.GPUs[0]
			if !near(float64(got.Energy), float64(c.want)) || got.EnergyFrom != c.from {
				t.Errorf("%v J from %s, want %v from %s", float64(got.Energy), got.EnergyFrom,
					float64(c.want), c.from)
			}
			if got.Utilisation != -1 || len(got.Clocks) != 0 || outcome.Series.Len() != 0 {
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
	got := sampled(101, func(i int) gpu.Reading {
		r := gpu.Reading{Power: 200, Energy: -1}
		if i > 50 {
			r.Power = -1
		}
		return r
	}).GPUs[0]
	if got.Energy != 10000 || got.Uncovered != 50 || got.MeanPower != 200 || got.PeakPower != 200 {
		t.Errorf("%+v", got)
	}
}

func TestTheClocksSeenAreBounded(t *testing.T) {
	got := sampled(2000, func(i int) gpu.Reading {
		return gpu.Reading{Power: 1, Core: dvfsmodel.MHz(i), Mem: 5000}
	}).GPUs[0]
	sum := got.OtherClocks
	for _, c := range got.Clocks {
		sum += c.Seconds
	}
	if len(got.Clocks) > 256 || sum != 1999 {
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
	s.Miss("GPU-1")
	if got := s.Close(noon).GPUs[0]; got.Covered != 20 || got.Energy != 200 || got.Missed != 1 {
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
	if got := sampled(101, limits).GPUs[0]; got.Limit != 250 || !near(got.OtherLimits, 10) {
		t.Errorf("limit %v, others for %v s", got.Limit, got.OtherLimits)
	}
	if got := sampled(91, limits).GPUs[0]; got.Limit != 250 || got.OtherLimits != 0 {
		t.Errorf("limit %v, others for %v s: a first reading says nothing of the time before", got.Limit,
			got.OtherLimits)
	}
	for name, limit := range map[string]func(i int) dvfsmodel.Watt{
		"unread": func(int) dvfsmodel.Watt { return dvfsmodel.Watt(math.NaN()) },
		"none":   func(int) dvfsmodel.Watt { return 0 },
	} {
		got := sampled(101, func(i int) gpu.Reading { return gpu.Reading{Power: 100, Limit: limit(i)} }).GPUs[0]
		if got.Limit != 0 || got.OtherLimits != 0 {
			t.Errorf("%s: limit %v, others for %v s", name, got.Limit, got.OtherLimits)
		}
	}
	many := sampled(101, func(i int) gpu.Reading {
		return gpu.Reading{Power: 100, Limit: dvfsmodel.Watt(100 + i)}
	})
	if got := many.GPUs[0]; got.Limit == 0 || !near(got.OtherLimits, 99) {
		t.Errorf("limit %v, others for %v s of 100", got.Limit, got.OtherLimits)
	}
}
