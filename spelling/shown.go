package spelling

import (
	"strconv"
	"unicode"
)

// hidden are letters and marks of which nothing is seen, though they count as such.
var hidden = [...]*unicode.RangeTable{unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector}

// IsShown reports whether a character is seen and leaves those around it as they are: it is no control
// character, none without a width, and none that reverses the direction of writing. Two texts that look
// alike may differ in those.
func IsShown(r rune) bool {
	return ' ' <= r && r <= '~' || strconv.IsPrint(r) && !unicode.In(r, hidden[:]...)
}
