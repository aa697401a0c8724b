package gpuexec_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/internal/gpu/gpuexec"
	"github.com/epplan/epplan/internal/testkit/gputest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tool is a site's wrapper: two GPUs whose clocks are in files.
const tool = `#!/bin/sh
cd "$(dirname "$0")" || exit 1
case $1 in
list)
	echo '0, GPU-aaaaaaaa-0000-0000-0000-000000000000, 00000000:3B:00.0, NVIDIA A100-SXM4-40GB'
	echo '1, GPU-bbbbbbbb-0000-0000-0000-000000000000, 00000000:AF:00.0, NVIDIA A100-SXM4-40GB'
	;;
read)
	core=1410 mem=1215
	test -f "core.$2" && core=$(cat "core.$2")
	test -f "mem.$2" && mem=$(cat "mem.$2")
	date +%s%3N >energy
	limit=400.00
	test -f "limit.$2" && limit=$(cat "limit.$2")
	echo "61.25, $(cat energy), $core, $mem, 37, 120, 40960, $limit, 100.00, 400.00, Disabled"
	;;
clocks)
	printf '1215, 1410\n1215, 1200\n1215, 1005\n810, 1005\n'
	;;
processes)
	printf '4242\n17\n'
	;;
set-core) echo "$3" >"core.$2"; echo "$4" >"lowest.$2" ;;
set-mem) echo "$3" >"mem.$2" ;;
reset-core) rm -f "core.$2" ;;
reset-mem) rm -f "mem.$2" ;;
set-limit) echo "$3" >"limit.$2" ;;
reset-limit) rm -f "limit.$2" ;;
*) echo "what is $1?" >&2; exit 2 ;;
esac
`

// commands is a file of commands for that.
const commands = `
timeout_s = 20

[list]
command = ["TOOL", "list"]
columns = ["index", "uuid", "bus", "model"]

[read]
command = ["TOOL", "read", "{uuid}"]
columns = ["power_w", "energy_mj", "core_mhz", "memory_mhz", "utilisation_percent", "memory_used_mib",
  "memory_total_mib", "limit_w", "limit_min_w", "limit_max_w", "mig"]

[clocks]
command = ["TOOL", "clocks", "{index}"]
columns = ["memory_mhz", "core_mhz"]

[processes]
command = ["TOOL", "processes", "{bus}"]
columns = ["pid"]

[core]
set = ["TOOL", "set-core", "{uuid}", "{mhz}", "{lowest_mhz}"]
release = ["TOOL", "reset-core", "{uuid}"]

[memory]
set = ["TOOL", "set-mem", "{uuid}", "{mhz}"]
release = ["TOOL", "reset-mem", "{uuid}"]

[limit]
set = ["TOOL", "set-limit", "{uuid}", "{watts}"]
release = ["TOOL", "reset-limit", "{uuid}"]
`

// site is a machine whose GPUs have these commands, and a script behind them.
func site(t *testing.T, script, toml string) (gpu.Library, string, error) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "tool")
	must(t, os.WriteFile(program, []byte(script), 0o700))
	file := filepath.Join(dir, "gpu-commands.toml")
	must(t, os.WriteFile(file, []byte(strings.ReplaceAll(toml, "TOOL", program)), 0o600))
	for minor, address := range []string{"0000:af:00.0", "0000:3b:00.0"} {
		proc := filepath.Join(dir, "proc/driver/nvidia/gpus", address)
		must(t, os.MkdirAll(proc, 0o755))
		information := fmt.Sprintf("Model: \t\t NVIDIA A100-SXM4-40GB\nDevice Minor: \t %d\n", minor)
		must(t, os.WriteFile(filepath.Join(proc, "information"), []byte(information), 0o600))
	}
	l, err := gpuexec.Open(file, gpuexec.Options{Root: dir})
	return l, dir, err
}

