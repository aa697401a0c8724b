package agent_test

import (
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/nodepower"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// tenWatts feeds a sampler 100 seconds of GPUs that take 10 W, each with a reading a second as told.
func tenWatts(host nodepower.EnergyStep, partial bool, gpus ...func(i int, r *gpu.Reading)) record.Outcome {
	uuids := []string{"GPU-1", "GPU-2"}[:len(gpus)]
	s := agent.NewSampler(live.Run{GPUs: uuids, Started: noon})
	if partial {
		s.MarkPartial()
	}
	for i := range 101 {
		for k, tell := range gpus {
			r := gpu.Reading{
				At: noon.Add(time.Duration(i) * time.Second), Power: 10, Energy: dvfsmodel.Joule(10 * i),
				Utilisation: 1, MemUsed: 5,
			}
			tell(i, &r)
			s.Add(uuids[k], r)
		}
	}
	s.AddHost(noon, host, 1)
	return s.Close(noon.Add(100 * time.Second))
}

func TestAnOutcomeSaysWhereItsEnergyIsFrom(t *testing.T) {
	counter := func(int, *gpu.Reading) {}
	reset := func(i int, r *gpu.Reading) { r.Energy = dvfsmodel.Joule(10 * (i % 51)) }
	powerBut := func(unknown int) func(int, *gpu.Reading) {
		return func(i int, r *gpu.Reading) {
			if r.Energy = -1; i > 100-unknown {
				r.Power = -1
			}
		}
	}
	nothing := func(_ int, r *gpu.Reading) { r.Energy, r.Power = -1, -1 }
	type gpus = []func(int, *gpu.Reading)
	for name, c := range map[string]struct {
		gpus            gpus
		host, hostTime  float64
		partial         bool
		gpuJ, nodeJ     live.Number
		source, hosting record.Source
	}{
		"counters": {
			gpus: gpus{counter, counter}, host: 500, hostTime: 100,
			gpuJ: live.Known(2000), nodeJ: live.Known(2500), source: record.Counter, hosting: record.RAPL,
		},
		"a counter that was reset": {gpus: gpus{counter, reset}, gpuJ: live.Known(2000), source: record.Integrated},
		"power, and a host that was seen for half of the time": {
			gpus: gpus{powerBut(9)}, host: 500, hostTime: 50, gpuJ: live.Known(910), source: record.Integrated,
		},
		"a GPU of which too little is known": {gpus: gpus{powerBut(11), counter}, host: 500, hostTime: 100},
		"a GPU that wasn't seen":             {gpus: gpus{nothing}, host: 500, hostTime: 100},
		"no GPU":                             {host: 500, hostTime: 100},
		"a part of the run":                  {gpus: gpus{counter}, host: 500, hostTime: 100, partial: true},
	} {
		got := tenWatts(nodepower.EnergyStep{
			Energy: dvfsmodel.Joule(c.host), Time: time.Duration(c.hostTime) * time.Second, Known: c.host > 0,
		}, c.partial, c.gpus...)
		if got.GPUEnergyJ != c.gpuJ || got.GPUSource != c.source || got.NodeEnergyJ != c.nodeJ ||
			got.NodeSource != c.hosting {
			t.Errorf("%s: %s J from %q, node %s J from %q", name, got.GPUEnergyJ, got.GPUSource,
				got.NodeEnergyJ, got.NodeSource)
		}
	}
}

// What one GPU doesn't tell isn't counted as nothing.
func TestWhatAGPUDoesNotTellIsNotKnownOfTheRun(t *testing.T) {
	told := func(int, *gpu.Reading) {}
	untold := func(_ int, r *gpu.Reading) { r.Power, r.Utilisation, r.MemUsed = -1, -1, -1 }
	alone := tenWatts(nodepower.EnergyStep{}, false, untold)
	beside := tenWatts(nodepower.EnergyStep{}, false, told, untold)
	for name, is := range map[string][2]live.Number{
		"energy of one":         {alone.GPUEnergyJ, live.Known(1000)},
		"peak power of one":     {alone.PeakPowerW, {}},
		"peak power of two":     {beside.PeakPowerW, {}},
		"mean power of two":     {beside.MeanPowerW, live.Known(20)},
		"utilisation of one":    {alone.Utilisation, {}},
		"that of who tells it":  {beside.Utilisation, live.Known(1)},
		"peak memory of one":    {alone.PeakMemoryBytes, {}},
		"that of who tells its": {beside.PeakMemoryBytes, live.Known(5)},
	} {
		if is[0] != is[1] {
			t.Errorf("%s is %s, want %s", name, is[0], is[1])
		}
	}
}

func TestTheEnergyOfARunOverARestartIsKnownIfAllItsCountersTell(t *testing.T) {
	two := []string{"GPU-1", "GPU-2"}
	for name, c := range map[string]struct {
		gpus  []string
		first map[string]dvfsmodel.Joule
		want  live.Number
	}{
		"counters":               {two, map[string]dvfsmodel.Joule{"GPU-1": 100, "GPU-2": 600}, live.Known(1300)},
		"a GPU without one":      {two, map[string]dvfsmodel.Joule{"GPU-1": 100}, live.Number{}},
		"one that went back":     {two, map[string]dvfsmodel.Joule{"GPU-1": 100, "GPU-2": 1001}, live.Number{}},
		"GPUs that aren't there": {nil, nil, live.Number{}},
	} {
		s := agent.NewSampler(live.Run{GPUs: c.gpus, Started: noon})
		for _, uuid := range slices.Sorted(maps.Keys(c.first)) {
			s.Add(uuid, gpu.Reading{At: noon.Add(time.Minute), Power: 100, Energy: 1000})
		}
		if got := s.Spanned(c.first, noon.Add(time.Minute-time.Second)); got != c.want {
			t.Errorf("%s: %s J, want %s", name, got, c.want)
		}
	}
}

// The run's file, the spool and the controller have the same outcome.
func TestAnOutcomeIsTheSameWhereverItWasWritten(t *testing.T) {
	sent := tenWatts(nodepower.EnergyStep{Energy: 500, Time: 100 * time.Second, Known: true}, false,
		func(_ int, r *gpu.Reading) { r.Core, r.Mem, r.Throttle, r.Limit = 900, 5000, gpu.ThrottleThermal, 200 },
		func(i int, r *gpu.Reading) { r.Core, r.Mem = dvfsmodel.MHz(900+i%7), 5000 })
	sent.Setting, sent.Slowdown, sent.Notes = dvfsmodel.Setting{Core: 900}, live.Known(1.1), []string{"a note"}
	text, err := json.Marshal(&sent)
	if err != nil {
		t.Fatal(err)
	}
	var read record.Outcome
	if err := json.Unmarshal(text, &read); err != nil || !reflect.DeepEqual(read, sent) {
		t.Errorf("%+v, %v; want %+v", read, err, sent)
	}
	if read.Profile.IsZero() || read.Readings.IsZero() || read.Series.Len() == 0 || len(read.Clocks) != 8 ||
		math.Abs(read.ThrottledS["thermal"]-100) > 1e-9 {
		t.Errorf("%+v has not all of it", read)
	}
}
