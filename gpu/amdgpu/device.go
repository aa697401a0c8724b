package amdgpu

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
)

// Device is one GPU behind the amdgpu driver.
type Device struct {
	library *Library
	id      gpu.Identity
	files   files
	sensors sensors

	ranged  bool           // clocks have a lowest and a highest limit, else a choice of levels
	counts  bool           // it has an energy counter
	bounds  gpu.PowerRange // of the power limit
	cantSet [gpu.NumControls]atomic.Bool

	mu     sync.Mutex
	clocks *gpu.Clocks // nil: not asked yet
}

var _ gpu.Device = (*Device)(nil)

// detectCapability finds out what the GPU can do without changing it. An error that may pass is one:
// what seems to be missing then may be set, and has to be given back.
func (d *Device) detectCapability() error {
	for c := range gpu.NumControls {
		d.cantSet[c].Store(true)
	}
	if m, err := d.files.metrics(); err == nil {
		d.counts = !math.IsNaN(float64(m.energy))
	}
	var err error
	if d.bounds, err = d.sensors.powerBounds(); err != nil && !d.isLasting(err) {
		return err
	}
	d.cantSet[gpu.PowerLimit].Store(d.bounds.Max == 0)
	if !d.files.isWritable(levelFile) {
		return nil // a part of a GPU, in a virtual machine
	}
	limits, err := d.files.limits()
	if err != nil && !d.isLasting(err) {
		return err
	}
	d.ranged = limits.core.Hi > limits.core.Lo && d.files.isWritable(limitsFile)
	cores, err := d.files.levels(coreFile)
	if err != nil && !d.isLasting(err) {
		return err
	}
	mems, err := d.files.levels(memFile)
	if err != nil && !d.isLasting(err) {
		return err
	}
	d.cantSet[gpu.CoreClock].Store(!d.ranged && (len(cores) < 2 || !d.files.isWritable(coreFile)))
	hasLimit := !d.ranged || limits.mem.Hi > 0
	d.cantSet[gpu.MemClock].Store(!hasLimit || len(mems) < 2 || !d.files.isWritable(memFile))
	return nil
}

// isLasting reports whether an error will be there when the GPU is opened the next time, too: there is no
// such file, or something unknown is in it.
func (d *Device) isLasting(err error) bool {
	return errors.Is(err, errText) || errors.Is(d.classify(err), gpu.ErrNotSupported)
}

// Identity returns what the kernel said when the device was opened.
func (d *Device) Identity() gpu.Identity { return d.id }

// Capability is by the kernel's files, less what it refused since.
func (d *Device) Capability() gpu.Capability {
	can := gpu.Capability{Energy: d.counts, Limits: d.bounds}
	for c := range gpu.NumControls {
		if !d.cantSet[c].Load() {
			can.Controls |= gpu.ControlsOf(c)
		}
	}
	return can
}

// PowerLimit returns the power cap. The second die of an MI250X has none of its own.
func (d *Device) PowerLimit() (dvfsmodel.Watt, error) {
	watts, err := d.sensors.read("power1_cap")
	if err == nil && !(watts > 0) {
		err = fmt.Errorf("power1_cap is %v: %w", watts, gpu.ErrNotSupported)
	}
	if err != nil {
		return 0, d.fault(gpu.OpPowerLimit, err)
	}
	return dvfsmodel.Watt(watts), nil
}

// metrics reads the GPU's table.
func (f files) metrics() (metrics, error) {
	table, err := f.sys.ReadFile(filepath.Join(f.base, "gpu_metrics"))
	if err != nil {
		return metrics{}, err
	}
	return parseMetrics(table)
}