// devices are the GPUs of a site that has some.
func devices(t *testing.T, script, toml string) ([]gpu.Device, string) {
	t.Helper()
	l, dir, err := site(t, script, toml)
	must(t, err)
	found, err := l.Devices()
	must(t, err)
	return found, dir
}

func TestGPUsBehindCommandsKeepTheContract(t *testing.T) {
	found, _ := devices(t, tool, commands)
	if len(found) != 2 {
		t.Fatalf("%d GPUs", len(found))
	}
	for _, d := range found {
		gputest.CheckReadOnly(t, d)
		gputest.CheckControls(t, d)
	}
}

func TestWhatCommandsTellOfAGPU(t *testing.T) {
	found, dir := devices(t, tool, commands)
	d := found[0]
	want := gpu.Identity{
		UUID: "GPU-aaaaaaaa-0000-0000-0000-000000000000", Bus: "00000000:3B:00.0",
		Model: "NVIDIA A100-SXM4-40GB", Minor: 1, // by the driver's own file: the list doesn't tell
	}
	if got := d.Identity(); got != want {
		t.Errorf("identity %+v, want %+v", got, want)
	}
	c, err := d.Clocks()
	must(t, err)
	if !slices.Equal(c.Mem, []dvfsmodel.MHz{1215, 810}) ||
		!slices.Equal(c.Core[0], []dvfsmodel.MHz{1410, 1200, 1005}) || len(c.Core[1]) != 1 {
		t.Errorf("clocks %v", c)
	}
	r, err := d.Read()
	must(t, err)
	if r.Power != 61.25 || r.Core != 1410 || r.Mem != 1215 || r.Utilisation != 0.37 || r.MemUsed != 120<<20 ||
		r.MemTotal != 40960<<20 || math.Abs(float64(r.Energy)*1000-float64(time.Now().UnixMilli())) > 1e5 {
		t.Errorf("reading %+v", r)
	}
	if limit, err := d.PowerLimit(); err != nil || limit != 400 {
		t.Errorf("limit %v, %v", limit, err)
	}
	if pids, err := d.Processes(); err != nil || !slices.Equal(pids, []int{17, 4242}) {
		t.Errorf("processes %v, %v", pids, err)
	}
	must(t, d.Set(gpu.CoreClock, 1200))
	lowest, err := os.ReadFile(filepath.Join(dir, "lowest."+want.UUID))
	if err != nil || strings.TrimSpace(string(lowest)) != "1005" {
		t.Errorf("the lowest clock is %q, %v", lowest, err)
	}
	if r, err := found[1].Read(); err != nil || r.Core != 1410 {
		t.Errorf("the other GPU: %+v, %v", r, err)
	}
}

// edited is commands with some text replaced.
func edited(t *testing.T, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(commands, pairs[i]) {
			t.Fatalf("no %q", pairs[i])
		}
	}
	return strings.NewReplacer(pairs...).Replace(commands)
}

func TestWithoutCommandsThereIsNoControlAndTheCatalogueHasTheClocks(t *testing.T) {
	toml := commands[:strings.Index(commands, "[clocks]")]
	found, _ := devices(t, tool, toml)
	d := found[0]
	if c := d.Capability(); c.Controls != 0 || !c.Energy {
		t.Errorf("capability %+v", c)
	}
	if err := d.Set(gpu.CoreClock, 1200); !errors.Is(err, gpu.ErrNotSupported) {
		t.Errorf("set: %v", err)
	}
	if err := d.Release(gpu.CoreClock); !errors.Is(err, gpu.ErrNotSupported) {
		t.Errorf("release: %v", err)
	}
	if _, err := d.Processes(); !errors.Is(err, gpu.ErrNotSupported) {
		t.Errorf("processes: %v", err)
	}
	c, err := d.Clocks()
	if err != nil || c.Mem[0] != 1215 || c.Core[0][0] != 1410 || len(c.Core[0]) != 81 {
		t.Errorf("clocks of the catalogue's A100: %v, %v", c, err)
	}
	strange, _ := devices(t, strings.ReplaceAll(tool, "A100-SXM4-40GB", "Voodoo 2"), toml)
	if _, err := strange[0].Clocks(); !errors.Is(err, gpu.ErrNotSupported) {
		t.Errorf("clocks of a model that nobody knows: %v", err)
	}
}

