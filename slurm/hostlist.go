package slurm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxHosts bounds what one hostlist may expand to.
const maxHosts = 1 << 16

// ExpandHostlist gives the names of a Slurm hostlist such as "n[1-2,05]x,login"
// in order. Several brackets in one name multiply. More than 65,536 names is an
// error.
func ExpandHostlist(list string) ([]string, error) {
	list = strings.TrimSpace(list)
	if isUnset(list) {
		return nil, nil
	}
	var out []string
	for start := 0; start <= len(list); {
		part, next, err := hostPart(list, start)
		if err != nil {
			return nil, err
		}
		names, err := expandPart(part, start)
		if err != nil {
			return nil, err
		}
		if len(out)+len(names) > maxHosts {
			return nil, fmt.Errorf("hostlist column %d: more than %d names", start+1, maxHosts)
		}
		out = append(out, names...)
		start = next
	}
	return out, nil
}

// hostPart gives the text up to the next comma outside brackets, and where the next part starts.
func hostPart(list string, start int) (string, int, error) {
	depth := 0
	for i := start; i < len(list); i++ {
		switch c := list[i]; {
		case c == '[' && depth > 0:
			return "", 0, fmt.Errorf("hostlist column %d: [ inside brackets", i+1)
		case c == '[':
			depth++
		case c == ']' && depth == 0:
			return "", 0, fmt.Errorf("hostlist column %d: ] without [", i+1)
		case c == ']':
			depth--
		case c == ',' && depth == 0:
			return list[start:i], i + 1, nil
		}
	}
	if depth > 0 {
		return "", 0, fmt.Errorf("hostlist column %d: [ without ]", start+1)
	}
	return list[start:], len(list) + 1, nil
}

func expandPart(part string, column int) ([]string, error) {
	names := []string{""}
	for rest := part; ; {
		head, tail, bracket := strings.Cut(rest, "[")
		if i := strings.IndexFunc(head, isBadHostRune); i >= 0 {
			return nil, fmt.Errorf("hostlist column %d: %q is not part of a node name", column+1, head)
		}
		for i := range names {
			names[i] += head
		}
		if !bracket {
			break
		}
		inside, after, _ := strings.Cut(tail, "]")
		numbers, err := expandRanges(inside)
		if err != nil {
			return nil, fmt.Errorf("hostlist column %d: %w", column+1, err)
		}
		if len(names)*len(numbers) > maxHosts {
			return nil, fmt.Errorf("hostlist column %d: more than %d names", column+1, maxHosts)
		}
		names = crossProduct(names, numbers)
		rest = after
	}
	if names[0] == "" {
		return nil, fmt.Errorf("hostlist column %d: empty name", column+1)
	}
	return names, nil
}

// ExpandPaths gives the absolute paths of a list such as
// "/dev/nvidia[2-3,5,7],/dev/nvidia9", in order. Each may have one range.
func ExpandPaths(list string) ([]string, error) {
	if strings.ContainsRune(list, 0) || !strings.HasPrefix(list, "/") {
		return nil, fmt.Errorf("file %q: want an absolute path", Printable(list, 80))
	}
	var out []string
	for start := 0; start <= len(list); {
		part, next, err := hostPart(list, start)
		if err != nil {
			return nil, err
		}
		start = next
		head, tail, ranged := strings.Cut(part, "[")
		if !ranged {
			out = append(out, part)
			continue
		}
		inside, rest, _ := strings.Cut(tail, "]")
		if strings.ContainsRune(rest, '[') {
			return nil, fmt.Errorf("file %q: want one range", Printable(part, 80))
		}
		numbers, err := expandRanges(inside)
		if err != nil {
			return nil, err
		}
		for _, n := range numbers {
			out = append(out, head+n+rest)
		}
	}
	return out, nil
}

func isBadHostRune(r rune) bool {
	switch {
	case r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '-', r == '_', r == '.':
		return false
	}
	return true
}

func crossProduct(heads, tails []string) []string {
	out := make([]string, 0, len(heads)*len(tails))
	for _, h := range heads {
		for _, t := range tails {
			out = append(out, h+t)
		}
	}
	return out
}

// expandRanges expands "1-3,07" and keeps leading zeros.
func expandRanges(text string) ([]string, error) {
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		if !isRange {
			hi = lo
		}
		a, err := parseSmallNumber(lo)
		if err != nil {
			return nil, err
		}
		b, err := parseSmallNumber(hi)
		if err != nil {
			return nil, err
		}
		if b < a || b-a >= maxHosts || len(out)+b-a >= maxHosts {
			return nil, fmt.Errorf("range %q: want low-high with at most %d numbers", part, maxHosts)
		}
		for n := a; n <= b; n++ {
			out = append(out, fmt.Sprintf("%0*d", len(lo), n))
		}
	}
	return out, nil
}

func parseSmallNumber(text string) (int, error) {
	if text == "" || len(text) > 10 || strings.IndexFunc(text, isNotDigit) >= 0 {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	return strconv.Atoi(text)
}

func isNotDigit(r rune) bool { return r < '0' || r > '9' }

// ParseIndices expands "0-1,3" to numbers, at most limit of them, in order.
func ParseIndices(text string) ([]int, error) {
	words, err := expandRanges(text)
	if err != nil {
		return nil, err
	}
	out := make([]int, len(words))
	for i, w := range words {
		if out[i], err = strconv.Atoi(w); err != nil {
			return nil, err
		}
	}
	if slices.IsSorted(out) {
		return out, nil
	}
	slices.Sort(out)
	return out, nil
}
