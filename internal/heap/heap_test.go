package heap_test

import (
	"cmp"
	stdheap "container/heap"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/heap"
)

// entry is ordered by its key alone.
type entry struct{ key, number int }

func (a entry) Compare(b entry) int { return cmp.Compare(a.key, b.key) }

// standard is the same for container/heap.
type standard []entry

func (s standard) Len() int           { return len(s) }
func (s standard) Less(i, j int) bool { return s[i].key < s[j].key }
func (s standard) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *standard) Push(x any)        { *s = append(*s, x.(entry)) } //nolint:errcheck,forcetypeassert // entries only
func (s *standard) Pop() any {
	old := *s
	*s = old[:len(old)-1]
	return old[len(old)-1]
}

func TestElementsComeInTheOrderOfTheStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.SliceOfN(rapid.IntRange(0, 9), 0, 20).Draw(t, "at first")
		h, want := make(heap.Heap[entry], 0, len(first)), make(standard, 0, len(first))
		for i, key := range first {
			h, want = append(h, entry{key, i}), append(want, entry{key, i})
		}
		h.Init()
		stdheap.Init(&want)
		for i, key := range rapid.SliceOf(rapid.IntRange(-9, 9)).Draw(t, "steps") {
			switch {
			case len(want) > 0 && key < -4:
				if got, one := h.Pop(), stdheap.Pop(&want).(entry); got != one { //nolint:errcheck,forcetypeassert // entries only
					t.Fatalf("step %d: %+v is first, want %+v", i, got, one)
				}
			case len(want) > 0 && key < 0:
				h[0].key -= key
				want[0].key -= key
				h.FixFirst()
				stdheap.Fix(&want, 0)
			default:
				h.Push(entry{key, 100 + i})
				stdheap.Push(&want, entry{key, 100 + i})
			}
			if !slices.Equal(h, heap.Heap[entry](want)) {
				t.Fatalf("step %d: %v, want %v", i, h, want)
			}
		}
	})
}

func TestRetainKeepsTheGoodElementsOnceInOrder(t *testing.T) {
	h := heap.Heap[entry]{{1, 0}, {2, 0}, {1, 0}, {5, 0}, {3, 0}, {2, 0}}
	h.Retain(func(e entry) bool { return e.key != 3 })
	if want := (heap.Heap[entry]{{1, 0}, {2, 0}, {5, 0}}); !slices.Equal(h, want) {
		t.Errorf("%v, want %v", h, want)
	}
}

func BenchmarkPushAndPop(b *testing.B) {
	const size = 1000
	random := rand.New(rand.NewPCG(1, 1))
	keys := make([]int, size)
	for i := range keys {
		keys[i] = random.IntN(size)
	}
	b.Run("heap", func(b *testing.B) {
		h := make(heap.Heap[entry], 0, size)
		for b.Loop() {
			for i, key := range keys {
				h.Push(entry{key, i})
			}
			for range keys {
				h.Pop()
			}
		}
	})
	b.Run("container/heap", func(b *testing.B) {
		h := make(standard, 0, size)
		for b.Loop() {
			for i, key := range keys {
				stdheap.Push(&h, entry{key, i})
			}
			for range keys {
				stdheap.Pop(&h)
			}
		}
	})
}
