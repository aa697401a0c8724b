package spelling

import (
	"cmp"
	"slices"
	"strings"
)

// longest is how many bytes of a name are worth comparing.
const longest = 64

// Scores of names that are begun rather than misspelt, beside perEdit for each
// character that differs.
const (
	sameName  = 0
	lacksUnit = 1 // runtime for runtime_s
	isBegun   = 2 // V10 is V100 rather than A10
	perEdit   = 3
)

// Nearest returns the known name that a misspelt one is probably meant to be, the
// first among equals, or "" when none is near. Near is one that the misspelt
// name, letter case and separators aside, is the same as; that it lacks only
// the unit of; that is its beginning, or begins with it; or of which at most
// a third of its characters, or one, differ.
func Nearest(name string, known []string) string {
	wrong := Fold(name)
	if wrong == "" || len(wrong) > longest {
		return ""
	}
	unit := strings.ToLower(name) + "_"
	least := perEdit*max(1, len(wrong)/3) + 1
	if len(wrong) == 1 {
		least = lacksUnit + 1 // any letter is near to any other
	}
	best := ""
	var d distancer
	for _, candidate := range known {
		score := d.score(wrong, Fold(candidate), least)
		if strings.HasPrefix(strings.ToLower(candidate), unit) {
			score = min(score, lacksUnit)
		}
		if score < least {
			best, least = candidate, score
		}
	}
	return best
}

// SortedByNearness returns the known names in the order of how near they are to a name: how many
// characters differ, less twice those with which both begin, or those of a known name that
// stands in it; in the order of the alphabet among equals.
func SortedByNearness(name string, known []string) []string {
	folded := func(name string) string {
		name = Fold(name)
		return name[:min(len(name), longest)]
	}
	wrong := folded(name)
	var d distancer
	scores := make(map[string]int, len(known))
	for _, candidate := range known {
		right, alike := folded(candidate), 0
		for alike < min(len(wrong), len(right)) && wrong[alike] == right[alike] {
			alike++
		}
		if len(right) > 2 && strings.Contains(wrong, right) { //nolint:mnd // T4 may be in anything
			alike = len(right)
		}
		scores[candidate] = d.distance(wrong, right) - 2*alike
	}
	sorted := slices.Sorted(slices.Values(known))
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(scores[a], scores[b]) })
	return sorted
}

// Fold returns a name without what people write differently in it: letter case,
// spaces and separators.
func Fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' || r == '_' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// distancer compares names, with rows of its table that it uses again.
type distancer struct {
	s, t              []rune
	before, last, row []int
}

// score rates how far a folded name is from another; anything from least on
// counts alike.
func (d *distancer) score(wrong, right string, least int) int {
	if len(right) > longest {
		return least
	}
	shorter := min(len(wrong), len(right))
	switch {
	case wrong == right:
		return sameName
	case shorter >= 3 && wrong[:shorter] == right[:shorter]:
		return isBegun
	}
	return perEdit * d.distance(wrong, right)
}

// distance returns the number of characters to insert, drop, replace or swap with
// their neighbour to turn a into b (optimal string alignment).
func (d *distancer) distance(a, b string) int {
	d.s, d.t = append(d.s[:0], []rune(a)...), append(d.t[:0], []rune(b)...)
	n := len(d.t) + 1
	for _, row := range []*[]int{&d.before, &d.last, &d.row} {
		if cap(*row) < n {
			*row = make([]int, longest+1)
		}
		*row = (*row)[:n]
	}
	for j := range d.last {
		d.last[j] = j
	}
	for i := range d.s {
		d.row[0] = i + 1
		for j := range d.t {
			d.row[j+1] = d.cell(i, j)
		}
		d.before, d.last, d.row = d.last, d.row, d.before
	}
	return d.last[len(d.t)]
}

// cell returns the distance of the first i+1 characters from the first j+1.
func (d *distancer) cell(i, j int) int {
	replace := d.last[j]
	if d.s[i] != d.t[j] {
		replace++
	}
	least := min(replace, d.last[j+1]+1, d.row[j]+1)
	if i > 0 && j > 0 && d.s[i] == d.t[j-1] && d.s[i-1] == d.t[j] {
		least = min(least, d.before[j-1]+1)
	}
	return least
}
