// Package amdgputest makes folders that look and behave like those of the amdgpu driver below
// /sys, for tests: limits of clocks are staged until they are committed, they need the level "manual", and
// calls fail as the kernel's do. What is in it is from the kernel's source; no real GPU was asked.
package amdgputest

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Kind is a kind of GPU, by what the driver offers of it.
type Kind string

// The kinds.
const (
	MI300X Kind = "MI300X" // limits of both clocks
	MI210  Kind = "MI210"  // limits of the core clock, in the older form
	MI100  Kind = "MI100"  // a choice of levels
	Navi31 Kind = "Navi31" // limits of both clocks with a range beyond them, no counter
)

// model is what there is of a kind.
type model struct {
	device, product string
	core            [2]int
	cores           []int // levels; nil: limits
	mems            []int
	memWritable     bool
	limit           int                   // W
	metrics         func(v values) []byte // nil: it has none
}

var models = map[Kind]model{
	MI300X: {
		device: "0x74a1", product: "AMD Instinct MI300X OAM", core: [2]int{500, 2100},
		mems: []int{900, 1100, 1200, 1300}, memWritable: true, limit: 750, metrics: metrics15,
	},
	MI210: {
		device: "0x740f", core: [2]int{500, 1700}, mems: []int{400, 700, 1200, 1600}, limit: 300,
		metrics: metrics13,
	},
	MI100: {
		device: "0x738c", product: "Arcturus GL-XL", cores: []int{302, 495, 731, 962, 1029, 1087, 1502},
		mems: []int{1200}, limit: 290, metrics: metrics13,
	},
	Navi31: {
		device: "0x744c", core: [2]int{500, 2600}, mems: []int{96, 456, 772, 1249}, memWritable: true,
		limit: 303,
	},
}

// Kernel is a folder like /sys with GPUs. It is an amdgpu.Sysfs.
type Kernel struct {
	Root string
	GPUs []*GPU

	mu     sync.Mutex
	faults []fault
	writes int
	// OnWrite, if set, is called before each write with its number, from 1 on; its error is the
	// write's.
	OnWrite func(n int) error
	// Deaf has GPUs run at their highest clock whatever the limit.
	Deaf bool
}

type fault struct {
	suffix string
	write  bool
	err    syscall.Errno
	left   int // times; -1: always
}

// GPU is one of them. Its exported fields are in a file: they outlive the process.
type GPU struct {
	Kind    Kind
	Address string // PCI
	Index   int
	Unique  string
	Level   string
	// The highest clocks that are in force, and the lowest core clock.
	Lo, Hi, Mem int
	// Staged are the limits that were written and not yet committed; the firmware keeps them after that.
	Staged [3]int
	Chosen []int // levels of the core clock; nil: all
	Cap    int   // W
	Began  time.Time
	Sensor int // the number of the sensors' folder

	root     string
	rendered map[string]string // by file
}

// New makes a folder with GPUs of some kinds, in the order of their PCI addresses.
func New(t testing.TB, kinds ...Kind) *Kernel {
	t.Helper()
	k := &Kernel{Root: t.TempDir()}
	for i, kind := range kinds {
		m := models[kind]
		g := &GPU{
			Kind: kind, Address: fmt.Sprintf("0000:%02x:00.0", 0xc1+2*i), Index: i,
			Unique: fmt.Sprintf("%016x", 0xa0b1c2d3e4f50000+uint64(i)), Cap: m.limit, root: k.Root,
			Began: time.Now().Add(-time.Hour), Sensor: i + 3,
		}
		g.reset()
		k.GPUs = append(k.GPUs, g)
		g.make(t)
	}
	return k
}

