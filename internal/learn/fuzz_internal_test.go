package learn

import (
	"math"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/store/record"
)

// FuzzModelRecords: whatever stands in the records as a model, it is refused, or it predicts positive times
// and powers at the clocks that it was measured at.
func FuzzModelRecords(f *testing.F) {
	base := dvfsmodel.Setting{Core: 1380, Mem: 877}
	for _, samples := range [][]dvfsmodel.Sample{
		{{Core: 1380, Mem: 877, Time: 100, Power: 200}},
		{{Core: 802, Mem: 877, Time: 130, Power: 120}, {Core: 1380, Mem: 877, Time: 100, Power: 200}},
	} {
		m, _, _, err := fitTo(samples, base, pooled.BuiltinCurves())
		if err != nil {
			f.Fatal(err)
		}
		r, err := modelRecord(record.WorkloadKey{Workload: "w", GPUModel: "V100"}, m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(r.Form, []byte(r.Coefficients))
	}
	f.Add("x", []byte("{}"))
	f.Fuzz(func(t *testing.T, form string, coefficients []byte) {
		m, err := fromModelRecord(&record.Model{Form: form, Coefficients: coefficients})
		if err != nil {
			return
		}
		for _, at := range []dvfsmodel.Setting{m.Low, m.High, m.Base} {
			pt := m.At(at.Core, at.Mem)
			if !(pt.Time > 0) || !(pt.Power > 0) || math.IsInf(pt.Time, 0) || math.IsInf(float64(pt.Power), 0) {
				t.Fatalf("%v s and %v W at %v", pt.Time, pt.Power, at)
			}
			_, _ = m.UpperTime(&pt, 0.1), m.LowerTime(&pt, 0.1)
		}
		_, _ = m.Summary(), m.String()
	})
}
