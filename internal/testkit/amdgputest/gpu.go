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

// reset is what a load of the driver begins with.
func (g *GPU) reset() {
	m := models[g.Kind]
	g.Level, g.Lo, g.Hi, g.Mem = "auto", m.core[0], m.core[1], m.mems[len(m.mems)-1]
	g.Staged, g.Chosen, g.Cap = [3]int{}, nil, m.limit
	if m.cores != nil {
		g.Lo, g.Hi = m.cores[0], m.cores[len(m.cores)-1]
	}
}

// IsAsLoaded reports whether nothing is limited.
func (g *GPU) IsAsLoaded() bool {
	fresh := GPU{Kind: g.Kind}
	fresh.reset()
	return g.Level == fresh.Level && g.Lo == fresh.Lo && g.Hi == fresh.Hi && g.Mem == fresh.Mem &&
		g.Cap == fresh.Cap
}

func (g *GPU) folder() string { return filepath.Join(g.root, "devices", g.Address) }

// make makes the GPU's folders and links.
func (g *GPU) make(tb testing.TB) {
	tb.Helper()
	card := fmt.Sprintf("card%d", g.Index)
	render := 128 + g.Index
	for _, dir := range []string{
		"class/drm/" + card, "bus/pci/devices", "module/amdgpu",
		g.in("drm/" + card), g.in(fmt.Sprintf("drm/renderD%d", render)), g.in(g.hwmon()),
		"class/kfd/kfd/proc", fmt.Sprintf("class/kfd/kfd/topology/nodes/%d", g.Index+1),
	} {
		must(tb, os.MkdirAll(filepath.Join(g.root, dir), 0o755))
	}
	m := models[g.Kind]
	for name, text := range map[string]string{
		g.in("vendor"): "0x1002\n", g.in("device"): m.device + "\n", g.in("unique_id"): g.Unique + "\n",
		g.in("product_name"):                    m.product + "\n",
		g.in("mem_info_vram_total"):             "68702699520\n",
		g.in("mem_info_vram_used"):              "10960896\n",
		g.in("current_compute_partition"):       "SPX\n",
		g.in(g.hwmon() + "/name"):               "amdgpu\n",
		g.in(g.hwmon() + "/power1_cap_min"):     "0\n",
		g.in(g.hwmon() + "/power1_cap_default"): fmt.Sprintf("%d000000\n", m.limit),
		g.in(g.hwmon() + "/power1_cap_max"):     fmt.Sprintf("%d000000\n", m.limit),
		fmt.Sprintf("class/kfd/kfd/topology/nodes/%d/properties", g.Index+1): fmt.Sprintf(
			"cpu_cores_count 0\nsimd_count 416\ndrm_render_minor %d\n", render),
		fmt.Sprintf("class/kfd/kfd/topology/nodes/%d/gpu_id", g.Index+1): g.kfd() + "\n",
	} {
		must(tb, os.WriteFile(filepath.Join(g.root, name), []byte(text), 0o644))
	}
	if g.Kind != MI300X {
		must(tb, os.Remove(filepath.Join(g.folder(), "current_compute_partition")))
	}
	for link, to := range map[string]string{
		"class/drm/" + card + "/device": "../../../devices/" + g.Address,
		g.in("driver"):                  "../../bus/pci/drivers/amdgpu",
		"bus/pci/devices/" + g.Address:  "../../../devices/" + g.Address,
	} {
		must(tb, os.Symlink(to, filepath.Join(g.root, link)))
	}
	must(tb, g.render())
}

func (g *GPU) in(name string) string { return filepath.Join("devices", g.Address, name) }
func (g *GPU) hwmon() string         { return fmt.Sprintf("hwmon/hwmon%d", g.Sensor) }
func (g *GPU) kfd() string           { return strconv.Itoa(50000 + g.Index) }

// Run makes a process compute on the GPU.
func (g *GPU) Run(tb testing.TB, pid, bytes int) {
	tb.Helper()
	dir := filepath.Join(g.root, "class/kfd/kfd/proc", strconv.Itoa(pid))
	must(tb, os.MkdirAll(dir, 0o755))
	must(tb, os.WriteFile(filepath.Join(dir, "vram_"+g.kfd()), []byte(strconv.Itoa(bytes)+"\n"), 0o644))
}

// Put replaces one of the GPU's files.
func (g *GPU) Put(tb testing.TB, name, text string) {
	tb.Helper()
	must(tb, os.WriteFile(filepath.Join(g.folder(), name), []byte(text), 0o644))
}

// Drop removes one of its files.
func (g *GPU) Drop(tb testing.TB, name string) {
	tb.Helper()
	must(tb, os.Remove(filepath.Join(g.folder(), name)))
}

// Vanish takes the GPU off the bus.
func (g *GPU) Vanish(tb testing.TB) {
	tb.Helper()
	must(tb, os.Remove(filepath.Join(g.root, "bus/pci/devices", g.Address)))
	must(tb, os.RemoveAll(filepath.Join(g.root, fmt.Sprintf("class/drm/card%d", g.Index))))
}

// Unload is what a reload of the driver does to handles: the sensors' folder has another name.
func (g *GPU) Unload(tb testing.TB) {
	tb.Helper()
	g.reset()
	old := filepath.Join(g.folder(), g.hwmon())
	g.Sensor += 10
	g.rendered = nil
	must(tb, os.Rename(old, filepath.Join(g.folder(), g.hwmon())))
	must(tb, g.save())
}

// top returns the clock at which the core runs: the GPU is at work always.
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

// watts returns what the GPU draws: less at lower clocks.
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

// load takes over what other processes did to the GPU.
func (g *GPU) load() error {
	data, err := os.ReadFile(filepath.Join(g.folder(), "state.json"))
	if err != nil {
		return err
	}
	was, err := json.Marshal(g)
	if err != nil || string(was) == string(data) {
		return err
	}
	g.rendered = nil
	*g = GPU{root: g.root}
	return json.Unmarshal(data, g)
}

// Obey does what an administrator writes.
func (g *GPU) Obey(file, command string) error {
	if err := g.load(); err != nil {
		return err
	}
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
	case "power1_cap":
		microwatts, err := strconv.Atoi(command)
		if err != nil || microwatts/1e6 > m.limit {
			return syscall.EINVAL
		}
		g.Cap = microwatts / 1e6
		return nil
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

// table returns a table of metrics in which the firmware tells nothing.
func table(size int, content byte) []byte {
	t := make([]byte, size)
	for i := range t {
		t[i] = 0xff
	}
	binary.NativeEndian.PutUint16(t, uint16(min(size, math.MaxUint16)))
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
	short := func(at, n int) { binary.NativeEndian.PutUint16(t[at:], uint16(n)) }
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
	short := func(at, n int) { binary.NativeEndian.PutUint16(t[at:], uint16(n)) }
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
