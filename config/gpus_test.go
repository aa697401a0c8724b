package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
)

// boards returns the profiles of gpus.toml.
func boards(t interface{ Fatal(args ...any) }) []*Profile {
	all, err := ReadProfiles(strings.NewReader(boardProfiles), "gpus.toml")
	if err != nil {
		t.Fatal(err)
	}
	list := make([]*Profile, len(all.list))
	for i := range all.list {
		list[i] = &all.list[i]
	}
	return list
}

func TestEveryBoardOfTheCatalogueIsComplete(t *testing.T) {
	for _, p := range boards(t) {
		t.Run(p.Name, func(t *testing.T) {
			if p.Source == "" || p.Vendor == "" || len(p.Aliases) == 0 || p.IdleW <= 0 || p.BusyW <= p.IdleW {
				t.Errorf("source %q, vendor %q, aliases %q, %v W idle, %v W busy", p.Source, p.Vendor,
					p.Aliases, p.IdleW, p.BusyW)
			}
			if !slices.Contains(p.Pairs(), p.Default) {
				t.Errorf("the default clocks %v aren't in the list", p.Default)
			}
			l := p.PowerLimit
			if l.Default == 0 || l.Max < l.Default || l.Min > l.Default || l.Min > 0 && l.Min < p.IdleW {
				t.Errorf("power limits %v, %v W idle", l, p.IdleW)
			}
			if p.CoreLock == nil {
				t.Error("nothing says whether the core clock locks")
			}
			fields := p.setFields()
			for _, key := range p.Estimate {
				if !slices.ContainsFunc(fields, func(f field) bool { return f.key == key }) {
					t.Errorf("%s is an estimate, and not there", key)
				}
			}
			checkClockLists(t, p)
		})
	}
}

// checkClockLists wants one ascending list of whole clocks for each memory clock.
func checkClockLists(t *testing.T, p *Profile) {
	t.Helper()
	mems := make(map[dvfsmodel.MHz]bool)
	for _, group := range p.Clocks {
		if !slices.IsSorted(group.Core) || len(slices.Compact(slices.Clone(group.Core))) != len(group.Core) {
			t.Errorf("core clocks at %v MHz: %v, want them ascending", group.Mem, group.Core)
		}
		for _, mem := range group.Mem {
			if mems[mem] {
				t.Errorf("two lists for %v MHz", mem)
			}
			mems[mem] = true
		}
		for _, clock := range slices.Concat(group.Mem, group.Core) {
			if clock != dvfsmodel.MHz(int(clock)) {
				t.Errorf("%v MHz, want whole ones as drivers list them", clock)
			}
		}
	}
}

func TestTheCatalogueHasTheTablesThatDriversList(t *testing.T) {
	for _, c := range []struct {
		name        string
		mem         dvfsmodel.MHz
		first, last dvfsmodel.MHz
		clocks      int
	}{
		{"A100", 1215, 210, 1410, 81},
		{"A100-SXM4-80GB", 1593, 210, 1410, 81},
		{"H100", 2619, 345, 1980, 110},
		{"B200", 3996, 120, 1965, 247},
		{"GB200", 3996, 120, 2062, 260},
		{"GB300", 3996, 120, 2070, 261},
		{"T4", 5001, 300, 1590, 87},
		{"L40S", 9001, 210, 2520, 155},
		{"RTX3090", 9501, 210, 2100, 127},
		{"V100-SXM2", 877, 135, 1530, 187},
	} {
		var core []dvfsmodel.MHz
		for _, group := range builtin(t, c.name).Clocks {
			if slices.Contains(group.Mem, c.mem) {
				core = group.Core
			}
		}
		if len(core) != c.clocks || core[0] != c.first || core[len(core)-1] != c.last {
			t.Errorf("%s at %v MHz: %v", c.name, c.mem, core)
		}
	}
	full := builtin(t, "V100-SXM2").Pairs()
	for _, pair := range append(builtin(t, "V100").Pairs(), builtin(t, "V100-2022").Pairs()...) {
		if !slices.Contains(full, pair) {
			t.Errorf("the campaign's %v isn't in the full table", pair)
		}
	}
}

