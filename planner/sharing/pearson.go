package sharing

const (
	// blockLen is the length of a block: two of them fit a first-level cache
	// of 32 KB four times.
	blockLen = 512
	// vectorLen is how many samples a step of the vector loops takes.
	vectorLen = 8
)

// Pearson returns the correlation of two series (CATS eq. 15), cut to the shorter
// one, without the samples where a side has a gap. With vector instructions it
// reads the series from memory once: block by block, and each block from the
// cache again for its deviations.
//
// A value that is NaN or infinite is a gap: a sample with a gap on either side is left out and counted in
// [Correlation.Gaps]. The coefficient is undefined ([Correlation.OK] false) if fewer than two samples are
// left, if a side doesn't vary in them, and if squares of deviations leave the range of a float64
// (deviations beyond about 1e150, or all of them within 1e-150). Deviations are taken from means of blocks,
// and blocks are merged by the formulas of Chan, Golub and LeVeque (1983), so that an offset of 1e9 costs no
// digits of the result beyond those that it costs the samples.
func Pearson(x, y []float64) Correlation {
	n := min(len(x), len(y))
	x, y = x[:n], y[:n]
	m, _ := momentsOf(x, y)
	if !isVarying(x, y, m.sumXX) || !isVarying(y, x, m.sumYY) {
		m.sumXX, m.sumYY = 0, 0
	}
	return m.correlation(n)
}

// point is a sample, or what samples are measured from.
type point struct{ x, y float64 }

// momentsOf returns the moments of the samples without gaps of two series of one
// length, their means from an origin near the first of them.
func momentsOf(x, y []float64) (all moments, origin point) {
	for hasVectors && len(x) >= vectorLen {
		n := min(blockLen, len(x)/vectorLen*vectorLen)
		block := momentsVector(x[:n], y[:n], &origin, all.n == 0)
		all = mergeMoments(&all, &block)
		x, y = x[n:], y[n:]
	}
	rest := momentsScalar(x, y, &origin, all.n == 0)
	return mergeMoments(&all, &rest), origin
}

// momentsVector returns the moments of a block in two passes. The first block puts
// the origin into its centre.
func momentsVector(x, y []float64, origin *point, first bool) moments {
	sumX, sumY := sumsAVX(x, y)
	if !isFinite(sumX) || !isFinite(sumY) {
		return momentsScalar(x, y, origin, first)
	}
	n := float64(len(x))
	centre := point{sumX / n, sumY / n}
	if first {
		*origin = centre
	}
	var sums moments
	sums.n = n
	sums.meanX, sums.meanY, sums.sumXX, sums.sumYY, sums.sumXY = deviationsAVX(x, y, centre.x, centre.y)
	return sums.fromDeviations(centre, *origin)
}

// fromDeviations turns sums of deviations from a centre, their squares and products
// into moments. The centre is the mean but for rounding, so that what is
// subtracted is small.
func (m *moments) fromDeviations(centre, origin point) moments {
	dx, dy := m.meanX/m.n, m.meanY/m.n
	return moments{
		n:     m.n,
		meanX: centre.x - origin.x + dx,
		meanY: centre.y - origin.y + dy,
		sumXX: m.sumXX - m.meanX*dx,
		sumYY: m.sumYY - m.meanY*dy,
		sumXY: m.sumXY - m.meanX*dy,
	}
}

// momentsScalar returns the clear version of momentsVector, for gaps, for processors
// without vectors, and for tests to hold the other against.
func momentsScalar(x, y []float64, origin *point, first bool) moments {
	var sums moments
	var centre point
	for i, xi := range x {
		if yi := y[i]; isFinite(xi) && isFinite(yi) {
			sums.n++
			centre.x += xi
			centre.y += yi
		}
	}
	if sums.n == 0 {
		return moments{}
	}
	centre.x /= sums.n
	centre.y /= sums.n
	if first {
		*origin = centre
	}
	for i, xi := range x {
		if yi := y[i]; isFinite(xi) && isFinite(yi) {
			dx, dy := xi-centre.x, yi-centre.y
			sums.meanX += dx
			sums.meanY += dy
			sums.sumXX += dx * dx
			sums.sumYY += dy * dy
			sums.sumXY += dx * dy
		}
	}
	return sums.fromDeviations(centre, *origin)
}

// isVarying reports whether the values of a series where neither it nor its partner
// has a gap differ. It looks at most at those up to the first that differs
// where their squared deviations aren't mere rounding.
func isVarying(values, partner []float64, squares float64) bool {
	var first *float64
	for i, v := range values {
		switch {
		case !isFinite(v) || !isFinite(partner[i]):
		case first == nil:
			first = &values[i]
		case v != *first:
			return squares > 0
		}
	}
	return false
}
