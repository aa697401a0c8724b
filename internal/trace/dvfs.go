package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
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

// dvfsReader reads one table.
type dvfsReader struct {
	name   string
	line   int
	column map[string]int
	apps   []dvfsmodel.AppSamples
	app    map[string]int
	first  map[settingKey]int // line of each setting
}

type settingKey struct {
	app       string
	core, mem dvfsmodel.MHz
}

// ReadDVFS reads a table of measured settings: CSV without quoting, a header
// naming the columns app, core_mhz, mem_mhz, time_ms and power_w in any order,
// then a line for each application and setting. Applications come back in the
// order of their first line, times in seconds. The name stands for the input
// in errors; every one is a [PositionError] but those of the reader itself.
func ReadDVFS(r io.Reader, name string) ([]dvfsmodel.AppSamples, error) {
	d := &dvfsReader{name: name, app: make(map[string]int), first: make(map[settingKey]int)}
	scan := bufio.NewScanner(r)
	scan.Buffer(make([]byte, 0, 64<<10), maxLine)
	for scan.Scan() {
		d.line++
		if err := d.read(scan.Text()); err != nil {
			return nil, err
		}
	}
	if err := scan.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, &PositionError{File: name, Line: d.line + 1, Err: ErrLineTooLong}
	} else if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if len(d.apps) == 0 {
		return nil, d.errorAt(0, "no measurements, want a header line and at least one more")
	}
	return d.apps, nil
}

func (d *dvfsReader) errorAt(column int, format string, args ...any) error {
	return &PositionError{
		File: d.name, Line: max(d.line, 1), Column: column, Err: fmt.Errorf(format, args...),
	}
}

func (d *dvfsReader) read(line string) error {
	line = strings.TrimSuffix(line, "\r")
	if d.line == 1 {
		return d.header(strings.Split(strings.TrimPrefix(line, "\ufeff"), ","))
	}
	if strings.TrimSpace(line) == "" {
		return nil
	}
	fields := strings.Split(line, ",")
	if len(fields) != len(d.column) {
		return d.errorAt(0, "%d fields, want %d", len(fields), len(d.column))
	}
	return d.record(fields)
}

func (d *dvfsReader) header(names []string) error {
	d.column = make(map[string]int, len(names))
	for i, name := range names {
		name = strings.TrimSpace(name)
		if !slices.Contains(dvfsColumns, name) {
			return d.errorAt(i+1, "unknown column %.40q, want %s", name, strings.Join(dvfsColumns, ", "))
		}
		if _, twice := d.column[name]; twice {
			return d.errorAt(i+1, "column %s is named twice", name)
		}
		d.column[name] = i
	}
	for _, name := range dvfsColumns {
		if _, ok := d.column[name]; !ok {
			return d.errorAt(0, "column %s is missing, want %s", name, strings.Join(dvfsColumns, ", "))
		}
	}
	return nil
}

func (d *dvfsReader) record(fields []string) error {
	app := strings.TrimSpace(fields[d.column["app"]])
	if app == "" {
		return d.errorAt(d.column["app"]+1, "no application name")
	}
	var value [4]float64
	for i, name := range dvfsColumns[1:] {
		x, err := d.positive(fields, name)
		if err != nil {
			return err
		}
		value[i] = x
	}
	s := dvfsmodel.Sample{
		Core: dvfsmodel.MHz(value[0]), Mem: dvfsmodel.MHz(value[1]),
		Time: secondsFromMillis(value[2]), Power: dvfsmodel.Watt(value[3]),
	}
	key := settingKey{app: app, core: s.Core, mem: s.Mem}
	if line, twice := d.first[key]; twice {
		return d.errorAt(0, "%.80s at %g/%g MHz was measured on line %d already", app, value[0],
			value[1], line)
	}
	d.first[key] = d.line
	i, known := d.app[app]
	if !known {
		i = len(d.apps)
		d.app[app] = i
		d.apps = append(d.apps, dvfsmodel.AppSamples{App: app})
	}
	d.apps[i].Samples = append(d.apps[i].Samples, s)
	return nil
}

// positive is a number whose products and squares stay finite.
func (d *dvfsReader) positive(fields []string, name string) (float64, error) {
	const least, most = 1e-12, 1e12
	i := d.column[name]
	text := strings.TrimSpace(fields[i])
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= least && x <= most) {
		return 0, d.errorAt(i+1, "%s is %.40q, want a number from %g to %g", name, text, least, most)
	}
	return x, nil
}

func secondsFromMillis(ms float64) float64 { return ms / 1000 }
