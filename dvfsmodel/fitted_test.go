package dvfsmodel_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
)

func fitForm(t *testing.T, form dvfsmodel.Form, mems []float64) *dvfsmodel.Fitted {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 4))
	cores := []float64{0.6, 0.7, 0.8, 0.9, 1, 1.15}
	f, err := dvfsmodel.Fit(grid(example, cores, mems, 0.01, rng), fitBase,
		&dvfsmodel.FitOptions{Forms: []dvfsmodel.Form{form}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestEveryFormSurvivesWritingAndReadingItsCoefficients(t *testing.T) {
	for _, form := range dvfsmodel.Forms() {
		for _, mems := range [][]float64{fourMems, {1}} {
			f := fitForm(t, form, mems)
			if f.Form != form {
				t.Fatalf("form %s, want %s", f.Form, form)
			}
			name, err := dvfsmodel.ParseForm(form.String())
			if err != nil {
				t.Fatal(err)
			}
			again, err := dvfsmodel.NewFitted(name, f.Base, f.Coefficients())
			if err != nil {
				t.Fatalf("%s: %v", form, err)
			}
			for _, fc := range []float64{0.5, 0.93, 1.2} {
				s := dvfsmodel.Scaling{V: dvfsmodel.VoltageFor(fc), Fc: fc, Fm: 0.9}
				if f.Time(fc, 0.9) != again.Time(fc, 0.9) || f.Power(s) != again.Power(s) {
					t.Errorf("%s: the model read back predicts otherwise", form)
				}
			}
			if n := len(f.Coefficients()); len(f.Covariance) != n {
				t.Errorf("%s: covariance of %d, want %d", form, len(f.Covariance), n)
			}
		}
	}
}

func TestCoefficientsThatDoNotMakeAModelAreRefused(t *testing.T) {
	form := dvfsmodel.PaperForm()
	good := fitForm(t, form, fourMems).Coefficients()
	change := func(f func(c []dvfsmodel.Coefficient) []dvfsmodel.Coefficient) []dvfsmodel.Coefficient {
		return f(append([]dvfsmodel.Coefficient(nil), good...))
	}
	type list = []dvfsmodel.Coefficient
	for name, c := range map[string]list{
		"missing":  change(func(c list) list { return c[1:] }),
		"twice":    change(func(c list) list { return append(c, c[0]) }),
		"unknown":  change(func(c list) list { return append(c, dvfsmodel.Coefficient{Name: "time.x"}) }),
		"negative": change(func(c list) list { c[1].Value = -1; return c }),
		"NaN":      change(func(c list) list { c[1].Value = math.NaN(); return c }),
		"no time":  change(func(c list) list { c[0].Value, c[1].Value, c[2].Value = 0, 0, 0; return c }),
		"none":     nil,
	} {
		if _, err := dvfsmodel.NewFitted(form, fitBase, c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := dvfsmodel.NewFitted(dvfsmodel.Form{Time: "cubic", Power: "paper"}, fitBase,
		good); err == nil {
		t.Error("unknown form: no error")
	}
	if _, err := dvfsmodel.NewFitted(form, dvfsmodel.Setting{}, good); err == nil {
		t.Error("no base clocks: no error")
	}
}

func TestTheFormThatMadeTheSamplesPredictsThemBest(t *testing.T) {
	knee := dvfsmodel.Form{Time: "log-knee", Power: "voltage-knee"}
	truth, err := dvfsmodel.NewFitted(knee, fitBase, []dvfsmodel.Coefficient{
		{Name: "time.log_t", Value: 2},
		{Name: "time.log_fc", Value: -0.9},
		{Name: "time.log_fm", Value: -0.1},
		{Name: "time.above_knee", Value: 0.85},
		{Name: "time.knee", Value: 0.95},
		{Name: "power.p0_w", Value: 50},
		{Name: "power.gamma_w", Value: 10},
		{Name: "power.core_w", Value: 60},
		{Name: "power.above_knee_w", Value: 400},
		{Name: "power.knee", Value: 0.9},
	})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 5))
	f, err := dvfsmodel.Fit(grid(truth, []float64{0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1}, fourMems, 0.002, rng),
		fitBase, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.Form.Time == "paper" || f.Form.Power != "voltage-knee" {
		t.Errorf("form %s, want one with knees", f.Form)
	}
	if f.TimeError > 0.02 || f.PowerError > 0.02 {
		t.Errorf("errors %v and %v, want below 2 %%", f.TimeError, f.PowerError)
	}
}
