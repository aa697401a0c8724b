package powerbudget

import (
	"math"
	"sort"

	"github.com/epplan/epplan/dvfsmodel"
)

// Budget is how many watts there are over time. Each step holds from its time on, seconds; the first one also
// before, the last one for good.
type Budget []Step

// Step is a budget from a time on.
type Step struct {
	From  float64
	Watts dvfsmodel.Watt
}

// At returns the budget at a time.
func (b Budget) At(at float64) dvfsmodel.Watt {
	next := sort.Search(len(b), func(i int) bool { return b[i].From > at })
	return b[max(0, next-1)].Watts
}

// Least returns the least budget.
func (b Budget) Least() dvfsmodel.Watt {
	least := dvfsmodel.Watt(math.Inf(1))
	for _, step := range b {
		least = min(least, step.Watts)
	}
	return least
}

// Most returns the greatest budget.
func (b Budget) Most() dvfsmodel.Watt {
	most := dvfsmodel.Watt(0)
	for _, step := range b {
		most = max(most, step.Watts)
	}
	return most
}
