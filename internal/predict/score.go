package predict

import (
	"math"
	"slices"
)

// Score is how good predictions were.
type Score struct {
	Jobs                int     // whose true value is known
	MeanAbsoluteError   float64 // in the target's unit
	MedianRelativeError float64
	Coverage            float64 // part of true values within the intervals
}

// ScorePredictions compares predictions with true values; NaN are not known.
func ScorePredictions(predictions []Prediction, truths []float64) Score {
	var s Score
	var relative []float64
	for i, v := range truths {
		if !isUsable(v) {
			continue
		}
		p := &predictions[i]
		s.Jobs++
		s.MeanAbsoluteError += math.Abs(p.Value - v)
		relative = append(relative, math.Abs(p.Value-v)/v)
		if p.Low <= v && v <= p.High {
			s.Coverage++
		}
	}
	if s.Jobs == 0 {
		return s
	}
	s.MeanAbsoluteError /= float64(s.Jobs)
	s.Coverage /= float64(s.Jobs)
	slices.Sort(relative)
	s.MedianRelativeError = medianOf(relative)
	return s
}
