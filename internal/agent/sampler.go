package agent

import (
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/nodepower"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// sampleEvery is how often the GPUs of runs are read, unless a run is to be learnt from.
const sampleEvery = time.Second

// Bounds of what a sampler keeps of one GPU.
const (
	maxClocks       = 256
	maxLimits       = 16
	initialInterval = time.Minute // of a point of a series, until it is full
	throttling      = gpu.ThrottlePowerCap | gpu.ThrottleThermal | gpu.ThrottleHardware | gpu.ThrottleOther
)

// throttleReasons lists the reasons for throttling that outcomes tell apart.
var throttleReasons = [...]struct {
	word string
	by   gpu.Throttle
}{{"power-cap", gpu.ThrottlePowerCap}, {"thermal", gpu.ThrottleThermal}, {"hardware", gpu.ThrottleHardware}}

// Sampler makes a run's readings into its outcome, in bounded memory.
type Sampler struct {
	outcome record.Outcome // what is known of it at its start
	partial bool           // the agent wasn't there for all of it
	// hostEnergy is the run's part of what the node's CPUs and memory used during hostCovered
	// seconds, shared by the GPUs that were in use.
	hostEnergy  dvfsmodel.Joule
	hostCovered float64

	gpus     map[string]*gpuTally
	series   *record.SeriesSampler
	profile  *profiler
	readings *record.ReadingsSampler
	recent   *sampleHistory // nil: it remembers nothing one by one
}

// gpuTally is a sampler's view of one GPU.
// Everything that runs on the GPU is in it, other runs' shares too. Times are in seconds.
type gpuTally struct {
	energy      gpu.EnergyMeter
	samples     int
	last        time.Time // of them
	covered     float64   // between the first and the last sample
	used        float64   // with a known utilisation
	usage       float64   // utilisation × seconds
	peakMem     int64     // bytes; negative: not known
	work        workClock
	clocks      map[[2]dvfsmodel.MHz]float64
	limits      map[dvfsmodel.Watt]float64
	otherLimits float64 // at limits beyond those
	throttled   [len(throttleReasons)]float64
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
		outcome: record.Outcome{
			RunID: run.ID, JobID: int64(run.Job), Node: run.Node, GPUs: run.GPUs, Started: run.Started,
			Details: record.Details{Shared: run.Shared},
		},
		gpus: make(map[string]*gpuTally, len(run.GPUs)), series: record.NewSeriesSampler(initialInterval),
		profile: newProfiler(run.GPUs), readings: record.NewReadingsSampler(len(run.GPUs), sampleEvery),
	}
	for _, uuid := range run.GPUs {
		s.gpus[uuid] = &gpuTally{
			peakMem: -1, first: -1, clocks: make(map[[2]dvfsmodel.MHz]float64),
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
	if t.samples > 0 {
		from = t.last
		d := r.At.Sub(t.last).Seconds()
		if d <= 0 {
			return
		}
		t.addStep(d, &r)
		if gpu.IsMeasured(r.Utilisation) {
			s.series.Add(t.last.Sub(s.outcome.Started), r.At.Sub(s.outcome.Started), r.Utilisation)
		}
	}
	s.profile.add(uuid, from.Sub(s.outcome.Started), r.At.Sub(s.outcome.Started), &r)
	s.readings.Add(from.Sub(s.outcome.Started), r.At.Sub(s.outcome.Started), float64(r.Power),
		float64(r.Core))
	t.energy.Add(r)
	t.peakMem = max(t.peakMem, r.MemUsed)
	t.samples++
	t.last, t.count = r.At, r.Energy
	s.recent.add(sampleRecord{at: r.At, uuid: uuid, reading: r})
}

// AddHost takes a part of what the node's CPUs and memory used in a step that ends
// at a time.
func (s *Sampler) AddHost(at time.Time, step nodepower.EnergyStep, part float64) {
	if step.Known {
		s.hostEnergy += step.Energy * dvfsmodel.Joule(part)
		s.hostCovered += step.Time.Seconds()
		s.recent.add(sampleRecord{at: at, step: step, part: part})
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
	t.covered += d
	if gpu.IsMeasured(r.Utilisation) {
		t.used += d
		t.usage += d * min(1, r.Utilisation)
	}
	if r.Utilisation > 0 && r.Throttle&gpu.ThrottleIdle == 0 && r.Core > 0 {
		t.work.add(d*min(1, r.Utilisation), float64(r.Core))
	}
	t.addClockTime(d, r)
	t.addLimitTime(d, r.Limit)
	for i, reason := range throttleReasons {
		if r.Throttle&reason.by != 0 {
			t.throttled[i] += d
		}
	}
}

// addClockTime books the time to the pair of clocks that was read, unless there are too many pairs.
func (t *gpuTally) addClockTime(d float64, r *gpu.Reading) {
	pair := [2]dvfsmodel.MHz{r.Core, r.Mem}
	_, seen := t.clocks[pair]
	if gpu.IsMeasured(r.Core) && gpu.IsMeasured(r.Mem) && (seen || len(t.clocks) < maxClocks) {
		t.clocks[pair] += d
	}
}

// addLimitTime books the time to the power limit that was read.
func (t *gpuTally) addLimitTime(d float64, limit dvfsmodel.Watt) {
	if !gpu.IsMeasured(limit) || limit == 0 {
		return
	}
	if _, seen := t.limits[limit]; seen || len(t.limits) < maxLimits {
		t.limits[limit] += d
		return
	}
	t.otherLimits += d
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
