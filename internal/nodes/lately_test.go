package nodes

import (
	"slices"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
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

func TestOnlyTheLatestSamplesOfSharedGPUsAreKept(t *testing.T) {
	r := newReceived()
	r.shares = func(id slurm.JobID) bool { return id == 1 }
	ended := inUse("n1", 0.5, 1)
	ended.Runs[0].Ended = true
	unread := inUse("n1", 0.5, 1)
	unread.GPUs[0].Read = false
	impossible := inUse("n1", 7, 1)
	unknown := inUse("n1", 0.5, 1)
	unknown.GPUs[0].Utilisation = live.Number{}
	seen := func(jobs ...slurm.JobID) []float64 {
		samples := r.RecentSamples("n1", jobs, r.now)
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
			if len(r.lately) > 0 {
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
		r.now = r.now.Add(time.Second)
		r.hear(inUse("n1", float64(i)/1024, 1))
	}
	if got := seen(1); len(got) != samplesKept || got[0] != 960./1024 || got[samplesKept-1] != 999./1024 {
		t.Errorf("%v", got)
	}
	if got := append(seen(2), seen(1, 2)...); len(got) > 0 {
		t.Errorf("of other jobs: %v", got)
	}
	r.hear(inUse("n1", 0.5, 1, 2))
	if got := seen(2, 1); !slices.Equal(got, []float64{0.5}) {
		t.Errorf("since another one began: %v", got)
	}
	r.now = r.now.Add(reportsKept + time.Minute)
	r.hear(inUse("n2", 0.5))
	if len(r.lately) != 0 || r.followed != 0 {
		t.Error("a node that is gone is remembered")
	}
	r.followed = maxRecentGPUs - 1 // of other nodes
	for _, node := range []string{"n1", "n2", "n1"} {
		r.hear(inUse(node, 0.5, 1))
	}
	if r.followed != maxRecentGPUs || len(r.lately) != 1 || len(seen(1)) != 2 {
		t.Errorf("%d GPUs are followed, those of %d nodes here", r.followed, len(r.lately))
	}
}
