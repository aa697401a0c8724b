package sharing

import "math"

// Correlation is Pearson's correlation coefficient of two series.
type Correlation struct {
	R       float64 // Pearson's coefficient, -1 to 1; 0 where it is undefined
	OK      bool    // false where the coefficient is undefined
	Samples int     // how many samples count
	Gaps    int     // how many samples were left out for a gap on either side
}

// OrZero returns the coefficient, and 0 where it is undefined: a series that doesn't
// vary counts as uncorrelated with everything. CATS ranks GPUs that nothing
// runs on, and so never vary, by this rule.
func (r Correlation) OrZero() float64 { return r.R }

// moments are the count, the means and the sums of squared deviations and of
// their products of a set of samples. Sets that are merged have their means
// from one origin; one near the samples keeps their digits.
type moments struct {
	n                   float64
	meanX, meanY        float64
	sumXX, sumYY, sumXY float64
}

// mergeMoments returns the moments of two sets of samples together (Chan, Golub and
// LeVeque 1983).
func mergeMoments(a, b *moments) moments {
	if a.n == 0 {
		return *b
	}
	if b.n == 0 {
		return *a
	}
	n := a.n + b.n
	share := b.n / n
	dx, dy := b.meanX-a.meanX, b.meanY-a.meanY
	weight := a.n * share
	return moments{
		n:     n,
		meanX: a.meanX + dx*share,
		meanY: a.meanY + dy*share,
		sumXX: a.sumXX + b.sumXX + dx*dx*weight,
		sumYY: a.sumYY + b.sumYY + dy*dy*weight,
		sumXY: a.sumXY + b.sumXY + dx*dy*weight,
	}
}

// correlation returns the coefficient of the samples, of which total-n had gaps.
func (m *moments) correlation(total int) Correlation {
	r := Correlation{Samples: int(m.n), Gaps: total - int(m.n)}
	scale := math.Sqrt(m.sumXX) * math.Sqrt(m.sumYY)
	coefficient := m.sumXY / scale
	if m.n < 2 || m.sumXX <= 0 || m.sumYY <= 0 || !isFinite(scale) || !isFinite(coefficient) {
		return r
	}
	r.R, r.OK = min(1, max(-1, coefficient)), true
	return r
}

// isFinite reports whether a number is one and not infinite: of others the difference is NaN.
func isFinite(x float64) bool { return x-x == 0 }
