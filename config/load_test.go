package config

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
)

func load(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Load(strings.NewReader(text), "c.toml", nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// gpuTable is a complete [[gpu]] table of ten lines.
const gpuTable = `[[gpu]]
name = "H100"
aliases = ["NVIDIA H100"]
default_core_mhz = 1500
default_mem_mhz = 2619
clocks = [{ mem_mhz = [2619], core_mhz = { from = 300, to = 1980, step = 15 } }]
idle_w = 60
host_w_per_gpu = 80
voltage = [[300, 0.7], [1200, 0.8], [1980, 1.1]]
source = "a test"
`

// prices begin a configuration by money.
const prices = `[factors]
cost_per_kwh = 0.36
currency = "EUR"
[objective]
name = "cost"
`

func TestEachFaultIsNamedWithItsPositionAndWhatWasMeant(t *testing.T) { //nolint:funlen // most of it is a table
	nodes := "[[cluster.nodes]]\ngpu_model = \"V100\"\ngpus = 4\n"
	for _, c := range []struct{ name, text, want string }{
		{
			"unknown key", "[policy]\nthetta = 1\n",
			"c.toml:2:1: unknown key thetta in [policy], did you mean theta?",
		},
		{
			"unknown key in other case", "[policy]\nTheta = 1\n",
			"c.toml:2:1: unknown key Theta in [policy], did you mean theta?",
		},
		{
			"unknown key like no other", "[policy]\nzzz = 1\n",
			"c.toml:2:1: unknown key zzz in [policy], want one of offline, online, theta, rho",
		},
		{"unknown table", "\n[clutser]\n", "c.toml:2:1: unknown key clutser, did you mean cluster?"},
		{
			"unknown dotted key", "policy.teta = 1\n",
			"c.toml:1:1: unknown key teta in [policy], did you mean theta?",
		},
		{
			"unknown key in the second node", nodes + nodes + "name = \"b\"\nidle_w = 3\n",
			"c.toml:8:1: unknown key idle_w in [[cluster.nodes]], did you mean idle_w_per_gpu?",
		},
		{"unknown quoted key", "\"a b\\n\" = 1\n", `c.toml:1:1: unknown key "a b\n", want one of`},
		{
			"text for a number", "[policy]\ntheta = \"x\"\n",
			`c.toml:2:9: policy.theta is "x", want a number above 0, up to 1`,
		},
		{"date for a number", "[policy]\ntheta = 2020-01-01\n", "policy.theta is a date or time, want"},
		{"table for a number", "[policy.theta]\n", "c.toml:1:1: policy.theta is a table, want a number"},
		{
			"number for a table", "policy = 3\n",
			"c.toml:1:10: policy is 3, want a table that begins with [policy]",
		},
		{"number for a text", "[cluster]\nname = 5\n", "c.toml:2:8: cluster.name is 5, want a line of text"},
		{"empty text", "[cluster]\nname = \"\"\n", `cluster.name is "", want a line of text`},
		{
			"text of two lines", "[cluster]\nname = \"\"\"a\nb\"\"\"\n",
			`c.toml:2:8: cluster.name is "a\nb", want a line of text`,
		},
		{
			"number for yes or no", "[cluster]\noffline_turn_on = 1\n",
			"cluster.offline_turn_on is 1, want true or false",
		},
		{
			"fraction for a whole number", nodes + "count = 1.5\n",
			"c.toml:4:9: cluster.nodes.count is 1.5, want a whole number from 0 to 10000000",
		},
		{"theta 0", "[policy]\ntheta = 0\n", "policy.theta is 0, want a number above 0, up to 1"},
		{"theta above 1", "[policy]\ntheta = 1.01\n", "policy.theta is 1.01, want"},
		{"negative", "[policy]\nrho = -1\n", "policy.rho is -1, want a number from 0 to 1e+09"},
		{
			"not a number", "[safety]\nlimit_margin = nan\n",
			"c.toml:2:16: safety.limit_margin is nan, want a number from 0 to 100",
		},
		{
			"infinite", "[safety]\ndeadline_margin_s = inf\n",
			"safety.deadline_margin_s is +inf, want a number from 0 to 1e+15",
		},
		{
			"turnaround below 1", "[safety]\nmax_turnaround = 0.9\n",
			"safety.max_turnaround is 0.9, want a number from 1 to 1e+06",
		},
		{
			"no GPUs", "[[cluster.nodes]]\ngpu_model = \"V100\"\ngpus = 0\n",
			"c.toml:3:8: cluster.nodes.gpus is 0, want a whole number from 1 to 64",
		},
		{
			"too many GPUs", "[[cluster.nodes]]\ngpu_model = \"V100\"\ngpus = 65\n",
			"cluster.nodes.gpus is 65, want a whole number from 1 to 64",
		},
		{
			"GPUs missing", "\n[[cluster.nodes]]\ngpu_model = \"V100\"\n",
			"c.toml:2:1: [[cluster.nodes]] has no gpus, want a whole number from 1 to 64",
		},
		{
			"unknown GPU model", "[[cluster.nodes]]\ngpu_model = \"V10\"\ngpus = 1\n",
			`c.toml:2:13: unknown GPU model "V10", want one of V100, V100-2022, V100-PCIE, V100-SXM2 or `,
		},
		{
			"unknown GPU model of the second node", nodes +
				"[[cluster.nodes]]\ngpu_model = \"GTX1080\"\ngpus = 1\n",
			`c.toml:5:13: unknown GPU model "GTX1080", want one of GTX1080Ti, GTX1080Ti-11GB, `,
		},
		{
			"two nodes of one name", nodes + nodes + "name = \"v100\"\n",
			`c.toml:7:8: nodes "v100" are already on line 1, want another name`,
		},
		{
			"nodes as one table", "[cluster.nodes]\n",
			"c.toml:1:1: cluster.nodes is a table, want an array of tables: [[cluster.nodes]]",
		},
		{"nodes as numbers", "[cluster]\nnodes = [1]\n", "c.toml:2:10: cluster.nodes has 1, want tables"},
		{
			"no nodes", "[cluster]\nnodes = []\n",
			"c.toml:2:9: cluster.nodes is empty, want at least one kind of node",
		},
		{
			"shared GPUs of unknown memory", nodes + "share = true\n",
			"c.toml:4:9: share is true, want gpu_mem_gb above 0 with it",
		},
		{
			"clocks of shared GPUs out of order", "[cluster.sharing]\nmin_mhz = 1400\n",
			"c.toml:1:1: cluster.sharing has clocks from 1400 to 1350 MHz in steps of 45, want at most " +
				"10000 of them, ascending",
		},
		{
			"unknown policy", "[policy]\noffline = \"eddl\"\n",
			`c.toml:2:11: policy.offline: unknown policy "eddl", did you mean "edl"?`,
		},
		{
			"policy with a wrong option", "[policy]\nonline = \"edl,rho=x\"\n",
			`c.toml:2:10: policy.online: rho: "x", want a number from 0 to 1e+09`,
		},
		{
			"unknown start rule", "[cluster]\nstart = \"slots\"\n",
			`cluster.start is "slots", want one of auto, continuous, slot; did you mean "slot"?`,
		},
		{
			"start at slots without any", "[cluster]\nstart = \"slot\"\n",
			`c.toml:2:9: cluster.start is "slot", want slot_s above 0 with it`,
		},
		{
			"unknown objective", "[objective]\nname = \"speed\"\n",
			`objective.name is "speed", want one of energy, edp, ed2p, time`,
		},
		{
			"no weight", "[objective]\nenergy_weight = 0\n",
			"c.toml:1:1: the weights of energy and time are both 0, want one above 0",
		},
		{
			"energy weighed in time", "[objective]\nname = \"time\"\nenergy_weight = 2\n",
			`c.toml:3:17: objective.energy_weight is 2, want 0 when name is "time"`,
		},
		{
			"waiting priced beside time alone", "[objective]\nname = \"time\"\nwait_weight = 20\n",
			`c.toml:3:15: objective.wait_weight is 20, want 0 unless name is "energy"`,
		},
		{
			"waiting priced beside E·t", "[objective]\nwait_weight = 20\nname = \"edp\"\n",
			`c.toml:2:15: objective.wait_weight is 20, want 0 unless name is "energy"`,
		},
		{
			"waiting priced in joules beside money", prices + "wait_weight = 20\n",
			`c.toml:6:15: objective.wait_weight is 20, want 0 unless name is "energy"`,
		},
		{
			"negative price of waiting", "[objective]\nwait_weight = -1\n",
			"c.toml:2:15: objective.wait_weight is -1, want a number from 0 to 1e+15",
		},
		{
			"money without a price", "[objective]\nname = \"cost\"\ncost_per_gpu_hour = 2\n",
			`c.toml:2:8: objective.name is "cost", want a price of energy with it: set cost_per_kwh and currency in [factors]`,
		},
		{
			"carbon that nobody states", "[objective]\nname = \"carbon\"\n",
			`c.toml:2:8: objective.name is "carbon", want carbon_g_per_kwh in [factors] with it`,
		},
		{
			"carbon and a price of GPUs",
			"[objective]\nname = \"carbon\"\ncost_per_gpu_hour = 2\n[factors]\ncarbon_g_per_kwh = 300\n",
			`c.toml:3:21: objective.cost_per_gpu_hour is 2, want 0 unless name is "cost"`,
		},
		{
			"time weighed beside carbon",
			"[objective]\nname = \"carbon\"\ntime_weight = 50\n[factors]\ncarbon_g_per_kwh = 300\n",
			`c.toml:3:15: objective.time_weight is 50, want it left out when name is "carbon"`,
		},
		{
			"a price without a currency", "[objective]\nname = \"cost\"\n[factors]\ncost_per_kwh = 0.2\n",
			"c.toml:4:16: factors.cost_per_kwh is 0.2, want currency with it",
		},
		{
			"a price of GPUs beside joules", "[objective]\ncost_per_gpu_hour = 2\n",
			`c.toml:2:21: objective.cost_per_gpu_hour is 2, want 0 unless name is "cost"`,
		},
		{
			"energy weighed and priced", prices + "energy_weight = 2\n",
			`c.toml:6:17: objective.energy_weight is 2, want it left out when name is "cost": cost_per_kwh of [factors] weighs energy`,
		},
		{
			"time weighed and priced", prices + "time_weight = 50\n",
			`c.toml:6:15: objective.time_weight is 50, want it left out when name is "cost": cost_per_gpu_hour weighs time`,
		},
		{
			"a tolerance of money", prices + "tolerance = 0.1\n",
			`c.toml:6:13: objective.tolerance is 0.1, want it left out when name is "cost"`,
		},
		{
			"a pace above max_turnaround", "[policy]\nonline = \"replan,pace=3\"\n",
			`c.toml:2:10: policy.online is "replan,pace=3", want a pace of max_turnaround, 1.5, at most`,
		},
		{
			"a pace that the policy doesn't go by", "[policy]\nonline = \"replan\"\n[safety]\npace = 1.1\n",
			`c.toml:4:8: safety.pace is 1.1, want it left out, or policy.online "best": "replan" doesn't go by it`,
		},
		{"not UTF-8", "a = 1\nb = \"\xff\"\n", "c.toml:2:6: byte 0xff, want UTF-8 text"},
		{"UTF-16", "\xff\xfea\x00", "c.toml:1:1: byte 0xff, want UTF-8 text"},
		{"zero bytes", "\x00\x01\x02", "c.toml:1:1: "},
		{
			"too deep", "a = " + strings.Repeat("[", 100_000),
			"c.toml:1:1: keys or values are nested too deeply, want at most 32 levels",
		},
		{"too long a key", strings.Repeat("a.", 100_000) + "a = 1", "nested too deeply"},
	} {
		t.Run(c.name, func(t *testing.T) { wantFault(t, c.text, c.want) })
	}
}

func TestFaultsOfSyntaxSayWhatWasFoundAndWhatWasExpected(t *testing.T) {
	nodes := "[[cluster.nodes]]\ngpu_model = \"V100\"\ngpus = 4\n"
	for _, c := range []struct{ name, text, want string }{
		{
			"key twice", "[policy]\nrho = 1\nrho = 2\n",
			"c.toml:3:1: policy.rho is set on line 2 already, want it once",
		},
		{
			"table twice", "[policy]\nrho = 1\n[policy]\n",
			"c.toml:3:2: policy is set on line 1 already, want it once",
		},
		{
			"key twice in the second node", nodes + nodes + "gpus = 4\n",
			"c.toml:7:1: cluster.nodes.gpus is set on line 6 already, want it once",
		},
		{
			"one table, then several", "[cluster.nodes]\n[[cluster.nodes]]\n",
			"c.toml:2:3: cluster.nodes is one table on line 1, want [[cluster.nodes]] each time",
		},
		{
			"two equals signs", "[policy]\nrho = = 1\n",
			`c.toml:2:7: found "=", want a value: "text" in quotes, a number, true or false`,
		},
		{
			"text without quotes", "[cluster]\nname = here\n",
			`c.toml:2:8: found "here", want a value: "text" in quotes, a number, true or false`,
		},
		{
			"yes for true", "[cluster]\noffline_turn_on = yes # or no\n",
			`c.toml:2:19: found "yes", want a value`,
		},
		{
			"no value", "[cluster]\nname =\nslot_s = 1\n",
			"c.toml:2:7: found the end of the line, want a value",
		},
		{"no key", "[cluster]\n = 3\n", `c.toml:2:2: found "= 3", want key = value`},
		{"colon for an equals sign", nodes + "cpus: 4\n", `c.toml:4:1: found "cpus: 4", want key = value`},
		{"JSON", "{\"cluster\": 1}\n", `c.toml:1:1: found "{\"cluster\": 1}", want key = value`},
		{"a sentence", "hello\n", `c.toml:1:1: found "hello", want key = value`},
		{
			"two settings on a line", "[cluster]\nname = \"x\" slot_s = 1\n",
			`c.toml:2:12: found "slot_s = 1", want one key = value on a line`,
		},
		{"table header left open", "[policy\n", `c.toml:1:1: found "[policy", want [name] or [[name]]`},
		{
			"text left open", "[cluster]\nname = \"x\n",
			"c.toml:2:10: found the end of the line, want a closing quote",
		},
		{"text left open at the end", "[cluster]\nname = \"x", "want a closing quote"},
		{"array left open", "[cluster]\nnodes = [\n", `want a value`},
		{"array without a comma", "[live]\noperators = [\"a\" \"b\"]\n", `want a comma or ]`},
		{"table without a comma", "[live]\nmodes = {a = \"off\" b = \"off\"}\n", `want a comma or }`},
		{
			"Windows path", "[live.sharing]\ncontention = \"C:\\quick\"\n",
			`c.toml:2:17: found "\\q", want \\ for a backslash, or text in 'single quotes'`,
		},
		{
			"leading zero", nodes + "count = 04\n",
			`c.toml:4:9: found "04", want a number such as 12, 0.5 or 1e6`,
		},
		{
			"number beyond all", "[cluster]\nslot_s = 1e400\n",
			`c.toml:2:10: found "1e400", want a number such as`,
		},
	} {
		t.Run(c.name, func(t *testing.T) { wantFault(t, c.text, c.want) })
	}
}

// wantFault wants the first fault of a text to say something.
func wantFault(t *testing.T, text, want string) {
	t.Helper()
	got, err := Load(strings.NewReader(text), "c.toml", nil)
	if err == nil || got != nil {
		t.Fatalf("loaded %+v, want an error", got)
	}
	if first, _, _ := strings.Cut(err.Error(), "\n"); !strings.Contains(first, want) {
		t.Errorf("error  %s\nwants  %s", first, want)
	}
	if _, ok := errors.AsType[*FileError](err); !ok {
		t.Errorf("error is a %T, want a FileError", err)
	}
}

func TestAllFaultsAreReportedInTheOrderOfTheFile(t *testing.T) {
	_, err := Load(strings.NewReader("[safety]\nmax_turnaround = 0\nx = 1\n[policy]\nrho = -1\n"+
		"[objective]\nname = 1\n"), "c.toml", nil)
	file, ok := errors.AsType[*FileError](err)
	if !ok {
		t.Fatalf("error %v", err)
	}
	lines := make([]int, 0, len(file.Faults))
	for _, fault := range file.Faults {
		lines = append(lines, fault.Pos.Line)
	}
	if want := []int{2, 3, 5, 7}; !reflect.DeepEqual(lines, want) {
		t.Errorf("faults on lines %v, want %v", lines, want)
	}
}

func TestALongListOfFaultsIsCut(t *testing.T) {
	_, err := Load(strings.NewReader(strings.Repeat("[[cluster.nodes]]\n", 20)), "c.toml", nil)
	text := err.Error()
	if n := strings.Count(text, "\n"); n != 10 || !strings.HasSuffix(text, "\nand 30 more") {
		t.Errorf("message has %d line ends: %s", n, text)
	}
}

func TestAMessageCannotActOnATerminal(t *testing.T) {
	_, err := Load(strings.NewReader("\"\\u001b[2J\" = 1\n[cluster]\nname = \"\\u001b[2J\"\n"),
		"\x1b.toml", nil)
	if strings.Contains(err.Error(), "\x1b") {
		t.Errorf("message %q", err)
	}
}

func TestAFileThatIsTooLargeIsNamed(t *testing.T) {
	if _, err := Load(strings.NewReader(strings.Repeat("#", maxBytes+1)), "big.toml", nil); err == nil ||
		!strings.Contains(err.Error(), "big.toml is larger than 4 MiB") {
		t.Errorf("big file: %v", err)
	}
}

func TestAnEmptyFileIsTheDefault(t *testing.T) {
	if c := load(t, ""); !sameConfig(c, Default()) {
		t.Errorf("loaded %+v, want %+v", c, Default())
	}
}

// sameConfig leaves out where values come from.
func sameConfig(a, b *Config) bool {
	x, y := *a, *b
	x.origin, y.origin = nil, nil
	return reflect.DeepEqual(x, y)
}

//nolint:lll // a file as it is
func TestAFileChangesWhatItNames(t *testing.T) {
	c := load(t, `
policy.theta = 0.9
[objective]
name = "edp"
time_weight = 2
[safety]
deadline_margin_s = 30
[cluster]
slot_s = 60
nodes = [{ gpu_model = "tesla v100", gpus = 8, idle_w_per_gpu = 0 }, { name = "old", gpu_model = "gtx-1080-ti", gpus = 1, count = 3, host_w_per_gpu = 7 }]
`)
	if want := (Policy{Offline: Best, Online: Best, Theta: 0.9, Rho: 2}); c.Policy != want {
		t.Errorf("policy %+v, want %+v", c.Policy, want)
	}
	if want := (Safety{LimitMargin: 0.1, DeadlineMargin: 30, MaxTurnaround: 1.5, Pace: 1}); c.Safety != want {
		t.Errorf("safety %+v, want %+v", c.Safety, want)
	}
	if want := (dvfsmodel.Objective{EnergyWeight: 1, TimeWeight: 2, DelayPower: 1}); c.Goal().Objective !=
		want {
		t.Errorf("objective %+v, want %+v", c.Goal().Objective, want)
	}
	want := planner.Cluster{Name: "cluster", Slot: 60, OfflineTurnOn: true, Classes: []planner.NodeClass{
		{Name: "v100", Model: "V100", GPUs: 8, HostW: 25, TurnOn: 90, Steps: planner.StepPower{GPUBusy: 300}},
		{
			Name: "old", Model: "GTX1080Ti", Count: 3, GPUs: 1, IdleW: 13, HostW: 7, TurnOn: 90,
			Steps: planner.StepPower{GPUIdle: 13, GPUBusy: 250},
		},
	}}
	got := c.Cluster()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("cluster %+v, want %+v", got, want)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
}

func TestTheObjectiveTimeWeighsNoEnergy(t *testing.T) {
	want, err := dvfsmodel.ObjectiveByName("time")
	if err != nil {
		t.Fatal(err)
	}
	if got := load(t, `objective.name = "time"`).Goal().Objective; got != want {
		t.Errorf("objective %+v, want %+v", got, want)
	}
}

func TestWaitingMayHaveAPriceBesideEnergyAndTime(t *testing.T) {
	want := Goal{
		Objective:  dvfsmodel.Objective{EnergyWeight: 1, TimeWeight: 50},
		WaitWeight: 20, Tolerance: policy.DefaultTolerance,
	}
	if got := load(t, "[objective]\ntime_weight = 50\nwait_weight = 20\n").Goal(); got != want {
		t.Errorf("goal %+v, want %+v", got, want)
	}
}

// TestMoneyIsPricesOfJoulesAndSeconds: .36 EUR a kWh are 1e-7 EUR a joule, where a site
// takes no more than its computers do, and 7.2 EUR an hour are .002 EUR a second.
func TestMoneyIsPricesOfJoulesAndSeconds(t *testing.T) {
	goal := load(t, prices+"cost_per_gpu_hour = 7.2\n").Goal()
	if o := goal.Objective; math.Abs(o.EnergyWeight-1e-7) > 1e-18 || math.Abs(o.TimeWeight-0.002) > 1e-12 ||
		o.DelayPower != 0 || goal.Currency != "EUR" {
		t.Errorf("goal %+v, want 1e-07 EUR a joule and 0.002 EUR a second", goal)
	}
	site := load(t, strings.Replace(prices, "[objective]", "pue = 1.3\n[objective]", 1)).Goal()
	if o := site.Objective; math.Abs(o.EnergyWeight-1.3e-7) > 1e-18 || o.TimeWeight != 0 {
		t.Errorf("goal %+v, want 1.3e-07 EUR a joule and no price of time", site)
	}
}

func TestTheStartRuleFollowsTheModeUnlessGiven(t *testing.T) {
	for _, c := range []struct {
		text string
		mode planner.Mode
		want planner.StartRule
	}{
		{"", planner.Online, planner.StartContinuous},
		{"cluster.slot_s = 60", planner.Online, planner.StartSlot},
		{"cluster.slot_s = 60", planner.Offline, planner.StartContinuous},
		{"cluster.slot_s = 60\ncluster.start = 'slot'", planner.Offline, planner.StartSlot},
		{"cluster.slot_s = 60\ncluster.start = 'continuous'", planner.Online, planner.StartContinuous},
	} {
		if got := load(t, c.text).Start(c.mode); got != c.want {
			t.Errorf("%q, %v: %v, want %v", c.text, c.mode, got, c.want)
		}
	}
}

func TestNodesMayNameGPUModelsOfTheSameFile(t *testing.T) {
	c := load(t, "[[cluster.nodes]]\ngpu_model = \"nvidia h100\"\ngpus = 8\n"+gpuTable)
	k := c.Cluster().Classes[0]
	if k.Model != "H100" || k.IdleW != 60 || k.HostW != 80 {
		t.Errorf("node class %+v", k)
	}
	if _, err := c.Profiles().Lookup("V100"); err != nil {
		t.Error(err)
	}
}

func TestAFaultyGPUModelIsReportedOnce(t *testing.T) {
	faulty := strings.Replace(gpuTable, "idle_w = 60", "idle_w = -60", 1)
	_, err := Load(strings.NewReader(faulty+"[[cluster.nodes]]\ngpu_model = \"H100\"\ngpus = 8\n"),
		"c.toml", nil)
	if want := "c.toml:7:10: gpu.idle_w is -60, want a number from 0 to 1e+15"; err == nil ||
		err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestThePaperClusterIsValidAndItsModelKnown(t *testing.T) {
	for _, gpus := range []int{1, 16, planner.MaxGPUs} {
		cluster := PaperCluster(gpus)
		if err := cluster.Validate(); err != nil {
			t.Error(err)
		}
		k := cluster.Classes[0]
		p, err := BuiltinProfiles().Lookup(k.Model)
		if err != nil {
			t.Fatal(err)
		}
		if k.GPUs != gpus || k.IdleW != 37 || k.TurnOn != 90 || k.HostW != 0 || k.Count != 0 ||
			p.IdleW != k.IdleW {
			t.Errorf("node class %+v", k)
		}
		if cluster.Slot != 1 || cluster.OfflineTurnOn {
			t.Errorf("cluster %+v", cluster)
		}
	}
}
