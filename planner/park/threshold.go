package park

import "slices"

const (
	// fullTrustGaps is how many gaps must have been seen before they count.
	fullTrustGaps = 10
	// maxShift bounds how far what was seen may move the threshold from the break-even
	// time: a third and three times. Whatever gaps come, sleeping then costs at
	// most four times what it would cost if their lengths were known.
	maxShift = 3
)

// Threshold is after how many seconds of idling a node ought to go to sleep:
// of all thresholds the one with the least mean cost over the idle gaps that
// were seen, where idling costs its seconds and waking up breakEven seconds of
// idling. The gaps are from the end of one task to the start of the next,
// asleep or not.
//
// As long as few gaps were seen it is breakEven itself, which costs at most
// twice what it would cost if the future were known (ski rental), and it stays
// within a third and three times of that.
func Threshold(gaps []float64, breakEven float64) float64 {
	if len(gaps) < fullTrustGaps || breakEven <= 0 {
		return max(0, breakEven)
	}
	sorted := slices.Sorted(slices.Values(gaps))
	longer := float64(len(sorted)) // gaps beyond the threshold
	best, threshold := longer*breakEven, 0.0
	idled := 0.0 // of the gaps up to the threshold
	for _, gap := range sorted {
		idled += gap
		longer--
		if cost := idled + longer*(gap+breakEven); cost < best {
			best, threshold = cost, gap
		}
	}
	return min(max(threshold, breakEven/maxShift), breakEven*maxShift)
}
