package page

import (
	"html"
	"regexp"

	"github.com/epplan/epplan/queue"
)

var numberWithUnit = regexp.MustCompile(`([0-9]) (%|(?:[mkMGTµ]?(?:J|W|Wh|Hz|s)|[kMGT]?B|[KMGT]iB|min|h)\b)`)

// Prose is text that runs over lines, made safe to show: a number and its unit stay
// on one line.
func Prose(text string) string {
	return numberWithUnit.ReplaceAllString(queue.Printable(text), "$1\u00a0$2")
}

// safeProse returns the same for an element.
func safeProse(text string) string { return html.EscapeString(Prose(text)) }
