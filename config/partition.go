package config

import (
	"net/netip"
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

func machinesField(name, doc string, list *[]string) field {
	return checkedListField(name, doc, list, func(hosts []string, i int) string {
		switch {
		case !isMachine(hosts[i]):
			return ", want the name of a machine, or its address, without a port"
		case slices.Index(hosts, hosts[i]) < i:
			return " twice"
		}
		return ""
	})
}

// isMachine reports whether a text can be the name or the address of one machine.
func isMachine(text string) bool {
	if a, err := netip.ParseAddr(text); err == nil {
		return !a.IsUnspecified()
	}
	return isHost(text) && !strings.ContainsAny(text, ":[]") && !strings.HasPrefix(text, "-")
}
