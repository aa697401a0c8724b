package slurm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// answerDecoder walks Slurm's outer object as it comes in, one record at a time.
type answerDecoder struct {
	source string
	in     *positionReader
	dec    jsonReader
	record int64 // where the latest record begins
	meta   Meta
}

func newAnswerDecoder(source string, r io.Reader) *answerDecoder {
	in := &positionReader{from: r}
	// Bytes that are not UTF-8 are made visible value by value.
	return &answerDecoder{source: source, in: in, dec: jsonReader{
		jsontext.NewDecoder(in, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)),
	}}
}

// jsonReader reads values of any kind.
type jsonReader struct{ *jsontext.Decoder }

// value returns the next value as it stands there, but in valid UTF-8. It holds
// until the next one is read.
func (r jsonReader) value() ([]byte, error) {
	raw, err := r.ReadValue()
	if err != nil {
		return nil, err //nolint:wrapcheck // the walk adds the place
	}
	return escapeInvalid(raw, true), nil
}

// Decode reads the next value into v.
func (r jsonReader) Decode(v any) error {
	raw, err := r.value()
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, v) //nolint:wrapcheck // the walk adds the place
}

// streamUnmarshaler is what reads itself from a stream.
type streamUnmarshaler interface{ readJSON(r jsonReader) error }

// readObject reads an object's members into what is found for their names, and
// passes over those for which nil is. An [unusableError] comes after the whole object was read.
func (r jsonReader) readObject(find func(name []byte) any) error {
	if r.PeekKind() != '{' {
		return cmp.Or(r.SkipValue(), error(unusableError{errors.New("want an object")}))
	}
	var firstOdd error
	if _, err := r.ReadToken(); err != nil {
		return err //nolint:wrapcheck // the walk adds the place
	}
	for r.PeekKind() == '"' {
		name, err := r.ReadValue()
		if err != nil {
			return err //nolint:wrapcheck // the walk adds the place
		}
		into := find(name[1 : len(name)-1])
		if err := r.decodeInto(into); isUnusable(err) {
			firstOdd = cmp.Or(firstOdd, err)
		} else if err != nil {
			return err
		}
	}
	_, err := r.ReadToken()
	return cmp.Or(err, firstOdd)
}

func isUnusable(err error) bool {
	_, odd := errors.AsType[unusableError](err)
	return odd
}

// decodeInto reads the next value, or passes over it.
func (r jsonReader) decodeInto(v any) error {
	switch v := v.(type) {
	case streamUnmarshaler:
		return v.readJSON(r) //nolint:wrapcheck // the walk adds the place
	case json.Unmarshaler:
		raw, err := r.value()
		if err != nil {
			return err
		}
		if err := v.UnmarshalJSON(raw); err != nil {
			return unusableError{err}
		}
		return nil
	}
	return r.SkipValue() //nolint:wrapcheck // the walk adds the place
}

// fieldPointers are pointers to the fields of a struct by their names in JSON.
func fieldPointers(record any) map[string]any {
	value := reflect.ValueOf(record).Elem()
	named := make(map[string]any, value.NumField())
	for i := range value.NumField() {
		named[value.Type().Field(i).Tag.Get("json")] = value.Field(i).Addr().Interface()
	}
	return named
}

// errorAt gives an error its place in the answer. That the answer could not be had
// is another error.
func (a *answerDecoder) errorAt(msg string, err error) error {
	if errors.Is(a.in.err, errLongRecord) {
		line, column := a.in.position(max(a.record, a.in.recordStart))
		return &ParseError{
			Source: a.source, Line: line, Column: column, Msg: msg + a.unreadJob(), Err: a.in.err,
		}
	}
	if a.in.err != nil {
		return fmt.Errorf("%s: %w", a.source, a.in.err)
	}
	if _, placed := errors.AsType[*ParseError](err); placed {
		return err
	}
	at := a.dec.InputOffset()
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		at, err = max(at, syntax.ByteOffset), syntax.Err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		at, err = a.in.read, errors.New("output ends in the middle")
	}
	line, column := a.in.position(at)
	return &ParseError{Source: a.source, Line: line, Column: column, Msg: msg, Err: err}
}

