package doctest

import (
	"fmt"
	"regexp"
	"strings"
)

// rule is the line below a table's head.
var rule = regexp.MustCompile(`^\|(?: *:?-+:? *\|)+$`)

// Tables returns the faults of the page's tables: one without a row, and rows with
// another number of cells than the head has, which browsers cut or fill.
func (p *Page) Tables() []string {
	var faults []string
	p.outside(func(number int, line string) {
		if !rule.MatchString(line) {
			return
		}
		if number >= len(p.Lines) || !strings.HasPrefix(p.Lines[number], "|") {
			faults = append(faults, fmt.Sprintf("%s:%d: a table without a row", p.Name, number))
		}
		want := cells(line)
		for i := number; i < len(p.Lines) && strings.HasPrefix(p.Lines[i], "|"); i++ {
			if got := cells(p.Lines[i]); got != want {
				faults = append(faults,
					fmt.Sprintf("%s:%d: a row of %d cells, want %d", p.Name, i+1, got, want))
			}
		}
	})
	return faults
}

// cells counts the cells of a table's line; \| is text.
func cells(line string) int {
	return strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") - 1
}
