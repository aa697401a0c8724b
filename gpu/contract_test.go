package gpu

import (
	"strings"
	"testing"
)

// checkReadOnly and checkControls are what any device keeps, of package gputest: that
// imports this package, and so can't be imported by tests inside of it.
var checkReadOnly, checkControls func(*testing.T, Device)

// SetContract says what any device keeps.
func SetContract(readOnly, controls func(*testing.T, Device)) bool {
	checkReadOnly, checkControls = readOnly, controls
	return true
}

func TestSimulatedGPUsKeepTheContract(t *testing.T) {
	for _, spec := range []string{
		"sim", "sim:3", "sim:2,model=GTX1080Ti", "sim,lock=none", "sim,model=RTX2070S,lock=core",
		"sim,energy=off", "sim:2,minor=reverse,mig", "sim,mps", "sim,profiles", "sim,lock=none,profiles",
	} {
		for _, dir := range []string{"", t.TempDir()} {
			l, _ := openSim(t, spec, SimOptions{Dir: dir})
			devices, err := l.Devices()
			must(t, err)
			for _, d := range devices {
				checkReadOnly(t, d)
				checkControls(t, d)
				want := Sharing{MIG: strings.HasSuffix(spec, ",mig"), MPS: strings.HasSuffix(spec, ",mps")}
				if got, err := d.Sharing(); err != nil || got != want {
					t.Errorf("%s: sharing %+v, %v", spec, got, err)
				}
			}
			must(t, l.Close())
		}
	}
}
