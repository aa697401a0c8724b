package amdgpu_test

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/gpu/amdgpu"
	"github.com/epplan/epplan/internal/testkit/amdgputest"
	"github.com/epplan/epplan/internal/testkit/gputest"
)

const (
	mi300x = amdgputest.MI300X
	mi210  = amdgputest.MI210
	mi100  = amdgputest.MI100
	navi31 = amdgputest.Navi31
)

// open returns a process that finds the GPUs; notes is where it notes what they were at.
func open(t *testing.T, k *amdgputest.Kernel, notes string) []gpu.Device {
	t.Helper()
	l, err := amdgpu.Open(amdgpu.Options{Sysfs: k, Notes: notes, Root: true, Driver: "load-1"})
	if err != nil {
		t.Fatal(err)
	}
	devices, err := l.Devices()
	if err != nil {
		t.Fatal(err)
	}
	return devices
}

// notes returns a folder for notes, which must be nobody else's.
func notes(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "notes")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAMDGPUsKeepTheContract(t *testing.T) {
	for _, dir := range []string{"", notes(t)} {
		k := amdgputest.New(t, mi300x, mi210, mi100, navi31)
		for _, d := range open(t, k, dir) {
			t.Run(d.Identity().Model, func(t *testing.T) {
				gputest.CheckReadOnly(t, d)
				gputest.CheckControls(t, d)
			})
		}
		for _, g := range k.GPUs {
			wantAsAtFirst(t, g)
		}
	}
}

// wantAsAtFirst fails unless a GPU is as it is when its driver was loaded.
func wantAsAtFirst(t *testing.T, g *amdgputest.GPU) {
	t.Helper()
	if !g.IsAsLoaded() {
		t.Errorf("%s is left at level %s, core %d to %d, memory %d MHz", g.Kind, g.Level, g.Lo, g.Hi, g.Mem)
	}
}

func TestWhatAnAMDGPUIsAndCan(t *testing.T) {
	k := amdgputest.New(t, mi300x, mi210, mi100, navi31)
	devices := open(t, k, "")
	want := gpu.Identity{
		UUID: "GPU-a0b1c2d3e4f50000", Bus: "00000000:C1:00.0", Model: "AMD Instinct MI300X OAM", Minor: 128,
	}
	if got := devices[0].Identity(); got != want {
		t.Errorf("identity %+v, want %+v", got, want)
	}
	k.GPUs[1].Put(t, "product_name", "\n")
	if got := open(t, k, "")[1].Identity(); got.Model != "AMD Instinct MI210" || got.Minor != 129 {
		t.Errorf("without a name of its own: %+v", got)
	}
	all := gpu.ControlsOf(gpu.CoreClock, gpu.MemClock, gpu.PowerLimit)
	core := gpu.ControlsOf(gpu.CoreClock, gpu.PowerLimit)
	for i, want := range []gpu.Capability{
		{Controls: all, Energy: true, Limits: gpu.PowerRange{Min: 375, Max: 750}},
		{Controls: core, Energy: true, Limits: gpu.PowerRange{Min: 150, Max: 300}},
		{Controls: core, Energy: true, Limits: gpu.PowerRange{Min: 145, Max: 290}},
		{Controls: all, Limits: gpu.PowerRange{Min: 152, Max: 303}},
	} {
		if got := devices[i].Capability(); got != want {
			t.Errorf("%s can %+v, want %+v", k.GPUs[i].Kind, got, want)
		}
	}
	for i, want := range []struct {
		mems  []dvfsmodel.MHz
		first dvfsmodel.MHz
		last  dvfsmodel.MHz
		count int
	}{
		{[]dvfsmodel.MHz{1300, 1200, 1100, 900}, 2100, 600, 16},
		{[]dvfsmodel.MHz{1600}, 1700, 600, 12},
		{[]dvfsmodel.MHz{1200}, 1502, 302, 7},
		{[]dvfsmodel.MHz{1249, 772, 456, 96}, 2600, 600, 21},
	} {
		c, err := devices[i].Clocks()
		must(t, err)
		if cores := c.Core[0]; !slices.Equal(c.Mem, want.mems) || len(cores) != want.count ||
			cores[0] != want.first || cores[len(cores)-1] != want.last {
			t.Errorf("%s: clocks %v, %v", k.GPUs[i].Kind, c.Mem, cores)
		}
	}
}

