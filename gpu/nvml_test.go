//go:build cgo && linux

package gpu

import (
	"cmp"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// A process binds to one driver library, so that the fake one has a process
// of its own: this test run again.
const inFakeDriver = "EPPLAN_FAKE_DRIVER"

func TestNVMLOnAFakeDriver(t *testing.T) {
	if os.Getenv(inFakeDriver) != "" {
		fakeDriverTests(t)
		return
	}
	for name, defined := range map[string]string{"older": "-DOLDER", "newer": "-DNEWER"} {
		t.Run(name, func(t *testing.T) { runFakeDriver(t, defined) })
	}
}

// runFakeDriver runs the tests with a driver of today's, or one that has the functions of CUDA 13.1.
func runFakeDriver(t *testing.T, defined string) {
	t.Helper()
	dir := t.TempDir()
	compiler := cmp.Or(os.Getenv("CC"), "gcc") // as go build has it
	_, err := exec.LookPath(compiler)
	shareddata.Need(t, err == nil, "the fake driver needs "+compiler)
	library := filepath.Join(dir, "libnvidia-ml.so.1")
	build := exec.CommandContext(t.Context(), compiler, "-shared", "-fPIC", defined, "-o", library,
		"testdata/fakenvml.c")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	self, err := os.Executable()
	must(t, err)
	again := exec.CommandContext(t.Context(), self, "-test.run=^TestNVMLOnAFakeDriver$", "-test.v")
	again.Env = append(os.Environ(), inFakeDriver+"=1", "LD_LIBRARY_PATH="+dir)
	out, err := again.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: TestNVMLOnAFakeDriver/locks") {
		t.Fatalf("the tests didn't run\n%s", out)
	}
}

func fakeDriverTests(t *testing.T) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"contract", fakeContract},
		{"telemetry", fakeTelemetry},
		{"table of clocks", fakeClocks},
		{"locks", fakeLocks},
		{"power limit", fakePowerLimit},
		{"power profiles", fakeProfiles},
		{"refusals", fakeRefusals},
		{"partial readings", fakePartialReadings},
		{"sharing", fakeSharing},
		{"missing drivers", fakeNoDriver},
		{"reload", fakeReload},
		{"one GPU lost", fakeLost},
		{"one GPU missing, the others renumbered", fakeMissing},
	} {
		t.Run(test.name, test.run)
	}
}

func fakeDevices(t *testing.T) (*nvmlLibrary, []Device) {
	t.Helper()
	l, err := openNVML()
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	devices, err := l.Devices()
	must(t, err)
	if len(devices) != 2 {
		t.Fatalf("%d devices", len(devices))
	}
	return l, devices
}

func fakeContract(t *testing.T) {
	t.Helper()
	_, devices := fakeDevices(t)
	for _, d := range devices {
		checkReadOnly(t, d)
		checkControls(t, d)
	}
}

func fakeProfiles(t *testing.T) {
	t.Helper()
	t.Setenv("FAKE_NVML", "profiles=1")
	_, devices := fakeDevices(t)
	d := devices[0]
	if has := d.Capability().Profiles.String(); has != "Max-P, Max-Q, Network" {
		t.Errorf("profiles %s", has)
	}
	for _, d := range devices {
		checkControls(t, d)
	}
	maxQ := Value(ProfilesOf(dvfsmodel.MaxQ))
	t.Setenv("FAKE_NVML", "profiles=1,late=2")
	must(t, d.Set(WorkloadProfile, maxQ))
	must(t, WorkloadProfile.GiveBack(d, maxQ, 0))
	t.Setenv("FAKE_NVML", "profiles=1,late=99")
	if err := d.Set(WorkloadProfile, maxQ); !errors.Is(err, ErrNotSupported) {
		t.Errorf("a profile that isn't in force: %v", err)
	}
	t.Setenv("FAKE_NVML", "profiles=1")
	if now, err := ProfilesOn(d); err != nil || now != (Profiles{}) {
		t.Errorf("and it isn't taken back: %+v, %v", now, err)
	}
	must(t, d.Set(WorkloadProfile, maxQ)) // the refusal was of that moment
	must(t, d.Release(WorkloadProfile))
	t.Setenv("FAKE_NVML", "profiles=1,"+fnProfileSet+"=4,"+fnProfileNew+"=4")
	if err := d.Set(WorkloadProfile, maxQ); !errors.Is(err, ErrPermission) {
		t.Errorf("without the right: %v", err)
	}
}

