package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/epplan/epplan/spelling"
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

// ReorderOf returns how a partition's jobs may be reordered. It counts where
// [Live.ModeOf] is [Enforce].
func (l *Live) ReorderOf(partition string) Reorder {
	if r, ok := l.Reorders[partition]; ok {
		return r
	}
	return l.Reorder
}

// LimitHint is what sbatch tells users whose job's limit is far longer than its last runs were.
type LimitHint struct {
	On   bool
	OnIn map[string]bool // by partition; nil: On holds everywhere
	Runs int             // the least that say so, on each GPU model
	Text string          // with {limit}, {longest} and {runs}
}

// Bounds of hints.
const (
	minHintRuns = 3
	maxHintRuns = 20
	maxHintText = 200 // bytes
)

func defaultLimitHint() LimitHint {
	const runs = 4
	return LimitHint{
		Runs: runs, Text: "--time={limit} would probably do, and may start sooner: by its last runs it takes " +
			"hardly more than {longest}",
	}
}

// AppliesTo reports whether users of a partition are told. Where a job names several, with commas between,
// those of all of them must be.
func (h *LimitHint) AppliesTo(partitions string) bool {
	if h.OnIn == nil {
		return h.On
	}
	for partition := range strings.SplitSeq(partitions, ",") {
		if !h.OnIn[partition] {
			return false
		}
	}
	return true
}

// Words returns the text, with what it is about.
func (h *LimitHint) Words(limit, longest string, runs int) string {
	known := strings.NewReplacer("{limit}", limit, "{longest}", longest, "{runs}", strconv.Itoa(runs))
	return known.Replace(h.Text)
}

// partitionsField takes true or false, or a table of partitions; those that it doesn't name are told nothing.
func (h *LimitHint) partitionsField() field {
	f := partitionsField("limit_hints",
		"Whether sbatch proposes a shorter time limit if a job's is more than twice what its last runs\n"+
			"took, in modes advise and enforce: everywhere, or by partition. epplan\n"+
			"levers always shows it.", "true or false", &h.OnIn,
		func(d *document, path string, v any) (on bool) {
			boolField("", "", &on).read(d, path, v)
			return on
		}, strconv.FormatBool)
	takeTable, tableText := f.read, f.format
	f.expected = "true, false, or a table of partitions, each with true or false"
	f.read = func(d *document, path string, v any) {
		switch x := v.(type) {
		case bool:
			h.On, h.OnIn = x, nil
		case map[string]any:
			takeTable(d, path, v)
		default:
			d.faultAtType(path, v, f.expected)
		}
	}
	f.format = func() string {
		if h.OnIn == nil {
			return strconv.FormatBool(h.On)
		}
		return tableText()
	}
	return f
}

// checkHintText accepts printable text whose braces hold what is known.
func checkHintText(text string) error {
	if len(text) > maxHintText {
		return fmt.Errorf("it has %d bytes, want at most %d", len(text), maxHintText)
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return !spelling.IsShown(r) }); i >= 0 {
		return fmt.Errorf("it has %+q, want text that can be read", []rune(text[i:])[0])
	}
	rest := strings.NewReplacer("{limit}", "", "{longest}", "", "{runs}", "").Replace(text)
	if i := strings.IndexAny(rest, "{}"); i >= 0 {
		return fmt.Errorf("%s isn't known, want {limit}, {longest} or {runs}", quoteName(rest[i:]))
	}
	return nil
}

// maxUserName is the longest user name, in bytes.
const maxUserName = 256

func (l *Live) operatorsField() field {
	return checkedListField("operators", "Users who may see all jobs, but change nothing.", &l.Operators,
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
