package agent_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

func TestAnOutcomeSaysWhereItsEnergyIsFrom(t *testing.T) {
	begin := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	of := func(from gpu.EnergySource, uncovered float64) agent.GPUOutcome {
		return agent.GPUOutcome{
			Samples: 100, Covered: 100, Uncovered: uncovered, Energy: 1000, EnergyFrom: from,
		}
	}
	for name, c := range map[string]struct {
		gpus            []agent.GPUOutcome
		host, hostTime  float64
		partial         bool
		gpuJ, nodeJ     live.Number
		source, hosting record.Source
	}{
		"counters": {
			gpus: []agent.GPUOutcome{of(gpu.FromCounter, 0), of(gpu.FromCounter, 0)}, host: 500,
			hostTime: 100,
			gpuJ:     live.Known(2000), nodeJ: live.Known(2500), source: record.Counter, hosting: record.RAPL,
		},
		"a counter that was reset": {
			gpus: []agent.GPUOutcome{of(gpu.FromCounter, 0), of(gpu.FromBoth, 0)},
			gpuJ: live.Known(2000), source: record.Integrated,
		},
		"power, and a host that was seen for half of the time": {
			gpus: []agent.GPUOutcome{of(gpu.FromPower, 9)}, host: 500, hostTime: 50,
			gpuJ: live.Known(1000), source: record.Integrated,
		},
		"a GPU of which too little is known": {
			gpus: []agent.GPUOutcome{of(gpu.FromPower, 11), of(gpu.FromCounter, 0)}, host: 500, hostTime: 100,
		},
		"a GPU that wasn't seen": {
			gpus: []agent.GPUOutcome{of(gpu.FromNoMeasures, 0)}, host: 500, hostTime: 100,
		},
		"no GPU": {host: 500, hostTime: 100},
		"a part of the run": {
			gpus: []agent.GPUOutcome{of(gpu.FromCounter, 0)}, host: 500, hostTime: 100, partial: true,
		},
	} {
		got := (&agent.ClosedRun{Run: live.Run{Started: begin}, Outcome: agent.Outcome{
			Started: begin, Ended: begin.Add(100 * time.Second), GPUs: c.gpus, Partial: c.partial,
			HostEnergy: dvfsmodel.Joule(c.host), HostCovered: c.hostTime,
		}}).Record()
		if got.GPUEnergyJ != c.gpuJ || got.GPUSource != c.source || got.NodeEnergyJ != c.nodeJ ||
			got.NodeSource != c.hosting {
			t.Errorf("%s: %s J from %q, node %s J from %q", name, got.GPUEnergyJ, got.GPUSource,
				got.NodeEnergyJ, got.NodeSource)
		}
	}
}

func TestAnOutcomeOfARunOverARestartShowsItsTimeAndEnergyApart(t *testing.T) {
	for name, c := range map[string]struct {
		lasted  float64
		spanned []dvfsmodel.Joule
		want    record.Restarted
	}{
		"its end isn't known": {0, []dvfsmodel.Joule{1000}, record.Restarted{}},
		"counters": {
			100, []dvfsmodel.Joule{1000, 500}, record.Restarted{
				TimeS: live.Known(100), GPUEnergyJ: live.Known(1500),
			},
		},
		"a GPU without one":      {100, []dvfsmodel.Joule{1000, 0}, record.Restarted{TimeS: live.Known(100)}},
		"GPUs that aren't there": {100, nil, record.Restarted{TimeS: live.Known(100)}},
	} {
		o := agent.Outcome{Partial: true}
		if c.lasted > 0 {
			o.Restarted.TimeS = live.Known(c.lasted)
		}
		for _, joules := range c.spanned {
			o.GPUs = append(o.GPUs, agent.GPUOutcome{
				Samples: 2, Energy: 100, EnergyFrom: gpu.FromCounter, Spanned: joules,
			})
		}
		got := (&agent.ClosedRun{Outcome: o}).Record()
		if got.Restarted != c.want || got.TimeS != (live.Number{}) || got.GPUEnergyJ != (live.Number{}) {
			t.Errorf("%s: %+v beside %s s and %s J", name, got.Restarted, got.TimeS, got.GPUEnergyJ)
		}
	}
}

func TestTheSeriesOfAnOutcomeIsTheRuns(t *testing.T) {
	series := record.NewSampler(time.Minute)
	series.Add(0, time.Minute, 0.5)
	got := (&agent.ClosedRun{
		Outcome: agent.Outcome{Course: record.Course{Series: series.Series()}},
	}).Record().Series
	if got.Len() != 1 || got.At(0) != live.Known(0.5) || got.Interval() != time.Minute {
		t.Errorf("%+v", got)
	}
}

func TestTheProfileOfARunTravelsWithItsOutcome(t *testing.T) {
	s := record.NewProfileSampler(time.Second)
	s.Add(0, 30*time.Second, 0.5)
	want := record.Profile{
		Alone: true,
		GPUs:  []record.GPUProfile{{Utilisation: s.Series(), PeakMem: 1 << 30, MemTotal: 16 << 30}},
	}
	out := (&agent.ClosedRun{
		Run:     live.Run{ID: "r", GPUs: []string{"GPU-1"}},
		Outcome: agent.Outcome{Course: record.Course{Profile: want}},
	}).Record()
	text, err := json.Marshal(out) // what is spooled, and sent
	if err != nil {
		t.Fatal(err)
	}
	var read record.Outcome
	if err := json.Unmarshal(text, &read); err != nil || !reflect.DeepEqual(read.Profile, want) {
		t.Errorf("%+v, %v", read.Profile, err)
	}
}
