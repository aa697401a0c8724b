package planner

import "math"

// Order sorts items by a rising key; items with equal keys keep their order.
// It is a radix sort: linear in the number of items, which a plan's speed for
// large batches rests on. Keys must not be NaN.
func Order[T int | int32](items []T, key func(T) float64) {
	if len(items) < 2 {
		return
	}
	from, to := make([]ordered[T], len(items)), make([]ordered[T], len(items))
	var counts [radixPasses][radixSize]int32
	for i, item := range items {
		bits := sortable(key(item))
		from[i] = ordered[T]{bits, item}
		for pass := range radixPasses {
			counts[pass][bits>>(pass*radixBits)&radixMask]++
		}
	}
	for pass := range radixPasses {
		shift := pass * radixBits
		count := &counts[pass]
		if int(count[from[0].bits>>shift&radixMask]) == len(items) {
			continue // all the same here
		}
		next := int32(0)
		for digit := range count {
			count[digit], next = next, next+count[digit]
		}
		for i := range from {
			digit := from[i].bits >> shift & radixMask
			to[count[digit]] = from[i]
			count[digit]++
		}
		from, to = to, from
	}
	for i := range items {
		items[i] = from[i].item
	}
}

const (
	radixBits   = 11
	radixSize   = 1 << radixBits
	radixMask   = radixSize - 1
	radixPasses = (64 + radixBits - 1) / radixBits
)

type ordered[T int | int32] struct {
	bits uint64
	item T
}

// sortable maps floats to integers of the same order.
func sortable(x float64) uint64 {
	bits := math.Float64bits(x + 0) // −0 becomes 0
	if bits>>63 == 1 {
		return ^bits
	}
	return bits | 1<<63
}
