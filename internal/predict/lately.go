package predict

import "slices"

// lastValues are the last values of a series, in their order and ascending.
type lastValues struct {
	count  int       // values that there ever were
	ring   []float64 // those that are kept, the latest at (count-1) % most
	sorted []float64 // the same, ascending
}

// add adds a value, in place of the oldest once there are so many.
func (l *lastValues) add(v float64, most int) {
	if len(l.ring) < most {
		l.ring = append(l.ring, v)
	} else {
		old := &l.ring[l.count%most]
		at, _ := slices.BinarySearch(l.sorted, *old)
		l.sorted = slices.Delete(l.sorted, at, at+1)
		*old = v
	}
	at, _ := slices.BinarySearch(l.sorted, v)
	l.sorted = slices.Insert(l.sorted, at, v)
	l.count++
}
