package agent

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/nodepower"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// Outcome is what was measured while a run lasted. Times are in seconds; -1
// stands for what wasn't measured.
type Outcome struct {
	Started time.Time    `json:"started"`
	Ended   time.Time    `json:"ended"`
	Partial bool         `json:"partial,omitempty"` // the agent wasn't there for all of it
	Reason  string       `json:"reason"`            // why it was closed
	GPUs    []GPUOutcome `json:"gpus"`
	record.Course
	record.Details // of its restart the time alone
	// Lowest is the lowest of the settings that the run was at while its clocks
	// were adapted; zero where they weren't.
	Lowest dvfsmodel.Setting `json:"lowest,omitzero"`
	// HostEnergy is the run's part of what the node's CPUs and memory used
	// during HostCovered, shared by the GPUs that were in use.
	HostEnergy  dvfsmodel.Joule `json:"host_energy_j"`
	HostCovered float64         `json:"host_covered_s"`
}

// maxMissed is the part of a run for which the host's energy may be filled in
// by its mean.
const maxMissed = 0.1

// Host returns the run's part of what the node's CPUs and memory used, over all of
// its time, and whether enough of it was measured.
func (o *Outcome) Host() (dvfsmodel.Joule, bool) {
	lasted := o.Ended.Sub(o.Started).Seconds()
	if !(o.HostCovered > 0) || o.Partial || o.HostCovered < (1-maxMissed)*lasted {
		return 0, false
	}
	return o.HostEnergy * dvfsmodel.Joule(max(1, lasted/o.HostCovered)), true
}

// GPUOutcome is what was measured on one GPU. Everything that runs on the GPU
// is in it, other runs' shares too.
type GPUOutcome struct {
	UUID        string           `json:"uuid"`
	Samples     int              `json:"samples"`
	Missed      int              `json:"missed"`    // samples that failed
	Covered     float64          `json:"covered_s"` // between the first and the last sample
	MeanPower   dvfsmodel.Watt   `json:"mean_power_w"`
	PeakPower   dvfsmodel.Watt   `json:"peak_power_w"`
	Energy      dvfsmodel.Joule  `json:"energy_j"`
	EnergyFrom  gpu.EnergySource `json:"energy_from"`
	Uncovered   float64          `json:"uncovered_s"` // of the covered time, without energy
	Counter     dvfsmodel.Joule  `json:"counter_j"`   // while power was known too
	Integrated  dvfsmodel.Joule  `json:"integrated_j"`
	Resets      int              `json:"counter_resets"`
	Utilisation float64          `json:"utilisation"`
	PeakMem     int64            `json:"peak_mem_bytes"`
	Work        WorkClock        `json:"work,omitzero"`
	Clocks      []live.Residency `json:"clocks"` // by falling time
	OtherClocks float64          `json:"other_clocks_s"`
	Throttled   float64          `json:"throttled_s"` // for any reason below
	PowerCapped float64          `json:"power_capped_s"`
	Thermal     float64          `json:"thermal_s"`
	Hardware    float64          `json:"hardware_s"`
	// Limit is the power limit that was in force, of several that for the longest time, and
	// OtherLimits is how long others were; 0: not known.
	Limit       dvfsmodel.Watt `json:"limit_w,omitzero"`
	OtherLimits float64        `json:"other_limits_s,omitzero"`
	// Spanned is what its counter says of a run of which a part wasn't seen, from
	// its start to its end; 0: nothing.
	Spanned dvfsmodel.Joule `json:"spanned_j,omitzero"`
}

// WorkClock is a GPU's core clock over the time in which it was at work, as sums by that time.
type WorkClock struct {
	Seconds float64 `json:"s"` // utilisation × seconds
	MHz     float64 `json:"mhz_s"`
	MHz2    float64 `json:"mhz2_s"` // of squares
}

// add takes so many seconds at work at a clock.
func (w *WorkClock) add(seconds, mhz float64) {
	w.Seconds, w.MHz, w.MHz2 = w.Seconds+seconds, w.MHz+seconds*mhz, w.MHz2+seconds*mhz*mhz
}

// sampleEvery is how often the GPUs of runs are read, unless a run is to be learnt from.
const sampleEvery = time.Second

