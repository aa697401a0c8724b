package config

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/queue"
)

const paperModel = `[[model]]
workload = "solver"
gpu_model = "GTX1080Ti"
form = "paper"
base_core_mhz = 1800
base_mem_mhz = 5000
p0_w = 60
gamma_w = 20
c_w = 100
d_s = 5
delta = 0.5
t0_s = 0.25
`

//nolint:lll // a file as it is
const modelsText = paperModel + `settings = 20
time_mape = 0.01
power_mape = 0.02
source = "made up"
std_errors = { p0_w = 1.5, delta = 0.01 }
[[model]]
workload = "solver"
gpu_model = "V100"
form = "log-quadratic+paper"
base_core_mhz = 1380
base_mem_mhz = 877
[model.coefficients]
time = { log_t = 0.3, log_fc = -0.8, log_fc2 = 0.1 }
power.p0_w = 40
power.c_w = 160
[model.std_errors]
power.p0_w = 2
[[model]]
workload = "stencil"
gpu_model = "V100"
form = "paper+voltage-knee"
base_core_mhz = 1380
base_mem_mhz = 877
coefficients = { time.t0_s = 0, time.core_s = 2, power.p0_w = 50, power.core_w = 100, power.above_knee_w = 30, power.knee = 0.9 }
`

//nolint:lll // a file as it is
const cappedModel = `[[model]]
workload = "solver"
gpu_model = "A100-PCIE-40GB"
form = "capped"
base_core_mhz = 1410
base_mem_mhz = 1215
base_cap_w = 250
caps_w = [150, 200, 250]
corrections = [{ core_mhz = 1410, mem_mhz = 1215, cap_w = 200, time = 1.1, power = 0.9 }]
[model.coefficients]
time = { scale_s = 30, core_share = 0.6, core_knee = 0.9, memory_exponent = 0.5 }
power = { static_w = 80, dynamic_w = 120, voltage_slope = 1.2, voltage_knee = 0.7, cap_ratio = 1, cap_edge = 12, memory_exponent = 0.2 }
`

func readModels(t *testing.T, text string) *Models {
	t.Helper()
	models, err := ReadModels(strings.NewReader(text), "m.toml")
	if err != nil {
		t.Fatal(err)
	}
	return models
}

// sameModels leaves out where the models were read.
func sameModels(a, b *Models) bool {
	plain := func(s *Models) []Model {
		list := s.All()
		for i := range list {
			list[i].Pos = queue.Position{}
		}
		return list
	}
	return reflect.DeepEqual(plain(a), plain(b))
}

