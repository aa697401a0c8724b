package report

import (
	"encoding/json"
	"io"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/epplan/epplan/internal/textfile"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/queue"
	"github.com/epplan/epplan/spelling"
)

// Value is a cell of a [Table]. The zero Value is a missing one: null in JSON,
// empty in CSV.
type Value struct {
	kind   valueKind
	number float64
	text   string
	set    planner.GPUSet
	href   *string // of a link around it on a page; nil: none
}

type valueKind uint8

const (
	missingKind valueKind = iota
	textKind
	numberKind
	countKind
	gpuSetKind
	jsonKind // text that is valid JSON
)

// Text returns a cell with a string.
func Text(s string) Value { return Value{kind: textKind, text: s} }

// Linked returns the value with a link around it on pages; "" is none.
func (v Value) Linked(href string) Value {
	v.href = &href
	return v
}

// JSON returns a cell with text that is valid JSON.
func JSON(text string) Value { return Value{kind: jsonKind, text: text} }

// NonEmpty returns a cell with text, missing when it is empty.
func NonEmpty(s string) Value {
	if s == "" {
		return Value{}
	}
	return Text(s)
}

// Number returns a cell with a number in its base unit. One that isn't finite is a
// missing value.
func Number[T ~float64](x T) Value {
	if v := float64(x); !math.IsNaN(v) && !math.IsInf(v, 0) {
		return Value{kind: numberKind, number: v}
	}
	return Value{}
}

// Count returns a cell with a whole number below 2⁵³.
func Count(n int) Value { return Value{kind: countKind, number: float64(n)} }

// GPUs returns a cell with a set of GPUs: a list in JSON, the numbers with spaces
// between them in CSV, and ranges for people.
func GPUs(s planner.GPUSet) Value { return Value{kind: gpuSetKind, set: s} }

// NonZero returns a cell with a number, missing when it is 0.
func NonZero[T ~float64](x T) Value {
	if x == 0 {
		return Value{}
	}
	return Number(x)
}

// AppendJSON appends the value as JSON.
func (v *Value) AppendJSON(dst []byte) []byte {
	switch v.kind {
	case textKind:
		return AppendQuoted(dst, v.text)
	case jsonKind:
		return append(dst, v.text...)
	case numberKind:
		return appendNumber(dst, v.number)
	case countKind:
		return strconv.AppendInt(dst, int64(v.number), 10)
	case gpuSetKind:
		return append(AppendSet(append(dst, '['), v.set, ", "), ']')
	default:
		return append(dst, "null"...)
	}
}

// csv returns the value as a cell of a CSV file; no text of it is a formula, and none has marks in it that
// hide what stands there or reverse its direction.
func (v *Value) csv() string {
	switch v.kind {
	case textKind:
		return textfile.EscapeFormula(queue.Printable(v.text))
	case jsonKind:
		return v.text
	case numberKind:
		return string(appendNumber(nil, v.number))
	case countKind:
		return strconv.FormatInt(int64(v.number), 10)
	case gpuSetKind:
		return string(AppendSet(nil, v.set, " "))
	default:
		return ""
	}
}

// appendNumber writes the shortest text that reads back as the same number, in
// the notation that encoding/json uses.
func appendNumber(dst []byte, x float64) []byte {
	if a := math.Abs(x); a != 0 && (a < 1e-6 || a >= 1e21) {
		return strconv.AppendFloat(dst, x, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, x, 'f', -1, 64)
}

// AppendSet writes the numbers of a set of GPUs, in order, with a text between them.
func AppendSet(dst []byte, s planner.GPUSet, between string) []byte {
	for first := true; s != 0; s &= s - 1 {
		if !first {
			dst = append(dst, between...)
		}
		dst, first = strconv.AppendInt(dst, int64(s.First()), 10), false
	}
	return dst
}

// RangesText returns the set as people write it: "0-3,6".
func RangesText(s planner.GPUSet) string {
	var out []byte
	for s != 0 {
		from := s.First()
		to := from
		for to+1 < planner.MaxGPUs && s.Has(to+1) {
			to++
		}
		for g := from; g <= to; g++ {
			s &= s - 1
		}
		if len(out) > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(out, int64(from), 10)
		if to > from {
			out = append(out, '-')
			out = strconv.AppendInt(out, int64(to), 10)
		}
	}
	return string(out)
}

// AppendQuoted writes a JSON string in which everything that could act on a
// terminal is escaped.
func AppendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case ' ' <= r && r < 0x7f:
			dst = append(dst, byte(r))
		case r != utf8.RuneError && spelling.IsShown(r):
			dst = utf8.AppendRune(dst, r)
		default:
			dst = appendEscape(dst, r)
		}
	}
	return append(dst, '"')
}

// WriteJSON writes a value as JSON in which no text can act on a terminal, each level further in by an
// indent; "": all on one line.
func WriteJSON(w io.Writer, v any, indent string) error {
	text, err := json.Marshal(v)
	if indent != "" {
		text, err = json.MarshalIndent(v, "", indent)
	}
	if err != nil {
		return err
	}
	shown := make([]byte, 0, len(text)+1)
	for _, r := range string(text) { // only strings have such characters
		if r == '\n' || spelling.IsShown(r) {
			shown = utf8.AppendRune(shown, r)
		} else {
			shown = appendEscape(shown, r)
		}
	}
	_, err = w.Write(append(shown, '\n'))
	return err
}

// appendEscape writes a character as JSON escapes it, by units of UTF-16.
func appendEscape(dst []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	var units [2]uint16
	for _, u := range utf16.AppendRune(units[:0], r) {
		dst = append(dst, '\\', 'u', hex[u>>12], hex[u>>8&15], hex[u>>4&15], hex[u&15])
	}
	return dst
}
