package config

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/fleet"
)

const cpuTable = `[[cpu]]
name = "big"
cores = 64
threads_per_core = 2
idle_w = 100
busy_w = 350
sleep_w = 20
source = "a test"

[[cpu]]
name = "small"
cores = 4
idle_w = 5
busy_w = 5
`

func wantPower(t *testing.T, p *Profiles, model string, gpus int, want fleet.Power) {
	t.Helper()
	if got, err := p.Power(model, gpus); err != nil || got != want {
		t.Errorf("%d %s: %+v, %v, want %+v", gpus, model, got, err, want)
	}
}

// The values are those of the PWR+FGD paper's table II and section V.
func TestTheBuiltinPowerIsThatOfThePaper(t *testing.T) {
	profiles := BuiltinProfiles()
	for _, c := range []struct {
		models     []string
		idle, busy dvfsmodel.Watt
	}{
		{[]string{"T4"}, 10, 70},
		{[]string{"P100"}, 25, 250},
		{[]string{"V100M16", "V100M32", "V100"}, 30, 300},
		{[]string{"A10", "G2"}, 30, 150},
		{[]string{"A100", "G3"}, 50, 400},
	} {
		for _, model := range c.models {
			power := fleet.Power{CPUIdle: 15, CPUBusy: 120, Cores: 16, Threads: 2}
			wantPower(t, profiles, model, 0, power)
			power.GPUIdle, power.GPUBusy = c.idle, c.busy
			wantPower(t, profiles, model, 8, power)
		}
	}
}

func TestAUsersFirstCPUIsThatOfNodesThatDontSay(t *testing.T) {
	mine := readProfiles(t, cpuTable)
	all := BuiltinProfiles().With(mine)
	wantPower(t, all, "T4", 1, fleet.Power{
		GPUIdle: 10, GPUBusy: 70, CPUIdle: 100, CPUBusy: 350, Cores: 64, Threads: 2, Sleep: 20,
	})
	small, err := all.CPU("SMALL")
	if err != nil || *small != (CPU{Name: "small", Cores: 4, Threads: 1, IdleW: 5, BusyW: 5}) {
		t.Errorf("CPU %+v, %v", small, err)
	}
	if old, err := all.CPU("xeon e5 2682 v4"); err != nil || old.Cores != 16 {
		t.Errorf("CPU %+v, %v", old, err)
	}
	again := all.With(readProfiles(t, strings.ReplaceAll(cpuTable, "= 350", "= 400")))
	if big, err := again.CPU("big"); err != nil || big.BusyW != 400 || len(again.cpus) != 3 {
		t.Errorf("CPU %+v, %v, of %d", big, err, len(again.cpus))
	}
}

func TestPowerThatIsntKnownIsAnError(t *testing.T) {
	for _, c := range []struct {
		profiles    *Profiles
		model, want string
	}{
		{BuiltinProfiles(), "GTX980", `GPU model "GTX980" has no busy_w, which placing tasks needs`},
		{readProfiles(t, gpuTable), "H100", `unknown CPU model "", there are none`},
	} {
		if p, err := c.profiles.Power(c.model, 1); err == nil || err.Error() != c.want {
			t.Errorf("%s: %+v, %v, want %s", c.model, p, err, c.want)
		}
	}
	if _, err := BuiltinProfiles().CPU("Xeon E5-2683 v4"); err == nil ||
		!strings.Contains(err.Error(), `did you mean "Xeon E5-2682 v4"?`) {
		t.Errorf("error %v", err)
	}
}

func TestAFaultyCPUModelIsNamedWithItsPosition(t *testing.T) {
	with := func(old, text string) string { return strings.Replace(cpuTable, old, text, 1) }
	for _, c := range []struct{ name, text, want string }{
		{"not an array", "[cpu]\n", "g.toml:1:1: cpu is a table, want an array of tables: [[cpu]]"},
		{
			"missing key", with("cores = 64\n", ""),
			"g.toml:1:1: [[cpu]] has no cores, want a whole number from 1 to 100000",
		},
		{
			"unknown key", with("busy_w", "bsuy_w"),
			"g.toml:6:1: unknown key bsuy_w in [[cpu]], did you mean busy_w?",
		},
		{"no cores", with("64", "0"), "g.toml:3:9: cpu.cores is 0, want a whole number from 1"},
		{
			"part of a thread", with("core = 2", "core = 1.5"),
			"g.toml:4:20: cpu.threads_per_core is 1.5, want a whole number",
		},
		{"negative power", with("350", "-1"), "g.toml:6:10: cpu.busy_w is -1, want a number from 0"},
		{"NaN", with("20", "nan"), "g.toml:7:11: cpu.sleep_w is nan, want a number from 0"},
		{"busy below idle", with("350", "99"), "g.toml:6:10: cpu.busy_w is 99, want at least idle_w, 100"},
		{"two of one name", with(`"small"`, `"BIG"`), `g.toml:11:8: CPU model "BIG" is already on line 1`},
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

func TestAModelWithoutClocksSaysSoWhenItIsPlannedWithThem(t *testing.T) {
	p, err := readProfiles(t, "[[gpu]]\nname = \"K9\"\nidle_w = 1\nbusy_w = 2\n").Lookup("K9")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = p.Table(); err == nil || !strings.Contains(err.Error(), "GPU model K9 has no clocks") {
		t.Errorf("error %v", err)
	}
}