// Names as nvidia-smi, NVML, rocm-smi and gres.conf write them.
func TestBoardsAreFoundByWhatDriversAndSlurmCallThem(t *testing.T) {
	for name, want := range map[string]string{
		"NVIDIA A100-SXM4-80GB": "A100-SXM4-80GB", "nvidia_a100-sxm4-80gb": "A100-SXM4-80GB",
		"a100": "A100", "NVIDIA A100-SXM4-40GB": "A100", "A100 40GB": "A100", "A100_80GB": "A100-SXM4-80GB",
		"NVIDIA A100 80GB PCIe": "A100-PCIE-80GB", "nvidia_a100_80gb_pcie": "A100-PCIE-80GB",
		"NVIDIA A100-PCIE-40GB": "A100-PCIE-40GB", "A100 PCIe 80GB": "A100-PCIE-80GB",
		"v100": "V100", "Tesla V100": "V100", "v100_sxm2": "V100-SXM2", "Tesla V100-PCIe": "V100-PCIE",
		"tesla_p100-pcie-16gb": "P100", "Tesla P100-SXM2-16GB": "P100-SXM2",
		"h100": "H100", "NVIDIA H100 80GB HBM3": "H100", "nvidia_h100_80gb_hbm3": "H100", "H100-80GiB": "H100",
		"NVIDIA H100 PCIe": "H100-PCIE", "nvidia_h100_nvl": "H100-NVL", "NVIDIA H200": "H200",
		"H200 141GB": "H200", "NVIDIA GH200 480GB": "GH200", "NVIDIA B200": "B200",
		"geforce_rtx_3090": "RTX3090", "nvidia_geforce_rtx_4090": "RTX4090", "rtx_a6000": "RTXA6000",
		"a40": "A40", "NVIDIA A40-48GB": "A40", "l4": "L4", "NVIDIA L40S": "L40S", "tesla_t4": "T4",
		"NVIDIA RTX PRO 6000 Blackwell Server Edition": "RTXPRO6000", "geforce rtx 2080 ti": "RTX2080Ti",
		"AMD Instinct MI250X": "MI250X", "mi250x": "MI250X", "amd_instinct_mi300x": "MI300X", "MI300A": "MI300A",
		"Instinct MI210": "MI210", "mi100": "MI100", "MI300X 192GB": "MI300X",
	} {
		if p := BuiltinProfiles().Find(name); p == nil || p.Name != want {
			t.Errorf("%s: %+v, want %s", name, p, want)
		}
	}
}