func builtin(t *testing.T, name string) *Profile {
	t.Helper()
	p, err := BuiltinProfiles().Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestModelsAreReadWrittenAndReadAgain(t *testing.T) {
	models := readModels(t, modelsText)
	var out bytes.Buffer
	if err := WriteModels(&out, models); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/models.toml", out.String())
	if again := readModels(t, out.String()); !sameModels(models, again) {
		t.Errorf("read %+v, want %+v", again, models)
	}
}

func TestModelsAreFoundByWorkloadAndGPUModel(t *testing.T) {
	models := readModels(t, modelsText)
	m, ok := models.Lookup("solver", "v100")
	if !ok || m.Form.Time != "log-quadratic" || m.Pos.String() != "m.toml:18:1" {
		t.Errorf("found %+v, %v", m, ok)
	}
	if _, ok := models.Lookup("stencil", "GTX1080Ti"); ok {
		t.Error("found a model that isn't there")
	}
	if got, want := models.Workloads(), []string{"solver", "stencil"}; !reflect.DeepEqual(got, want) {
		t.Errorf("workloads %v, want %v", got, want)
	}
	if err := models.Check("stencil"); err != nil {
		t.Error(err)
	}
	err := models.Check("sovler")
	wrong, ok := errors.AsType[*UnknownError](err)
	if !ok || wrong.Nearest != "solver" ||
		err.Error() != `unknown workload "sovler", did you mean "solver"?` {
		t.Errorf("error %v", err)
	}
}

func TestAFaultyModelIsNamedWithItsPosition(t *testing.T) { //nolint:funlen // most of it is a table
	with := func(old, text string) string { return strings.Replace(modelsText, old, text, 1) }
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "m.toml:1:1: no model, want [[model]] tables"},
		{"unknown table", "[[modell]]\n", "m.toml:1:1: unknown key modell, did you mean model?"},
		{"unknown key", with("p0_w", "p_w"), "m.toml:7:1: unknown key p_w in [[model]], did you mean p0_w?"},
		{
			"missing coefficient", with("delta = 0.5\n", ""),
			"m.toml:1:1: [[model]] has no delta, want a number from 0 to 1",
		},
		{
			"delta above 1", with("delta = 0.5", "delta = 1.5"),
			"m.toml:11:9: model.delta is 1.5, want a number from 0 to 1",
		},
		{
			"negative power", with("c_w = 100", "c_w = -1"),
			"m.toml:9:7: model.c_w is -1, want a number from 0 to 1e+15",
		},
		{
			"no run time", strings.NewReplacer("d_s = 5", "d_s = 0", "t0_s = 0.25",
				"t0_s = 0").Replace(paperModel),
			`m.toml:1:1: model of workload "solver" on "GTX1080Ti": coefficients D and t0 are both 0`,
		},
		{
			"unknown form", with(`"paper"`, `"papre+paper"`),
			`m.toml:4:8: model.form: unknown time form "papre", want paper, knee`,
		},
		{
			"form of one part", with(`"paper"`, `"knee"`),
			`m.toml:4:8: model.form: form "knee", want time+power`,
		},
		{
			"no base clock", with("base_core_mhz = 1800\n", ""),
			"m.toml:1:1: [[model]] has no base_core_mhz, want a number above 0",
		},
		{"base clock 0", with("1800", "0"), "m.toml:5:17: model.base_core_mhz is 0, want a number above 0"},
		{
			"twice", modelsText + strings.Replace(paperModel, "GTX1080Ti", "gtx 1080 ti", 1),
			`a model of workload "solver" on "gtx 1080 ti" is already on line 1`,
		},
		{
			"coefficient as text", with("log_t = 0.3", "log_t = '0.3'"),
			`m.toml:25:18: model.coefficients.time.log_t is "0.3", want a number from -1e+15 to 1e+15`,
		},
		{
			"coefficient missing", with("log_t = 0.3, ", ""),
			`m.toml:18:1: model of workload "solver" on "V100": coefficient time.log_t is missing`,
		},
		{
			"coefficient unknown", with("log_t = 0.3", "log_t = 0.3, log_x = 1"),
			`m.toml:18:1: model of workload "solver" on "V100": `,
		},
		{
			"coefficients not a table", with("coefficients = {", "coefficients = 1 #"),
			"model.coefficients is 1, want a table",
		},
		{
			"coefficients nested further", with("log_t = 0.3", "log_t.x = 0.3"),
			"model.coefficients.time.log_t is a table, want a number",
		},
		{
			"standard error unknown", with("{ p0_w = 1.5", "{ p0 = 1.5"),
			"model.std_errors.p0: the model has no coefficient of this name",
		},
		{
			"standard error negative", with("{ p0_w = 1.5", "{ p0_w = -1.5"),
			"m.toml:17:23: model.std_errors.p0_w is -1.5, want a number from 0",
		},
		{
			"corrections not tables", with("settings = 20", "corrections = [1]"),
			"m.toml:13:",
		},
		{
			"a correction without a clock", with("settings = 20",
				"corrections = [{ core_mhz = 1800, time = 1, power = 1 }]"),
			"m.toml:13:16: model.corrections has no mem_mhz, want a number above 0",
		},
		{
			"a correction out of proportion", with("settings = 20",
				"corrections = [{ core_mhz = 1800, mem_mhz = 5000, time = 11, power = 1 }]"),
			"model.corrections.time is 11, want a number from 0.1 to 10",
		},
		{
			"two corrections of a setting", with("settings = 20", "corrections = [\n"+
				"{ core_mhz = 1800, mem_mhz = 5000, time = 1.1, power = 1 },\n"+
				"{ core_mhz = 1800, mem_mhz = 5000, time = 1.2, power = 1 }]"),
			"m.toml:15:1: model.corrections has 1800/5000 MHz twice",
		},
		{
			"corrections twice under a cap", strings.Replace(cappedModel, "corrections = [{", "corrections = ["+
				"{ core_mhz = 1410, mem_mhz = 1215, cap_w = 200, time = 1, power = 1 }, {", 1),
			"m.toml:9:87: model.corrections has 1410/1215 MHz under 200 W twice",
		},
		{
			"a correction without its cap", strings.Replace(cappedModel, ", cap_w = 200", "", 1),
			"m.toml:9:16: model.corrections has no cap_w, want a number above 0",
		},
		{
			"caps of a form that knows none", with("settings = 20", "caps_w = [200]"),
			"m.toml:13:1: unknown key caps_w in [[model]], want one of",
		},
		{
			"no caps", strings.Replace(cappedModel, "caps_w = [150, 200, 250]\n", "", 1),
			"m.toml:1:1: [[model]] has no caps_w, want an array of 1 to 1000 caps, ascending",
		},
		{
			"caps that fall", strings.Replace(cappedModel, "150, 200", "200, 150", 1),
			"m.toml:8:16: model.caps_w has 150, want an array of 1 to 1000 caps, ascending",
		},
		{
			"no base cap", strings.Replace(cappedModel, "base_cap_w = 250\n", "", 1),
			"m.toml:1:1: [[model]] has no base_cap_w, want a number above 0",
		},
		{
			"a share above 1", strings.Replace(cappedModel, "core_share = 0.6", "core_share = 1.6", 1),
			`m.toml:1:1: model of workload "solver" on "A100-PCIE-40GB": ` +
				"coefficient time.core_share is 1.6, want 0 to 1",
		},
		{
			"no static power", strings.Replace(cappedModel, "static_w = 80, ", "", 1),
			`m.toml:1:1: model of workload "solver" on "A100-PCIE-40GB": ` +
				"form capped lacks coefficient power.static_w",
		},
		{
			"settings of a fraction", with("settings = 20", "settings = 0.5"),
			"m.toml:13:12: model.settings is 0.5, want a whole number",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadModels(strings.NewReader(c.text), "m.toml")
			if err == nil || got != nil {
				t.Fatalf("read %+v, want an error", got)
			}
			if first, _, _ := strings.Cut(err.Error(), "\n"); !strings.Contains(first, c.want) {
				t.Errorf("error  %s\nwants  %s", first, c.want)
			}
		})
	}
}

