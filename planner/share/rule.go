package share

import (
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/sharing"
)

// A Rule chooses GPUs for one task at a time and keeps nothing in mind, so
// that it serves a batch as well as tasks that come and go.
type Rule interface {
	// Choose is the GPU for a piece of a task, given those that its other
	// pieces have taken and the state without this task. It is false where
	// there is none with the memory.
	Choose(s *sharing.State, task int, taken []int) (gpu int, ok bool)
}

// Clocks is the frequency, MHz, of a GPU that has tasks.
type Clocks func(s *sharing.State, gpu int) dvfsmodel.MHz
