package gpu

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
)

// newClocks sorts the core clocks by memory clock, both falling, each once.
func newClocks(byMem map[dvfsmodel.MHz][]dvfsmodel.MHz) Clocks {
	var c Clocks
	for _, mem := range sortDescending(slices.Collect(maps.Keys(byMem))) {
		c.Mem = append(c.Mem, mem)
		c.Core = append(c.Core, sortDescending(byMem[mem]))
	}
	return c
}

// ClocksOf sorts pairs into a table, both clocks falling.
func ClocksOf(pairs []dvfsmodel.Setting) Clocks {
	byMem := make(map[dvfsmodel.MHz][]dvfsmodel.MHz)
	for _, p := range pairs {
		byMem[p.Mem] = append(byMem[p.Mem], p.Core)
	}
	return newClocks(byMem)
}

func sortDescending(list []dvfsmodel.MHz) []dvfsmodel.MHz {
	sorted := slices.Compact(slices.Sorted(slices.Values(list)))
	slices.Reverse(sorted)
	return sorted
}

// supportsOne reports whether a GPU of such clocks can be set to a value, with whichever
// of the others: core and memory clocks restrict each other. What is no clock is any.
func (c *Clocks) supportsOne(control Control, v Value) bool {
	supports := controls[control].supports
	return supports == nil || supports(c, v)
}

func (c *Clocks) hasCore(v Value) bool {
	return slices.ContainsFunc(c.Core, func(list []dvfsmodel.MHz) bool {
		return slices.Contains(list, dvfsmodel.MHz(v))
	})
}

// LowestCore returns the lowest core clock of all.
func (c *Clocks) LowestCore() Value {
	lowest := math.Inf(1)
	for _, list := range c.Core {
		lowest = min(lowest, float64(slices.Min(list)))
	}
	return Value(lowest)
}

func (c *Clocks) hasMem(v Value) bool { return slices.Contains(c.Mem, dvfsmodel.MHz(v)) }

// Highest returns the greatest clock of a control that isn't above another one, the table's lowest if all are;
// 0: the table has none.
func (c *Clocks) Highest(control Control, most Value) (best Value) {
	lowest := Value(0)
	for i, mem := range c.Mem {
		list := c.Core[i]
		if control == MemClock {
			list = []dvfsmodel.MHz{mem}
		}
		for _, f := range list {
			v := Value(f)
			if lowest == 0 || v < lowest {
				lowest = v
			}
			if v <= most {
				best = max(best, v)
			}
		}
	}
	return cmp.Or(best, lowest)
}

// Clone returns a copy that shares nothing.
func (c *Clocks) Clone() Clocks {
	out := Clocks{Mem: slices.Clone(c.Mem), Core: make([][]dvfsmodel.MHz, len(c.Core))}
	for i := range c.Core {
		out.Core[i] = slices.Clone(c.Core[i])
	}
	return out
}
