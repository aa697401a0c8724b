package nodes

import (
	"slices"
	"time"

	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm"
)

// Bounds of what is kept of what GPUs did lately.
const (
	// samplesKept is how many samples are kept of a GPU: those of ten minutes where
	// agents report every 15 s.
	samplesKept   = 40
	maxRecentGPUs = 50_000 // GPUs
)

// lately is what a GPU did since the jobs on it are the same: a ring of samples.
// A sample takes a constant time, and a GPU half a kilobyte.
type lately struct {
	uuid  string
	jobs  []slurm.JobID // on it, in order
	at    [samplesKept]int64
	use   [samplesKept]float32
	count int // of samples since then; the last ones are kept
}

func (l *lately) add(at time.Time, use float64) {
	place := l.count % samplesKept
	l.at[place], l.use[place] = at.UnixNano(), float32(use)
	l.count++
}

// samples returns those that are kept, the oldest first.
func (l *lately) samples() []colocate.UseSample {
	list := make([]colocate.UseSample, 0, min(l.count, samplesKept))
	for i := max(0, l.count-samplesKept); i < l.count; i++ {
		list = append(list, colocate.UseSample{
			At: time.Unix(0, l.at[i%samplesKept]), Use: float64(l.use[i%samplesKept]),
		})
	}
	return list
}

// jobsOn returns the jobs on each GPU of a report that has runs, in order, without
// GPUs of which none has a part only.
func jobsOn(r *epdapi.NodeReport, shares func(slurm.JobID) bool) map[string][]slurm.JobID {
	on := make(map[string][]slurm.JobID)
	shared := make(map[string]bool)
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.Ended {
			continue
		}
		part := shares(slurm.JobID(run.Job))
		for _, uuid := range run.GPUs {
			on[uuid] = append(on[uuid], slurm.JobID(run.Job))
			shared[uuid] = shared[uuid] || part
		}
	}
	for uuid, list := range on {
		if !shared[uuid] {
			delete(on, uuid)
			continue
		}
		slices.Sort(list)
		on[uuid] = slices.Compact(list)
	}
	return on
}

// follow adds what a report says of GPUs to what they did before. One on which
// other jobs run now begins anew. The caller holds r.mu.
func (r *Reports) follow(h *Report, on map[string][]slurm.JobID) {
	before := r.lately[h.Message.Node]
	now := before[:0:0]
	for i := range h.Message.GPUs {
		g := &h.Message.GPUs[i]
		jobs := on[g.UUID]
		if len(jobs) == 0 {
			continue
		}
		l := &lately{uuid: g.UUID, jobs: jobs}
		k := slices.IndexFunc(before, func(b *lately) bool {
			return b.uuid == g.UUID && slices.Equal(b.jobs, jobs)
		})
		switch {
		case k >= 0:
			l = before[k]
		case r.followed-len(before)+len(now) >= maxRecentGPUs:
			continue
		}
		if use, ok := g.Utilisation.Get(); ok && g.Read && use >= 0 && use <= 1 {
			l.add(h.Received, use)
		}
		now = append(now, l)
	}
	r.followed += len(now) - len(before)
	if len(now) == 0 {
		delete(r.lately, h.Message.Node)
		return
	}
	r.lately[h.Message.Node] = now
}

// forgetUnknown forgets what the GPUs of nodes did that aren't known any more. The caller
// holds r.mu.
func (r *Reports) forgetUnknown() {
	for node, list := range r.lately {
		if r.byNode[node] == nil {
			r.followed -= len(list)
			delete(r.lately, node)
		}
	}
}

// RecentSamples returns what the GPU of a node on which just these jobs run did lately; none
// where there is none, or its agent has fallen silent.
func (r *Reports) RecentSamples(node string, jobs []slurm.JobID, now time.Time) []colocate.UseSample {
	jobs = slices.Sorted(slices.Values(jobs))
	r.mu.RLock()
	defer r.mu.RUnlock()
	h := r.byNode[node]
	if h == nil || now.Sub(h.Received) > FreshAge(len(r.byNode)) {
		return nil
	}
	for _, l := range r.lately[node] {
		if slices.Equal(l.jobs, jobs) {
			return l.samples()
		}
	}
	return nil
}