func TestAClockThatIsFixedIsTheLowestToo(t *testing.T) {
	found, dir := devices(t, tool+"\n", edited(t, `"set-core", "{uuid}", "{mhz}", "{lowest_mhz}"`,
		`"set-core", "{uuid}", "{lowest_mhz} to {mhz}", "*"`))
	clocks, err := found[0].Clocks()
	must(t, err)
	cores := clocks.Core[0]
	lowest := cores[len(cores)-1]
	for _, c := range []struct {
		set  func(gpu.Control, gpu.Value) error
		want string
	}{
		{found[0].Set, fmt.Sprintf("%v to 1200\n", float64(lowest))}, {found[0].Fix, "1200 to 1200\n"},
	} {
		must(t, c.set(gpu.CoreClock, 1200))
		set, err := os.ReadFile(filepath.Join(dir, "core."+found[0].Identity().UUID))
		if err != nil || string(set) != c.want {
			t.Errorf("%q, %v, want %q", set, err, c.want)
		}
	}
}

func TestWhatNoShellEverSees(t *testing.T) {
	found, dir := devices(t, tool+"\n", edited(t, `"set-core", "{uuid}", "{mhz}", "{lowest_mhz}"`,
		`"set-core", "{uuid}", "{mhz} $(touch hacked); touch hacked", "*"`))
	must(t, found[0].Set(gpu.CoreClock, 1200))
	set, err := os.ReadFile(filepath.Join(dir, "core."+found[0].Identity().UUID))
	if err != nil || string(set) != "1200 $(touch hacked); touch hacked\n" {
		t.Errorf("%q, %v", set, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "hacked")); err == nil {
		t.Error("a shell read a command's words")
	}
}

