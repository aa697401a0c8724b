package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/sharing"
)

func TestGPUsAreSharedOnlyWhereTheFileSaysSo(t *testing.T) {
	c := load(t, "[[cluster.nodes]]\ngpu_model = \"V100\"\ngpus = 2\n").Cluster()
	if c.Sharing != nil || c.Classes[0].SharedGB != nil {
		t.Errorf("%+v, want nothing shared", c)
	}
	c = load(t, "[[cluster.nodes]]\ngpu_model = \"V100\"\ngpus = 2\nshare = true\n"+
		"gpu_mem_gb = 32\n").Cluster()
	if want := []float64{32, 32}; !slices.Equal(c.Classes[0].SharedGB, want) {
		t.Errorf("memory %v GB, want %v", c.Classes[0].SharedGB, want)
	}
	paper := sharing.PaperPhysics()
	if c.Sharing == nil || !slices.Equal(c.Sharing.Physics.LevelsMHz, paper.LevelsMHz) ||
		c.Sharing.Physics.WPerMHz != paper.WPerMHz {
		t.Errorf("%+v, want the paper's V100", c.Sharing)
	}
}

func TestClocksOfSharedGPUsEndAtTheHighestOne(t *testing.T) {
	c := load(t, "[cluster.sharing]\nmin_mhz = 1000\nmax_mhz = 1350\nstep_mhz = 100\n[[cluster.nodes]]\n"+
		"gpu_model = \"V100\"\ngpus = 1\nshare = true\ngpu_mem_gb = 16\n").Cluster()
	if want := []dvfsmodel.MHz{1000, 1100, 1200, 1300, 1350}; !slices.Equal(c.Sharing.Physics.LevelsMHz,
		want) {
		t.Errorf("%v MHz, want %v", c.Sharing.Physics.LevelsMHz, want)
	}
	if err := (&planner.Cluster{Classes: c.Classes, Sharing: c.Sharing}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestTheFileOfACurveIsFoundBesideTheFileThatNamesIt(t *testing.T) {
	const text = "[cluster.sharing]\ncontention = %q\n[[cluster.nodes]]\ngpu_model = \"V100\"\ngpus = 2\n" +
		"share = true\ngpu_mem_gb = 32\n"
	for _, c := range []struct{ file, named, want string }{
		{"site/cluster.toml", "curve.json", "site/curve.json"},
		{"/etc/cluster.toml", "curves/v100.json", "/etc/curves/v100.json"},
		{"cluster.toml", "../curve.json", "../curve.json"},
		{"site/cluster.toml", "/etc/curve.json", "/etc/curve.json"},
		{"stdin", "curve.json", "curve.json"},
		{"cluster.toml", "-", "./-"}, // a file's name, not standard input
		{"cluster.toml", "", ""},
	} {
		loaded, err := Load(strings.NewReader(fmt.Sprintf(text, c.named)), c.file, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := loaded.Contention(); got != c.want {
			t.Errorf("%q in %s: %q, want %q", c.named, c.file, got, c.want)
		}
	}
	if got := Default().Contention(); got != "" {
		t.Errorf("%q by default, want none", got)
	}
}
