package planner

import (
	"math"
	"math/bits"
	"slices"
	"sync"
)

// SortByKey sorts items by a rising key; items with equal keys keep their order.
// It is a radix sort: linear in the number of items, which a plan's speed for
// large batches rests on. Keys must not be NaN.
func SortByKey[T int | int32](items []T, key func(T) float64) {
	if len(items) < 2 {
		return
	}
	room := sortBuffers.Get().(*[]sortItem) //nolint:errcheck // nothing else is put there
	defer sortBuffers.Put(room)
	*room = slices.Grow((*room)[:0], 2*len(items))
	all, spare := (*room)[:len(items)], (*room)[len(items):2*len(items)]
	for i, item := range items {
		all[i] = sortItem{orderedBits(key(item)), int(item)}
	}
	radixSort(all, spare)
	for i := range items {
		items[i] = T(all[i].item)
	}
}

// MoveToFront moves the items that come first to the front, and tells how many they
// are. Both they and the others keep their order.
func MoveToFront(items []int, first func(int) bool) (count int) {
	room := sortBuffers.Get().(*[]sortItem) //nolint:errcheck // nothing else is put there
	defer sortBuffers.Put(room)
	*room = slices.Grow((*room)[:0], len(items))
	others := *room
	for _, item := range items {
		if first(item) {
			items[count] = item
			count++
		} else {
			others = append(others, sortItem{item: item})
		}
	}
	for i := range others {
		items[count+i] = others[i].item
	}
	return count
}

const (
	radixBits = 11
	radixSize = 1 << radixBits
	radixMask = radixSize - 1
	fewItems  = 64   // so few are sorted sooner by insertion
	oneDigit  = 4096 // so few are mostly told apart by one digit
)

type sortItem struct {
	bits uint64
	item int
}

// sortBuffers keeps the room that SortByKey needs from one call for the next.
var sortBuffers = sync.Pool{New: func() any { return new([]sortItem) }}

// radixSort sorts by the leading digits of what a key is above the least one,
// and then those by themselves that are equal so far: mostly none. One digit
// will do for a few thousand items; more take two.
func radixSort(all, spare []sortItem) {
	if len(all) < fewItems {
		insertionSort(all)
		return
	}
	least, most := all[0].bits, all[0].bits
	for i := range all {
		least, most = min(least, all[i].bits), max(most, all[i].bits)
	}
	if least == most {
		return
	}
	spare = spare[:len(all)]
	width := bits.Len64(most - least)
	var shift int
	if len(all) <= oneDigit {
		shift = max(0, width-radixBits)
		largest := scatterByDigit(all, spare, least, shift)
		copy(all, spare)
		if largest <= fewItems {
			insertionSort(all) // nothing has far to go any more
			return
		}
	} else {
		shift = max(0, width-2*radixBits)
		scatterByDigit(all, spare, least, shift)
		scatterByDigit(spare, all, least, shift+radixBits)
	}
	if shift == 0 {
		return
	}
	first := 0
	for i := range all {
		if (all[i].bits-least)>>shift != (all[first].bits-least)>>shift {
			if i-first > 1 {
				radixSort(all[first:i], spare)
			}
			first = i
		}
	}
	radixSort(all[first:], spare)
}

// scatterByDigit moves items to where they belong by one digit. It tells how many have
// the same one at most.
func scatterByDigit(from, to []sortItem, least uint64, shift int) (largest int) {
	var slots [radixSize]int32
	for i := range from {
		slots[(from[i].bits-least)>>shift&radixMask]++
	}
	next, most := int32(0), int32(0)
	for digit, count := range slots {
		slots[digit], next = next, next+count
		most = max(most, count)
	}
	for i := range from {
		digit := (from[i].bits - least) >> shift & radixMask
		to[slots[digit]] = from[i]
		slots[digit]++
	}
	return int(most)
}

// insertionSort is for few items, and for those that are nearly sorted.
func insertionSort(all []sortItem) {
	for i := 1; i < len(all); i++ {
		x, j := all[i], i
		for ; j > 0 && all[j-1].bits > x.bits; j-- {
			all[j] = all[j-1]
		}
		all[j] = x
	}
}

// orderedBits maps floats to integers of the same order.
func orderedBits(x float64) uint64 {
	bits := math.Float64bits(x + 0) // −0 becomes 0
	if bits>>63 == 1 {
		return ^bits
	}
	return bits | 1<<63
}
