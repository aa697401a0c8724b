package gpuexec

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/gpu"
)

// Device is one GPU behind commands.
type Device struct {
	library *Library
	id      gpu.Identity
	index   string         // in the list
	bounds  gpu.PowerRange // of the power limit; zero: it can't be set

	mu     sync.Mutex
	clocks *gpu.Clocks // nil: not asked yet
}

var _ gpu.Device = (*Device)(nil)

// Identity is what the list said when the device was opened.
func (d *Device) Identity() gpu.Identity { return d.id }

// setting is the commands of a control; nil where there are none.
func (l *Library) setting(c gpu.Control) *config.GPUSetting {
	var s *config.GPUSetting
	switch c {
	case gpu.CoreClock:
		s = &l.commands.Core
	case gpu.MemClock:
		s = &l.commands.Memory
	case gpu.PowerLimit:
		s = &l.commands.Limit
	default:
		return nil
	}
	if len(s.Set) == 0 {
		return nil
	}
	return s
}

// setting is the commands of a control of this GPU; nil where there are none.
func (d *Device) setting(c gpu.Control) *config.GPUSetting {
	if c == gpu.PowerLimit && d.bounds.Max == 0 {
		return nil
	}
	return d.library.setting(c)
}

// findBounds looks for what the power limit can be: in what is read, else in what is known of the model.
func (d *Device) findBounds() error {
	if d.library.setting(gpu.PowerLimit) == nil {
		return nil
	}
	if slices.Contains(d.library.commands.Read.Columns, "limit_max_w") {
		r, err := d.readRow()
		if err != nil {
			return err
		}
		low, err := r.number("limit_min_w")
		high, second := r.number("limit_max_w")
		if low > 0 && high >= low {
			d.bounds = gpu.PowerRange{Min: dvfsmodel.Watt(low), Max: dvfsmodel.Watt(high)}
		}
		return errors.Join(err, second)
	}
	if p, err := d.library.profiles.Lookup(d.id.Model); err == nil && p.PowerLimit.Min > 0 {
		d.bounds = gpu.PowerRange{Min: p.PowerLimit.Min, Max: p.PowerLimit.Max}
	}
	return nil
}

// Capability is that for which there are commands.
func (d *Device) Capability() gpu.Capability {
	can := gpu.Capability{Limits: d.bounds}
	for c := range gpu.NumControls {
		if d.setting(c) != nil {
			can.Controls |= gpu.ControlsOf(c)
		}
	}
	can.Energy = slices.ContainsFunc(d.library.commands.Read.Columns, func(column string) bool {
		return strings.HasPrefix(column, "energy_")
	})
	return can
}

// values are what the words of a command may name.
func (d *Device) values() map[string]string {
	return map[string]string{"index": d.index, "uuid": d.id.UUID, "bus": d.id.Bus}
}

func (d *Device) fault(op gpu.Op, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("GPU %s: %v: %w", d.id.Bus, op, err)
}

// Clocks is what the commands list, else what is known of the model. It is asked for once.
func (d *Device) Clocks() (gpu.Clocks, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.clocks == nil {
		pairs, err := d.pairs()
		if err != nil {
			return gpu.Clocks{}, d.fault(gpu.OpClocks, err)
		}
		table := gpu.ClocksOf(pairs)
		d.clocks = &table
	}
	return d.clocks.Clone(), nil
}

func (d *Device) pairs() ([]dvfsmodel.Setting, error) {
	if len(d.library.commands.Clocks.Command) == 0 {
		p, err := d.library.profiles.Lookup(d.id.Model)
		if err != nil {
			return nil, fmt.Errorf("no command lists its clocks: %w: %w", err, gpu.ErrNotSupported)
		}
		if pairs := p.Pairs(); len(pairs) > 0 {
			return pairs, nil
		}
		return nil, fmt.Errorf("no command lists its clocks, and GPU model %s has none: %w", p.Name,
			gpu.ErrNotSupported)
	}
	rows, err := d.library.table(&d.library.commands.Clocks, d.values())
	if err != nil {
		return nil, err
	}
	var pairs []dvfsmodel.Setting
	for i := range rows {
		core, err := rows[i].number("core_mhz")
		mem, second := rows[i].number("memory_mhz")
		if err := errors.Join(err, second); err != nil {
			return nil, err
		}
		if !(core > 0) || !(mem > 0) {
			return nil, rows[i].fault("core_mhz", "want clocks above 0")
		}
		pairs = append(pairs, dvfsmodel.Setting{Core: dvfsmodel.MHz(core), Mem: dvfsmodel.MHz(mem)})
	}
	if len(pairs) == 0 {
		return nil, fmt.Errorf("no clocks listed: %w", gpu.ErrNotSupported)
	}
	return pairs, nil
}

// Set runs the command of a control, with a value of the table of clocks or within the bounds of
// the power limit.
func (d *Device) Set(c gpu.Control, v gpu.Value) error { return d.set(c, v, false) }

// Fix runs the same command with the clock as the lowest one, too.
func (d *Device) Fix(c gpu.Control, v gpu.Value) error { return d.set(c, v, true) }

func (d *Device) set(c gpu.Control, v gpu.Value, fixed bool) error {
	s := d.setting(c)
	if s == nil {
		return d.fault(gpu.OpSet, fmt.Errorf("%v: %w", c, gpu.ErrNotSupported))
	}
	if err := c.CheckBounds(d.Capability(), v); err != nil {
		return fmt.Errorf("GPU %s: %w", d.id.Bus, err)
	}
	values := d.values()
	if c == gpu.PowerLimit {
		values["watts"] = numberText(float64(v))
	} else if err := d.addClock(values, c, v); err != nil {
		return err
	}
	if fixed {
		values["lowest_mhz"] = values["mhz"]
	}
	_, err := d.library.run(s.Set, values)
	return d.fault(gpu.OpSet, err)
}

