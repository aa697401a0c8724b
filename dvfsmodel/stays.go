package dvfsmodel

import (
	"fmt"
	"math"
)

// ClockResidency sums up the time that a run was at one core clock, where its clock was
// stepped while it lasted. Times are seconds of the run, energies those of all its
// GPUs.
type ClockResidency struct {
	Core    MHz     `json:"core_mhz"`
	Seconds float64 `json:"seconds_s"`
	// Work is for how long something may have run on any of its GPUs: what the
	// driver had shown, and all of it where the driver showed nothing.
	Work   float64 `json:"work_s"`
	Energy Joule   `json:"energy_j"`
	// Rest is for how long nothing ran for sure, and RestEnergy what was drawn then.
	Rest       float64 `json:"rest_s"`
	RestEnergy Joule   `json:"rest_energy_j"`
	Begun      int     `json:"begun"` // times that it came to the clock
}

// ResidencySeconds is for how long a run was at the clocks of its stays together, seconds.
func ResidencySeconds(stays []ClockResidency) float64 {
	sum := 0.0
	for i := range stays {
		sum += stays[i].Seconds
	}
	return sum
}

// maxLastHidden is how many seconds of work a driver may fail to show each time that a
// clock is left: the rest of its sample period, which is at most a second, and what
// passes until the next clock is set.
const maxLastHidden = 1.2

// hiddenWait bounds how many seconds of work count as waiting because the driver failed
// to show them. Where in its sample period the clock is left is chance: over n
// times it comes to n/2 of the most, and √n more, over three standard deviations,
// bound it.
func (s *ClockResidency) hiddenWait() float64 {
	begun := float64(s.Begun)
	return min(s.Seconds-s.boundedWork(), maxLastHidden*min(begun, begun/2+math.Sqrt(begun)))
}

// boundedWork is Work, which rounding may have put above Seconds.
func (s *ClockResidency) boundedWork() float64 { return min(s.Work, s.Seconds) }

// Estimate is a quantity that isn't known exactly: what it most likely is, and the
// bounds that it is between.
type Estimate struct{ Guess, Low, High float64 }

// RelativeBound returns how far off the guess may be, as a part of it.
func (s Estimate) RelativeBound() float64 { return max(s.High-s.Guess, s.Guess-s.Low) / s.Guess }

// add adds another quantity, whose bounds add up too.
func (s *Estimate) add(guess, low, high float64) {
	s.Guess, s.Low, s.High = s.Guess+guess, s.Low+low, s.High+high
}

// EquivalentRun is what a run whose clock was stepped would have taken at one clock.
type EquivalentRun struct {
	Core   MHz
	Time   Estimate // seconds
	Energy Estimate // joules, of all its GPUs
}

// RelativeBound returns the larger one of those of time and energy.
func (u *EquivalentRun) RelativeBound() float64 {
	return max(u.Time.RelativeBound(), u.Energy.RelativeBound())
}

// NewEquivalentRun returns what a run that took so many seconds would have taken, had its clock
// stayed the same. Of the clocks that it was at, it answers for the one with the
// least doubt. Time that no stay covers counts as if it had been spent at that clock.
//
// Work and waiting are told apart, as clocks are low while a job waits: how long
// it waits doesn't depend on the clock, and what it draws then is known of each
// clock at which it rested. Work that was done at another clock is bounded
// whatever kind of work it was: between two clocks its time changes by no more
// than their ratio, and its power by no more than the cube of that. So nothing
// is taken from the phases at one clock for those at another, and a run that was
// at work at many clocks says little: its doubt is large.
func NewEquivalentRun(stays []ClockResidency, seconds float64) (*EquivalentRun, error) {
	var best *EquivalentRun
	for i := range stays {
		if err := stays[i].Validate(); err != nil {
			return nil, err
		}
	}
	for i := range stays {
		u := equivalentRunAt(stays, i, seconds)
		if u.isPossible() && (best == nil || u.RelativeBound() < best.RelativeBound()) {
			best = u
		}
	}
	if best == nil {
		return nil, &SampleError{
			Settings: len(stays), Reason: "no clock at which a run was for some time and drew something",
		}
	}
	return best, nil
}

// Validate reports a [SampleError] for numbers that can't be.
func (s *ClockResidency) Validate() error {
	for _, x := range [...]float64{s.Seconds, s.Work, float64(s.Energy), s.Rest, float64(s.RestEnergy)} {
		if !(x >= 0) || math.IsInf(x, 0) {
			return &SampleError{Reason: fmt.Sprintf("at %g MHz %v, want finite numbers from 0",
				float64(s.Core), x)}
		}
	}
	if !isPositive(float64(s.Core)) || s.Begun < 0 {
		return &SampleError{Reason: fmt.Sprintf("a clock of %g MHz, begun %d times",
			float64(s.Core), s.Begun)}
	}
	return nil
}

