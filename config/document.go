package config

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"github.com/epplan/epplan/queue"
	"github.com/epplan/epplan/spelling"
)

// maxBytes is the largest TOML file that is read.
const maxBytes = 4 << 20

const byteOrderMark = "\uFEFF"

// document is a TOML file that was parsed, with the faults found in it so far.
type document struct {
	name    string
	root    map[string]any
	offsets map[string]keyOffsets
	lines   []int // offsets at which lines begin
	faults  []*KeyError
}

// parse reads a whole TOML file. Its error is a [FileError] for bad syntax.
func parse(r io.Reader, name string) (*document, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", queue.Printable(name), err)
	}
	if len(raw) > maxBytes {
		return nil, fmt.Errorf("%s is larger than %d MiB", queue.Printable(name), maxBytes>>20)
	}
	text := strings.TrimPrefix(string(raw), byteOrderMark)
	d := &document{name: name, lines: []int{0}}
	for i := range text {
		if text[i] == '\n' {
			d.lines = append(d.lines, i+1)
		}
	}
	if i := invalidByte(text); i >= 0 {
		return nil, d.syntaxError(d.positionAt(i), fmt.Sprintf("byte 0x%02x, want UTF-8 text", text[i]))
	}
	places, tooDeep := scan(text)
	if tooDeep {
		return nil, d.syntaxError(queue.Position{File: name, Line: 1, Column: 1},
			fmt.Sprintf("keys or values are nested too deeply, want at most %d levels", maxNesting))
	}
	d.offsets = places
	if _, err = toml.Decode(text, &d.root); err != nil {
		if wrong, ok := errors.AsType[toml.ParseError](err); ok {
			at, msg := syntaxFault(text, &wrong)
			return nil, d.syntaxError(d.positionAt(at), queue.Printable(msg))
		}
		return nil, fmt.Errorf("%s: %w", queue.Printable(name), err)
	}
	return d, nil
}

// invalidByte returns the offset of the first byte that isn't UTF-8; -1 if none.
func invalidByte(text string) int {
	for i, r := range text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				return i
			}
		}
	}
	return -1
}

func (d *document) syntaxError(pos queue.Position, msg string) error {
	return &FileError{Faults: []*KeyError{{Pos: pos, Msg: msg}}}
}

// positionAt returns the line and column of an offset.
func (d *document) positionAt(offset int) queue.Position {
	line := sort.SearchInts(d.lines, offset+1)
	return queue.Position{File: d.name, Line: line, Column: offset - d.lines[line-1] + 1}
}

// valuePosition returns where a value begins, or else the nearest value around it.
func (d *document) valuePosition(path string) queue.Position { return d.findPosition(path, false) }

// keyPosition returns where a key begins.
func (d *document) keyPosition(path string) queue.Position { return d.findPosition(path, true) }

func (d *document) findPosition(path string, key bool) queue.Position {
	for path != "" {
		if p, ok := d.offsets[path]; ok {
			if key {
				return d.positionAt(p.key)
			}
			return d.positionAt(p.value)
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return queue.Position{File: d.name, Line: 1, Column: 1}
}

// faultAt notes a fault at a value.
func (d *document) faultAt(path, format string, args ...any) {
	d.fault(d.valuePosition(path), format, args...)
}

func (d *document) fault(pos queue.Position, format string, args ...any) {
	fault := &KeyError{Pos: pos, Msg: queue.Printable(fmt.Sprintf(format, args...))}
	for _, arg := range args {
		if err, ok := arg.(error); ok {
			fault.cause = err
		}
	}
	d.faults = append(d.faults, fault)
}

// err is a [FileError] with the faults so far, or nil.
func (d *document) err() error { return fileError(d.faults) }

// readFields takes the fields of a table and notes unknown and missing keys. The
// name is how messages call the table: [policy]; empty for the whole file.
func (d *document) readFields(name, path string, values map[string]any, fields []field) {
	known := make([]string, 0, len(fields))
	for _, f := range fields {
		known = append(known, f.key)
	}
	var meant []string
	for key := range values {
		if !slices.Contains(known, key) {
			near := spelling.Nearest(key, known)
			meant = append(meant, near)
			d.unknownKey(name, joinKey(path, key), key, suggestNames(near, known, strings.Clone))
		}
	}
	for _, f := range fields {
		v, ok := values[f.key]
		switch {
		case ok:
			f.read(d, joinKey(path, f.key), v)
		case f.required && !slices.Contains(meant, f.key):
			d.fault(d.keyPosition(path), "%s has no %s, want %s", name, f.key, f.expected)
		}
	}
}

func (d *document) unknownKey(name, path, key, suggestion string) {
	if key == "" || strings.ContainsFunc(key, isNotBareKeyRune) {
		key = quoteName(key)
	}
	if name != "" {
		key += " in " + name
	}
	d.fault(d.keyPosition(path), "unknown key %s, %s", key, suggestion)
}

// eachTable calls each for every table of an array of tables, or notes a fault.
func (d *document) eachTable(path string, v any, each func(path string, values map[string]any)) {
	switch list := v.(type) {
	case []map[string]any:
		for i, values := range list {
			each(fmt.Sprintf("%s[%d]", path, i), values)
		}
		return
	case []any:
		for i, element := range list {
			at := fmt.Sprintf("%s[%d]", path, i)
			if values, ok := element.(map[string]any); ok {
				each(at, values)
			} else {
				d.faultAtType(at, element, "tables")
			}
		}
		return
	}
	d.faultAtType(path, v, "an array of tables: [["+withoutIndexes(path)+"]]")
}
