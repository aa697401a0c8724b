package predict

import "math"

// Chosen, like the numbers below, on short pieces of measured logs (docs/prediction.md).
const (
	costDecay        = 0.995 // what is kept of former costs at each job that ends in a situation
	broaderJobs      = 30    // jobs that a wider situation counts for in a narrower one
	initialTolerance = 0.3   // relative error, before there are any
	minTolerance     = 1e-4
	toleranceRate    = 0.05 // how fast the indulgence follows errors, relative by job

	// How fast a guess's weight falls with what it costs more than the cheapest one.
	// Of jobs that were never run, fewer have been seen and guesses differ more: which
	// one was best so far is mostly chance, and the mean of several is better.
	repeatSharpness = 35.0
	otherSharpness  = 10.0

	relativeCostShare = 0.6 // of a guess's cost; the rest is by absolute errors
)

// What costs are multiplied by where runs are alike: all guesses of them are about as
// good, and which one was best so far is mostly chance; and where a job was never run.
var (
	steadyCostFactors = map[int]float64{guessUsual: 0.97, guessAnyUsual: 0.97, guessDeviationLine: 0.97}
	newJobCostFactors = map[int]float64{
		guessEffects: 0.7, guessEffectsAndTrees: 0.7, guessEffectsAndRuns: 0.7,
	}
)

// guessWeighting knows what each guess cost in each situation, and so which ones to take. A
// guess costs what it was off by.
type guessWeighting struct {
	costs  map[situation]*guessCosts
	owners map[ownerKey]*guessCosts
}

// ownerKey is an owner's jobs that are alike as much, one of the respects: who always
// runs the same knows best by the last run, who changes parameters by the trees.
type ownerKey struct {
	owner hash
	alike uint8
}

// guessCosts of guesses, summed over jobs, the older ones less.
type guessCosts struct {
	jobs     float64
	absolute [guesses]float64 // in the target's unit
	relative [guesses]float64 // from 0 to 1, half at the indulgence

	// tolerance is about the median relative error of the median, so that errors
	// count by whether they are large among those of their situation.
	tolerance float64
}

func newGuessWeighting() *guessWeighting {
	return &guessWeighting{costs: map[situation]*guessCosts{}, owners: map[ownerKey]*guessCosts{}}
}

// learn books what the guesses of an owner's job cost, once its value is known.
func (l *guessWeighting) learn(s situation, owner hash, g *[guesses]float64, v float64) {
	truth := math.Exp(v)
	var absolute, relative [guesses]float64
	for k := range g {
		absolute[k] = math.Abs(math.Exp(g[k]) - truth)
		relative[k] = absolute[k] / truth
	}
	for _, w := range s.broader() {
		costsOf(l.costs, w).add(&absolute, &relative)
	}
	costsOf(l.owners, ownerKey{owner, s[0]}).add(&absolute, &relative)
}

// costsOf returns the costs that something has, none at first.
func costsOf[K comparable](all map[K]*guessCosts, k K) *guessCosts {
	c := all[k]
	if c == nil {
		c = &guessCosts{tolerance: initialTolerance}
		all[k] = c
	}
	return c
}

// add books a job's errors by guess.
func (c *guessCosts) add(absolute, relative *[guesses]float64) {
	if relative[guessMedian] > c.tolerance {
		c.tolerance *= 1 + toleranceRate
	} else {
		c.tolerance = max(minTolerance, c.tolerance/(1+toleranceRate))
	}
	c.jobs = c.jobs*costDecay + 1
	for k := range absolute {
		c.absolute[k] = c.absolute[k]*costDecay + absolute[k]
		c.relative[k] = c.relative[k]*costDecay + relative[k]/(relative[k]+c.tolerance)
	}
}

