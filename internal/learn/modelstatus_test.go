package learn

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// trueModel returns a model of a workload as it is.
func trueModel(t *testing.T, p dvfsmodel.Params) *Model {
	t.Helper()
	samples := make([]dvfsmodel.Sample, 0, len(clocks))
	for _, core := range clocks {
		at := dvfsmodel.Scaling{V: 1, Fc: float64(core / base.Core), Fm: 1}
		samples = append(samples, dvfsmodel.Sample{
			Core: core, Mem: base.Mem, Time: p.Time(at.Fc, at.Fm), Power: p.Power(at),
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
	return m
}

// One node whose runs take longer is no reason to give up a model of others' runs: its own runs are left out
// instead.
func TestAModelIsGivenUpIfItMissesMoreThanOneNodesRuns(t *testing.T) {
	beside := trueModel(t, memoryBound())
	others := map[string]*Model{"n1": beside, "n2": beside} // without n1's runs there is a model, and without n2's
	for name, c := range map[string]struct {
		misses  string // nodes whose runs miss, in their order, n1 as 1; -: one of n1's that doesn't
		without map[string]*Model
		retired bool
	}{
		"too few":                         {"11", others, false},
		"one node of several":             {"11111", others, false},
		"one that says little":            {"333", others, false},
		"two nodes":                       {"121", others, true},
		"two nodes, the other one last":   {"112", others, true},
		"all runs are the node's":         {"111", map[string]*Model{"n1": nil}, true},
		"nothing is known of single ones": {"111", nil, true},
		"a hit between":                   {"12-12", others, false},
		"a hit before":                    {"-121", others, true},
	} {
		l, _ := onStore(t)
		m := trueModel(t, memoryBound())
		m.Without = c.without
		key := keyOf("w")
		l.models.change(key, func(st *standing) { st.model = m })
		for _, node := range c.misses {
			run := &record.Outcome{
				Cluster: key.Cluster, Workload: key.Workload, GPUModel: key.GPUModel, Node: "n" + string(node),
				ExitState: record.Completed, TimeS: live.Known(3 * memoryBound().DefaultTime()),
				MeanPowerW: live.Known(230), Setting: base,
			}
			if node == '-' {
				run.Node, run.TimeS = "n1", live.Known(memoryBound().DefaultTime())
			}
			l.judge(t.Context(), key, run)
		}
		st := l.ModelStatus(key)
		if retired := l.models.get(key).Model == nil; retired != c.retired ||
			retired != strings.Contains(st.Note, "missed the last") {
			t.Errorf("%s: given up: %v, want %v; %+v", name, retired, c.retired, st)
		}
	}
}
