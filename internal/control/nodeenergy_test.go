package control

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/store/record"
)

func TestANodeEnergyThatWasNotMeasuredIsModelledAndMarked(t *testing.T) {
	settings, err := ReadSettings(strings.NewReader("[[cluster.nodes]]\ngpu_model = \"V100\"\ngpus = 4\nhost_w_per_gpu = 60\n"), "c.toml")
	if err != nil {
		t.Fatal(err)
	}
	run := record.Outcome{GPUModel: "V100", GPUs: []string{"a", "b"}, TimeS: record.Known(100), GPUEnergyJ: record.Known(5000), GPUSource: record.Counter}
	for name, c := range map[string]struct {
		change func(o *record.Outcome)
		want   record.Number
		source record.Source
	}{
		"two GPUs":           {func(*record.Outcome) {}, record.Known(5000 + 2*60*100), record.Modelled},
		"an unknown model":   {func(o *record.Outcome) { o.GPUModel = "X1" }, record.Known(5000 + 2*25*100), record.Modelled},
		"a forged model":     {func(o *record.Outcome) { o.NodeEnergyJ, o.NodeSource = record.Known(1), record.Modelled }, record.Known(17000), record.Modelled},
		"measured":           {func(o *record.Outcome) { o.NodeEnergyJ, o.NodeSource = record.Known(9000), record.RAPL }, record.Known(9000), record.RAPL},
		"accounted":          {func(o *record.Outcome) { o.NodeEnergyJ, o.NodeSource = record.Known(9000), record.Accounting }, record.Known(9000), record.Accounting},
		"no GPU energy":      {func(o *record.Outcome) { o.GPUEnergyJ = record.Number{} }, record.Number{}, record.Unmeasured},
		"no time":            {func(o *record.Outcome) { o.TimeS = record.Number{} }, record.Number{}, record.Unmeasured},
		"no GPU":             {func(o *record.Outcome) { o.GPUs = nil }, record.Number{}, record.Unmeasured},
		"a number, unmarked": {func(o *record.Outcome) { o.NodeEnergyJ = record.Known(3) }, record.Known(17000), record.Modelled},
	} {
		o := run
		c.change(&o)
		settings.nodeEnergy(&o)
		if o.NodeEnergyJ != c.want || o.NodeSource != c.source {
			t.Errorf("%s: %s J, %q; want %s, %q", name, o.NodeEnergyJ, o.NodeSource, c.want, c.source)
		}
	}
}
