package agent

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/gpu"
)

// Outcome is what was measured while a run lasted. Times are in seconds; -1
// stands for what wasn't measured.
type Outcome struct {
	Started time.Time    `json:"started"`
	Ended   time.Time    `json:"ended"`
	Partial bool         `json:"partial,omitempty"` // the agent wasn't there for all of it
	Reason  string       `json:"reason"`            // why it was closed
	GPUs    []GPUOutcome `json:"gpus"`
}

// Source is where an energy figure comes from.
type Source string

// The counter is trusted unless the integrated power says otherwise.
const (
	SourceNone       Source = "none"
	SourceCounter    Source = "counter"
	SourceIntegrated Source = "integrated"
)

// GPUOutcome is what was measured on one GPU. Everything that runs on the GPU
// is in it, other runs' shares too.
type GPUOutcome struct {
	UUID        string          `json:"uuid"`
	Samples     int             `json:"samples"`
	Missed      int             `json:"missed"`    // samples that failed
	Covered     float64         `json:"covered_s"` // between the first and the last sample
	MeanPower   dvfsmodel.Watt  `json:"mean_power_w"`
	PeakPower   dvfsmodel.Watt  `json:"peak_power_w"`
	Energy      dvfsmodel.Joule `json:"energy_j"`
	EnergyFrom  Source          `json:"energy_from"`
	Counter     dvfsmodel.Joule `json:"counter_j"`
	Integrated  dvfsmodel.Joule `json:"integrated_j"`
	Resets      int             `json:"counter_resets"`
	Utilisation float64         `json:"utilisation"`
	PeakMem     int64           `json:"peak_mem_bytes"`
	Clocks      []ClockTime     `json:"clocks"` // by falling time
	OtherClocks float64         `json:"other_clocks_s"`
	Throttled   float64         `json:"throttled_s"` // for any reason below
	PowerCapped float64         `json:"power_capped_s"`
	Thermal     float64         `json:"thermal_s"`
	Hardware    float64         `json:"hardware_s"`
	Series      Series          `json:"series"`
}

// ClockTime is how long a pair of clocks was seen.
type ClockTime struct {
	Core    dvfsmodel.MHz `json:"core_mhz"`
	Mem     dvfsmodel.MHz `json:"mem_mhz"`
	Seconds float64       `json:"time_s"`
}

// Bounds of what a sampler keeps of one GPU.
const (
	maxClocks  = 256
	maxPoints  = 256
	firstStep  = 60.0 // seconds of a point of a series, until it is full
	throttling = gpu.ThrottlePowerCap | gpu.ThrottleThermal | gpu.ThrottleHardware | gpu.ThrottleOther
)

// The counter and the integrated power may differ by so much; with fewer
// samples the integrated power proves nothing.
const (
	maxDispute    = 0.2
	enoughSamples = 10
)

// Sampler makes a run's readings into its outcome, in bounded memory.
type Sampler struct {
	outcome Outcome
	gpus    map[string]*meter
}

// meter is a sampler's view of one GPU.
type meter struct {
	out       GPUOutcome
	last      gpu.Reading
	watts     float64 // seconds with a known power
	used      float64 // seconds with a known utilisation
	usage     float64 // utilisation × seconds
	clocks    map[[2]dvfsmodel.MHz]float64
	uncounted bool // some interval has no counter
}

// NewSampler makes a sampler of a run's GPUs.
func NewSampler(run Run) *Sampler {
	s := &Sampler{outcome: Outcome{Started: run.Started}, gpus: make(map[string]*meter, len(run.GPUs))}
	for _, uuid := range run.GPUs {
		s.gpus[uuid] = &meter{
			out:    GPUOutcome{UUID: uuid, PeakPower: -1, PeakMem: -1, Series: Series{Step: firstStep}},
			clocks: make(map[[2]dvfsmodel.MHz]float64),
		}
	}
	return s
}

// Add takes a reading of a GPU. Readings of other GPUs, and such that aren't
// later than the last, are ignored.
func (s *Sampler) Add(uuid string, r gpu.Reading) {
	m, ok := s.gpus[uuid]
	if !ok {
		return
	}
	if m.out.Samples > 0 {
		d := r.At.Sub(m.last.At).Seconds()
		if d <= 0 {
			return
		}
		m.pass(d, &r, r.At.Sub(s.outcome.Started).Seconds())
	}
	if known(float64(r.Power)) {
		m.out.PeakPower = max(m.out.PeakPower, r.Power)
	}
	m.out.PeakMem = max(m.out.PeakMem, r.MemUsed)
	m.out.Samples++
	m.last = r
}