// Open is a kernel that another process made.
func Open(root string) (*Kernel, error) {
	k := &Kernel{Root: root}
	files, err := filepath.Glob(filepath.Join(root, "devices", "*", "state.json"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		g := &GPU{root: root}
		if err := json.Unmarshal(data, g); err != nil {
			return nil, err
		}
		k.GPUs = append(k.GPUs, g)
	}
	return k, nil
}

// Reopen is the same kernel for another process.
func Reopen(t testing.TB, k *Kernel) *Kernel {
	t.Helper()
	again, err := Open(k.Root)
	must(t, err)
	return again
}

// reset is what a load of the driver begins with.
func (g *GPU) reset() {
	m := models[g.Kind]
	g.Level, g.Lo, g.Hi, g.Mem = "auto", m.core[0], m.core[1], m.mems[len(m.mems)-1]
	g.Staged, g.Chosen = [3]int{}, nil
	if m.cores != nil {
		g.Lo, g.Hi = m.cores[0], m.cores[len(m.cores)-1]
	}
}

// IsAsLoaded reports whether nothing is limited.
func (g *GPU) IsAsLoaded() bool {
	fresh := GPU{Kind: g.Kind}
	fresh.reset()
	return g.Level == fresh.Level && g.Lo == fresh.Lo && g.Hi == fresh.Hi && g.Mem == fresh.Mem
}

func (g *GPU) folder() string { return filepath.Join(g.root, "devices", g.Address) }

// make makes the GPU's folders and links.
func (g *GPU) make(t testing.TB) {
	t.Helper()
	card := fmt.Sprintf("card%d", g.Index)
	render := 128 + g.Index
	for _, dir := range []string{
		"class/drm/" + card, "bus/pci/devices", "module/amdgpu",
		g.in("drm/" + card), g.in(fmt.Sprintf("drm/renderD%d", render)), g.in(g.hwmon()),
		"class/kfd/kfd/proc", fmt.Sprintf("class/kfd/kfd/topology/nodes/%d", g.Index+1),
	} {
		must(t, os.MkdirAll(filepath.Join(g.root, dir), 0o755))
	}
	m := models[g.Kind]
	for name, text := range map[string]string{
		g.in("vendor"): "0x1002\n", g.in("device"): m.device + "\n", g.in("unique_id"): g.Unique + "\n",
		g.in("product_name"):              m.product + "\n",
		g.in("mem_info_vram_total"):       "68702699520\n",
		g.in("mem_info_vram_used"):        "10960896\n",
		g.in("current_compute_partition"): "SPX\n",
		g.in(g.hwmon() + "/name"):         "amdgpu\n",
		fmt.Sprintf("class/kfd/kfd/topology/nodes/%d/properties", g.Index+1): fmt.Sprintf(
			"cpu_cores_count 0\nsimd_count 416\ndrm_render_minor %d\n", render),
		fmt.Sprintf("class/kfd/kfd/topology/nodes/%d/gpu_id", g.Index+1): g.kfd() + "\n",
	} {
		must(t, os.WriteFile(filepath.Join(g.root, name), []byte(text), 0o644))
	}
	if g.Kind != MI300X {
		must(t, os.Remove(filepath.Join(g.folder(), "current_compute_partition")))
	}
	for link, to := range map[string]string{
		"class/drm/" + card + "/device": "../../../devices/" + g.Address,
		g.in("driver"):                  "../../bus/pci/drivers/amdgpu",
		"bus/pci/devices/" + g.Address:  "../../../devices/" + g.Address,
	} {
		must(t, os.Symlink(to, filepath.Join(g.root, link)))
	}
	must(t, g.render())
}

func (g *GPU) in(name string) string { return filepath.Join("devices", g.Address, name) }
func (g *GPU) hwmon() string         { return fmt.Sprintf("hwmon/hwmon%d", g.Sensor) }
func (g *GPU) kfd() string           { return strconv.Itoa(50000 + g.Index) }

// Run makes a process compute on the GPU.
func (g *GPU) Run(t testing.TB, pid, bytes int) {
	t.Helper()
	dir := filepath.Join(g.root, "class/kfd/kfd/proc", strconv.Itoa(pid))
	must(t, os.MkdirAll(dir, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "vram_"+g.kfd()), []byte(strconv.Itoa(bytes)+"\n"), 0o644))
}

// Put replaces one of the GPU's files.
func (g *GPU) Put(t testing.TB, name, text string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(g.folder(), name), []byte(text), 0o644))
}

// Drop removes one of its files.
func (g *GPU) Drop(t testing.TB, name string) {
	t.Helper()
	must(t, os.Remove(filepath.Join(g.folder(), name)))
}

