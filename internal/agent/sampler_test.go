package agent_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/gpu"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// sampled feeds a sampler one reading per second of a GPU.
func sampled(n int, at func(i int) gpu.Reading) agent.GPUOutcome {
	s := agent.NewSampler(agent.Run{GPUs: []string{"GPU-1"}, Started: noon})
	for i := range n {
		r := at(i)
		r.At = noon.Add(time.Duration(i) * time.Second)
		s.Add("GPU-1", r)
		s.Add("GPU-2", r) // not the run's
	}
	return s.Close(noon.Add(time.Duration(n) * time.Second)).GPUs[0]
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func TestASteadyGPUGivesExactFigures(t *testing.T) {
	got := sampled(101, func(i int) gpu.Reading {
		return gpu.Reading{
			Power: 200, Energy: dvfsmodel.Joule(1000 + 200*i), Core: 1400, Mem: 5000,
			Utilisation: 0.5, MemUsed: int64(i), Throttle: gpu.ThrottlePowerCap | gpu.ThrottleLocked,
		}
	})
	if got.Energy != 20000 || got.EnergyFrom != agent.SourceCounter || got.Integrated != 20000 || got.Samples != 101 || got.Covered != 100 {
		t.Errorf("energy: %+v", got)
	}
	if got.MeanPower != 200 || got.PeakPower != 200 || !near(got.Utilisation, 0.5) || got.PeakMem != 100 {
		t.Errorf("means and peaks: %+v", got)
	}
	if got.Throttled != 100 || got.PowerCapped != 100 || got.Thermal != 0 {
		t.Errorf("throttling: %+v", got)
	}
	if len(got.Clocks) != 1 || got.Clocks[0] != (agent.ClockTime{Core: 1400, Mem: 5000, Seconds: 100}) {
		t.Errorf("clocks: %+v", got.Clocks)
	}
	if v := got.Series.Values; got.Series.Step != 60 || len(v) != 2 || !near(v[0], 0.5) || !near(v[1], 0.5) {
		t.Errorf("series: %+v", got.Series)
	}
}

func TestEnergyIsTakenFromWhatCanBeBelieved(t *testing.T) {
	nan := dvfsmodel.Joule(math.NaN())
	for name, c := range map[string]struct {
		samples int
		power   dvfsmodel.Watt
		counter func(i int) dvfsmodel.Joule
		want    dvfsmodel.Joule
		from    agent.Source
	}{
		"agreement":                {21, 100, func(i int) dvfsmodel.Joule { return dvfsmodel.Joule(101 * i) }, 2020, agent.SourceCounter},
		"no counter":               {21, 100, func(int) dvfsmodel.Joule { return nan }, 2000, agent.SourceIntegrated},
		"a counter in other units": {21, 100, func(i int) dvfsmodel.Joule { return dvfsmodel.Joule(i) / 10 }, 2000, agent.SourceIntegrated},
		"a counter that is reset":  {21, 100, func(i int) dvfsmodel.Joule { return dvfsmodel.Joule(100 * (i % 11)) }, 2000, agent.SourceCounter},
		"few samples":              {3, 100, func(i int) dvfsmodel.Joule { return dvfsmodel.Joule(300 * i) }, 600, agent.SourceCounter},
		"no power":                 {21, dvfsmodel.Watt(math.NaN()), func(i int) dvfsmodel.Joule { return dvfsmodel.Joule(50 * i) }, 1000, agent.SourceCounter},
		"nothing":                  {21, -1, func(int) dvfsmodel.Joule { return -1 }, -1, agent.SourceNone},
		"one sample":               {1, 100, func(int) dvfsmodel.Joule { return 5 }, -1, agent.SourceNone},
	} {
		t.Run(name, func(t *testing.T) {
			got := sampled(c.samples, func(i int) gpu.Reading {
				return gpu.Reading{Power: c.power, Energy: c.counter(i), Utilisation: math.NaN(), Core: -1}
			})
			if !near(float64(got.Energy), float64(c.want)) || got.EnergyFrom != c.from {
				t.Errorf("%v J from %s, want %v from %s", float64(got.Energy), got.EnergyFrom, float64(c.want), c.from)
			}
			if got.Utilisation != -1 || len(got.Clocks) != 0 || len(got.Series.Values) != 0 {
				t.Errorf("made up: %+v", got)
			}
		})
	}
}

// The series never outgrows its bound, and its time-weighted mean is that of
// the samples however often it was halved.
func TestASeriesHalvesItsResolutionAndKeepsItsMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		step := rapid.SampledFrom([]int{1, 7, 60, 600, 86400}).Draw(t, "step")
		n := rapid.IntRange(2, 800).Draw(t, "samples")
		usage := rapid.SliceOfN(rapid.Float64Range(0, 1), n, n).Draw(t, "usage")
		s := agent.NewSampler(agent.Run{GPUs: []string{"GPU-1"}, Started: noon})
		sum := 0.0
		for i, u := range usage {
			s.Add("GPU-1", gpu.Reading{At: noon.Add(time.Duration(i*step) * time.Second), Utilisation: u, Power: 1, Energy: -1})
			if i > 0 {
				sum += u
			}
		}
		got := s.Close(noon).GPUs[0]
		total := float64((n - 1) * step)
		if len(got.Series.Values) > agent.MaxPoints || got.Series.Step*float64(len(got.Series.Values)) < total {
			t.Fatalf("%d points of %v s for %v s", len(got.Series.Values), got.Series.Step, total)
		}
		mean := 0.0
		for i, v := range got.Series.Values {
			mean += v * (min(total, float64(i+1)*got.Series.Step) - float64(i)*got.Series.Step)
		}
		if math.Abs(mean/total-sum/float64(n-1)) > 1e-9 || math.Abs(got.Utilisation-sum/float64(n-1)) > 1e-9 {
			t.Fatalf("means %v and %v, want %v", mean/total, got.Utilisation, sum/float64(n-1))
		}
	})
}

func TestTheClocksSeenAreBounded(t *testing.T) {
	got := sampled(2000, func(i int) gpu.Reading {
		return gpu.Reading{Power: 1, Core: dvfsmodel.MHz(i), Mem: 5000}
	})
	sum := got.OtherClocks
	for _, c := range got.Clocks {
		sum += c.Seconds
	}
	if len(got.Clocks) > 256 || sum != 1999 {
		t.Errorf("%d clocks over %v s", len(got.Clocks), sum)
	}
}

func TestReadingsThatArentLaterAreIgnored(t *testing.T) {
	s := agent.NewSampler(agent.Run{GPUs: []string{"GPU-1"}, Started: noon})
	for _, d := range []time.Duration{0, 10 * time.Second, 10 * time.Second, 5 * time.Second, 20 * time.Second} {
		s.Add("GPU-1", gpu.Reading{At: noon.Add(d), Power: 10, Energy: -1})
	}
	s.Miss("GPU-1")
	if got := s.Close(noon).GPUs[0]; got.Covered != 20 || got.Integrated != 200 || got.Missed != 1 {
		t.Errorf("%+v", got)
	}
}