func fakeTelemetry(t *testing.T) {
	t.Helper()
	_, devices := fakeDevices(t)
	want := Identity{
		UUID: "GPU-aaaaaaaa-0000-0000-0000-000000000000", Bus: "00000000:3B:00.0",
		Model: "Fake A100", Minor: 1,
	}
	if got := devices[0].Identity(); got != want {
		t.Errorf("identity %+v, want %+v", got, want)
	}
	limit, err := devices[0].PowerLimit()
	if err != nil || limit != 400 {
		t.Errorf("limit %v, %v", limit, err)
	}
	r := read(t, devices[0])
	if r.Power != 61.234 || r.Core != 210 || r.Mem != 1215 || r.Utilisation != 0.37 ||
		r.MemUsed != 123456789 {
		t.Errorf("reading %+v", r)
	}
	if r.Throttle != ThrottleIdle|ThrottlePowerCap {
		t.Errorf("throttle reasons %b", r.Throttle)
	}
	near(t, "energy between readings", float64(read(t, devices[0]).Energy-r.Energy), 0.007, 1e-9)
	pids, err := devices[0].Processes()
	if err != nil || !slices.Equal(pids, []int{17, 4242}) {
		t.Errorf("processes %v, %v", pids, err)
	}
}

func fakeClocks(t *testing.T) {
	t.Helper()
	_, devices := fakeDevices(t)
	c, err := devices[0].Clocks()
	must(t, err)
	if len(c.Mem) != 2 || c.Mem[0] != 1215 || c.Mem[1] != 810 || len(c.Core[0]) != 300 {
		t.Fatalf("memory clocks %v, %d core clocks", c.Mem, len(c.Core[0]))
	}
	if c.Core[1][0] != 210+5*299 || c.Core[1][299] != 210 {
		t.Errorf("core clocks from %v to %v", c.Core[1][0], c.Core[1][299])
	}
}

func fakeLocks(t *testing.T) {
	t.Helper()
	_, devices := fakeDevices(t)
	ampere, volta := devices[0], devices[1]
	must(t, ampere.Set(CoreClock, 500))
	must(t, ampere.Set(MemClock, 810))
	if r := read(t, ampere); r.Core != 210 || r.Mem != 810 {
		t.Errorf("clocks %v/%v of a GPU that has nothing to do, want the lowest core clock", r.Core, r.Mem)
	}
	t.Setenv("FAKE_NVML", "busy=1")
	if r := read(t, ampere); r.Core != 500 || r.Mem != 810 {
		t.Errorf("clocks %v/%v", r.Core, r.Mem)
	}
	must(t, ampere.Release(MemClock))
	if r := read(t, ampere); r.Core != 500 || r.Mem != 1215 {
		t.Errorf("clocks %v/%v without the memory lock", r.Core, r.Mem)
	}
	must(t, ampere.Release(CoreClock))
	t.Setenv("FAKE_NVML", "")
	must(t, ampere.Fix(CoreClock, 500))
	if r := read(t, ampere); r.Core != 500 {
		t.Errorf("core clock %v of a GPU that has nothing to do, fixed at 500", r.Core)
	}
	must(t, ampere.Release(CoreClock))
	t.Setenv("FAKE_NVML", "nvmlDeviceGetSupportedMemoryClocks=3") // and so no table
	_, unlisted := fakeDevices(t)
	must(t, unlisted[0].Set(CoreClock, 503))
	if r := read(t, unlisted[0]); r.Core != 503 {
		t.Errorf("core clock %v, set to 503 of which nobody knows what is lower", r.Core)
	}
	t.Setenv("FAKE_NVML", "")
	must(t, unlisted[0].Release(CoreClock))
	if err := ampere.Set(CoreClock, 501); err == nil {
		t.Error("a clock that isn't in the table was locked")
	}
	if c := volta.Capability(); !c.Can(CoreClock) || c.Can(MemClock) || !c.Energy {
		t.Errorf("capability of a V100 %+v", c)
	}
	if err := volta.Set(MemClock, 877); !errors.Is(err, ErrNotSupported) {
		t.Errorf("memory lock on a V100: %v", err)
	}
}

