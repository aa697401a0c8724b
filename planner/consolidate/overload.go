package consolidate

// Contention is what sharing a GPU costs in time.
type Contention interface {
	// Overload is how many times as long as alone the tasks of a GPU take at
	// the same frequency, at least 1, given the sum of their utilisations by
	// slot, percent.
	Overload(loadPct []float64) float64
}

// Linear is contention without overhead: a slot with 140 percent of work takes
// 1.4 slots. It is the mean over slots of max(1, load).
type Linear struct{}

// Overload is the mean over slots of what exceeds the slot.
func (Linear) Overload(loadPct []float64) float64 {
	if len(loadPct) == 0 {
		return 1
	}
	sum := 0.0
	for _, u := range loadPct {
		sum += max(1, u/100)
	}
	return sum / float64(len(loadPct))
}
