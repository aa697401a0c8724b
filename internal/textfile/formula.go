package textfile

import (
	"strconv"
	"strings"
)

// EscapeFormula returns a text from somebody else as a cell of CSV: spreadsheets take
// one that begins with =, +, -, @, a tab or a line end for a formula, so it
// gets a ' before it. A number is left as it is, and so is a - by itself.
// [UnescapeFormula] takes the ' back; so that this is certain, a text that begins
// with such marks and then so gets one more.
func EscapeFormula(text string) string {
	if isFormula(text) {
		return "'" + text
	}
	return text
}

// UnescapeFormula returns the text that [EscapeFormula] made a cell of.
func UnescapeFormula(cell string) string {
	if cell != "" && cell[0] == '\'' && isFormula(cell) {
		return cell[1:]
	}
	return cell
}

// isFormula reports whether a text, after any number of ', could be a formula.
func isFormula(text string) bool {
	rest := strings.TrimLeft(text, "'")
	if rest == "" || rest == "-" || !strings.ContainsRune("=+-@\t\r\n", rune(rest[0])) {
		return false
	}
	_, err := strconv.ParseFloat(rest, 64)
	return err != nil
}
