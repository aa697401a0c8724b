package slurm

import (
	"strings"
	"unicode/utf8"

	"github.com/epplan/epplan/spelling"
)

const hexDigits = "0123456789abcdef"

// escapeInvalid keeps bytes that are not UTF-8 as a visible \xNN. In JSON the
// backslash itself is escaped, so that a decoder sees the same four characters.
func escapeInvalid(data []byte, inJSON bool) []byte {
	if utf8.Valid(data) {
		return data
	}
	out := make([]byte, 0, len(data)+64)
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r != utf8.RuneError || size > 1 {
			out = append(out, data[:size]...)
		} else {
			if inJSON {
				out = append(out, '\\')
			}
			out = append(out, '\\', 'x', hexDigits[data[0]>>4], hexDigits[data[0]&15])
		}
		data = data[size:]
	}
	return out
}

// ValidUTF8 gives text as valid UTF-8: bytes that are not stay readable as \xNN.
func ValidUTF8(text string) string { return string(escapeInvalid([]byte(text), false)) }

// Printable gives text for a terminal or a log: one line, in which " / " stands between those that there
// were, other controls and invalid bytes as \xNN, and U+FFFD for each mark that isn't seen, such as those
// that hide what stands there or reverse its direction; cut at limit bytes.
func Printable(text string, limit int) string {
	var b strings.Builder
	for _, r := range strings.TrimRight(ValidUTF8(text), "\n") {
		if b.Len() >= limit {
			b.WriteString("…")
			break
		}
		switch {
		case r == '\n':
			b.WriteString(" / ")
		case r < 0x20 || r == 0x7f:
			b.WriteString(`\x`)
			b.WriteByte(hexDigits[r>>4])
			b.WriteByte(hexDigits[r&15])
		case !spelling.IsShown(r):
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isUnset says whether a text is one of Slurm's words for nothing.
func isUnset(text string) bool {
	switch text {
	case "", "(null)", "N/A", "None", "None assigned", "Unknown", "n/a", "NONE":
		return true
	}
	return false
}