func TestACommandThatMisbehavesIsAnErrorAndNothingElse(t *testing.T) {
	for name, c := range map[string]struct {
		read string // what the script does for read
		says string
	}{
		"takes too long":            {"sleep 60", "took longer than"},
		"leaves a process behind":   {"(sleep 60) & sleep 60", "took longer than"},
		"prints without end":        {"yes", "printed more than"},
		"says without end":          {"yes >&2", "printed more than"},
		"fails":                     {"echo 'sudo: a password is required' >&2; exit 1", "a password is required"},
		"prints nothing":            {"true", "0 lines"},
		"prints two lines":          {"echo 1,1,1,1,1,1,1,1,1,1,x; echo 1,1,1,1,1,1,1,1,1,1,x", "2 lines"},
		"prints fewer columns":      {"echo 1,2,3", "has 3 columns, want 11"},
		"prints a word":             {"echo fast,1,1,1,1,1,1,1,1,1,x", `line 1: power_w is "fast", want a number`},
		"prints a negative number":  {"echo 1,1,-5,1,1,1,1,1,1,1,x", `core_mhz is "-5"`},
		"prints an infinite number": {"echo 1,1,inf,1,1,1,1,1,1,1,x", `core_mhz is "inf"`},
		"prints more than 100 %":    {"echo 1,1,1,1,101,1,1,1,1,1,x", "want 0 to 100"},
	} {
		t.Run(name, func(t *testing.T) {
			script := strings.Replace(tool, "read)", "read)\n"+c.read+"\nexit\n", 1)
			toml := commands
			if strings.HasPrefix(c.says, "took longer") {
				toml = edited(t, "timeout_s = 20", "timeout_s = 1")
			}
			found, _ := devices(t, script, toml[:strings.Index(toml, "[limit]")]) // for which it is read when opened
			began := time.Now()
			_, err := found[0].Read()
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			for _, known := range []error{gpu.ErrPermission, gpu.ErrNotSupported, gpu.ErrLost, gpu.ErrReloaded} {
				if errors.Is(err, known) { // by which callers would take it that nothing is set
					t.Errorf("%v is %v", err, known)
				}
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestAGPUThatCantBeReadWhenItIsOpenedIsLeftOutUntilItCan(t *testing.T) {
	l, _, err := site(t, strings.Replace(tool, "read)", "read)\nexit 1\n", 1), commands)
	must(t, err)
	// Without its bounds, a limit that was set couldn't be given back.
	if found, err := l.Devices(); err == nil || len(found) != 2 || found[0] != nil {
		t.Errorf("%v, %v", found, err)
	}
}

func TestWhatACommandStartedEndsWithIt(t *testing.T) {
	script := strings.Replace(tool, "read)", "read)\nsleep 60 & echo $! >child; wait\nexit\n", 1)
	toml := edited(t, "timeout_s = 20", "timeout_s = 3")
	found, dir := devices(t, script, toml[:strings.Index(toml, "[limit]")])
	if _, err := found[0].Read(); err == nil {
		t.Error("no error")
	}
	text, err := os.ReadFile(filepath.Join(dir, "child"))
	must(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	must(t, err)
	for until := time.Now().Add(10 * time.Second); ; {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("the command's child runs on: %s", stat)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func TestValuesThatAreMissing(t *testing.T) {
	script := strings.Replace(tool, "read)",
		"read)\necho '[N/A], [Not Supported], N/A, 1215, , 120, 40960, -, 100, 400, [N/A]'\nexit\n", 1)
	found, _ := devices(t, script, commands)
	r, err := found[0].Read()
	must(t, err)
	if !math.IsNaN(float64(r.Power)) || !math.IsNaN(float64(r.Energy)) || !math.IsNaN(float64(r.Core)) ||
		r.Mem != 1215 || !math.IsNaN(r.Utilisation) || r.MemUsed != 120<<20 {
		t.Errorf("reading %+v", r)
	}
	if _, err := found[0].PowerLimit(); !errors.Is(err, gpu.ErrNotSupported) {
		t.Errorf("limit: %v", err)
	}
	if s, err := found[0].Sharing(); err != nil || s.MIG {
		t.Errorf("sharing %+v, %v", s, err)
	}
}

func TestAListOfGPUsThatCantBeBelieved(t *testing.T) {
	const first = `'0, GPU-aaaaaaaa-0000-0000-0000-000000000000, 00000000:3B:00.0, NVIDIA A100-SXM4-40GB'`
	for name, c := range map[string]struct {
		line string
		here []bool // nil: none at all, nobody's place is known
		says string
	}{
		"no bus":  {`'0, GPU-aaaaaaaa-0000, at home, A100'`, nil, "want a PCI bus id"},
		"no uuid": {`'0, ../../etc, 00000000:3B:00.0, A100'`, []bool{false, true}, "want GPU-"},
		"twice": {
			`'0, GPU-bbbbbbbb-0000-0000-0000-000000000000, 3B:00.0, A100'`, []bool{false, false}, "listed twice",
		},
		"no device file": {
			`'0, GPU-aaaaaaaa-0000, 00000000:11:00.0, A100'`, []bool{false, true}, "want a column minor",
		},
		"a short bus id": {`'0, 0x1a2b3c4d5e6f, 3b:00.0, A100'`, []bool{true, true}, ""},
		"no index":       {`'first, GPU-aaaaaaaa-0000, 3b:00.0, A100'`, nil, `index is "first"`},
	} {
		l, _, err := site(t, strings.Replace(tool, first, c.line, 1), commands)
		must(t, err)
		found, err := l.Devices()
		here := make([]bool, 0, len(found))
		for _, d := range found {
			here = append(here, d != nil)
		}
		if !slices.Equal(here, c.here) || (c.says == "") != (err == nil) ||
			err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v", name, here, err)
		}
		if c.says == "" && found[0].Identity().UUID != "GPU-00001a2b3c4d5e6f" {
			t.Errorf("%s: %+v", name, found[0].Identity())
		}
	}
}

func TestWhatSomebodyElseMayHavePutThereIsntRun(t *testing.T) {
	l, dir, err := site(t, tool, commands)
	must(t, err)
	must(t, os.Chmod(filepath.Join(dir, "tool"), 0o777))
	const writable = "others may write"
	if _, err := l.Devices(); !errors.Is(err, gpu.ErrNotSupported) || !strings.Contains(err.Error(), writable) {
		t.Errorf("a program that others may write to: %v", err)
	}
	must(t, os.Chmod(filepath.Join(dir, "tool"), 0o700))
	file := filepath.Join(dir, "gpu-commands.toml")
	must(t, os.Chmod(file, 0o666))
	if _, err := gpuexec.Open(file, gpuexec.Options{}); err == nil || !strings.Contains(err.Error(), writable) {
		t.Errorf("commands that others may write to: %v", err)
	}
	_, err = gpuexec.Open(filepath.Join(dir, "none.toml"), gpuexec.Options{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestFaultsInAFileOfCommandsAreNamedByLine(t *testing.T) {
	for _, c := range []struct{ from, to, says string }{
		{
			`"TOOL", "list"`, `"nvidia-smi", "list"`,
			`gpu-commands.toml:5:12: list.command has "nvidia-smi", want the whole path`,
		},
		{
			`"read", "{uuid}"`, `"read", "{mhz}"`,
			`read.command has "{mhz}", want in braces one of {index}, {uuid}, {bus}`,
		},
		{`"read", "{uuid}"`, `"read", "{uuid"`, `want in braces one of`},
		{`"TOOL", "list"`, `"TOOL", "{uuid}"`, `want no braces here`},
		{`"power_w", "energy_mj"`, `"power", "energy_mj"`, `read.columns has "power", want one of power_w`},
		{`"power_w", "energy_mj"`, `"energy_j", "energy_mj"`, `2 energy counters, want one`},
		{`"power_w", "energy_mj"`, `"power_w", "power_w"`, `has "power_w" twice`},
		{`"index", "uuid", "bus", "model"`, `"uuid", "bus", "model"`, `no index, which commands use`},
		{`"index", "uuid", "bus", "model"`, `"index", "uuid", "model"`, `list.columns have no bus`},
		{`"core_mhz", "memory_mhz", "ut`, `"-", "memory_mhz", "ut`, `read.columns have no core_mhz`},
		{`timeout_s = 20`, `timeout_s = 0`, `timeout_s`},
		{`release = ["TOOL", "reset-core", "{uuid}"]`, ``, `[core] has no release`},
		{`[processes]`, `[process]`, `unknown key process`},
		{`"TOOL", "list"`, `"TOOL", "list`, `want a closing quote`},
	} {
		_, _, err := site(t, tool, edited(t, c.from, c.to))
		if _, faulty := errors.AsType[*config.FileError](err); !faulty || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.to, err, c.says)
		}
	}
}

// The page's files are read as a site would have them.
func TestTheFilesOfThePageAreOnes(t *testing.T) {
	page, err := os.ReadFile("../../../docs/how-to/gpus-by-commands.md")
	must(t, err)
	blocks := strings.Split(string(page), "```toml\n")[1:]
	for _, block := range blocks {
		toml, _, _ := strings.Cut(block, "\n```")
		c, err := config.ReadGPUCommands(strings.NewReader(toml), "page")
		if err != nil || len(c.Core.Set) == 0 {
			t.Errorf("%v", err)
		}
	}
	if len(blocks) != 2 {
		t.Errorf("%d files", len(blocks))
	}
}
