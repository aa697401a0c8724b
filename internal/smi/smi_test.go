package smi

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
)

func known() *Options { return &Options{Known: config.BuiltinProfiles()} }

// printed is a GPU of which the tests print what nvidia-smi would.
type printed struct {
	name, architecture string
	mems               []int         // descending
	core               map[int][]int // by memory clock, descending
	limits             [3]int
	boost              string
	draw               string
	idle               bool
}

func drawPrinted(t *rapid.T) *printed {
	p := &printed{
		name:         "NVIDIA Z" + rapid.StringMatching(`[1-9][0-9]{2}(X| Ada Generation|-SXM9-96GB)?`).Draw(t, "name"),
		architecture: rapid.SampledFrom([]string{"Pascal", "Volta", "Hopper"}).Draw(t, "architecture"),
		core:         make(map[int][]int), boost: "N/A", draw: "N/A",
	}
	p.mems = rapid.SliceOfNDistinct(rapid.IntRange(100, 20000), 1, 4, rapid.ID).Draw(t, "mems")
	slices.SortFunc(p.mems, func(a, b int) int { return b - a })
	for _, mem := range p.mems {
		core := rapid.SliceOfNDistinct(rapid.IntRange(100, 4000), 1, 30, rapid.ID).Draw(t, "core")
		slices.SortFunc(core, func(a, b int) int { return b - a })
		p.core[mem] = core
	}
	least := rapid.IntRange(50, 300).Draw(t, "least")
	p.limits = [3]int{least, least + 100, least + 150}
	if p.idle = rapid.Bool().Draw(t, "idle"); p.idle {
		p.draw = "21.60 W"
	}
	return p
}

func (p *printed) text(bus string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "GPU %s\n    Product Name                          : %s\n", bus, p.name)
	fmt.Fprintf(&b, "    Product Architecture : %s\n", p.architecture)
	fmt.Fprintf(&b, "    Clocks Event Reasons\n        Idle : %s\n", p.idleText())
	fmt.Fprintf(&b, "    GPU Power Readings\n        Power Draw : %s\n        Default Power Limit : %d.00 W\n"+
		"        Min Power Limit : %d.00 W\n        Max Power Limit : %d.00 W\n", p.draw, p.limits[1], p.limits[0],
		p.limits[2])
	b.WriteString("    Module Power Readings\n        Power Draw : N/A\n        Max Power Limit : N/A\n")
	fmt.Fprintf(&b, "    Clocks\n        Graphics : 210 MHz\n        Memory : 405 MHz\n"+
		"    Max Customer Boost Clocks\n        Graphics : %s\n", p.boost)
	return b.String()
}

func (p *printed) idleText() string {
	if p.idle {
		return "Active"
	}
	return "Not Active"
}

// tag returns an element of nvidia-smi -q -x with the elements or the text in it.
func tag(name string, inner ...string) string {
	return "<" + name + ">" + strings.Join(inner, "") + "</" + name + ">\n"
}

func (p *printed) clocksText(bus string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "GPU %s\n    Supported Clocks\n", bus)
	for _, mem := range p.mems {
		fmt.Fprintf(&b, "        Memory                            : %d MHz\n", mem)
		for _, core := range p.core[mem] {
			fmt.Fprintf(&b, "            Graphics                      : %d MHz\n", core)
		}
	}
	return b.String()
}

func (p *printed) xml(bus string) string {
	watts := func(name string, w int) string { return tag(name, fmt.Sprintf("%d.00 W", w)) }
	tables := make([]string, 0, len(p.mems))
	for _, mem := range p.mems {
		table := make([]string, 1, 1+len(p.core[mem]))
		table[0] = tag("value", fmt.Sprintf("%d MHz", mem))
		for _, core := range p.core[mem] {
			table = append(table, tag("supported_graphics_clock", fmt.Sprintf("%d MHz", core)))
		}
		tables = append(tables, tag("supported_mem_clock", table...))
	}
	return fmt.Sprintf("<gpu id=%q>", bus) + tag("product_name", p.name) +
		tag("product_architecture", p.architecture) +
		tag("clocks_event_reasons", tag("clocks_event_reason_gpu_idle", p.idleText())) +
		tag("gpu_power_readings", tag("power_draw", p.draw), watts("default_power_limit", p.limits[1]),
			watts("min_power_limit", p.limits[0]), watts("max_power_limit", p.limits[2])) +
		tag("max_customer_boost_clocks", tag("graphics_clock", p.boost)) +
		tag("supported_clocks", tables...) + "</gpu>"
}

