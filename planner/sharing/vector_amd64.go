package sharing

import "golang.org/x/sys/cpu"

// hasVectors is whether sumsAVX and deviationsAVX run on this processor.
var hasVectors = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// sumsAVX returns the sum of either series. The length is the same for both, a
// multiple of eight and not 0.
//
//go:noescape
func sumsAVX(x, y []float64) (sumX, sumY float64)

// deviationsAVX returns the sums of deviations from a centre, of their squares and
// of their products. The length is as of sumsAVX.
//
//go:noescape
func deviationsAVX(x, y []float64, centreX, centreY float64) (sumX, sumY, xx, yy, xy float64)
