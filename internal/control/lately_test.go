package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// inUse is a report of a node whose GPU is in use so much by jobs.
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
		o := r.SharedNodes(t.Context(), cluster, &cluster.Jobs[1])
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
	r.clock.move(freshAge(1))
	if got := r.reports.seen("n2", []slurm.JobID{2}, r.clock.read()); len(got) != 0 {
		t.Errorf("of an agent that has fallen silent: %d samples", len(got))
	}
}

func TestOnlyTheLatestSamplesOfSharedGPUsAreKept(t *testing.T) {
	r := newRig(t, nil)
	r.shared(1, "shares", "n1")
	r.job(2, nil) // has whole GPUs
	ended := inUse("n1", 0.5, 1)
	ended.Runs[0].Ended = true
	unread := inUse("n1", 0.5, 1)
	unread.GPUs[0].Read = false
	impossible := inUse("n1", 7, 1)
	unknown := inUse("n1", 0.5, 1)
	unknown.GPUs[0].Utilisation = live.Number{}
	seen := func(jobs ...slurm.JobID) []float64 {
		samples := r.reports.seen("n1", jobs, r.clock.read())
		all := make([]float64, len(samples))
		for i, s := range samples {
			all[i] = s.Use
		}
		return all
	}
	for range 3 {
		for _, report := range []*epdapi.NodeReport{
			inUse("n1", 0.5, 2), inUse("n1", 0.5), ended,
			inUse("n1", 0.5, 77),
		} {
			r.hear(report)
			if len(r.reports.lately) > 0 {
				t.Fatalf("kept: %+v", report)
			}
		}
	}
	for _, report := range []*epdapi.NodeReport{
		inUse("n1", 0.25, 1), unread, impossible, unknown,
		inUse("n1", 0.5, 1),
	} {
		r.hear(report)
	}
	if got := seen(1); !slices.Equal(got, []float64{0.25, 0.5}) {
		t.Errorf("%v", got)
	}
	for i := range 1000 {
		r.clock.move(time.Second)
		r.hear(inUse("n1", float64(i)/1024, 1))
	}
	if got := seen(1); len(got) != latelyKept || got[0] != 960./1024 || got[latelyKept-1] != 999./1024 {
		t.Errorf("%v", got)
	}
	if got := append(seen(2), seen(1, 2)...); len(got) > 0 {
		t.Errorf("of other jobs: %v", got)
	}
	r.hear(inUse("n1", 0.5, 1, 2))
	if got := seen(2, 1); !slices.Equal(got, []float64{0.5}) {
		t.Errorf("since another one began: %v", got)
	}
	r.clock.move(reportsKept + time.Minute)
	r.hear(inUse("n2", 0.5))
	if len(r.reports.lately) != 0 || r.reports.followed != 0 {
		t.Error("a node that is gone is remembered")
	}
	r.reports.followed = maxLately - 1 // of other nodes
	for _, node := range []string{"n1", "n2", "n1"} {
		r.hear(inUse(node, 0.5, 1))
	}
	if r.reports.followed != maxLately || len(r.reports.lately) != 1 || len(seen(1)) != 2 {
		t.Errorf("%d GPUs are followed, those of %d nodes here", r.reports.followed, len(r.reports.lately))
	}
}