// Whatever a board's table, its profile has exactly these clocks, as text and as XML, and reads back.
func TestATableIsWhatTheDriverListsAndReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPrinted(t)
		gpus := rapid.IntRange(1, 3).Draw(t, "gpus")
		var all, clocks, asXML strings.Builder
		for i := range gpus {
			bus := fmt.Sprintf("00000000:%02X:00.0", 10+i)
			all.WriteString(p.text(bus))
			clocks.WriteString(p.clocksText(bus))
			asXML.WriteString(p.xml(bus))
		}
		fromText := p.check(t, all.String()+clocks.String(), gpus)
		fromXML := p.check(t, "<?xml version=\"1.0\" ?>\n"+tag("nvidia_smi_log", asXML.String()), gpus)
		if fromText != fromXML {
			t.Fatalf("as text\n%s\nas XML\n%s", fromText, fromXML)
		}
	})
}

// check reads an output and compares what reads back from its table with what was printed.
func (p *printed) check(t *rapid.T, output string, gpus int) string {
	models, err := Read(strings.NewReader(output), "f", known())
	if err != nil || len(models) != 1 || models[0].GPUs != gpus {
		t.Fatalf("%+v, %v, want one model of %d GPUs", models, err, gpus)
	}
	text := Text(models)
	again, err := config.ReadProfiles(strings.NewReader(text), "again.toml")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	found := again.Find(p.name)
	if found == nil {
		t.Fatalf("%s isn't found in\n%s", p.name, text)
	}
	want, got := make(map[dvfsmodel.Setting]bool), make(map[dvfsmodel.Setting]bool)
	for mem, list := range p.core {
		for _, core := range list {
			want[dvfsmodel.Setting{Core: dvfsmodel.MHz(core), Mem: dvfsmodel.MHz(mem)}] = true
		}
	}
	for _, pair := range found.SupportedPairs() {
		got[pair] = true
	}
	if !maps.Equal(got, want) {
		t.Fatalf("clocks %v, want %v", got, want)
	}
	limit := config.PowerLimit{
		Min: dvfsmodel.Watt(p.limits[0]), Default: dvfsmodel.Watt(p.limits[1]), Max: dvfsmodel.Watt(p.limits[2]),
	}
	if found.PowerLimit != limit {
		t.Fatalf("limits %v, want %v", found.PowerLimit, limit)
	}
	if measured := !slices.Contains(found.Estimate, "idle_w"); measured != p.idle {
		t.Fatalf("idle power measured: %v, the GPU was idle: %v", measured, p.idle)
	}
	return text
}

var placed = regexp.MustCompile(`^f(:[0-9]+)?: `)

// Damaged output is refused with its line, or read; never taken for more than it says.
func TestDamagedOutputIsRefusedWithItsLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPrinted(t)
		text := p.text("00000000:0A:00.0") + p.clocksText("00000000:0A:00.0")
		if rapid.Bool().Draw(t, "xml") {
			text = tag("nvidia_smi_log", p.xml("00000000:0A:00.0"))
		}
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		with := rapid.SampledFrom([]string{
			"", "-", "9e99", "NaN", "\x00", "\n", "<", "&", "MHz", "\xff", "é", ":",
		}).Draw(t, "with")
		cut := rapid.IntRange(0, min(5, len(text)-at)).Draw(t, "cut")
		models, err := Read(strings.NewReader(text[:at]+with+text[at+cut:]), "f", known())
		if err != nil {
			if !placed.MatchString(err.Error()) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %q names no line of f", err)
			}
			return
		}
		if _, err := Append(nil, "f", models); err != nil && !strings.Contains(err.Error(), "GPUs: f:") {
			t.Fatal(err)
		}
	})
}