func TestAReadingOfAnAMDGPU(t *testing.T) {
	k := amdgputest.New(t, mi300x, mi210, navi31)
	k.GPUs[0].Run(t, 4711, 1<<30)
	k.GPUs[0].Run(t, 42, 1<<20)
	k.GPUs[0].Run(t, 7, 0) // has the device open, as every process of ROCm has
	devices := open(t, k, "")
	r, err := devices[0].Read()
	must(t, err)
	if r.Power != 525 || r.Core != 2100 || r.Mem != 1300 || r.Utilisation != 0.97 ||
		r.MemUsed != 10960896 || r.MemTotal != 68702699520 || r.Throttle != 0 {
		t.Errorf("reading %+v", r)
	}
	// An hour at 525 W, counted in 2^-16 J.
	if joules := float64(r.Energy); math.Abs(joules-525*3600) > 525*60 {
		t.Errorf("energy %v J", joules)
	}
	if pids, err := devices[0].Processes(); err != nil || !slices.Equal(pids, []int{42, 4711}) {
		t.Errorf("processes %v, %v", pids, err)
	}
	if pids, err := devices[1].Processes(); err != nil || len(pids) != 0 {
		t.Errorf("processes of another GPU: %v, %v", pids, err)
	}
	r, err = devices[1].Read()
	must(t, err)
	if want := gpu.ThrottlePowerCap | gpu.ThrottleThermal; r.Throttle != want || r.Power != 170 {
		t.Errorf("reading %+v", r)
	}
	r, err = devices[2].Read() // no table of metrics: from sensors
	must(t, err)
	if !math.IsNaN(float64(r.Energy)) || r.Core != 2600 || r.Mem != 1249 || r.Power != 262 {
		t.Errorf("reading without metrics %+v", r)
	}
	limit, err := devices[0].PowerLimit()
	if err != nil || limit != 750 {
		t.Errorf("power limit %v, %v", limit, err)
	}
	must(t, devices[0].Set(gpu.PowerLimit, 500.7)) // the kernel takes whole watts
	if r, err := devices[0].Read(); err != nil || r.Limit != 500 || k.GPUs[0].Cap != 500 {
		t.Errorf("limited to %v W, %v", float64(r.Limit), err)
	}
	must(t, devices[0].Release(gpu.PowerLimit))
	if k.GPUs[0].Cap != 750 {
		t.Errorf("released to %v W", k.GPUs[0].Cap)
	}
	k.GPUs[0].Put(t, "hwmon/hwmon3/power1_cap", "0\n") // as the second die of an MI250X
	if _, err := devices[0].PowerLimit(); !errors.Is(err, gpu.ErrNotSupported) {
		t.Errorf("a power limit of 0 W: %v", err)
	}
	for mode, want := range map[string]bool{"SPX": false, "CPX": true} {
		k.GPUs[0].Put(t, "current_compute_partition", mode+"\n")
		if s, err := devices[0].Sharing(); err != nil || s.MIG != want {
			t.Errorf("%s: %+v, %v", mode, s, err)
		}
	}
}

// metricsTable returns a table of one version with some values, and the rest all bits set.
func metricsTable(format, content byte, size int) []byte {
	table := slices.Repeat([]byte{0xff}, size)
	binary.NativeEndian.PutUint16(table, uint16(size))
	table[2], table[3] = format, content
	return table
}

