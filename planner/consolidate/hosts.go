package consolidate

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner/sharing"
)

// hosts is what servers take by the number of GPUs that have to be awake: a
// knapsack, solved once for all numbers. GPUs come in classes by memory; a
// group that needs one class may have a larger one.
type hosts struct {
	in      *sharing.Instance
	sizes   []float64 // memory of the classes, GB, ascending
	dims    []int     // by class: one more than the GPUs of it or larger that can matter
	strides []int
	table   []float64 // by GPUs awake of class k or larger, for all k: watts; +Inf: there are not so many
	coarse  bool      // some sizes count as others
	hopeful bool      // as larger ones
	gpus    [][]int   // by server: its GPUs of class k or larger, for all k
}

// mostCells is how many combinations of GPUs awake by class are told apart.
const mostCells = 1 << 18

// newHosts is what servers take for as many GPUs as there are pieces, or fewer.
// Where GPUs have too many sizes, rare ones count as the next smaller of the
// others, or as the next larger when hopeful: then what is found may not fit,
// but nothing that fits takes less.
func newHosts(in *sharing.Instance, pieces int, hopeful bool) *hosts {
	h := &hosts{in: in}
	for _, g := range in.GPUs() {
		h.sizes = append(h.sizes, g.MemGB)
	}
	slices.Sort(h.sizes)
	all := h.sizes
	h.sizes = slices.Compact(slices.Clone(all))
	for h.cells(all, pieces) > mostCells {
		h.coarse = true
		h.sizes = slices.Delete(h.sizes, rarest(h.sizes, all), rarest(h.sizes, all)+1)
	}
	h.hopeful = hopeful
	h.gpus = make([][]int, len(in.Servers))
	for s := range in.Servers {
		h.gpus[s] = make([]int, len(h.sizes))
		for _, mem := range in.Servers[s].GPUMemGB {
			for k := range h.size(mem) + 1 {
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

// cells is how large a table for GPUs of those sizes can be.
func (h *hosts) cells(all []float64, pieces int) int {
	cells := 1
	for _, size := range h.sizes {
		at, _ := slices.BinarySearch(all, size)
		if cells *= min(len(all)-at, pieces) + 1; cells > mostCells {
			return cells
		}
	}
	return cells
}

// rarest is the place of the size, but the largest, that the fewest GPUs have.
func rarest(sizes, all []float64) int {
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

// size is the class that a GPU's memory counts as; -1: none.
func (h *hosts) size(memGB float64) int {
	k, exact := slices.BinarySearch(h.sizes, memGB)
	if exact || h.hopeful {
		return k
	}
	return k - 1
}

// add lets a server be on, in place: cells are filled from the largest, which
// only look at smaller ones.
func (h *hosts) add(server int, table []float64) {
	watts := h.in.Servers[server].HostW()
	need := make([]int, len(h.dims))
	h.need(len(table)-1, need)
	for cell := len(table) - 1; cell > 0; cell-- {
		table[cell] = min(table[cell], table[h.without(server, need)]+watts)
		for k := range need { // of the cell before
			if need[k]--; need[k] >= 0 {
				break
			}
			need[k] = h.dims[k] - 1
		}
	}
}

// without is the cell of what is needed beside a server's GPUs.
func (h *hosts) without(server int, need []int) int {
	cell := 0
	for k, n := range need {
		cell += h.strides[k] * max(0, n-h.gpus[server][k])
	}
	return cell
}

// need says how many GPUs of class k or larger a cell stands for, for all k.
func (h *hosts) need(cell int, need []int) {
	for k := range need {
		need[k] = cell / h.strides[k] % h.dims[k]
	}
}

// class is the smallest that has the memory; -1: none has.
func (h *hosts) class(memGB float64) int {
	for k, size := range h.sizes {
		if memGB <= size+sharing.SlackGB {
			return k
		}
	}
	return -1
}

// cell is where the table has what so many groups by class need; -1: nowhere.
func (h *hosts) cell(groups []int) int {
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

// watts is what the cheapest servers for so many groups by class take; +Inf
// where there aren't enough GPUs.
func (h *hosts) watts(groups []int) float64 {
	if cell := h.cell(groups); cell >= 0 {
		return h.table[cell]
	}
	return math.Inf(1)
}

// open lists the GPUs of the cheapest servers for so many groups, by class.
// There have to be enough.
func (h *hosts) open(groups []int) [][]int {
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
			h.need(cell, need)
			cell = h.without(s, need)
		}
	}
	free := make([][]int, len(h.sizes))
	for i, g := range h.in.GPUs() {
		if k := h.size(g.MemGB); k >= 0 && on[g.Server] {
			free[k] = append(free[k], i)
		}
	}
	return free
}