func fakePowerLimit(t *testing.T) {
	t.Helper()
	_, devices := fakeDevices(t)
	volta := devices[1]
	if limit, err := volta.PowerLimit(); err != nil || limit != 250 {
		t.Errorf("limit that is set %v, %v: want 250", limit, err)
	}
	if r := read(t, volta); r.Limit != 240 {
		t.Errorf("limit in force %v, want the lower one that nobody set", r.Limit)
	}
	if want := (PowerRange{100, 250}); volta.Capability().Limits != want {
		t.Errorf("limits %v, want %v", volta.Capability().Limits, want)
	}
	must(t, volta.Set(PowerLimit, 180.5))
	if r := read(t, volta); r.Limit != 180.5 {
		t.Errorf("limit in force %v, set to 180.5", r.Limit)
	}
	for _, v := range []Value{99, 251, Value(math.NaN()), Value(math.Inf(1))} {
		if err := volta.Set(PowerLimit, v); err == nil ||
			!strings.Contains(err.Error(), "outside what the board takes, 100 to 250 W") {
			t.Errorf("limit of %v W: %v", float64(v), err)
		}
	}
	must(t, volta.Release(PowerLimit))
	if limit, err := volta.PowerLimit(); err != nil || limit != 250 {
		t.Errorf("limit %v, %v: want that as delivered", limit, err)
	}
	for _, unread := range []string{
		"nvmlDeviceGetPowerManagementLimit=3", "nvmlDeviceGetPowerManagementLimitConstraints=3",
	} {
		t.Setenv("FAKE_NVML", unread)
		_, devices := fakeDevices(t)
		if devices[0].Capability().Can(PowerLimit) || !devices[0].Capability().Can(CoreClock) {
			t.Errorf("%s: capability %+v", unread, devices[0].Capability())
		}
		if err := devices[0].Set(PowerLimit, 200); !errors.Is(err, ErrNotSupported) {
			t.Errorf("%s: set all the same: %v", unread, err)
		}
	}
}

func fakeRefusals(t *testing.T) {
	t.Helper()
	_, devices := fakeDevices(t)
	d := devices[0]
	for code, want := range map[string]error{
		"4": ErrPermission, "15": ErrLost, "9": ErrReloaded,
		"1": ErrReloaded,
	} {
		t.Setenv("FAKE_NVML", "nvmlDeviceSetGpuLockedClocks="+code)
		if err := d.Set(CoreClock, 500); !errors.Is(err, want) {
			t.Errorf("code %s: %v, want %v", code, err, want)
		}
	}
	t.Setenv("FAKE_NVML", "nvmlDeviceSetGpuLockedClocks=999")
	if err := d.Set(CoreClock, 500); err == nil || !strings.Contains(err.Error(), "Unknown Error") {
		t.Errorf("code 999: %v", err)
	}
	if !d.Capability().Can(CoreClock) {
		t.Error("a capability went with an error that may pass")
	}
	t.Setenv("FAKE_NVML", "nvmlDeviceSetGpuLockedClocks=3")
	if err := d.Set(CoreClock, 500); !errors.Is(err, ErrNotSupported) || d.Capability().Can(CoreClock) {
		t.Errorf("code 3: %v, capability %+v", err, d.Capability())
	}
}

func fakePartialReadings(t *testing.T) {
	t.Helper()
	t.Setenv("FAKE_NVML", "nvmlDeviceGetTotalEnergyConsumption=3")
	_, devices := fakeDevices(t)
	if devices[0].Capability().Energy {
		t.Error("counts energy without a counter")
	}
	t.Setenv("FAKE_NVML", "nvmlDeviceGetUtilizationRates=3,nvmlDeviceGetMemoryInfo=999")
	r := read(t, devices[0])
	if !math.IsNaN(r.Utilisation) || r.MemUsed != -1 || !math.IsNaN(float64(r.Energy)) || r.Power != 61.234 {
		t.Errorf("reading %+v", r)
	}
	t.Setenv("FAKE_NVML", "nvmlDeviceGetPowerUsage=15")
	if _, err := devices[0].Read(); !errors.Is(err, ErrLost) {
		t.Errorf("read of a lost GPU: %v", err)
	}
}

