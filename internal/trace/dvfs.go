package trace

import (
	"fmt"
	"io"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/textfile"
	"github.com/epplan/epplan/queue"
)

// The columns of a table of measurements, in any order. Those of clocks and the cap may be missing,
// and energy_j does for power.
const (
	appColumn = iota
	coreColumn
	memColumn
	capColumn
	timeColumn
	powerColumn
	energyColumn
)

var dvfsColumns = []textfile.Column{
	appColumn: {
		Name: "app", Further: map[string]float64{"workload": 1}, Required: true,
		Aliases: []string{"application", "appname", "benchmark", "bench", "kernel", "kernelname", "program"},
	},
	coreColumn: {
		Name: "core_mhz", Quantity: textfile.Clock, Bare: true,
		Aliases: []string{
			"coreclock", "corefrequency", "corefreq", "gpuclock", "smclock", "smfrequency", "graphicsclock",
			"clockssm", "clocksgraphics", "clocksgr", "clockscurrentsm",
			"clockscurrentgraphics", "clocksapplicationsgraphics",
		},
		Ask: []string{"core", "sm", "graphics", "gpu"},
	},
	memColumn: {
		Name: "mem_mhz", Quantity: textfile.Clock, Bare: true,
		Aliases: []string{
			"memclock", "memfrequency", "memfreq", "memoryclock", "memoryfrequency",
			"clocksmem", "clocksmemory", "clockscurrentmemory", "clocksapplicationsmemory",
		},
		Ask: []string{"mem", "memory"},
	},
	capColumn: {
		Name: "cap_w", Quantity: textfile.Power, Bare: true,
		Aliases: []string{"cap", "powercap", "powerlimit"},
	},
	timeColumn: {
		Name: "time_s", Further: map[string]float64{"time_ms": 1e-3, "epoch_s": 1}, Quantity: textfile.Time,
		Aliases: []string{
			"time", "runtime", "duration", "elapsed", "elapsedtime", "exectime", "executiontime", "kerneltime",
			"epoch", "epochtime", "meantime", "avgtime",
		},
	},
	powerColumn: {
		Name: "power_w", Further: map[string]float64{"mean_power_w": 1}, Quantity: textfile.Power, Bare: true,
		Aliases: []string{
			"power", "meanpower", "avgpower", "averagepower", "gpupower", "powerdraw", "powerdrawaverage",
		},
	},
	energyColumn: {
		Name: "energy_j", Quantity: textfile.Energy,
		Aliases: []string{"energy", "totalenergy", "gpuenergy", "meanenergy", "avgenergy"},
	},
}

// CheckMeasurement says what is wrong with a column of measurements that a name of a file is to
// stand for; it may have a unit: time_s[min].
func CheckMeasurement(target string) error { return textfile.CheckTarget(dvfsColumns, target) }

// Measurements are what was measured of applications.
type Measurements struct {
	Apps     []dvfsmodel.AppSamples // in the order of their first line
	warnings []error
}

// Warnings say what was passed over, and which numbers may be meant otherwise.
func (m *Measurements) Warnings() []error { return m.warnings }

// ReadDVFS is [ReadMeasurements] of a file of which nothing more is known.
func ReadDVFS(r io.Reader, name string) ([]dvfsmodel.AppSamples, error) {
	m, err := ReadMeasurements(r, name, nil)
	if err != nil {
		return nil, err
	}
	return m.Apps, nil
}

