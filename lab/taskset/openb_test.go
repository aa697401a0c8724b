package taskset_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/lab/taskset"
	"github.com/epplan/epplan/lab/trace"
	"github.com/epplan/epplan/planner/fleet"
)

func generateOpenb(t *testing.T, spec taskset.OpenbSpec, seed uint64) *taskset.Openb {
	t.Helper()
	o, err := taskset.GenerateOpenb(spec, rand.New(rand.NewPCG(seed, seed)))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// figures returns what a synthetic trace and the real one are compared by.
func figures(t *testing.T, pods []trace.Pod, nodes []trace.NodeRow) map[string]float64 {
	t.Helper()
	kinds, err := trace.Kinds(nodes, "nodes", config.BuiltinProfiles())
	if err != nil {
		t.Fatal(err)
	}
	s := trace.NewSurvey(pods, kinds)
	all := float64(s.Tasks.Count)
	f := map[string]float64{
		"GPUs by node":              float64(s.Nodes.GPUMilli) / fleet.WholeGPU / float64(s.Nodes.Count),
		"vCPUs by node":             float64(s.Nodes.CPU) / 1000 / float64(s.Nodes.Count),
		"GiB by node":               float64(s.Nodes.Mem) / 1024 / float64(s.Nodes.Count),
		"empty power by node":       float64(s.CPUPower+s.GPUPower) / float64(s.Nodes.Count),
		"GPU demand by capacity":    float64(s.Tasks.GPUMilli) / float64(s.Nodes.GPUMilli),
		"CPU demand by capacity":    float64(s.Tasks.CPU) / float64(s.Nodes.CPU),
		"memory demand by capacity": float64(s.Tasks.Mem) / float64(s.Nodes.Mem),
		"entries of the target workload": float64(len(fleet.NewWorkload(trace.Demands(pods),
			fleet.PaperCover))),
		"tasks without a place": float64(len(s.Misfits)),
	}
	for _, shape := range s.Shapes {
		name := strconv.Itoa(shape.GPUs)
		if shape.Shared {
			name = "shared"
		}
		f[name+" GPUs: share of tasks"] = float64(shape.Count) / all
		f[name+" GPUs: vCPU"] = float64(shape.CPU) / 1000 / float64(shape.Count)
		f[name+" GPUs: GiB"] = float64(shape.Mem) / 1024 / float64(shape.Count)
		f[name+" GPUs: milli-GPU"] = float64(shape.GPUMilli) / float64(shape.Count)
	}
	models := make(map[string]float64)
	for _, k := range s.Kinds {
		models[k.Kind.Model] += float64(k.Count*k.Kind.GPUs*fleet.WholeGPU) / float64(s.Nodes.GPUMilli)
	}
	for model, share := range models {
		f["GPUs that are "+model] = share
	}
	addTimes(f, pods)
	return f
}

// addTimes adds quantiles of lifetimes, waits and times between creations.
func addTimes(f map[string]float64, pods []trace.Pod) {
	life, gap := make([]float64, 0, len(pods)), make([]float64, 0, len(pods))
	var wait []float64
	for i := range pods {
		life = append(life, pods[i].Deleted-pods[i].Created)
		if !math.IsNaN(pods[i].Scheduled) {
			wait = append(wait, pods[i].Scheduled-pods[i].Created)
		}
		if i > 0 {
			gap = append(gap, pods[i].Created-pods[i-1].Created)
		}
	}
	f["never scheduled"] = 1 - float64(len(wait))/float64(len(pods))
	for name, list := range map[string][]float64{"lifetime": life, "wait": wait, "gap": gap} {
		slices.Sort(list)
		for at, q := range map[string]float64{" 50 %": 0.5, " 75 %": 0.75, " 90 %": 0.90, " 99 %": 0.99} {
			f[name+at] = list[int(q*float64(len(list)))]
		}
	}
}

// tolerance returns how far a synthetic figure may be from the real one, as a
// fraction of it.
func tolerance(name string) float64 {
	switch name {
	case "GPU demand by capacity", "GPUs by node", "vCPUs by node", "GiB by node", "empty power by node":
		return 0.02
	case "CPU demand by capacity":
		return 0.03
	case "memory demand by capacity":
		return 0.06
	case "lifetime 50 %", "lifetime 75 %", "lifetime 90 %", "gap 50 %", "gap 75 %", "gap 90 %":
		return 0.25
	case "lifetime 99 %", "gap 99 %", "wait 75 %", "wait 90 %", "wait 99 %", "wait 50 %":
		return 0.5
	}
	return 0.15
}

func TestTheSyntheticTraceIsCloseToTheRealOne(t *testing.T) {
	pods, nodes := readOpenb(t)
	want := figures(t, pods, nodes)
	for _, seed := range []uint64{1, 2, 3} {
		o := generateOpenb(t, taskset.OpenbSpec{}, seed)
		got := figures(t, o.Pods, o.Nodes)
		for name, w := range want {
			if math.Abs(got[name]-w) > tolerance(name)*math.Abs(w) {
				t.Errorf("seed %d, %s: %.4g, of the trace %.4g", seed, name, got[name], w)
			}
		}
		if len(got) != len(want) {
			t.Errorf("seed %d: %d figures, %d of the trace", seed, len(got), len(want))
		}
	}
}

func readOpenb(t *testing.T) ([]trace.Pod, []trace.NodeRow) {
	t.Helper()
	r, err := os.Open(shareddata.Path(t, "openb/openb_pod_list_default.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	pods, err := trace.ReadPods(r, "pods")
	if err != nil {
		t.Fatal(err)
	}
	n, err := os.Open(shareddata.Path(t, "openb/openb_node_list_gpu_node.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.Close() }()
	nodes, err := trace.ReadNodes(n, "nodes")
	if err != nil {
		t.Fatal(err)
	}
	return pods, nodes
}

func TestASyntheticTraceFollowsFromItsSeed(t *testing.T) {
	text := func(seed uint64) string {
		o := generateOpenb(t, taskset.OpenbSpec{Nodes: 50}, seed)
		var b bytes.Buffer
		if err := trace.WriteNodes(&b, o.Nodes); err != nil {
			t.Fatal(err)
		}
		if err := trace.WritePods(&b, o.Pods); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	first := text(7)
	if text(7) != first {
		t.Error("the same seed gives two traces")
	}
	if text(8) == first {
		t.Error("two seeds give the same trace")
	}
}

func TestASyntheticTraceOfAnySizeIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		spec := taskset.OpenbSpec{
			Nodes: rapid.IntRange(1, 300).Draw(rt, "nodes"), Tasks: rapid.IntRange(0, 300).Draw(rt, "tasks"),
		}
		o := generateOpenb(t, spec, rapid.Uint64().Draw(rt, "seed"))
		var pods, nodes bytes.Buffer
		if err := trace.WritePods(&pods, o.Pods); err != nil {
			rt.Fatal(err)
		}
		if err := trace.WriteNodes(&nodes, o.Nodes); err != nil {
			rt.Fatal(err)
		}
		readPods, err := trace.ReadPods(&pods, "pods")
		if err != nil {
			rt.Fatal(err)
		}
		readNodes, err := trace.ReadNodes(&nodes, "nodes")
		if err != nil {
			rt.Fatal(err)
		}
		for i := range readNodes {
			readNodes[i].Line = 0
		}
		if len(o.Nodes) != spec.Nodes || !reflect.DeepEqual(readNodes, o.Nodes) {
			rt.Errorf("nodes %v were read as %v", o.Nodes, readNodes)
		}
		if spec.Tasks > 0 && len(o.Pods) != spec.Tasks || len(readPods) != len(o.Pods) {
			rt.Fatalf("%d tasks, read %d, want %d", len(o.Pods), len(readPods), spec.Tasks)
		}
		for i := range readPods {
			checkPod(rt, &readPods[i], &o.Pods[i])
		}
	})
}

// checkPod also checks that a task's times are in order.
func checkPod(rt *rapid.T, read, made *trace.Pod) {
	same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
	if read.Name != made.Name || read.Demand != made.Demand || !same(read.Created, made.Created) ||
		!same(read.Deleted, made.Deleted) || !same(read.Scheduled, made.Scheduled) {
		rt.Errorf("task %+v was read as %+v", made, read)
	}
	if err := made.Demand.Validate(); err != nil || made.Demand.CPU <= 0 || made.Demand.Mem <= 0 {
		rt.Errorf("task %+v: %v", made, err)
	}
	if !(made.Created >= 0) || !(made.Deleted >= made.Created) || made.Scheduled < made.Created ||
		made.Scheduled > made.Deleted {
		rt.Errorf("times of %+v are out of order", made)
	}
}

func TestASyntheticTraceOfNoSizeIsAnError(t *testing.T) {
	for _, spec := range []taskset.OpenbSpec{{Nodes: -1}, {Tasks: -1}, {Nodes: 1e8}, {Nodes: 1, Tasks: 1e8}} {
		if _, err := taskset.GenerateOpenb(spec, rand.New(rand.NewPCG(1, 1))); err == nil {
			t.Errorf("%+v: no error", spec)
		}
	}
}
