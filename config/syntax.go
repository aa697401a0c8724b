package config

import (
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"
)

// syntaxRule says what stands in a text where the TOML library gives up with a
// message that has one of these parts.
type syntaxRule struct {
	parts      []string
	foundText  func(text string, at int) (shown string, from int)
	wantedText string
}

// wantValue is what every setting has after its =.
const wantValue = `a value: "text" in quotes, a number, true or false`

// syntaxRules are tried in order.
var syntaxRules = []syntaxRule{
	{[]string{"table name", "table array name", "table separator"}, wholeLine, "[name] or [[name]]"},
	{
		[]string{
			"expected '.' or '='", "key separator", "unexpected '='", "unexpected '.'", "keys cannot start",
		}, wholeLine, "key = value",
	},
	{[]string{"top-level item to end"}, restOfLine, "one key = value on a line"},
	{[]string{"array terminator"}, wordAt, "a comma or ]"},
	{[]string{"inline table"}, wordAt, "a comma or } on the same line"},
	{[]string{"unexpected comma"}, wordAt, "a value before it"},
	{
		[]string{"cannot contain newlines", `unexpected EOF; expected '`, `unexpected EOF; expected "`},
		wordAt, "a closing quote",
	},
	{
		[]string{"escape", "Escape", "hexadecimal digits"},
		escapeAt,
		`\\ for a backslash, or text in 'single quotes'`,
	},
	{[]string{"control character", "NULL byte"}, wordAt, "text without control characters"},
	{[]string{"expected value", "datetime"}, wordAt, wantValue},
	{
		[]string{"nteger", "loat", "digit", "number", "out of range"},
		wordAt,
		"a number such as 12, 0.5 or 1e6",
	},
}

// syntaxFault returns what is wrong where the TOML library gave up, and the offset of
// that: what was found and what was expected there. The library's own words are
// about its grammar, and its own line is one too far for faults at a line end.
func syntaxFault(text string, wrong *toml.ParseError) (at int, msg string) {
	at = min(max(0, wrong.Position.Start), len(text))
	if key, ok := duplicateKey(wrong.Message); ok {
		return at, duplicateText(text[:lineStart(text, at)], key, wrong.Message)
	}
	for _, rule := range syntaxRules {
		for _, part := range rule.parts {
			if strings.Contains(wrong.Message, part) {
				shown, from := rule.foundText(text, at)
				return from, fmt.Sprintf("found %s, want %s", shown, rule.wantedText)
			}
		}
	}
	shown, from := wholeLine(text, at)
	return from, fmt.Sprintf("found %s, want TOML: key = value, [name] or # a comment", shown)
}

// duplicateKey returns the key that a message says is there already.
func duplicateKey(message string) (key string, ok bool) {
	rest, ok := strings.CutPrefix(message, "Key '")
	if i := strings.LastIndex(rest, "' "); ok && i >= 0 {
		return rest[:i], true
	}
	return "", false
}

// duplicateText says where a key or a table stands in the text before it.
func duplicateText(before, key, message string) string {
	places, _ := scan(before)
	last := -1
	for path, at := range places {
		if withoutIndexes(path) == key {
			last = max(last, at.key)
		}
	}
	line := ""
	if last >= 0 {
		line = fmt.Sprintf(" on line %d", 1+strings.Count(before[:last], "\n"))
	}
	if strings.Contains(message, "as an array") {
		return fmt.Sprintf("%s is one table%s, want [[%s]] each time", key, line, key)
	}
	return fmt.Sprintf("%s is set%s already, want it once", key, line)
}

func lineStart(text string, at int) int { return strings.LastIndexByte(text[:at], '\n') + 1 }

// lineEnd returns where the line of an offset ends, without its line end.
func lineEnd(text string, at int) int {
	end := len(text)
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		end = at + i
	}
	return len(strings.TrimRight(text[:end], " \t\r"))
}

// wholeLine shows the line of an offset, and begins where its text does.
func wholeLine(text string, at int) (shown string, from int) {
	from = lineStart(text, at)
	end := max(from, lineEnd(text, at))
	from += len(text[from:end]) - len(strings.TrimLeft(text[from:end], " \t"))
	return excerpt(text, from, end, at)
}

// restOfLine shows a line from an offset on.
func restOfLine(text string, at int) (shown string, from int) {
	end := max(at, lineEnd(text, at))
	at += len(text[at:end]) - len(strings.TrimLeft(text[at:end], " \t"))
	return excerpt(text, at, end, at)
}

// wordAt shows what stands at an offset up to a blank or a bracket.
func wordAt(text string, at int) (shown string, from int) {
	end := max(at, lineEnd(text, at))
	if i := strings.IndexAny(text[at:end], " \t,]}#\""); i > 0 {
		end = at + i
	} else if i == 0 && at < end {
		end = at + 1
	}
	return excerpt(text, at, end, at)
}

// escapeAt shows the backslash nearest to an offset in its line and what follows it.
func escapeAt(text string, at int) (shown string, from int) {
	line := text[:max(at, lineEnd(text, at))]
	from = at + strings.IndexByte(line[at:], '\\')
	if from < at || from+1 >= len(line) {
		return wordAt(text, at)
	}
	return excerpt(text, from, from+2, at)
}

// excerpt shows text from one offset to another, or that it ends there.
func excerpt(text string, from, to, at int) (shown string, _ int) {
	switch {
	case from < to:
		return quoteName(text[from:to]), from
	case strings.TrimSpace(text[at:]) == "" && strings.IndexByte(text[at:], '\n') < 0:
		return "the end of the file", from
	}
	return "the end of the line", from
}