func TestMetricsThatCantBeReadLeaveTheSensors(t *testing.T) {
	k := amdgputest.New(t, mi210)
	counter := func(size int, content byte, at int, n uint64) []byte {
		table := metricsTable(1, content, size)
		binary.NativeEndian.PutUint64(table[at:], n)
		return table
	}
	for name, c := range map[string]struct {
		table []byte
		joule float64 // NaN: no counter
	}{
		"empty":                         {[]byte{}, math.NaN()},
		"no header":                     {[]byte{120, 0}, math.NaN()},
		"cut off":                       {metricsTable(1, 3, 120)[:60], math.NaN()},
		"of processors":                 {metricsTable(2, 3, 120), math.NaN()},
		"to come":                       {metricsTable(1, 9, 120), math.NaN()},
		"of another size":               {metricsTable(1, 3, 128), math.NaN()},
		"says nothing":                  {metricsTable(1, 3, 120), math.NaN()},
		"a counter that is 0":           {counter(120, 3, 24, 0), math.NaN()},
		"1.1":                           {counter(96, 1, 24, 1<<16), 1},
		"1.2":                           {counter(104, 2, 24, 1<<17), 2},
		"1.4":                           {counter(288, 4, 24, 3<<16), 3},
		"1.5":                           {counter(360, 5, 88, 4<<16), 4},
		"1.6 of the first kernels":      {counter(384, 6, 88, 5<<16), 5},
		"1.6":                           {counter(1664, 6, 16, 6<<16), 6},
		"1.7":                           {counter(2208, 7, 24, 7<<16), 7},
		"1.8":                           {counter(3360, 8, 24, 8<<16), 8},
		"1.0, which soon is at 0 again": {metricsTable(1, 0, 80), math.NaN()},
	} {
		t.Run(name, func(t *testing.T) {
			k.GPUs[0].Put(t, "gpu_metrics", string(c.table))
			d := open(t, k, "")[0]
			r, err := d.Read()
			must(t, err)
			if want := c.joule; !(float64(r.Energy) == want || math.IsNaN(want) && math.IsNaN(float64(r.Energy))) {
				t.Errorf("energy %v J, want %v", float64(r.Energy), want)
			}
			if d.Capability().Energy != !math.IsNaN(c.joule) {
				t.Errorf("capability %+v", d.Capability())
			}
			if r.Power != 170 || r.Core != 1700 || r.Mem != 1600 {
				t.Errorf("reading %+v", r)
			}
		})
	}
}

// before are levels and limits that somebody may have set by hand before.
var before = []struct {
	name     string
	commands []string // "file text"
	level    string
	hi       int
}{
	{"auto", nil, "auto", 1700},
	{"high", []string{"power_dpm_force_performance_level high"}, "high", 1700},
	{"profile", []string{"power_dpm_force_performance_level profile_peak"}, "profile_peak", 1700},
	{"limits by hand", []string{
		"power_dpm_force_performance_level manual",
		"pp_od_clk_voltage s 0 600", "pp_od_clk_voltage s 1 1500", "pp_od_clk_voltage c",
	}, "manual", 1500},
	{"deterministic", []string{
		"power_dpm_force_performance_level perf_determinism", "pp_od_clk_voltage s 1 1400", "pp_od_clk_voltage c",
	}, "perf_determinism", 1400},
}

