package query

import (
	"slices"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/slurm"
)

// Slurm's types are often bare names; the site's agents know which board it is.
func TestABareTypeOfGPUIsTheBoardThatTheSiteHas(t *testing.T) {
	profiles := config.BuiltinProfiles()
	for _, c := range []struct {
		gres  string
		seen  []string
		want  string
		known bool
	}{
		{"a100", nil, "A100", true},
		{"a100", []string{"A100-SXM4-80GB"}, "A100-SXM4-80GB", true},
		{"a100", []string{"A100", "A100-SXM4-80GB"}, "A100", true},
		{"a100", []string{"A100-PCIE-40GB", "A100-SXM4-80GB"}, "A100", true},
		{"nvidia_a100-sxm4-80gb", []string{"A100-SXM4-80GB"}, "A100-SXM4-80GB", true},
		{"nvidia_a100-sxm4-80gb", []string{"A100"}, "A100-SXM4-80GB", true},
		{"h100", []string{"H100-PCIE", "V100"}, "H100-PCIE", true},
		{"a10", []string{"A100", "A100-SXM4-80GB"}, "A10", true},
		{"x9000", []string{"NVIDIA X9000", "V100"}, "NVIDIA X9000", true},
		{"x9000", []string{"V100"}, "x9000", false},
		{"", []string{"V100"}, "", false},
	} {
		names := GPUNames{Profiles: profiles, Known: c.seen, Nodes: func(string) int { return 0 }}
		if got, known := names.modelOfGres(c.gres); got != c.want || known != c.known {
			t.Errorf("%q beside %q: %q, %v, want %q, %v", c.gres, c.seen, got, known, c.want, c.known)
		}
	}
}

// Of a type that stands for several boards all nodes and jobs have that of most nodes, whatever one of them
// says; a node without a type has what its agent says, in the spelling that is known.
func TestNodesAndJobsOfATypeHaveTheSameGPUs(t *testing.T) {
	of := map[string]string{"n1": "A100-SXM4-80GB", "n2": "A100-SXM4-80GB", "n3": "A100", "n4": "acme x9 big"}
	names := GPUNames{
		Profiles: config.BuiltinProfiles(), Known: []string{"A100", "A100-SXM4-80GB", "ACME X9-Big"},
		OfNode: func(node string) string { return of[node] },
		Nodes: func(gpuModel string) (count int) {
			for _, said := range of {
				if said == gpuModel {
					count++
				}
			}
			return count
		},
	}
	wanted := names.Wanted(&slurm.Job{TRESPerNode: "gres:gpu:a100:2"})
	for node, want := range map[string]string{
		"n1": wanted, "n2": wanted, "n3": wanted, "n4": "ACME X9-Big", "n5": "",
	} {
		n := slurm.Node{Name: node, Gres: []slurm.Gres{{Name: "gpu", Type: "a100", Count: 4}}}
		if node > "n3" {
			n.Gres[0].Type = ""
		}
		if kind := names.NodeKind(&n); kind.GPUModel != want || kind.GPUs != 4 {
			t.Errorf("%s: %+v, want %s", node, kind, want)
		}
	}
	if wanted != "A100-SXM4-80GB" {
		t.Errorf("a job that wants an a100 gets %q", wanted)
	}
}

// A driver lists the clocks of an idle board, too.
func TestADevicesClocksArePlannedAtTheMemoryClocksOfItsProfile(t *testing.T) {
	p, err := config.BuiltinProfiles().Lookup("RTX4090")
	if err != nil {
		t.Fatal(err)
	}
	top, run, idle := dvfsmodel.Setting{Core: 3120, Mem: 10501}, dvfsmodel.Setting{Core: 2520, Mem: 10251},
		dvfsmodel.Setting{Core: 405, Mem: 405}
	all := []dvfsmodel.Setting{idle, run, top}
	if got := plannedPairs(p, Clocks{Base: run, Pairs: all}); !slices.Equal(got, []dvfsmodel.Setting{run}) {
		t.Errorf("%v", got)
	}
	if got := plannedPairs(p, Clocks{Base: top, Pairs: all}); !slices.Equal(got, all) {
		t.Errorf("%v", got)
	}
}
