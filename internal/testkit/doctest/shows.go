package doctest

import (
	"regexp"
	"strings"
)

var spaces = regexp.MustCompile(`[ \t]+`)

// Shows reports whether output is what a page says. … stands for any text within
// a line, alone on a line for any lines; runs of blanks are one.
func Shows(got string, want []string) bool {
	var pattern strings.Builder
	pattern.WriteString(`(?s)^`)
	for _, line := range want {
		if strings.TrimSpace(line) == "…" {
			pattern.WriteString(`(?:[^\n]*\n)*`)
			continue
		}
		for i, part := range strings.Split(spaces.ReplaceAllString(strings.TrimSpace(line), " "), "…") {
			if i > 0 {
				pattern.WriteString(`[^\n]*`)
			}
			pattern.WriteString(regexp.QuoteMeta(part))
		}
		pattern.WriteString(`\n`)
	}
	var lines strings.Builder
	for line := range strings.Lines(got) {
		lines.WriteString(spaces.ReplaceAllString(strings.TrimSpace(line), " ") + "\n")
	}
	return regexp.MustCompile(pattern.String() + `$`).MatchString(lines.String())
}
