package consolidate

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner/correlate"
	"github.com/epplan/epplan/planner/sharing"
)

// CATS is the paper's placement (algorithms 1 and 2): of the GPUs with more
// free memory than the task takes the one with the lowest score, which is low
// where what runs there is unlike the task. An empty GPU correlates with
// nothing (rho 0). The score has no limit on utilisation.
type CATS struct {
	Active bool // GPUs that sleep only where no running one has the memory: the reading that consolidates
}

// The weights of algorithm 2, which the paper sets equal.
const lambdaRho, lambdaDistance = 0.5, 0.5

// Choose is algorithms 1 and 2.
func (c CATS) Choose(s *sharing.State, task int, taken []int) (int, bool) {
	if c.Active {
		if gpu, ok := leastScored(s, taken,
			func(gpu int) bool { return s.IsBusy(gpu) && hasSpareMemory(s, task, gpu) },
			dissimilarity(s, task)); ok {
			return gpu, true
		}
	}
	return leastScored(s, taken, func(gpu int) bool { return hasSpareMemory(s, task, gpu) },
		dissimilarity(s, task))
}

// CATSThresholds is the reading of CATS that uses the thresholds that
// algorithm 1 lists (correlation 0, utilisation 100 percent) and no printed
// line does: running GPUs within both by score, else one that sleeps.
type CATSThresholds struct{}

// Choose is algorithms 1 and 2 with thresholds.
func (CATSThresholds) Choose(s *sharing.State, task int, taken []int) (int, bool) {
	series := s.Instance().Tasks[task].UtilPct
	within := func(gpu int) bool {
		return s.IsBusy(gpu) && hasSpareMemory(s, task, gpu) &&
			meanLoadWith(s, task, gpu) <= fullPct+roundingPct &&
			correlate.Pearson(s.Load(gpu), series).OrZero() <= 0
	}
	if gpu, ok := leastScored(s, taken, within, dissimilarity(s, task)); ok {
		return gpu, true
	}
	return firstSleeping(s, task, taken)
}

// dissimilarity is the score of algorithm 2.
func dissimilarity(s *sharing.State, task int) func(gpu int) float64 {
	series := s.Instance().Tasks[task].UtilPct
	return func(gpu int) float64 {
		load := s.Load(gpu)
		distance := 0.0
		for i, u := range series {
			distance += math.Abs(load[i] - u)
		}
		distance /= fullPct * float64(len(series))
		return lambdaRho*correlate.Pearson(load, series).OrZero() - lambdaDistance*distance
	}
}

// hasSpareMemory reports whether a GPU has more free memory than a task takes, as
// algorithm 1 asks for.
func hasSpareMemory(s *sharing.State, task, gpu int) bool {
	return s.Instance().Tasks[task].MemGB < s.FreeGB(gpu)
}

// meanLoadWith is the mean load of a GPU with a task added, percent.
func meanLoadWith(s *sharing.State, task, gpu int) float64 {
	return s.MeanPct(gpu) + sharing.MeanPct(s.Instance().Tasks[task].UtilPct)
}

// leastScored is the GPU of the least score among those allowed and not taken; the
// lowest number of equals.
func leastScored(
	s *sharing.State, taken []int, allowed func(gpu int) bool, score func(gpu int) float64,
) (best int, ok bool) {
	least := math.Inf(1)
	for gpu := range s.GPUs() {
		if slices.Contains(taken, gpu) || !allowed(gpu) {
			continue
		}
		if x := score(gpu); !ok || x < least-roundingScore {
			best, least, ok = gpu, x, true
		}
	}
	return best, ok
}

// firstAllowed is the first GPU that is allowed and not taken.
func firstAllowed(s *sharing.State, taken []int, allowed func(gpu int) bool) (gpu int, ok bool) {
	for gpu := range s.GPUs() {
		if !slices.Contains(taken, gpu) && allowed(gpu) {
			return gpu, true
		}
	}
	return 0, false
}

// firstSleeping is the first GPU without tasks that has the memory, else any GPU
// that has.
func firstSleeping(s *sharing.State, task int, taken []int) (gpu int, ok bool) {
	if gpu, ok := firstAllowed(s, taken,
		func(gpu int) bool { return !s.IsBusy(gpu) && s.Fits(task, gpu) }); ok {
		return gpu, true
	}
	return firstAllowed(s, taken, func(gpu int) bool { return s.Fits(task, gpu) })
}
