package config

import (
	"encoding/csv"
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

func readProfiles(t *testing.T, text string) *Profiles {
	t.Helper()
	p, err := ReadProfiles(strings.NewReader(text), "g.toml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestEachBuiltinProfileHasItsDefaultInItsTable(t *testing.T) {
	settings := map[string]int{
		"GTX1080Ti": 20, "RTX2070S": 20, "GTX980": 25, "GTX980-low": 36, "V100": 5, "V100-2022": 10,
	}
	profiles := BuiltinProfiles()
	ranges := 0
	for _, name := range profiles.Names() {
		p, err := profiles.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if p.Source == "" {
			t.Errorf("%s says nothing of its source", name)
		}
		if p.Range != "" {
			ranges++
			continue
		}
		table, err := p.Table()
		if err != nil {
			t.Fatal(err)
		}
		at := p.DefaultPoint()
		if s, ok := table.Contains(at.Core, at.Mem); !ok || s != at.Scaling ||
			s != dvfsmodel.DefaultScaling() {
			t.Errorf("%s: default setting %+v, in the table %+v, %v", name, at.Scaling, s, ok)
		}
		if want, measured := settings[name]; measured && table.Len() != want {
			t.Errorf("%s has %d settings, want %d", name, table.Len(), want)
		}
	}
	if ranges != 2 {
		t.Errorf("%d profiles with a range, want 2", ranges)
	}
}

// measuredPairs returns the distinct clocks of a measured table.
func measuredPairs(t *testing.T, path string) map[dvfsmodel.Setting]bool {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(file).ReadAll()
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	pairs := make(map[dvfsmodel.Setting]bool)
	for _, r := range records[1:] {
		core, err1 := strconv.ParseFloat(r[1], 64)
		mem, err2 := strconv.ParseFloat(r[2], 64)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		pairs[dvfsmodel.Setting{Core: dvfsmodel.MHz(core), Mem: dvfsmodel.MHz(mem)}] = true
	}
	return pairs
}

func TestTheClocksOfProfilesAreThoseThatWereMeasured(t *testing.T) {
	for name, table := range map[string]string{
		"GTX1080Ti": "gtx1080ti", "RTX2070S": "rtx2070s", "GTX980": "gtx980_high", "GTX980-low": "gtx980_low",
		"V100": "v100", "V100-2022": "v100_2022",
	} {
		want := measuredPairs(t, shareddata.Path(t, "dvfs/"+table+".csv"))
		pairs := builtin(t, name).Pairs()
		for _, pair := range pairs {
			if !want[pair] {
				t.Errorf("%s has %v, which was not measured", name, pair)
			}
		}
		if len(pairs) != len(want) {
			t.Errorf("%s has %d settings, %d were measured", name, len(pairs), len(want))
		}
	}
}

func TestGPUModelsAreFoundHoweverTheyAreSpelt(t *testing.T) {
	profiles := BuiltinProfiles()
	for name, want := range map[string]string{
		"V100": "V100", "v100": "V100", "Tesla V100": "V100", "V100_2022": "V100-2022",
		"gtx 1080 ti": "GTX1080Ti", "rtx2070super": "RTX2070S",
		"paper-wide": "paper",
	} {
		if p, err := profiles.Lookup(name); err != nil || p.Name != want {
			t.Errorf("%s: %+v, %v, want %s", name, p, err, want)
		}
	}
}

func TestAFaultyGPUModelIsNamedWithItsPosition(t *testing.T) { //nolint:funlen // most of it is a table
	with := func(old, text string) string { return strings.Replace(gpuTable, old, text, 1) }
	const clocks = "{ from = 300, to = 1980, step = 15 }"
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "g.toml:1:1: no GPU model, want at least one [[gpu]] or [[cpu]] table"},
		{"not an array", "[gpu]\n", "g.toml:1:1: gpu is a table, want an array of tables: [[gpu]]"},
		{
			"missing key", with("idle_w = 60\n", ""),
			"g.toml:1:1: [[gpu]] has no idle_w, want a number from 0 to 1e+15",
		},
		{
			"unknown key", with("idle_w", "idel_w"),
			"g.toml:7:1: unknown key idel_w in [[gpu]], did you mean idle_w?",
		},
		{
			"default not in the list", with("1500", "1501"),
			"g.toml:4:20: default clocks 1501/2619 MHz aren't in the clock list, the nearest " +
				"there are 1500/2619",
		},
		{"no default", with("default_core_mhz = 1500\n", ""), "base clocks 0/2619 MHz, want positive"},
		{
			"no clocks", with("clocks", "#"),
			`GPU model "H100" has no clocks and no busy_w, want clocks, a range or busy_w`,
		},
		{
			"clocks and range", with("idle_w", "range = \"wide\"\nidle_w"),
			"g.toml:7:9: a GPU model has clocks or a range, not both",
		},
		{
			"unknown range", with("clocks", "range = \"wid\" #"),
			`g.toml:6:9: gpu.range is "wid", want one of wide, narrow; did you mean "wide"?`,
		},
		{
			"clocks as one table", with("[{ mem_mhz", "{ mem_mhz = 1 } #"),
			"g.toml:6:10: gpu.clocks is a table, want an array of tables",
		},
		{
			"clock list without core clocks", with(", core_mhz", ", cor_mhz"),
			"g.toml:6:31: unknown key cor_mhz in gpu.clocks, did you mean core_mhz?",
		},
		{
			"empty clock list", with("[2619]", "[]"),
			"g.toml:6:23: gpu.clocks.mem_mhz is an array, want an array of 1 to 2000 clocks, or " +
				"{from, to, step}",
		},
		{
			"clock as text", with("[2619]", "[2619, 'x']"),
			`g.toml:6:30: gpu.clocks.mem_mhz has "x", want a number above 0`,
		},
		{"negative clock", with("[2619]", "[-1]"), "gpu.clocks.mem_mhz has -1, want a number above 0"},
		{
			"steps downwards", with(clocks, "{ from = 2, to = 1, step = 1 }"),
			"gpu.clocks.core_mhz is from 2 to 1 by 1, want 1 to 2000 clocks",
		},
		{
			"too many steps", with(clocks, "{ from = 1, to = 2001, step = 1 }"),
			"gpu.clocks.core_mhz is from 1 to 2001 by 1, want 1 to 2000 clocks",
		},
		{"step 0", with("step = 15", "step = 0"), "gpu.clocks.core_mhz.step is 0, want a number above 0"},
		{
			"steps without an end", with("to = 1980, ", ""),
			"gpu.clocks.core_mhz has no to, want a number above 0",
		},
		{
			"steps with another key", with("to = 1980, ", "to = 1980, by = 2, "),
			"unknown key by in gpu.clocks.core_mhz, want one of from, to, step",
		},
		{
			"voltage as a number", with("voltage = ", "voltage = 1 #"),
			`g.toml:9:11: gpu.voltage is 1, want "paper" or pairs`,
		},
		{"voltage that falls", with("0.8]", "0.6]"), "g.toml:9:24: gpu.voltage has an array, want"},
		{"voltage of three numbers", with("0.8]", "0.8, 1]"), "gpu.voltage has an array, want"},
		{
			"alias as a number", with(`["NVIDIA H100"]`, "[1]"),
			"g.toml:3:12: gpu.aliases has 1, want a line of text",
		},
		{
			"aliases as a text", with(`["NVIDIA H100"]`, "'x'"),
			`g.toml:3:11: gpu.aliases is "x", want an array of texts`,
		},
		{
			"busy below idle", with("idle_w = 60\n", "idle_w = 60\nbusy_w = 59\n"),
			"g.toml:8:10: gpu.busy_w is 59, want at least idle_w, 60",
		},
		{
			"busy at 0 W", with("idle_w = 60\n", "idle_w = 60\nbusy_w = 0\n"),
			"g.toml:8:10: gpu.busy_w is 0, want a number above 0",
		},
		{
			"two of one name", gpuTable + with(`name = "H100"`, `name = "h-100"`),
			`g.toml:12:8: GPU model "h-100", or an alias of it, is already on line 1`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadProfiles(strings.NewReader(c.text), "g.toml")
			if err == nil || got != nil {
				t.Fatalf("read %+v, want an error", got)
			}
			if first, _, _ := strings.Cut(err.Error(), "\n"); !strings.Contains(first, c.want) {
				t.Errorf("error  %s\nwants  %s", err, c.want)
			}
		})
	}
}

