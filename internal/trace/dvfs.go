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

// dvfsColumn is a column of a table by its names, with what a number of it is divided by to be in
// seconds or watts.
type dvfsColumn struct {
	names []string
	unit  []float64
}

// The columns of a table, in any order. Those of clocks and the cap may be missing, and energy_j
// does for power.
var (
	appColumn   = dvfsColumn{names: []string{"app", "workload"}}
	coreColumn  = dvfsColumn{names: []string{"core_mhz"}, unit: []float64{1}}
	memColumn   = dvfsColumn{names: []string{"mem_mhz"}, unit: []float64{1}}
	capColumn   = dvfsColumn{names: []string{"cap_w"}, unit: []float64{1}}
	timeColumn  = dvfsColumn{names: []string{"time_ms", "time_s", "epoch_s"}, unit: []float64{1000, 1, 1}}
	powerColumn = dvfsColumn{names: []string{"power_w", "mean_power_w", "energy_j"}, unit: []float64{1, 1, 1}}

	dvfsColumns = []dvfsColumn{appColumn, coreColumn, memColumn, capColumn, timeColumn, powerColumn}
)

// dvfsNames lists the names of the columns.
func dvfsNames() string {
	usual, others := make([]string, 0, len(dvfsColumns)), make([]string, 0, len(dvfsColumns))
	for _, c := range dvfsColumns {
		usual, others = append(usual, c.names[0]), append(others, c.names[1:]...)
	}
	return strings.Join(usual, ", ") + " (or " + strings.Join(others, ", ") + ")"
}

// in is where a table has the column, and under which of its names; -1: it hasn't.
func (c *dvfsColumn) in(t *csvTable) (column, name int, err error) {
	column = -1
	for i, n := range c.names {
		at := t.columnOf(n)
		switch {
		case at < 0 || n == "energy_j" && column >= 0:
		case column >= 0:
			return 0, 0, t.errorAt(at, "columns %s and %s mean the same, want one of them", c.names[name], n)
		default:
			column, name = at, i
		}
	}
	return column, name, nil
}

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

// ReadDVFS reads a table of measured settings: CSV with a header naming the columns app, core_mhz,
// mem_mhz, cap_w, time_ms and power_w in any order, then a line for each application and setting.
// Clocks and caps may be missing or empty: 0, nothing was set. Other names are workload; time_s and
// epoch_s; mean_power_w, and energy_j where there is no power. Applications come back in the order
// of their first line, times in seconds. The name stands for the input in errors; every one is a
// [PositionError] but those of the reader itself.
func ReadDVFS(r io.Reader, name string) ([]dvfsmodel.AppSamples, error) {
	t, err := openTable(r, name)
	if err != nil {
		return nil, err
	}
	d, err := newDVFSTable(t)
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
		app, s, err := d.sample()
		if err != nil {
			return err
		}
		key := setting{app, s.At()}
		if line, twice := lines[key]; twice {
			at := s.At().Short()
			if s.Cap == 0 {
				at += " MHz"
			}
			return t.errorAt(-1, "%.80s at %s was measured on line %d already", app, at, line)
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

// dvfsTable is a table whose columns are known; -1: there is none.
type dvfsTable struct {
	*csvTable
	at   []int     // as in dvfsColumns
	unit []float64 // of each
	work bool      // it has energy instead of power
}

func newDVFSTable(t *csvTable) (*dvfsTable, error) {
	known := func(column string) bool {
		return slices.ContainsFunc(dvfsColumns,
			func(c dvfsColumn) bool { return slices.Contains(c.names, column) })
	}
	for i, column := range t.columns {
		if !known(column) {
			return nil, t.errorAt(i, "unknown column %.40q, want %s", column, dvfsNames())
		}
	}
	d := &dvfsTable{csvTable: t}
	for i := range dvfsColumns {
		c := &dvfsColumns[i]
		at, name, err := c.in(t)
		if err != nil {
			return nil, err
		}
		needed := c.names[0] == "app" || len(c.names) > 2
		if at < 0 && needed {
			return nil, t.errorAt(-1, "column %s is missing, want %s", c.names[0], dvfsNames())
		}
		unit := 1.0
		if c.unit != nil {
			unit = c.unit[name]
		}
		d.at, d.unit = append(d.at, at), append(d.unit, unit)
		d.work = at >= 0 && c.names[name] == "energy_j"
	}
	return d, nil
}

// sample is the current record.
func (d *dvfsTable) sample() (app string, s dvfsmodel.Sample, err error) {
	if app = d.internedText(d.at[0]); app == "" {
		return "", s, d.errorAt(d.at[0], "no application name")
	}
	var value [5]float64
	for i := range value {
		const least = 1e-12 // products and squares stay finite
		at := d.at[1+i]
		isSetting := i < 3
		if isSetting && (at < 0 || len(d.field(at)) == 0) {
			continue
		}
		if value[i], err = d.number(at, least); err != nil {
			return "", s, err
		}
		value[i] /= d.unit[1+i]
	}
	s = dvfsmodel.Sample{
		Core: dvfsmodel.MHz(value[0]), Mem: dvfsmodel.MHz(value[1]), Cap: dvfsmodel.Watt(value[2]),
		Time: value[3], Power: dvfsmodel.Watt(value[4]),
	}
	if d.work {
		s.Power /= dvfsmodel.Watt(s.Time)
	}
	return app, s, nil
}
