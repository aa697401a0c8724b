package agent_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu/amdgpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/testkit/amdgputest"
)

// amdNode is a node with one of AMD's GPUs, and the processes that come and go on it.
type amdNode struct {
	*testing.T
	kernel        *amdgputest.Kernel
	journal, runs *disk
	notes         string
}

func newAMDNode(t *testing.T, kind amdgputest.Kind) *amdNode {
	t.Helper()
	return &amdNode{
		T: t, kernel: amdgputest.New(t, kind), journal: newDisk(), runs: newDisk(),
		notes: filepath.Join(t.TempDir(), "notes"),
	}
}

// agent returns a process that may die by a fuse.
func (n *amdNode) agent(f *fuse) *agent.Agent {
	n.Helper()
	l, err := amdgpu.Open(amdgpu.Options{Sysfs: n.kernel, Notes: n.notes, Driver: "driver-1", Root: true})
	if err != nil {
		n.Fatal(err)
	}
	a := agent.New(agent.Options{
		Journal: fused{n.journal, f}, Runs: fused{n.runs, f}, Library: fusedLibrary{l, f, nil}, Boot: "boot-1",
		Driver: "driver-1", Grace: 1,
	})
	a.SettleOneByOne()
	return a
}

// play is what a process does: a job at one clock, and another at a second one.
func (n *amdNode) play(f *fuse) {
	a := n.agent(f)
	_, _ = a.Start(n.Context())
	h := &host{uuids: []string{"GPU-a0b1c2d3e4f50000"}}
	clocks := map[amdgputest.Kind]dvfsmodel.Setting{
		amdgputest.MI300X: {Core: 1000, Mem: 1100, Cap: 500}, amdgputest.MI100: {Core: 962, Cap: 200},
	}
	apply(h, a, "r1", 1, clocks[n.kernel.GPUs[0].Kind], 0)
	if f.at == 0 && n.kernel.GPUs[0].IsAsLoaded() {
		n.Error("the GPU wasn't set")
	}
	end(a, 1)
}

// The contract of a crash with another driver than the simulator: whenever the agent dies, the next one
// gives the GPU's level of performance back.
func TestACrashAtAnyStepLeavesNoAMDGPULimited(t *testing.T) {
	for _, kind := range []amdgputest.Kind{amdgputest.MI300X, amdgputest.MI100} {
		whole := &fuse{}
		first := newAMDNode(t, kind)
		if err := first.kernel.GPUs[0].Obey("power_dpm_force_performance_level", "high"); err != nil {
			t.Fatal(err)
		}
		first.play(whole)
		if level := first.kernel.GPUs[0].Level; level != "high" {
			t.Errorf("%s: the level is %s after a job, it was high before", kind, level)
		}
		for at := 1; at <= whole.steps; at++ {
			for _, after := range []bool{false, true} {
				n := newAMDNode(t, kind)
				n.play(&fuse{at: at, after: after})
				report, err := n.agent(&fuse{}).Start(t.Context())
				if err != nil || !report.Clean() {
					t.Errorf("%s, step %d: start: %v, %+v", kind, at, err, report)
				}
				if !n.kernel.GPUs[0].IsAsLoaded() || len(n.journal.files(".json")) > 0 {
					t.Errorf("%s, step %d: %+v, journal %v", kind, at, n.kernel.GPUs[0], n.journal.files(".json"))
				}
			}
		}
	}
}

// The firmware may take a limit for advice, as it may on MI300.
func TestAnAMDGPUThatRunsAboveItsLimitIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newAMDNode(t, amdgputest.MI210)
		n.kernel.GPUs[0].Put(t, "gpu_metrics", "") // so that the sensors tell the clock
		a := n.agent(&fuse{})
		if _, err := a.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		n.kernel.Deaf = true
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			a.Watch(ctx, agent.WatchHooks{
				Slurm: alive, Processes: alive, OnClosed: func(agent.ClosedRun) {}, OnProblem: func(error) {},
			})
			close(done)
		}()
		h := &host{uuids: []string{"GPU-a0b1c2d3e4f50000"}}
		apply(h, a, "r1", 1, dvfsmodel.Setting{Core: 1000}, 0)
		sleep(3 * time.Minute)
		if got := a.State().Runs[0].HandsOff; !strings.Contains(got, "no effect") {
			t.Errorf("a limit that isn't kept passed for one: %q", got)
		}
		if !n.kernel.GPUs[0].IsAsLoaded() {
			t.Errorf("%+v", n.kernel.GPUs[0])
		}
		cancel()
		<-done
	})
}
