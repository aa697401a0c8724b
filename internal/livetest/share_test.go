package livetest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

// shareSeconds is how long the jobs of this test take: several rounds of what is
// steered, and short enough to wait for.
const shareSeconds = 120

// halfDay are workloads that use a GPU in one half of their time.
var halfDay = map[string][]gpu.Phase{
	"first":  {{Busy: shareSeconds / 2, Wait: shareSeconds}},
	"second": {{Busy: 0.01, Wait: shareSeconds / 2}, {Busy: shareSeconds / 2, Wait: shareSeconds}},
}

// perform submits a job of a workload and has it do its work on the GPU that it
// gets.
func (l *lab) perform(workload, node string, args ...string) int64 {
	l.Helper()
	job := l.submitWork(workload, append(args, "-w", node)...)
	l.eventually("a job of "+workload+" runs", func() bool { return slices.Contains(l.runs(node), job) })
	run := l.runFile(node, job)
	for _, g := range l.sims(node) {
		if g.Identity().UUID != run.GPUs[0] {
			continue
		}
		work := gpu.Work{
			PID: int(job), Mem: 2 << 30, Phases: halfDay[workload],
			Model: dvfsmodel.Params{P0: 50, Gamma: 20, C: 100, D: shareSeconds / 2, Delta: 0.5},
		}
		if err := g.Run(work); err != nil {
			l.Fatal(err)
		}
		return job
	}
	l.Fatalf("job %d runs on %q, which %s doesn't have", job, run.GPUs, node)
	return 0
}

// submitWork submits a job of a workload, which its name tells.
func (l *lab) submitWork(workload string, args ...string) int64 {
	l.Helper()
	return l.submit(fmt.Sprintf("sleep %d", shareSeconds), append(args, "-J", workload, "-t", "10")...)
}

// weights returns the nodes' weights in Slurm, in order.
func (l *lab) weights() string {
	l.Helper()
	return strings.Join(strings.Fields(l.slurm("sinfo", "-h", "-N", "-p", "main", "-o", "%w")), " ")
}

// profiles returns what the controller knows of workloads.
func (l *lab) profiles() []epdapi.WorkloadProfile {
	l.Helper()
	out, err := exec.Command(filepath.Join(l.bin, "epplan"), "profile", "--json", "--socket", l.socket(controller)).CombinedOutput() //nolint:noctx // our own
	list := new(epdapi.ProfileList)
	if err == nil {
		err = json.Unmarshal(out, list)
	}
	if err != nil {
		l.Fatalf("epplan profile: %v\n%s", err, out)
	}
	return list.Profiles
}

func TestTheNextSharedJobGoesBesideTheOneInAntiphase(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := newLab(t, setup{
		config: "[live]\nmode = \"enforce\"\nhold_out = 1\nmax_slowdown = 1.5\n[live.sharing]\nweights = true\nslowdown = 1.3\n" +
			"[live.pick]\nevery_s = 2\n",
		roles: true, waits: true, gpu: "sim:4", args: []string{"--shards", "2"},
		// Workloads go by the jobs' names, however busy the machine is.
		flags: map[string][]string{controller: {"--submit-socket", ""}},
	})
	before := l.weights()
	learning := make([]int64, 0, 3*len(l.names))
	for i, node := range l.names { // six runs, each with a GPU to itself
		for k := range 3 {
			workload := []string{"first", "second"}[(i+k)%2]
			learning = append(learning, l.perform(workload, node, "--gres=gpu:1"))
		}
	}
	for _, job := range learning {
		l.within(2*shareSeconds*time.Second, "a job ends", func() bool { return l.state(job) == "COMPLETED" })
	}
	l.within(patience, "both workloads are known", func() bool {
		known := l.profiles()
		return len(known) == 2 && known[0].Unknown == "" && known[1].Unknown == ""
	})
	for _, p := range l.profiles() {
		t.Logf("%s: %d runs of %.0f s, phases %.2f", p.Workload, p.Runs, p.TimeS.Mean, p.Phases)
	}

	for _, node := range l.names { // one shared GPU is left on each
		l.submit("sleep 900", "--gres=gpu:3", "-w", node, "-t", "60")
	}
	l.eventually("three GPUs of each node are taken", func() bool {
		return len(l.runs("n1")) == 1 && len(l.runs("n2")) == 1
	})
	alike := l.perform("first", "n1", "--gres=shard:1")
	opposite := l.perform("second", "n2", "--gres=shard:1")
	l.slurm("scontrol", "update", "partitionname=main", "state=down") // jobs wait
	next := l.submitWork("first", "--gres=shard:1")
	l.eventually("the node with its like is heavier", func() bool { return l.weights() == "2 1" })
	var o *colocate.Order
	l.eventually("epd says so", func() bool { // a moment after it has done so
		o = l.steered().Shared
		return o != nil && int64(o.Job) == next && len(o.Nodes) == 2
	})
	if o.Nodes[0].Name != "n2" || !slices.Equal(names(o.Nodes[0].Beside), []string{name(opposite)}) ||
		!slices.Equal(names(o.Nodes[1].Beside), []string{name(alike)}) ||
		o.Nodes[0].Correlation > o.Nodes[1].Correlation-0.3 {
		t.Errorf("%+v", o)
	} else {
		t.Logf("correlation %.2f beside its opposite, %.2f beside its like", o.Nodes[0].Correlation,
			o.Nodes[1].Correlation)
	}
	l.slurm("scontrol", "update", "partitionname=main", "state=up")
	l.eventually("it starts", func() bool { return l.state(next) == "RUNNING" })
	l.stopEPD(controller, os.Interrupt)
	if node := l.slurm("squeue", "-h", "-j", name(next), "-o", "%N"); node != "n2" {
		t.Errorf("it runs on %s, want n2", node)
	}
	if got := l.weights(); got != before {
		t.Errorf("after the end the weights are %s, want %s", got, before)
	}

	l.slurm("scontrol", "update", "partitionname=main", "state=down")
	l.startEPD(controller)
	stranger := l.submit("sleep 1", "--gres=shard:1", "-J", "stranger", "-t", "1")
	l.eventually("the stranger's turn comes", func() bool {
		o := l.steered().Shared
		return o != nil && int64(o.Job) == stranger && len(o.Nodes) == 0 && o.Note != ""
	})
	if got := l.weights(); got != before {
		t.Errorf("for a workload that isn't known the weights are %s, want %s", got, before)
	}
	l.slurm("scontrol", "update", "partitionname=main", "state=up")
	l.ends(stranger, "COMPLETED")
	l.undrained()
}
