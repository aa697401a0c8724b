package dvfsmodel

import (
	"fmt"
	"math"
)

// Outliers are looked for where enough settings remain to tell them from the
// behaviour of the GPU. A setting that lies further off than outlierSigmas
// standard deviations of the others, and by more than outlierFloor, counts for
// less by the square of the excess.
const (
	outlierMinSettings = 8    // fewer settings are all believed
	outlierShare       = 5    // at most one setting in five
	outlierSigmas      = 6    // so few that the forms' own error isn't taken for one
	outlierFloor       = 0.1  // relative
	minTrust           = 1e-6 // not 0: the fit stays determined whichever settings are outliers
	maxTrust           = 0.5  // of an outlier, however little it is too far off
)

// OutlierError says that a measured setting counted for less because it does
// not agree with the others.
type OutlierError struct {
	Core, Mem MHz
	Quantity  string  // "time" or "power"
	Ratio     float64 // predicted from the other settings, over measured
	Weight    float64 // 0..1
}

// Error states the setting and how far off it is.
func (w *OutlierError) Error() string {
	return fmt.Sprintf("%s at %g/%g MHz is %.2f times what the other settings predict: counted "+
		"with weight %.2g",
		w.Quantity, float64(w.Core), float64(w.Mem), 1/w.Ratio, w.Weight)
}

// outlier is an observation that others disagree with: by how much (relative,
// studentised), and the most that they would let pass.
type outlier struct {
	index       int
	size, limit float64
}

// distrustOutliers lowers the trust in outliers. It takes away the worst observation again
// and again, and distrusts all up to the last that was too far off when its turn
// came, so that one outlier doesn't hide another (the generalised ESD procedure
// of Rosner, Technometrics 25, 1983).
func (o *observations) distrustOutliers(shapes []*shape) {
	if o.len() < outlierMinSettings {
		return
	}
	var taken []outlier
	outliers := 0
	for range o.len() / outlierShare {
		s, ok := o.worstOutlier(shapes)
		if !ok {
			break
		}
		taken = append(taken, s)
		o.trust[s.index] = minTrust
		if s.size > s.limit {
			outliers = len(taken)
		}
	}
	for _, s := range taken[outliers:] {
		o.trust[s.index] = 1
	}
	if outliers > 0 {
		o.setTrust(taken[:outliers], shapes)
	}
}

// worstOutlier finds the trusted observation without which the others agree best with
// one shape.
func (o *observations) worstOutlier(shapes []*shape) (outlier, bool) {
	var found outlier
	least := math.Inf(1)
	for _, s := range shapes {
		f, ok := o.fitCurve(s, coarseSteps)
		freedom := o.keptCount() - s.size(o.oneMem) - 1
		if !ok || freedom < 1 {
			continue
		}
		for i, loss := range f.lossWithout {
			spread := math.Sqrt(loss / float64(freedom))
			if o.trust[i] < 1 || !(spread < least) {
				continue
			}
			least = spread
			found = outlier{index: i, size: math.Abs(f.studentised[i]), limit: outlierLimit(spread)}
		}
	}
	return found, !math.IsInf(least, 1)
}

// outlierLimit returns how far off an observation may be where the others have a standard
// deviation of spread; both are relative.
func outlierLimit(spread float64) float64 { return max(outlierSigmas*spread, outlierFloor) }

// setTrust sets the trust in outliers by how far they lie from what the shape that
// suits the others best says without them.
func (o *observations) setTrust(outliers []outlier, shapes []*shape) {
	least := math.Inf(1)
	for _, s := range shapes {
		f, ok := o.fitCurve(s, coarseSteps)
		freedom := o.keptCount() - s.size(o.oneMem)
		if !ok || freedom < 1 {
			continue
		}
		spread := math.Sqrt(f.solution.loss / float64(freedom))
		if spread >= least {
			continue
		}
		least = spread
		for j := range outliers {
			outliers[j].size = math.Abs(f.studentised[outliers[j].index])
			outliers[j].limit = outlierLimit(spread)
		}
	}
	for _, x := range outliers {
		excess := max(1, x.size/x.limit)
		o.trust[x.index] = clamp(1/(excess*excess), minTrust, maxTrust)
	}
}

// warnings lists the outliers of one quantity.
func (o *observations) warnings(settings []Sample, quantity string, f *curveFit) []error {
	var list []error
	for i, w := range o.trust {
		if w < 1 {
			list = append(list, &OutlierError{
				Core: settings[i].Core, Mem: settings[i].Mem,
				Quantity: quantity, Ratio: f.unseen[i], Weight: w,
			})
		}
	}
	return list
}
