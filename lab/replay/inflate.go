package replay

import (
	"context"
	"fmt"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/planner/score"
)

// DropReason is why a task wasn't placed.
type DropReason uint8

// A task was placed; no node is of a GPU model that it accepts; none of those
// that are has enough of everything even when it is empty; or there was no room
// left.
const (
	Placed DropReason = iota
	NoModel
	TooLarge
	Full
	dropReasonCount
)

// String names the reason.
func (d DropReason) String() string {
	switch d {
	case Placed:
		return "placed"
	case NoModel:
		return "no node has a GPU model that they accept"
	case TooLarge:
		return "no node is as large"
	case Full:
		return "no room left"
	default:
		return "unknown"
	}
}

// Tally counts arrivals so far.
type Tally struct {
	Arrived   int
	Demanded  int64                // milli-GPU of arrived tasks
	Allocated int64                // milli-GPU of placed tasks
	By        [dropReasonCount]int // arrivals by what became of them
	Refused   Work                 // of tasks that weren't placed
}

// Work is what tasks ask for.
type Work struct {
	Tasks    int
	CPUTasks int   // those of them without GPUs
	GPU      int64 // milli-GPU
	CPU      int64 // milli-vCPU
}

// add counts a task.
func (w *Work) add(d *fleet.Demand) {
	w.Tasks++
	w.GPU += int64(d.GPUMilli())
	w.CPU += d.CPU
	if d.GPUs == 0 {
		w.CPUTasks++
	}
}

// Placed returns the number of arrivals that were placed.
func (t *Tally) Placed() int { return t.By[Placed] }

// Dropped returns the number of arrivals that weren't.
func (t *Tally) Dropped() int { return t.Arrived - t.By[Placed] }

// AllocationRatio returns the GPU resource allocation ratio (GRAR): the part of the
// GPUs asked for that was allocated, 1 when nothing was.
func (t *Tally) AllocationRatio() float64 {
	if t.Demanded == 0 {
		return 1
	}
	return float64(t.Allocated) / float64(t.Demanded)
}

// Event is an arrival and what became of it.
type Event struct {
	Demand *fleet.Demand
	Node   int            // meaningless when dropped
	GPUs   planner.GPUSet // on the node
	Drop   DropReason
	Tally  Tally        // after it
	State  *fleet.State // after it
}

// Observer is told of each arrival in turn. The event is valid during the call.
type Observer interface{ Observe(e *Event) }

// Inflate offers each task of a stream to a chooser, whose cluster is empty at
// first, and places it at once or drops it for good. It stops with the context.
func Inflate(ctx context.Context, c score.Chooser, s *Stream, observers ...Observer) (Tally, error) {
	hopeless := dropReasons(s.Demands, c.State())
	e := Event{State: c.State()}
	for i, kind := range s.Arrivals {
		if err := ctx.Err(); err != nil {
			return e.Tally, err
		}
		e.Demand = &s.Demands[kind]
		e.Drop = hopeless[kind]
		if e.Drop == Placed {
			if err := e.place(c); err != nil {
				return e.Tally, fmt.Errorf("arrival %d: %w", i, err)
			}
		}
		e.count()
		for _, o := range observers {
			o.Observe(&e)
		}
	}
	return e.Tally, nil
}

// place asks the chooser for a place and takes it.
func (e *Event) place(c score.Chooser) error {
	var ok bool
	if e.Node, e.GPUs, ok = c.Choose(e.Demand); !ok {
		e.Drop = Full
		return nil
	}
	return c.Place(e.Node, e.Demand, e.GPUs)
}

func (e *Event) count() {
	milli := int64(e.Demand.GPUMilli())
	e.Tally.Arrived++
	e.Tally.Demanded += milli
	e.Tally.By[e.Drop]++
	if e.Drop == Placed {
		e.Tally.Allocated += milli
	} else {
		e.Tally.Refused.add(e.Demand)
	}
}

// dropReasons is, for each demand, why no empty node could take it; Placed where
// one could.
func dropReasons(demands []fleet.Demand, s *fleet.State) []DropReason {
	var kinds []fleet.Node // an empty node of each
	known := make(map[*fleet.Kind]bool)
	for i := range s.Len() {
		if k := s.Node(i).Kind; !known[k] {
			known[k] = true
			kinds = append(kinds, fleet.NewNode(k))
		}
	}
	why := make([]DropReason, len(demands))
	for i := range demands {
		why[i] = NoModel
		for j := range kinds {
			switch {
			case kinds[j].Fits(&demands[i]):
				why[i] = Placed
			case why[i] == NoModel && demands[i].Accepts(kinds[j].Kind.Model):
				why[i] = TooLarge
			}
		}
	}
	return why
}
