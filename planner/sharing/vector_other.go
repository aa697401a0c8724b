//go:build !amd64

package sharing

const hasVectors = false

func sumsAVX(_, _ []float64) (sumX, sumY float64) { return 0, 0 }

func deviationsAVX(_, _ []float64, _, _ float64) (sumX, sumY, xx, yy, xy float64) {
	return 0, 0, 0, 0, 0
}
