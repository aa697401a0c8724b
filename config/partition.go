package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Reorder is which pending jobs of a partition may be put later for the sake of
// one with a deadline.
type Reorder string

// The extents of reordering.
const (
	ReorderOff Reorder = "off" // none
	ReorderOwn Reorder = "own" // those of the same user
	ReorderAll Reorder = "all" // every user's
)

var reorderWords = []string{string(ReorderOff), string(ReorderOwn), string(ReorderAll)}

// ReorderOf is how a partition's jobs may be reordered. It counts where
// [Live.ModeOf] is [Enforce].
func (l *Live) ReorderOf(partition string) Reorder {
	if r, ok := l.Reorders[partition]; ok {
		return r
	}
	return l.Reorder
}

// partitionTableField is a field with a table: one of several words for each of the
// partitions that have their own.
func partitionTableField[T ~string](key, doc, each string, to *map[string]T, words []string) field {
	f := field{key: key, doc: doc, expected: "a table of partitions, each with " + each}
	f.read = func(d *document, path string, v any) {
		values, ok := v.(map[string]any)
		if !ok {
			d.faultAtType(path, v, f.expected)
			return
		}
		all := make(map[string]T, len(values))
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if !isLine(name) {
				d.faultAt(path, "partition %s, want a name of 1 to %d printable bytes",
					quoteName(name), maxText)
				continue
			}
			var word string
			choiceField("", "", &word, words...).read(d, joinKey(path, name), values[name])
			all[name] = T(word)
		}
		if *to = all; len(all) == 0 {
			*to = nil
		}
	}
	f.format = func() string {
		return inlineTable(*to, func(word T) string { return strconv.Quote(string(word)) })
	}
	return f
}

// maxUserName is the longest user name, in bytes.
const maxUserName = 256

func (l *Live) operatorsField() field {
	return checkedListField("operators", "Users who may see everybody's jobs, but change nothing.", &l.Operators,
		func(names []string, i int) string {
			switch {
			case len(names[i]) > maxUserName || strings.ContainsFunc(names[i], isNotUserNameRune):
				return ", want the name of a user"
			case slices.Index(names, names[i]) < i:
				return " twice"
			}
			return ""
		})
}

func isNotUserNameRune(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",:/", r) }