func TestLinesThatCannotBeRightAreNamed(t *testing.T) {
	const gpu = "GPU 00000000:0A:00.0\n    Product Name : NVIDIA Z1\n"
	const clocks = "    Supported Clocks\n        Memory : 1000 MHz\n            Graphics : 900 MHz\n"
	for text, want := range map[string]string{
		gpu: `f:1: NVIDIA Z1 has no supported clocks, want the output of nvidia-smi -q -x`,
		gpu + strings.Replace(clocks, "900 MHz", "-900 MHz", 1):                `f:5: the clock "-900 MHz", want one such as 1410 MHz`,
		gpu + strings.Replace(clocks, "900 MHz", "9e9 MHz", 1):                 `f:5: the clock "9e9 MHz"`,
		gpu + strings.Replace(clocks, "900 MHz", "900 GHz", 1):                 `f:5: the clock "900 GHz"`,
		gpu + strings.Replace(clocks, "1000 MHz", "N/A", 1):                    `f:5: the core clock "900 MHz" stands under no memory clock`,
		strings.Replace(gpu, "    Product Name : NVIDIA Z1\n", "", 1) + clocks: `f:1: GPU 00000000:0a:00.0 has no name`,
		gpu + clocks + "    Product Name : NVIDIA Z2\n":                        `f:6: GPU 00000000:0a:00.0 is "NVIDIA Z2", and was "NVIDIA Z1" before`,
		gpu + clocks + strings.ReplaceAll(gpu+clocks, "0A", "0B") + "            Graphics : 800 MHz\n": `f:6: this NVIDIA Z1 has ` +
			`other clocks than the one on line 1`,
		gpu + clocks + "    Power Readings\n        Default Power Limit : 300 W\n        Max Power Limit : 200 W\n": `f:1: the power limits ` +
			`of NVIDIA Z1 are 0 to 200 W, 300 by default`,
		"<nvidia_smi_log>\n<gpu id=\"1\"><a></b>": `f:2: element <a> closed by </b>, want the XML of nvidia-smi -q -x`,
		"<nvidia_smi_log><gpu></gpu>":             `f:1: a gpu without an id`,
		"nothing":                                 `f: no GPU in it`,
		"a\x00b":                                  `f:1: binary data`,
	} {
		_, err := Read(strings.NewReader(text), "f", known())
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v\nwants %s", err, want)
		}
	}
}

func read(t *testing.T, text string, o *Options) []Model {
	t.Helper()
	models, err := Read(strings.NewReader(text), "f", o)
	if err != nil {
		t.Fatal(err)
	}
	return models
}

// nvidia-smi -q -d prints no names: those of nvidia-smi -L go with the GPUs in their order.
func TestNamesComeFromAListOrAFlag(t *testing.T) {
	const clocks = "GPU 00000000:%s:00.0\r\n    Supported Clocks\r\n        Memory : 1000 MHz\r\n            Graphics : 900 MHz\r\n"
	two := fmt.Sprintf(clocks, "0A") + fmt.Sprintf(clocks, "0B")
	models := read(t, "GPU 0: NVIDIA Z1 (UUID: GPU-1)\r\nGPU 1: NVIDIA Z2 (UUID: GPU-2)\r\n"+two, known())
	if len(models) != 2 || models[0].Profile.Name != "Z1" || models[1].Profile.Name != "Z2" {
		t.Errorf("%+v", models)
	}
	o := known()
	o.Name = "Tesla Z3"
	if models := read(t, two, o); len(models) != 1 || models[0].GPUs != 2 || models[0].Profile.Name != "Z3" {
		t.Errorf("%+v", models)
	}
}

