package jsonfile

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"github.com/epplan/epplan/planner/sharing"
)

// curveFile is a curve as its file has it, with what it was fitted to.
type curveFile struct {
	Exponent *jsonNumber `json:"exponent"`
	ByTask   *jsonNumber `json:"by_task"`
	ByMemory *jsonNumber `json:"by_memory"`
	Samples  *jsonNumber `json:"samples"`
	Outliers *jsonNumber `json:"outliers"`
	Residual *jsonNumber `json:"residual"`
}

// maxCurveFile is how long a curve's file may be.
const maxCurveFile = 1 << 20

// ReadCurve reads a curve of contention as a JSON object with exponent, by_task
// and by_memory; file is its name for messages. What
// it says of the fit is passed over. An error says what was expected.
func ReadCurve(r io.Reader, file string) (*sharing.Curve, error) {
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
		if errors.Is(err, json.ErrUnknownName) {
			return nil, fmt.Errorf("%s: a field that no curve of contention has, want exponent, by_task "+
				"and by_memory", file)
		}
		return nil, locateError(data, file, err)
	}
	c := &sharing.Curve{}
	read := [...]*jsonNumber{f.Exponent, f.ByTask, f.ByMemory}
	for i, p := range c.Parameters() {
		if read[i] == nil {
			return nil, fmt.Errorf("%s: no %s, want the curve's three parameters", file, p.Name)
		}
		*p.Value = float64(*read[i])
		if err := p.Validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return c, nil
}
