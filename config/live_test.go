package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

func TestLiveSettingsAreRead(t *testing.T) {
	c := load(t, "[live]\nmode = \"advise\"\nmodes = {gpu = \"enforce\", \"a b\" = \"observe\"}\n"+
		"hold_out = 0.2\nmin_core = 0.5")
	for partition, want := range map[string]live.Mode{
		"gpu": live.Enforce, "a b": live.Observe,
		"other": live.Advise, "": live.Advise,
	} {
		if got := c.Live.ModeOf(partition); got != want {
			t.Errorf("partition %q: %s, want %s", partition, got, want)
		}
	}
	if c.Live.HoldOut != 0.2 || c.Live.MinCore != 0.5 || c.Live.MaxCore != 1.5 {
		t.Errorf("%+v", c.Live)
	}
	var text strings.Builder
	if err := c.Show(&text); err != nil {
		t.Fatal(err)
	}
	if again := load(t, text.String()); again.Live.ModeOf("gpu") != live.Enforce ||
		again.Live.ModeOf("a b") != live.Observe {
		t.Errorf("shown and read again: %+v", again.Live)
	}
}

func TestOfSeveralPartitionsTheMostCarefulModeCounts(t *testing.T) {
	c := load(t, "[live]\nmode = \"enforce\"\nmodes = {obs = \"observe\", adv = \"advise\"}\n[live.adapt]\n"+
		"mode = \"on\"\nmodes = {adv = \"off\"}")
	for partitions, want := range map[string]live.Mode{
		"main,gpu": live.Enforce, "main,adv": live.Advise,
		"adv,main": live.Advise, "adv,obs,main": live.Observe, "obs,adv": live.Observe,
	} {
		if got := c.Live.ModeOf(partitions); got != want {
			t.Errorf("partitions %q: %s, want %s", partitions, got, want)
		}
	}
	for partitions, want := range map[string]Adapt{
		"main,gpu": AdaptOn, "main,adv": AdaptOff,
		"adv,main": AdaptOff,
	} {
		if got := c.Live.Adapt.ModeOf(partitions); got != want {
			t.Errorf("partitions %q: adapt is %s, want %s", partitions, got, want)
		}
	}
}

func TestModesMayBeATableOfTheirOwn(t *testing.T) {
	if c := load(t, "[live.modes]\ngpu = \"enforce\""); c.Live.ModeOf("gpu") != live.Enforce ||
		c.Live.Mode != live.Observe {
		t.Errorf("%+v", c.Live)
	}
}

func TestWithoutAFileNothingIsTouched(t *testing.T) {
	if m := Default().Live.ModeOf("any"); m != live.Observe {
		t.Errorf("mode %s", m)
	}
}

