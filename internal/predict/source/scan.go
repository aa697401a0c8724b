package source

import (
	"math"
	"strconv"
	"strings"
)

// Text is what a source file says.
type Text struct {
	Words      map[string]int     // how often each word occurs
	Numbers    map[string]float64 // the number that a name is given, the last one
	Reassigned int                // how often a name is given another number: stages in one file
}

// token is a piece of source: a name, a number, or a mark.
type token struct {
	kind byte // 'n' name, '0' number, else the mark itself
	text string
	line int
}

// scan takes text apart. Comments count, as do strings: both say what a job does.
func scan(text string) []token {
	var out []token
	line := 1
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '\n':
			line++
			i++
		case c <= ' ' || c >= 0x7f:
			i++
		case isLetter(c):
			from := i
			for i < len(text) && (isLetter(text[i]) || isDigit(text[i]) ||
				(text[i] == '-' && i+1 < len(text) && isLetter(text[i+1]) && isOption(text, from))) {
				i++
			}
			out = append(out, token{'n', text[from:i], line})
		case isDigit(c) || (c == '.' && i+1 < len(text) && isDigit(text[i+1])):
			from := i
			for i < len(text) && (isDigit(text[i]) || isLetter(text[i]) || text[i] == '.' ||
				((text[i] == '-' || text[i] == '+') && (text[i-1] == 'e' || text[i-1] == 'E'))) {
				i++
			}
			out = append(out, token{'0', text[from:i], line})
		default:
			out = append(out, token{c, text[i : i+1], line})
			i++
		}
	}
	return out
}

// isOption reports whether a name that begins at a place is an option's: after --.
func isOption(text string, at int) bool { return at >= 2 && text[at-1] == '-' && text[at-2] == '-' }

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// numberValue returns a number's, whatever suffix the language gives it.
func numberValue(text string) (float64, bool) {
	text = strings.ReplaceAll(text, "_", "")
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return v, !math.IsInf(v, 0) && !math.IsNaN(v)
	}
	v, err := strconv.ParseFloat(strings.TrimRight(strings.ToLower(text), "fulisz"), 64)
	return v, err == nil && !math.IsInf(v, 0) && !math.IsNaN(v)
}

// Read reads a source file. Binary files have no text: their words are few and strange.
func Read(text string) *Text {
	t := &Text{Words: make(map[string]int), Numbers: make(map[string]float64)}
	tokens := scan(text)
	for i := range tokens {
		if tokens[i].kind == 'n' {
			for _, w := range nameParts(tokens[i].text) {
				t.Words[w]++
			}
		}
		t.bind(tokens, i)
	}
	return t
}

// bindDistance is how many tokens lie between a name and its number at most.
const bindDistance = 6

// bind gives the name that a number or truth value belongs to that number: the
// nearest one before it in its line with at most marks and words of types between,
// or, where none is, the next words after it ("12.7 million parameters").
func (t *Text) bind(tokens []token, i int) {
	v, ok := 0.0, false
	switch tokens[i].kind {
	case '0':
		v, ok = numberValue(tokens[i].text)
	case 'n':
		switch tokens[i].text {
		case "True", "true":
			v, ok = math.E, true // logarithm 1
		case "False", "false":
			v, ok = 1, true
		}
	}
	if !ok || v < 0 {
		return
	}
	name, found := nameBefore(tokens, i)
	if !found {
		name, found = nameAfter(tokens, i)
	}
	if !found {
		return
	}
	if before, twice := t.Numbers[name]; twice && before != v {
		t.Reassigned++
	}
	t.Numbers[name] = v
}

// nameBefore returns the name that is assigned a number.
func nameBefore(tokens []token, i int) (string, bool) {
	assigned := false
	for k := i - 1; k >= 0 && k >= i-bindDistance && tokens[k].line == tokens[i].line; k-- {
		switch tokens[k].kind {
		case '=', ':', '"', '\'':
			assigned = true
		case '-', '+':
		case '0', '*', '/', '(', ')', '[', ']', '<', '>', ';', '{', '}', '%':
			return "", false
		case ',':
			// add_argument('--epochs', type=int, default=20): the option names it
			if !assigned {
				return "", false
			}
		case 'n':
			switch name := tokens[k].text; {
			case isType(name):
			case name == "default" || name == "type":
				if option, ok := optionIn(tokens, k); ok {
					return option, true
				}
				return "", false
			case assigned || isMacroName(tokens, k) || directlyFollows(tokens, k, i):
				return plainName(name), true
			default:
				return "", false
			}
		}
	}
	return "", false
}

// optionIn returns the option in the line before a place: '--epochs'.
func optionIn(tokens []token, k int) (string, bool) {
	for m := k; m >= 2 && tokens[m].line == tokens[k].line; m-- {
		if tokens[m].kind == 'n' && tokens[m-1].kind == '-' && tokens[m-2].kind == '-' {
			return plainName(tokens[m].text), true
		}
	}
	return "", false
}

// isMacroName reports whether a name is that of a macro: #define N 1024.
func isMacroName(tokens []token, k int) bool {
	return k >= 2 && tokens[k-1].text == "define" && tokens[k-2].kind == '#'
}

// directlyFollows reports whether a number directly follows an option: --grid 192, -n 32.
func directlyFollows(tokens []token, k, i int) bool {
	return k == i-1 && k >= 1 && tokens[k-1].kind == '-'
}

// isType reports whether a name is a type between a name and its number.
func isType(name string) bool {
	switch name {
	case "int", "float", "double", "i32", "i64", "u32", "u64", "f32", "f64", "usize", "bool", "size_t",
		"const", "let", "auto":
		return true
	}
	return false
}

// nameAfter returns what a number in a sentence counts.
func nameAfter(tokens []token, i int) (string, bool) {
	for k := i + 1; k < len(tokens) && k <= i+2 && tokens[k].line == tokens[i].line &&
		tokens[k].kind == 'n'; k++ {
		switch name := plainName(tokens[k].text); name {
		case "million", "m", "billion":
		default:
			return name, true
		}
	}
	return "", false
}

// plainName returns a name without case, separators and counting prefixes.
func plainName(name string) string {
	name = strings.ToLower(name)
	for _, prefix := range []string{"num_", "n_", "nb_", "num-", "number_of_"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" {
			name = rest
		}
	}
	return strings.NewReplacer("_", "", "-", "").Replace(name)
}

// nameParts returns the parts of a name: of snake_case, camelCase and CamelCase, in lower
// case; digits at the end belong to the word before them.
func nameParts(name string) []string {
	var out []string
	from := 0
	flush := func(to int) {
		if to > from {
			out = append(out, strings.ToLower(name[from:to]))
		}
	}
	for i := range len(name) {
		switch {
		case name[i] == '_' || name[i] == '-':
			flush(i)
			from = i + 1
		case i > from && name[i] >= 'A' && name[i] <= 'Z' && name[i-1] >= 'a' && name[i-1] <= 'z':
			flush(i)
			from = i
		}
	}
	flush(len(name))
	return out
}
