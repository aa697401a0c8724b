package record_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// began is when runs of these tests begin.
var began = time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC)

// ran returns the outcome of a run of an hour on two GPUs.
func ran() record.Outcome {
	return record.Outcome{
		Cluster: "alpha", RunID: "r", JobID: 7, Node: "n1", Arm: live.ArmTreated, ExitState: record.Completed,
		Started: began, Ended: began.Add(time.Hour), GPUs: []string{"GPU-1", "GPU-2"},
		Setting: dvfsmodel.Setting{Core: 1200},
		TimeS:   live.Known(3600), GPUEnergyJ: live.Known(1e6), GPUSource: record.Counter,
		NodeEnergyJ: live.Known(2e6), NodeSource: record.RAPL,
		MeanPowerW: live.Known(278), PeakPowerW: live.Known(600), Utilisation: live.Known(1),
		PeakMemoryBytes: live.Known(1e10),
		Details: record.Details{Stays: []dvfsmodel.ClockResidency{{
			Core: 1200, Seconds: 3600, Work: 3000, Energy: 1e6, Rest: 100, RestEnergy: 1e4, Begun: 1,
		}}},
	}
}

func TestWhatCantBeOfARunIsSetAsideAndTheRestStays(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*record.Outcome)
		limit dvfsmodel.Watt
		time  bool // is known afterwards, and the following ones
		gpu   bool
		node  bool
		why   string
	}{
		"as it was": {func(*record.Outcome) {}, 0, true, true, true, ""},
		"at the limit": {func(o *record.Outcome) {
			o.GPUEnergyJ = live.Known(2 * 3000 * 3600)
		}, 0, true, true, true, ""},
		"a counter jumped": {func(o *record.Outcome) {
			o.GPUEnergyJ = live.Known(1.7e308)
		}, 0, true, false, false, "GPU energy 1.7e+308 J, want 0 to 2.166e+07"},
		"of this GPU model": {func(o *record.Outcome) {
			o.GPUEnergyJ = live.Known(7e6)
		}, 900, true, false, false, "GPU energy 7e+06 J, want 0 to 6.498e+06"},
		"of any GPU model": {func(o *record.Outcome) {
			o.GPUEnergyJ = live.Known(7e6)
		}, 0, true, true, true, ""},
		"less than nothing": {func(o *record.Outcome) {
			o.GPUEnergyJ = live.Known(-1)
		}, 0, true, false, false, "GPU energy -1 J"},
		"the node's": {func(o *record.Outcome) {
			o.NodeEnergyJ = live.Known(1e9)
		}, 0, true, true, false, "node energy 1e+09 J"},
		"a time before 0": {func(o *record.Outcome) {
			o.TimeS = live.Known(-60)
		}, 0, false, false, false, "time -60 s, want 0 to 3660"},
		"longer than it was there": {func(o *record.Outcome) {
			o.TimeS = live.Known(4000)
		}, 0, false, false, false, "time 4000 s"},
		"ended before it started": {func(o *record.Outcome) {
			o.Started = o.Ended.Add(time.Minute)
		}, 0, true, true, true, "started 1m0s after it ended"},
		"in the year 1": {func(o *record.Outcome) {
			o.Started = time.Date(1, 2, 3, 4, 5, 6, 0, time.UTC)
		}, 0, true, true, true, "started in 1"},
		"in the year 9999": {func(o *record.Outcome) {
			o.Ended = time.Date(9999, 2, 3, 4, 5, 6, 0, time.UTC)
		}, 0, true, true, true, "ended in 9999"},
		"no times": {func(o *record.Outcome) {
			o.Started, o.Ended = time.Time{}, time.Time{}
		}, 0, true, true, true, ""},
		"no GPU is named": {func(o *record.Outcome) { o.GPUs = nil }, 0, true, true, true, ""},
		"power": {func(o *record.Outcome) {
			o.MeanPowerW, o.PeakPowerW = live.Known(7000), live.Known(-1)
		}, 0, true, true, true, "mean power 7000 W, want 0 to 6000; peak power -1 W"},
		"use": {func(o *record.Outcome) {
			o.Utilisation = live.Known(1.5)
		}, 0, true, true, true, "utilisation 1.5"},
		"stays": {func(o *record.Outcome) {
			o.Stays[0].Energy = 1e300
		}, 0, true, true, true, "stays of 3600 s and 1e+300 J"},
	} {
		t.Run(name, func(t *testing.T) {
			o, raw := ran(), ran()
			c.spoil(&o)
			c.spoil(&raw)
			o.DropImplausible(&record.Bounds{GPUPower: c.limit})
			for what, pair := range map[string]struct {
				of   live.Number
				want bool
			}{
				"time": {o.TimeS, c.time}, "GPU energy": {o.GPUEnergyJ, c.gpu},
				"node energy": {o.NodeEnergyJ, c.node},
			} {
				if _, known := pair.of.Get(); known != pair.want {
					t.Errorf("%s is %s", what, pair.of)
				}
			}
			if !strings.HasPrefix(o.Implausible.Why, c.why) || c.why == "" && !o.Implausible.IsZero() {
				t.Errorf("why: %q, want %q", o.Implausible.Why, c.why)
			}
			if o.ExitState != raw.ExitState || o.RunID != raw.RunID ||
				(o.GPUSource == record.Unmeasured) == c.gpu || (o.NodeSource == record.Unmeasured) == c.node {
				t.Errorf("the rest is %+v", o)
			}
		})
	}
}

