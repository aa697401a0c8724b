package predict

import "math"

// The guesses of a value that are weighed against each other.
const (
	guessLast            = iota // what the most similar job took, the last time
	guessMedian                 // median of its kept runs
	guessCentral                // mean of the middle half of its kept runs
	guessMean                   // mean of its last two runs
	guessUsual                  // what its completed runs usually took
	guessAnyUsual               // the same of runs that asked for another time
	guessDeviationTrees         // what is usual and how far from it, by trees
	guessDeviationLine          // the same by a line
	guessDeviation              // between both
	guessTrees                  // trees
	guessLine                   // a line of what the job asks for
	guessLineAndTrees           // that, and trees on what it leaves
	guessTreesAndLine           // between both kinds of trees
	guessTreesAndRuns           // between that and the middle half of the runs
	guessEffects                // what owner, names and sizes add to the line
	guessEffectsAndTrees        // between that and both kinds of trees
	guessEffectsAndRuns         // between that and what is usual
	guesses                     // how many those are
)

// situation is what the guesses' worth depends on: in which respect the most similar
// jobs are alike, how many of them there are, and how much they differ; the latter
// two in classes.
type situation [3]uint8

// anyRank is a part of a situation that doesn't matter.
const anyRank = 255

var anySituation = situation{anyRank, anyRank, anyRank}

// broader returns the situations that a situation belongs to, itself first.
func (s situation) broader() [4]situation {
	return [4]situation{s, {s[0], anyRank, s[2]}, {s[0], anyRank, anyRank}, anySituation}
}

// needsFit reports whether a guess needs something fitted.
func needsFit(guess int) bool { return guess >= guessDeviationTrees }

// isFromRuns reports whether a guess rests on runs of the most similar job alone.
func isFromRuns(guess int) bool { return guess < guessTrees }

// isDistinct reports whether a guess is one of its own in a situation: in others it repeats
// another one.
func (s situation) isDistinct(guess int) bool {
	switch guess {
	case guessAnyUsual:
		return s[0] == byAll
	case guessDeviationTrees, guessDeviationLine, guessDeviation:
		return s[0] <= bySize
	default:
		return true
	}
}

// guess fills in what the memory has to say of the job at hand, and tells its situation and
// the scale of errors there; false where nothing ended yet. The fitted guesses are left
// alone.
func (m *memory) guess(g *[guesses]float64) (situation, float64, bool) {
	var t *track
	at := 0
	for at < keyCount {
		if t = m.tracks.track(m.keys[at], &m.scratch[0]); t != nil {
			break
		}
		at++
	}
	if t == nil {
		return situation{}, 0, false
	}
	last, before := t.valueBack(0), t.valueBack(1)
	g[guessLast], g[guessMean], g[guessMedian], g[guessCentral] = last, last, t.median(), t.midmean()
	if !math.IsNaN(before) {
		g[guessMean] = math.Log((math.Exp(last) + math.Exp(before)) / 2)
	}
	g[guessUsual], g[guessAnyUsual] = t.trimmedMean(), t.trimmedMean()
	if t := m.tracks.track(m.keys[bySize], &m.scratch[1]); t != nil {
		g[guessAnyUsual] = t.trimmedMean()
	}
	s := situation{
		uint8(min(at, byShape)), bucketOf(float64(t.count), 2, 4, 8), bucketOf(t.spread(), 0.02, 0.1, 0.3, 1),
	}
	return s, errorScaleOf(m.target, s, t), true
}

// bucketOf returns how many of some ascending limits a value reaches.
func bucketOf(v float64, limits ...float64) uint8 {
	for i, limit := range limits {
		if v < limit {
			return uint8(i)
		}
	}
	return uint8(len(limits))
}