// Miss counts a reading that failed.
func (s *Sampler) Miss(uuid string) {
	if m, ok := s.gpus[uuid]; ok {
		m.out.Missed++
	}
}

// known tells whether a device measured a value.
func known(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }

// pass books the time between the last reading and this one.
func (m *meter) pass(d float64, r *gpu.Reading, end float64) {
	m.out.Covered += d
	m.passEnergy(d, r)
	if known(r.Utilisation) {
		m.used += d
		m.usage += d * min(1, r.Utilisation)
		m.out.Series.add(end-d, end, min(1, r.Utilisation))
	}
	m.passClocks(d, r)
	book := func(sum *float64, reasons gpu.Throttle) {
		if r.Throttle&reasons != 0 {
			*sum += d
		}
	}
	book(&m.out.Throttled, throttling)
	book(&m.out.PowerCapped, gpu.ThrottlePowerCap)
	book(&m.out.Thermal, gpu.ThrottleThermal)
	book(&m.out.Hardware, gpu.ThrottleHardware)
}

// passEnergy books energy by the counter and by the trapezoid under the power.
// Where the counter went back, that one interval is the trapezoid's.
func (m *meter) passEnergy(d float64, r *gpu.Reading) {
	var integrated dvfsmodel.Joule
	if known(float64(r.Power)) && known(float64(m.last.Power)) {
		integrated = dvfsmodel.Joule(d * float64(r.Power+m.last.Power) / 2)
		m.watts += d
		m.out.Integrated += integrated
	}
	switch {
	case !known(float64(r.Energy)) || !known(float64(m.last.Energy)):
		m.uncounted = true
	case r.Energy < m.last.Energy:
		m.out.Resets++
		m.out.Counter += integrated
	default:
		m.out.Counter += r.Energy - m.last.Energy
	}
}

func (m *meter) passClocks(d float64, r *gpu.Reading) {
	pair := [2]dvfsmodel.MHz{r.Core, r.Mem}
	_, seen := m.clocks[pair]
	if !known(float64(r.Core)) || !known(float64(r.Mem)) || !seen && len(m.clocks) >= maxClocks {
		m.out.OtherClocks += d
		return
	}
	m.clocks[pair] += d
}

// Close makes the outcome.
func (s *Sampler) Close(at time.Time) Outcome {
	out := s.outcome
	out.Ended = at
	for _, uuid := range slices.Sorted(maps.Keys(s.gpus)) {
		out.GPUs = append(out.GPUs, s.gpus[uuid].close())
	}
	return out
}

func (m *meter) close() GPUOutcome {
	out := m.out
	out.MeanPower, out.Utilisation = -1, -1
	if m.watts > 0 {
		out.MeanPower = dvfsmodel.Watt(float64(out.Integrated) / m.watts)
	}
	if m.used > 0 {
		out.Utilisation = m.usage / m.used
	}
	if out.Covered == 0 || m.uncounted {
		out.Counter = -1
	}
	if m.watts == 0 {
		out.Integrated = -1
	}
	out.Energy, out.EnergyFrom = out.settleEnergy()
	if out.MeanPower < 0 && out.Energy >= 0 {
		out.MeanPower = dvfsmodel.Watt(float64(out.Energy) / out.Covered)
	}
	for pair, d := range m.clocks {
		out.Clocks = append(out.Clocks, ClockTime{Core: pair[0], Mem: pair[1], Seconds: d})
	}
	slices.SortFunc(out.Clocks, func(x, y ClockTime) int {
		return cmp.Or(cmp.Compare(y.Seconds, x.Seconds), cmp.Compare(x.Core, y.Core), cmp.Compare(x.Mem, y.Mem))
	})
	out.Series = m.out.Series.clone()
	return out
}

// settleEnergy picks the energy that is to be believed.
func (o *GPUOutcome) settleEnergy() (dvfsmodel.Joule, Source) {
	switch {
	case o.Counter < 0 && o.Integrated < 0:
		return -1, SourceNone
	case o.Counter < 0:
		return o.Integrated, SourceIntegrated
	case o.Integrated < 0 || o.Samples < enoughSamples:
		return o.Counter, SourceCounter
	case math.Abs(float64(o.Counter-o.Integrated)) > maxDispute*float64(o.Integrated):
		return o.Integrated, SourceIntegrated
	}
	return o.Counter, SourceCounter
}