// isPossible reports whether all numbers are finite and above 0.
func (u *EquivalentRun) isPossible() bool {
	return isPositive(u.Time.Low) && isPositive(u.Time.High) && isPositive(u.Energy.Low) &&
		isPositive(u.Energy.High) &&
		isPositive(u.Time.Guess) && isPositive(u.Energy.Guess)
}

// minRest is for how long a run must have rested at a clock for its power then
// to be known, in seconds.
const minRest = 2

// maxPowerRatio returns the highest ratio of powers of a GPU that does the same at two clocks:
// voltage falls no faster than the clock.
func maxPowerRatio(ratio float64) float64 { return ratio * ratio * ratio }

// restPowerAt returns the power, watts, that a run draws while nothing runs on it at the
// clock of the k-th stay. Where that wasn't measured it is bounded by what it drew
// at rest at other clocks, as a lower clock never draws more, and by its mean power
// at this one.
func restPowerAt(stays []ClockResidency, k int) Estimate {
	at := &stays[k]
	if w := at.measuredRestPower(); w > 0 {
		return Estimate{w, w, w}
	}
	r := Estimate{High: math.Inf(1)}
	if at.Seconds > 0 {
		r.High = float64(at.Energy) / at.Seconds
	}
	for i := range stays {
		w, ratio := stays[i].measuredRestPower(), float64(at.Core/stays[i].Core)
		switch {
		case w == 0:
		case ratio < 1:
			r.Low, r.High = max(r.Low, w*maxPowerRatio(ratio)), min(r.High, w)
		default:
			r.Low, r.High = max(r.Low, w), min(r.High, w*maxPowerRatio(ratio))
		}
	}
	r.Low = min(r.Low, r.High)
	r.Guess = (r.Low + r.High) / 2
	return r
}

// measuredRestPower returns what a run was seen to draw while it rested at the clock, watts; 0
// where that was too short to tell.
func (s *ClockResidency) measuredRestPower() float64 {
	if s.Rest < minRest {
		return 0
	}
	return float64(s.RestEnergy) / s.Rest
}

// equivalentRunAt returns the run at the i-th of its clocks.
func equivalentRunAt(stays []ClockResidency, i int, seconds float64) *EquivalentRun {
	u := &EquivalentRun{Core: stays[i].Core, Time: Estimate{seconds, seconds, seconds}}
	here := restPowerAt(stays, i)
	for k := range stays {
		s := &stays[k]
		if k == i || s.Seconds == 0 {
			e := float64(s.Energy)
			u.Energy.add(e, e, e)
			continue
		}
		u.addWork(s)
		u.addEnergy(s, restPowerAt(stays, k), here)
	}
	if told := ResidencySeconds(stays); told > 0 { // of the rest of the time nobody knows more
		scale := max(1, seconds/told)
		u.Energy = Estimate{u.Energy.Guess * scale, u.Energy.Low * scale, u.Energy.High * scale}
	}
	return u
}

// addWork adds the seconds that the work of a stay would have taken more at the
// run's clock. Its time may change by anything from nothing to the ratio of the
// clocks; the guess is half of that.
func (u *EquivalentRun) addWork(s *ClockResidency) {
	work, most := s.boundedWork(), float64(s.Core/u.Core)-1
	u.Time.add(work*most/2, (work+s.hiddenWait())*min(0, most), (work+s.hiddenWait())*max(0, most))
}

// addEnergy adds the joules that a stay would have taken at the run's clock. There
// and here are what the run draws while it waits, at the stay's clock and at the
// run's. The rest is work, whose energy changes by a factor between 1/ratio and
// ratio³ of the clocks; the guess is the ratio, half-way between in the logarithm.
// Work that the driver failed to show may be part of what counts as waiting.
func (u *EquivalentRun) addEnergy(s *ClockResidency, there, here Estimate) {
	ratio, waits := float64(u.Core/s.Core), s.Seconds-s.boundedWork()
	sure := waits - s.hiddenWait()
	least, most := 1/ratio, maxPowerRatio(ratio)
	if ratio < 1 {
		least, most = most, least
	}
	moved := func(waits, here, there, factor float64) float64 {
		return waits*here + max(0, float64(s.Energy)-waits*there)*factor
	}
	u.Energy.add(
		moved(waits, here.Guess, there.Guess, ratio),
		min(moved(waits, here.Low, there.High, least), moved(sure, here.Low, there.High, least)),
		max(moved(waits, here.High, there.Low, most), moved(sure, here.High, there.Low, most)))
}
