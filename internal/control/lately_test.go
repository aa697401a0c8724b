package control

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/nodes"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// inUse returns a report of a node whose GPU is in use so much by jobs.
func inUse(node string, use float64, jobs ...slurm.JobID) *epdapi.NodeReport {
	r := &epdapi.NodeReport{Node: node, GPUs: []epdapi.NodeGPU{{
		GPU: epdapi.GPU{UUID: "GPU-" + node, Model: "V100"}, Read: true, Utilisation: live.Known(use),
	}}}
	for _, id := range jobs {
		r.Runs = append(r.Runs, epdapi.NodeRun{
			Run: epdapi.Run{ID: "run-" + id.String(), Job: uint32(id), GPUs: []string{"GPU-" + node}},
		})
	}
	return r
}

func TestANodeWhoseGPUDoesOtherThanItsJobsDidBeforeComesLast(t *testing.T) {
	r := rigAt(t, t.TempDir()+"/epd.db", &hand{now: start}, shareAll, nil)
	r.learn(100, "high", 3, halves(true))
	cluster := r.nodes()
	cluster.Jobs = []slurm.Job{r.shared(2, "high", "n2"), r.shared(3, "high", "")}
	cluster.Jobs[0].Start = r.clock.read().Add(-33 * time.Second) // its high half is over
	order := func() string {
		t.Helper()
		cluster.At = r.clock.read()
		o := r.Foresight.SharedNodes(t.Context(), cluster, &cluster.Jobs[1])
		var text strings.Builder
		for _, n := range o.Nodes {
			fmt.Fprintf(&text, "%s %t %s;", n.Name, n.Fits, n.Why)
		}
		return text.String()
	}
	const beside = "n2 true ;n1 true ;"
	if got := order(); got != beside {
		t.Fatalf("by the profiles: %s", got)
	}
	for range 7 {
		r.clock.move(time.Second)
		r.hear(inUse("n2", 0.95, 2))
	}
	if got := order(); got != beside {
		t.Errorf("after too few reports: %s", got)
	}
	r.clock.move(time.Second)
	r.hear(inUse("n2", 0.95, 2))
	if got := order(); !strings.HasPrefix(got,
		"n1 true ;n2 false job 2: its GPU was in use 95 % of the time lately, 5 % by their profiles") {
		t.Errorf("it is at work in its low half: %s", got)
	}
	r.clock.move(time.Second)
	r.hear(inUse("n2", 0.95, 2, 9)) // somebody else's job has begun there: what was before is over
	if got := order(); got != beside {
		t.Errorf("of two jobs nothing was seen yet: %s", got)
	}
	for range 8 {
		r.clock.move(time.Second)
		r.hear(inUse("n2", 0.95, 2))
	}
	r.clock.move(time.Second)
	if got := order(); !strings.Contains(got, "n2 false") {
		t.Errorf("reported again: %s", got)
	}
	r.clock.move(nodes.FreshAge(1))
	if got := r.reports.RecentSamples("n2", []slurm.JobID{2}, r.clock.read()); len(got) != 0 {
		t.Errorf("of an agent that has fallen silent: %d samples", len(got))
	}
}

// Of jobs that Slurm gave parts of GPUs, and of no others.
func TestOnlySharedGPUsAreFollowed(t *testing.T) {
	r := newRig(t, nil)
	r.shared(1, "shares", "n1")
	r.job(2, nil) // has whole GPUs
	seen := func(jobs ...slurm.JobID) int { return len(r.reports.RecentSamples("n1", jobs, r.clock.read())) }
	for _, jobs := range [][]slurm.JobID{{2}, {}, {77}} {
		if r.hear(inUse("n1", 0.5, jobs...)); seen(jobs...) > 0 {
			t.Errorf("of jobs %v", jobs)
		}
	}
	if r.hear(inUse("n1", 0.5, 1, 2)); seen(1, 2) != 1 {
		t.Error("nothing is kept of a GPU of which one has a part")
	}
}