// driverNames are boards by what nvidia-smi, NVML, rocm-smi and amd-smi print.
var driverNames = map[string]string{
	"Tesla P100-PCIE-12GB": "P100", "Tesla P100-PCIE-16GB": "P100", "Tesla P100-SXM2-16GB": "P100-SXM2",
	"Tesla V100-SXM2-16GB": "V100-SXM2", "Tesla V100-SXM2-32GB": "V100-SXM2",
	"Tesla V100-PCIE-16GB": "V100-PCIE", "Tesla V100-PCIE-32GB": "V100-PCIE",
	"Tesla V100S-PCIE-32GB": "V100S-PCIE-32GB", "Tesla V100-SXM3-32GB": "V100-SXM3-32GB",
	"Tesla T4": "T4", "NVIDIA TITAN RTX": "TITANRTX", "TITAN RTX": "TITANRTX",
	"GeForce GTX 980": "GTX980-4GB", "NVIDIA GeForce GTX 980": "GTX980-4GB",
	"GeForce GTX 1080 Ti": "GTX1080Ti-11GB", "NVIDIA GeForce GTX 1080 Ti": "GTX1080Ti-11GB",
	"GeForce RTX 2070 SUPER": "RTX2070S-8GB", "NVIDIA GeForce RTX 2070 SUPER": "RTX2070S-8GB",
	"GeForce RTX 2080 Ti": "RTX2080Ti", "NVIDIA GeForce RTX 2080 Ti": "RTX2080Ti",
	"Quadro RTX 6000": "QuadroRTX6000", "NVIDIA Quadro RTX 6000": "QuadroRTX6000",
	"Quadro RTX 8000": "QuadroRTX8000", "NVIDIA RTX A5000": "RTXA5000", "NVIDIA RTX A6000": "RTXA6000",
	"NVIDIA GeForce RTX 3090": "RTX3090", "NVIDIA GeForce RTX 4090": "RTX4090",
	"NVIDIA GeForce RTX 5090": "RTX5090", "NVIDIA RTX 6000 Ada Generation": "RTX6000Ada",
	"NVIDIA RTX PRO 6000 Blackwell Server Edition":      "RTXPRO6000",
	"NVIDIA RTX PRO 6000 Blackwell Workstation Edition": "RTXPRO6000-WS",
	"NVIDIA A100-SXM4-40GB":                             "A100", "A100-SXM4-40GB": "A100",
	"NVIDIA A100-SXM4-80GB": "A100-SXM4-80GB", "NVIDIA A100-SXM-64GB": "A100-SXM-64GB",
	"NVIDIA A100-PCIE-40GB": "A100-PCIE-40GB", "A100-PCIE-40GB": "A100-PCIE-40GB",
	"NVIDIA A100 80GB PCIe": "A100-PCIE-80GB", "NVIDIA A800-SXM4-80GB": "A800-SXM4-80GB",
	"NVIDIA A10": "A10", "NVIDIA A10G": "A10G", "NVIDIA A16": "A16", "NVIDIA A30": "A30", "NVIDIA A40": "A40",
	"NVIDIA L4": "L4", "NVIDIA L20": "L20", "NVIDIA L40": "L40", "NVIDIA L40S": "L40S",
	"NVIDIA H100 80GB HBM3": "H100", "NVIDIA H100 PCIe": "H100-PCIE", "NVIDIA H100 NVL": "H100-NVL",
	"NVIDIA H800": "H800", "NVIDIA H20": "H20", "NVIDIA H200": "H200", "NVIDIA H200 NVL": "H200-NVL",
	"NVIDIA GH200 480GB": "GH200", "NVIDIA GH200 144G HBM3e": "GH200-144GB", "NVIDIA GB10": "GB10",
	"NVIDIA B200": "B200", "NVIDIA B300 SXM6 AC": "B300", "NVIDIA GB200": "GB200", "NVIDIA GB300": "GB300",
	"AMD Instinct MI100": "MI100", "AMD Instinct MI210": "MI210", "AMD Instinct MI250": "MI250",
	"AMD Instinct MI250X": "MI250X", "AMD Instinct MI250X/MI250": "MI250",
	"AMD Instinct MI300A": "MI300A", "AMD Instinct MI300X": "MI300X", "AMD Instinct MI355X": "MI355X",
}

func TestWhatADriverPrintsLeadsToTheBoardAndNotToAPapersClocks(t *testing.T) {
	board := make(map[string]bool)
	for _, p := range boards(t) {
		board[p.Name] = true
	}
	for name, want := range driverNames {
		variants := []string{name, strings.ToLower(strings.ReplaceAll(name, " ", "_"))} // as gres.conf has it
		if bare, ok := strings.CutPrefix(name, "Tesla "); ok {
			variants = append(variants, bare, "NVIDIA "+name, "NVIDIA "+bare)
		}
		for _, variant := range variants {
			p, err := BuiltinProfiles().Lookup(variant)
			switch {
			case err != nil:
				t.Errorf("%s: %v, want the board %s", variant, err, want)
			case p.Name != want || !board[p.Name]:
				t.Errorf("%s is %s, want the board %s", variant, p.Name, want)
			}
		}
	}
}

// A profile of a paper's clocks has no name that a driver prints.
func TestNoPapersProfileAnswersToABoardsName(t *testing.T) {
	papers, err := ReadProfiles(strings.NewReader(paperProfiles), "profiles.toml")
	if err != nil {
		t.Fatal(err)
	}
	for i := range papers.list {
		for _, name := range append([]string{papers.list[i].Name}, papers.list[i].Aliases...) {
			folded := strings.ToLower(name)
			for _, word := range []string{"nvidia", "geforce", "quadro", "amd", "sxm", "pcie"} {
				if strings.Contains(folded, word) {
					t.Errorf("%s, with a paper's clocks, answers to %s, want a board's own table for it",
						papers.list[i].Name, name)
				}
			}
		}
	}
}

