package config

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
)

// siteCeiling says what a configuration has of a GPU model somewhere.
func siteCeiling(l *Live, model, partitions, node string) string {
	c, named := l.SiteClocksOf(model, partitions, node)
	return fmt.Sprintf("%v/%v %v", float64(c.Core), float64(c.Mem), named)
}

func TestSiteClocksAreTheLowestOfModelPartitionAndNode(t *testing.T) {
	const text = `
[live.site_clocks]
"Tesla V100" = 1237
A100 = { core_max_mhz = 1290, mem_max_mhz = 1215 }
[live.site_clocks.nodes."gpu[01-03],n1"]
V100 = 1087
[live.site_clocks.nodes.gpu02]
V100 = [945, 877]
[live.site_clocks.partitions.debug]
V100 = 802
[live.site_clocks.partitions.wide]
V100 = 1380
`
	c := load(t, text)
	var shown strings.Builder
	if err := c.Show(&shown); err != nil {
		t.Fatal(err)
	}
	for _, l := range []*Live{&c.Live, &load(t, shown.String()).Live} {
		for _, x := range []struct{ model, partitions, node, want string }{
			{"V100", "gpu", "n9", "1237/0 true"},
			{"V100", "", "", "1237/0 true"},
			{"V100", "gpu", "n1", "1087/0 true"},
			{"V100", "gpu", "gpu03", "1087/0 true"},
			{"V100", "gpu", "gpu02", "945/877 true"},
			{"V100", "gpu,debug", "gpu02", "802/877 true"},
			{"V100", "wide", "n9", "1237/0 true"},
			{"A100-SXM4-40GB", "wide", "n9", "0/0 false"},
			{"A100", "wide", "n9", "1290/1215 true"},
			{"P100", "debug", "n1", "0/0 false"},
		} {
			if got := siteCeiling(l, x.model, x.partitions, x.node); got != x.want {
				t.Errorf("%s in %q on %q: %s, want %s", x.model, x.partitions, x.node, got, x.want)
			}
		}
	}
	if got := siteCeiling(&Default().Live, "V100", "gpu", "n1"); got != "0/0 false" {
		t.Errorf("by default %s", got)
	}
}