func TestModelsThatNoFileCanHoldAreRefused(t *testing.T) {
	good := readModels(t, paperModel).All()[0]
	for name, change := range map[string]func(*Model){
		"control character": func(m *Model) { m.Workload = "a\x1bb" },
		"no GPU model":      func(m *Model) { m.GPUModel = "" },
		"two-line source":   func(m *Model) { m.Source = "a\nb" },
		"infinite clock":    func(m *Model) { m.Base.Core = dvfsmodel.MHz(math.Inf(1)) },
		"NaN coefficient":   func(m *Model) { m.Coefficients[0].Value = math.NaN() },
		"no coefficients":   func(m *Model) { m.Coefficients = nil },
		"negative error":    func(m *Model) { m.TimeMAPE = -1 },
	} {
		m := good
		m.Coefficients = append([]dvfsmodel.Coefficient(nil), good.Coefficients...)
		change(&m)
		if _, err := NewModels(m); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := NewModels(good, good); err == nil {
		t.Error("two equal models: no error")
	}
}

func TestTheDefaultPointOfAModelIsAtTheProfilesDefaultClocks(t *testing.T) {
	p := builtin(t, "GTX1080Ti")
	for _, core := range []dvfsmodel.MHz{1800, 2000, 1600, 1500} {
		m := readModels(t, paperModel).All()[0]
		m.Base.Core = core
		response, err := m.Response(p)
		if err != nil {
			t.Fatal(err)
		}
		at := response.Default()
		fitted, err := m.Fitted()
		if err != nil {
			t.Fatal(err)
		}
		want := fitted.At(1800, 5000)
		if at.Core != 1800 || at.Mem != 5000 || !near(at.Time, want.Time) ||
			!near(float64(at.Power), float64(want.Power)) {
			t.Errorf("base %v MHz: %+v, want %+v", core, at, want)
		}
		best, err := response.Optimum(dvfsmodel.MinEnergy(), math.Inf(1))
		if err != nil {
			t.Fatal(err)
		}
		for _, pair := range p.Pairs() {
			if e := fitted.At(pair.Core, pair.Mem).Energy; e < best.Energy*(1-1e-12) {
				t.Errorf("base %v MHz: %v J at %v, optimum has %v J", core, e, pair, best.Energy)
			}
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(b) }

func TestEachFormHasAResponse(t *testing.T) {
	models := readModels(t, modelsText)
	for _, m := range models.All() {
		response, err := m.Response(builtin(t, m.GPUModel))
		if err != nil {
			t.Fatal(err)
		}
		best, err := response.Optimum(dvfsmodel.MinEnergy(), math.Inf(1))
		if err != nil || !(best.Energy > 0) || best.Energy > response.Default().Energy ||
			best.Time < response.MinTime() {
			t.Errorf("%s: optimum %+v, %v", m.Form, best, err)
		}
	}
}

func TestAModelInARangeMustHaveThePapersForm(t *testing.T) {
	models := readModels(t, modelsText)
	paper := models.All()[0]
	response, err := paper.Response(builtin(t, "paper-narrow"))
	if err != nil {
		t.Fatal(err)
	}
	if best, err := response.Optimum(dvfsmodel.MinEnergy(), math.Inf(1)); err != nil ||
		best.Scaling.Fc < 0.89 {
		t.Errorf("optimum %+v, %v", best, err)
	}
	other := models.All()[1]
	if _, err := other.Response(builtin(t, "paper")); err == nil ||
		!strings.Contains(err.Error(), "the form must be the paper's") {
		t.Errorf("error %v", err)
	}
	fixed := *builtin(t, "paper")
	fixed.Default = dvfsmodel.Setting{Core: 1000, Mem: 1000}
	if _, err := paper.Response(&fixed); err == nil ||
		!strings.Contains(err.Error(), "range around 1000/1000 MHz") {
		t.Errorf("error %v", err)
	}
}

func TestAModelThatPredictsNothingSomewhereIsRefused(t *testing.T) {
	text := strings.Replace(modelsText, "power.p0_w = 50, power.core_w = 100",
		"power.p0_w = 0, power.core_w = 0", 1)
	m, ok := readModels(t, text).Lookup("stencil", "V100")
	if !ok {
		t.Fatal("no model")
	}
	if _, err := m.Response(builtin(t, "V100")); err == nil ||
		!strings.Contains(err.Error(), "0 W at 802/877 MHz, want positive") {
		t.Errorf("error %v", err)
	}
}

// samplesOf are noisy samples of a model at the clocks of a profile.
func samplesOf(p *Profile, params dvfsmodel.Params, noise func() float64) []dvfsmodel.Sample {
	pairs := p.Pairs()
	samples := make([]dvfsmodel.Sample, 0, len(pairs))
	for _, pair := range pairs {
		fc, fm := float64(pair.Core/p.Default.Core), float64(pair.Mem/p.Default.Mem)
		at := params.At(dvfsmodel.Scaling{V: dvfsmodel.VoltageFor(fc), Fc: fc, Fm: fm})
		samples = append(samples, dvfsmodel.Sample{
			Core: pair.Core, Mem: pair.Mem,
			Time: at.Time * (1 + noise()), Power: at.Power * dvfsmodel.Watt(1+noise()),
		})
	}
	return samples
}

func TestAFittedModelPredictsTheSameAfterAFile(t *testing.T) {
	profiles := BuiltinProfiles()
	rapid.Check(t, func(rt *rapid.T) {
		p, err := profiles.Lookup(rapid.SampledFrom([]string{
			"GTX1080Ti", "V100", "V100-2022", "GTX980",
		}).Draw(rt, "GPU"))
		if err != nil {
			rt.Fatal(err)
		}
		draw := func(name string, low, high float64) float64 {
			return rapid.Float64Range(low, high).Draw(rt, name)
		}
		params := dvfsmodel.Params{
			P0: dvfsmodel.Watt(draw("P0", 10, 100)), Gamma: dvfsmodel.Watt(draw("gamma", 0, 50)),
			C: dvfsmodel.Watt(draw("c", 10, 200)),
			D: draw("D", 1, 10), Delta: draw("delta", 0, 1), T0: draw("t0", 0.1, 1),
		}
		samples := samplesOf(p, params, func() float64 { return draw("noise", -0.01, 0.01) })
		form := rapid.SampledFrom(dvfsmodel.Forms()).Draw(rt, "form")
		fitted, err := dvfsmodel.Fit(samples, p.Default, &dvfsmodel.FitOptions{Forms: []dvfsmodel.Form{form}})
		if err != nil {
			rt.Skip(err.Error())
		}
		corrections := make([]dvfsmodel.Correction, rapid.IntRange(0, 3).Draw(rt, "corrections"))
		for i := range corrections {
			corrections[i] = dvfsmodel.Correction{
				Setting: p.Pairs()[i], Time: draw("time", 0.9, 1.1), Power: draw("power", 0.9, 1.1),
			}
		}
		if len(corrections) > 0 {
			fitted = fitted.Corrected(corrections)
		}
		models, err := NewModels(NewModel("w", p.Name, fitted))
		if err != nil {
			rt.Fatal(err)
		}
		var out bytes.Buffer
		if err := WriteModels(&out, models); err != nil {
			rt.Fatal(err)
		}
		again, err := ReadModels(&out, "m.toml")
		if err != nil {
			rt.Fatal(err)
		}
		if !sameModels(models, again) {
			rt.Fatalf("read %+v, want %+v", again.All(), models.All())
		}
		m, _ := again.Lookup("w", p.Name)
		rebuilt, err := m.Fitted()
		if err != nil {
			rt.Fatal(err)
		}
		for _, s := range samples {
			a, b := fitted.At(s.Core, s.Mem), rebuilt.At(s.Core, s.Mem)
			if !near(a.Time, b.Time) || !near(float64(a.Power), float64(b.Power)) {
				rt.Fatalf("%v/%v MHz: %+v, want %+v", s.Core, s.Mem, b, a)
			}
		}
	})
}

func TestAModelOfCapsPredictsTheSameAfterAFile(t *testing.T) {
	m := readModels(t, cappedModel).All()[0]
	truth, err := m.Fitted()
	if err != nil {
		t.Fatal(err)
	}
	samples := make([]dvfsmodel.Sample, 0, 12)
	for _, core := range []dvfsmodel.MHz{810, 1005, 1200, 1410} {
		for _, limit := range []dvfsmodel.Watt{120, 180, 250} {
			at := truth.Under(limit).At(core, 1215)
			samples = append(samples,
				dvfsmodel.Sample{Core: core, Mem: 1215, Cap: limit, Time: at.Time, Power: at.Power})
		}
	}
	fitted, err := dvfsmodel.FitCapped(samples, dvfsmodel.Setting{Core: 1410, Mem: 1215, Cap: 250})
	if err != nil {
		t.Fatal(err)
	}
	corrected := fitted.Corrected([]dvfsmodel.Correction{
		{Setting: dvfsmodel.Setting{Core: 810, Mem: 1215, Cap: 120}, Time: 1.01, Power: 0.98},
	})
	models, err := NewModels(NewModel("w", "A100-PCIE-40GB", corrected))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WriteModels(&out, models); err != nil {
		t.Fatal(err)
	}
	again, err := ReadModels(&out, "m.toml")
	if err != nil {
		t.Fatal(err)
	}
	if !sameModels(models, again) {
		t.Fatalf("read %+v, want %+v", again.All(), models.All())
	}
	m = again.All()[0]
	rebuilt, err := m.Fitted()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples {
		a, b := corrected.Under(s.Cap).At(s.Core, s.Mem), rebuilt.Under(s.Cap).At(s.Core, s.Mem)
		if !near(a.Time, b.Time) || !near(float64(a.Power), float64(b.Power)) {
			t.Errorf("%v/%v MHz under %v W: %+v, want %+v", s.Core, s.Mem, s.Cap, b, a)
		}
		plain := fitted.Under(s.Cap).At(s.Core, s.Mem)
		if ratio := b.Time / plain.Time; (s.Core == 810 && s.Cap == 120) != (math.Abs(ratio-1.01) < 1e-9) {
			t.Errorf("%v MHz under %v W takes %v times as long as without correction", s.Core, s.Cap, ratio)
		}
	}
}

// Caps are among the settings only as far as the board takes them, and only when they are asked for.
func TestCapsOfAModelAreChosenWithinTheLimitsOfTheBoard(t *testing.T) {
	m := readModels(t, cappedModel).All()[0]
	p := *builtin(t, "A100-PCIE-40GB")
	for _, c := range []struct {
		limit PowerLimit
		caps  string
	}{
		{PowerLimit{Min: 100, Default: 250, Max: 250}, "[150 200]"},
		{PowerLimit{Min: 160, Default: 250, Max: 250}, "[200]"},
		{PowerLimit{Min: 100, Default: 200, Max: 250}, "[150]"},
		{PowerLimit{Min: 100, Default: 300, Max: 300}, "[150 200 250]"},
		{PowerLimit{}, "[]"},
		{PowerLimit{Default: 250}, "[]"},
	} {
		p.PowerLimit = c.limit
		response, err := m.CappedResponse(&p)
		if err != nil {
			t.Fatal(err)
		}
		if caps := fmt.Sprint(dvfsmodel.Caps(response)); caps != c.caps {
			t.Errorf("limits %+v: caps %s, want %s", c.limit, caps, c.caps)
		}
		plain, err := m.Response(&p)
		if err != nil {
			t.Fatal(err)
		}
		if caps := dvfsmodel.Caps(plain); len(caps) > 0 || plain.Default() != response.Default() {
			t.Errorf("limits %+v: caps %v that nobody asked for, or %+v by default and %+v with caps", c.limit, caps,
				plain.Default(), response.Default())
		}
	}
}

func TestStandardErrorsOfThePapersCoefficientsCoverTheTruth(t *testing.T) {
	p := builtin(t, "GTX1080Ti")
	params := dvfsmodel.Params{P0: 60, Gamma: 20, C: 100, D: 5, Delta: 0.5, T0: 0.25}
	rng := rand.New(rand.NewPCG(1, 2))
	noise := func() float64 { return 0.002 * rng.NormFloat64() }
	fitted, err := dvfsmodel.Fit(samplesOf(p, params, noise), p.Default,
		&dvfsmodel.FitOptions{Forms: []dvfsmodel.Form{dvfsmodel.PaperForm()}})
	if err != nil {
		t.Fatal(err)
	}
	truth := params.Coefficients()
	for i, c := range NewModel("w", p.Name, fitted).Coefficients {
		if dvfsmodel.IsOptional(c.Name) && c.Value == 0 && c.StdErr == 0 { // no fit finds it
			continue
		}
		if miss := math.Abs(c.Value - truth[i].Value); !(c.StdErr > 0) || miss > 4*c.StdErr {
			t.Errorf("%s is %v ± %v, truth %v", c.Name, c.Value, c.StdErr, truth[i].Value)
		}
	}
}

func TestAModelIsAsFarOffAsAtSettingsLeftOut(t *testing.T) {
	m := Model{
		Workload: "w", GPUModel: "V100", TimeMAPE: 0.02, PowerMAPE: 0.03, Settings: 10,
		Coefficients: make([]dvfsmodel.Coefficient, 6),
	}
	want := dvfsmodel.NewUncertainty(0.02, 0.03, 7)
	if got := m.Doubt(); got.Level != want.Level {
		t.Errorf("off by %+v, want %+v", got.Level, want.Level)
	}
	m.Settings = 0
	if got := m.Doubt().Level.Time; math.Abs(got/0.02-math.Sqrt(math.Pi/2)) > 1e-6 {
		t.Errorf("off by %v where nobody knows of how many settings, want %v", got, 0.02*math.Sqrt(math.Pi/2))
	}
	m.TimeMAPE, m.PowerMAPE = 0, 0
	if m.Doubt() != nil {
		t.Error("off by something, though nobody says by what")
	}
}
