package agent

import "slices"

// Series is a utilisation over time in steps of equal length from the run's
// start. When it is full, its steps double.
type Series struct {
	Step float64 `json:"step_s"`
	// Values are means by step, 0..1; -1 where nothing was measured.
	Values []float64 `json:"values"`
	weight []float64 // seconds measured in each step
}

// add books a value that held from one time to another, in seconds from the
// start.
func (s *Series) add(from, to, value float64) {
	from = max(0, from)
	if !(to > from) {
		return
	}
	for to > s.Step*maxPoints {
		s.halve()
	}
	for from < to {
		i := min(int(from/s.Step), maxPoints-1)
		end := min(to, float64(i+1)*s.Step)
		if !(end > from) { // from lies a rounding below the step's end
			i = min(i+1, maxPoints-1)
			end = to
		}
		s.book(i, end-from, value)
		from = end
	}
}

func (s *Series) book(i int, d, value float64) {
	for len(s.Values) <= i {
		s.Values, s.weight = append(s.Values, -1), append(s.weight, 0)
	}
	w := s.weight[i] + d
	s.Values[i] = (max(0, s.Values[i])*s.weight[i] + value*d) / w
	s.weight[i] = w
}

// halve makes two steps into one.
func (s *Series) halve() {
	old := *s
	*s = Series{Step: 2 * old.Step}
	for i, v := range old.Values {
		if old.weight[i] > 0 {
			s.book(i/2, old.weight[i], v)
		}
	}
}

func (s *Series) clone() Series {
	return Series{Step: s.Step, Values: slices.Clone(s.Values)}
}
