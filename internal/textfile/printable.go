package textfile

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/epplan/epplan/spelling"
)

// Printable returns s with everything escaped that could act on a terminal
// instead of being shown by it, or that nobody sees: control characters, escape sequences, marks
// that reverse the direction of writing or have no width, line ends, invalid UTF-8.
func Printable(s string) string {
	for i, r := range s {
		if unsafeRune(s[i:], r) {
			return s[:i] + escaped(s[i:])
		}
	}
	return s
}

func unsafeRune(rest string, r rune) bool {
	if r == utf8.RuneError {
		_, size := utf8.DecodeRuneInString(rest)
		return size == 1
	}
	return !spelling.IsShown(r)
}

func escaped(s string) string {
	var out strings.Builder
	for i, r := range s {
		switch {
		case !unsafeRune(s[i:], r):
			out.WriteRune(r)
		case r == utf8.RuneError:
			out.WriteString(`\x` + strconv.FormatUint(uint64(s[i]), 16))
		default:
			out.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return out.String()
}

// maxQuoted bounds the piece of the input that a message repeats.
const maxQuoted = 40

// Quoted returns s in quotes for a message: safe to print, and cut when long.
func Quoted(s string) string {
	runes := 0
	for i := range s {
		if runes == maxQuoted {
			return strconv.Quote(s[:i]) + "…"
		}
		runes++
	}
	return strconv.Quote(s)
}
