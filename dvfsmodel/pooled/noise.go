package pooled

import (
	"math"

	"github.com/epplan/epplan/dvfsmodel"
)

// usualNoise is how much runs at the same clocks differ where nothing says so,
// which counts as much as usualRuns differences that were seen.
const (
	usualNoise = 0.02
	usualRuns  = 4
)

// NoiseOf returns how much runs of a workload differ that were at the same clocks.
// With few such runs it is near the usual 2 %.
func NoiseOf(samples []dvfsmodel.Sample) Noise {
	list := averageBySetting(samples, dvfsmodel.Setting{Core: 1, Mem: 1})
	time, power, free := usualRuns*sq(usualNoise), usualRuns*sq(usualNoise), float64(usualRuns)
	for _, s := range samples {
		m := &list[indexOf(list, dvfsmodel.Setting{Core: s.Core, Mem: s.Mem})]
		time += sq(math.Log(s.Time) - m.time)
		power += sq(math.Log(float64(s.Power)) - m.power)
		free++
	}
	free -= float64(len(list))
	return Noise{Time: math.Sqrt(time / free), Power: math.Sqrt(power / free)}
}
