package predict

import (
	"context"
	"fmt"
	"math"

	"github.com/epplan/epplan/internal/predict/boost"
)

const (
	drifting      = 0.3  // weight of the latest deviation in a drift
	scattering    = 0.02 // and in the scatter
	fewRuns       = 2.0  // as many runs as the scatter counts for
	leastScale    = 1e-4 // logarithm
	mostDeviation = 5.0  // scales: larger deviations are taken for this one
	mostLearnt    = 3.0  // scales, of deviations that drifts are made of

	leastRepeats  = 100   // that deviations are fitted to
	deviationRows = 200.0 // of no deviation, that each slope of their line is judged with
	deviationPart = 0.5   // of the features that one of their trees may ask for
)

// repeat is what is known of a job that was run before: what its runs usually took,
// and what may have to do with how far the next one is from that. How far is counted
// in scales: how far its runs are from each other.
type repeat struct {
	usual, scale float64 // logarithms
	steady       bool    // several runs that differ little
	features     []float64
}

// drift is how far jobs that share a key, and were run before, lately were from what
// was usual of them: another machine, a warmer room, neighbours, new input.
type drift struct {
	last, smooth             float64 // logarithms
	lastScales, smoothScales float64 // in scales
	end                      float64 // s, when the last one was submitted
}

// driftRespects are those in which drifts are remembered, for each label two.
func driftRespects(labels int) []int {
	out := append(make([]int, 0, 2+2*labels), byNothing, byOwner)
	for i := range labels {
		out = append(out, respects+labelRespects*i, respects+labelRespects*i+2)
	}
	return out
}

const (
	runTerms   = 7 // of the line, those on runs
	driftTerms = 4 // for each drift
)

// deviationTerms is how many features the line of deviations has; they come first.
func deviationTerms(j *Job) int { return runTerms + driftTerms*(2+2*len(j.Labels)) }

// repeat tells what is known of the job at hand, which was run before; nil where it
// was not.
func (m *memory) repeat(j *Job, s situation) *repeat {
	if s[0] > bySize {
		return nil
	}
	t, anyTime := m.tracks.track(m.keys[s[0]], &m.spares[0]), m.tracks.track(m.keys[bySize], &m.spares[1])
	n := float64(len(t.ring))
	r := &repeat{usual: t.usual(), steady: t.alike(), scale: max(leastScale, (n*t.spread()+fewRuns*m.scatter)/(n+fewRuns))}
	drifts := driftRespects(len(j.Labels))
	x := make([]float64, 0, deviationTerms(j)+len(j.Conditions)+4+len(drifts))
	for _, v := range [runTerms]float64{t.back(0), t.back(1), t.back(2), t.smooth, t.middle(), t.recent(), anyTime.usual()} {
		x = append(x, r.scales(v-r.usual))
	}
	for _, k := range drifts {
		d := m.drifts[m.keys[k]]
		if d == nil {
			d = &unknownDrift
		}
		x = append(x, r.scales(d.last), r.scales(d.smooth), d.lastScales, d.smoothScales)
	}
	x = append(x, j.Conditions...)
	x = append(x, math.Log(r.scale), math.Log1p(float64(t.count)), math.Log1p(max(0, j.Submit-t.last)), t.completed)
	for _, k := range drifts {
		if d := m.drifts[m.keys[k]]; d != nil {
			x = append(x, math.Log1p(max(0, j.Submit-d.end)))
		} else {
			x = append(x, math.NaN())
		}
	}
	r.features = x
	return r
}

var unknownDrift = drift{last: math.NaN(), smooth: math.NaN(), lastScales: math.NaN(), smoothScales: math.NaN()}

// scales is a deviation in scales, within bounds.
func (r *repeat) scales(v float64) float64 {
	return max(-mostDeviation, min(mostDeviation, v/r.scale)) // NaN remains one
}

// drift learns how far the job at hand, which ended, was from what was usual of it.
func (m *memory) drift(t *Ticket) {
	r := t.repeat
	if r == nil {
		return
	}
	scales := max(-mostLearnt, min(mostLearnt, (t.truth-r.usual)/r.scale))
	v := scales * r.scale
	m.scatter += scattering * (math.Abs(v) - m.scatter)
	for _, k := range driftRespects(len(t.Job.Labels)) {
		d := m.drifts[m.keys[k]]
		if d == nil {
			d = &drift{}
			m.drifts[m.keys[k]] = d
		}
		d.last, d.lastScales, d.end = v, scales, t.Job.Submit
		d.smooth += drifting * (v - d.smooth)
		d.smoothScales += drifting * (scales - d.smoothScales)
	}
}

// deviations say how far the next run of a job is from what is usual of it.
type deviations struct {
	trees *boost.Model
	line  *line
}

// fitDeviations fits to the repeats among jobs; nil where there are too few.
func fitDeviations(ctx context.Context, rows []*Ticket, s boost.Settings) (*deviations, error) {
	var x [][]float64
	var y, w []float64
	for _, t := range rows {
		if r := t.repeat; r != nil {
			x, y, w = append(x, r.features), append(y, r.scales(t.truth-r.usual)), append(w, 1)
		}
	}
	if len(x) < leastRepeats {
		return nil, nil //nolint:nilnil // no repeats, no deviations
	}
	s.Features = deviationPart
	d := &deviations{}
	var err error
	if d.trees, err = boost.Fit(x, y, w, s, ctx.Err); err != nil {
		return nil, fmt.Errorf("fitting trees to deviations of %d jobs: %w", len(x), err)
	}
	if d.line, err = fitLine(x, y, w, deviationTerms(rows[0].Job), deviationRows); err != nil {
		return nil, err
	}
	return d, nil
}

// guess fills in what is expected of a job that was run before.
func (d *deviations) guess(t *Ticket) {
	g := &t.guesses
	g[guessDeviationTrees], g[guessDeviationLine] = g[guessUsual], g[guessUsual]
	if d != nil && t.repeat != nil {
		g[guessDeviationTrees] += t.repeat.scale * d.trees.Predict(t.repeat.features)
		g[guessDeviationLine] += t.repeat.scale * d.line.value(t.repeat.features)
	}
	g[guessDeviation] = (g[guessDeviationTrees] + g[guessDeviationLine]) / 2
}
