package queue

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// parseNumber reads a decimal number, inf or nan; whether the value makes sense
// is for [Job.Validate] to say.
func parseNumber(c column, text string) (float64, *FieldError) {
	value, err := strconv.ParseFloat(text, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, newFieldError(c, quoted(text)+" is too large", "a number up to 1e15")
	case err != nil || isHexadecimal(text):
		return 0, newFieldError(c, quoted(text)+" is not a number", "one such as 12.5")
	}
	return value + 0, nil // −0 becomes 0
}

// isHexadecimal finds the numbers that only programmers write.
func isHexadecimal(number string) bool {
	return strings.IndexByte(number, 'x') >= 0 || strings.IndexByte(number, 'X') >= 0
}

// parseCount reads a whole number, which may be written 2.0.
func parseCount(c column, text string, most int) (int, *FieldError) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || value != math.Trunc(value) || isHexadecimal(text) || math.Abs(value) > maxNumber {
		return 0, newFieldError(c, quoted(text)+" is not a whole number", "1 to "+strconv.Itoa(most))
	}
	return int(value), nil
}

// formatNumber returns the shortest text that reads back as the same number.
func formatNumber(v float64) string { return string(appendNumber(nil, v)) }

func appendNumber(dst []byte, v float64) []byte {
	switch a := math.Abs(v); {
	case math.IsInf(v, 1):
		return append(dst, "inf"...)
	case math.IsInf(v, -1):
		return append(dst, "-inf"...)
	case a != 0 && (a < 1e-6 || a >= 1e16):
		return strconv.AppendFloat(dst, v, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, v, 'f', -1, 64)
}

// inRange is false for NaN and infinities too.
func inRange(v float64) bool { return v >= 0 && v <= maxNumber }