func TestAUsersGPUModelReplacesTheBuiltinOne(t *testing.T) {
	text := strings.Replace(gpuTable, `"H100"`, `"v-100"`, 1)
	more, err := ReadProfiles(strings.NewReader(text), "gpus.toml")
	if err != nil {
		t.Fatal(err)
	}
	all := BuiltinProfiles().With(more)
	p, err := all.Lookup("V100")
	if err != nil || p.IdleW != 60 {
		t.Errorf("found %+v, %v", p, err)
	}
	if names := all.Names(); slices.Contains(names, "V100") || !slices.Contains(names, "v-100") ||
		len(names) != len(BuiltinProfiles().Names()) {
		t.Errorf("names %v", names)
	}
	c, err := Load(strings.NewReader("[[cluster.nodes]]\ngpu_model = \"V100\"\ngpus = 2\n"), "c.toml", all)
	if err != nil || c.Cluster().Classes[0].IdleW != 60 {
		t.Errorf("cluster %+v, %v", c, err)
	}
}

// Boards hold one voltage over a range of clocks, most of all at its lower end.
func TestAVoltageMayStayLevelAndNeverFall(t *testing.T) {
	for points, ok := range map[string]bool{
		"[[300, 0.7], [1200, 0.7], [1980, 1.1]]": true, "[[300, 0.7], [1200, 1.1], [1980, 1.1]]": true,
		"[[300, 0.9], [1980, 0.9]]": true, "[[300, 0.7], [1980, 0.6999]]": false,
		"[[300, 0.7], [300, 0.8]]": false, "[[1980, 0.7], [300, 0.8]]": false,
	} {
		text := strings.Replace(gpuTable, "[[300, 0.7], [1200, 0.8], [1980, 1.1]]", points, 1)
		if _, err := ReadProfiles(strings.NewReader(text), "g.toml"); (err == nil) != ok {
			t.Errorf("voltage = %s: %v", points, err)
		}
	}
}

func TestTheVoltageIsInterpolatedAndRelativeToTheDefaultClock(t *testing.T) {
	p, err := readProfiles(t, gpuTable).Lookup("H100")
	if err != nil {
		t.Fatal(err)
	}
	table, err := p.Table()
	if err != nil {
		t.Fatal(err)
	}
	atDefault := 0.8 + 0.3*300/780
	for core, volts := range map[dvfsmodel.MHz]float64{
		300: 0.7, 750: 0.75, 1200: 0.8,
		1500: atDefault, 1980: 1.1,
	} {
		s, ok := table.Contains(core, 2619)
		if want := volts / atDefault; !ok || math.Abs(float64(s.V)-want) > 1e-12 {
			t.Errorf("%v MHz: voltage %v, %v, want %v", core, s.V, ok, want)
		}
	}
}

func TestAProfileWithARangeHasNoTable(t *testing.T) {
	if _, err := builtin(t, "paper").Table(); err == nil {
		t.Error("no error")
	}
}