// readAll reads the whole answer; lists maps a key to what reads one element of its list.
func (a *answerDecoder) readAll(lists map[string]func() error) error {
	if err := a.expectKind('{', "an object"); err != nil {
		return err
	}
	found := false
	for a.dec.PeekKind() == '"' {
		token, err := a.dec.ReadToken()
		if err != nil {
			return a.errorAt("read a key", err)
		}
		key := token.String()
		a.in.markRecord(a.dec.InputOffset())
		if each, ok := lists[key]; ok {
			found = true
			if err := a.eachElement(key, each); err != nil {
				return err
			}
			continue
		}
		if err := a.readOther(key); err != nil {
			return a.errorAt(Printable(key, maxKey), err)
		}
	}
	if err := a.expectKind('}', "the end of the object"); err != nil {
		return err
	}
	if !found && len(a.meta.Errors) == 0 {
		return a.errorAt("no list of records in the answer", nil)
	}
	return nil
}

// maxKey is how much of a key an error shows.
const maxKey = 40

func (a *answerDecoder) expectKind(want jsontext.Kind, name string) error {
	token, err := a.dec.ReadToken()
	if err != nil {
		return a.errorAt("want "+name, err)
	}
	if token.Kind() != want {
		return a.errorAt("want "+name, nil)
	}
	return nil
}

func (a *answerDecoder) eachElement(key string, each func() error) error {
	token, err := a.dec.ReadToken()
	switch {
	case err != nil:
		return a.errorAt(key, err)
	case token.Kind() == 'n':
		return nil
	case token.Kind() != '[':
		return a.errorAt(key+": want a list", nil)
	}
	for i := 0; ; i++ {
		kind := a.dec.PeekKind()
		if kind == ']' {
			break
		}
		a.in.markRecord(a.dec.InputOffset())
		a.record = a.dec.InputOffset() + bytesBeforeRecord(a.dec.UnreadBuffer())
		if err := each(); err != nil {
			return a.errorAt(key+"["+strconv.Itoa(i)+"]", err)
		}
	}
	return a.expectKind(']', "the end of "+key)
}

// bytesBeforeRecord returns how many bytes there are before a record begins.
func bytesBeforeRecord(unread []byte) int64 {
	return int64(len(unread) - len(bytes.TrimLeft(unread, ", \t\r\n")))
}

// unreadJob names the job of a record of which nothing was taken, as far as it is
// there: ", job 7", or nothing.
func (a *answerDecoder) unreadJob() string {
	if a.dec.InputOffset() != a.in.recordStart {
		return ""
	}
	unread := a.dec.UnreadBuffer()
	part := jsonReader{jsontext.NewDecoder(bytes.NewReader(unread[bytesBeforeRecord(unread):]),
		jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))}
	if token, err := part.ReadToken(); err != nil || token.Kind() != '{' {
		return ""
	}
	for {
		name, err := part.ReadToken()
		if err != nil || name.Kind() != '"' {
			return ""
		}
		if name.String() != "job_id" {
			if part.SkipValue() != nil {
				return ""
			}
			continue
		}
		var id jsonNumber
		if part.Decode(&id) != nil || id.jobID() == 0 {
			return ""
		}
		return ", job " + id.jobID().String()
	}
}

// readOther reads meta and errors, and passes over every other key.
func (a *answerDecoder) readOther(key string) error {
	if key != "meta" && key != "errors" {
		return a.dec.SkipValue() //nolint:wrapcheck // the walk adds the place
	}
	raw, err := a.dec.value()
	switch {
	case err != nil:
		return err
	case key == "meta":
		a.meta.Version = metaVersion(raw)
	default:
		a.meta.Errors = append(a.meta.Errors, answerErrors(raw)...)
	}
	return nil
}
