package bound

import (
	"math"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/steps"
)

// OfPrices returns what the energy of no plan costs less than, at prices over time, that places the tasks of
// a plan and ends those by their due times that end by them there. It returns 0 where nothing is proved:
// where a price is below 0, or GPUs are shared by profile.
//
// Each task by itself costs at least the least product of its energy, host power included, and of the mean
// price during its run, over all run times and starts. Run times are looked at from one to the next, a
// [windowRatio] longer: the energy is that of the longest of them, and the mean price at least that during
// the shortest, up to the ratio. Runs of twice the time of least energy or longer prove nothing more: one of
// their halves costs no more in the mean.
func OfPrices(p *planner.Problem, plan *planner.Plan, prices steps.Function[float64]) (sum float64) {
	for _, step := range prices {
		if step.Value < 0 {
			return 0
		}
	}
	if p.HasSharing() || len(prices) == 0 {
		return 0
	}
	late := make(map[int]bool)
	for _, task := range plan.PastDue(p) {
		late[task] = true
	}
	runs := p.RunningTasks()
	w := windows{prices: prices, least: make(map[window]float64)}
	for i := range p.Tasks {
		if runs != nil && runs[i] || plan.Assignments[i].Node < 0 {
			continue
		}
		t := &p.Tasks[i]
		during := planner.Interval{From: earliestStart(p, t), To: min(t.Deadline, t.Due)}
		if during.To += planner.DeadlineSlack * max(1, math.Abs(during.To)); late[i] {
			during.To = math.Inf(1)
		}
		least := math.Inf(1)
		for class := range p.Cluster.Classes {
			least = min(least, w.leastCost(p, t, class, during))
		}
		if !math.IsInf(least, 1) {
			sum += least
		}
	}
	return sum
}

// windowRatio is how many times as long each run time is as the one before that is looked at.
const windowRatio = 1.01

// windows knows the least price of a time within others.
type windows struct {
	prices steps.Function[float64]
	least  map[window]float64
}

// window is a run time within a time.
type window struct {
	during planner.Interval
	length float64
}

// leastCost returns what a task costs at least on nodes of a class within a time; +Inf: it can't run there.
func (w *windows) leastCost(
	p *planner.Problem, t *planner.Task, class int, during planner.Interval,
) float64 {
	k := &p.Cluster.Classes[class]
	option := t.Option(k.Model)
	if !k.CanRun(t, option) {
		return math.Inf(1)
	}
	goal := dvfsmodel.Objective{EnergyWeight: 1, TimeWeight: float64(k.HostW)}
	limit := min(t.Limit, during.Len()*(1+planner.DeadlineSlack))
	best, ok := cheapest(t, option, goal, limit)
	if !ok {
		return math.Inf(1)
	}
	response := t.Options[option].Response
	shortest := response.Default().Time
	if t.Share == 1 {
		shortest = min(shortest, response.MinTime())
	}
	// Run times are those of all tasks: what is known of a window is asked for again.
	first := math.Floor(math.Log(shortest) / math.Log(windowRatio))
	least, longest := math.Inf(1), min(limit, 2*best.Time)
	for n := first; ; n++ {
		time := math.Pow(windowRatio, n)
		at, ok := cheapest(t, option, goal, min(limit, time*windowRatio))
		if ok {
			least = min(least, goal.Cost(at)*w.leastMean(window{during, time}))
		}
		if time*windowRatio > longest {
			return gpuWeight(t, option) * least
		}
	}
}

// leastMean returns the least mean price during a run in a window that takes its length or up to a ratio
// longer.
func (w *windows) leastMean(in window) float64 {
	if mean, known := w.least[in]; known {
		return mean
	}
	least := math.Inf(1)
	last := max(in.during.From, in.during.To-in.length) // start
	try := func(start float64) {
		start = max(in.during.From, min(last, start))
		least = min(least, w.prices.Integral(planner.Interval{From: start, To: start + in.length}))
	}
	try(in.during.From)
	if !math.IsInf(last, 1) {
		try(last)
	}
	for _, step := range w.prices {
		if step.From > last+in.length {
			break
		}
		if step.From > in.during.From {
			try(step.From)
			try(step.From - in.length)
		}
	}
	mean := least / (in.length * windowRatio)
	w.least[in] = mean
	return mean
}
