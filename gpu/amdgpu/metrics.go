package amdgpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
)

// metricsLayout is where one version of the table gpu_metrics has what is of use here, as offsets in
// bytes; 0: nowhere. The kernel's structures are those of C, in the machine's byte order
// (gpu_metrics_v1_0 to v1_8 of kgd_pp_interface.h). Versions 2 and 3 are of processors with
// graphics.
type metricsLayout struct {
	content  uint8
	size     int // of the whole table: two versions 1.6 differ by it alone
	power    int // W, 16 bits
	activity int // %, 16 bits
	energy   int // 64 bits
	core     int // MHz, 16 bits
	cores    int // parts of the GPU that have a core clock of their own
	mem      int // MHz, 16 bits
	throttle int // bits that are the same for all GPUs, 64 bits
	status   int // bits that each GPU model has in its own way, 32 bits
}

// layouts are the versions 1.x. That of 1.0 has an energy counter of 32 bits, which begins
// again within minutes, and is left out.
var layouts = []metricsLayout{
	{content: 0, size: 80, power: 34, activity: 28, core: 54, cores: 1, mem: 58, status: 68},
	{content: 1, size: 96, power: 22, activity: 16, energy: 24, core: 54, cores: 1, mem: 58, status: 68},
	{content: 2, size: 104, power: 22, activity: 16, energy: 24, core: 54, cores: 1, mem: 58, status: 68},
	{content: 3, size: 120, power: 22, activity: 16, energy: 24, core: 54, cores: 1, mem: 58, throttle: 112},
	{content: 4, size: 288, power: 10, activity: 12, energy: 24, core: 240, cores: 8, mem: 280, status: 40},
	{content: 5, size: 360, power: 10, activity: 12, energy: 88, core: 312, cores: 8, mem: 352, status: 104},
	{content: 6, size: 384, power: 10, activity: 12, energy: 88, core: 336, cores: 8, mem: 376, status: 128},
	{content: 6, size: 1664, power: 10, activity: 12, energy: 16, core: 264, cores: 8, mem: 304},
	{content: 7, size: 2208, power: 10, activity: 12, energy: 24, core: 296, cores: 8, mem: 336},
	{content: 8, size: 3360, power: 10, activity: 12, energy: 24, core: 296, cores: 8, mem: 336},
	{content: 8, size: 3872, power: 10, activity: 12, energy: 24, core: 296, cores: 8, mem: 336},
}

// energyUnit is what the counter counts in: 2^-16 J, 15.259 µJ.
const energyUnit dvfsmodel.Joule = 1.0 / (1 << 16)

// errMetrics tells that the table can't be read by any layout that is known.
var errMetrics = errors.New("gpu_metrics of an unknown version")

// metrics is what a table says; NaN is what it doesn't.
type metrics struct {
	power       dvfsmodel.Watt
	energy      dvfsmodel.Joule
	core, mem   dvfsmodel.MHz
	utilisation float64
	throttle    gpu.Throttle
}

// parseMetrics reads a table. Its header says how large it is and of which version; a table
// that is shorter or longer than that version's is not believed.
func parseMetrics(table []byte) (metrics, error) {
	const header = 4
	if len(table) < header {
		return metrics{}, fmt.Errorf("gpu_metrics has %d bytes, want a header: %w", len(table), errMetrics)
	}
	size := int(binary.NativeEndian.Uint16(table))
	format, content := table[2], table[3]
	if format == 1 {
		for i := range layouts {
			l := &layouts[i]
			if l.content != content || l.size != size {
				continue
			}
			if len(table) < size {
				return metrics{}, fmt.Errorf("gpu_metrics has %d bytes of %d", len(table), size)
			}
			return l.read(table), nil
		}
	}
	return metrics{}, fmt.Errorf("gpu_metrics %d.%d of %d bytes: %w", format, content, size, errMetrics)
}

// read takes the values; all bits set is what the firmware doesn't tell.
func (l *metricsLayout) read(table []byte) metrics {
	m := metrics{
		power: dvfsmodel.Watt(uint16At(table, l.power)), mem: dvfsmodel.MHz(uint16At(table, l.mem)),
		energy: dvfsmodel.Joule(math.NaN()), core: dvfsmodel.MHz(math.NaN()),
		utilisation: uint16At(table, l.activity) / 100,
	}
	if m.utilisation > 1 {
		m.utilisation = math.NaN() // in a unit of its own
	}
	if l.energy != 0 {
		// A counter that some firmware doesn't have is 0 for ever.
		if n := binary.NativeEndian.Uint64(table[l.energy:]); n != math.MaxUint64 && n != 0 {
			m.energy = dvfsmodel.Joule(n) * energyUnit
		}
	}
	for i := range l.cores { // the fastest part counts: limits are of all of them
		if f := uint16At(table, l.core+2*i); !math.IsNaN(f) && !(float64(m.core) >= f) {
			m.core = dvfsmodel.MHz(f)
		}
	}
	switch {
	case l.throttle != 0:
		m.throttle = throttleOf(binary.NativeEndian.Uint64(table[l.throttle:]))
	case l.status != 0:
		if bits := binary.NativeEndian.Uint32(table[l.status:]); bits != 0 && bits != math.MaxUint32 {
			m.throttle = gpu.ThrottleOther
		}
	}
	return m
}

// uint16At returns a number of 16 bits; NaN where it isn't told.
func uint16At(table []byte, at int) float64 {
	n := binary.NativeEndian.Uint16(table[at:])
	if n == math.MaxUint16 {
		return math.NaN()
	}
	return float64(n)
}

// throttleOf maps the reasons that are the same for all GPUs (SMU_THROTTLER_… of
// amdgpu_smu.h).
func throttleOf(bits uint64) gpu.Throttle {
	if bits == math.MaxUint64 {
		return 0 // not told
	}
	var t gpu.Throttle
	for _, group := range []struct {
		from, to int // bits, the last one included
		reason   gpu.Throttle
	}{
		{0, 7, gpu.ThrottlePowerCap},   // PPT…: the power limit
		{16, 23, gpu.ThrottleHardware}, // TDC, EDC: currents
		{32, 45, gpu.ThrottleThermal},
		{46, 47, gpu.ThrottleHardware}, // PROCHOT: a signal from outside
		{48, 63, gpu.ThrottleOther},
	} {
		mask := uint64(1)<<(group.to-group.from+1) - 1
		if bits>>group.from&mask != 0 {
			t |= group.reason
		}
	}
	return t
}
