package improve

import "math"

// How many ends are tried to find a node's best one: while the search runs, where
// the last end is close to it, and when the result must be exact.
const (
	quickEndTries = 6
	fullEndTries  = 80
)

// chooseEnd chooses the best end of a node and updates its GPUs.
func (s *gpuSchedule) chooseEnd(j int32, tries int) {
	v := &s.servers[j]
	if s.stepped {
		s.chooseEndByTable(v)
	} else {
		v.end = s.bestEnd(v, tries)
	}
	for _, g := range v.gpus {
		s.refresh(g)
	}
}

// bestEnd searches from the node's present end. The node's cost is convex in its
// end, and the slope is 0 at the optimum or jumps there from below 0 to above it:
// Newton steps, halving where they leave the bracket. An end at which some task
// would be late is below the bracket.
func (s *gpuSchedule) bestEnd(v *server, tries int) float64 {
	low, high := 0.0, math.Inf(1)
	best, bestEnd := math.Inf(1), v.end
	end := v.end
	for range tries {
		total, slope, bend, ok := s.nodeCostAt(v, end)
		switch {
		case !ok:
			low = end
		case slope > 0:
			high = end
		default:
			low = end
		}
		if ok && total < best {
			best, bestEnd = total, end
		}
		next := end - slope/bend
		if !ok || !(next > low && next < high) {
			next = nextEndGuess(low, high, end)
		}
		if math.Abs(next-end) < roundOff*end || high-low < roundOff*end {
			break
		}
		end = next
	}
	return bestEnd
}

// nextEndGuess returns the end to try where a Newton step won't do: a little beyond the last
// one as long as no bound above is known, a little before it as long as none below
// is, and then the middle of the bracket.
func nextEndGuess(low, high, end float64) float64 {
	const up, down = 1.05, 0.97
	switch {
	case math.IsInf(high, 1):
		return up*end + math.SmallestNonzeroFloat64
	case low == 0:
		return down * end
	}
	const most = 1.2 // times the last end: a far bound says little
	return 0.5 * (low + min(high, most*end))
}

// chooseEndByTable is chooseEnd where clocks are a table: it tries the ends at which some
// GPU ends by the price that it has, by the next ones, and by its own optimum.
func (s *gpuSchedule) chooseEndByTable(v *server) {
	best, bestEnd := math.Inf(1), v.end
	if total, _, _, ok := s.nodeCostAt(v, v.end); ok {
		best = total
	}
	for _, g := range v.gpus {
		u := &s.gpus[g]
		for n := max(0, u.step-1); n <= min(priceCount-1, u.step+1); n++ {
			if total, _, _, ok := s.nodeCostAt(v, u.time[n]); ok && total < best {
				best, bestEnd = total, u.time[n]
			}
		}
		if total, _, _, ok := s.nodeCostAt(v, u.time[freeOptimum]); ok && total < best {
			best, bestEnd = total, u.time[freeOptimum]
		}
	}
	v.end = bestEnd
}

// nodeCostAt sums the cost of a node over its GPUs for an end, with its slope and bend as
// in [gpuFit]. ok is false when a task would be late.
func (s *gpuSchedule) nodeCostAt(v *server, end float64) (total, slope, bend float64, ok bool) {
	none := s.dummyItem()
	for _, g := range v.gpus {
		f, fits := s.fitTo(&s.gpus[g], none, none, end)
		if !fits {
			return 0, 0, 0, false
		}
		total, slope, bend = total+f.excess, slope+f.slope, bend+f.bend
	}
	return total, slope, bend, true
}

func (s *gpuSchedule) refresh(g int32) {
	none := s.dummyItem()
	u := &s.gpus[g]
	f, ok := s.fitTo(u, none, none, s.servers[u.server].end)
	if !ok {
		f.excess = math.Inf(1)
	}
	u.excess, u.step = f.excess, f.step
}
