package live

import (
	"time"

	"github.com/epplan/epplan/dvfsmodel"
)

// Adaptation says between which core clocks a run is stepped while it lasts:
// frequency adaptation as in the CATS paper (algorithm 4), but by what the run
// has lost so far rather than by what it would lose at one clock for ever.
type Adaptation struct {
	// SLA is how many times as long as at default clocks the run may take, at
	// every moment of it: the paper's γ.
	SLA    float64 `json:"sla"`
	TauS   float64 `json:"tau_s"`             // from one look at the GPUs to the next
	Writes int     `json:"writes_per_minute"` // clock writes of a GPU in any minute
	// WritePauseS is how long after a change of the clock the next one may be at the earliest,
	// seconds, unless another run comes to the GPU.
	WritePauseS float64 `json:"write_pause_s,omitzero"`
	// RestS is for how long nothing must have run before the clock falls to the floor, seconds, where that is
	// more than the agent's own second.
	RestS float64 `json:"rest_s,omitzero"`
	// Levels are the clocks, falling. The first one is the ceiling, the default clock,
	// at which nothing is lost, and the last one the floor.
	Levels []AdaptLevel `json:"levels"`
}

// Interval returns the time from one look at the GPUs to the next.
func (a *Adaptation) Interval() time.Duration { return Known(a.TauS).Duration() }

// WritePause returns the time from one change of the clock to the next at least.
func (a *Adaptation) WritePause() time.Duration { return Known(a.WritePauseS).Duration() }

// RestTime returns for how long nothing must have run before the clock falls to the floor.
func (a *Adaptation) RestTime() time.Duration { return Known(a.RestS).Duration() }

// AdaptLevel is a core clock at which an adapted run may be.
type AdaptLevel struct {
	Core dvfsmodel.MHz `json:"core_mhz"`
	// Stretch is how many seconds the work of a second at default clocks takes at
	// most.
	Stretch float64 `json:"stretch"`
	// Cost is what work costs, as a multiple of what it costs at default clocks.
	Cost float64 `json:"cost"`
}
