package pooled

import (
	"fmt"
	"math"

	"github.com/epplan/epplan/dvfsmodel"
)

// KnownWorkload is a known workload.
type KnownWorkload struct {
	// Predict are the seconds, and the watts of one GPU, that a run takes at clocks.
	Predict     func(at dvfsmodel.Setting) (seconds float64, power dvfsmodel.Watt)
	Uncertainty *dvfsmodel.Uncertainty // how far off that may be; nil: not known, or measured
}

// MinKnown is how many workloads of a GPU model it takes to say anything of the next
// one: with fewer, what a bound says is hardly more than that it is wide.
const MinKnown = 5

// UnseenWorkload is how a workload responds to clocks of which nothing is known but what it
// takes at default clocks, where others on the same GPU model are known: for 1 s and
// 1 W there. It takes the time that 19 of 20 such workloads don't exceed, and no less
// than at default clocks; and the energy that is expected of them. So nobody who waits
// for its end is told too early.
//
// The logarithms of what a run takes over what it takes at default clocks are taken as
// normal, with mean and variance of the known workloads. The next one is within Student's
// prediction interval. Other GPU models aren't looked at: what is learnt of workloads on
// them alone says nothing of how much clocks save on this one. On the measured tables,
// each GPU model left out in turn, it was off by 18 points to one side (GTX 980) and 22
// to the other (A100).
type UnseenWorkload struct {
	known []KnownWorkload
	own   []dvfsmodel.Sample // of each, at default clocks
	base  dvfsmodel.Setting
	wrong float64 // standard deviation of ln energy by which what is known of all is off together
}

// together is the part of the models' errors that those of one GPU model have in common.
// On the measured tables fits of half the workloads were off in the mean by .05 to .6 of
// what each was off by.
const together = 0.5

var _ dvfsmodel.Model = (*UnseenWorkload)(nil)

// NewUnseenWorkload learns from workloads on one GPU model with these default clocks. It is an
// error to give fewer than [MinKnown], or one that takes no time or power there.
func NewUnseenWorkload(known []KnownWorkload, base dvfsmodel.Setting) (*UnseenWorkload, error) {
	if len(known) < MinKnown {
		return nil, fmt.Errorf("%d known workloads, want at least %d", len(known), MinKnown)
	}
	u := &UnseenWorkload{known: known, own: make([]dvfsmodel.Sample, len(known)), base: base}
	for i, w := range known {
		s := dvfsmodel.Sample{Core: base.Core, Mem: base.Mem}
		s.Time, s.Power = w.Predict(base)
		if !(s.Time > 0 && s.Power > 0) || math.IsInf(s.Time*float64(s.Power), 1) {
			return nil, fmt.Errorf("a known workload takes %v s and %v W at default clocks, want "+
				"positive numbers", s.Time, s.Power)
		}
		u.own[i] = s
		if w.Uncertainty != nil {
			u.wrong += (sq(w.Uncertainty.Level.Time) + sq(w.Uncertainty.Level.Power)) / float64(len(known))
		}
	}
	u.wrong = together * math.Sqrt(u.wrong)
	return u, nil
}

// logMoments are mean and standard deviation of a logarithm over the known workloads.
type logMoments struct{ mean, sd float64 }

// momentsAt returns the moments of ln time and ln energy over those at default clocks.
func (u *UnseenWorkload) momentsAt(fc, fm float64) (time, energy logMoments) {
	n := float64(len(u.known))
	pair := dvfsmodel.Setting{Core: dvfsmodel.MHz(fc) * u.base.Core, Mem: dvfsmodel.MHz(fm) * u.base.Mem}
	if fc == 1 && fm == 1 {
		return time, energy
	}
	for i, w := range u.known {
		seconds, power := w.Predict(pair)
		t := math.Log(seconds / u.own[i].Time)
		e := t + math.Log(float64(power/u.own[i].Power))
		time.add(t, i)
		energy.add(e, i)
	}
	time.sd, energy.sd = math.Sqrt(time.sd/(n-1)), math.Sqrt(energy.sd/(n-1))
	return time, energy
}

// add takes account of the i-th value: sd is the sum of squares around the mean until
// the last one (Welford).
func (m *logMoments) add(x float64, i int) {
	off := x - m.mean
	m.mean += off / float64(i+1)
	m.sd += off * (x - m.mean)
}

// Time returns how long 19 of 20 workloads run at most that take 1 s at default clocks.
func (u *UnseenWorkload) Time(fc, fm float64) float64 {
	time, _ := u.momentsAt(fc, fm)
	n := float64(len(u.known))
	return max(1, math.Exp(time.mean+u.sigmas()*time.sd*math.Sqrt(1+1/n)))
}

// Power returns the expected energy over [UnseenWorkload.Time].
func (u *UnseenWorkload) Power(s dvfsmodel.Scaling) dvfsmodel.Watt {
	_, energy := u.momentsAt(s.Fc, s.Fm)
	return dvfsmodel.Watt(math.Exp(energy.mean+sq(energy.sd)/2) / u.Time(s.Fc, s.Fm))
}

// sigmas returns the standard deviations to the upper bound.
func (u *UnseenWorkload) sigmas() float64 {
	return dvfsmodel.UpperSigmas * dvfsmodel.StudentWidening(len(u.known)-1)
}

// CommonUncertainty is by how much the energies of all unseen workloads are off together: the
// error of the mean, and that of the models.
func (u *UnseenWorkload) CommonUncertainty() *dvfsmodel.Uncertainty {
	return u.newUncertainty(1/math.Sqrt(float64(len(u.known))), u.wrong)
}

// OwnUncertainty is by how much the energy of one unseen workload is off beside that: a Doubt of
// its own at each call.
func (u *UnseenWorkload) OwnUncertainty() *dvfsmodel.Uncertainty { return u.newUncertainty(1, 0) }

// newUncertainty is of so many standard deviations of a known workload's energy, and another one.
func (u *UnseenWorkload) newUncertainty(part, wrong float64) *dvfsmodel.Uncertainty {
	part *= dvfsmodel.StudentWidening(len(u.known) - 1)
	return &dvfsmodel.Uncertainty{Clocks: func(s dvfsmodel.Scaling) dvfsmodel.Deviation {
		_, energy := u.momentsAt(s.Fc, s.Fm)
		return dvfsmodel.Deviation{Power: math.Hypot(part*energy.sd, wrong)}
	}}
}