// Boards with like names that the catalogue doesn't have.
func TestBoardsWithLikeNamesAreOthers(t *testing.T) {
	for _, name := range []string{
		"NVIDIA H800 PCIe", "NVIDIA H20-3e", "A10M", "A100X", "A800 80GB PCIe", "H100 64GB",
		"H100-96GB", "L40G", "L2", "T4G", "Tesla V100-FHHL-16GB", "Tesla V100-SXM3-32GB-H", "V100S-PCIE-16GB",
		"RTX 3090 Ti", "RTX 4090 D", "NVIDIA GeForce RTX 4090 Laptop GPU", "RTX 2080", "RTX 6000",
		"NVIDIA RTX 5000 Ada Generation", "RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTX PRO 6000D",
		"RTX 5090 D", "NVIDIA TITAN V", "NVIDIA GeForce GTX 1080", "MI300", "MI308X",
		"MI350X", "MI325X", "AMD A100", "NVIDIA MI250X", "GRID A100-40C",
		"A40-48Q", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "A100-16GB", "T4-24GB", "H100X", "100", "", "GB", "NVIDIA",
		"Tesla", "P40", "B100", "A2", "RTX A5500",
	} {
		_, err := BuiltinProfiles().Lookup(name)
		wrong, ok := errors.AsType[*UnknownError](err)
		if !ok {
			t.Errorf("%q is taken for a known board", name)
			continue
		}
		if len(wrong.Known) != len(BuiltinProfiles().Names()) || strings.Contains(err.Error(), "did you mean") {
			t.Errorf("%q: %v, want the nearest known ones", name, err)
		}
		if len(err.Error()) > 200 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want one line", name, err)
		}
	}
}

func TestTheNearestBoardsAreListedFirst(t *testing.T) {
	for name, want := range map[string]string{
		"H100X": "H100", "A100-SXM-96GB": "A100-SXM-64GB", "MI250Y": "MI250", "NVIDIA H1000": "H100",
		"RTX 4090 D": "RTX4090",
	} {
		_, err := BuiltinProfiles().Lookup(name)
		if wrong, ok := errors.AsType[*UnknownError](err); !ok || wrong.Known[0] != want {
			t.Errorf("%s: %v, want %s first", name, err, want)
		}
	}
}

// However people write the name of a board, it is that board or none: never another one.
func TestAWrittenNameIsTheRightBoardOrNone(t *testing.T) {
	all := boards(t)
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom(all).Draw(t, "board")
		name := rapid.SampledFrom(append([]string{p.Name}, p.Aliases...)).Draw(t, "name")
		certain := true
		words := map[string][]string{
			"nvidia": {"", "NVIDIA ", "Tesla ", "NVIDIA GeForce ", "GeForce "},
			"amd":    {"", "AMD ", "AMD Instinct ", "Instinct "},
		}
		name = rapid.SampledFrom(words[p.Vendor]).Draw(t, "vendor") + name
		if rapid.Bool().Draw(t, "other memory") { // of a board that may or may not exist
			gb := rapid.SampledFrom([]int{8, 12, 16, 24, 32, 40, 48, 64, 80, 94, 96, 128, 141, 180, 192}).Draw(t, "gb")
			name += fmt.Sprintf(" %d%s", gb, rapid.SampledFrom([]string{"GB", "gb", "GiB"}).Draw(t, "unit"))
			certain = false
		}
		separator := rapid.SampledFrom([]string{" ", "-", "_", ""}).Draw(t, "separator")
		name = strings.NewReplacer(" ", separator, "-", separator).Replace(name)
		switch rapid.IntRange(0, 2).Draw(t, "case") {
		case 1:
			name = strings.ToLower(name)
		case 2:
			name = strings.ToUpper(name)
		}
		found, err := BuiltinProfiles().Lookup(name)
		switch {
		case err == nil && found.Name != p.Name && (certain || !sameChip(p.Name, found.Name)):
			t.Fatalf("%q is %s, want %s", name, found.Name, p.Name)
		case err != nil && certain:
			t.Fatalf("%q: %v, want %s", name, err, p.Name)
		}
	})
}

// sameChip reports whether the memory tells two boards apart, as is documented: A100 and 80 GB is
// another board than A100 alone.
func sameChip(name, other string) bool {
	return slices.Contains(map[string][]string{
		"A100": {"A100-SXM4-80GB", "A100-SXM-64GB"}, "A100-SXM4-80GB": {"A100-SXM-64GB", "A100"},
		"A100-SXM-64GB": {"A100-SXM4-80GB", "A100"}, "A100-PCIE-40GB": {"A100-PCIE-80GB"},
		"GH200": {"GH200-144GB"}, "GH200-144GB": {"GH200"},
	}[name], other)
}

