package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/catalog"
)

func TestACatalogWithAPriorHasOneWhereFiveWorkloadsHaveAModel(t *testing.T) {
	var text strings.Builder
	for i := range 6 {
		if i < 5 {
			fmt.Fprintf(&text, "[[model]]\nworkload = \"w%d\"\ngpu_model = \"v100\"\nform = \"paper\"\n"+
				"base_core_mhz = 1380\nbase_mem_mhz = 877\np0_w = 50\ngamma_w = 0\nc_w = 150\nd_s = 1\n"+
				"delta = 0.%d\nt0_s = 0.2\n", i, 3+i)
		}
		if i > 1 {
			fmt.Fprintf(&text, "[[model]]\nworkload = \"w%d\"\ngpu_model = \"RTX2070S\"\nform = \"paper\"\n"+
				"base_core_mhz = 1880\nbase_mem_mhz = 6800\n"+
				"p0_w = 50\ngamma_w = 0\nc_w = 150\nd_s = 1\ndelta = 1\nt0_s = 0\n", i)
		}
	}
	models, err := config.ReadModels(strings.NewReader(text.String()), "m.toml")
	if err != nil {
		t.Fatal(err)
	}
	c := catalog.New(config.BuiltinProfiles(), models, nil)
	unseen := func(gpu string) bool {
		t.Helper()
		h, err := c.Hardware(gpu)
		if err != nil {
			t.Fatal(err)
		}
		return h.Unseen != nil
	}
	if unseen("V100") {
		t.Error("others stand for workloads without a model, though nobody asked for that")
	}
	c.UsePrior()
	if !unseen("V100") || unseen("RTX2070S") || unseen("GTX1080Ti") {
		t.Errorf("V100 %v, RTX2070S %v, GTX1080Ti %v: want the first alone", unseen("V100"),
			unseen("RTX2070S"), unseen("GTX1080Ti"))
	}
	none := catalog.New(config.BuiltinProfiles(), nil, nil)
	none.UsePrior()
	if h, err := none.Hardware("V100"); err != nil || h.Unseen != nil {
		t.Errorf("without models: %+v, %v", h.Unseen, err)
	}
}