// ReadMeasurements reads a table of measured settings with the columns app, core_mhz, mem_mhz, cap_w,
// time_ms and power_w in any order: a line for each application and setting. Clocks and caps may be
// missing or empty: 0, nothing was set. Other names are workload; time_s and epoch_s; mean_power_w, and
// energy_j where there is no power; and names as people write them, with a unit. Times are in seconds.
// The name stands for the input in errors; every one is a [queue.SyntaxError]
// but those of the reader itself.
func ReadMeasurements(r io.Reader, name string, o *textfile.Options) (*Measurements, error) {
	if o == nil {
		o = &textfile.Options{}
	}
	rows := textfile.NewRows(textfile.Open(r, name, textfile.OnlyText), name)
	table, err := textfile.NewTable(rows, o.Header, "the names of columns")
	if err != nil {
		return nil, err
	}
	d := &dvfsTable{Table: table}
	m := &Measurements{}
	var passed *textfile.PassedOverError
	if d.at, passed, err = d.Arrange(dvfsColumns, o); err != nil {
		return nil, err
	}
	if passed != nil {
		m.warnings = append(m.warnings, passed)
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	type setting struct {
		app string
		at  dvfsmodel.Setting
	}
	places, lines := make(map[string]int), make(map[setting]int)
	err = d.Each(func() error {
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
			return d.errorAt(-1, "%.80s at %s was measured on line %d already", app, at, line)
		}
		lines[key] = d.Line()
		i, known := places[app]
		if !known {
			i = len(m.Apps)
			places[app] = i
			m.Apps = append(m.Apps, dvfsmodel.AppSamples{App: app})
		}
		m.Apps[i].Samples = append(m.Apps[i].Samples, s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(m.Apps) == 0 {
		return nil, d.errorAt(-1, "no measurements, want a header line and at least one more")
	}
	if doubt := d.Doubt(); doubt != nil {
		m.warnings = append(m.warnings, doubt)
	}
	return m, nil
}

// dvfsTable is a table whose columns are known, as dvfsColumns has them.
type dvfsTable struct {
	*textfile.Table
	at []textfile.Found
}

// errorAt returns an error at a field of the current record; -1 is the whole record.
func (d *dvfsTable) errorAt(column int, format string, args ...any) error {
	at := d.CellAt(column)
	if column < 0 {
		at.Column = 0
	}
	return &queue.SyntaxError{Pos: at, Msg: fmt.Sprintf(format, args...)}
}

// check sees to it that a table has times and powers.
func (d *dvfsTable) check() error {
	const want = "app, core_mhz, mem_mhz, cap_w, time_ms (time_s, epoch_s), power_w (mean_power_w, energy_j)"
	switch {
	case d.at[timeColumn].At < 0:
		return d.errorAt(-1, "no column of times, want %s", want)
	case d.at[powerColumn].At < 0 && d.at[energyColumn].At < 0:
		return d.errorAt(-1, "no column of power, want %s", want)
	}
	return nil
}

// sample returns the current record.
func (d *dvfsTable) sample() (app string, s dvfsmodel.Sample, err error) {
	if app = d.Cell(d.at[appColumn].At); app == "" {
		return "", s, d.errorAt(d.at[appColumn].At, "no application name")
	}
	var value [energyColumn + 1]float64
	for c := coreColumn; c <= energyColumn; c++ {
		at := d.at[c].At
		isSetting := c < timeColumn
		if at < 0 || isSetting && d.Cell(at) == "" || c == energyColumn && d.at[powerColumn].At >= 0 {
			continue
		}
		if value[c], err = d.measured(c); err != nil {
			return "", s, err
		}
	}
	s = dvfsmodel.Sample{
		Core: dvfsmodel.MHz(value[coreColumn]), Mem: dvfsmodel.MHz(value[memColumn]),
		Cap: dvfsmodel.Watt(value[capColumn]), Time: value[timeColumn], Power: dvfsmodel.Watt(value[powerColumn]),
	}
	if d.at[powerColumn].At < 0 {
		s.Power = dvfsmodel.Watt(value[energyColumn] / s.Time)
	}
	return app, s, nil
}

// measured returns a number of the current record in the unit of its quantity.
func (d *dvfsTable) measured(c int) (float64, error) {
	const least, most = 1e-12, 1e12 // products and squares stay finite
	at := d.at[c]
	text, err := d.Number(at.At)
	if err != nil {
		return 0, err
	}
	value, ok := dvfsColumns[c].Quantity.Parse(text, at.Factor)
	if ok && value < 0 && dvfsColumns[c].Quantity == textfile.Clock {
		return 0, d.errorAt(at.At, "%s is %.40q, want the clock itself and no offset from another",
			d.Header[at.At], text)
	}
	if !ok || !(value >= least && value <= most) {
		return 0, d.errorAt(at.At, "%s is %.40q, want a number from %v to %v", d.Header[at.At], text, least,
			most)
	}
	return value, nil
}
