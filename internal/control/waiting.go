package control

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/slurm"
)

// waiting is how many GPUs jobs wait for that could have those of a node: what a job there
// keeps from others while it runs. It is worked out in the background, as often as Slurm is asked
// for its queue, and only where waiting has a price.
type waiting struct {
	last atomic.Pointer[waitingJobs]
}

// waitingJobs are the jobs that waited for GPUs at some moment.
type waitingJobs struct {
	byPlace map[waitPlace]int       // GPUs that are waited for
	places  map[string]waitPlace    // of nodes, by name
	counted map[slurm.JobID]waitJob // jobs that are in it, which may have started since
}

// waitPlace is what decides who may have the GPUs of a node.
type waitPlace struct{ partitions, gpuModel string }

type waitJob struct {
	gpus       int
	partitions []string
	gpuModel   string // empty: any
}

// mayHave reports whether a job could have GPUs of a place.
func (j *waitJob) mayHave(at waitPlace) bool {
	if j.gpuModel != "" && j.gpuModel != at.gpuModel {
		return false
	}
	return slices.ContainsFunc(strings.Split(at.partitions, ","), func(name string) bool {
		return slices.Contains(j.partitions, name)
	})
}

// For is how many GPUs jobs other than one wait for that could have those of a node.
func (w *waiting) For(job slurm.JobID, node string) int {
	now := w.last.Load()
	if now == nil {
		return 0
	}
	at, known := now.places[node]
	if !known {
		return 0
	}
	gpus := now.byPlace[at]
	if own, counted := now.counted[job]; counted && own.mayHave(at) {
		gpus -= own.gpus
	}
	return gpus
}

// waitingEvery is how often who waits is worked out.
const waitingEvery = 10 * time.Second

// keepWaiting keeps up with who waits, until the context ends.
func (c *Controller) keepWaiting(ctx context.Context) {
	tick := time.NewTicker(waitingEvery)
	defer tick.Stop()
	for {
		if c.settings.Load().Goal.WaitWeight > 0 {
			c.waiting.last.Store(c.whoWaits())
		} else {
			c.waiting.last.Store(nil)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// whoWaits are the jobs that could start but for GPUs, or for their turn to have them.
func (c *Controller) whoWaits() *waitingJobs {
	profiles, gpuModels := c.settings.Load().Profiles, c.Foresight.gpuModels()
	w := &waitingJobs{
		byPlace: make(map[waitPlace]int), places: make(map[string]waitPlace),
		counted: make(map[slurm.JobID]waitJob),
	}
	nodes := c.Jobs.Nodes()
	for i := range nodes {
		n := &nodes[i]
		if jobs.GPUsOfNode(n) == 0 {
			continue
		}
		partitions := slices.Sorted(slices.Values(n.Partitions))
		at := waitPlace{strings.Join(partitions, ","), query.NodeKind(profiles, n, gpuModels).GPUModel}
		w.places[n.Name], w.byPlace[at] = at, 0
	}
	for id, job := range c.Jobs.All() {
		if job.GPUs == 0 || job.GPUs > epdapi.MaxGPUs || job.State() != slurm.Pending {
			continue
		}
		j := job.Slurm(id)
		if kind := j.WaitKind(); kind != slurm.WaitTurn {
			continue // held, not due, or kept back by a limit, whatever is free
		}
		one := waitJob{
			gpus: int(job.GPUs), partitions: strings.Split(j.Partition, ","),
			gpuModel: query.WantedModel(profiles, &j, gpuModels),
		}
		w.counted[id] = one
		for at := range w.byPlace {
			if one.mayHave(at) {
				w.byPlace[at] += one.gpus * job.Tasks()
			}
		}
	}
	return w
}
