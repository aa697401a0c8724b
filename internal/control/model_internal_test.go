package control

import (
	"math"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/store/record"
)

func TestAModelFromTheRecordsKnowsHowFarOffItIs(t *testing.T) {
	base := dvfsmodel.Base{Core: 1400, Mem: 900}
	const settings = 8
	samples := make([]dvfsmodel.Sample, 0, settings)
	for i := range settings {
		core := dvfsmodel.MHz(700 + 100*i)
		off := 1 + 0.01*math.Sin(float64(7*i))
		samples = append(samples, dvfsmodel.Sample{Core: core, Mem: 900, Time: 1e5 / float64(core) * off, Power: dvfsmodel.Watt((50 + float64(core)/10) * off)})
	}
	known, err := pooled.Builtin().Condition(samples, base, pooled.Noise{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := bestModel(samples, base, known)
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
	if a, b := again.Fitted, m.Fitted; a.Settings != b.Settings || a.TimeError != b.TimeError || a.PowerError != b.PowerError {
		t.Errorf("%d settings, errors %v and %v after the records, %d, %v and %v before", a.Settings, a.TimeError, a.PowerError, b.Settings, b.TimeError, b.PowerError)
	}
}
