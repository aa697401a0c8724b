package predict

import "math"

const (
	forgetting      = 0.998 // of what guesses cost, for each job that ends in a situation
	wideJobs        = 30    // jobs that a wider situation counts for in a narrower one
	firstIndulgence = 0.3
	leastIndulgence = 1e-4
	indulging       = 0.05 // how fast the indulgence follows errors
	several         = 1    // counts from this one on are those of several runs
	alike           = 2    // spreads up to this one are those of runs that are alike
	advantage       = 0.93 // what steady guesses' costs are multiplied by where runs are alike
)

// steady guesses rest on many runs. Where runs are alike all guesses of them are
// about as good, and which one was best so far is mostly chance.
var steady = [...]int{guessMedian, guessCentral, guessAnyTime, guessAnyCentral}

// ladder knows what each guess cost in each situation, and so which one to take.
type ladder struct {
	costs map[situation]*costs
}

// costs of guesses, summed over jobs, the older ones less.
type costs struct {
	jobs     float64
	absolute [guesses]float64 // in the target's unit
	relative [guesses]float64 // from 0 to 1, half at the indulgence

	// indulgence is about the median relative error of the median, so that errors
	// count by whether they are large among those of their situation.
	indulgence float64
}

func newLadder() *ladder { return &ladder{costs: map[situation]*costs{}} }

// learn books what the guesses of a job cost, once its value is known.
func (l *ladder) learn(s situation, g *[guesses]float64, v float64) {
	truth := math.Exp(v)
	var absolute, relative [guesses]float64
	for k := range g {
		absolute[k] = math.Abs(math.Exp(g[k]) - truth)
		relative[k] = absolute[k] / truth
	}
	for _, w := range s.wider() {
		c := l.costs[w]
		if c == nil {
			c = &costs{indulgence: firstIndulgence}
			l.costs[w] = c
		}
		c.add(&absolute, &relative)
	}
}

func (c *costs) add(absolute, relative *[guesses]float64) {
	if relative[guessMedian] > c.indulgence {
		c.indulgence *= 1 + indulging
	} else {
		c.indulgence = max(leastIndulgence, c.indulgence/(1+indulging))
	}
	c.jobs = c.jobs*forgetting + 1
	for k := range absolute {
		c.absolute[k] = c.absolute[k]*forgetting + absolute[k]
		c.relative[k] = c.relative[k]*forgetting + relative[k]/(relative[k]+c.indulgence)
	}
}

// choose is the guess that costs least in a situation, those of trees only where
// there are some. A cost is the sum of the absolute and the relative one, each
// measured by the least one over all jobs. A situation that was seen too seldom is
// judged by wider ones.
func (l *ladder) choose(s situation, trees bool) int {
	all := l.costs[anySituation]
	if all == nil {
		return guessCentral
	}
	absoluteScale, relativeScale := least(&all.absolute)/all.jobs, least(&all.relative)/all.jobs
	var cost [guesses]float64
	weight := 1.0
	for _, w := range s.wider() {
		c := l.costs[w]
		if c == nil {
			continue
		}
		share := weight / (c.jobs + wideJobs)
		for k := range cost {
			cost[k] += share * (c.absolute[k]/absoluteScale + c.relative[k]/relativeScale)
		}
		weight *= wideJobs / (c.jobs + wideJobs)
	}
	if s[1] >= several && s[2] <= alike {
		for _, k := range steady {
			cost[k] *= advantage
		}
	}
	best := guessCentral
	for k := range cost {
		if (trees || !ofTrees(k)) && cost[k] < cost[best] {
			best = k
		}
	}
	return best
}

func least(of *[guesses]float64) float64 {
	smallest := math.Inf(1)
	for _, v := range of {
		smallest = min(smallest, v)
	}
	return max(smallest, 1e-12)
}
