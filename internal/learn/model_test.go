package learn

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/store/record"
)

func TestAModelFromTheRecordsKnowsHowFarOffItIs(t *testing.T) {
	base := dvfsmodel.Setting{Core: 1400, Mem: 900}
	const settings = 8
	samples := make([]dvfsmodel.Sample, 0, settings)
	for i := range settings {
		core := dvfsmodel.MHz(700 + 100*i)
		off := 1 + 0.01*math.Sin(float64(7*i))
		samples = append(samples, dvfsmodel.Sample{
			Core: core, Mem: 900, Time: 1e5 / float64(core) * off,
			Power: dvfsmodel.Watt((50 + float64(core)/10) * off),
		})
	}
	known, err := pooled.BuiltinCurves().Condition(samples, base, pooled.Noise{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := FitModel(samples, base, known)
	if err != nil {
		t.Fatal(err)
	}
	if m.Settings != 8 || !(m.TimeError > 0) || !(m.PowerError > 0) {
		t.Fatalf("%d settings, errors %v and %v", m.Settings, m.TimeError, m.PowerError)
	}
	kept, err := modelRecord(record.WorkloadKey{Workload: "w", GPUModel: "V100"}, m)
	if err != nil {
		t.Fatal(err)
	}
	again, err := fromModelRecord(kept)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := again.Fitted, m.Fitted; a.Settings != b.Settings || a.TimeError != b.TimeError ||
		a.PowerError != b.PowerError {
		t.Errorf("%d settings, errors %v and %v after the records, %d, %v and %v before", a.Settings,
			a.TimeError, a.PowerError, b.Settings, b.TimeError, b.PowerError)
	}
}

// Whatever the samples are, a model that is made predicts positive numbers, and
// the bounds enclose the prediction; it is the same after being stored.
func TestAnyModelIsSaneAndStorable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "n")
		samples := make([]dvfsmodel.Sample, n)
		for i := range samples {
			samples[i] = dvfsmodel.Sample{
				Core:  rapid.SampledFrom([]dvfsmodel.MHz{802, 945, 1087, 1237, 1380}).Draw(t, "core"),
				Mem:   877,
				Time:  rapid.Float64Range(90, 110).Draw(t, "time"),
				Power: dvfsmodel.Watt(rapid.Float64Range(50, 300).Draw(t, "power")),
			}
		}
		m, _, _, err := fitTo(samples, base, pooled.BuiltinCurves())
		if err != nil {
			return
		}
		m.Version = 1
		r, err := modelRecord(record.WorkloadKey{Cluster: "alpha", Workload: "w", GPUModel: "V100"}, m)
		if err != nil {
			t.Fatal(err)
		}
		r.Version = 1
		again, err := fromModelRecord(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, core := range []dvfsmodel.MHz{600, 802, 945, 1380, 1500} {
			pt := m.At(core, 877)
			if other := again.At(pt.Core, pt.Mem); math.Abs(other.Time-pt.Time) > 1e-9*pt.Time {
				t.Fatalf("%v MHz: %v s stored, %v s before", core, other.Time, pt.Time)
			}
			if !m.Covers(&pt) {
				continue
			}
			if up, low := m.UpperTime(&pt, 0.1), m.LowerTime(&pt,
				0.1); !(up >= pt.Time*1.1*(1-1e-9) && low <= pt.Time && low > 0) {
				t.Fatalf("%v MHz: %v s, from %v to %v", core, pt.Time, low, up)
			}
		}
	})
}
