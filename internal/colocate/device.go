package colocate

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/sharing"
)

// JobUse is a job's use of a GPU from a moment on.
type JobUse struct {
	Profile *UseProfile
	DoneS   float64 // how much of its time at default clocks it has behind it
	Rate    float64 // of its time at default clocks that passes in a second
	// Kappa is how many times its time alone the rest may take: what the rules
	// allow, or its time limit.
	Kappa float64
}

// GPU is what shared GPUs of a model draw, and how jobs on one slow each other down.
type GPU struct {
	Physics sharing.Physics
	IdleW   float64 // with nothing on it
	// Curve is what sharing was measured to cost; nil: a slot with 140 % of work
	// takes 1.4 slots.
	Curve *sharing.Curve
}

// memoryShare returns the part of a GPU's memory that jobs may take, 0 to 1.
func memoryShare(all []futureUse) float64 {
	need, total := memoryNeed(all)
	if need < total {
		return need / total
	}
	return 1
}

// ownSlotS returns how long a slot of the job's own run time is, in seconds.
func (u *JobUse) ownSlotS() float64 { return u.Profile.TimeS.Mean / Slots }

// maxRunCombinations is how many combinations of the recorded runs of those who share a
// GPU are looked at.
const maxRunCombinations = 64

// colocation is how a job does beside others on one GPU.
type colocation struct {
	fits        bool
	why         string  // why not
	risesW      float64 // power with it less power without
	correlation float64
	slowdown    float64
}

// futureUse is what a job does from now on, by slots of the time that the one that
// is to be placed takes: percent, in each of its recorded runs and in their mean.
type futureUse struct {
	*JobUse
	runs [][]float64
	mean []float64
}

func (u *JobUse) outlookOver(slotS float64) futureUse {
	o := futureUse{
		JobUse: u, runs: make([][]float64, len(u.Profile.runs)), mean: u.futureSeries(u.Profile.Mean, slotS),
	}
	for i, series := range u.Profile.runs {
		o.runs[i] = u.futureSeries(series, slotS)
	}
	return o
}

// judgeColocation judges a job that starts beside others on a GPU. All are known.
func (g *GPU) judgeColocation(job *futureUse, others []futureUse) colocation {
	v := colocation{risesW: -g.IdleW}
	if len(others) > 0 {
		mhz, _, _ := g.lowestClock(others)
		v.risesW = -g.Physics.PowerAt(mhz)
		v.correlation = correlation(job, others)
	}
	all := append([]futureUse{*job}, others...)
	mhz, overload, ok := g.lowestClock(all)
	v.risesW += g.Physics.PowerAt(mhz)
	v.slowdown = overload * g.Physics.Stretch(mhz)
	switch short := memoryShortage(all); {
	case len(others) == 0:
		v.fits = true
	case short > 0:
		v.why = fmt.Sprintf("%.1f GB of memory too little", short/(1<<30))
	case !ok:
		v.why = fmt.Sprintf("%.2f times the time alone", overload)
	default:
		v.fits = true
	}
	return v
}

// memoryShortage is by how many bytes jobs may exceed a GPU's memory.
func memoryShortage(all []futureUse) float64 {
	need, total := memoryNeed(all)
	return max(0, need-total)
}

// memoryNeed returns how many bytes jobs may take together, and how many their GPU has.
func memoryNeed(all []futureUse) (need, total float64) {
	total = math.Inf(1)
	for i := range all {
		p := all[i].Profile
		need += p.PeakMem.High.Or(math.Inf(1))
		total = min(total, float64(p.MemTotal))
	}
	return need, total
}

// lowestClock returns the lowest level at which all jobs keep their slowdown, in the worst
// combination of their recorded runs, and how many times longer that takes at
// the highest one.
func (g *GPU) lowestClock(all []futureUse) (mhz dvfsmodel.MHz, overload float64, ok bool) {
	kappa, draws := math.Inf(1), 1
	for i := range all {
		kappa = min(kappa, all[i].Kappa)
		draws = min(maxRunCombinations, draws*len(all[i].runs))
	}
	curve := sharing.LinearCurve()
	if g.Curve != nil {
		curve = *g.Curve
	}
	load := make([]float64, Slots)
	for draw := range draws {
		clear(load)
		rest := draw
		for i := range all {
			runs := all[i].runs
			floats.Add(load, runs[rest%len(runs)])
			rest /= len(runs)
		}
		overload = max(overload,
			curve.Slowdown(sharing.Occupancy{LoadPct: load, Tasks: len(all), Memory: memoryShare(all)}))
	}
	mhz, ok = g.Physics.LowestLevel(max(1, overload), kappa)
	return mhz, overload, ok
}

// correlation is that of a job's utilisation with the sum of the others', in the
// mean of their runs.
func correlation(job *futureUse, others []futureUse) float64 {
	sum := make([]float64, Slots)
	for i := range others {
		floats.Add(sum, others[i].mean)
	}
	return sharing.Pearson(job.mean, sum).OrZero()
}

// futureSeries returns a series of the job's profile from now on, in percent by slot.
func (u *JobUse) futureSeries(series []float64, slotS float64) []float64 {
	scale := float64(len(series)) / u.Profile.TimeS.Mean
	out := make([]float64, Slots)
	for k := range out {
		from := (u.DoneS + float64(k)*slotS*u.Rate) * scale
		out[k] = 100 * meanBetween(series, from, from+slotS*u.Rate*scale)
	}
	return out
}

// meanBetween returns the mean of a series between two places in it, in slots; beyond its
// end it is 0.
func meanBetween(series []float64, from, to float64) float64 {
	if !(to > from) || from < 0 {
		return 0
	}
	sum := 0.0
	for i := int(min(from, float64(len(series)))); i < len(series) && float64(i) < to; i++ {
		sum += series[i] * (min(to, float64(i+1)) - max(from, float64(i)))
	}
	return sum / (to - from)
}
