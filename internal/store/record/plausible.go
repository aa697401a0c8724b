package record

import (
	"fmt"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
)

// What one run on one node can come to at most. What is beyond was misread, or made up.
const (
	// MaxGPUPower is more than any GPU draws: 1,400 W is the most that boards are
	// sold with (NVIDIA GB300, AMD Instinct MI355X; data sheets of 2025).
	MaxGPUPower dvfsmodel.Watt = 3000
	// MaxHostPower is more than the rest of a node draws: an NVIDIA DGX B200 takes
	// 14.3 kW with its eight GPUs of 1 kW each (data sheet of 2024).
	MaxHostPower dvfsmodel.Watt = 15_000
	// MaxRunTime is 31 years, in seconds.
	MaxRunTime = 1e9

	maxMemory = 1e15 // bytes, of all GPUs of a node
	// spanSlack is how much longer a run may have taken than the time between its
	// start and its end says, whose clock may have been set meanwhile, in seconds.
	spanSlack = 60.0
	// energySlack is the time before and after a run whose energy may count with it:
	// counters and sensors lag, in seconds.
	energySlack = 10.0
	// rounding is how much a part may exceed the whole.
	rounding = 1e-6
)

// Times that a run can have.
var (
	earliestRun = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	latestRun   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Implausible is what came with an outcome and can't be, as by a counter that
// jumped: it is kept for people to look at, and counts nowhere; where it was, the
// outcome knows nothing. It isn't part of what tells two deliveries apart.
type Implausible struct {
	Why             string                     `json:"why"` // what it is, and what there can be at most
	Submitted       time.Time                  `json:"submitted,omitzero"`
	Started         time.Time                  `json:"started,omitzero"`
	Ended           time.Time                  `json:"ended,omitzero"`
	TimeS           live.Number                `json:"time_s,omitzero"`
	GPUEnergyJ      live.Number                `json:"gpu_energy_j,omitzero"`
	GPUSource       Source                     `json:"gpu_energy_source,omitempty"`
	NodeEnergyJ     live.Number                `json:"node_energy_j,omitzero"`
	NodeSource      Source                     `json:"node_energy_source,omitempty"`
	MeanPowerW      live.Number                `json:"mean_power_w,omitzero"`
	PeakPowerW      live.Number                `json:"peak_power_w,omitzero"`
	Utilisation     live.Number                `json:"utilisation,omitzero"`
	PeakMemoryBytes live.Number                `json:"peak_memory_bytes,omitzero"`
	Restarted       Restarted                  `json:"restarted,omitzero"`
	Stays           []dvfsmodel.ClockResidency `json:"stays,omitempty"`
}

// IsZero tells that there was nothing of the kind.
func (p *Implausible) IsZero() bool { return p.Why == "" }

// DropImplausible moves what can't be from the outcome to its Implausible: times, and
// what is more than a run of that time can have used on so many GPUs, of which each
// draws at most so much (0: [MaxGPUPower]).
func (o *Outcome) DropImplausible(gpuPower dvfsmodel.Watt) {
	d := implausibleFilter{o: o, into: &o.Implausible}
	if gpuPower <= 0 || gpuPower > MaxGPUPower {
		gpuPower = MaxGPUPower
	}
	gpus := len(o.GPUs)
	if gpus == 0 {
		gpus = MaxGPUs
	}
	power := float64(gpus) * float64(gpuPower)
	lasted := d.checkTimes()
	d.checkEnergies(lasted, power)
	d.checkNumber(&o.MeanPowerW, &d.into.MeanPowerW, "mean power", "W", power)
	d.checkNumber(&o.PeakPowerW, &d.into.PeakPowerW, "peak power", "W", power)
	d.checkNumber(&o.Utilisation, &d.into.Utilisation, "utilisation", "", 1+rounding)
	d.checkNumber(&o.PeakMemoryBytes, &d.into.PeakMemoryBytes, "peak memory", "bytes", maxMemory)
	d.checkRestarted(power)
	d.checkStays(lasted, power)
	if len(d.why) > 0 {
		if d.into.Why != "" {
			d.why = append([]string{d.into.Why}, d.why...)
		}
		d.into.Why = strings.Join(d.why, "; ")
	}
}

// implausibleFilter moves what can't be out of an outcome.
type implausibleFilter struct {
	o    *Outcome
	into *Implausible
	why  []string
}

func (d *implausibleFilter) note(format string, args ...any) {
	d.why = append(d.why, fmt.Sprintf(format, args...))
}

// checkNumber moves a number that isn't from 0 to the most that it can be.
func (d *implausibleFilter) checkNumber(from, to *live.Number, what, unit string, most float64) {
	v, known := from.Get()
	if !known || v >= 0 && v <= most {
		return
	}
	*to, *from = *from, live.Number{}
	d.note("%s %.4g %s, want 0 to %.4g", what, v, unit, most)
}

// checkTimes moves times that can't be, and returns how long the run lasted at most.
func (d *implausibleFilter) checkTimes() (lasted float64) {
	o := d.o
	for _, t := range []struct {
		what     string
		from, to *time.Time
	}{
		{"submitted", &o.Submitted, &d.into.Submitted},
		{"started", &o.Started, &d.into.Started},
		{"ended", &o.Ended, &d.into.Ended},
	} {
		if !t.from.IsZero() && (t.from.Before(earliestRun) || !t.from.Before(latestRun)) {
			d.note("%s in %d", t.what, t.from.Year())
			*t.to, *t.from = *t.from, time.Time{}
		}
	}
	if !o.Started.IsZero() && !o.Ended.IsZero() && o.Ended.Before(o.Started) {
		d.note("started %s after it ended", o.Started.Sub(o.Ended).Round(time.Second))
		d.into.Started, o.Started = o.Started, time.Time{}
	}
	span := MaxRunTime
	if !o.Started.IsZero() && !o.Ended.IsZero() {
		span = min(span, o.Ended.Sub(o.Started).Seconds()+spanSlack)
	}
	d.checkNumber(&o.TimeS, &d.into.TimeS, "time", "s", span)
	return o.TimeS.Or(span)
}

// checkEnergies moves the energies of a run that lasted so long on GPUs that draw so much.
// They are judged by its time: without one that can be, they are moved, too.
func (d *implausibleFilter) checkEnergies(lasted, power float64) {
	o, had := d.o, *d.o
	most := power * (lasted + energySlack)
	d.checkNumber(&o.GPUEnergyJ, &d.into.GPUEnergyJ, "GPU energy", "J", most)
	d.checkNumber(&o.NodeEnergyJ, &d.into.NodeEnergyJ, "node energy", "J",
		most+float64(MaxHostPower)*(lasted+energySlack))
	if _, timeless := d.into.TimeS.Get(); timeless {
		d.into.GPUEnergyJ, o.GPUEnergyJ = d.into.GPUEnergyJ.Else(o.GPUEnergyJ), live.Number{}
	}
	if _, gone := d.into.GPUEnergyJ.Get(); gone { // it is a part of the node's
		d.into.NodeEnergyJ, o.NodeEnergyJ = d.into.NodeEnergyJ.Else(o.NodeEnergyJ), live.Number{}
	}
	if o.GPUEnergyJ != had.GPUEnergyJ {
		d.into.GPUSource, o.GPUSource = had.GPUSource, Unmeasured
	}
	if o.NodeEnergyJ != had.NodeEnergyJ {
		d.into.NodeSource, o.NodeSource = had.NodeSource, Unmeasured
	}
}

// checkRestarted moves what is known of a run over a restart and can't be.
func (d *implausibleFilter) checkRestarted(power float64) {
	r, to := &d.o.Restarted, &d.into.Restarted
	d.checkNumber(&r.TimeS, &to.TimeS, "time", "s", MaxRunTime)
	most := r.TimeS.Or(MaxRunTime) + energySlack
	d.checkNumber(&r.GPUEnergyJ, &to.GPUEnergyJ, "GPU energy", "J", power*most)
	d.checkNumber(&r.NodeEnergyJ, &to.NodeEnergyJ, "node energy", "J", (power+float64(MaxHostPower))*most)
}

// checkStays moves all stays where they can't be of a run that lasted so long.
func (d *implausibleFilter) checkStays(lasted, power float64) {
	var s dvfsmodel.ClockResidency
	for i := range d.o.Stays {
		one := &d.o.Stays[i]
		s.Seconds, s.Energy = s.Seconds+one.Seconds, s.Energy+one.Energy
		s.Work, s.Rest, s.RestEnergy = max(s.Work, one.Work), max(s.Rest, one.Rest),
			max(s.RestEnergy, one.RestEnergy)
	}
	seconds, energy := lasted+energySlack, power*(lasted+energySlack)
	if s.Seconds <= seconds && s.Work <= seconds && s.Rest <= seconds && float64(s.Energy) <= energy &&
		float64(s.RestEnergy) <= energy {
		return
	}
	d.note("stays of %.4g s and %.4g J, want at most %.4g and %.4g", s.Seconds, float64(s.Energy),
		seconds, energy)
	d.into.Stays, d.o.Stays = d.o.Stays, nil
}

// withImplausible is the outcome with what was implausible of it.
func (o *Outcome) withImplausible() Outcome {
	p, sent := &o.Implausible, *o
	for _, n := range []struct{ to, from *live.Number }{
		{&sent.TimeS, &p.TimeS},
		{&sent.GPUEnergyJ, &p.GPUEnergyJ},
		{&sent.NodeEnergyJ, &p.NodeEnergyJ},
		{&sent.MeanPowerW, &p.MeanPowerW},
		{&sent.PeakPowerW, &p.PeakPowerW},
		{&sent.Utilisation, &p.Utilisation},
		{&sent.PeakMemoryBytes, &p.PeakMemoryBytes},
	} {
		*n.to = n.from.Else(*n.to)
	}
	if p.GPUSource != Unmeasured {
		sent.GPUSource = p.GPUSource
	}
	if p.NodeSource != Unmeasured {
		sent.NodeSource = p.NodeSource
	}
	for _, t := range []struct{ to, from *time.Time }{{&sent.Started, &p.Started}, {&sent.Ended, &p.Ended}} {
		if !t.from.IsZero() {
			*t.to = *t.from
		}
	}
	sent.Implausible = Implausible{}
	return sent
}
