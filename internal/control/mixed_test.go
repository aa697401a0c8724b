package control

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"testing"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm"
)

func TestAgentsOfALaterVersionAreUnderstood(t *testing.T) {
	r := newRig(t, nil)
	c := r.serve(t)
	r.job(1, nil)
	later := func(path string, v any, want int) {
		t.Helper()
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		text = append([]byte(`{"of_a_later_version":{"x":[1]},`), text[1:]...)
		if status := c.call(http.MethodPost, path, bytes.NewReader(text), nil); status != want {
			t.Errorf("%s: status %d, want %d", path, status, want)
		}
	}
	later("/v1/decide", ask(1), http.StatusOK)
	d := r.decide(ask(1))
	later("/v1/outlook", epdapi.OutlookRequest{Job: 1, Node: "n1", RunID: "run-1"}, http.StatusOK)
	later("/v1/outcome", r.ran(d, "run-1", memoryBound()), http.StatusOK)
	// People write that.
	later("/v1/models/use", epdapi.ModelChoice{Workload: "w", GPUModel: "V100"}, http.StatusBadRequest)
}

func TestSlurmIsAskedAboutFewJobsAtATimeHoweverManyStart(t *testing.T) {
	var mu sync.Mutex
	now, most, all := 0, 0, 0
	r := newRig(t, func(o *Options) {
		o.ResolveTimeout = 0
		o.Resolve = func(ctx context.Context, _ slurm.JobID) (slurm.Job, error) {
			mu.Lock()
			now, all = now+1, all+1
			most = max(most, now)
			mu.Unlock()
			<-ctx.Done() // it is slow
			mu.Lock()
			defer mu.Unlock()
			now--
			return slurm.Job{}, ctx.Err()
		}
	})
	var group sync.WaitGroup
	for id := range slurm.JobID(200) {
		group.Go(func() {
			d, err := r.Decide(t.Context(), ask(id+1))
			if err != nil || d.Apply {
				t.Errorf("job %d: %+v, %v", id+1, d, err)
			}
		})
	}
	group.Wait()
	const maxAsking = 16
	if most > maxAsking || all < maxAsking {
		t.Errorf("asked %d times, %d at once, want at most %d", all, most, maxAsking)
	}
}