// Bounds of what a sampler keeps of one GPU.
const (
	maxClocks       = 256
	maxLimits       = 16
	initialInterval = time.Minute // of a point of a series, until it is full
	throttling      = gpu.ThrottlePowerCap | gpu.ThrottleThermal | gpu.ThrottleHardware | gpu.ThrottleOther
)

// Sampler makes a run's readings into its outcome, in bounded memory.
type Sampler struct {
	outcome  Outcome
	gpus     map[string]*gpuTally
	series   *record.Sampler
	profile  *profiler
	readings *record.ReadingsSampler
	recent   *sampleHistory // nil: it remembers nothing one by one
}

// gpuTally is a sampler's view of one GPU.
type gpuTally struct {
	out    GPUOutcome
	energy gpu.EnergyMeter
	last   time.Time
	used   float64 // seconds with a known utilisation
	usage  float64 // utilisation × seconds
	clocks map[[2]dvfsmodel.MHz]float64
	limits map[dvfsmodel.Watt]float64 // seconds
	// first is the counter at the run's start, where readings begin later; -1: not
	// known. count is the counter at the last reading.
	first, count dvfsmodel.Joule
}

// NewSampler makes a sampler of a run's GPUs.
func NewSampler(run live.Run) *Sampler {
	s := newSampler(run)
	s.recent = &sampleHistory{past: newSampler(run)}
	return s
}

// newSampler makes a sampler that remembers nothing one by one.
func newSampler(run live.Run) *Sampler {
	s := &Sampler{
		outcome: Outcome{Started: run.Started, Details: record.Details{Shared: run.Shared}},
		gpus:    make(map[string]*gpuTally, len(run.GPUs)), series: record.NewSampler(initialInterval),
		profile: newProfiler(run.GPUs), readings: record.NewReadingsSampler(len(run.GPUs), sampleEvery),
	}
	for _, uuid := range run.GPUs {
		s.gpus[uuid] = &gpuTally{
			out: GPUOutcome{UUID: uuid, PeakMem: -1}, first: -1, clocks: make(map[[2]dvfsmodel.MHz]float64),
			limits: make(map[dvfsmodel.Watt]float64),
		}
	}
	return s
}

// Add takes a reading of a GPU. Readings of other GPUs, and such that aren't
// later than the last, are ignored.
func (s *Sampler) Add(uuid string, r gpu.Reading) {
	t, ok := s.gpus[uuid]
	if !ok {
		return
	}
	from := r.At // the first reading says nothing of the time before
	if t.out.Samples > 0 {
		from = t.last
		d := r.At.Sub(t.last).Seconds()
		if d <= 0 {
			return
		}
		t.addStep(d, &r)
		if gpu.Measured(r.Utilisation) {
			s.series.Add(t.last.Sub(s.outcome.Started), r.At.Sub(s.outcome.Started), r.Utilisation)
		}
	}
	s.profile.add(uuid, from.Sub(s.outcome.Started), r.At.Sub(s.outcome.Started), &r)
	s.readings.Add(from.Sub(s.outcome.Started), r.At.Sub(s.outcome.Started), float64(r.Power),
		float64(r.Core))
	t.energy.Add(r)
	t.out.PeakMem = max(t.out.PeakMem, r.MemUsed)
	t.out.Samples++
	t.last, t.count = r.At, r.Energy
	s.recent.add(sampleRecord{at: r.At, uuid: uuid, reading: r})
}

// AddHost takes a part of what the node's CPUs and memory used in a step that ends
// at a time.
func (s *Sampler) AddHost(at time.Time, step nodepower.EnergyStep, part float64) {
	if step.Known {
		s.outcome.HostEnergy += step.Energy * dvfsmodel.Joule(part)
		s.outcome.HostCovered += step.Time.Seconds()
		s.recent.add(sampleRecord{at: at, step: step, part: part})
	}
}

// Miss counts a reading that failed.
func (s *Sampler) Miss(uuid string) {
	if m, ok := s.gpus[uuid]; ok {
		m.out.Missed++
	}
}

// markShared notes that another run is on one of the GPUs.
func (s *Sampler) markShared() {
	s.profile.shared = true
	if s.recent != nil {
		s.recent.past.markShared()
	}
}