// Vanish takes the GPU off the bus.
func (g *GPU) Vanish(t testing.TB) {
	t.Helper()
	must(t, os.Remove(filepath.Join(g.root, "bus/pci/devices", g.Address)))
	must(t, os.RemoveAll(filepath.Join(g.root, fmt.Sprintf("class/drm/card%d", g.Index))))
}

// Unload is what a reload of the driver does to handles: the sensors' folder has another name.
func (g *GPU) Unload(t testing.TB) {
	t.Helper()
	g.reset()
	old := filepath.Join(g.folder(), g.hwmon())
	g.Sensor += 10
	g.rendered = nil
	must(t, os.Rename(old, filepath.Join(g.folder(), g.hwmon())))
	must(t, g.save())
}

// top is the clock at which the core runs: the GPU is at work always.
func (g *GPU) top() int {
	m := models[g.Kind]
	switch {
	case g.Level == "low":
		return g.Lo
	case m.cores != nil && g.Level == "manual" && g.Chosen != nil:
		return m.cores[slices.Max(g.Chosen)]
	}
	return g.Hi
}

// render writes the files whose contents follow from the GPU's state.
func (g *GPU) render() error {
	m := models[g.Kind]
	files := map[string]string{
		"power_dpm_force_performance_level": g.Level + "\n",
		"pp_dpm_mclk":                       list(m.mems, g.Mem),
		g.hwmon() + "/power1_cap":           fmt.Sprintf("%d000000\n", g.Cap),
		g.hwmon() + "/power1_average":       fmt.Sprintf("%d000000\n", g.watts()),
		g.hwmon() + "/freq1_input":          fmt.Sprintf("%d000000\n", g.top()),
		g.hwmon() + "/freq2_input":          fmt.Sprintf("%d000000\n", g.Mem),
		"gpu_busy_percent":                  "97\n",
	}
	switch {
	case m.cores != nil:
		files["pp_dpm_sclk"] = list(m.cores, g.top())
	case g.Kind == MI210: // as drivers until 2024
		limits := list([]int{g.Lo, (g.Lo + g.Hi) / 2, g.Hi}, (g.Lo+g.Hi)/2)
		files["pp_dpm_sclk"] = limits
		files["pp_od_clk_voltage"] = "GFXCLK:\n" + limits + "MCLK:\n" + list(m.mems, g.Mem)
	default:
		files["pp_dpm_sclk"] = "S: 132Mhz *\n" + list([]int{g.Lo, g.Hi}, 0)
		const limits = "OD_SCLK:\n0: %dMhz\n1: %dMhz\nOD_MCLK:\n0: %dMhz\n1: %dMhz\n"
		files["pp_od_clk_voltage"] = fmt.Sprintf(limits, g.Lo, g.Hi, m.mems[0], g.Mem)
	}
	if g.Kind == Navi31 {
		files["pp_od_clk_voltage"] += "OD_VDDGFX_OFFSET:\n0mV\nOD_RANGE:\nSCLK:     500Mhz       3100Mhz\n" +
			"MCLK:      97Mhz       1500Mhz\nVDDGFX_OFFSET: -450mv 0mv\n"
	}
	if g.rendered == nil {
		g.rendered = make(map[string]string)
	}
	for name, text := range files {
		if g.rendered[name] == text {
			continue
		}
		g.rendered[name] = text
		mode := os.FileMode(0o644)
		if name == "pp_dpm_mclk" && !m.memWritable {
			mode = 0o444
		}
		path := filepath.Join(g.folder(), name)
		next := path + ".next"
		if err := errors.Join(os.WriteFile(next, []byte(text), mode), os.Rename(next, path)); err != nil {
			return err
		}
	}
	return g.save()
}

func (g *GPU) save() error {
	data, err := json.Marshal(g)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(g.folder(), "state.json"), data, 0o644)
}

// watts is what the GPU draws: less at lower clocks.
func (g *GPU) watts() int {
	return g.Cap * g.top() / 3000
}

func list(clocks []int, now int) string {
	var b strings.Builder
	for i, f := range clocks {
		star := ""
		if f == now {
			star = "*"
		}
		fmt.Fprintf(&b, "%d: %dMhz %s\n", i, f, star)
	}
	return b.String()
}