// Whatever comes: what is left is finite and can be, nothing is lost, doing it again
// changes nothing, and a repeat is known as one.
func TestOutcomesArePlausibleAndCompleteWhateverComes(t *testing.T) {
	extremes := []float64{0, 1, 60, 3600, 1e6, -60, 1e9, 1e16, 1e154, 1.7e308, -math.MaxFloat64}
	number := func(t *rapid.T, name string) live.Number {
		if rapid.Bool().Draw(t, name+" known") {
			return live.Known(rapid.SampledFrom(extremes).Draw(t, name))
		}
		return live.Number{}
	}
	at := func(t *rapid.T, name string) time.Time {
		return time.Date(rapid.SampledFrom([]int{1, 1999, 2000, 2026, 2199, 2200, 9999}).Draw(t, name), 1, 1,
			0, 0, rapid.IntRange(0, 4000).Draw(t, "s"), 0, time.UTC)
	}
	rapid.Check(t, func(t *rapid.T) {
		raw := ran()
		raw.Started, raw.Ended, raw.Submitted = at(t, "started"), at(t, "ended"), at(t, "submitted")
		for i, n := range []*live.Number{
			&raw.TimeS, &raw.GPUEnergyJ, &raw.NodeEnergyJ, &raw.MeanPowerW,
			&raw.PeakPowerW, &raw.Utilisation, &raw.PeakMemoryBytes, &raw.Restarted.TimeS,
			&raw.Restarted.GPUEnergyJ,
		} {
			*n = number(t, strconv.Itoa(i))
		}
		raw.Stays[0].Seconds = math.Abs(rapid.SampledFrom(extremes).Draw(t, "stay"))
		before, err := raw.Digest()
		if err != nil {
			t.Fatal(err)
		}
		o, err := raw.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		again, err := o.Canonical()
		if err != nil || !reflect.DeepEqual(again, o) {
			t.Fatalf("again it is %+v, not %+v, %v", again, o, err)
		}
		if after, err := o.Digest(); err != nil || after != before {
			t.Fatalf("it is another one than was sent: %+v", o)
		}
		sum := 0.0
		for _, n := range []live.Number{
			o.TimeS, o.GPUEnergyJ, o.NodeEnergyJ, o.MeanPowerW, o.PeakPowerW,
			o.Utilisation, o.PeakMemoryBytes, o.Restarted.TimeS, o.Restarted.GPUEnergyJ,
		} {
			v := n.Or(0)
			if v < 0 {
				t.Fatalf("%g is left of %+v", v, raw)
			}
			sum += v * v
		}
		if 1e9*sum >= 1e60 { // of so many runs a year
			t.Fatalf("%g is left of %+v", sum, raw)
		}
	})
}

func TestWhatNoAgentSendsIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(*record.Outcome){
		"a UUID of 900 kB":   func(o *record.Outcome) { o.GPUs[0] = strings.Repeat("x", 900_000) },
		"too many GPUs":      func(o *record.Outcome) { o.GPUs = make([]string, record.MaxGPUs+1) },
		"a node's name":      func(o *record.Outcome) { o.Node = strings.Repeat("n", record.MaxNode+1) },
		"a run id":           func(o *record.Outcome) { o.RunID = strings.Repeat("r", record.MaxRunID+1) },
		"a workload's name":  func(o *record.Outcome) { o.Workload = strings.Repeat("w", 300) },
		"a GPU model's name": func(o *record.Outcome) { o.GPUModel = strings.Repeat("m", 300) },
		"a state":            func(o *record.Outcome) { o.ExitState = strings.Repeat("S", 65) },
		"a source": func(o *record.Outcome) {
			o.GPUSource = record.Source(strings.Repeat("s", 65))
		},
		"an arm":             func(o *record.Outcome) { o.Arm = "third" },
		"a clock":            func(o *record.Outcome) { o.Setting.Core = 1e308 },
		"a clock below 0":    func(o *record.Outcome) { o.Setting.Mem = -1 },
		"a slowdown":         func(o *record.Outcome) { o.Slowdown = live.Known(-2) },
		"seconds at a clock": func(o *record.Outcome) { o.Clocks = []live.Residency{{Seconds: 1e308}} },
		"a clock seen": func(o *record.Outcome) {
			o.Clocks = []live.Residency{{Setting: dvfsmodel.Setting{Core: -1}}}
		},
		"throttled below 0":  func(o *record.Outcome) { o.ThrottledS = map[string]float64{"a": -1} },
		"throttled for ever": func(o *record.Outcome) { o.ThrottledS = map[string]float64{"a": 1e308} },
		"a long reason": func(o *record.Outcome) {
			o.ThrottledS = map[string]float64{strings.Repeat("a", 65): 1}
		},
		"too many notes": func(o *record.Outcome) { o.Notes = make([]string, 33) },
		"a long note":    func(o *record.Outcome) { o.Notes = []string{strings.Repeat("n", 1001)} },
		"too many reasons": func(o *record.Outcome) {
			o.ThrottledS = make(map[string]float64)
			for i := range 17 {
				o.ThrottledS[strconv.Itoa(i)] = 1
			}
		},
	} {
		o := ran()
		spoil(&o)
		if _, err := o.Canonical(); !errors.Is(err, record.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		} else if len(err.Error()) > 600 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
}

