package control

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unique"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/pause"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/slurm"
)

// queuedGPUs is how many GPUs jobs wait for by GPU that they could have: so many wait a second longer for
// each second that a job holds a GPU. It is worked out in the background, and only where waiting has a
// price.
type queuedGPUs struct {
	last atomic.Pointer[waitingJobs]
}

// waitingJobs are the jobs that waited for GPUs at some moment.
type waitingJobs struct {
	byPlace *planner.Backlog
	places  []waitPlace
	placeOf map[string]int           // by node: its place
	counted map[slurm.JobID]*waitJob // jobs that are in it, which may have started since
}

// waitPlace is what decides who may have the GPUs of a node.
type waitPlace struct{ partitions, gpuModel string }

type waitJob struct {
	partitions []string
	gpuModel   string  // empty: any
	here       []bool  // by place: it could have its GPUs
	backlog    float64 // one task's GPUs, by GPU that it could have
}

// mayHave reports whether a job could have GPUs of a place.
func (j *waitJob) mayHave(at *waitPlace) bool {
	if j.gpuModel != "" && j.gpuModel != at.gpuModel {
		return false
	}
	return slices.ContainsFunc(strings.Split(at.partitions, ","), func(name string) bool {
		return slices.Contains(j.partitions, name)
	})
}

// Backlog returns how many GPUs jobs other than one wait for that could have those of a node, by GPU that
// they could have.
func (w *queuedGPUs) Backlog(job slurm.JobID, node string) float64 {
	now := w.last.Load()
	if now == nil {
		return 0
	}
	at, known := now.placeOf[node]
	if !known {
		return 0
	}
	backlog := now.byPlace.By[at]
	if own, counted := now.counted[job]; counted && own.here[at] {
		backlog -= own.backlog
	}
	return backlog
}

// waitingEvery is how often who waits is worked out.
const waitingEvery = 10 * time.Second

// trackWaiting keeps up with who waits, until the context ends.
func (c *Controller) trackWaiting(ctx context.Context) {
	for rest := time.Duration(0); pause.For(ctx, rest) == nil; {
		s := c.settings.Load()
		if s.Goal.WaitWeight > 0 {
			c.waiting.last.Store(c.findWaiting())
		} else {
			c.waiting.last.Store(nil)
		}
		rest = s.Live.RenewalWithin(waitingEvery)
	}
}

// findWaiting returns the jobs that could start but for GPUs, or for their turn to have them.
func (c *Controller) findWaiting() *waitingJobs {
	names := c.Foresight.gpuNames(c.settings.Load().Profiles)
	w := &waitingJobs{placeOf: make(map[string]int), counted: make(map[slurm.JobID]*waitJob)}
	var gpus []int // by place
	nodes := c.Jobs.Nodes()
	for i := range nodes {
		n := &nodes[i]
		count := n.GPUCount()
		if count == 0 {
			continue
		}
		partitions := slices.Sorted(slices.Values(n.Partitions))
		at := waitPlace{strings.Join(partitions, ","), names.NodeKind(n).GPUModel}
		place := slices.Index(w.places, at)
		if place < 0 {
			place = len(w.places)
			w.places, gpus = append(w.places, at), append(gpus, 0)
		}
		w.placeOf[n.Name] = place
		gpus[place] += count
	}
	w.byPlace = planner.NewBacklog(gpus)
	kinds := make(map[waitKey]*waitJob) // of very many jobs there are few
	for id, job := range c.Jobs.All() {
		if job.GPUs == 0 || job.GPUs > epdapi.MaxGPUs || job.State() != slurm.Pending || !job.WaitsForTurn() {
			continue // it doesn't wait, or is held, not due, or kept back by a limit, whatever is free
		}
		key := waitKey{job.Partition, job.TRESPerNode(), job.GPUs}
		one := kinds[key]
		if one == nil {
			one = &waitJob{
				partitions: strings.Split(job.Partition.Value(), ","),
				gpuModel:   names.Wanted(&slurm.Job{TRESPerNode: key.perNode}),
			}
			for place := range w.places {
				one.here = append(one.here, one.mayHave(&w.places[place]))
			}
			kinds[key] = one
		}
		could := w.byPlace.Add(float64(job.Tasks()), func(place int) float64 {
			if !one.here[place] {
				return 0
			}
			return float64(job.GPUs)
		})
		if could > 0 {
			one.backlog = float64(job.GPUs) / float64(could)
			w.counted[id] = one
		}
	}
	return w
}

// waitKey is what of a job decides for which GPUs it waits, and how many.
type waitKey struct {
	partition unique.Handle[string]
	perNode   string
	gpus      uint32
}