func TestWrongSiteClocksAreNamedWithTheirPosition(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"[live]\nsite_clocks = 1237", "2:15: live.site_clocks is 1237, want a table of GPU models"},
		{
			"[live.site_clocks]\nV100 = 1240",
			`2:8: live.site_clocks: GPU model "V100" has no core clock of 1240 MHz, ` +
				"the nearest below is 1237; should",
		},
		{"[live.site_clocks]\nV100 = 1", "its lowest is 802"},
		{
			"[live.site_clocks]\nV100 = {mem_max_mhz = 900}",
			"2:23: live.site_clocks: GPU model \"V100\" has no memory clock of 900 MHz",
		},
		{
			"[live.site_clocks]\nV100 = {core_mhz = 1237}",
			"unknown key core_mhz in [live.site_clocks.V100], want one of core_max_mhz",
		},
		{
			"[live.site_clocks]\nV100 = {}",
			"live.site_clocks.V100 is a table, want the highest core clock",
		},
		{
			"[live.site_clocks]\nV100 = 0",
			"2:8: live.site_clocks.V100 is 0, want the highest core clock in MHz",
		},
		{"[live.site_clocks]\nV100 = nan", "2:8: live.site_clocks.V100 is nan"},
		{"[live.site_clocks]\nV100 = -1237.0", "2:8: live.site_clocks.V100 is -1237"},
		{
			"[live.site_clocks]\nV100 = {core_max_mhz = nan}",
			"2:24: live.site_clocks.V100.core_max_mhz is nan",
		},
		{"[live.site_clocks]\nV100 = \"1237\"", `live.site_clocks.V100 is "1237"`},
		{
			"[live.site_clocks]\nV10O = 1237",
			`2:1: live.site_clocks: unknown GPU model "V10O", want one of`,
		},
		{
			"[live.site_clocks]\nV100 = 1237\n\"Tesla V100\" = 945",
			`live.site_clocks has GPU model "V100" twice`,
		},
		{
			"[live.site_clocks.node.n1]\nV100 = 1237",
			"unknown key node in [live.site_clocks], did you mean nodes?",
		},
		{
			"[live.site_clocks.nodes]\nn1 = 1237",
			"2:6: live.site_clocks.nodes.n1 is 1237, want a table of GPU models",
		},
		{
			"[live.site_clocks.nodes.n1]\nV100 = 1240",
			`2:8: live.site_clocks: GPU model "V100" has no core clock of 1240 MHz`,
		},
		{
			"[live.site_clocks.nodes.n1]\nV10O = 1237",
			`2:1: live.site_clocks.nodes.n1: unknown GPU model "V10O"`,
		},
		{"[live.site_clocks.nodes.\"n[1-\"]\nV100 = 1237", "hostlist column 1: [ without ]"},
		{
			"[live.site_clocks]\nnodes = [\"n1\"]",
			"live.site_clocks.nodes is an array, want a table of nodes",
		},
		{"[live.site_clocks.partitions.debug]\nV100 = 1240", "the nearest below is 1237"},
		{
			"[live]\nconstant_clocks = {V100 = 1380}\nsite_clocks = {V100 = 1237}",
			"2:27: live.constant_clocks: core 1380 MHz with memory 877 MHz",
		},
	} {
		_, err := Load(strings.NewReader(c.text), "f.toml", nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

func TestACeilingThatAppliesIsNeverExceeded(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		clock := rapid.SampledFrom([]int{802, 945, 1087, 1237, 1380})
		rule := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), clock, 0, 3)
		partitions, nodes := rule.Draw(r, "partitions"), rule.Draw(r, "nodes")
		var text strings.Builder
		bounds := map[string]int{}
		if rapid.Bool().Draw(r, "everywhere") {
			bounds["all"] = clock.Draw(r, "all")
			fmt.Fprintf(&text, "[live.site_clocks]\nV100 = %d\n", bounds["all"])
		}
		for kind, rules := range map[string]map[string]int{"partitions": partitions, "nodes": nodes} {
			for name, core := range rules {
				bounds[kind+name] = core
				fmt.Fprintf(&text, "[live.site_clocks.%s.%s]\nV100 = %d\n", kind, name, core)
			}
		}
		name := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		in := rapid.SliceOfNDistinct(name, 0, 3, rapid.ID[string]).Draw(r, "in")
		node := name.Draw(r, "node")
		apply := []string{"all", "nodes" + node} //nolint:prealloc // a few
		for _, p := range in {
			apply = append(apply, "partitions"+p)
		}
		want := 0
		for _, a := range apply {
			if b := bounds[a]; b > 0 && (want == 0 || b < want) {
				want = b
			}
		}
		c, err := Load(strings.NewReader(text.String()), "f.toml", nil)
		if err != nil {
			r.Fatal(err)
		}
		got, named := c.Live.SiteClocksOf("V100", strings.Join(in, ","), node)
		if got != (dvfsmodel.Setting{Core: dvfsmodel.MHz(want)}) || named != (want > 0) {
			r.Fatalf("%s\n%v on %q: %v %v, want %d", text.String(), in, node, got, named, want)
		}
	})
}

func TestProfilesOfASiteHaveNoClocksAboveItsOwn(t *testing.T) {
	c := load(t, "[live.site_clocks]\nV100 = 1087\n[live.site_clocks.nodes.n1]\nP100 = 1189\n")
	limited, err := c.SiteProfiles().Lookup("V100")
	if err != nil {
		t.Fatal(err)
	}
	if want := (dvfsmodel.Setting{Core: 1087, Mem: 877}); limited.Default != want {
		t.Errorf("default clocks %v, want %v", limited.Default, want)
	}
	for _, pair := range limited.Pairs() {
		if pair.Core > 1087 {
			t.Errorf("has %v", pair)
		}
	}
	if table, err := limited.Table(); err != nil || len(limited.Pairs()) != 3 {
		t.Errorf("%v, %v, %d clocks", table, err, len(limited.Pairs()))
	}
	for _, name := range BuiltinProfiles().Names() {
		before, _ := BuiltinProfiles().Lookup(name)
		after, err := c.SiteProfiles().Lookup(name)
		if err != nil || name != "V100" && (before.Default != after.Default ||
			len(before.Pairs()) != len(after.Pairs())) {
			t.Errorf("%s: %v to %v, %v", name, before.Default, after.Default, err)
		}
	}
}