// weights returns the weights of guesses in an owner's situation, fitted ones only where
// there are some; steady tells that the job was run before and its runs are alike.
// The less a guess cost, the more it weighs.
func (l *guessWeighting) weights(s situation, owner hash, steady, fits bool) [guesses]float64 {
	var weights [guesses]float64
	all := l.costs[anySituation]
	if all == nil {
		weights[guessUsual] = 1
		return weights
	}
	cost := l.cost(s, owner, all)
	sharpness := repeatSharpness
	if s[0] > bySize {
		sharpness = otherSharpness
		scaleCosts(&cost, newJobCostFactors)
	}
	if steady {
		scaleCosts(&cost, steadyCostFactors)
	}
	best := math.Inf(1)
	for k := range cost {
		if !s.isDistinct(k) || needsFit(k) && !fits {
			cost[k] = math.Inf(1)
		}
		best = min(best, cost[k])
	}
	sum := 0.0
	for k := range cost {
		weights[k] = math.Exp(sharpness * (1 - cost[k]/max(best, minCost)))
		sum += weights[k]
	}
	for k := range weights {
		weights[k] /= sum
	}
	return weights
}

func scaleCosts(cost *[guesses]float64, by map[int]float64) {
	for k, v := range by {
		cost[k] *= v
	}
}

// cost returns what guesses cost in a situation: the sum of the absolute and the relative
// costs, each measured by the least one over all jobs, or over those that are as
// little alike as this one. A situation that was seen too seldom is judged by wider
// ones. Relative costs are the owner's own, once there are enough; the absolute ones
// of one owner would mostly be those of a few long jobs.
func (l *guessWeighting) cost(s situation, owner hash, all *guessCosts) [guesses]float64 {
	if c := l.costs[situation{s[0], anyRank, anyRank}]; c != nil && s[0] > bySize {
		all = c
	}
	absolute := (1 - relativeCostShare) * all.jobs / lowestCost(&all.absolute)
	relative := relativeCostShare * all.jobs / lowestCost(&all.relative)
	var cost [guesses]float64
	if c := l.owners[ownerKey{owner, s[0]}]; c != nil {
		share := relative / (c.jobs + broaderJobs)
		for k := range cost {
			cost[k] = share * c.relative[k]
		}
		relative *= broaderJobs / (c.jobs + broaderJobs)
	}
	weight := 1.0
	for _, w := range s.broader() {
		c := l.costs[w]
		if c == nil {
			continue
		}
		share := weight / (c.jobs + broaderJobs)
		for k := range cost {
			cost[k] += share * (absolute*c.absolute[k] + relative*c.relative[k])
		}
		weight *= broaderJobs / (c.jobs + broaderJobs)
	}
	return cost
}

// minCost is what costs and scales are at least.
const minCost = 1e-12

// lowestCost returns the lowest cost of all guesses, and never 0.
func lowestCost(of *[guesses]float64) float64 {
	found := math.Inf(1)
	for _, v := range of {
		found = min(found, v)
	}
	return max(found, minCost)
}

// midmeanOf returns the mean of the middle half of guesses, by their weights. Where some say
// one thing and some another, as of programs that either crash or run for hours, the
// mean of all would be neither. Of guesses on runs of the job that say the same, as
// all do after its first run, one counts.
func midmeanOf(s situation, weights, g *[guesses]float64) float64 {
	var order [guesses]int // by value, of equal ones the heaviest first
	for k := range order {
		i := k
		for ; i > 0; i-- {
			j := order[i-1]
			if g[j] < g[k] || g[j] == g[k] && weights[j] >= weights[k] {
				break
			}
			order[i] = j
		}
		order[i] = k
	}
	once, total, before := *weights, 0.0, math.NaN()
	for _, k := range order {
		if s[0] <= bySize && g[k] == before {
			once[k] = 0
		}
		before = g[k]
		total += once[k]
	}
	v, half, below := 0.0, 0.0, 0.0
	for _, k := range order {
		part := min(0.75*total, below+once[k]) - max(0.25*total, below)
		below += once[k]
		if part > 0 {
			v += part * g[k]
			half += part
		}
	}
	return v / half
}
