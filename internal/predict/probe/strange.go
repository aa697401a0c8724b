package probe

import (
	"math"
	"slices"
)

const (
	usualPart = 0.97 // of the jobs that are learnt from lie within the line
	allowance = 1.2  // factor on their distance for jobs that weren't learnt from
)

// Distances tell how far sources are from those that were learnt from.
type Distances struct {
	set  *Set
	line float64 // where strangeness begins
}

// Strangeness is how far a job is from anything learnt from.
type Strangeness struct {
	Score float64 // its distance to the nearest one; 1 is where the line is drawn
	Out   bool    // out of distribution: beyond the line
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
	d.line = allowance * apart[min(len(apart)-1, int(usualPart*float64(len(apart))))]
	return d, nil
}

// Of is the strangeness of an embedding.
func (d *Distances) Of(e []float64) Strangeness {
	apart := d.nearest(e, -1)
	if d.line == 0 {
		// All that was learnt from looks the same.
		return Strangeness{Score: apart, Out: apart > 0}
	}
	return Strangeness{Score: apart / d.line, Out: apart > d.line}
}

// nearest is the distance to the nearest embedding but one.
func (d *Distances) nearest(e []float64, but int) float64 {
	best := math.Inf(1)
	mine := d.set.style(e)
	for i, other := range d.set.Embeddings {
		if i == but {
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
