package colocate

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// Slots is how many slots a profile's series have, whatever the run time.
const Slots = record.MaxProfilePoints

// MaxRuns is how many runs a profile rests on at most, the last ones.
const MaxRuns = 8

// minCoverage is the part of a run that must have been sampled for it to count.
const minCoverage = 0.9

// Rules say what counts as known, and what sharing may cost.
type Rules struct {
	Runs int `json:"runs"` // a profile rests on at least so many runs
	// And its interval is at most so wide to each side: utilisation, or part of the run
	// time.
	Spread   float64 `json:"spread"`
	Slowdown float64 `json:"slowdown"` // how many times its time alone a job may take
}

// SoloRun is one run that had its GPUs alone, from start to end.
type SoloRun struct {
	TimeS    float64 // seconds
	Slowdown float64 // against default clocks; 1 at those
	Profile  *record.Profile
}

// Interval is a mean with the interval in which the next run's value is expected,
// 90 %; without one where there are fewer than two runs.
type Interval struct {
	Mean float64     `json:"mean"`
	Low  live.Number `json:"low"`
	High live.Number `json:"high"`
}

// UseProfile is what a workload does by itself on GPUs of one model, by slots of its
// run time at default clocks. Series are from 0 to 1, the mean over its GPUs.
type UseProfile struct {
	Runs     int       `json:"runs"`
	Unknown  string    `json:"unknown,omitempty"` // why it isn't known; empty: it is
	TimeS    Interval  `json:"time_s"`
	PeakMem  Interval  `json:"peak_memory_bytes"` // on the GPU that uses most
	MemTotal int64     `json:"memory_bytes"`      // of each GPU; 0: not known
	Mean     []float64 `json:"utilisation"`
	Low      []float64 `json:"utilisation_low,omitempty"`
	High     []float64 `json:"utilisation_high,omitempty"`
	Phases   []Phase   `json:"phases"`

	runs [][]float64 // the runs' own series
}

// Learn makes runs of a workload into its profile. The newest come first; those
// of which too little was sampled don't count.
func Learn(runs []SoloRun, rules *Rules) *UseProfile {
	p := &UseProfile{}
	var times, peaks []float64
	for i := range runs {
		r := &runs[i]
		series := alignedSeries(r)
		if series == nil || p.Runs == MaxRuns {
			continue
		}
		p.Runs++
		p.runs = append(p.runs, series)
		times = append(times, r.TimeS/max(1, r.Slowdown))
		peak := int64(-1)
		for k := range r.Profile.GPUs {
			g := &r.Profile.GPUs[k]
			peak = max(peak, g.PeakMem)
			if g.MemTotal > 0 && (p.MemTotal == 0 || g.MemTotal < p.MemTotal) {
				p.MemTotal = g.MemTotal
			}
		}
		if peak >= 0 {
			peaks = append(peaks, float64(peak))
		}
	}
	if p.Runs == 0 {
		p.Unknown = "no run of it had its GPUs alone from start to end"
		return p
	}
	p.TimeS, p.PeakMem = newInterval(times), newInterval(peaks)
	p.fillBand()
	p.Phases = splitPhases(p.Mean)
	p.Unknown = p.unknownReason(rules, len(peaks))
	return p
}

// fillBand works out the mean and the band of the runs' series.
func (p *UseProfile) fillBand() {
	column := make([]float64, p.Runs)
	for slot := range Slots {
		for i, series := range p.runs {
			column[i] = series[slot]
		}
		at := newInterval(column)
		p.Mean = append(p.Mean, at.Mean)
		low, known := at.Low.Get()
		if high, _ := at.High.Get(); known {
			p.Low, p.High = append(p.Low, max(0, low)), append(p.High, min(1, high))
		}
	}
}

