//go:build !cgo || !linux

package gpu

import "fmt"

// OpenNVML finds the GPUs of this machine. This program was built without cgo
// or for another system than Linux, so that it can't.
func OpenNVML() (Library, error) {
	return nil, fmt.Errorf("NVML: this program was built without it (it needs cgo and Linux): %w",
		ErrNotSupported)
}