func TestTheLevelFromBeforeIsGivenBackByAnotherProcess(t *testing.T) {
	for _, b := range before {
		t.Run(b.name, func(t *testing.T) {
			k, dir := amdgputest.New(t, mi210), notes(t)
			g := k.GPUs[0]
			for _, c := range b.commands {
				file, text, _ := strings.Cut(c, " ")
				must(t, k.WriteFile("bus/pci/devices/"+g.Address+"/"+file, []byte(text)))
			}
			low := g.Lo
			d := open(t, k, dir)[0]
			must(t, d.Set(gpu.CoreClock, 1300))
			if g.Level != "manual" || g.Hi != 1300 {
				t.Errorf("level %s, highest %d MHz", g.Level, g.Hi)
			}
			if c, err := d.Clocks(); err != nil || c.Core[0][0] != dvfsmodel.MHz(b.hi) {
				t.Errorf("clocks %v, %v: want none above %d MHz, which somebody set", c.Core, err, b.hi)
			}
			d = open(t, k, dir)[0] // of a process that knows nothing but the note
			must(t, d.Set(gpu.CoreClock, gpu.Value(low+100)))
			must(t, d.Release(gpu.CoreClock))
			if g.Level != b.level || g.Hi != b.hi || g.Lo != low {
				t.Errorf("level %s, %d to %d MHz, want %s, %d to %d", g.Level, g.Lo, g.Hi, b.level, low, b.hi)
			}
			writes := k.Writes()
			must(t, d.Release(gpu.CoreClock))
			if k.Writes() != writes {
				t.Error("something was written to a GPU that isn't set")
			}
		})
	}
}

func TestALimitOfAnotherIsKept(t *testing.T) {
	k, dir := amdgputest.New(t, mi300x), notes(t)
	g, d := k.GPUs[0], open(t, k, dir)[0]
	must(t, d.Set(gpu.CoreClock, 1000))
	must(t, d.Set(gpu.MemClock, 900))
	must(t, d.Release(gpu.CoreClock))
	if g.Level != "manual" || g.Hi != 2100 || g.Mem != 900 {
		t.Errorf("level %s, core %d, memory %d MHz", g.Level, g.Hi, g.Mem)
	}
	must(t, d.Release(gpu.MemClock))
	wantAsAtFirst(t, g)
	// What an administrator limits meanwhile, with a table that was read before, isn't exceeded.
	must(t, g.Obey("power_dpm_force_performance_level", "manual"))
	must(t, g.Obey("pp_od_clk_voltage", "s 1 1200"))
	must(t, g.Obey("pp_od_clk_voltage", "c"))
	if err := d.Set(gpu.CoreClock, 1500); err == nil || g.Hi != 1200 {
		t.Errorf("1500 MHz above a limit of 1200: %v, highest %d", err, g.Hi)
	}
	must(t, d.Set(gpu.CoreClock, 1100))
	// And another level that he chooses meanwhile stays.
	must(t, g.Obey("power_dpm_force_performance_level", "high"))
	must(t, d.Release(gpu.CoreClock))
	if g.Level != "high" {
		t.Errorf("level %s", g.Level)
	}
}

// Kernels until 2025 keep what somebody staged once, and commit it with whatever is committed next.
func TestWhatSomebodyElseStagedLongAgoIsntCommitted(t *testing.T) {
	k := amdgputest.New(t, mi300x)
	g, d := k.GPUs[0], open(t, k, notes(t))[0]
	for _, command := range []string{"manual", "s 0 800", "s 1 900", "m 1 900", "auto"} {
		file := "pp_od_clk_voltage"
		if command == "manual" || command == "auto" {
			file = "power_dpm_force_performance_level"
		}
		must(t, g.Obey(file, command))
	}
	must(t, d.Set(gpu.MemClock, 1100))
	if g.Lo != 500 || g.Hi != 2100 || g.Mem != 1100 {
		t.Errorf("core %d to %d, memory %d MHz", g.Lo, g.Hi, g.Mem)
	}
	must(t, d.Set(gpu.CoreClock, 1000))
	must(t, d.Release(gpu.MemClock))
	if g.Lo != 500 || g.Hi != 1000 || g.Mem != 1300 {
		t.Errorf("core %d to %d, memory %d MHz", g.Lo, g.Hi, g.Mem)
	}
	must(t, d.Release(gpu.CoreClock))
	wantAsAtFirst(t, g)
}

