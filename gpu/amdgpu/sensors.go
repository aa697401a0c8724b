package amdgpu

import (
	"fmt"
	"math"
	"path/filepath"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
)

// sensors are the files of a GPU's sensors, with its power limit.
type sensors struct {
	files  files
	folder string // below the base; "": it has none
}

// powerBounds returns what the power limit can be; zero: it can't be set. Where the kernel names no least
// limit, half of what the board was delivered with is the least that is set.
func (s *sensors) powerBounds() (gpu.PowerRange, error) {
	if s.folder == "" || !s.files.isWritable(filepath.Join(s.folder, "power1_cap")) {
		return gpu.PowerRange{}, nil
	}
	var watts [3]float64
	for i, name := range []string{"power1_cap_min", "power1_cap_default", "power1_cap_max"} {
		var err error
		if watts[i], err = s.read(name); err != nil {
			return gpu.PowerRange{}, err
		}
	}
	low, delivered, high := watts[0], watts[1], watts[2]
	if low == 0 {
		low = math.Ceil(delivered / 2)
	}
	if !(delivered > 0 && low <= delivered && delivered <= high) {
		return gpu.PowerRange{}, nil
	}
	return gpu.PowerRange{Min: dvfsmodel.Watt(low), Max: dvfsmodel.Watt(high)}, nil
}

// setPower sets the power limit. The kernel takes whole watts.
func (s *sensors) setPower(watts float64) error {
	return s.files.write(filepath.Join(s.folder, "power1_cap"), fmt.Sprintf("%.0f", math.Floor(watts)*1e6))
}

// read reads a number of the sensors' folder: watts and MHz are there as µW and Hz.
func (s *sensors) read(name string) (float64, error) {
	if s.folder == "" {
		return 0, fmt.Errorf("no sensors: %w", gpu.ErrNotSupported)
	}
	n, err := s.files.number(filepath.Join(s.folder, name))
	return n / 1e6, err
}