func TestAKnownBoardKeepsWhatTheOutputDoesNotSay(t *testing.T) {
	const text = "GPU 00000000:0A:00.0\n    Product Name : Tesla V100-SXM2-32GB\n    Supported Clocks\n" +
		"        Memory : 877 MHz\n            Graphics : 1530 MHz\n            Graphics : 1522 MHz\n"
	p := read(t, text, known())[0].Profile
	if p.Name != "V100-SXM2" || p.IdleW != 42 || p.CoreLock == nil || !*p.CoreLock || len(p.Pairs()) != 2 ||
		!slices.Contains(p.Estimate, "idle_w") {
		t.Errorf("%+v", p)
	}
}

func TestTheTopMemoryClockOfBoardsThatRunInP2IsInNoPlan(t *testing.T) {
	const text = "GPU 00000000:0A:00.0\n    Product Name : NVIDIA GeForce Z9\n    Supported Clocks\n" +
		"        Memory : 9751 MHz\n            Graphics : 2100 MHz\n        Memory : 9501 MHz\n            Graphics : 2100 MHz\n" +
		"        Memory : 405 MHz\n            Graphics : 420 MHz\n"
	p := read(t, text, known())[0].Profile
	if !slices.Equal(p.Pairs(), []dvfsmodel.Setting{{Core: 2100, Mem: 9501}}) || len(p.SupportedPairs()) != 3 ||
		!slices.Contains(p.Estimate, "default_mem_mhz") {
		t.Errorf("%+v", p)
	}
}

func TestLevelsOfAMDBecomeClocksBetweenThem(t *testing.T) {
	const rocm = "======== Supported clock frequencies ========\n" +
		"GPU[0]\t\t: Card Series: \t\tAMD Instinct MI900X\nGPU[0]\t\t: Max Graphics Package Power (W): 750.0\n" +
		"GPU[0]\t\t: Supported mclk frequencies on GPU0\nGPU[0]\t\t: 0: 900Mhz *\nGPU[0]\t\t: 1: 1300Mhz\nGPU[0]\t\t: \n" +
		"GPU[0]\t\t: Supported sclk frequencies on GPU0\nGPU[0]\t\t: 0: 500Mhz\nGPU[0]\t\t: 1: 142Mhz *\nGPU[0]\t\t: 2: 2150Mhz\n" +
		"GPU[0]\t\t: \nGPU[0]\t\t: Supported socclk frequencies on GPU0\nGPU[0]\t\t: S: 30Mhz *\nGPU[0]\t\t: 0: 889Mhz\n"
	const amd = "GPU: 0\n    ASIC:\n        MARKET_NAME: AMD Instinct MI900X\n    LIMIT:\n        PPT0:\n" +
		"            MAX_POWER_LIMIT: 750 W\n            MIN_POWER_LIMIT: 0 W\n            SOCKET_POWER_LIMIT: 750 W\n    CLOCK:\n" +
		"        SYS:\n            CURRENT_LEVEL: 1\n            FREQUENCY_LEVELS:\n                LEVEL 0: 500 MHz\n" +
		"                LEVEL 1: 142 MHz\n                LEVEL 2: 2150 MHz\n        MEM:\n            FREQUENCY_LEVELS:\n" +
		"                0: 900 MHz\n                1: 1300 MHz\n"
	for _, text := range []string{rocm, amd} {
		p := read(t, text, known())[0].Profile
		pairs := p.Pairs()
		if p.Name != "MI900X" || p.Vendor != "amd" || len(pairs) != 18 || pairs[0].Core != 500 ||
			p.Default != (dvfsmodel.Setting{Core: 2150, Mem: 1300}) || p.PowerLimit.Default != 750 ||
			!slices.Contains(p.Estimate, "clocks") {
			t.Errorf("%+v", p)
		}
		if _, err := config.ReadProfiles(strings.NewReader(p.Text()), "p.toml"); err != nil {
			t.Error(err)
		}
	}
}
