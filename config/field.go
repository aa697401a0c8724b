package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/spelling"
)

// field is one key of a TOML table: how it is read, written and explained.
// Reading, the default file and the effective configuration all come from the
// same list of fields.
type field struct {
	key      string
	doc      string // what it means, for people
	expected string // what values it takes, for messages
	read     func(d *document, path string, v any)
	// format is the value in TOML; nil for fields that hold tables.
	format   func() string
	required bool
	// isDerived values come from elsewhere unless the file has them; from says
	// where.
	isDerived bool
	from      string
}

// maxNumber bounds every number, so that sums stay finite.
const maxNumber = 1e15

// numberRange is the numbers that a field takes.
type numberRange struct {
	min, max float64
	above    bool   // min itself isn't one of them
	unit     string // for messages; empty: none
}

// Spans that several fields share.
var (
	nonNegativeRange = numberRange{max: maxNumber}
	positiveRange    = numberRange{max: maxNumber, above: true}
	anyRange         = numberRange{min: -maxNumber, max: maxNumber}
)

func (s numberRange) contains(x float64) bool { // false for NaN
	return x <= s.max && (x > s.min || x == s.min && !s.above)
}

func (s numberRange) String() string {
	unit := ""
	if s.unit != "" {
		unit = " " + s.unit
	}
	if s.above {
		return fmt.Sprintf("a number above %v, up to %v%s", s.min, s.max, unit)
	}
	return fmt.Sprintf("a number from %v to %v%s", s.min, s.max, unit)
}

// numberField returns a field with a number; an integer will do.
func numberField[T ~float64](key, doc string, to *T, in numberRange) field {
	f := field{
		key: key, doc: doc, expected: in.String(), format: func() string { return numberText(float64(*to)) },
	}
	f.read = func(d *document, path string, v any) {
		if x, ok := toNumber(v); ok && in.contains(x) {
			*to = T(x)
			return
		}
		d.faultAtType(path, v, f.expected)
	}
	return f
}

// toNumber returns the value of a TOML float or integer.
func toNumber(v any) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, true
	case int64:
		return float64(x), true
	}
	return math.NaN(), false
}

