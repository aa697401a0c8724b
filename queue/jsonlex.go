package queue

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// lexer reads the tokens of a JSON document and knows where each one stands. Only the current token is held.
type lexer struct {
	in    *bufio.Reader
	read  int64 // bytes of in
	err   error // of reading
	d     *jsontext.Decoder
	pos   Position          // where the last token ends
	known map[string]string // frequent strings, each one string
	spare []byte

	kind jsontext.Kind // of the current token; endToken at the end of the file
	at   Position      // of the current token
	text string        // of a string, decoded; of a number or word, as written
}

// maxToken bounds a token and the space before it, bytes.
const maxToken = 1 << 20

const endToken = jsontext.Kind(0)

func newLexer(in *bufio.Reader, start Position, known map[string]string) *lexer {
	l := &lexer{in: in, pos: start, known: known}
	l.d = jsontext.NewDecoder(l, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return l
}

// Read is for the decoder, which holds all of a token.
func (l *lexer) Read(p []byte) (int, error) {
	if l.read-l.d.InputOffset() > maxToken {
		what := "number or space"
		if l.kind == '"' {
			what = "string"
		}
		l.err = l.fault(what+" is longer than 1 MiB", "a batch file")
		return 0, l.err
	}
	n, err := l.in.Read(p)
	l.read += int64(n)
	l.err = err
	return n, err
}

// next reads a token into the lexer. The decoder checks the commas and colons between tokens.
func (l *lexer) next() error {
	l.kind = endToken // while space is read
	l.kind = l.d.PeekKind()
	before := l.d.InputOffset()
	unread := l.d.UnreadBuffer()
	space := 0
	for space < len(unread) && isBetweenTokens(unread[space]) {
		space++
	}
	l.at = positionAfter(l.pos, unread[:space])
	var raw []byte
	var err error
	switch l.kind {
	case '{', '}', '[', ']':
		_, err = l.d.ReadToken()
		l.text = ""
	default:
		raw, err = l.d.ReadValue()
	}
	if errors.Is(err, io.EOF) && l.d.StackDepth() == 0 {
		l.kind, l.text = endToken, ""
		return nil
	}
	if err != nil {
		return l.syntaxError(err, before)
	}
	l.pos = l.at
	l.pos.Column += int(l.d.InputOffset()-before) - space
	if len(raw) > 0 {
		l.decode(raw)
	}
	return nil
}

func isBetweenTokens(c byte) bool {
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ',' || c == ':'
}

// decode notes the text of a string, number or word.
func (l *lexer) decode(raw []byte) {
	if l.kind == '"' {
		l.spare, _ = jsontext.AppendUnquote(l.spare[:0], raw) // half a surrogate pair is U+FFFD
		raw = l.spare
	}
	known, ok := l.known[string(raw)]
	if l.text = known; !ok {
		l.text = string(raw)
	}
}

// syntaxError says where the decoder found what is not JSON, and what it expected there.
func (l *lexer) syntaxError(err error, before int64) error {
	wrong, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case l.err != nil && !errors.Is(l.err, io.EOF):
		return l.err
	case !ok:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF) && l.kind == '"':
		return l.fault("string without an end", `a closing "`)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return l.fault("unexpected end of file", "the rest of the JSON")
	}
	msg, want, _ := strings.Cut(strings.TrimSuffix(wrong.Err.Error(), ")"), " (expecting ")
	unread := l.d.UnreadBuffer()
	at := min(max(0, wrong.ByteOffset-before), int64(len(unread)))
	isWord := strings.Contains(msg, " in literal ")
	for isWord && at > 0 && !isBetweenTokens(unread[at-1]) {
		at--
	}
	l.at, unread = positionAfter(l.pos, unread[:at]), unread[at:]
	switch {
	case strings.HasPrefix(msg, "invalid escape"):
		want = `one of \" \\ \/ \b \f \n \r \t \u0000`
	case !isWord && !strings.HasSuffix(msg, "at start of value"):
	case bytes.HasPrefix(unread, []byte(",")):
		msg, want = `unexpected ","`, "a value on both sides of it"
	default:
		if end := bytes.IndexAny(unread, " \t\r\n,:[]{}\""); end > 0 {
			unread = unread[:end]
		}
		msg = quoted(string(unread)) + " is not a JSON value"
		want = "text in quotes, a number, true, false or null"
	}
	return l.fault(msg, cmp.Or(want, "JSON"))
}

// positionAfter returns the position behind a text that begins at another one.
func positionAfter(p Position, text []byte) Position {
	for _, c := range text {
		p.Column++
		if c == '\n' {
			p.Line, p.Column = p.Line+1, 1
		}
	}
	return p
}

// fault is an error at the current token.
func (l *lexer) fault(msg, want string) error {
	return &SyntaxError{Pos: l.at, Msg: msg, Want: want}
}

// describe returns the current token for a message.
func (l *lexer) describe() string {
	switch l.kind {
	case endToken:
		return "end of file"
	case '"':
		return "string " + quoted(l.text)
	case '0':
		return "number " + l.text
	case 'n', 't', 'f':
		return l.text
	default:
		return strconv.Quote(string(rune(l.kind)))
	}
}

// unexpected is the error of a token that can't stand where it does.
func (l *lexer) unexpected(want string) error {
	return l.fault("unexpected "+l.describe(), want)
}

// expect reads a token, which must be of the given kind.
func (l *lexer) expect(kind jsontext.Kind, want string) error {
	if err := l.next(); err != nil {
		return err
	}
	if l.kind != kind {
		return l.unexpected(want)
	}
	return nil
}
