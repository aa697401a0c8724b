package align

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/predict/source"
)

const (
	maxNamedNumbers = 5   // numbers that a message names
	minSharedWords  = 0.3 // of the words that a rewrite of a source without numbers must keep
)

// numberDifference says in which numbers a rewrite differs from its source; "" where it keeps
// them. Names may change, so that numbers are compared by value: every number that a
// name is given must still be given to one, the same name must have the same number,
// and no number may come from nowhere.
func numberDifference(text, rewrite string) string {
	before, after := source.Read(text), source.Read(rewrite)
	if len(keyNumbers(before)) == 0 {
		return wordDifference(before, after)
	}
	var missing, changed, added []string
	had, has := numberSet(before), numberSet(after)
	for _, name := range slices.Sorted(maps.Keys(before.Numbers)) {
		v := before.Numbers[name]
		now, same := after.Numbers[name]
		switch {
		case isTrivial(v):
		case same && now != v:
			changed = append(changed, name+" is "+numberText(now)+" instead of "+numberText(v))
		case !has[v]:
			missing = append(missing, name+" = "+numberText(v))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after.Numbers)) {
		if v := after.Numbers[name]; !isTrivial(v) && !had[v] {
			added = append(added, name+" = "+numberText(v))
		}
	}
	for _, one := range []struct {
		what  string
		which []string
	}{
		{"these numbers changed", changed},
		{"these are missing", missing},
		{"these come from nowhere", added},
	} {
		if len(one.which) > 0 {
			return one.what + ": " + strings.Join(one.which[:min(len(one.which), maxNamedNumbers)], ", ")
		}
	}
	return ""
}

// isTrivial reports whether a number says nothing: 0, 1, and truth values.
func isTrivial(v float64) bool { return v == 0 || v == 1 || v == math.E }

func keyNumbers(t *source.Text) []float64 {
	var out []float64
	for _, v := range t.Numbers {
		if !isTrivial(v) {
			out = append(out, v)
		}
	}
	return out
}

func numberSet(t *source.Text) map[float64]bool {
	out := make(map[float64]bool, len(t.Numbers))
	for _, v := range t.Numbers {
		out[v] = true
	}
	return out
}

func numberText(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// wordDifference says that a rewrite is about something else, by its words.
func wordDifference(before, after *source.Text) string {
	kept := 0
	for w := range before.Words {
		if after.Words[w] > 0 {
			kept++
		}
	}
	if float64(kept) < minSharedWords*float64(len(before.Words)) {
		return fmt.Sprintf("%d of %d words are left", kept, len(before.Words))
	}
	return ""
}