func TestClocksChosenByHandThatCantBeReadAreLeftAlone(t *testing.T) {
	k := amdgputest.New(t, mi100)
	g, d := k.GPUs[0], open(t, k, notes(t))[0]
	must(t, g.Obey("power_dpm_force_performance_level", "manual"))
	must(t, g.Obey("pp_dpm_sclk", "0 1"))
	if err := d.Set(gpu.CoreClock, 962); !errors.Is(err, gpu.ErrNotSupported) {
		t.Errorf("set: %v", err)
	}
	if g.Level != "manual" || !slices.Equal(g.Chosen, []int{0, 1}) {
		t.Errorf("level %s, clocks %v", g.Level, g.Chosen)
	}
}

// Each write fails in each way, once or several times: while the clock is set, while that is
// undone, and while it is released. The GPU is given back all the same.
func TestAWriteThatFailsLeavesNothingSet(t *testing.T) {
	for _, kind := range []amdgputest.Kind{mi300x, mi100} {
		k := amdgputest.New(t, kind)
		d := open(t, k, "")[0]
		for at := 1; ; at++ {
			failed := false
			for code, want := range map[syscall.Errno]error{
				syscall.EINVAL: nil, syscall.EPERM: nil, syscall.EACCES: gpu.ErrPermission, syscall.EBUSY: nil,
				syscall.ENODEV: gpu.ErrLost,
			} {
				failed = failWrites(t, k, d, at, 1, code, want) || failed
				failWrites(t, k, d, at, 3, code, nil)
			}
			if !failed {
				break
			}
		}
	}
}

// failWrites makes some writes fail, the first of them so many from now on, sets a clock and releases it.
func failWrites(
	t *testing.T, k *amdgputest.Kernel, d gpu.Device, at, times int, code syscall.Errno, want error,
) (failed bool) {
	t.Helper()
	c, err := d.Clocks()
	must(t, err)
	first := k.Writes() + at
	k.OnWrite = func(n int) error {
		if n < first || n >= first+times {
			return nil
		}
		failed = true
		return &os.PathError{Op: "write", Path: "file", Err: code}
	}
	setting := d.Set(gpu.CoreClock, gpu.Value(c.Core[0][3]))
	unset := errors.Is(setting, gpu.ErrPermission) || errors.Is(setting, gpu.ErrNotSupported)
	if unset && !k.GPUs[0].IsAsLoaded() {
		t.Errorf("write %d: %v says that nothing is set", at, setting)
	}
	if setting != nil && want != nil && !errors.Is(setting, want) {
		t.Errorf("%v is %v, want %v", code, setting, want)
	}
	releasing := d.Release(gpu.CoreClock)
	for range times {
		if releasing != nil {
			releasing = d.Release(gpu.CoreClock)
		}
	}
	if releasing != nil {
		t.Errorf("write %d, %v: never given back: %v", at, code, releasing)
	}
	wantAsAtFirst(t, k.GPUs[0])
	return failed
}

// errKilled ends a process in the middle of what it does.
var errKilled = errors.New("killed")

// A process dies before each of its writes, and another one gives back by the note alone.
func TestAProcessThatDiesAtAnyWriteLeavesTheGPUToTheNextOne(t *testing.T) {
	for _, kind := range []amdgputest.Kind{mi300x, mi210, mi100, navi31} {
		for at := 1; ; at++ {
			k, dir := amdgputest.New(t, kind), notes(t)
			k.OnWrite = func(n int) error {
				if n == at {
					panic(errKilled)
				}
				return nil
			}
			died := dies(func() {
				d := open(t, k, dir)[0]
				c, err := d.Clocks()
				must(t, err)
				must(t, d.Set(gpu.CoreClock, gpu.Value(c.Core[0][2])))
				must(t, d.Set(gpu.CoreClock, gpu.Value(c.Core[0][1])))
				must(t, d.Release(gpu.CoreClock))
			})
			again := amdgputest.Reopen(t, k)
			must(t, open(t, again, dir)[0].Release(gpu.CoreClock))
			wantAsAtFirst(t, again.GPUs[0])
			if !died {
				if at < 6 {
					t.Errorf("%s: only %d writes", kind, at)
				}
				break
			}
		}
	}
}

