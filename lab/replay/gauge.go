package replay

import (
	"math"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/fleet"
)

// Reading is a run at a load: halfway between the last state below it and the
// first one above, where states are told apart by their arrived loads and the
// first of each counts. It is how the paper's plots are read.
type Reading struct {
	Load  float64
	Power dvfsmodel.Watt // EOPC
	Cost  float64        // the same in weighted watts: [fleet.State.Cost]
	Ratio float64        // GRAR
	// Refused is the work refused up to the first state above the load.
	Refused Work
}

// LoadGauge reads a run at fixed loads.
type LoadGauge struct {
	loads    []float64 // in milli-GPU
	readings []Reading
	next     int
	before   loadState
}

type loadState struct {
	power               dvfsmodel.Watt
	cost                float64
	demanded, allocated int64
}

// NewLoadGauge prepares readings of a cluster at loads in ascending order.
func NewLoadGauge(s *fleet.State, loads []float64) *LoadGauge {
	g := &LoadGauge{loads: make([]float64, len(loads)), readings: make([]Reading, len(loads))}
	for i, load := range loads {
		g.loads[i] = load * float64(s.Capacity())
		g.readings[i] = Reading{
			Load: load, Power: dvfsmodel.Watt(math.NaN()), Cost: math.NaN(), Ratio: math.NaN(),
		}
	}
	cpu, gpu := s.Power()
	g.before.power, g.before.cost = cpu+gpu, s.Cost()
	return g
}

// Observe takes the readings that an arrival allows.
func (g *LoadGauge) Observe(e *Event) {
	if e.Demand.GPUs == 0 || g.next == len(g.loads) {
		return
	}
	cpu, gpu := e.State.Power()
	now := loadState{cpu + gpu, e.State.Cost(), e.Tally.Demanded, e.Tally.Allocated}
	for g.next < len(g.loads) && float64(now.demanded) > g.loads[g.next] {
		r := &g.readings[g.next]
		r.Power, r.Cost = (g.before.power+now.power)/2, (g.before.cost+now.cost)/2
		r.Ratio = float64(g.before.allocated+now.allocated) / float64(g.before.demanded+now.demanded)
		r.Refused = e.Tally.Refused
		g.next++
	}
	if g.next < len(g.loads) && float64(now.demanded) < g.loads[g.next] {
		g.before = now
	}
}

// Readings returns one for each load; NaN where the run ended before.
func (g *LoadGauge) Readings() []Reading { return g.readings }