// unknownReason says why the profile isn't known; empty: it is.
func (p *UseProfile) unknownReason(rules *Rules, peaks int) string {
	if p.Runs < max(2, rules.Runs) {
		return fmt.Sprintf("%d of %d runs that had their GPUs alone", p.Runs, max(2, rules.Runs))
	}
	wide := 0.0
	for slot := range p.Low {
		wide += (p.High[slot] - p.Low[slot]) / 2 / float64(len(p.Low))
	}
	switch high := p.TimeS.High.Or(math.Inf(1)); {
	case peaks < p.Runs || p.MemTotal == 0:
		return "its memory wasn't measured"
	case wide > rules.Spread:
		return fmt.Sprintf("its runs differ: utilisation to within %.2f, want %.2f", wide, rules.Spread)
	case high-p.TimeS.Mean > rules.Spread*p.TimeS.Mean:
		return fmt.Sprintf("its runs differ: run time to within %.0f %%, want %.0f %%",
			100*(high/p.TimeS.Mean-1), 100*rules.Spread)
	}
	return ""
}

// newInterval returns the mean of values and the interval of the next one, by Student's
// distribution; the zero value of none.
func newInterval(values []float64) Interval {
	if len(values) == 0 {
		return Interval{}
	}
	mean, deviation := stat.MeanStdDev(values, nil)
	if len(values) == 1 {
		return Interval{Mean: values[0]}
	}
	n := float64(len(values))
	const upper = 0.95
	half := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(upper) * deviation * math.Sqrt(1+1/n)
	return Interval{Mean: mean, Low: live.Known(max(0, mean-half)), High: live.Known(mean + half)}
}

// alignedSeries returns a run's utilisation by slots of its run time, the mean over its
// GPUs; nil where it wasn't sampled well enough.
func alignedSeries(r *SoloRun) []float64 {
	if !(r.TimeS > 0) || math.IsInf(r.TimeS, 0) || r.Profile == nil || len(r.Profile.GPUs) == 0 {
		return nil
	}
	sum := make([]float64, Slots)
	for i := range r.Profile.GPUs {
		series := resample(&r.Profile.GPUs[i].Utilisation, r.TimeS)
		if series == nil {
			return nil
		}
		for slot, u := range series {
			sum[slot] += u / float64(len(r.Profile.GPUs))
		}
	}
	return sum
}

// resample returns a series over so many seconds in slots. Slots in which nothing was
// sampled are as the one before, or the next; nil where there are too many.
func resample(s *record.Series, seconds float64) []float64 {
	step := s.Interval().Seconds()
	if step <= 0 || s.Len() == 0 {
		return nil
	}
	out := make([]float64, Slots)
	have := make([]bool, Slots)
	slot := seconds / Slots
	known := 0
	for k := range out {
		from, to := float64(k)*slot, float64(k+1)*slot
		sum, weight := 0.0, 0.0
		for i := int(from / step); i < s.Len() && float64(i)*step < to; i++ {
			if u, ok := s.At(i).Get(); ok {
				part := min(to, float64(i+1)*step) - max(from, float64(i)*step)
				sum, weight = sum+u*part, weight+part
			}
		}
		if have[k] = weight > 0; have[k] {
			out[k] = sum / weight
			known++
		}
	}
	if float64(known) < minCoverage*Slots {
		return nil
	}
	fillGaps(out, have)
	return out
}

// fillGaps fills what isn't there with the value before, or the next one.
func fillGaps(values []float64, have []bool) {
	last := values[max(0, slices.Index(have, true))]
	for i := range values {
		if have[i] {
			last = values[i]
		}
		values[i] = last
	}
}

// Phase is a part of a run with high, or with low, utilisation.
type Phase struct {
	From        float64 `json:"from"` // part of the run time
	To          float64 `json:"to"`
	Utilisation float64 `json:"utilisation"`
}

// minVariation is by how much a series must vary to have phases.
const minVariation = 0.2

// splitPhases cuts a series where it crosses the middle between its least and its
// greatest value. One that hardly varies is one phase.
func splitPhases(series []float64) []Phase {
	low, high := slices.Min(series), slices.Max(series)
	middle := (low + high) / 2
	var list []Phase
	begin := 0
	for i := 1; i <= len(series); i++ {
		if i < len(series) && (high-low < minVariation || (series[i] > middle) == (series[begin] > middle)) {
			continue
		}
		n := float64(len(series))
		list = append(list, Phase{float64(begin) / n, float64(i) / n, stat.Mean(series[begin:i], nil)})
		begin = i
	}
	return list
}