// Fail makes calls fail whose file ends so: reads, or writes; so often, or always (-1).
func (k *Kernel) Fail(suffix string, write bool, err syscall.Errno, times int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.faults = append(k.faults, fault{suffix, write, err, times})
}

// Heal forgets all faults.
func (k *Kernel) Heal() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.faults = nil
}

// Writes is how many writes there were.
func (k *Kernel) Writes() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.writes
}

func (k *Kernel) failure(name string, write bool) error {
	for i := range k.faults {
		f := &k.faults[i]
		if f.write == write && strings.HasSuffix(name, f.suffix) && f.left != 0 {
			f.left--
			return &os.PathError{Op: "call", Path: name, Err: f.err}
		}
	}
	return nil
}

// ReadFile is part of amdgpu.Sysfs.
func (k *Kernel) ReadFile(name string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.failure(name, false); err != nil {
		return nil, err
	}
	if g := k.gpu(name); g != nil && filepath.Base(name) == "gpu_metrics" {
		path := filepath.Join(g.folder(), "gpu_metrics") // if a test put one there
		if data, err := os.ReadFile(path); err == nil {
			return data, nil
		}
		ran := time.Since(g.Began).Seconds() * float64(g.watts())
		if table := models[g.Kind].metrics; table != nil {
			return table(values{g.watts(), g.Lo, g.top(), g.Mem, uint64(ran * (1 << 16))}), nil
		}
	}
	if g := k.gpu(name); g != nil && k.Deaf && filepath.Base(name) == "freq1_input" {
		return fmt.Appendf(nil, "%d000000\n", models[g.Kind].core[1]), nil
	}
	return os.ReadFile(filepath.Join(k.Root, name))
}

// gpu is the GPU that a file is of, nil if it is off the bus.
func (k *Kernel) gpu(name string) *GPU {
	for _, g := range k.GPUs {
		if strings.HasPrefix(name, "bus/pci/devices/"+g.Address+"/") {
			if _, err := os.Stat(filepath.Join(k.Root, "bus/pci/devices", g.Address)); err == nil {
				return g
			}
		}
	}
	return nil
}

// WriteFile is part of amdgpu.Sysfs: a command for the kernel.
func (k *Kernel) WriteFile(name string, data []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.writes++
	if k.OnWrite != nil {
		if err := k.OnWrite(k.writes); err != nil {
			return err
		}
	}
	err := k.failure(name, true)
	g := k.gpu(name)
	if err == nil && g == nil {
		err = &os.PathError{Op: "open", Path: name, Err: syscall.ENOENT}
	}
	if err != nil {
		return err
	}
	if err := g.obey(filepath.Base(name), strings.TrimSpace(string(data))); err != nil {
		return &os.PathError{Op: "write", Path: name, Err: err}
	}
	return g.render()
}

// Obey does what an administrator writes.
func (g *GPU) Obey(file, command string) error {
	if err := g.obey(file, command); err != nil {
		return err
	}
	return g.render()
}

// obey does what a command says.
func (g *GPU) obey(file, command string) error {
	m := models[g.Kind]
	switch file {
	case "power_dpm_force_performance_level":
		return g.force(command)
	case "pp_dpm_sclk":
		if m.cores == nil || g.Level != "manual" {
			return syscall.EINVAL
		}
		var chosen []int
		for word := range strings.FieldsSeq(command) {
			i, err := strconv.Atoi(word)
			if err != nil || i >= len(m.cores) {
				return syscall.EINVAL
			}
			chosen = append(chosen, i)
		}
		g.Chosen = chosen
		return nil
	case "pp_od_clk_voltage":
		if m.cores != nil || g.Level != "manual" && g.Level != "perf_determinism" {
			return syscall.EINVAL
		}
		return g.edit(strings.Fields(command))
	}
	return syscall.EACCES
}

