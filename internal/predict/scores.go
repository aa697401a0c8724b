package predict

import (
	"math"
	"slices"
)

// What is supposed of errors before a history shows its own. The figures were chosen
// on short pieces of measured logs; docs/prediction.md says how intervals held there.
const (
	priorErrors = 12 // that every interval is made from besides those that there were
	// Of them lie beyond a score of 1 on either side, of a score of 2 half of that, and
	// so on.
	priorTail          = 0.15
	priorRuns          = 5   // as many runs as the supposed scale counts for
	otherRequestFactor = 3.0 // times as far are jobs that asked for another time
	similarJobFactor   = 5.0 // and jobs that are only similar

	scoreWindow = 300  // scores of a situation that are kept
	minScore    = 1e-6 // where bounds are looked for
	maxScore    = 1e4
	bisections  = 40 // of the logarithm of the range between
)

// priorScale is how far runs of the same job are supposed to lie from each other, in
// logarithms.
var priorScale = [...]float64{Time: 0.5, Energy: 0.5, Power: 0.15}

// errorScaleOf returns what errors in a situation are measured by, in logarithms: by how much what
// is remembered of the most similar job differs, drawn to what is supposed, the more
// the fewer runs there were. An error over its scale is a score: scores of different
// situations tell something of each other.
func errorScaleOf(target Target, s situation, t *track) float64 {
	supposed := priorScale[target]
	switch {
	case s[0] > bySize:
		supposed *= similarJobFactor
	case s[0] == bySize:
		supposed *= otherRequestFactor
	}
	free := float64(len(t.ring) - 1) // the first run says nothing of differences
	return (free*math.Log1p(t.spread()) + priorRuns*supposed) / (free + priorRuns)
}

// addScore keeps the score of a prediction.
func (c *calibration) addScore(s situation, score float64) {
	for _, w := range s.broader() {
		windowOf(c.scores, w).add(score, scoreWindow)
	}
}

// scorePool is the scores that an interval is made from where its situation was seen too
// seldom: all of its own, then as much of wider situations as is missing, and those
// that are supposed.
type scorePool struct {
	windows [4]*errorWindow
	weights [4]float64 // of one score
	used    int        // windows
	total   float64    // weight
}

// poolScores gathers the scores for a situation.
func (c *calibration) poolScores(s situation) scorePool {
	p := scorePool{total: priorErrors}
	missing := float64(minErrors)
	for _, w := range s.broader() {
		e := c.scores[w]
		if e == nil || missing <= 0 {
			continue
		}
		all := float64(len(e.sorted))
		weight := 1.0
		if p.used > 0 {
			weight = min(1, missing/all)
		}
		p.windows[p.used], p.weights[p.used] = e, weight
		p.used++
		p.total += weight * all
		missing -= weight * all
	}
	return p
}

// tailWeight returns the weight of what lies as far out as a score above 0, or farther.
func (p *scorePool) tailWeight(score float64, above bool) float64 {
	sum := priorErrors * min(0.5, priorTail/score)
	for i, e := range p.windows[:p.used] {
		var n int
		if above {
			at, _ := slices.BinarySearch(e.sorted, score)
			n = len(e.sorted) - at
		} else {
			n, _ = slices.BinarySearch(e.sorted, -score)
		}
		sum += p.weights[i] * float64(n)
	}
	return sum
}

// bound returns the score above 0 beyond which a part of the next ones lies. As in split
// conformal prediction the next one counts as one more that may lie there.
func (p *scorePool) bound(part float64, above bool) float64 {
	most := part * (p.total + 1)
	low, high := math.Log(minScore), math.Log(maxScore)
	for range bisections {
		if middle := (low + high) / 2; p.tailWeight(math.Exp(middle), above) > most {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Exp(high)
}
