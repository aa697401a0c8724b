package dvfsmodel

import (
	"fmt"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel/capped"
)

// CappedForm returns the form of a fit to what was measured under several power caps: see
// [FitCapped]. It isn't one of [Forms], which know nothing of caps.
func CappedForm() Form { return Form{Time: nameCapped, Power: nameCapped} }

const nameCapped = "capped"

// FitCapped fits the model of a GPU under power caps to samples of one workload: free power by the
// core clock, of which a cap lets a part pass, the clock that runs then, and the time that goes
// with that. top are the highest clocks and the highest cap that anything was measured at on the
// GPU model; it is the base of the fit, which predicts for that cap until it is asked for another
// one ([Fitted.Under]). What few samples leave open is as it mostly is on GPUs. Its errors at
// settings left out aren't known.
func FitCapped(samples []Sample, top Setting) (*Fitted, error) {
	if err := CheckSamples(samples); err != nil {
		return nil, err
	}
	if err := top.CheckBase(); err != nil {
		return nil, err
	}
	distinct := make(map[Setting]bool)
	runs := make([]capped.Run, len(samples))
	for i := range samples {
		s := &samples[i]
		if !isPositive(float64(s.Cap)) || s.Cap > top.Cap {
			return nil, &SampleError{Reason: fmt.Sprintf("sample %d is under a cap of %v W, want 0 to %v W", i+1,
				float64(s.Cap), float64(top.Cap))}
		}
		distinct[s.At()] = true
		runs[i] = capped.Run{
			Conditions: conditionsOf(s.At(), &top),
			Outcome:    capped.Outcome{Time: math.Log(s.Time), Power: math.Log(float64(s.Power / top.Cap))},
		}
	}
	params := capped.Fit(runs)
	f := &Fitted{
		Form: CappedForm(), Base: top, Settings: len(distinct), capped: params.Board(), limit: top.Cap,
	}
	for at := range distinct {
		f.Caps = append(f.Caps, at.Cap)
	}
	slices.Sort(f.Caps)
	f.Caps = slices.Compact(f.Caps)
	return f, nil
}

func conditionsOf(at Setting, top *Setting) capped.Conditions {
	return capped.Conditions{
		Core: float64(at.Core / top.Core), Mem: float64(at.Mem / top.Mem), Limit: float64(at.Cap / top.Cap),
	}
}

// IsCapped reports whether the model knows what power caps do.
func (f *Fitted) IsCapped() bool { return f.capped != nil }

// Under returns the model of a GPU under a power limit; 0: the highest one that was measured. A model
// that knows nothing of limits stays what it is.
func (f *Fitted) Under(limit Watt) *Fitted {
	if limit == 0 {
		limit = f.Base.Cap
	}
	if f.capped == nil || f.limit == limit {
		return f
	}
	other := *f
	other.limit = limit
	return &other
}

// underCap is time and power where caps were measured, without corrections.
func (f *Fitted) underCap(fc, fm float64) (seconds float64, power Watt) {
	o := f.capped.Predict(capped.Conditions{Core: fc, Mem: fm, Limit: float64(f.limit / f.Base.Cap)})
	return math.Exp(o.Time), f.Base.Cap * Watt(math.Exp(o.Power))
}

// cappedCoefficients returns those of [CappedForm].
func (f *Fitted) cappedCoefficients() []Coefficient {
	values := f.capped.Natural()
	list := make([]Coefficient, len(values))
	for i, p := range capped.Parameters() {
		list[i] = Coefficient{Name: p.Name, Value: values[i]}
		if p.Watts {
			list[i].Value *= float64(f.Base.Cap)
		}
	}
	return list
}

// newCapped rebuilds a model of [CappedForm] from its coefficients by name.
func newCapped(base Setting, values map[string]float64) (*Fitted, error) {
	if !isPositive(float64(base.Cap)) {
		return nil, fmt.Errorf("base cap %v W, want a positive number", float64(base.Cap))
	}
	var natural capped.Natural
	for i, p := range capped.Parameters() {
		x, ok := values[p.Name]
		if !ok {
			return nil, fmt.Errorf("form %s lacks coefficient %s", CappedForm(), p.Name)
		}
		delete(values, p.Name)
		if p.Watts {
			x /= float64(base.Cap)
		}
		if !p.Allows(x) {
			return nil, fmt.Errorf("coefficient %s is %v, want %s", p.Name, x, p.Range())
		}
		natural[i] = x
	}
	return &Fitted{Form: CappedForm(), Base: base, capped: natural.Params().Board(), limit: base.Cap}, nil
}

// modelUnder returns a model under a power cap; 0: under none. It is false where the model knows
// nothing of caps.
func modelUnder(m Model, limit Watt) (Model, bool) {
	if limit == 0 {
		return m, true
	}
	switch m := m.(type) {
	case *Fitted:
		return m.Under(limit), m.IsCapped()
	case noFaster:
		under, ok := modelUnder(m.Model, limit)
		m.Model = under
		return m, ok
	case scaledModel:
		under, ok := modelUnder(m.Model, limit)
		m.Model = under
		return m, ok
	}
	return m, false
}
