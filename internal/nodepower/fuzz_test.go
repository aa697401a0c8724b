package nodepower_test

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/epplan/epplan/internal/nodepower"
)

// Whatever the kernel's counters say: what was used between two readings isn't known, or isn't negative.
func FuzzCounters(f *testing.F) {
	for _, one := range [][4]string{
		{"package-0\n", "1000", "2000", "65532610987\n"},
		{"package-0", "2000", "1000", "3000"},
		{"dram", "x", "", "0"},
		{"package-0", "18446744073709551615", "0", "18446744073709551615"},
		{"psys", "1", "2", "3"},
	} {
		f.Add(one[0], one[1], one[2], one[3])
	}
	f.Fuzz(func(t *testing.T, name, before, after, span string) {
		files := fstest.MapFS{
			"intel-rapl:0/name":                  {Data: []byte(name)},
			"intel-rapl:0/energy_uj":             {Data: []byte(before)},
			"intel-rapl:0/max_energy_range_uj":   {Data: []byte(span)},
			"intel-rapl:0:0/name":                {Data: []byte("dram")},
			"intel-rapl:0:0/energy_uj":           {Data: []byte(after)},
			"intel-rapl:0:0/max_energy_range_uj": {Data: []byte(span)},
		}
		m, err := nodepower.Open(files)
		if err != nil {
			return
		}
		for i := range 2 {
			step, err := m.Next(time.Unix(int64(i), 0))
			if step.Energy < 0 || !step.Known && step.Energy != 0 || err != nil && step.Known {
				t.Fatalf("%+v, %v", step, err)
			}
			files["intel-rapl:0/energy_uj"].Data = []byte(after)
		}
	})
}
