package sweep

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Encode writes what a part came to, so that Decode gives the same to the last bit:
// numbers that JSON doesn't know, too, and lists that are nil. Fields must be exported.
func Encode(value any) ([]byte, error) {
	if err := checkExported(reflect.TypeOf(value), make(map[reflect.Type]bool)); err != nil {
		return nil, err
	}
	return json.Marshal(value, json.FormatNilSliceAsNull(true), json.FormatNilMapAsNull(true),
		json.Deterministic(true), jsonv1.FormatDurationAsNano(true),
		json.WithMarshalers(json.MarshalToFunc(writeNumber)))
}

// Decode reads into a pointer what Encode wrote.
func Decode(text []byte, value any) error {
	return json.Unmarshal(text, value, json.RejectUnknownMembers(true), jsonv1.FormatDurationAsNano(true),
		json.WithUnmarshalers(json.UnmarshalFromFunc(readNumber)))
}

// writeNumber writes what is no number, or infinite, as a string.
func writeNumber(to *jsontext.Encoder, value any) error {
	v := reflect.ValueOf(value)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() == reflect.Float64 && (math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0)) {
		return to.WriteToken(jsontext.String(strconv.FormatFloat(v.Float(), 'g', -1, 64)))
	}
	return errors.ErrUnsupported
}

func readNumber(from *jsontext.Decoder, value any) error {
	v := reflect.ValueOf(value)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Float64 || from.PeekKind() != '"' {
		return errors.ErrUnsupported
	}
	text, err := from.ReadToken()
	if err != nil {
		return err
	}
	x, err := strconv.ParseFloat(text.String(), 64)
	if err != nil {
		return err
	}
	v.Elem().SetFloat(x)
	return nil
}

// checkExported refuses types of which something would be left out.
func checkExported(t reflect.Type, seen map[reflect.Type]bool) error {
	if t == nil || seen[t] {
		return nil
	}
	seen[t] = true
	if t.Kind() != reflect.Struct {
		if slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map}, t.Kind()) {
			return checkExported(t.Elem(), seen)
		}
		return nil
	}
	for field := range t.Fields() {
		if !field.IsExported() {
			return fmt.Errorf("%v.%s isn't exported, and would be lost", t, field.Name)
		}
		if err := checkExported(field.Type, seen); err != nil {
			return err
		}
	}
	return nil
}
