package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// UnknownError is a name that doesn't exist, with those that do.
type UnknownError struct {
	Kind    string   // what the name is of: "GPU model", "workload"
	Name    string   // the unknown one
	Nearest string   // the one that was probably meant, or ""
	Known   []string // all that exist
}

// Error names the nearest name, or else the first few known ones.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("unknown %s %s, %s", e.Kind, quoted(e.Name), suggestion(e.Nearest, e.Known, quoted))
}

func unknown(kind, name string, known []string) *UnknownError {
	return &UnknownError{Kind: kind, Name: name, Nearest: nearest(name, known), Known: known}
}

// maxSuggested is how many names a message lists when none is near.
const maxSuggested = 12

func suggestion(near string, known []string, show func(string) string) string {
	switch {
	case near != "":
		return "did you mean " + show(near) + "?"
	case len(known) == 0:
		return "there are none"
	}
	names := make([]string, 0, maxSuggested+1)
	for _, name := range known[:min(len(known), maxSuggested)] {
		names = append(names, show(name))
	}
	if more := len(known) - len(names); more > 0 {
		names = append(names, strconv.Itoa(more)+" more")
	}
	return "want one of " + strings.Join(names, ", ")
}

// nearest is the name that a misspelt one is probably meant to be, or "" when
// none is near: at most a third of its characters, or one, differ, letter case
// and separators aside, or one name is the beginning of the other, which is
// nearer than any that differs.
func nearest(name string, known []string) string {
	const longest = 64 // of a name that is worth comparing
	wrong := fold(name)
	if len(wrong) < 2 || len(wrong) > longest {
		return ""
	}
	best, least := "", 2*max(1, len(wrong)/3)+1 // in halves of a character
	for _, candidate := range known {
		right := fold(candidate)
		if len(right) > longest {
			continue
		}
		d := 2 * distance(wrong, right)
		if shorter := min(len(wrong), len(right)); shorter >= 3 && wrong[:shorter] == right[:shorter] {
			d = min(d, 1) // V10 is V100 rather than A10
		}
		if d < least {
			best, least = candidate, d
		}
	}
	return best
}

// fold drops what people write differently in one name: letter case, spaces
// and separators.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' || r == '_' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// distance is the number of characters to insert, drop, replace or swap with
// their neighbour to turn a into b (optimal string alignment).
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	before := make([]int, len(t)+1)
	last := make([]int, len(t)+1)
	for j := range last {
		last[j] = j
	}
	for i := range s {
		row := make([]int, len(t)+1)
		row[0] = i + 1
		for j := range t {
			replace := last[j]
			if s[i] != t[j] {
				replace++
			}
			row[j+1] = min(replace, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(t)]
}

// quoted is s in quotes for a message: safe to print, and cut when long.
func quoted(s string) string {
	const longest = 60
	if runes := []rune(s); len(runes) > longest {
		return strconv.Quote(string(runes[:longest])) + "…"
	}
	return strconv.Quote(s)
}

// sortedUnique is the distinct names, ascending.
func sortedUnique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
