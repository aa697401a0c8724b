package sharing

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// curveFile is a curve as its file has it, with the fit's figures, which are passed over.
type curveFile struct {
	Exponent *float64 `json:"exponent"`
	ByTask   *float64 `json:"by_task"`
	ByMemory *float64 `json:"by_memory"`
	Samples  *float64 `json:"samples"`
	Outliers *float64 `json:"outliers"`
	Residual *float64 `json:"residual"`
}

// maxCurveFile is how long a curve's file may be.
const maxCurveFile = 1 << 20

// ReadCurve reads a curve of contention from a JSON object with exponent, by_task and
// by_memory. The name stands for the file in errors.
func ReadCurve(r io.Reader, file string) (*Curve, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxCurveFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(data) > maxCurveFile {
		return nil, fmt.Errorf("%s: is longer than %d MiB, want a curve of contention", file,
			maxCurveFile>>20)
	}
	var f curveFile
	if err := json.Unmarshal(data, &f, json.RejectUnknownMembers(true)); err != nil {
		return nil, curveError(data, file, err)
	}
	c := &Curve{}
	read := [...]*float64{f.Exponent, f.ByTask, f.ByMemory}
	for i, p := range c.Parameters() {
		if read[i] == nil {
			return nil, fmt.Errorf("%s: no %s, want the curve's three parameters", file, p.Name)
		}
		*p.Value = *read[i]
		if err := p.Validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return c, nil
}

// curveError says where in the file an error of the JSON's reader is.
func curveError(data []byte, file string, err error) error {
	at := func(offset int64) string { // offsets may be of the end of the token before
		rest := bytes.TrimLeft(data[min(max(offset, 0), int64(len(data))):], " \t\r\n")
		return fmt.Sprintf("%s:%d", file, 1+bytes.Count(data[:len(data)-len(rest)], []byte("\n")))
	}
	if errors.Is(err, json.ErrUnknownName) {
		return fmt.Errorf("%s: a field that no curve of contention has, want exponent, by_task and by_memory", file)
	}
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		name, want := strings.TrimPrefix(string(semantic.JSONPointer), "/"), "a number"
		if name == "" {
			name, want = "the curve", "an object"
		}
		kind := map[jsontext.Kind]string{'[': "a list", '{': "an object", '"': "a text", '0': "a number"}
		got := cmp.Or(string(semantic.JSONValue), kind[semantic.JSONKind], semantic.JSONKind.String())
		return fmt.Errorf("%s: %s is %.40s, want %s", at(semantic.ByteOffset), name, got, want)
	}
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Errorf("%s: %w, want JSON", at(syntactic.ByteOffset), syntactic.Err)
	}
	return fmt.Errorf("%s: %w", file, err)
}
