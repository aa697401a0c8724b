package consolidate

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner/sharing"
)

// serverKnapsack is what servers take by the number of GPUs that have to be awake: a
// knapsack, solved once for all numbers. GPUs come in classes by memory; a
// group that needs one class may have a larger one.
type serverKnapsack struct {
	in         *sharing.Instance
	sizes      []float64 // memory of the classes, GB, ascending
	dims       []int     // by class: one more than the GPUs of it or larger that can matter
	strides    []int
	table      []float64 // by GPUs awake of class k or larger, for all k: watts; +Inf: there are not so many
	coarse     bool      // some sizes count as others
	optimistic bool      // as larger ones
	gpus       [][]int   // by server: its GPUs of class k or larger, for all k
}

// maxTableCells is how many combinations of GPUs awake by class are told apart.
const maxTableCells = 1 << 18

// newServerKnapsack returns what servers take for as many GPUs as there are pieces, or fewer.
// Where GPUs have too many sizes, rare ones count as the next smaller of the
// others, or as the next larger when hopeful: then what is found may not fit,
// but nothing that fits takes less.
func newServerKnapsack(in *sharing.Instance, pieces int, hopeful bool) *serverKnapsack {
	h := &serverKnapsack{in: in}
	for _, g := range in.GPUs() {
		h.sizes = append(h.sizes, g.MemGB)
	}
	slices.Sort(h.sizes)
	all := h.sizes
	h.sizes = slices.Compact(slices.Clone(all))
	for h.tableSize(all, pieces) > maxTableCells {
		h.coarse = true
		h.sizes = slices.Delete(h.sizes, rarestSize(h.sizes, all), rarestSize(h.sizes, all)+1)
	}
	h.optimistic = hopeful
	h.gpus = make([][]int, len(in.Servers))
	for s := range in.Servers {
		h.gpus[s] = make([]int, len(h.sizes))
		for _, mem := range in.Servers[s].GPUMemGB {
			for k := range h.classOfGPU(mem) + 1 {
				h.gpus[s][k]++
			}
		}
	}
	cells := 1
	for k := range h.sizes {
		n := 0
		for s := range h.gpus {
			n += h.gpus[s][k]
		}
		h.strides = append(h.strides, cells)
		h.dims = append(h.dims, min(n, pieces)+1)
		cells *= min(n, pieces) + 1
	}
	h.table = make([]float64, cells)
	for i := 1; i < cells; i++ {
		h.table[i] = math.Inf(1)
	}
	for s := range in.Servers {
		h.add(s, h.table)
	}
	return h
}

// tableSize returns how large a table for GPUs of those sizes can be.
func (h *serverKnapsack) tableSize(all []float64, pieces int) int {
	cells := 1
	for _, size := range h.sizes {
		at, _ := slices.BinarySearch(all, size)
		if cells *= min(len(all)-at, pieces) + 1; cells > maxTableCells {
			return cells
		}
	}
	return cells
}

// rarestSize returns the place of the size, but the largest, that the fewest GPUs have.
func rarestSize(sizes, all []float64) int {
	best, fewest := 0, math.MaxInt
	for k, size := range sizes[:len(sizes)-1] {
		from, _ := slices.BinarySearch(all, size)
		to, _ := slices.BinarySearch(all, sizes[k+1])
		if to-from < fewest {
			best, fewest = k, to-from
		}
	}
	return best
}

// classOfGPU returns the class that a GPU's memory counts as; -1: none.
func (h *serverKnapsack) classOfGPU(memGB float64) int {
	k, exact := slices.BinarySearch(h.sizes, memGB)
	if exact || h.optimistic {
		return k
	}
	return k - 1
}

// add lets a server be on, in place: cells are filled from the largest, which
// only look at smaller ones.
func (h *serverKnapsack) add(server int, table []float64) {
	watts := h.in.Servers[server].HostW()
	need := make([]int, len(h.dims))
	h.gpusAt(len(table)-1, need)
	for cell := len(table) - 1; cell > 0; cell-- {
		table[cell] = min(table[cell], table[h.cellWithout(server, need)]+watts)
		for k := range need { // of the cell before
			if need[k]--; need[k] >= 0 {
				break
			}
			need[k] = h.dims[k] - 1
		}
	}
}

// cellWithout returns the cell of what is needed beside a server's GPUs.
func (h *serverKnapsack) cellWithout(server int, need []int) int {
	cell := 0
	for k, n := range need {
		cell += h.strides[k] * max(0, n-h.gpus[server][k])
	}
	return cell
}

// gpusAt says how many GPUs of class k or larger a cell stands for, for all k.
func (h *serverKnapsack) gpusAt(cell int, need []int) {
	for k := range need {
		need[k] = cell / h.strides[k] % h.dims[k]
	}
}

// smallestClass returns the smallest that has the memory; -1: none has.
func (h *serverKnapsack) smallestClass(memGB float64) int {
	for k, size := range h.sizes {
		if memGB <= size+sharing.SlackGB {
			return k
		}
	}
	return -1
}

// cell returns where the table has what so many groups by class need; -1: nowhere.
func (h *serverKnapsack) cell(groups []int) int {
	cell, n := 0, 0
	for k, more := range slices.Backward(groups) {
		n += more
		if n >= h.dims[k] {
			return -1
		}
		cell += n * h.strides[k]
	}
	return cell
}

// watts returns what the cheapest servers for so many groups by class take; +Inf
// where there aren't enough GPUs.
func (h *serverKnapsack) watts(groups []int) float64 {
	if cell := h.cell(groups); cell >= 0 {
		return h.table[cell]
	}
	return math.Inf(1)
}

// gpusToWake lists the GPUs of the cheapest servers for so many groups, by class.
// There have to be enough.
func (h *serverKnapsack) gpusToWake(groups []int) [][]int {
	tables := make([][]float64, len(h.in.Servers)+1)
	tables[0] = make([]float64, len(h.table))
	for i := 1; i < len(h.table); i++ {
		tables[0][i] = math.Inf(1)
	}
	for s := range h.in.Servers {
		tables[s+1] = slices.Clone(tables[s])
		h.add(s, tables[s+1])
	}
	on := make([]bool, len(h.in.Servers))
	need := make([]int, len(h.dims))
	cell := h.cell(groups)
	for s := len(h.in.Servers) - 1; s >= 0; s-- {
		if tables[s+1][cell] < tables[s][cell] {
			on[s] = true
			h.gpusAt(cell, need)
			cell = h.cellWithout(s, need)
		}
	}
	free := make([][]int, len(h.sizes))
	for i, g := range h.in.GPUs() {
		if k := h.classOfGPU(g.MemGB); k >= 0 && on[g.Server] {
			free[k] = append(free[k], i)
		}
	}
	return free
}