// Read asks for one value after the other, as that of NVML does: a value that can't be
// had is missing in the reading. Clocks are those of the table of metrics, which has all
// parts of a GPU, else those of the sensors.
func (d *Device) Read() (gpu.Reading, error) {
	nan := math.NaN()
	r := gpu.Reading{
		At: d.library.now(), Power: dvfsmodel.Watt(nan), Energy: dvfsmodel.Joule(nan),
		Core: dvfsmodel.MHz(nan), Mem: dvfsmodel.MHz(nan), Utilisation: nan, MemUsed: -1,
		Limit: dvfsmodel.Watt(nan),
	}
	var first error
	got := 0
	note := func(err error) bool {
		if err == nil {
			got++
			return true
		}
		first = errors.Join(first, d.classify(err))
		return false
	}
	if m, err := d.files.metrics(); note(err) {
		r.Power, r.Energy, r.Core, r.Mem = m.power, m.energy, m.core, m.mem
		r.Utilisation, r.Throttle = m.utilisation, m.throttle
	}
	if !d.counts { // one that was 0 may count nevertheless: a GPU has a counter or not
		r.Energy = dvfsmodel.Joule(nan)
	}
	for _, name := range []string{"power1_input", "power1_average"} { // the better one last
		if watts, err := d.sensors.read(name); err == nil {
			got++
			r.Power = dvfsmodel.Watt(watts)
		} else if !isMissing(d.classify(err)) {
			note(err)
		}
	}
	if math.IsNaN(float64(r.Core)) {
		if f, err := d.sensors.read("freq1_input"); note(err) {
			r.Core = dvfsmodel.MHz(f)
		}
	}
	if math.IsNaN(float64(r.Mem)) {
		if f, err := d.sensors.read("freq2_input"); note(err) {
			r.Mem = dvfsmodel.MHz(f)
		}
	}
	if percent, err := d.files.number("gpu_busy_percent"); note(err) {
		r.Utilisation = math.Min(percent/100, 1)
	}
	if watts, err := d.sensors.read("power1_cap"); note(err) && watts > 0 {
		r.Limit = dvfsmodel.Watt(watts)
	}
	if used, err := d.files.number("mem_info_vram_used"); note(err) {
		r.MemUsed = int64(used)
	}
	if total, err := d.files.number("mem_info_vram_total"); note(err) {
		r.MemTotal = int64(total)
	}
	if err := d.fault(gpu.OpRead, first); err != nil &&
		(got == 0 || errors.Is(err, gpu.ErrLost) || errors.Is(err, gpu.ErrReloaded)) {
		return gpu.Reading{}, err
	}
	return r, nil
}

// isMissing reports whether an error is that there is no such file.
func isMissing(err error) bool { return errors.Is(err, gpu.ErrNotSupported) }

// kfd is where the driver's computing part tells of processes.
const kfd = "class/kfd/kfd"

// Processes returns those that compute with memory on the GPU, by pid. The kernel tells it
// by a number of its own, which stands in the node of the GPU's device file.
func (d *Device) Processes() ([]int, error) {
	number, err := d.library.kfdNumber(d.id.Minor)
	if err != nil {
		return nil, d.fault(gpu.OpProcesses, err)
	}
	if number == "" {
		return nil, nil // it doesn't compute
	}
	names, err := d.library.sys.Names(kfd + "/proc")
	if err != nil {
		return nil, d.fault(gpu.OpProcesses, err)
	}
	var pids []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		used, err := d.library.sys.ReadFile(filepath.Join(kfd, "proc", name, "vram_"+number))
		if err != nil {
			continue // it has ended, or doesn't use this GPU
		}
		if n, err := strconv.ParseUint(string(trim(used)), 10, 64); err == nil && n > 0 {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids, nil
}

// kfdNumber returns the number by which the driver's computing part knows the GPU; "" where it doesn't.
func (l *Library) kfdNumber(minor int) (string, error) {
	nodes := kfd + "/topology/nodes"
	names, err := l.sys.Names(nodes)
	if err != nil {
		return "", fmt.Errorf("no %s: %w", nodes, gpu.ErrNotSupported)
	}
	want := "drm_render_minor " + strconv.Itoa(minor)
	for _, name := range names {
		properties, err := l.sys.ReadFile(filepath.Join(nodes, name, "properties"))
		if err != nil || !slices.Contains(lines(properties), want) {
			continue
		}
		number, err := l.sys.ReadFile(filepath.Join(nodes, name, "gpu_id"))
		return string(trim(number)), err
	}
	return "", nil
}

// Sharing tells the division of a GPU into parts that compute by themselves (CPX, DPX and
// the like), which have no clocks of their own.
func (d *Device) Sharing() (gpu.Sharing, error) {
	mode, err := d.files.text("current_compute_partition")
	if err != nil {
		if err = d.classify(err); isMissing(err) {
			return gpu.Sharing{}, nil // it can't be divided
		}
		return gpu.Sharing{}, d.fault(gpu.OpSharing, err)
	}
	return gpu.Sharing{MIG: mode != "SPX"}, nil
}
