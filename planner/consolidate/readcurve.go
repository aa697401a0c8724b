package consolidate

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/go-json-experiment/json"
)

// curveFile is a curve as its file has it, with what it was fitted to.
type curveFile struct {
	Exponent *number `json:"exponent"`
	ByTask   *number `json:"by_task"`
	ByMemory *number `json:"by_memory"`
	Samples  *number `json:"samples"`
	Outliers *number `json:"outliers"`
	Residual *number `json:"residual"`
}

// maxCurveFile is how long a curve's file may be.
const maxCurveFile = 1 << 20

// ReadCurve reads a curve of contention as a JSON object with exponent (1 or
// more), by_task and by_memory (0 or more); file is its name for messages. What
// it says of the fit is passed over. An error says what was expected.
func ReadCurve(r io.Reader, file string) (*Curve, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxCurveFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(data) > maxCurveFile {
		return nil, fmt.Errorf("%s: is longer than %d MiB, want a curve of contention", file, maxCurveFile>>20)
	}
	var f curveFile
	if err := json.Unmarshal(data, &f, json.RejectUnknownMembers(true)); err != nil {
		if errors.Is(err, json.ErrUnknownName) {
			return nil, fmt.Errorf("%s: a field that no curve of contention has, want exponent, by_task and by_memory", file)
		}
		return nil, located(data, file, err)
	}
	c := &Curve{}
	for _, p := range []struct {
		name  string
		value *number
		to    *float64
		least float64
	}{
		{"exponent", f.Exponent, &c.Exponent, 1},
		{"by_task", f.ByTask, &c.ByTask, 0},
		{"by_memory", f.ByMemory, &c.ByMemory, 0},
	} {
		switch {
		case p.value == nil:
			return nil, fmt.Errorf("%s: no %s, want the curve's three parameters", file, p.name)
		case !(float64(*p.value) >= p.least) || math.IsInf(float64(*p.value), 0):
			return nil, fmt.Errorf("%s: %s is %g, want a finite number of %g or more", file, p.name, *p.value, p.least)
		}
		*p.to = float64(*p.value)
	}
	return c, nil
}
