package improve

import (
	"cmp"
	"slices"
)

// gpuSchedule is a schedule under work: which tasks run on which GPU, in order of
// due times, which GPUs form a node, and until when each node is on. Times
// count from when the GPUs can be used.
type gpuSchedule struct {
	items    []item  // by task of the island; the last one is a stand-in for "no task"
	order    []int32 // items in the order of EDL algorithm 2
	gpus     []gpu
	servers  []server
	gpuOf    []int32 // by item: its GPU
	nodeGPUs int     // GPUs of a node
	idle     float64 // price of an idle GPU, watts
	perNode  float64 // what a node costs besides, joules
	stepped  bool    // run times between those at two prices cannot be had: the clocks are a table
}

type item struct {
	timeCurve
	due  float64 // seconds
	room float64 // longest run time, seconds: up to the due time, or the limit
}

// gpu is one GPU with the sum of its tasks' curves.
type gpu struct {
	timeCurve
	tasks  []int32 // items by due time
	server int32
	step   int     // the highest step of priceSteps at which it ends no later than its server
	excess float64 // cost above the tasks' own optima then, joules
}

// server is a node of the cluster: its GPUs, and when it goes off.
type server struct {
	end  float64 // seconds
	gpus []int32
}

// gpuFit is a GPU's best answer to a given end.
type gpuFit struct {
	excess float64 // cost above the tasks' own optima, joules
	step   int     // the price of time is between this one of priceSteps and the next
	frac   float64 // how far towards the next, 0 ≤ frac < 1
	slope  float64 // d excess / d end, watts
	bend   float64 // d slope / d end, roughly
}

const (
	// roundOff is the relative rounding that sums of times may carry.
	roundOff = 1e-12
	// narrow is the relative difference of times that counts as none.
	narrow = 1e-9
)

// dummyItem returns the index of the stand-in for "no task".
func (s *gpuSchedule) dummyItem() int32 { return int32(len(s.items) - 1) }

// fitTo returns how GPU g would do with one task less and another one more if all
// had to end by end. ok is false when that time or some due time is missed at
// any clocks.
func (s *gpuSchedule) fitTo(g *gpu, minus, plus int32, end float64) (f gpuFit, ok bool) {
	a, b := &s.items[minus].timeCurve, &s.items[plus].timeCurve
	n := g.step
	for n > 0 && g.time[n]-a.time[n]+b.time[n] > end {
		n--
	}
	for n < priceCount-1 && g.time[n+1]-a.time[n+1]+b.time[n+1] <= end {
		n++
	}
	low := g.time[n] - a.time[n] + b.time[n]
	if low > end*(1+roundOff) {
		return f, false
	}
	f.step = n
	cost := g.cost[n] - a.cost[n] + b.cost[n]
	if n < priceCount-1 && !s.stepped {
		longer := g.time[n+1] - a.time[n+1] + b.time[n+1] - low
		f.frac = max(0, end-low) / longer
		if longer > narrow*end && f.frac > 0 && s.onTime(g, minus, plus, n, f.frac) {
			dearer := g.cost[n+1] - a.cost[n+1] + b.cost[n+1] - cost
			f.interpolate(cost, dearer, longer, priceSteps[n]*s.idle, priceSteps[n+1]*s.idle)
			return f, true
		}
		f.frac = 0
	}
	if !s.onTime(g, minus, plus, n, 0) {
		if n = s.lastOnTime(g, minus, plus, n); n < 0 {
			return f, false
		}
		f.step = n
		low, cost = g.time[n]-a.time[n]+b.time[n], g.cost[n]-a.cost[n]+b.cost[n]
	}
	f.slope = s.idle
	f.excess = cost + s.idle*max(0, end-low)
	return f, true
}

// interpolate interpolates the cost at frac between two steps, from cost to cost+dearer
// over a run time that is so many seconds longer, with the slopes lower and upper,
// watts, at the two ends. It is a convex rational function: the chord less a
// hyperbola that has the right slopes.
func (f *gpuFit) interpolate(cost, dearer, longer, lower, upper float64) {
	x := f.frac
	below, above := max(0, dearer-lower*longer), max(0, upper*longer-dearer)
	f.bend = (upper - lower) / longer
	f.slope = dearer / longer
	f.excess = cost + x*dearer
	if d := above*(1-x) + below*x; d > 0 {
		f.excess -= x * (1 - x) * below * above / d
		f.slope -= below * above * ((1-2*x)*d - x*(1-x)*(below-above)) / (d * d * longer)
	}
}

// onTime reports whether the tasks meet their due times one after the other, at
// the price between two steps.
func (s *gpuSchedule) onTime(g *gpu, minus, plus int32, n int, frac float64) bool {
	now := 0.0
	pending := plus
	if plus == s.dummyItem() {
		pending = -1
	}
	for _, i := range g.tasks {
		if i == minus {
			continue
		}
		t := &s.items[i]
		if pending >= 0 && s.items[pending].due <= t.due {
			if now += s.items[pending].between(n, frac); now > s.items[pending].due*(1+roundOff) {
				return false
			}
			pending = -1
		}
		if now += t.between(n, frac); now > t.due*(1+roundOff) {
			return false
		}
	}
	return pending < 0 || now+s.items[pending].between(n, frac) <= s.items[pending].due*(1+roundOff)
}

// lastOnTime returns the highest step below n at which all due times are met, or -1.
func (s *gpuSchedule) lastOnTime(g *gpu, minus, plus int32, n int) int {
	if !s.onTime(g, minus, plus, 0, 0) {
		return -1
	}
	low, high := 0, n // low is on time, high is not
	for high-low > 1 {
		if mid := (low + high) / 2; s.onTime(g, minus, plus, mid, 0) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// total returns the cost above the sum of the tasks' own optima, joules.
func (s *gpuSchedule) total() float64 {
	sum := s.perNode * float64(len(s.servers))
	for i := range s.gpus {
		sum += s.gpus[i].excess
	}
	return sum
}

func (s *gpuSchedule) place(i, g int32) {
	s.addToList(i, g)
	s.gpus[g].plus(&s.items[i].timeCurve, 1)
}

// addToList enters an item into a GPU's list and leaves the GPU's curve alone.
func (s *gpuSchedule) addToList(i, g int32) {
	u := &s.gpus[g]
	at, _ := slices.BinarySearchFunc(u.tasks, i, s.byDue)
	u.tasks = slices.Insert(u.tasks, at, i)
	s.gpuOf[i] = g
}

func (s *gpuSchedule) remove(i int32) {
	u := &s.gpus[s.gpuOf[i]]
	at := slices.Index(u.tasks, i)
	u.tasks = slices.Delete(u.tasks, at, at+1)
	if len(u.tasks) == 0 {
		u.timeCurve = timeCurve{} // no rounding is left behind
		return
	}
	u.plus(&s.items[i].timeCurve, -1)
}

// byDue returns the order of items on a GPU.
func (s *gpuSchedule) byDue(a, b int32) int {
	return cmp.Or(cmp.Compare(s.items[a].due, s.items[b].due), cmp.Compare(a, b))
}
