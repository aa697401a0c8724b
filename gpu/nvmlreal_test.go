//go:build realgpu && cgo && linux

package gpu

import "testing"

// Run it with -tags realgpu on a machine with a GPU. It only reads.
func TestARealGPUKeepsTheReadOnlyContract(t *testing.T) {
	l, err := OpenNVML()
	must(t, err)
	defer func() { must(t, l.Close()) }()
	devices, err := l.Devices()
	must(t, err)
	if len(devices) == 0 {
		t.Error("no GPU")
	}
	for _, d := range devices {
		checkReadOnly(t, d)
	}
}
