package replay

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/epplan/epplan/planner/fleet"
)

// Stream is tasks in the order in which they arrive.
type Stream struct {
	Demands  []fleet.Demand // what there is to ask for, each once
	Arrivals []int32        // which of them each arrival asks for
}

// NewStream returns the stream of tasks of a list, by their rows in the order in
// which they arrive.
func NewStream(list []fleet.Demand, rows []int32) *Stream {
	s := &Stream{Arrivals: make([]int32, len(rows))}
	known := make(map[fleet.Demand]int32)
	kinds := make([]int32, len(list)) // of each row, from 1; 0: not looked up yet
	for i, row := range rows {
		if kinds[row] == 0 {
			kind, ok := known[list[row]]
			if !ok {
				s.Demands = append(s.Demands, list[row])
				kind = int32(len(s.Demands))
				known[list[row]] = kind
			}
			kinds[row] = kind
		}
		s.Arrivals[i] = kinds[row] - 1
	}
	return s
}

// PaperLoad is the load, in parts of the cluster's GPUs, at which the paper's
// streams end.
const PaperLoad = 1.3

// maxArrivals bounds how many tasks are drawn.
const maxArrivals = 20e6

// ErrNoLoad is the cause of an error for a list of tasks that can't make a load:
// none of them asks for a GPU, or so few that the stream would never end.
var ErrNoLoad = errors.New("too few tasks ask for GPUs")

// Draw draws a stream from a list of tasks, as rows of the list: the whole list
// shuffled, then tasks drawn from it with replacement until the next one would
// bring the GPUs asked for to more than a load times the capacity, milli-GPU. A
// list that asks for as much by itself loses tasks at random until it doesn't
// ask for more, and none are added (data/openb/SEMANTICS.md, section 2). A list that
// can't make the load is an error with the cause [ErrNoLoad].
func Draw(dice RandomSource, list []fleet.Demand, capacity int64, load float64) ([]int32, error) {
	if !(load >= 0) || capacity < 0 {
		return nil, fmt.Errorf("drawing tasks up to load %v of %d milli-GPU, want both 0 or more",
			load, capacity)
	}
	for i := range list {
		if err := list[i].Validate(); err != nil {
			return nil, fmt.Errorf("drawing tasks: row %d of the list: %w", i, err)
		}
	}
	limit := load * float64(capacity)
	rows := make([]int32, len(list), len(list)+len(list)/2)
	asked := int64(0)
	for i := range list {
		rows[i] = int32(i)
		asked += int64(list[i].GPUMilli())
	}
	missing := limit - float64(asked)
	if missing > 0 && (len(list) == 0 || missing/float64(asked)*float64(len(list)) > maxArrivals) {
		return nil, fmt.Errorf("drawing tasks from %d up to load %v: %w", len(list), load, ErrNoLoad)
	}
	dice.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	for float64(asked) > limit {
		// The order is random, so that the last one is any of them.
		last := &list[rows[len(rows)-1]]
		asked -= int64(last.GPUMilli())
		rows = rows[:len(rows)-1]
	}
	if missing <= 0 {
		return rows, nil
	}
	for {
		row := dice.IntN(len(list))
		if float64(asked+int64(list[row].Milli)) > limit {
			return rows, nil
		}
		asked += int64(list[row].GPUMilli())
		rows = append(rows, int32(row))
	}
}

// ReorderInBatches reorders rows of a list, in the order in which they arrive, as if each
// size arrivals in a row were placed together, the largest first: by GPUs asked
// for, then by CPUs for each GPU, then by arrival. With a size of 1 nothing
// changes.
func ReorderInBatches(rows []int32, list []fleet.Demand, size int) {
	if size <= 1 {
		return
	}
	for batch := range slices.Chunk(rows, size) {
		slices.SortStableFunc(batch, func(a, b int32) int {
			s, t := &list[a], &list[b]
			return cmp.Or(cmp.Compare(t.GPUMilli(), s.GPUMilli()), cmp.Compare(cpusPerGPU(t), cpusPerGPU(s)))
		})
	}
}

// cpusPerGPU returns the CPUs that a task asks for with each GPU.
func cpusPerGPU(d *fleet.Demand) float64 {
	return float64(d.CPU) / float64(max(1, d.GPUMilli()))
}
