package jobs

import (
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm"
)

// QueueCounts counts the GPU jobs of the last answer, once for each: every task of
// an array is one.
func (t *Tracker) QueueCounts() epdapi.QueueCounts {
	t.countsMu.Lock()
	defer t.countsMu.Unlock()
	at := t.jobs.status().At
	if t.counts.States != nil && t.counts.At.Equal(at) {
		return t.counts
	}
	q := epdapi.QueueCounts{At: at, States: make(map[string]int)}
	t.table.mu.RLock()
	for _, h := range t.table.byID {
		if job := h.job; job.GPUs > 0 || job.SharesGPUs() {
			state, tasks := job.state.state(), job.Tasks()
			q.States[string(state)] += tasks
			switch state {
			case slurm.Pending:
				q.Pending += tasks
			case slurm.Running:
				q.Running += tasks
			default:
				q.Other += tasks
			}
		}
	}
	t.table.mu.RUnlock()
	t.counts = q
	return q
}
