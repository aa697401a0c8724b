package config

import (
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// Bounds of nesting, well above what any file of ours needs: they keep a
// hostile file from exhausting the stack of the parser.
const (
	maxNesting  = 32 // arrays and inline tables in each other
	maxKeyParts = 16 // of one dotted key
)

// keyOffsets is where a key and its value begin, as offsets in bytes.
type keyOffsets struct{ key, value int }

// scanner finds where each key and array element of a TOML text lies. The TOML
// library says that of its own errors only, and of arrays of tables just the
// last one. The scanner leaves judgement to the library: of a valid text it
// finds every key, in an invalid one it stops somewhere.
type scanner struct {
	text    string
	pos     int
	nesting int
	tooDeep bool
	offsets map[string]keyOffsets // by path, such as cluster.nodes[1].gpus
	tables  map[string]int        // how many tables an array of tables has so far
}

// scan returns the places of a text. tooDeep means that the text must not be
// parsed.
func scan(text string) (places map[string]keyOffsets, tooDeep bool) {
	s := &scanner{text: text, offsets: make(map[string]keyOffsets), tables: make(map[string]int)}
	table := ""
	for ok := true; ok; {
		s.skipSpace()
		switch s.peek() {
		case 0:
			ok = false
		case '[':
			table, ok = s.header()
		default:
			ok = s.keyValue(table)
		}
	}
	return s.offsets, s.tooDeep
}

// peek returns the next byte; 0 at the end.
func (s *scanner) peek() byte {
	if s.pos == len(s.text) {
		return 0
	}
	return s.text[s.pos]
}

// accept skips a token that comes next.
func (s *scanner) accept(token string) bool {
	if !strings.HasPrefix(s.text[s.pos:], token) {
		return false
	}
	s.pos += len(token)
	return true
}

func (s *scanner) skipAny(bytes string) {
	for s.pos < len(s.text) && strings.IndexByte(bytes, s.text[s.pos]) >= 0 {
		s.pos++
	}
}

// skipSpace skips blanks, line ends and comments.
func (s *scanner) skipSpace() {
	for s.skipAny(" \t\r\n"); s.peek() == '#'; s.skipAny(" \t\r\n") {
		end := strings.IndexByte(s.text[s.pos:], '\n')
		if end < 0 {
			s.pos = len(s.text)
			return
		}
		s.pos += end
	}
}

// header reads [a.b] or [[a.b]] and returns the path of the table it opens.
func (s *scanner) header() (path string, ok bool) {
	start := s.pos
	s.pos++
	array := s.accept("[")
	parts, ok := s.key()
	if !ok || !s.accept("]") || array && !s.accept("]") {
		return "", false
	}
	for i, part := range parts {
		path = joinKey(path, part)
		last := i == len(parts)-1
		if last && array {
			s.tables[path]++
			if s.isMissing(path) {
				s.noteOffsets(path, start, start)
			}
		}
		if n := s.tables[path]; n > 0 {
			path += "[" + strconv.Itoa(n-1) + "]"
		}
		if last || s.isMissing(path) {
			s.noteOffsets(path, start, start)
		}
	}
	return path, true
}

func (s *scanner) isMissing(path string) bool {
	_, ok := s.offsets[path]
	return !ok
}

func (s *scanner) noteOffsets(path string, key, value int) {
	s.offsets[path] = keyOffsets{key: key, value: value}
}

// keyValue reads key = value below a table.
func (s *scanner) keyValue(table string) bool {
	start := s.pos
	parts, ok := s.key()
	if !ok || !s.accept("=") {
		return false
	}
	s.skipAny(" \t\r\n")
	path := table
	for i, part := range parts {
		path = joinKey(path, part)
		if i == len(parts)-1 || s.isMissing(path) {
			s.noteOffsets(path, start, s.pos)
		}
	}
	return s.value(path)
}

// key reads a dotted key and the blanks around it.
func (s *scanner) key() ([]string, bool) {
	var parts []string
	for {
		s.skipAny(" \t")
		part, ok := s.keyPart()
		if !ok {
			return nil, false
		}
		parts = append(parts, part)
		if len(parts) > maxKeyParts {
			s.tooDeep = true
			return nil, false
		}
		s.skipAny(" \t")
		if !s.accept(".") {
			return parts, true
		}
	}
}

func (s *scanner) keyPart() (string, bool) {
	start := s.pos
	switch quote := s.peek(); quote {
	case '\'', '"':
		if !s.quoted(string(quote), quote == '"') {
			return "", false
		}
		return unquote(s.text[start:s.pos])
	}
	for s.pos < len(s.text) && strings.IndexByte(" \t\r\n.=[]{},#\"'", s.text[s.pos]) < 0 {
		s.pos++
	}
	return s.text[start:s.pos], s.pos > start
}

// unquote returns a quoted key without its quotes and escapes.
func unquote(text string) (string, bool) {
	if text[0] == '\'' || !strings.Contains(text, `\`) {
		return text[1 : len(text)-1], true
	}
	var one map[string]int
	if _, err := toml.Decode(text+" = 0", &one); err != nil {
		return "", false
	}
	for key := range one {
		return key, true
	}
	return "", false
}

// value reads one value; elements of arrays and inline tables have places of
// their own.
func (s *scanner) value(path string) bool {
	rest := s.text[s.pos:]
	switch {
	case strings.HasPrefix(rest, `"""`), strings.HasPrefix(rest, `'''`):
		return s.multiline(rest[:3])
	case strings.HasPrefix(rest, `"`), strings.HasPrefix(rest, `'`):
		return s.quoted(rest[:1], rest[0] == '"')
	case strings.HasPrefix(rest, "["):
		return s.nested("]", func(i int) bool {
			element := path + "[" + strconv.Itoa(i) + "]"
			s.noteOffsets(element, s.pos, s.pos)
			return s.value(element)
		})
	case strings.HasPrefix(rest, "{"):
		return s.nested("}", func(int) bool { return s.keyValue(path) })
	}
	for s.pos < len(s.text) && strings.IndexByte(",]}#\r\n", s.text[s.pos]) < 0 {
		s.pos++
	}
	return len(s.text)-s.pos < len(rest)
}

// nested reads what stands between the opening bracket at the position and the
// given closing one.
func (s *scanner) nested(closing string, element func(i int) bool) bool {
	s.nesting++
	defer func() { s.nesting-- }()
	if s.nesting > maxNesting {
		s.tooDeep = true
		return false
	}
	s.pos++
	for i := 0; ; i++ {
		s.skipSpace()
		if s.accept(closing) {
			return true
		}
		if !element(i) {
			return false
		}
		s.skipSpace()
		s.accept(",")
	}
}

// quoted reads a string on one line.
func (s *scanner) quoted(quote string, escapes bool) bool {
	for s.pos++; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; {
		case c == quote[0]:
			s.pos++
			return true
		case c == '\n':
			return false
		case c == '\\' && escapes:
			s.pos++
		}
	}
	s.pos = len(s.text)
	return false
}

// multiline reads a string between triple quotes. Up to two further quotes
// right before the closing ones belong to the string.
func (s *scanner) multiline(quotes string) bool {
	s.pos += len(quotes)
	for s.pos < len(s.text) {
		switch {
		case s.accept(quotes):
			for range 2 {
				s.accept(quotes[:1])
			}
			return true
		case quotes[0] == '"' && s.text[s.pos] == '\\':
			s.pos = min(s.pos+2, len(s.text))
		default:
			s.pos++
		}
	}
	return false
}

// joinKey returns the path of a key below a table; a key that isn't bare is quoted.
func joinKey(table, key string) string {
	if key == "" || strings.ContainsFunc(key, isNotBareKeyRune) {
		key = strconv.Quote(key)
	}
	if table == "" {
		return key
	}
	return table + "." + key
}

func isNotBareKeyRune(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	return !letter && (r < '0' || r > '9') && r != '_' && r != '-'
}