func TestWrongLiveSettingsAreNamedWithTheirPosition(t *testing.T) { //nolint:funlen // most of it is a table
	for text, want := range map[string]string{
		"[live]\nmode = \"enforec\"":     `2:8: live.mode is "enforec"`,
		"[live]\nmodes = 3":              "2:9: live.modes is 3",
		"[live]\nmodes = {gpu = \"on\"}": `live.modes.gpu is "on"`,
		"[live]\nmodes = {gpu = true}":   "live.modes.gpu is true",
		"[live]\nhold_out = 1.5":         "2:12: live.hold_out is 1.5",
		"[live]\nconstant_arm = 1.5":     "2:16: live.constant_arm is 1.5",
		"[live]\nhold_out = 0.6\nconstant_arm = 0.5\nconstant_clocks = " +
			"{V100 = 1087}": "3:16: live.constant_arm is 0.5, want at most 0.4: hold_out is 0.6",
		"[live]\nconstant_arm = 0.1": "2:16: live.constant_arm is 0.1, want " +
			"constant_clocks with it, such as {V100 = [1087, 877]}: epplan plan --json",
		"[live]\nconstant_arm = 0.1\nconstant_clocks = {}": "3:19: live.constant_clocks " +
			"names no clocks",
		"[live]\nconstant_clocks = 1087": "2:19: live.constant_clocks is 1087, " +
			"want a table of GPU models",
		"[live]\nconstant_clocks = {V100 " +
			"= \"1087\"}": `2:27: live.constant_clocks.V100 is "1087", want a core clock in MHz, or [core, mem]`,
		"[live]\nconstant_clocks = {V100 = []}": "live.constant_clocks.V100 is an " +
			"array, want a core clock",
		"[live]\nconstant_clocks = {V100 = [1087, 877, 1]}": "live.constant_clocks.V100 is an " +
			"array, want a core clock",
		"[live]\nconstant_clocks = {V100 = [1087, 0]}": "live.constant_clocks.V100 is an " +
			"array, want a core clock",
		"[live.constant_clocks]\nV100 = -1": "2:8: live.constant_clocks.V100 is " +
			"-1, want a core clock",
		"[live.constant_clocks]\nV100 = 1087\n" +
			"\"Tesla V100\" = 945": `live.constant_clocks has GPU model "V100" twice`,
		"[live.constant_clocks]\nV10O = 1087": "2:1: live.constant_clocks: ",
		"[live.constant_clocks]\n" +
			"V100 = 1000": `2:8: live.constant_clocks: GPU model "V100" has no core 1000 MHz with memory 877 MHz, the nearest it has is [945, 877]; should its`,
		"[live.constant_clocks]\n" +
			"V100 = [1087, 800]": `2:8: live.constant_clocks: GPU model "V100" has no core 1087 MHz with memory 800 MHz`,
		"[live]\nmin_core = 0.9\n" +
			"constant_clocks = " +
			"{V100 = 1087}": `live.constant_clocks: core 1087 MHz with memory 877 MHz of GPU model "V100" is outside min_core`,
		"[live]\nmin_core = 1.2\nmax_core = 0.9": "live.min_core is 1.2, want at " +
			"most max_core, 0.9",
		"[live]\nmin_mem = 1.2\nmax_mem = 0.9": "live.min_mem is 1.2, want at " +
			"most max_mem, 0.9",
		"[live]\nholdout = 0.1":        "unknown key holdout in [live]",
		"[live]\nreorder = \"mine\"":   `2:11: live.reorder is "mine", want one of off, own, all`,
		"[live]\nreorders = {gpu = 1}": "live.reorders.gpu is 1",
		"[live]\nreorders = \"all\"":   "2:12: live.reorders is",
		"[live.pick]\n" +
			"policy = \"valeu\"": `live.pick.policy: unknown policy "valeu", did you mean "value"?`,
		"[live.pick]\n" +
			"policy = \"dedline\"": `live.pick.policy: unknown policy "dedline", did you mean "deadline"?`,
		"[live.pick]\npolicy = \"value,kappa=x\"": `live.pick.policy: kappa: "x"`,
		"[live.pick]\n" +
			"policy = \"best\"": `2:10: live.pick.policy: "best" is for plans`,
		"[live.pick]\nevery_s = 0": "2:11: live.pick.every_s is 0, want " +
			"a number from 1",
		"[live.pick]\nageing_s = -1":         "2:12: live.pick.ageing_s is -1",
		"[live.pick]\nageing_factor = \"3\"": "2:17: live.pick.ageing_factor is",
		"[live.adapt]\n" +
			"mode = \"onn\"": `2:8: live.adapt.mode is "onn", want one of off, on; did you mean "on"?`,
		"[live.adapt]\nmodes = {gpu = true}": "live.adapt.modes.gpu is true",
		"[live.adapt]\nsla = 0.9": "2:7: live.adapt.sla is 0.9, want " +
			"a number from 1",
		"[live.adapt]\ntau_s = 1": "2:9: live.adapt.tau_s is 1, want a " +
			"number from 0.02 to 0.15",
		"[live.adapt]\n" +
			"writes_per_minute = 1.5": "2:21: live.adapt.writes_per_minute is 1.5",
		"[live.cap]\nmode = \"constant\"": "2:8: live.cap.mode is \"constant\", want live.cap.limit with it",
		"[live.cap]\nmodes = {gpu = \"constant\"}\nlimits = {other = 0.5}": "2:9: live.cap.modes has partition " +
			"\"gpu\" at \"constant\", want live.cap.limit with it",
		"[live.profile]\nname = \"max-q\"":        `2:8: live.profile.name is "max-q", want one of off, Max-P, Max-Q, `,
		"[live.profile]\nnames = {gpu = \"Eco\"}": `2:16: live.profile.names.gpu is "Eco", want one of off, `,
		"[live.cap]\nlimit = -1":                  "2:9: live.cap.limit is -1, want a number from 0 to 3000",
		"[live.cap]\nlimits = {gpu = \"80%\"}":    `2:17: live.cap.limits.gpu is "80%", want a number from 0 to 3000`,
		"[live.cap]\nlimits = 0.8":                "2:10: live.cap.limits is 0.8, want a table of partitions",
		"[live.cap]\nmode = \"on\"":               `live.cap.mode is "on", want one of off, chosen, constant`,
		"[live]\nadapt = \"on\"":                  `2:9: live.adapt is "on", want a table`,
		"[live.pick]\nwait_s = 3":                 "unknown key wait_s in [live.pick]",
		"[live.sharing]\nruns = 1":                "2:8: live.sharing.runs is 1, want",
		"[live.sharing]\nspread = 0":              "2:10: live.sharing.spread is 0",
		"[live.sharing]\nslowdown = 0.9": "2:12: live.sharing.slowdown is 0.9, " +
			"want a number from 1",
		"[live.sharing]\nweights = 1": "2:11: live.sharing.weights is 1",
		"[live]\nsharing = true": "2:11: live.sharing is " +
			"true, want a table",
		"[live]\npick = \"value\"": "2:8: live.pick is " +
			"\"value\", want a table",
		"[live]\nweights = 1": "2:11: live.weights is 1, " +
			"want true or false",
		"[live]\nprefer = \"h200\"":   "2:10: live.prefer is",
		"[live]\nsleep_after_s = -1":  "2:17: live.sleep_after_s is -1",
		"[live]\noperators = \"ann\"": "2:13: live.operators is",
		"[live]\noperators = " +
			"[\"ann\", \"a b\"]": `2:21: live.operators has "a b", want the name of a user`,
		"[live]\noperators = [\"ann\", \"ann\"]": `2:21: live.operators has "ann" twice`,
		"[live]\nadmin_hosts = [\"login1:22\"]": `2:16: live.admin_hosts has "login1:22", want the name of a machine, ` +
			"or its address, without a port",
		"[live]\nadmin_hosts = [\"login1\", \"login1\"]": `2:26: live.admin_hosts has "login1" twice`,
		"[live]\nnode_hosts = [\"0.0.0.0\"]":             `live.node_hosts has "0.0.0.0", want the name of a machine`,
		"[live]\nnode_hosts = \"gw\"":                    "live.node_hosts is",
		"[live]\noperators = [7]":                        "2:14: live.operators has 7",
		"[records]\nkeep_days = -1":                      "2:13: records.keep_days is -1",
		"[records]\nkeep_days = 1.5":                     "2:13: records.keep_days is 1.5",
		"[budget]\ncluster_w = -1":                       "2:13: budget.cluster_w is -1",
		"[budget]\npartitions_w = {gpu = 0}":             "budget.partitions_w.gpu is 0",
		"[budget]\nnodes_w = {\"n[1-\" = 4}":             "budget.nodes_w",
		"[budget]\nlease_s = 0.1":                        "2:11: budget.lease_s is 0.1",
		"[budget]\nmode = \"on\"":                        "2:8: budget.mode is",
		"[factors]\npue = 0.9":                           "2:7: factors.pue is 0.9",
		"[factors]\ncarbon_g_per_kwh = -1":               "2:20: factors.carbon_g_per_kwh is -1",
		"[factors]\ncarbon_kg_per_kwh = 1":               `did you mean carbon_g_per_kwh?`,
		"[factors]\ncurrency = \"a\\nb\"":                "2:12: factors.currency is",
		"[factors]\ncost_per_kwh = 0.3": "2:16: factors.cost_per_kwh is 0.3, " +
			"want currency with it",
		"[live.modes]\n\"a\\u0000b\" = \"observe\"": "want a name",
	} {
		_, err := Load(strings.NewReader(text), "site.toml", nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestARangeOfClocksIsRelativeToTheDefaultOnes(t *testing.T) {
	l := Live{MinCore: 0.5, MaxCore: 1, MinMem: 1, MaxMem: 1}
	base := BuiltinProfiles().byName("V100").Default
	for core, want := range map[float64]bool{690: true, 689: false, 1380: true, 1381: false} {
		if got := l.AllowsClocks(dvfsmodel.MHz(core), 877, base); got != want {
			t.Errorf("core %v MHz: %t", core, got)
		}
	}
	if l.AllowsClocks(1000, 850, base) {
		t.Error("memory 850 MHz")
	}
}

func TestSteeringSettingsAreRead(t *testing.T) {
	c := load(t, "[live]\nreorder = \"off\"\nreorders = {gpu = \"all\"}\nweights = true\nprefer = true\n"+
		"sleep_after_s = 600\noperators = [\"ann\", \"Bob.2\"]")
	l := &c.Live
	if l.ReorderOf("gpu") != ReorderAll || l.ReorderOf("x") != ReorderOff || !l.Weights || !l.Prefer ||
		l.SleepAfter != 600 {
		t.Errorf("%+v", l)
	}
	if !slices.Equal(l.Operators, []string{"ann", "Bob.2"}) {
		t.Errorf("operators %q", l.Operators)
	}
	if d := Default().Live; d.ReorderOf("gpu") != ReorderOwn || d.Weights || d.Prefer || d.SleepAfter != 0 ||
		len(d.Operators) > 0 {
		t.Errorf("default %+v", d)
	}
}

func TestEnergyIsTurnedIntoWhatItCosts(t *testing.T) {
	c := load(t, "[records]\nkeep_days = 30\n[factors]\ncarbon_g_per_kwh = 400\nwater_l_per_kwh = 2\n"+
		"cost_per_kwh = 0.25\ncurrency = \"EUR\"\npue = 1.5")
	if c.Records.KeepDays != 30 || c.Factors.Currency != "EUR" {
		t.Errorf("%+v %+v", c.Records, c.Factors)
	}
	if got, want := c.Factors.Footprint(7.2e6),
		(Footprint{KWh: 3, Carbon: 1200, Water: 6, Cost: 0.75}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	d := Default()
	if got, want := d.Factors.Footprint(3.6e6), (Footprint{KWh: 1}); got != want ||
		d.Records.KeepDays != 400 {
		t.Errorf("%+v, want %+v; %+v", got, want, d.Records)
	}
	if got, want := new(Factors).Footprint(-3.6e6), (Footprint{KWh: -1}); got != want {
		t.Errorf("without a PUE %+v, want %+v", got, want)
	}
}

func TestNothingIsSharedUnlessItIsAskedFor(t *testing.T) {
	if s := Default().Live.Sharing; s != (LiveSharing{Runs: 3, Spread: 0.25, Slowdown: 1.2}) {
		t.Errorf("%+v", s)
	}
	c := load(t, "[live.sharing]\nweights = true\nruns = 5\nspread = 0.1\nslowdown = 1.5")
	if want := (LiveSharing{true, 5, 0.1, 1.5, ""}); c.Live.Sharing != want {
		t.Errorf("%+v", c.Live.Sharing)
	}
}

func TestNoClockIsAdaptedUnlessItIsAskedFor(t *testing.T) {
	if a := Default().Live.Adapt; a.ModeOf("any") != AdaptOff || a.SLA != 1.2 || a.Tau != 0.1 ||
		a.Writes != 30 || a.WritePause != 1 || a.MaxGPUs != 1 {
		t.Errorf("%+v", a)
	}
	c := load(t, "[live.adapt]\nmodes = {gpu = \"on\"}\nsla = 1.5\ntau_s = 0.05\nwrites_per_minute = 12\n"+
		"write_pause_s = 0\nmax_gpus = 8")
	if a := c.Live.Adapt; a.ModeOf("gpu") != AdaptOn || a.ModeOf("other") != AdaptOff || a.SLA != 1.5 ||
		a.Tau != 0.05 || a.Writes != 12 || a.WritePause != 0 || a.MaxGPUs != 8 {
		t.Errorf("%+v", a)
	}
}

func TestTheOrderOfTheQueueIsADeadlineOrAPolicy(t *testing.T) {
	c := load(t, "[live.pick]\npolicy = \"value,kappa=1e-5\"\nevery_s = 20\nageing_s = 3600\n"+
		"ageing_factor = 2.5")
	if want := (LivePick{"value,kappa=1e-5", 20, 3600, 2.5}); c.Live.Pick != want {
		t.Errorf("%+v", c.Live.Pick)
	}
	if _, wanted := c.Live.Planning(); wanted {
		t.Error("an order is made though nothing is touched")
	}
	c.Live.Mode = live.Advise
	plan, wanted := c.Live.Planning()
	if p, err := plan.Parse(); err != nil || p.Name != "value,kappa=1e-5" || !wanted || !plan.OrderOnly ||
		plan.Every != 20 || plan.Stale != 600 || plan.Window != 1000 {
		t.Errorf("%+v, %v, %+v", p, err, plan)
	}
	c = load(t, "[live]\nmode = \"enforce\"")
	if p, wanted := c.Live.Planning(); wanted || c.Live.Pick.Ageing != 86400 {
		t.Errorf("without a policy: %+v, %+v", p, c.Live.Pick)
	}
	c = load(t, "[live.pick]\npolicy = \"easy\"")
	var text strings.Builder
	if err := c.Show(&text); err != nil {
		t.Fatal(err)
	}
	if again := load(t, text.String()); again.Live.Pick != c.Live.Pick ||
		!strings.Contains(text.String(), `policy = "easy" # `) {
		t.Errorf("shown and read again: %+v", again.Live.Pick)
	}
}

func TestClocksOfTheConstantArmAreReadByGPUModel(t *testing.T) {
	const own = "[[gpu]]\nname = \"Own\"\ndefault_core_mhz = 1000\ndefault_mem_mhz = 500\nidle_w = 10\n" +
		"clocks = [{mem_mhz = [500, 600], core_mhz = [800, 1000]}]\n"
	want := map[string]dvfsmodel.Setting{"V100": {Core: 1087}, "Own": {Core: 800, Mem: 600}}
	for _, text := range []string{
		"[live]\nconstant_arm = 0.1\nhold_out = 0.9\n" +
			"constant_clocks = {\"Tesla V100\" = 1087, own = [800, 600]}\n" + own,
		own + "[live]\nconstant_arm = 0.1\nhold_out = 0.9\n[live.constant_clocks]\nv100 = [1087]\n" +
			"Own = [800, 600]",
	} {
		c := load(t, text)
		if c.Live.ConstantArm != 0.1 || !maps.Equal(c.Live.ConstantClocks, want) {
			t.Errorf("%v of the jobs at %v", c.Live.ConstantArm, c.Live.ConstantClocks)
		}
		var shown strings.Builder
		if err := c.Show(&shown); err != nil {
			t.Fatal(err)
		}
		if again := load(t, shown.String()); again.Live.ConstantArm != 0.1 ||
			!maps.Equal(again.Live.ConstantClocks, want) {
			t.Errorf("shown and read again: %+v", again.Live)
		}
	}
	if l := Default().Live; l.ConstantArm != 0 || l.ConstantClocks != nil {
		t.Errorf("by default %v of the jobs at %v", l.ConstantArm, l.ConstantClocks)
	}
}

func TestNoPowerLimitIsSetUnlessItIsAskedFor(t *testing.T) {
	if c := Default().Live.Cap; c.ModeOf("any") != CapOff || c.LimitOf("any", 300) != 0 {
		t.Errorf("%+v", c)
	}
	const text = "[live.cap]\nmodes = {gpu = \"constant\", pascal = \"chosen\"}\n" +
		"limit = 0.75\nlimits = {gpu = 200}"
	c := load(t, text)
	var shown strings.Builder
	if err := c.Show(&shown); err != nil {
		t.Fatal(err)
	}
	for _, l := range []*LiveCap{&c.Live.Cap, &load(t, shown.String()).Live.Cap} {
		for partitions, want := range map[string]CapMode{
			"gpu": CapConstant, "pascal": CapChosen, "x": CapOff, "gpu,pascal": CapChosen, "pascal,x": CapOff,
		} {
			if got := l.ModeOf(partitions); got != want {
				t.Errorf("partitions %q: %s, want %s", partitions, got, want)
			}
		}
		if a, b, c := l.LimitOf("gpu", 300), l.LimitOf("x", 300), l.LimitOf("gpu,x", 300); a != 200 || b != 225 ||
			c != 225 {
			t.Errorf("limits %v, %v and, of both, %v", a, b, c)
		}
	}
}

func TestAPlanMayDoNoMoreThanEPD(t *testing.T) {
	c := load(t, "[live]\nmode = \"enforce\"\nmodes = {debug = \"advise\", free = \"observe\"}\n"+
		"[live.plan]\nmode = \"observe\"\nmodes = {gpu = \"enforce\", debug = \"enforce\", free = \"enforce\", "+
		"old = \"off\"}\npolicy = \"best\"\nwindow = 20000\nstale_jobs = 0.5")
	for partitions, want := range map[string]PlanMode{
		"gpu": PlanEnforce, "debug": PlanAdvise, "free": PlanObserve, "old": PlanOff, "other": PlanObserve,
		"gpu,debug": PlanAdvise, "gpu,old": PlanOff,
	} {
		if got := c.Live.PlanModeOf(partitions); got != want {
			t.Errorf("partitions %q: %s, want %s", partitions, got, want)
		}
	}
	for partition, want := range map[string]live.Mode{
		"gpu": live.Enforce, "debug": live.Advise, "old": live.Observe, "other": live.Observe,
	} {
		if got := c.Live.OrderModeOf(partition); got != want {
			t.Errorf("the order of partition %q: %s, want %s", partition, got, want)
		}
	}
	plan, wanted := c.Live.Planning()
	if p, err := plan.Parse(); err != nil || !wanted || plan.OrderOnly || plan.Window != 20000 ||
		plan.StaleJobs != 0.5 || plan.Every != 60 || p.Improve == nil {
		t.Errorf("%+v, %v, %+v", p, err, plan)
	}
	if p, wanted := Default().Live.Planning(); wanted || Default().Live.PlanModeOf("any") != PlanOff {
		t.Errorf("unasked for: %+v", p)
	}
	_, err := Load(strings.NewReader("[live]\nmode = \"enforce\"\n[live.pick]\npolicy = \"value\"\n"+
		"[live.plan]\nmode = \"advise\"\n"), "site.toml", nil)
	const want = "live.pick.policy is \"value\" beside a plan by \"edl\""
	if text := fmt.Sprint(err); !strings.Contains(text, want) || !strings.Contains(text, ":6:") {
		t.Error(text)
	}
}

func TestHowMuchLongerAJobMayRunIsSaidByPartition(t *testing.T) {
	c := load(t, "[live]\nmax_slowdown = 1.2\nmax_slowdowns = {long = 1.5, debug = 1}\n")
	for partitions, want := range map[string]float64{
		"": 1.2, "gpu": 1.2, "long": 1.5, "debug": 1, "long,gpu": 1.2, "long,debug,gpu": 1, "long,long": 1.5,
	} {
		if got := c.Live.SlowdownOf(partitions); got != want {
			t.Errorf("partitions %q: %v, want %v", partitions, got, want)
		}
	}
	if got := c.Live.MostSlowdown(); got != 1.5 {
		t.Errorf("at most %v anywhere", got)
	}
	_, err := Load(strings.NewReader("[live]\nmax_slowdowns = {a = 0.9}\n"), "c.toml", nil)
	if err == nil || !strings.Contains(err.Error(), "live.max_slowdowns.a is 0.9, want a number from 1 to") {
		t.Errorf("a wrong one: %v", err)
	}
}

func TestHintsAreSaidEverywhereOrInSomePartitions(t *testing.T) {
	for text, want := range map[string]map[string]bool{
		"":                    {"": false, "gpu": false},
		"limit_hints = true":  {"": true, "gpu": true, "gpu,cpu": true},
		"limit_hints = false": {"": false, "gpu": false},
		"limit_hints = {}":    {"": false, "gpu": false},
		"limit_hints = {gpu = true, cpu = false}": {
			"": false, "gpu": true, "cpu": false, "gpu,cpu": false, "gpu,x": false,
		},
		"limit_hints = {a = true, b = true}": {"a,b": true, "b": true},
	} {
		c := load(t, "[live]\n"+text)
		var shown strings.Builder
		if err := c.Show(&shown); err != nil {
			t.Fatal(err)
		}
		for _, c := range []*Config{c, load(t, shown.String())} {
			for partitions, want := range want {
				if got := c.Live.LimitHint.AppliesTo(partitions); got != want {
					t.Errorf("%s, partitions %q: %v", text, partitions, got)
				}
			}
		}
	}
	long := strings.Repeat("x", 201)
	for text, want := range map[string]string{
		"limit_hints = 1":                    "live.limit_hints is 1, want true, false, or a table of partitions",
		"limit_hints = {gpu = \"on\"}":       "live.limit_hints.gpu is \"on\", want true or false",
		"limit_hint_runs = 2":                "live.limit_hint_runs is 2, want a whole number from 3 to 20",
		"limit_hint_text = \"\"":             "live.limit_hint_text is \"\", want a line of text",
		"limit_hint_text = \"a\\nb\"":        "want a line of text",
		"limit_hint_text = \"{limits}\"":     "\"{limits}\" isn't known, want {limit}, {longest} or {runs}",
		"limit_hint_text = \"{limit} }\"":    "isn't known",
		"limit_hint_text = \"\\u202ex\"":     "it has '\\u202e', want text that can be read",
		"limit_hint_text = \"x\\u200b\"":     "it has '\\u200b', want text that can be read",
		"limit_hint_text = \"" + long + "\"": "it has 201 bytes, want at most 200",
	} {
		_, err := Load(strings.NewReader("[live]\n"+text+"\n"), "c.toml", nil)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "c.toml:2:") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	c := load(t, "[live]\nlimit_hint_text = \"{limit}{runs} {longest} {limit} %d\"\n")
	if got := c.Live.LimitHint.Words("{runs}", "l", 7); got != "{runs}7 l {runs} %d" {
		t.Error(got)
	}
}

// FuzzLimitHintText: a text that is taken is one line that can be read, whatever is put in.
func FuzzLimitHintText(f *testing.F) {
	for _, text := range []string{
		defaultLimitHint().Text, "{limit}", "{", "%s\x1b[2J", "\u202e{runs}", "{{limit}}", "\xff",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !isLine(text) || checkHintText(text) != nil {
			return
		}
		h := LimitHint{Text: text}
		words := h.Words("1-00:00:00", "0-01:00:00", 12)
		isHidden := func(r rune) bool { return !unicode.IsPrint(r) }
		if strings.ContainsFunc(words, isHidden) || strings.Contains(words, "{") {
			t.Errorf("%q of %q", words, text)
		}
	})
}

func TestPartitionsHavePacesWhereThePolicyGoesByOne(t *testing.T) {
	c := load(t, "[live.plan]\npolicy = \"replan,pace=1.1\"\npaces = {batch = 1.5, debug = 1}\n")
	for partitions, want := range map[string]float64{
		"": 1.1, "gpu": 1.1, "batch": 1.5, "batch,gpu": 1.1, "batch,debug": 1,
	} {
		if got := c.Live.Plan.PaceOf(partitions); got != want {
			t.Errorf("partitions %q: %v, want %v", partitions, got, want)
		}
	}
	none := load(t, "[live.plan]\npolicy = \"replan,pace=1.1\"\n")
	if got := none.Live.Plan.PaceOf("batch"); got != 0 {
		t.Errorf("no partition has one: %v", got)
	}
	for text, want := range map[string]string{
		"paces = {batch = 1.5}": "live.plan.paces has partition \"batch\", want it left out, or a policy that " +
			"goes by a pace, such as replan,pace=1: \"edl\" doesn't",
		"policy = \"replan,pace=1\"\npaces = {batch = 2}": "live.plan.paces has partition \"batch\" at 2, want " +
			"max_turnaround, 1.5, at most",
		"policy = \"replan,pace=1\"\npaces = {batch = 0.5}": "live.plan.paces.batch is 0.5, want a number from 1",
	} {
		_, err := Load(strings.NewReader("[live.plan]\n"+text+"\n"), "c.toml", nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestPartitionsHaveTheirSlackWhereNoUserSaysSo(t *testing.T) {
	c := load(t, "[factors]\nseries = \"hours.csv\"\n[live.hours]\nby = \"cost\"\nslack_s = {batch = 14400, long = 60}\n")
	for partitions, want := range map[string]time.Duration{
		"": 0, "gpu": 0, "batch": 4 * time.Hour, "batch,long": time.Minute, "batch,gpu": 0,
	} {
		if got := c.Live.Hours.SlackOf(partitions, &slurm.Wishes{}); got != want {
			t.Errorf("partitions %q: %v, want %v", partitions, got, want)
		}
		hour := slurm.Wishes{HasSlack: true, Slack: time.Hour}
		if got := c.Live.Hours.SlackOf(partitions, &hour); got != time.Hour {
			t.Errorf("partitions %q: %v, want what its user wishes", partitions, got)
		}
	}
	for text, want := range map[string]string{
		"by = \"cost\"":            "live.hours.by is \"cost\", want series in [factors] beside it",
		"by = \"price\"":           "live.hours.by is \"price\", want one of off, cost, carbon",
		"slack_s = {gpu = 604801}": "live.hours.slack_s.gpu is 604801, want a number from 0 to 604800",
		"min_gain = 2":             "live.hours.min_gain is 2, want a number from 0 to 1",
	} {
		_, err := Load(strings.NewReader("[live.hours]\n"+text+"\n"), "c.toml", nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
