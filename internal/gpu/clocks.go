package gpu

import (
	"maps"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
)

// newClocks sorts the core clocks by memory clock, both falling, each once.
func newClocks(byMem map[dvfsmodel.MHz][]dvfsmodel.MHz) Clocks {
	var c Clocks
	for _, mem := range sortFalling(slices.Collect(maps.Keys(byMem))) {
		c.Mem = append(c.Mem, mem)
		c.Core = append(c.Core, sortFalling(byMem[mem]))
	}
	return c
}

func sortFalling(list []dvfsmodel.MHz) []dvfsmodel.MHz {
	sorted := slices.Compact(slices.Sorted(slices.Values(list)))
	slices.Reverse(sorted)
	return sorted
}

// supportsOne reports whether a clock is in the table at all, with whichever
// other clock.
func (c *Clocks) supportsOne(d Domain, f dvfsmodel.MHz) bool {
	if d == Mem {
		return slices.Contains(c.Mem, f)
	}
	return slices.ContainsFunc(c.Core, func(list []dvfsmodel.MHz) bool { return slices.Contains(list, f) })
}

// clone is a copy that shares nothing.
func (c *Clocks) clone() Clocks {
	out := Clocks{Mem: slices.Clone(c.Mem), Core: make([][]dvfsmodel.MHz, len(c.Core))}
	for i := range c.Core {
		out.Core[i] = slices.Clone(c.Core[i])
	}
	return out
}
