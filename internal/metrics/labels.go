package metrics

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Values of labels in place of names. Slurm allows no such names.
const (
	unknown  = "(unknown)"
	unused   = "(none)"
	overflow = "(other)"
)

// Bounds of labels.
const (
	maxName   = 64  // bytes
	maxGroups = 256 // pairs of partition and GPU model
	maxGPUs   = 64  // of a node
	maxKinds  = 64  // of errors
)

// group is whose energy or power it is.
type group struct{ partition, model string }

// bounded are values of labels. The first ones get their own series, later ones
// share one, so that nobody can make the series too many.
type bounded[K comparable] struct {
	mu    sync.Mutex
	most  int
	other K
	seen  map[K]struct{}
}

func newBounded[K comparable](most int, other K) *bounded[K] {
	return &bounded[K]{most: most, other: other, seen: make(map[K]struct{})}
}

// of is the value that stands for one.
func (b *bounded[K]) of(value K) K {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.seen[value]; ok {
		return value
	}
	if len(b.seen) >= b.most {
		return b.other
	}
	b.seen[value] = struct{}{}
	return value
}

// clean makes a short printable text of anything.
func clean(name string) string {
	if name == "" {
		return unknown
	}
	if len(name) > maxName {
		name = name[:maxName] // half a letter is cleaned below
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, name)
}

// oneOf is a value if it is among those known.
func oneOf(value string, known []string) string {
	if slices.Contains(known, value) {
		return value
	}
	return overflow
}
