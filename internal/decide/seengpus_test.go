package decide

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
)

// sayClocks has a node say that a GPU model has one pair of clocks.
func sayClocks(g *SeenGPUs, node, gpuModel string, core dvfsmodel.MHz) {
	t := &ClockTable{hash: uint64(core), Pairs: []dvfsmodel.Setting{{Core: core, Mem: 1}}}
	limit := epdapi.PowerLimit{InForce: dvfsmodel.Watt(core)}
	g.note(gpuModel, t, &epdapi.DecideRequest{Node: node, PowerLimit: limit})
}

// What counts is what most nodes said last, whoever says what how often and when: as counted from all that
// was said.
func TestOfAGPUModelCountsWhatMostNodesSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g SeenGPUs
		type word struct {
			node, gpuModel string
			core           dvfsmodel.MHz
		}
		said := make(map[string][]word) // by node, the last first
		for range rapid.IntRange(1, 60).Draw(t, "words") {
			w := word{
				fmt.Sprint("n", rapid.IntRange(0, 8).Draw(t, "node")),
				fmt.Sprint("g", rapid.IntRange(0, 6).Draw(t, "GPU model")),
				dvfsmodel.MHz(rapid.IntRange(1, 3).Draw(t, "core")),
			}
			sayClocks(&g, w.node, w.gpuModel, w.core)
			before := slices.DeleteFunc(said[w.node], func(b word) bool { return b.gpuModel == w.gpuModel })
			said[w.node] = append([]word{w}, before...)
			said[w.node] = said[w.node][:min(len(said[w.node]), maxModelsOfNode)]
		}
		votes := make(map[string]map[dvfsmodel.MHz]int)
		for node, words := range said {
			if got := g.Of(node); got != words[0].gpuModel {
				t.Errorf("%s named %s last, known is %s", node, words[0].gpuModel, got)
			}
			for _, w := range words {
				if votes[w.gpuModel] == nil {
					votes[w.gpuModel] = make(map[dvfsmodel.MHz]int)
				}
				votes[w.gpuModel][w.core]++
			}
		}
		if got, want := g.Models(nil), slices.Sorted(maps.Keys(votes)); !slices.Equal(got, want) {
			t.Errorf("GPU models %q, want %q", got, want)
		}
		for name, of := range votes {
			counts(t, &g, name, of)
		}
		if len(g.byModel) != len(votes) {
			t.Errorf("%d GPU models are kept, want %d", len(g.byModel), len(votes))
		}
	})
}

// counts checks that of a GPU model counts what most say, by how many nodes say so.
func counts(t *rapid.T, g *SeenGPUs, name string, votes map[dvfsmodel.MHz]int) {
	most, nodes := 0, 0
	for _, n := range votes {
		most, nodes = max(most, n), nodes+n
	}
	if got := votes[g.Clocks(name).Pairs[0].Core]; got != most {
		t.Errorf("%s: clocks of %d nodes, %d say others", name, got, most)
	}
	if got := votes[dvfsmodel.MHz(g.limit(name).limit.InForce)]; got != most {
		t.Errorf("%s: the limit of %d nodes, %d say another", name, got, most)
	}
	if got := g.Nodes(name); got != nodes {
		t.Errorf("%s: %d nodes, want %d", name, got, nodes)
	}
}

// A node that names ever new GPU models has as many kept as one that doesn't.
func TestANodeHasFewGPUModelsKept(t *testing.T) {
	var g SeenGPUs
	sayClocks(&g, "honest", "H200", 1)
	for i := range 1000 {
		sayClocks(&g, "n1", fmt.Sprint("made up ", i), dvfsmodel.MHz(1+i))
	}
	got := g.Models(map[string]bool{"h200": true, "V100": true})
	if len(got) != maxModelsOfNode+2 || !slices.Contains(got, "H200") ||
		len(g.byModel) != maxModelsOfNode+1 || len(g.byNode["n1"]) != maxModelsOfNode {
		t.Errorf("kept: %q, %d nodes", got, len(g.byNode))
	}
}

// However many clocks devices are said to have, few tables are kept.
func TestTablesAreBoundedByTheirClocks(t *testing.T) {
	dr, _ := newDecider(t, 1, time.Now)
	s := dr.options.Settings()
	var all []dvfsmodel.MHz
	for core := dvfsmodel.MHz(1); core <= 2000; core++ {
		all = append(all, core)
	}
	for i := range 300 {
		request := &epdapi.DecideRequest{
			GPUModel: fmt.Sprint("made up ", i), Clocks: []epdapi.ClockGroup{{Mem: 1, Core: all}, {Mem: 2, Core: all}},
		}
		if got := dr.tables.get(s, request, dvfsmodel.Setting{}); len(got.Pairs) != 2*len(all) {
			t.Fatalf("%d pairs", len(got.Pairs))
		}
	}
	sum := 0
	for _, table := range dr.tables.byKey {
		sum += len(table.Pairs)
	}
	if sum > maxTablePairs || sum != dr.tables.pairs {
		t.Errorf("%d pairs are kept, %d are counted", sum, dr.tables.pairs)
	}
}