func dies(do func()) (died bool) {
	defer func() {
		if r := recover(); r != nil {
			died = true
			if err, ok := r.(error); !ok || !errors.Is(err, errKilled) {
				panic(r)
			}
		}
	}()
	do()
	return false
}

func TestANoteThatIsTornGivesTheDefaultsBack(t *testing.T) {
	k, dir := amdgputest.New(t, mi210), notes(t)
	d := open(t, k, dir)[0]
	must(t, d.Set(gpu.CoreClock, 900))
	name := filepath.Join(dir, d.Identity().UUID+".amdgpu")
	must(t, os.WriteFile(name, []byte(`{"uuid":"GPU-a0`), 0o600))
	must(t, d.Release(gpu.CoreClock))
	wantAsAtFirst(t, k.GPUs[0])
}

func TestANoteThatSomebodyElseCanWriteIsRefused(t *testing.T) {
	k, dir := amdgputest.New(t, mi210), notes(t)
	d := open(t, k, dir)[0]
	must(t, d.Set(gpu.CoreClock, 900))
	must(t, d.Release(gpu.CoreClock))
	must(t, os.Chmod(filepath.Join(dir, d.Identity().UUID+".amdgpu"), 0o666))
	if err := d.Set(gpu.CoreClock, 900); err == nil || !strings.Contains(err.Error(), "others may write") {
		t.Errorf("set: %v", err)
	}
	wantAsAtFirst(t, k.GPUs[0])
}

func TestAGPUThatGoesAndADriverThatIsReloaded(t *testing.T) {
	k, dir := amdgputest.New(t, mi300x, mi210), notes(t)
	devices := open(t, k, dir)
	must(t, devices[0].Set(gpu.CoreClock, 1000))
	k.GPUs[0].Unload(t)
	if _, err := devices[0].Read(); !errors.Is(err, gpu.ErrReloaded) {
		t.Errorf("reading after a reload: %v", err)
	}
	l, err := amdgpu.Open(amdgpu.Options{Sysfs: k, Notes: dir, Root: true, Driver: "load-2"})
	must(t, err)
	again, err := l.Devices()
	must(t, err)
	must(t, k.GPUs[0].Obey("power_dpm_force_performance_level", "high"))
	must(t, again[0].Release(gpu.CoreClock))
	if k.GPUs[0].Level != "high" {
		t.Error("what was noted before the reload was given back after it")
	}
	k.GPUs[1].Vanish(t)
	if _, err := devices[1].Read(); !errors.Is(err, gpu.ErrLost) {
		t.Errorf("reading of a GPU that went: %v", err)
	}
	if err := devices[1].Set(gpu.CoreClock, 1000); !errors.Is(err, gpu.ErrLost) {
		t.Errorf("setting a GPU that went: %v", err)
	}
	if left, err := l.Devices(); err != nil || len(left) != 1 {
		t.Errorf("%v, %v: want the one that is left", left, err)
	}
}

func TestErrorsThatPass(t *testing.T) {
	k := amdgputest.New(t, mi210)
	d := open(t, k, "")[0]
	k.Fail("gpu_busy_percent", false, syscall.EPERM, -1) // in a reset
	r, err := d.Read()
	if err != nil || r.Utilisation != 0.97 || r.Power != 170 { // of the table
		t.Errorf("reading %+v, %v", r, err)
	}
	for _, name := range []string{"gpu_metrics", "_average", "_input", "_used", "_total", "_cap"} {
		k.Fail(name, false, syscall.EPERM, -1)
	}
	_, err = d.Read()
	if err == nil || errors.Is(err, gpu.ErrPermission) || errors.Is(err, gpu.ErrLost) {
		t.Errorf("reading in a reset, as root: %v", err)
	}
	k.Heal()
	// A GPU that is opened in a reset would seem to have nothing that could be given back.
	for _, name := range []string{"pp_dpm_sclk", "pp_dpm_mclk", "pp_od_clk_voltage", "power1_cap_min"} {
		k.Fail(name, false, syscall.EPERM, 1)
		l, err := amdgpu.Open(amdgpu.Options{Sysfs: k, Root: true})
		must(t, err)
		if found, err := l.Devices(); err == nil || found[0] != nil {
			t.Errorf("%s: opened in a reset: %v, %v", name, found, err)
		}
	}
	if _, err = d.Read(); err != nil {
		t.Errorf("reading after it: %v", err)
	}
}