// Agents that tell of each GPU's clocks apart may have more of them than are kept.
func TestOfTooManyClocksTheOnesThatWereSeenLongestAreKept(t *testing.T) {
	o := ran()
	for gpu := range 8 {
		for i := range 100 {
			o.Clocks = append(o.Clocks, live.Residency{
				Setting: dvfsmodel.Setting{Core: dvfsmodel.MHz(600 + 10*i), Mem: dvfsmodel.MHz(877 + gpu/4)},
				Seconds: float64(i),
			})
		}
	}
	c, err := o.Canonical()
	if err != nil || len(c.Clocks) != 200 ||
		c.Clocks[0] != (live.Residency{Setting: dvfsmodel.Setting{Core: 1590, Mem: 877}, Seconds: 4 * 99}) {
		t.Fatalf("%d clocks, first %+v, %v", len(c.Clocks), c.Clocks[:1], err)
	}
	for i := range 100 {
		o.Clocks = append(o.Clocks, live.Residency{
			Setting: dvfsmodel.Setting{Core: dvfsmodel.MHz(2000 + i)}, Seconds: 1e6,
		})
	}
	if c, err = o.Canonical(); err != nil || len(c.Clocks) != 256 || c.Clocks[99].Seconds != 1e6 {
		t.Errorf("%d clocks, %v", len(c.Clocks), err)
	}
}

// A node that sends as much as it can takes this much room for each outcome.
func TestAnOutcomeThatIsTakenHasAtMost128KiB(t *testing.T) {
	o := ran()
	fill := func(bytes int) string { return strings.Repeat("\x01", bytes) } // which JSON writes as six
	o.RunID, o.Node, o.Workload, o.GPUModel, o.ExitState = fill(record.MaxRunID), fill(record.MaxNode),
		fill(200), fill(200), fill(64)
	o.GPUs = slices.Repeat([]string{fill(record.MaxUUID)}, record.MaxGPUs)
	o.ThrottledS = make(map[string]float64)
	for i := range 16 {
		o.ThrottledS[fill(63)+string(rune('a'+i))] = 1e9 / 3
	}
	o.Stays = nil
	for i := range record.MaxResidencies {
		o.Stays = append(o.Stays, dvfsmodel.ClockResidency{
			Core: dvfsmodel.MHz(600 + float64(i)/3), Seconds: 50.0 / 3, Work: 10.0 / 3, Energy: 1e4 / 3.0,
			Rest: 1.0 / 3, RestEnergy: 1.0 / 7, Begun: 1 << 50,
		})
	}
	for i := range 1000 {
		o.Clocks = append(o.Clocks, live.Residency{
			Setting: dvfsmodel.Setting{Core: dvfsmodel.MHz(600 + float64(i)/3), Mem: 877.0 / 7},
			Seconds: 1e6 + float64(i)/3,
		})
	}
	for range record.MaxProfileGPUs {
		o.Profile.GPUs = append(o.Profile.GPUs, record.GPUProfile{
			PeakMem: 1 << 40, MemTotal: 1 << 41, Utilisation: fullSeries(), Memory: fullSeries(),
		})
	}
	c, err := o.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(&c)
	if err != nil || len(text) > 128<<10 || len(c.Stays) != record.MaxResidencies {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	t.Logf("%d bytes", len(text))
}

// fullSeries has as many points as one of a profile may have.
func fullSeries() record.Series {
	s := record.NewProfileSampler(time.Second)
	for i := range record.MaxProfilePoints {
		s.Add(time.Duration(i)*time.Second, time.Duration(i+1)*time.Second, 0.5)
	}
	return s.Series()
}