// addClock adds what a command that sets a clock may name.
func (d *Device) addClock(values map[string]string, c gpu.Control, v gpu.Value) error {
	table, err := d.Clocks()
	if err != nil {
		return err
	}
	f := dvfsmodel.MHz(v)
	known := c == gpu.MemClock && slices.Contains(table.Mem, f)
	for _, cores := range table.Core {
		known = known || c == gpu.CoreClock && slices.Contains(cores, f)
	}
	if !known {
		return fmt.Errorf("GPU %s: lock %v at %v %s: not in its table of clocks", d.id.Bus, c, float64(v),
			c.Unit())
	}
	values["mhz"], values["lowest_mhz"] = numberText(float64(f)), numberText(float64(table.LowestCore()))
	return nil
}

func numberText(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// Release runs the command that gives a control back.
func (d *Device) Release(c gpu.Control) error {
	s := d.setting(c)
	if s == nil {
		return d.fault(gpu.OpRelease, fmt.Errorf("%v: %w", c, gpu.ErrNotSupported))
	}
	_, err := d.library.run(s.Release, d.values())
	return d.fault(gpu.OpRelease, err)
}

// readRow is what the command prints of this GPU.
func (d *Device) readRow() (*row, error) {
	rows, err := d.library.table(&d.library.commands.Read, d.values())
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 {
		return nil, fmt.Errorf("%s printed %d lines, want one for one GPU", d.library.commands.Read.Command[0],
			len(rows))
	}
	if uuid, ok := rows[0].cells["uuid"]; ok && uuid != d.id.UUID {
		return nil, rows[0].fault("uuid", "want "+d.id.UUID)
	}
	return &rows[0], nil
}

// PowerLimit is a column of what is read.
func (d *Device) PowerLimit() (dvfsmodel.Watt, error) {
	r, err := d.readRow()
	if err != nil {
		return 0, d.fault(gpu.OpPowerLimit, err)
	}
	watts, err := r.number("limit_w")
	if err == nil && !(watts > 0) {
		err = gpu.ErrNotSupported
	}
	if err != nil {
		return 0, d.fault(gpu.OpPowerLimit, err)
	}
	return dvfsmodel.Watt(watts), nil
}

// Read runs the command that reads. A column that says nothing is missing in the reading; one that says
// something else than a number makes the whole line none.
func (d *Device) Read() (gpu.Reading, error) {
	r, err := d.readRow()
	if err != nil {
		return gpu.Reading{}, d.fault(gpu.OpRead, err)
	}
	values := make(map[string]float64)
	for _, column := range []string{
		"power_w", "energy_j", "energy_mj", "energy_uj", "core_mhz", "memory_mhz", "utilisation_percent",
		"memory_used_mib", "memory_total_mib", "limit_w",
	} {
		n, err := r.number(column)
		if err != nil {
			return gpu.Reading{}, d.fault(gpu.OpRead, err)
		}
		values[column] = n
	}
	reading := gpu.Reading{
		At: d.library.now(), Power: dvfsmodel.Watt(values["power_w"]), Energy: dvfsmodel.Joule(math.NaN()),
		Core: dvfsmodel.MHz(values["core_mhz"]), Mem: dvfsmodel.MHz(values["memory_mhz"]),
		Utilisation: values["utilisation_percent"] / 100, MemUsed: -1,
		Limit: dvfsmodel.Watt(values["limit_w"]),
	}
	if reading.Utilisation > 1 {
		return gpu.Reading{}, d.fault(gpu.OpRead, r.fault("utilisation_percent", "want 0 to 100"))
	}
	for column, part := range map[string]float64{"energy_j": 1, "energy_mj": 1e3, "energy_uj": 1e6} {
		if n := values[column]; !math.IsNaN(n) {
			reading.Energy = dvfsmodel.Joule(n / part)
		}
	}
	const mib = 1 << 20
	if used := values["memory_used_mib"]; used < math.MaxInt64/mib {
		reading.MemUsed = int64(used * mib)
	}
	if total := values["memory_total_mib"]; total < math.MaxInt64/mib {
		reading.MemTotal = int64(total * mib)
	}
	return reading, nil
}

// Processes are those that the commands list; not supported without one.
func (d *Device) Processes() ([]int, error) {
	t := &d.library.commands.Processes
	if len(t.Command) == 0 {
		return nil, d.fault(gpu.OpProcesses, gpu.ErrNotSupported)
	}
	rows, err := d.library.table(t, d.values())
	if err != nil {
		return nil, d.fault(gpu.OpProcesses, err)
	}
	var pids []int
	for i := range rows {
		if uuid, ok := rows[i].cells["uuid"]; ok && uuid != d.id.UUID {
			continue
		}
		pid, err := strconv.Atoi(rows[i].cells["pid"])
		if err != nil || pid <= 0 {
			return nil, d.fault(gpu.OpProcesses, rows[i].fault("pid", "want a process"))
		}
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

// Sharing is a column of what is read. MPS isn't told.
func (d *Device) Sharing() (gpu.Sharing, error) {
	if !slices.Contains(d.library.commands.Read.Columns, "mig") {
		return gpu.Sharing{}, nil
	}
	r, err := d.readRow()
	if err != nil {
		return gpu.Sharing{}, d.fault(gpu.OpSharing, err)
	}
	switch cell := strings.ToLower(r.cells["mig"]); {
	case cell == "enabled":
		return gpu.Sharing{MIG: true}, nil
	case cell == "disabled", isMissing(cell):
		return gpu.Sharing{}, nil
	}
	return gpu.Sharing{}, d.fault(gpu.OpSharing, r.fault("mig", "want Enabled, Disabled or N/A"))
}
