package replay_test

import (
	"bytes"
	"testing"

	"github.com/epplan/epplan/lab/replay"
	"github.com/epplan/epplan/planner"
)

func TestACurveHasTheReferencesColumnsAndFormats(t *testing.T) {
	points := []replay.LoadPoint{
		{CPU: 55665, GPU: 174435, Ratio: 1, Fragmented: 866.2326},
		{
			Load: 0.0100354, CPU: 61335.5, GPU: 186900, Ratio: 2.0 / 3, Fragmented: 851,
			Arrived: 88, Placed: 87,
		},
	}
	var out bytes.Buffer
	if err := replay.WriteCurve(&out, points); err != nil {
		t.Fatal(err)
	}
	want := `arrived_load,eopc_w,gpu_alloc_ratio,fragmented_gpu,arrived_pods,placed_pods,cpu_w,gpu_w
0.000000,230100,1.000000,866.233,0,0,55665,174435
0.010035,248235.5,0.666667,851.000,88,87,61335.5,186900
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}

func TestDecisionsNameTaskNodeAndGPUs(t *testing.T) {
	decisions := []replay.Decision{{Node: 1}, {Node: 0, GPUs: planner.GPUSet(0b1011)}, {Node: -1}}
	tasks, nodes := []string{"a", "b,c", "d\u200b\u202e"}, []string{"n0", "n1"}
	var out bytes.Buffer
	err := replay.WriteDecisions(&out, decisions, func(i int) string { return tasks[i] },
		func(i int) string { return nodes[i] })
	if err != nil {
		t.Fatal(err)
	}
	if want := "seq,name,node,gpus\n0,a,n1,\n1,\"b,c\",n0,0-1-3\n2,d\\u200b\\u202e,,\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}
