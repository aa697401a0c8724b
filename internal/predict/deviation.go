package predict

import (
	"context"
	"fmt"
	"math"

	"github.com/epplan/epplan/internal/predict/boost"
)

const (
	driftWeight        = 0.3  // weight of the latest deviation in a drift
	scatterWeight      = 0.02 // and in the scatter
	scatterPriorRuns   = 2.0  // as many runs as the scatter counts for
	minScale           = 1e-4 // logarithm
	maxDeviation       = 5.0  // scales: larger deviations are taken for this one
	maxLearntDeviation = 3.0  // scales, of deviations that drifts are made of

	minRepeats            = 100   // that deviations are fitted to
	deviationRidge        = 200.0 // of no deviation, that each slope of their line is judged with
	deviationFeatureShare = 0.5   // of the features that one of their trees may ask for
)

// repeatStats is what is known of a job that was run before: what its runs usually took,
// and what may have to do with how far the next one is from that. How far is counted
// in scales: how far its runs are from each other.
type repeatStats struct {
	usual, scale float64 // logarithms
	steady       bool    // several runs that differ little
	features     []float64
}

// keyDrift is how far jobs that share a key, and were run before, lately were from what
// was usual of them: another machine, a warmer room, neighbours, new input.
type keyDrift struct {
	last, smooth             float64 // logarithms
	lastScales, smoothScales float64 // in scales
	end                      float64 // s, when the last one was submitted
}

// driftKeys returns those in which drifts are remembered, for each label two.
func driftKeys(labels int) []int {
	out := append(make([]int, 0, 2+2*labels), byAnyJob, byOwner)
	for i := range labels {
		out = append(out, keyCount+keysPerLabel*i, keyCount+keysPerLabel*i+2)
	}
	return out
}

const (
	runTerms   = 7 // of the line, those on runs
	driftTerms = 4 // for each drift
)

// deviationTerms returns how many features the line of deviations has; they come first.
func deviationTerms(j *Features) int { return runTerms + driftTerms*(2+2*len(j.Labels)) }

// repeatStatsOf tells what is known of the job at hand, which was run before; nil where it
// was not.
func (m *memory) repeatStatsOf(j *Features, s situation) *repeatStats {
	if s[0] > bySize {
		return nil
	}
	t, anyTime := m.tracks.track(m.keys[s[0]], &m.scratch[0]), m.tracks.track(m.keys[bySize], &m.scratch[1])
	n := float64(len(t.ring))
	r := &repeatStats{
		usual: t.trimmedMean(), steady: t.isSteady(), scale: max(minScale,
			(n*t.spread()+scatterPriorRuns*m.scatter)/(n+scatterPriorRuns)),
	}
	drifts := driftKeys(len(j.Labels))
	x := make([]float64, 0, deviationTerms(j)+len(j.Conditions)+4+len(drifts))
	for _, v := range [runTerms]float64{
		t.valueBack(0), t.valueBack(1), t.valueBack(2), t.smooth, t.median(),
		t.recentMedian(), anyTime.trimmedMean(),
	} {
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
	x = append(x, math.Log(r.scale), math.Log1p(float64(t.count)),
		math.Log1p(max(0, j.Submit-t.last)), t.completed)
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

var unknownDrift = keyDrift{
	last: math.NaN(), smooth: math.NaN(), lastScales: math.NaN(), smoothScales: math.NaN(),
}

// scales returns a deviation in scales, within bounds.
func (r *repeatStats) scales(v float64) float64 {
	return max(-maxDeviation, min(maxDeviation, v/r.scale)) // NaN remains one
}

// learnDrift learns how far the job at hand, which ended, was from what was usual of it.
func (m *memory) learnDrift(t *PendingJob) {
	r := t.repeat
	if r == nil {
		return
	}
	scales := max(-maxLearntDeviation, min(maxLearntDeviation, (t.truth-r.usual)/r.scale))
	v := scales * r.scale
	m.scatter += scatterWeight * (math.Abs(v) - m.scatter)
	for _, k := range driftKeys(len(t.Job.Labels)) {
		d := m.drifts[m.keys[k]]
		if d == nil {
			d = &keyDrift{}
			m.drifts[m.keys[k]] = d
		}
		d.last, d.lastScales, d.end = v, scales, t.Job.Submit
		d.smooth += driftWeight * (v - d.smooth)
		d.smoothScales += driftWeight * (scales - d.smoothScales)
	}
}

// deviations say how far the next run of a job is from what is usual of it.
type deviations struct {
	trees *boost.Model
	line  *linearModel
}

// fitDeviations fits to the repeats among jobs; nil where there are too few.
func fitDeviations(ctx context.Context, rows []*PendingJob, s boost.Settings) (*deviations, error) {
	var x [][]float64
	var y, w []float64
	for _, t := range rows {
		if r := t.repeat; r != nil {
			x, y, w = append(x, r.features), append(y, r.scales(t.truth-r.usual)), append(w, 1)
		}
	}
	if len(x) < minRepeats {
		return nil, nil //nolint:nilnil // no repeats, no deviations
	}
	s.Features = deviationFeatureShare
	d := &deviations{}
	var err error
	if d.trees, err = boost.Fit(x, y, w, s, ctx.Err); err != nil {
		return nil, fmt.Errorf("fitting trees to deviations of %d jobs: %w", len(x), err)
	}
	if d.line, err = fitLinear(x, y, w, deviationTerms(rows[0].Job), deviationRidge); err != nil {
		return nil, err
	}
	return d, nil
}

// guess fills in what is expected of a job that was run before.
func (d *deviations) guess(t *PendingJob) {
	g := &t.guesses
	g[guessDeviationTrees], g[guessDeviationLine] = g[guessUsual], g[guessUsual]
	if d != nil && t.repeat != nil {
		g[guessDeviationTrees] += t.repeat.scale * d.trees.Predict(t.repeat.features)
		g[guessDeviationLine] += t.repeat.scale * d.line.value(t.repeat.features)
	}
	g[guessDeviation] = (g[guessDeviationTrees] + g[guessDeviationLine]) / 2
}
