package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/epplan/epplan/internal/spelling"
)

// field is one key of a TOML table: how it is read, written and explained.
// Reading, the default file and the effective configuration all come from the
// same list of fields.
type field struct {
	key  string
	doc  string // what it means, for people
	want string // what values it takes, for messages
	take func(d *document, path string, v any)
	// text is the value in TOML; nil for fields that hold tables.
	text     func() string
	required bool
	// derived values come from elsewhere unless the file has them; from says
	// where.
	derived bool
	from    string
}

// maxNumber bounds every number, so that sums stay finite.
const maxNumber = 1e15

// span is the numbers that a field takes.
type span struct {
	min, max float64
	above    bool // min itself isn't one of them
}

// Spans that several fields share.
var (
	nonNegative = span{max: maxNumber}
	positive    = span{max: maxNumber, above: true}
	anyNumber   = span{min: -maxNumber, max: maxNumber}
)

func (s span) has(x float64) bool { // false for NaN
	return x <= s.max && (x > s.min || x == s.min && !s.above)
}

func (s span) String() string {
	if s.above {
		return fmt.Sprintf("a number above %v, up to %v", s.min, s.max)
	}
	return fmt.Sprintf("a number from %v to %v", s.min, s.max)
}

// number is a field with a number; an integer will do.
func number[T ~float64](key, doc string, to *T, in span) field {
	f := field{key: key, doc: doc, want: in.String(), text: func() string { return numberText(float64(*to)) }}
	f.take = func(d *document, path string, v any) {
		if x, ok := toNumber(v); ok && in.has(x) {
			*to = T(x)
			return
		}
		d.wrong(path, v, f.want)
	}
	return f
}

// toNumber is the value of a TOML float or integer.
func toNumber(v any) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, true
	case int64:
		return float64(x), true
	}
	return math.NaN(), false
}

// numberText is a number in TOML: never an integer that 64 bits can't hold.
func numberText(x float64) string {
	const digits = 15
	s := strconv.FormatFloat(x, 'g', -1, 64)
	if len(s) > digits && !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// whole is a field with a whole number.
func whole(key, doc string, to *int, least, most int) field {
	f := field{
		key: key, doc: doc, want: fmt.Sprintf("a whole number from %d to %d", least, most),
		text: func() string { return strconv.Itoa(*to) },
	}
	f.take = func(d *document, path string, v any) {
		if n, ok := v.(int64); ok && n >= int64(least) && n <= int64(most) {
			*to = int(n)
			return
		}
		d.wrong(path, v, f.want)
	}
	return f
}

// yesNo is a field with true or false.
func yesNo(key, doc string, to *bool) field {
	f := field{key: key, doc: doc, want: "true or false", text: func() string { return strconv.FormatBool(*to) }}
	f.take = func(d *document, path string, v any) {
		if b, ok := v.(bool); ok {
			*to = b
			return
		}
		d.wrong(path, v, f.want)
	}
	return f
}

// maxText is how long a text may be, in bytes: enough for a name, and for a
// sentence or two.
const maxText = 1024

// line is a field with one line of text that isn't empty.
func line(key, doc string, to *string) field {
	f := field{key: key, doc: doc, want: "a line of text", text: func() string { return strconv.Quote(*to) }}
	f.take = func(d *document, path string, v any) {
		s, ok := v.(string)
		if !ok || !isLine(s) {
			d.wrong(path, v, f.want)
			return
		}
		*to = s
	}
	return f
}

// orEmpty lets a line of text be empty.
func orEmpty(f field, to *string) field {
	take := f.take
	f.take = func(d *document, path string, v any) {
		if v == "" {
			*to = ""
			return
		}
		take(d, path, v)
	}
	return f
}

// isLine tells whether a text is one line that can be written and read again.
func isLine(s string) bool {
	return s != "" && len(s) <= maxText && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// choice is a field with one of several words.
func choice(key, doc string, to *string, words ...string) field {
	f := field{key: key, doc: doc, want: "one of " + strings.Join(words, ", "), text: func() string { return strconv.Quote(*to) }}
	f.take = func(d *document, path string, v any) {
		s, ok := v.(string)
		switch {
		case ok && slices.Contains(words, s):
			*to = s
		case ok && spelling.Nearest(s, words) != "":
			d.wrong(path, v, f.want+"; did you mean "+quoted(spelling.Nearest(s, words))+"?")
		default:
			d.wrong(path, v, f.want)
		}
	}
	return f
}

// checked is a field with a line of text that a function must accept.
func checked(f field, check func(string) error) field {
	take := f.take
	f.take = func(d *document, path string, v any) {
		before := len(d.faults)
		take(d, path, v)
		if s, ok := v.(string); ok && len(d.faults) == before {
			if err := check(s); err != nil {
				d.faultAt(path, "%s: %v", withoutIndexes(path), err)
			}
		}
	}
	return f
}

// lines is a field with an array of texts.
func lines(key, doc string, to *[]string) field {
	f := field{key: key, doc: doc, want: "an array of texts"}
	f.text = func() string {
		quotes := make([]string, len(*to))
		for i, s := range *to {
			quotes[i] = strconv.Quote(s)
		}
		return "[" + strings.Join(quotes, ", ") + "]"
	}
	f.take = func(d *document, path string, v any) {
		list, ok := v.([]any)
		if !ok {
			d.wrong(path, v, f.want)
			return
		}
		var all []string // none is nil, as by default
		if len(list) > 0 {
			all = make([]string, len(list))
		}
		for i, element := range list {
			line("", "", &all[i]).take(d, fmt.Sprintf("%s[%d]", path, i), element)
		}
		*to = all
	}
	return f
}

// section is a field with a table of fields.
func section(key string, fields []field) field {
	f := field{key: key, want: "a table that begins with [" + key + "]"}
	f.take = func(d *document, path string, v any) {
		values, ok := v.(map[string]any)
		if !ok {
			d.wrong(path, v, f.want)
			return
		}
		d.read("["+path+"]", path, values, fields)
	}
	return f
}

// required makes a field one that its table must have.
func required(f field) field {
	f.required = true
	return f
}

// derived makes a field one that takes its default from elsewhere.
func derived(f field, from string) field {
	f.derived, f.from = true, from
	return f
}

// wrong notes a value that a key, or an array, doesn't take.
func (d *document) wrong(path string, v any, want string) {
	verb := "is"
	if strings.HasSuffix(path, "]") {
		verb = "has"
	}
	d.faultAt(path, "%s %s %s, want %s", withoutIndexes(path), verb, describe(v), want)
}

// withoutIndexes is a path for people: the position says which element.
func withoutIndexes(path string) string {
	var out strings.Builder
	for path != "" {
		start := strings.IndexByte(path, '[')
		end := strings.IndexByte(path, ']')
		if start < 0 || end < start {
			break
		}
		out.WriteString(path[:start])
		path = path[end+1:]
	}
	return out.String() + path
}

// describe is a TOML value in a message.
func describe(v any) string {
	switch x := v.(type) {
	case string:
		return quoted(x)
	case bool:
		return strconv.FormatBool(x)
	case int64:
		return strconv.FormatInt(x, 10)
	case float64:
		return strings.ToLower(strconv.FormatFloat(x, 'g', -1, 64)) // nan and inf as in TOML
	case time.Time:
		return "a date or time"
	case map[string]any:
		return "a table"
	case []map[string]any:
		return "an array of tables"
	}
	return "an array"
}