func TestGPUsThatCantBeToldApartAreLeftOut(t *testing.T) {
	k := amdgputest.New(t, mi210, mi210, mi210, mi210, mi210)
	k.GPUs[0].Drop(t, "unique_id")
	k.GPUs[1].Put(t, "unique_id", "0000000000000000\n")
	k.GPUs[3].Put(t, "unique_id", k.GPUs[2].Unique+"\n")
	l, err := amdgpu.Open(amdgpu.Options{Sysfs: k})
	must(t, err)
	devices, err := l.Devices()
	for i, want := range []bool{false, false, false, false, true} {
		if got := devices[i] != nil; got != want {
			t.Errorf("GPU %d is there: %v", i, got)
		}
	}
	if err == nil || strings.Count(err.Error(), "no unique_id") != 2 ||
		!strings.Contains(err.Error(), "its unique_id is that of 0000:c5:00.0, too") {
		t.Errorf("%v", err)
	}
}

func TestOthersGPUsAndOthersDriversAreNoAMDGPUs(t *testing.T) {
	k := amdgputest.New(t, mi210, mi210, mi300x)
	k.GPUs[0].Put(t, "vendor", "0x10de\n")
	driver := filepath.Join(k.Root, "devices", k.GPUs[1].Address, "driver")
	must(t, errors.Join(os.Remove(driver), os.Symlink("../../bus/pci/drivers/vfio-pci", driver)))
	devices := open(t, k, "")
	if len(devices) != 1 || devices[0].Identity().Minor != 130 {
		t.Errorf("%v", devices)
	}
	_, err := amdgpu.Open(amdgpu.Options{Sysfs: amdgpu.Folder(t.TempDir())})
	if !errors.Is(err, gpu.ErrNotSupported) || !strings.Contains(err.Error(), "amdgpu") {
		t.Errorf("without a driver: %v", err)
	}
}

func TestAFolderIsReadAsItIsOnDisk(t *testing.T) {
	k := amdgputest.New(t, mi300x, navi31)
	l, err := amdgpu.Open(amdgpu.Options{Sysfs: amdgpu.Folder(k.Root)})
	must(t, err)
	devices, err := l.Devices()
	must(t, err)
	if len(devices) != 2 || devices[1].Identity() != open(t, k, "")[1].Identity() {
		t.Errorf("%v", devices)
	}
	r, err := devices[1].Read()
	if err != nil || r.Power != 262 || r.Core != 2600 {
		t.Errorf("reading %+v, %v", r, err)
	}
	must(t, amdgpu.Folder(k.Root).WriteFile("devices/"+k.GPUs[0].Address+"/device", []byte("0x1\n")))
	if err := amdgpu.Folder(k.Root).WriteFile("none", nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
}

func TestListsOfClocksThatArentOnes(t *testing.T) {
	for _, text := range []string{"", "unavailable", "0: fast", "0: 500Mhz\n1: 99999999999999999999Mhz"} {
		k := amdgputest.New(t, mi100)
		k.GPUs[0].Put(t, "pp_dpm_sclk", text+"\n")
		d := open(t, k, "")[0]
		if d.Capability().Can(gpu.CoreClock) {
			t.Errorf("%q: the core clock can be set", text)
		}
		if c, err := d.Clocks(); err == nil {
			t.Errorf("%q: clocks %v", text, c)
		}
		if _, err := d.Read(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
