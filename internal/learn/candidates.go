package learn

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
)

const (
	probeGain  = 0.001 // part of the energy below which nothing is left to learn
	maxChoices = 24    // settings among which a probe is chosen
)

// Candidate is a setting at which something can be learnt: by what part the energy
// of later runs is expected to fall.
type Candidate struct {
	At   dvfsmodel.Setting
	Gain float64
	// Expected and AtMost are how many times as long as at default clocks a run takes under the power limit of
	// the setting; 0: it has none.
	Expected, AtMost float64
}

// candidates returns the settings of a GPU at which something can be learnt of a
// workload, the most first; none where no device of the model was seen.
func candidates(known *pooled.Posterior, noise pooled.Noise, gpu *GPU) []Candidate {
	if len(gpu.Allowed) == 0 {
		return nil
	}
	step := max(1, (len(gpu.Allowed)+maxChoices-1)/maxChoices)
	settings := make([]dvfsmodel.Setting, 0, maxChoices+1)
	for i := 0; i < len(gpu.Allowed); i += step {
		settings = append(settings, gpu.Allowed[i])
	}
	b := known.Belief(settings, gpu.HostW)
	all := b.Settings()
	var list []Candidate
	for i, gain := range b.Gains(noise) {
		if gain >= probeGain && !math.IsInf(gain, 0) {
			list = append(list, Candidate{At: all[i], Gain: gain})
		}
	}
	slices.SortStableFunc(list, func(a, b Candidate) int { return cmp.Compare(b.Gain, a.Gain) })
	return list
}