// numberText returns a number in TOML: never an integer that 64 bits can't hold.
func numberText(x float64) string {
	const digits = 15
	s := strconv.FormatFloat(x, 'g', -1, 64)
	if len(s) > digits && !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

func intField(key, doc string, to *int, least, most int) field {
	f := field{
		key: key, doc: doc, expected: fmt.Sprintf("a whole number from %d to %d", least, most),
		format: func() string { return strconv.Itoa(*to) },
	}
	f.read = func(d *document, path string, v any) {
		if n, ok := v.(int64); ok && n >= int64(least) && n <= int64(most) {
			*to = int(n)
			return
		}
		d.faultAtType(path, v, f.expected)
	}
	return f
}

// boolField returns a field with true or false.
func boolField(key, doc string, to *bool) field {
	f := field{
		key: key, doc: doc, expected: "true or false", format: func() string {
			return strconv.FormatBool(*to)
		},
	}
	f.read = func(d *document, path string, v any) {
		if b, ok := v.(bool); ok {
			*to = b
			return
		}
		d.faultAtType(path, v, f.expected)
	}
	return f
}

// knownBoolField returns a field with true or false, or nothing where that isn't known.
func knownBoolField(key, doc string, to **bool) field {
	var x bool
	f := boolField(key, doc, &x)
	take := f.read
	f.read = func(d *document, path string, v any) {
		before := len(d.faults)
		if take(d, path, v); len(d.faults) == before {
			*to = &x
		}
	}
	f.format = func() string {
		if *to == nil {
			return `""`
		}
		return strconv.FormatBool(**to)
	}
	return f
}

// maxText is how long a text may be, in bytes: enough for a name, and for a
// sentence or two.
const maxText = 1024

// lineField returns a field with one line of text that isn't empty.
func lineField(key, doc string, to *string) field {
	f := field{
		key: key, doc: doc, expected: "a line of text", format: func() string { return strconv.Quote(*to) },
	}
	f.read = func(d *document, path string, v any) {
		s, ok := v.(string)
		if !ok || !isLine(s) {
			d.faultAtType(path, v, f.expected)
			return
		}
		*to = s
	}
	return f
}

// textField returns a field with one line of text, which may be empty.
func textField(key, doc string, to *string) field {
	f := lineField(key, doc, to)
	take := f.read
	f.read = func(d *document, path string, v any) {
		if v == "" {
			*to = ""
			return
		}
		take(d, path, v)
	}
	return f
}

// isLine reports whether a text is one line that can be written and read again.
func isLine(s string) bool {
	return s != "" && len(s) <= maxText && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

func choiceField(key, doc string, to *string, words ...string) field {
	f := field{
		key: key, doc: doc, expected: "one of " + strings.Join(words, ", "),
		format: func() string { return strconv.Quote(*to) },
	}
	f.read = func(d *document, path string, v any) {
		s, ok := v.(string)
		switch {
		case ok && slices.Contains(words, s):
			*to = s
		case ok && spelling.Nearest(s, words) != "":
			d.faultAtType(path, v, f.expected+"; did you mean "+quoteName(spelling.Nearest(s, words))+"?")
		default:
			d.faultAtType(path, v, f.expected)
		}
	}
	return f
}

// checkedField returns a field with a line of text that a function must accept.
func checkedField(f field, check func(string) error) field {
	take := f.read
	f.read = func(d *document, path string, v any) {
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

// lineListField returns a field with an array of texts.
func lineListField(key, doc string, to *[]string) field {
	f := field{key: key, doc: doc, expected: "an array of texts"}
	f.format = func() string {
		quotes := make([]string, len(*to))
		for i, s := range *to {
			quotes[i] = strconv.Quote(s)
		}
		return "[" + strings.Join(quotes, ", ") + "]"
	}
	f.read = func(d *document, path string, v any) {
		list, ok := v.([]any)
		if !ok {
			d.faultAtType(path, v, f.expected)
			return
		}
		var all []string // none is nil, as by default
		if len(list) > 0 {
			all = make([]string, len(list))
		}
		for i, element := range list {
			lineField("", "", &all[i]).read(d, fmt.Sprintf("%s[%d]", path, i), element)
		}
		*to = all
	}
	return f
}

// checkedListField returns a field with an array of texts; fault says what is wrong with the
// i-th of them, behind its name; "": nothing.
func checkedListField(key, doc string, to *[]string, fault func(all []string, i int) string) field {
	f := lineListField(key, doc, to)
	take := f.read
	f.read = func(d *document, path string, v any) {
		before := len(d.faults)
		take(d, path, v)
		if len(d.faults) > before {
			return
		}
		for i, text := range *to {
			if wrong := fault(*to, i); wrong != "" {
				d.faultAt(fmt.Sprintf("%s[%d]", path, i), "%s has %s%s", withoutIndexes(path), quoteName(text), wrong)
			}
		}
	}
	return f
}

func tableField(key string, fields []field) field {
	f := field{key: key, expected: "a table that begins with [" + key + "]"}
	f.read = func(d *document, path string, v any) {
		values, ok := v.(map[string]any)
		if !ok {
			d.faultAtType(path, v, f.expected)
			return
		}
		d.readFields("["+path+"]", path, values, fields)
	}
	return f
}

// inlineTable returns a table on one line, its keys in order.
func inlineTable[V any](table map[string]V, format func(V) string) string {
	parts := make([]string, 0, len(table))
	for _, key := range slices.Sorted(maps.Keys(table)) {
		parts = append(parts, strconv.Quote(key)+" = "+format(table[key]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// partitionTableField returns a field with a table: one of several words for each of the
// partitions that have their own.
func partitionTableField[T ~string](key, doc, each string, to *map[string]T, words []string) field {
	return partitionsField(key, doc, each, to,
		func(d *document, path string, v any) T {
			var word string
			choiceField("", "", &word, words...).read(d, path, v)
			return T(word)
		}, func(word T) string { return strconv.Quote(string(word)) })
}

// partitionNumberField returns a field with a table: a number for each of the partitions that have their
// own.
func partitionNumberField(key, doc string, to *map[string]float64, in numberRange) field {
	return partitionsField(key, doc, in.String(), to,
		func(d *document, path string, v any) (x float64) {
			numberField("", "", &x, in).read(d, path, v)
			return x
		}, numberText)
}

// strictest returns what holds for a job that may start in any of some partitions, with commas between: of
// what each of them has of its own, or else otherwise, the one that is first among the words.
func strictest[M ~string](partitions string, own map[string]M, otherwise M, words []string) M {
	return chooseOverPartitions(partitions, own, otherwise, func(all []M) M {
		return slices.MinFunc(all, func(a, b M) int {
			return cmp.Compare(slices.Index(words, string(a)), slices.Index(words, string(b)))
		})
	})
}

// chooseOverPartitions returns what holds for a job that may start in any of some partitions, with commas
// between: one of what each of them has of its own, or else otherwise.
func chooseOverPartitions[T any](partitions string, own map[string]T, otherwise T, choose func([]T) T) T {
	var all []T
	for partition := range strings.SplitSeq(partitions, ",") {
		x, ok := own[partition]
		if !ok {
			x = otherwise
		}
		all = append(all, x)
	}
	return choose(all)
}

// partitionsField returns a field with a table: something for each of the partitions that have their own.
func partitionsField[T any](
	key, doc, each string, to *map[string]T, read func(d *document, path string, v any) T, text func(T) string,
) field {
	f := field{key: key, doc: doc, expected: "a table of partitions, each with " + each}
	f.read = func(d *document, path string, v any) {
		values, ok := v.(map[string]any)
		if !ok {
			d.faultAtType(path, v, f.expected)
			return
		}
		all := make(map[string]T, len(values))
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if !isLine(name) {
				d.faultAt(path, "partition %s, want a name of 1 to %d printable bytes",
					quoteName(name), maxText)
				continue
			}
			all[name] = read(d, joinKey(path, name), values[name])
		}
		if *to = all; len(all) == 0 {
			*to = nil
		}
	}
	f.format = func() string { return inlineTable(*to, text) }
	return f
}

// requiredField makes a field one that its table must have.
func requiredField(f field) field {
	f.required = true
	return f
}

// derivedField makes a field one that takes its default from elsewhere.
func derivedField(f field, from string) field {
	f.isDerived, f.from = true, from
	return f
}

// faultAtType notes a value that a key, or an array, doesn't take.
func (d *document) faultAtType(path string, v any, want string) {
	verb := "is"
	if strings.HasSuffix(path, "]") {
		verb = "has"
	}
	d.faultAt(path, "%s %s %s, want %s", withoutIndexes(path), verb, describeValue(v), want)
}

// withoutIndexes returns a path for people: the position says which element.
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

// describeValue returns a TOML value in a message.
func describeValue(v any) string {
	switch x := v.(type) {
	case string:
		return quoteName(x)
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

func numbersText[T ~float64](list []T) string {
	texts := make([]string, len(list))
	for i, x := range list {
		texts[i] = numberText(float64(x))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// stepsText writes clocks as {from, to, step} if they are regular, also those that drivers rounded down
// to whole MHz; else one by one.
func stepsText(clocks []dvfsmodel.MHz) string {
	n := len(clocks)
	if n < 4 {
		return numbersText(clocks)
	}
	step := (clocks[2] - clocks[0]) / 2
	for _, from := range []dvfsmodel.MHz{clocks[0], clocks[0] + 0.5} {
		whole := step != dvfsmodel.MHz(math.Trunc(float64(step))) || from != clocks[0]
		as := func(i int) dvfsmodel.MHz {
			clock := from + dvfsmodel.MHz(i)*step
			if whole {
				clock = dvfsmodel.MHz(math.Floor(float64(clock)))
			}
			return clock
		}
		regular := step > 0
		for i := range clocks {
			regular = regular && as(i) == clocks[i]
		}
		if regular {
			text := "{ from = " + numberText(float64(from)) + ", to = " +
				numberText(float64(from+dvfsmodel.MHz(n-1)*step)) + ", step = " + numberText(float64(step))
			if whole {
				text += ", whole = true"
			}
			return text + " }"
		}
	}
	return numbersText(clocks)
}

// modeWords are the modes, the most careful first.
var modeWords = []string{string(live.Observe), string(live.Advise), string(live.Enforce)}
