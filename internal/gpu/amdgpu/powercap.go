package amdgpu

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/gpu"
)

// The files of the power cap, in the sensors' folder. The cap can be set where the kernel lets anybody
// write it and tells its range. The kernel tells what it is set to, so that nothing has to be noted of
// it, unlike of clocks.
const (
	capFile        = "power1_cap"
	capMinFile     = "power1_cap_min"
	capMaxFile     = "power1_cap_max"
	capDefaultFile = "power1_cap_default"
)

// capRange is what the board takes for a power cap; zero where it can't be set.
func (d *Device) capRange() gpu.PowerRange {
	if d.hwmon == "" || !d.files.isWritable(filepath.Join(d.hwmon, capFile)) {
		return gpu.PowerRange{}
	}
	now, err := d.sensor(capFile)
	low, lowErr := d.sensor(capMinFile)
	high, highErr := d.sensor(capMaxFile)
	if errors.Join(err, lowErr, highErr) != nil || !(now > 0) || !(high > low) || low < 0 {
		return gpu.PowerRange{}
	}
	const least = 1 // W: boards say 0
	return gpu.PowerRange{Min: dvfsmodel.Watt(max(low, least)), Max: dvfsmodel.Watt(high)}
}

// setCap sets the power cap.
func (d *Device) setCap(v gpu.Value) error {
	if err := gpu.PowerLimit.CheckBounds(d.Capability(), v); err != nil {
		return fmt.Errorf("GPU %s: %w", d.id.Bus, err)
	}
	return d.writeCap(gpu.OpSet, float64(v))
}

// releaseCap sets the power cap that the board was delivered with.
func (d *Device) releaseCap() error {
	delivered, err := d.sensor(capDefaultFile)
	if err != nil || !(delivered > 0) {
		delivered = float64(d.caps.Max)
	}
	return d.writeCap(gpu.OpRelease, delivered)
}

func (d *Device) writeCap(op gpu.Op, watts float64) error {
	if d.cantSet[gpu.PowerLimit].Load() {
		return d.fault(op, fmt.Errorf("%v: %w", gpu.PowerLimit, gpu.ErrNotSupported))
	}
	const microwatts = 1e6
	err := d.fault(op, d.files.write(filepath.Join(d.hwmon, capFile),
		strconv.FormatFloat(math.Round(watts*microwatts), 'f', 0, 64)))
	if errors.Is(err, gpu.ErrNotSupported) {
		d.cantSet[gpu.PowerLimit].Store(true)
	}
	return err
}
