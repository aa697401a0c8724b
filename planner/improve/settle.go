package improve

import "math"

// Steps to find a node's best end: while the search runs, and at last.
const (
	settleQuick = 6
	settleFully = 80
)

// settle chooses the best end of a node and updates its GPUs. The node's cost is
// convex in its end, and the slope is 0 at the optimum or jumps there from
// below 0 to above it: Newton steps, halving where they leave the bracket.
func (s *state) settle(j int32, steps int) {
	v := &s.servers[j]
	if s.stepped {
		s.settleSteps(v)
	} else {
		v.end = s.bestEnd(v, steps)
	}
	for _, g := range v.gpus {
		s.refresh(g)
	}
}

func (s *state) bestEnd(v *server, steps int) float64 {
	low, high := 0.0, math.Inf(1)
	best, bestEnd := math.Inf(1), v.end
	end := v.end
	for range steps {
		total, slope, bend, ok := s.at(v, end)
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
			next = 0.5 * (low + min(high, 1.2*end))
			if math.IsInf(high, 1) {
				next = 1.05*end + math.SmallestNonzeroFloat64
			} else if low == 0 {
				next = 0.97 * end
			}
		}
		if math.Abs(next-end) < roundOff*end || high-low < roundOff*end {
			break
		}
		end = next
	}
	return bestEnd
}

// settleSteps tries the ends at which some GPU wants to end.
func (s *state) settleSteps(v *server) {
	best, bestEnd := math.Inf(1), v.end
	if total, _, _, ok := s.at(v, v.end); ok {
		best = total
	}
	for _, g := range v.gpus {
		u := &s.gpus[g]
		for n := max(0, u.node-1); n <= min(nodes-1, u.node+1); n++ {
			if total, _, _, ok := s.at(v, u.time[n]); ok && total < best {
				best, bestEnd = total, u.time[n]
			}
		}
		if total, _, _, ok := s.at(v, u.time[natural]); ok && total < best {
			best, bestEnd = total, u.time[natural]
		}
	}
	v.end = bestEnd
}

// at sums the cost of a node over its GPUs for an end.
func (s *state) at(v *server, end float64) (total, slope, bend float64, ok bool) {
	none := s.none()
	for _, g := range v.gpus {
		f, fits := s.fitTo(&s.gpus[g], none, none, end)
		if !fits {
			return 0, 0, 0, false
		}
		total, slope, bend = total+f.excess, slope+f.slope, bend+f.bend
	}
	return total, slope, bend, true
}

// refresh updates what is remembered of a GPU.
func (s *state) refresh(g int32) {
	none := s.none()
	u := &s.gpus[g]
	f, ok := s.fitTo(u, none, none, s.servers[u.server].end)
	if !ok {
		f.excess = math.Inf(1)
	}
	u.excess, u.node = f.excess, f.node
}
