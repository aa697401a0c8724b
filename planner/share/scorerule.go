package share

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner/sharing"
)

const (
	fullPct       = 100.0 // utilisation of a GPU that is always at work, percent
	largestMemGB  = 32.0  // by which DP and BF measure memory, GB
	roundingPct   = 1e-9  // by which a mean may exceed a limit
	roundingScore = 1e-12 // below which scores are equal
)

// ScoreRule takes the GPU of the least score among those that it allows: of equals, or
// where nothing is scored, the first.
type ScoreRule struct {
	allows func(s *sharing.State, task, gpu int) bool
	score  func(s *sharing.State, task int) func(gpu int) float64 // nil: all are equal
	// otherwise chooses where it allows none; nil: there is no place.
	otherwise Rule
}

// Choose returns the GPU of the least score.
func (r ScoreRule) Choose(s *sharing.State, task int, taken []int) (best int, ok bool) {
	score := func(int) float64 { return 0 }
	if r.score != nil {
		score = r.score(s, task)
	}
	least := math.Inf(1)
	for gpu := range s.GPUs() {
		if slices.Contains(taken, gpu) || !r.allows(s, task, gpu) {
			continue
		}
		if x := score(gpu); !ok || x < least-roundingScore {
			if best, least, ok = gpu, x, true; r.score == nil {
				return best, true
			}
		}
	}
	if !ok && r.otherwise != nil {
		return r.otherwise.Choose(s, task, taken)
	}
	return best, ok
}

// Rules that others fall back on: the first GPU that has the memory, and before it the
// first of those that sleep.
var (
	anyGPU  = ScoreRule{allows: (*sharing.State).Fits}
	wakeGPU = ScoreRule{
		allows:    func(s *sharing.State, task, gpu int) bool { return !s.IsBusy(gpu) && s.Fits(task, gpu) },
		otherwise: anyGPU,
	}
)

// CATS returns the paper's placement (algorithms 1 and 2): of the GPUs with more
// free memory than the task takes the one with the lowest score, which is low
// where what runs there is unlike the task. An empty GPU correlates with
// nothing (rho 0). The score has no limit on utilisation.
func CATS() ScoreRule { return ScoreRule{hasSpareMemory, dissimilarity, nil} }

// HotCloud places a task on the first running GPU whose mean utilisation stays
// within 100 percent, else on the first that sleeps.
func HotCloud() ScoreRule { return ScoreRule{allows: onlyRunning(hasRoomFor), otherwise: wakeGPU} }

// onlyRunning allows GPUs that something allows only where they have tasks.
func onlyRunning(allows func(s *sharing.State, task, gpu int) bool) func(*sharing.State, int, int) bool {
	return func(s *sharing.State, task, gpu int) bool { return s.IsBusy(gpu) && allows(s, task, gpu) }
}

// hasRoomFor reports whether a GPU has the memory and, on average, the time for a
// task.
func hasRoomFor(s *sharing.State, task, gpu int) bool {
	return s.Fits(task, gpu) && meanLoadWith(s, task, gpu) <= fullPct+roundingPct
}

// hasRoomAtFirst reports whether a GPU has the memory, and less than 100 percent to do in
// the first slot.
func hasRoomAtFirst(s *sharing.State, task, gpu int) bool {
	return s.Fits(task, gpu) && s.Load(gpu)[0]+s.Instance().Tasks[task].UtilPct[0] < fullPct
}

// hasSpareMemory reports whether a GPU has more free memory than a task takes, as
// algorithm 1 asks for.
func hasSpareMemory(s *sharing.State, task, gpu int) bool {
	return s.Instance().Tasks[task].MemGB < s.FreeGB(gpu)
}

// isWithinThresholds is [hasSpareMemory] with the thresholds that algorithm 1 lists
// (correlation 0, utilisation 100 percent) and no printed line uses.
func isWithinThresholds(s *sharing.State, task, gpu int) bool {
	return hasSpareMemory(s, task, gpu) && meanLoadWith(s, task, gpu) <= fullPct+roundingPct &&
		sharing.Pearson(s.Load(gpu), s.Instance().Tasks[task].UtilPct).OrZero() <= 0
}

// meanLoadWith returns the mean load of a GPU with a task added, percent.
func meanLoadWith(s *sharing.State, task, gpu int) float64 {
	return s.MeanPct(gpu) + sharing.MeanPct(s.Instance().Tasks[task].UtilPct)
}

// The weights of algorithm 2, which the paper sets equal.
const lambdaRho, lambdaDistance = 0.5, 0.5

// dissimilarity returns the score of algorithm 2.
func dissimilarity(s *sharing.State, task int) func(gpu int) float64 {
	series := s.Instance().Tasks[task].UtilPct
	return func(gpu int) float64 {
		load := s.Load(gpu)
		distance := 0.0
		for i, u := range series {
			distance += math.Abs(load[i] - u)
		}
		distance /= fullPct * float64(len(series))
		return lambdaRho*sharing.Pearson(load, series).OrZero() - lambdaDistance*distance
	}
}

// leftOver returns what is left of utilisation and memory together.
func leftOver(s *sharing.State, task int) func(gpu int) float64 {
	return func(gpu int) float64 {
		mem := s.FreeGB(gpu) - s.Instance().Tasks[task].MemGB
		return 0.5*(1-meanLoadWith(s, task, gpu)/fullPct) + 0.5*mem/largestMemGB
	}
}

// dotProduct returns the dot product of the demand and what is free.
func dotProduct(s *sharing.State, task int) func(gpu int) float64 {
	t := &s.Instance().Tasks[task]
	util, mem := sharing.MeanPct(t.UtilPct)/fullPct, t.MemGB/largestMemGB
	return func(gpu int) float64 {
		return util*(1-s.MeanPct(gpu)/fullPct) + mem*s.FreeGB(gpu)/largestMemGB
	}
}

// addedFragmentation returns the rise of a GPU's fragmentation: of the part of its free time
// that tasks of the instance could not use, for lack of time or of memory.
func addedFragmentation(s *sharing.State, task int) func(gpu int) float64 {
	own, mem := sharing.MeanPct(s.Instance().Tasks[task].UtilPct), s.Instance().Tasks[task].MemGB
	demand := make([]float64, len(s.Instance().Tasks))
	for i := range s.Instance().Tasks {
		demand[i] = sharing.MeanPct(s.Instance().Tasks[i].UtilPct)
	}
	return func(gpu int) float64 {
		free, freeGB := fullPct-s.MeanPct(gpu), s.FreeGB(gpu)
		return fragmentation(s, demand, free-own, freeGB-mem) - fragmentation(s, demand, free, freeGB)
	}
}

// fragmentation returns the free time, as a part of the whole, that tasks of those
// demands could not use, weighted by how many they are.
func fragmentation(s *sharing.State, demand []float64, freePct, freeGB float64) float64 {
	unfit := 0
	for m, util := range demand {
		if util > freePct+roundingPct || s.Instance().Tasks[m].MemGB > freeGB+sharing.SlackGB {
			unfit++
		}
	}
	return math.Max(freePct, 0) / fullPct * float64(unfit) / float64(len(demand))
}
