package trace

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
)

// maxLine is the longest line of a table, in bytes.
const maxLine = 1 << 20

// dvfsColumns are the columns of a table, in any order.
var dvfsColumns = []string{"app", "core_mhz", "mem_mhz", "time_ms", "power_w"}

// PositionError is a bad record: where it is and what was expected there.
type PositionError struct {
	File   string
	Line   int // from 1
	Column int // field from 1; 0 for the whole line
	Err    error
}

// Error is file:line: or file:line:column: and the cause.
func (e *PositionError) Error() string {
	if e.Column == 0 {
		return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
	}
	return fmt.Sprintf("%s:%d:%d: %v", e.File, e.Line, e.Column, e.Err)
}

// Unwrap returns the cause.
func (e *PositionError) Unwrap() error { return e.Err }

// ErrLineTooLong is the cause of a [PositionError] for a line above 1 MiB.
var ErrLineTooLong = errors.New("line is longer than 1 MiB")

// ReadDVFS reads a table of measured settings: CSV with a header naming the columns
// app, core_mhz, mem_mhz, time_ms and power_w in any order, then a line for each
// application and setting. Applications come back in the order of their first line,
// times in seconds. The name stands for the input in errors; every one is a
// [PositionError] but those of the reader itself.
func ReadDVFS(r io.Reader, name string) ([]dvfsmodel.AppSamples, error) {
	t, err := openTable(r, name)
	if err != nil {
		return nil, err
	}
	for i, column := range t.columns {
		if !slices.Contains(dvfsColumns, column) {
			return nil, t.errorAt(i, "unknown column %.40q, want %s", column, strings.Join(dvfsColumns, ", "))
		}
	}
	at, err := t.requireColumns(dvfsColumns...)
	if err != nil {
		return nil, err
	}
	type setting struct {
		app string
		at  dvfsmodel.Setting
	}
	var apps []dvfsmodel.AppSamples
	places, lines := make(map[string]int), make(map[setting]int)
	err = t.each("no measurements, want a header line and at least one more", func() error {
		app := t.internedText(at[0])
		if app == "" {
			return t.errorAt(at[0], "no application name")
		}
		var value [4]float64
		for i := range value {
			const least = 1e-12 // products and squares stay finite
			var err error
			if value[i], err = t.number(at[1+i], least); err != nil {
				return err
			}
		}
		s := dvfsmodel.Sample{
			Core: dvfsmodel.MHz(value[0]), Mem: dvfsmodel.MHz(value[1]),
			Time: secondsFromMillis(value[2]), Power: dvfsmodel.Watt(value[3]),
		}
		key := setting{app, dvfsmodel.Setting{Core: s.Core, Mem: s.Mem}}
		if line, twice := lines[key]; twice {
			return t.errorAt(-1, "%.80s at %g/%g MHz was measured on line %d already", app, value[0], value[1],
				line)
		}
		lines[key] = t.line
		i, known := places[app]
		if !known {
			i = len(apps)
			places[app] = i
			apps = append(apps, dvfsmodel.AppSamples{App: app})
		}
		apps[i].Samples = append(apps[i].Samples, s)
		return nil
	})
	return apps, err
}

func secondsFromMillis(ms float64) float64 { return ms / 1000 }
