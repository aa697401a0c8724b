package config

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
)

// measuredModel fits a workload at drawn clocks, of which the GTX 980 is known by few or none.
func measuredModel(t *testing.T, rng *rand.Rand) (Model, []dvfsmodel.Setting) {
	t.Helper()
	first, cores, mems := dvfsmodel.MHz(500+100*rng.IntN(4)), 3+rng.IntN(4), 2+rng.IntN(3)
	samples, pairs := make([]dvfsmodel.Sample, 0, cores*mems), make([]dvfsmodel.Setting, 0, cores*mems)
	for i := range cores {
		for k := range mems {
			s := dvfsmodel.Sample{Core: first + 150*dvfsmodel.MHz(i), Mem: 1900 + 700*dvfsmodel.MHz(k)}
			noise := func() float64 { return math.Exp(0.02 * rng.NormFloat64()) }
			fc, fm := float64(s.Core)/1300, float64(s.Mem)/3600
			s.Time, s.Power = (0.2+0.5/fc+0.4/fm)*noise(), dvfsmodel.Watt((50+40*fm+90*fc*fc*fc)*noise())
			samples, pairs = append(samples, s), append(pairs, dvfsmodel.Setting{Core: s.Core, Mem: s.Mem})
		}
	}
	fitted, err := dvfsmodel.Fit(samples, builtin(t, "GTX980").Default, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := NewModel("w", "GTX980", fitted)
	m.Clocks = MeasuredClocks(samples)
	return m, pairs
}

func throughAFile(t *testing.T, m *Model) Model {
	t.Helper()
	models, err := NewModels(*m)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := WriteModels(&text, models); err != nil {
		t.Fatal(err)
	}
	return readModels(t, text.String()).All()[0]
}

// Whatever the limit and the objective, plans set clocks that were measured, and the default ones were
// measured, too: also after a models file.
func TestPlansByAModelSetClocksThatWereMeasured(t *testing.T) {
	p := builtin(t, "GTX980")
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 31))
		m, pairs := measuredModel(t, rng)
		m = throughAFile(t, &m)
		response, err := m.Response(p)
		if err != nil {
			t.Fatal(err)
		}
		at := response.Default()
		const choices = 10
		chosen := make([]dvfsmodel.Point, 0, 1+choices)
		chosen = append(chosen, at)
		for range choices {
			limit := response.MinTime() * (1 + rng.ExpFloat64())
			pt, err := response.Optimum(dvfsmodel.Objective{EnergyWeight: 1, TimeWeight: 20 * rng.Float64()}, limit)
			if err != nil {
				t.Fatal(err)
			}
			chosen = append(chosen, pt)
		}
		for _, pt := range chosen {
			if !slices.Contains(pairs, dvfsmodel.Setting{Core: pt.Core, Mem: pt.Mem}) {
				t.Errorf("seed %d: %g/%g MHz wasn't measured", seed, float64(pt.Core), float64(pt.Mem))
			}
		}
		for _, pair := range pairs {
			if far := math.Abs(float64(at.Mem - 3600)); math.Abs(float64(pair.Mem-3600)) < far {
				t.Errorf("seed %d: %g/%g MHz count as default, %g is nearer to 3600", seed, float64(at.Core),
					float64(at.Mem), float64(pair.Mem))
			}
		}
		m.Clocks = nil // as in older files
		if response, err = m.Response(p); err != nil {
			t.Fatal(err)
		}
		if at := response.Default(); at.Core != p.Default.Core || at.Mem != p.Default.Mem {
			t.Errorf("seed %d: without clocks %g/%g MHz count as default", seed, float64(at.Core), float64(at.Mem))
		}
	}
}

func TestClocksOfAModelThatNoFileCanHaveAreRefused(t *testing.T) {
	for _, clocks := range [][]ClockGroup{
		{{}},
		{{Mem: []dvfsmodel.MHz{1000}}},
		{{Mem: []dvfsmodel.MHz{1000}, Core: []dvfsmodel.MHz{0}}},
		{{Mem: []dvfsmodel.MHz{dvfsmodel.MHz(math.NaN())}, Core: []dvfsmodel.MHz{1000}}},
	} {
		m, _ := measuredModel(t, rand.New(rand.NewPCG(1, 31)))
		m.Clocks = clocks
		if _, err := NewModels(m); err == nil || !strings.Contains(err.Error(), "clocks") {
			t.Errorf("clocks %+v: error %v", clocks, err)
		}
	}
}
