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

// mostCareful is what holds for a job that may start in any of some partitions, with commas between: of
// what each of them has of its own, or else otherwise, the one that is first among the words.
func mostCareful[M ~string](partitions string, own map[string]M, otherwise M, words []string) M {
	careful := M(words[len(words)-1])
	for partition := range strings.SplitSeq(partitions, ",") {
		mode, ok := own[partition]
		if !ok {
			mode = otherwise
		}
		if slices.Index(words, string(mode)) < slices.Index(words, string(careful)) {
			careful = mode
		}
	}
	return careful
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