func fakeSharing(t *testing.T) {
	t.Helper()
	_, devices := fakeDevices(t)
	a, err := devices[0].Sharing()
	must(t, err)
	v, err := devices[1].Sharing()
	must(t, err)
	if !a.MIG || v.MIG || a.MPS || v.MPS {
		t.Errorf("sharing %+v and %+v", a, v)
	}
	t.Setenv("FAKE_NVML", "mps=1")
	if v, err := devices[1].Sharing(); err != nil || !v.MPS {
		t.Errorf("sharing with an MPS server %+v, %v", v, err)
	}
}

func fakeNoDriver(t *testing.T) {
	t.Helper()
	t.Setenv("FAKE_NVML", "nvmlInit_v2=9")
	if _, err := OpenNVML(); !errors.Is(err, ErrNotSupported) ||
		!strings.Contains(err.Error(), "isn't loaded") {
		t.Errorf("without a driver: %v", err)
	}
	_, err := openNVML(nvml.WithLibraryPath("/nonexistent/libnvidia-ml.so.1"))
	if !errors.Is(err, ErrNotSupported) || !strings.Contains(err.Error(), "libnvidia-ml") {
		t.Errorf("without a library: %v", err)
	}
}

func fakeReload(t *testing.T) {
	t.Helper()
	l, devices := fakeDevices(t)
	t.Setenv("FAKE_NVML", "nvmlDeviceGetPowerUsage=1")
	if _, err := devices[0].Read(); !errors.Is(err, ErrReloaded) || !l.stale.Load() {
		t.Fatalf("read: %v", err)
	}
	t.Setenv("FAKE_NVML", "nvmlInit_v2=18")
	if _, err := l.Devices(); !errors.Is(err, ErrReloaded) || !strings.Contains(err.Error(), "restart") {
		t.Errorf("another version: %v", err)
	}
	t.Setenv("FAKE_NVML", "")
	again, err := l.Devices()
	must(t, err)
	checkReadOnly(t, again[0])
}

func fakeLost(t *testing.T) {
	t.Helper()
	l, _ := fakeDevices(t)
	t.Setenv("FAKE_NVML", "second=15")
	devices, err := l.Devices()
	if !errors.Is(err, ErrLost) || len(devices) != 2 || devices[0] == nil || devices[1] != nil {
		t.Errorf("%v, %v: want the first, nothing in the second's place, and an error", devices, err)
	}
}

func fakeMissing(t *testing.T) {
	t.Helper()
	l, before := fakeDevices(t)
	t.Setenv("FAKE_NVML", "gone=1")
	devices, err := l.Devices()
	if err != nil || len(devices) != 1 || devices[0].Identity() != before[1].Identity() {
		t.Errorf("%v, %v: want the one that is left", devices, err)
	}
	t.Setenv("FAKE_NVML", "renumbered=1")
	devices, err = l.Devices()
	must(t, err)
	for i, d := range devices {
		if got, was := d.Identity(), before[i].Identity(); got.UUID != was.UUID || got.Minor != 1-was.Minor {
			t.Errorf("GPU %d is %+v, was %+v", i, got, was)
		}
	}
}

func TestEveryReasonOfNVMLIsOneOfOurs(t *testing.T) {
	for bit := uint64(1); bit <= 256; bit <<= 1 {
		if got := nvmlThrottle(bit); got == 0 {
			t.Errorf("reason %#x is none", bit)
		}
	}
	if got := nvmlThrottle(1 << 40); got != ThrottleOther {
		t.Errorf("an unknown reason is %b", got)
	}
	if got := nvmlThrottle(0); got != 0 {
		t.Errorf("no reason is %b", got)
	}
}