// addStep books the time between the last reading and this one.
func (t *gpuTally) addStep(d float64, r *gpu.Reading) {
	t.out.Covered += d
	if gpu.Measured(r.Utilisation) {
		t.used += d
		t.usage += d * min(1, r.Utilisation)
	}
	if r.Utilisation > 0 && r.Throttle&gpu.ThrottleIdle == 0 && r.Core > 0 {
		t.out.Work.add(d*min(1, r.Utilisation), float64(r.Core))
	}
	t.addClockTime(d, r)
	t.addLimitTime(d, r.Limit)
	book := func(sum *float64, reasons gpu.Throttle) {
		if r.Throttle&reasons != 0 {
			*sum += d
		}
	}
	book(&t.out.Throttled, throttling)
	book(&t.out.PowerCapped, gpu.ThrottlePowerCap)
	book(&t.out.Thermal, gpu.ThrottleThermal)
	book(&t.out.Hardware, gpu.ThrottleHardware)
}

// addClockTime books the time to the pair of clocks that was read, or to other clocks
// once there are too many pairs.
func (t *gpuTally) addClockTime(d float64, r *gpu.Reading) {
	pair := [2]dvfsmodel.MHz{r.Core, r.Mem}
	_, seen := t.clocks[pair]
	if !gpu.Measured(r.Core) || !gpu.Measured(r.Mem) || !seen && len(t.clocks) >= maxClocks {
		t.out.OtherClocks += d
		return
	}
	t.clocks[pair] += d
}

// addLimitTime books the time to the power limit that was read.
func (t *gpuTally) addLimitTime(d float64, limit dvfsmodel.Watt) {
	if !gpu.Measured(limit) || limit == 0 {
		return
	}
	if _, seen := t.limits[limit]; seen || len(t.limits) < maxLimits {
		t.limits[limit] += d
		return
	}
	t.out.OtherLimits += d
}

// Close makes the outcome.
func (s *Sampler) Close(at time.Time) Outcome {
	out := s.outcome
	out.Ended = at
	out.Series = s.series.Series()
	uuids := slices.Sorted(maps.Keys(s.gpus))
	for _, uuid := range uuids {
		out.GPUs = append(out.GPUs, s.gpus[uuid].close())
	}
	out.Profile, out.Shared = s.profile.profile(uuids), out.Shared || s.profile.shared
	out.Readings = s.readings.Readings()
	return out
}

// close returns the GPU's part of the outcome.
func (t *gpuTally) close() GPUOutcome {
	out, e := t.out, t.energy.Sum()
	out.Energy, out.EnergyFrom = orMissing(e.Joules), e.Source
	out.MeanPower, out.PeakPower = orMissing(e.Mean()), orMissing(e.Peak)
	out.Counter, out.Integrated, out.Resets = e.Counter, e.Integrated, e.Resets
	out.Uncovered = e.Uncovered.Seconds()
	out.Utilisation = -1
	if t.used > 0 {
		out.Utilisation = t.usage / t.used
	}
	longest := 0.0
	for _, limit := range slices.Sorted(maps.Keys(t.limits)) {
		d := t.limits[limit]
		if out.OtherLimits += d; d > longest {
			out.Limit, longest = limit, d
		}
	}
	if out.OtherLimits -= longest; out.Limit == 0 {
		out.OtherLimits = 0
	}
	for pair, d := range t.clocks {
		out.Clocks = append(out.Clocks, live.Residency{
			Setting: dvfsmodel.Setting{Core: pair[0], Mem: pair[1]}, Seconds: d,
		})
	}
	slices.SortFunc(out.Clocks, func(x, y live.Residency) int {
		return cmp.Or(cmp.Compare(y.Seconds, x.Seconds), cmp.Compare(x.Core, y.Core),
			cmp.Compare(x.Mem, y.Mem))
	})
	return out
}

// orMissing returns a value, or -1 where it isn't a number.
func orMissing[T ~float64](v T) T {
	if math.IsNaN(float64(v)) {
		return -1
	}
	return v
}

// SoFar returns what the run's GPUs used since their first readings. It grows reading by
// reading; believed is false where that isn't what they are thought to have used in
// the end: one of them told nothing, or its counter turned out to be wrong.
func (s *Sampler) SoFar() (sum dvfsmodel.Joule, believed bool) {
	believed = true
	for _, t := range s.gpus {
		joules := t.energy.SoFar()
		sum += joules
		e := t.energy.Sum()
		believed = believed && e.Source != gpu.FromNoMeasures && e.Joules == joules
	}
	return sum, believed
}