// Slips of the pen are refused, not guessed, unless they are a name of the same board.
func TestASlipIsNeverAnotherBoard(t *testing.T) {
	all := boards(t)
	names := make(map[string]bool)
	for _, p := range all {
		for _, name := range append([]string{p.Name}, p.Aliases...) {
			names[strings.ToLower(name)] = true
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom(all).Draw(t, "board")
		i := rapid.IntRange(0, len(p.Name)-1).Draw(t, "at")
		slip := p.Name[:i] + rapid.SampledFrom([]string{"q", "x", "zz", "?"}).Draw(t, "slip") + p.Name[i:]
		if found := BuiltinProfiles().Find(slip); found != nil && found != builtinOf(p.Name) &&
			!names[strings.ToLower(slip)] {
			t.Fatalf("%q is taken for %s", slip, found.Name)
		}
	})
}

func builtinOf(name string) *Profile { return BuiltinProfiles().Find(name) }

func TestEstimatesAndLimitsOfATableAreChecked(t *testing.T) {
	with := func(lines string) string { return gpuTable + lines }
	for _, c := range []struct{ text, want string }{
		{with(`estimate = ["clokcs"]`), `g.toml:11:12: gpu.estimate has "clokcs", want keys of this table`},
		{with(`estimate = ["limit_w_min"]`), `gpu.estimate has "limit_w_min", want keys of this table`},
		{with("limit_w_min = 300\nlimit_w_max = 200"), "gpu.limit_w_min is 300, want at most"},
		{
			with("limit_w_default = 300\nlimit_w_max = 200"),
			"g.toml:11:19: gpu.limit_w_default is 300, want at most limit_w_max, 200",
		},
		{with(`vendor = "nvidea"`), `gpu.vendor is "nvidea", want one of nvidia, amd`},
		{with(`memory_lock = "yes"`), `gpu.memory_lock is "yes", want true or false`},
		{
			strings.Replace(gpuTable, "step = 15 } }]", "step = 15 }, plan = false }]", 1),
			"GPU model H100",
		},
	} {
		_, err := ReadProfiles(strings.NewReader(c.text), "g.toml")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error  %v\nwants  %s", err, c.want)
		}
	}
}

func TestWhatATableSaysOfABoardIsShownAndReadAgain(t *testing.T) {
	const low = "{ mem_mhz = [405], core_mhz = { from = 135, to = 150, step = 7.5, whole = true }, " +
		"plan = false }"
	text := strings.Replace(gpuTable, "step = 15 } }]", "step = 15 } }, "+low+"]", 1) +
		"vendor = \"nvidia\"\nmemory_gb = 80\nlimit_w_min = 200\nlimit_w_max = 700\nmemory_lock = false\n" +
		"energy_scope = \"gpu\"\nestimate = [\"idle_w\", \"clocks\"]\n"
	c := load(t, text)
	var shown strings.Builder
	if err := c.Show(&shown); err != nil {
		t.Fatal(err)
	}
	again := load(t, shown.String())
	p, q := c.gpus[0], again.gpus[0]
	if *p.MemoryLock || q.MemoryLock == nil || *q.MemoryLock || p.CoreLock != nil || q.CoreLock != nil {
		t.Errorf("locks %v %v, %v %v", p.CoreLock, p.MemoryLock, q.CoreLock, q.MemoryLock)
	}
	p.MemoryLock, q.MemoryLock = nil, nil
	if fmt.Sprintf("%+v", p) != fmt.Sprintf("%+v", q) {
		t.Errorf("read    %+v\nagain   %+v", p, q)
	}
	if g := p.Clocks[1]; !g.Unplanned || !slices.Equal(g.Core, []dvfsmodel.MHz{135, 142, 150}) {
		t.Errorf("clocks %+v", g)
	}
	if !slices.Equal(p.PlanEstimates(false), []string{"clocks", "idle_w"}) ||
		!slices.Equal(p.PlanEstimates(true), []string{"clocks"}) {
		t.Errorf("estimates %v", p.PlanEstimates(false))
	}
}
