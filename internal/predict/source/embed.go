package source

import (
	"hash/fnv"
	"maps"
	"math"
	"slices"
)

const (
	// Dimensions of an embedding.
	Dimensions = 1024
	// Style is how many of them, the first ones, say how the source is written; the
	// others say what numbers it has.
	Style = 512
)

// Embed returns the embedding of a text: its first coordinate is how often a name is given
// another number, those of its words hold the logarithm of how often they occur, and
// those of its names that of their number. Where two words or names meet in one
// coordinate they add up with a sign of their own, in the order of the alphabet: sums
// of floating-point numbers depend on it.
func Embed(t *Text) []float64 {
	v := make([]float64, Dimensions)
	v[0] = float64(t.Reassigned)
	for _, w := range slices.Sorted(maps.Keys(t.Words)) {
		at, sign := hashCoordinate(w, Style-1)
		v[1+at] += sign * math.Log1p(float64(t.Words[w]))
	}
	for _, name := range slices.Sorted(maps.Keys(t.Numbers)) {
		if x := t.Numbers[name]; x > 0 {
			at, _ := hashCoordinate(name, Dimensions-Style)
			v[Style+at] += math.Log(x)
		}
	}
	return v
}

// hashCoordinate returns the coordinate of a word among some, and its sign.
func hashCoordinate(word string, of uint64) (at int, sign float64) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(word)) // never fails
	sum := h.Sum64()
	sum ^= sum >> 32
	sign = 1
	if sum>>31&1 == 1 {
		sign = -1
	}
	return int(sum % of), sign
}