// force changes the performance level.
func (g *GPU) force(level string) error {
	m := models[g.Kind]
	switch level {
	case "auto", "low", "high", "profile_standard", "profile_peak":
		g.Mem, g.Chosen = m.mems[len(m.mems)-1], nil
		if m.cores == nil {
			g.Lo, g.Hi = m.core[0], m.core[1]
		}
	case "manual":
		if g.Level == "perf_determinism" {
			g.Hi = m.core[1]
		}
	case "perf_determinism":
		if m.cores != nil || g.Kind == Navi31 {
			return syscall.EINVAL
		}
	default:
		return syscall.EINVAL
	}
	g.Level = level // what is staged stays, as in kernels until 2025
	return nil
}

// edit stages a limit or commits what is staged.
func (g *GPU) edit(words []string) error {
	m := models[g.Kind]
	top := m.mems[len(m.mems)-1]
	switch {
	case len(words) == 1 && words[0] == "r":
		g.Lo, g.Hi, g.Mem = m.core[0], m.core[1], top
		return nil
	case len(words) == 1 && words[0] == "c":
		return g.commit()
	case len(words) != 3:
		return syscall.EINVAL
	}
	f, err := strconv.Atoi(words[2])
	switch what := words[0] + words[1]; {
	case err != nil:
		return syscall.EINVAL
	case what == "s0" && f >= m.core[0]:
		g.Staged[0] = f
	case what == "s1" && f <= m.core[1]:
		g.Staged[1] = f
	case what == "m1" && f <= top && m.memWritable:
		g.Staged[2] = f
	default:
		return syscall.EINVAL
	}
	return nil
}

func (g *GPU) commit() error {
	m := models[g.Kind]
	if g.Staged[0] == 0 {
		g.Staged[0] = g.Lo
	}
	if g.Staged[1] == 0 {
		g.Staged[1] = g.Hi
	}
	if g.Level == "perf_determinism" {
		if g.Staged[1] < m.core[0] {
			return syscall.EINVAL
		}
		g.Lo, g.Hi = m.core[0], g.Staged[1]
		return nil
	}
	if g.Staged[0] >= g.Staged[1] {
		return syscall.EINVAL
	}
	g.Lo, g.Hi = g.Staged[0], g.Staged[1]
	if g.Staged[2] != 0 {
		g.Mem = g.Staged[2]
	}
	return nil
}

// Names is part of amdgpu.Sysfs.
func (k *Kernel) Names(folder string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(k.Root, folder))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Readlink is part of amdgpu.Sysfs.
func (k *Kernel) Readlink(name string) (string, error) {
	return os.Readlink(filepath.Join(k.Root, name))
}

// Writable is part of amdgpu.Sysfs.
func (k *Kernel) Writable(name string) bool {
	info, err := os.Stat(filepath.Join(k.Root, name))
	return err == nil && info.Mode().Perm()&0o222 != 0
}

// table is a table of metrics in which the firmware tells nothing.
func table(size int, content byte) []byte {
	t := make([]byte, size)
	for i := range t {
		t[i] = 0xff
	}
	binary.NativeEndian.PutUint16(t, uint16(min(size, math.MaxUint16))) //nolint:gosec // bounded
	t[2], t[3] = 1, content
	return t
}

// values are what a table of metrics tells.
type values struct {
	watts, lo, top, mem int
	energy              uint64
}

// metrics13 is version 1.3.
func metrics13(v values) []byte {
	t := table(120, 3)
	short := func(at, n int) { binary.NativeEndian.PutUint16(t[at:], uint16(n)) } //nolint:gosec // clocks
	short(22, v.watts)
	short(16, 97)
	short(54, v.top)
	short(58, v.mem)
	binary.NativeEndian.PutUint64(t[24:], v.energy)
	binary.NativeEndian.PutUint64(t[112:], 1<<1|1<<36) // PPT1, hotspot
	return t
}

// metrics15 is version 1.5, of a GPU of which three parts have a clock.
func metrics15(v values) []byte {
	t := table(360, 5)
	short := func(at, n int) { binary.NativeEndian.PutUint16(t[at:], uint16(n)) } //nolint:gosec // clocks
	short(10, v.watts)
	short(12, 97)
	short(312, v.lo)
	short(314, v.top)
	short(316, v.lo)
	short(352, v.mem)
	binary.NativeEndian.PutUint64(t[88:], v.energy)
	binary.NativeEndian.PutUint32(t[104:], 0)
	return t
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
