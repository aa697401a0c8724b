package config

import (
	"slices"
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
