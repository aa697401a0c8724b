package probe

import (
	"math"
	"slices"
)

const (
	inlierShare     = 0.97 // of the jobs that are learnt from lie within the line
	thresholdFactor = 1.2  // factor on their distance for jobs that weren't learnt from
)

// Distances tell how far sources are from those that were learnt from.
type Distances struct {
	set       *Set
	threshold float64 // where strangeness begins
}

// Novelty is how far a job is from anything learnt from.
type Novelty struct {
	Score     float64 // its distance to the nearest one; 1 is where the line is drawn
	IsOutside bool    // out of distribution: beyond the line
}

// NewDistances draws the line by how far the jobs that are learnt from are from each
// other, in their style: what numbers they have doesn't make them strange.
func NewDistances(s *Set) (*Distances, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	d := &Distances{set: s}
	apart := make([]float64, len(s.Embeddings))
	for i, e := range s.Embeddings {
		apart[i] = d.nearest(e, i)
	}
	slices.Sort(apart)
	d.threshold = thresholdFactor * apart[min(len(apart)-1, int(inlierShare*float64(len(apart))))]
	return d, nil
}

// NoveltyOf returns the strangeness of an embedding.
func (d *Distances) NoveltyOf(e []float64) Novelty {
	apart := d.nearest(e, noneExcepted)
	if d.threshold == 0 {
		// All that was learnt from looks the same.
		return Novelty{Score: apart, IsOutside: apart > 0}
	}
	return Novelty{Score: apart / d.threshold, IsOutside: apart > d.threshold}
}

// noneExcepted is for an embedding that isn't among those that were learnt from.
const noneExcepted = -1

// nearest returns the distance to the nearest embedding, but for one of those that were learnt from.
func (d *Distances) nearest(e []float64, except int) float64 {
	best := math.Inf(1)
	mine := d.set.style(e)
	for i, other := range d.set.Embeddings {
		if i == except {
			continue
		}
		sum := 0.0
		for k, v := range d.set.style(other) {
			sum += (v - mine[k]) * (v - mine[k])
		}
		best = min(best, sum)
	}
	return math.Sqrt(best)
}
