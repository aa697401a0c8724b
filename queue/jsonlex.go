package queue

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strconv"
)

// lexer cuts JSON into tokens and knows where each one stands, which
// encoding/json does not tell. What a string or a number means is still
// encoding/json's business. Only the current token is held.
type lexer struct {
	in    *bufio.Reader
	pos   Position          // of the next byte
	known map[string]string // frequent strings, each one string

	kind tokenKind
	at   Position // of the current token
	raw  []byte   // of a string (without quotes), number or word
	text string   // of a string, decoded; of a number or word, as written
}

// maxToken bounds a token, bytes.
const maxToken = 1 << 20

// tokenKind is a delimiter itself, or one of the kinds below.
type tokenKind byte

const (
	endToken    tokenKind = 0
	stringToken tokenKind = '"'
	numberToken tokenKind = '0'
	wordToken   tokenKind = 'w' // true, false, null
)

// next reads a token into the lexer.
func (l *lexer) next() error {
	c, err := l.skipSpace()
	if errors.Is(err, io.EOF) {
		l.kind, l.at, l.text = endToken, l.pos, ""
		return nil
	}
	if err != nil {
		return err
	}
	l.at = l.pos
	l.pos.Column++
	l.raw = l.raw[:0]
	switch {
	case c == '{' || c == '}' || c == '[' || c == ']' || c == ':' || c == ',':
		l.kind, l.text = tokenKind(c), ""
		return nil
	case c == '"':
		l.kind = stringToken
		return l.str()
	case c == '-' || c >= '0' && c <= '9':
		l.kind = numberToken
	default:
		l.kind = wordToken
	}
	l.raw = append(l.raw, c)
	return l.word()
}

func (l *lexer) skipSpace() (byte, error) {
	for {
		c, err := l.in.ReadByte()
		if err != nil {
			return 0, err
		}
		switch c {
		case '\n':
			l.pos.Line++
			l.pos.Column = 1
		case ' ', '\t', '\r':
			l.pos.Column++
		default:
			return c, nil
		}
	}
}

// str reads the rest of a string.
func (l *lexer) str() error {
	escaped := false
	for {
		c, err := l.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return l.fault("string without an end", `a closing "`)
		}
		if err != nil {
			return err
		}
		l.pos.Column++
		switch {
		case c == '"':
			return l.decode(escaped)
		case c < ' ':
			return l.fault("string with a control character or line end inside",
				`\n and the like, or a closing "`)
		case c == '\\':
			escaped = true
			l.raw = append(l.raw, c)
			if c, err = l.in.ReadByte(); err != nil {
				continue // the next read says why
			}
			l.pos.Column++
		}
		if l.raw = append(l.raw, c); len(l.raw) > maxToken {
			return l.fault("string is longer than 1 MiB", "a batch file")
		}
	}
}

func (l *lexer) decode(escaped bool) error {
	if !escaped {
		known, ok := l.known[string(l.raw)]
		if l.text = known; !ok {
			l.text = string(l.raw)
		}
		return nil
	}
	in := append(append([]byte{'"'}, l.raw...), '"')
	if err := json.Unmarshal(in, &l.text); err != nil {
		return l.fault("string with a wrong escape", `one of \" \\ \/ \b \f \n \r \t \u0000`)
	}
	return nil
}

// word reads the rest of a number, or of true, false or null.
func (l *lexer) word() error {
	for {
		c, err := l.in.ReadByte()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if !isWordByte(c) {
			if err := l.in.UnreadByte(); err != nil {
				return err
			}
			break
		}
		l.pos.Column++
		if l.raw = append(l.raw, c); len(l.raw) > maxText {
			return l.fault(quoted(string(l.raw))+" is too long for a number", "JSON")
		}
	}
	l.text = string(l.raw)
	if !json.Valid(l.raw) {
		return l.fault(quoted(l.text)+" is not a JSON value", "text in quotes, a number, true, false or null")
	}
	return nil
}

func isWordByte(c byte) bool {
	return c == '+' || c == '-' || c == '.' || c == '_' ||
		c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// fault is an error at the current token.
func (l *lexer) fault(msg, want string) error {
	return &SyntaxError{Pos: l.at, Msg: msg, Want: want}
}

// describe is the current token for a message.
func (l *lexer) describe() string {
	switch l.kind {
	case endToken:
		return "end of file"
	case stringToken:
		return "string " + quoted(l.text)
	case numberToken:
		return "number " + l.text
	case wordToken:
		return l.text
	}
	return strconv.Quote(string(l.kind))
}

// unexpected is the error of a token that can't stand where it does.
func (l *lexer) unexpected(want string) error {
	return l.fault("unexpected "+l.describe(), want)
}

// expect reads a token, which must be of the given kind.
func (l *lexer) expect(kind tokenKind, want string) error {
	if err := l.next(); err != nil {
		return err
	}
	if l.kind != kind {
		return l.unexpected(want)
	}
	return nil
}
