package metrics

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/epplan/epplan/spelling"
)

// Values of labels in place of names. Slurm allows no such names.
const (
	unknownLabel  = "(unknown)"
	unusedLabel   = "(none)"
	overflowLabel = "(other)"
)

// Bounds of labels.
const (
	maxName   = 64  // bytes
	maxGroups = 256 // pairs of partition and GPU model
	maxGPUs   = 64  // of a node
	maxKinds  = 64  // of errors
)

// powerGroup is whose energy or power it is.
type powerGroup struct{ partition, model string }

// boundedLabels are values of labels. The first ones get their own series, later ones
// share one, so that nobody can make the series too many.
type boundedLabels[K comparable] struct {
	mu    sync.Mutex
	limit int
	other K
	seen  map[K]struct{}
}

func newBoundedLabels[K comparable](most int, other K) *boundedLabels[K] {
	return &boundedLabels[K]{limit: most, other: other, seen: make(map[K]struct{})}
}

// valueOrOther returns the value that stands for one.
func (b *boundedLabels[K]) valueOrOther(value K) K {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.seen[value]; ok {
		return value
	}
	if len(b.seen) >= b.limit {
		return b.other
	}
	b.seen[value] = struct{}{}
	return value
}

// cleanLabel makes a short printable text of anything.
func cleanLabel(name string) string {
	if name == "" {
		return unknownLabel
	}
	if len(name) > maxName {
		name = name[:maxName] // half a letter is cleaned below
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !spelling.IsShown(r) {
			return '_'
		}
		return r
	}, name)
}

// knownOrOverflow returns a value if it is among those known.
func knownOrOverflow(value string, known []string) string {
	if slices.Contains(known, value) {
		return value
	}
	return overflowLabel
}
