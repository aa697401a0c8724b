package amdgpu

import (
	"encoding/binary"
	"math"
	"testing"
)

// Whatever the kernel's table has: it is refused, or what is read of it is what a GPU can be at.
func FuzzMetrics(f *testing.F) {
	for _, l := range layouts {
		table := make([]byte, l.size)
		binary.NativeEndian.PutUint16(table, uint16(l.size))
		table[2], table[3] = 1, l.content
		f.Add(table)
		for i := 4; i < len(table); i++ {
			table[i] = 0xff
		}
		f.Add(table)
	}
	f.Add([]byte{})
	f.Add([]byte{96, 0, 1, 1})
	f.Fuzz(func(t *testing.T, table []byte) {
		m, err := parseMetrics(table)
		if err != nil {
			return
		}
		for name, v := range map[string]float64{
			"power": float64(m.power), "energy": float64(m.energy), "core": float64(m.core), "mem": float64(m.mem),
			"utilisation": m.utilisation,
		} {
			if math.IsInf(v, 0) || v < 0 || name == "utilisation" && v > 1 {
				t.Fatalf("%s %v: %+v", name, v, m)
			}
		}
	})
}

// Whatever the kernel's lists of clocks say: each that is read is one of its lines.
func FuzzLevels(f *testing.F) {
	for _, text := range []string{
		"0: 500Mhz\n1: 800Mhz *\n2: 1700Mhz", "S: 19Mhz *\n0: 615Mhz", "0: 800MHz", "", "\n\n", "0 800", "x: 1Mhz",
		"99999999999999999999: 1Mhz", "0: 99999999999999999999Mhz",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list := lines(text)
		found, err := parseLevels(list)
		if len(found) > len(list) || err != nil && found != nil {
			t.Fatalf("%d levels of %d lines, %v", len(found), len(list), err)
		}
		for _, l := range found {
			if l.index < 0 || !(l.mhz >= 0) || math.IsInf(float64(l.mhz), 0) {
				t.Fatalf("%+v", l)
			}
		}
	})
}
