package share

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/planner/sharing"
)

// CATSSafe is our online policy for [Safe]: tasks one by one, none of those to
// come known, and none moved once it is placed. It never breaks an SLA while a
// GPU is left that keeps it. Where a task may run on several GPUs, or one may
// wake for it, each choice is played on through the same imagined futures by a
// simple rule (tightest fit), and the one with the least watts at their ends is
// taken (rollouts; Bertsekas, Tsitsiklis and Wu 1997).
//
// A future begins with the tasks that wait, where a scheduler places several at a time
// ([PlaceWindows]). The others are like those seen so far, changed a little, and a few of
// any kind; see [scenarioSampler]. How many tasks are to come isn't known either: half of
// the futures suppose that the fleet is about as large as it has to be, the others that
// any number up to that is as likely. What is chosen depends on the servers, the tasks so
// far and the seed alone.
type CATSSafe struct {
	Seed    uint64
	Futures int // how many are imagined for each choice; 0: 48 to 256, the fewer the more GPUs there are
}

const (
	minFutures, maxFutures = 48, 256
	futuresByGPU           = 6000 // so many over the number of GPUs, within those
	// cautionSigmas is by how many standard errors a choice has to beat that of the
	// simple rule.
	cautionSigmas = 0.5
)

// Choose returns the GPU with the least watts at the ends of imagined futures.
func (c CATSSafe) Choose(s *sharing.State, task int, taken []int) (int, bool) {
	seen, waiting := recentTasks(s, task)
	now := newScratchState(s, seen)
	t := &seen[len(seen)-len(waiting)-1]
	options := now.candidateGPUs(t, taken)
	switch len(options) {
	case 0:
		return anyGPU.Choose(s, task, taken)
	case 1:
		return options[0], true
	}
	futures := cmp.Or(max(0, c.Futures), min(maxFutures, max(minFutures, futuresByGPU/s.GPUs())))
	r := rand.New(rand.NewPCG(c.Seed, uint64(task)<<8+uint64(len(taken))))
	i := newScenarioSampler(r, s, seen, waiting, t.gpus)
	outcomes := make([]differenceStats, len(options))
	for n := range futures {
		f := i.scenario(n%2 == 1)
		base := 0.0
		for o, gpu := range options {
			watts := now.wattsAfter(t, taken, gpu, f)
			if o == 0 {
				base = watts
			}
			outcomes[o].add(watts - base)
		}
	}
	best, least := 0, 0.0
	for o := range outcomes {
		if x := outcomes[o].upperMean(futures); x < least {
			best, least = o, x
		}
	}
	return options[best], true
}

// differenceStats is by how much a choice differs from the first one, over futures.
type differenceStats struct{ sum, squares float64 }

func (o *differenceStats) add(watts float64) { o.sum, o.squares = o.sum+watts, o.squares+watts*watts }

// upperMean returns the mean with some caution.
func (o *differenceStats) upperMean(n int) float64 {
	mean := o.sum / float64(n)
	return mean + cautionSigmas*math.Sqrt(max(0, o.squares/float64(n)-mean*mean)/float64(n))
}

// wattsAfter returns the watts at the end of a future if a piece of a task runs on a GPU
// now. The sketch is as before afterwards.
func (k *scratchState) wattsAfter(t *sampledTask, taken []int, gpu int, f *taskScenario) float64 {
	k.begin()
	defer k.rollback()
	k.add(t, gpu)
	for on := append(slices.Clone(taken), gpu); len(on) < t.gpus; {
		next, ok := k.chooseTightest(t, on, f.load)
		if !ok {
			return unplacedW
		}
		k.add(t, next)
		on = append(on, next)
	}
	left := f.load
	for i := range f.tasks {
		t := &f.tasks[i]
		on := make([]int, 0, maxPieces)
		for range t.gpus {
			next, ok := k.chooseTightest(t, on, left)
			if !ok {
				return k.watts(f) + unplacedW
			}
			k.add(t, next)
			on = append(on, next)
		}
		left -= t.load()
	}
	return k.watts(f)
}

// unplacedW is what a task without a place counts.
const unplacedW = 1e4

// maxPieces is how many pieces of a task are followed without allocating.
const maxPieces = 8
