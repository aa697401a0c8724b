package control

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

func TestANodeEnergyThatWasNotMeasuredIsModelledAndMarked(t *testing.T) {
	settings, err := ReadSettings(strings.NewReader("[[cluster.nodes]]\ngpu_model = \"V100\"\ngpus = 4\n"+
		"host_w_per_gpu = 60\n"), "c.toml")
	if err != nil {
		t.Fatal(err)
	}
	run := record.Outcome{
		GPUModel: "V100", GPUs: []string{"a", "b"}, TimeS: live.Known(100), GPUEnergyJ: live.Known(5000),
		GPUSource: record.Counter,
	}
	for name, c := range map[string]struct {
		change func(o *record.Outcome)
		want   live.Number
		source record.Source
	}{
		"two GPUs": {func(*record.Outcome) {}, live.Known(5000 + 2*60*100), record.Modelled},
		"an unknown model": {func(o *record.Outcome) {
			o.GPUModel = "X1"
		}, live.Known(5000 + 2*25*100), record.Modelled},
		"a forged model": {func(o *record.Outcome) {
			o.NodeEnergyJ, o.NodeSource = live.Known(1), record.Modelled
		}, live.Known(17000), record.Modelled},
		"measured": {func(o *record.Outcome) {
			o.NodeEnergyJ, o.NodeSource = live.Known(9000), record.RAPL
		}, live.Known(9000), record.RAPL},
		"accounted": {func(o *record.Outcome) {
			o.NodeEnergyJ, o.NodeSource = live.Known(9000), record.Accounting
		}, live.Known(9000), record.Accounting},
		"no GPU energy": {func(o *record.Outcome) {
			o.GPUEnergyJ = live.Number{}
		}, live.Number{}, record.Unmeasured},
		"no time": {func(o *record.Outcome) {
			o.TimeS = live.Number{}
		}, live.Number{}, record.Unmeasured},
		"no GPU": {func(o *record.Outcome) { o.GPUs = nil }, live.Number{}, record.Unmeasured},
		"a number, unmarked": {func(o *record.Outcome) {
			o.NodeEnergyJ = live.Known(3)
		}, live.Known(17000), record.Modelled},
	} {
		o := run
		c.change(&o)
		settings.completeNodeEnergy(&o)
		if o.NodeEnergyJ != c.want || o.NodeSource != c.source {
			t.Errorf("%s: %s J, %q; want %s, %q", name, o.NodeEnergyJ, o.NodeSource, c.want, c.source)
		}
	}
}
