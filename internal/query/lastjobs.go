package query

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// lastJobsFor is for how long the last jobs of workloads are believed: lists of
// workloads are looked at again and again, and their names hardly change.
const lastJobsFor = 30 * time.Second

// lastJobs are the last jobs of the workloads that were asked for lately.
type lastJobs struct {
	options *Options

	mu         sync.Mutex
	since      time.Time
	byWorkload map[string]epdapi.LastJob // the zero one where no job is kept
}

// known returns those of some workloads that are known by now, and the workloads that
// must be looked up.
func (l *lastJobs) known(workloads []string, now time.Time) (map[string]epdapi.LastJob, []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if age := now.Sub(l.since); l.byWorkload == nil || age > lastJobsFor || age < 0 {
		l.since, l.byWorkload = now, make(map[string]epdapi.LastJob)
	}
	found, missing := make(map[string]epdapi.LastJob, len(workloads)), []string(nil)
	for _, w := range workloads {
		if job, ok := l.byWorkload[w]; ok {
			found[w] = job
		} else {
			missing = append(missing, w)
		}
	}
	return found, missing
}

// keep remembers what was looked up.
func (l *lastJobs) keep(workloads []string, found map[string]epdapi.LastJob) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range workloads {
		l.byWorkload[w] = found[w]
	}
}

// of returns the jobs that people know workloads by. Where the records don't
// answer in time there are none: lists are shown all the same.
func (l *lastJobs) of(ctx context.Context, workloads []string) map[string]epdapi.LastJob {
	found, missing := l.known(workloads, l.options.Clock())
	if len(missing) == 0 {
		return found
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	jobs, err := l.options.Records.Jobs.LastJobs(ctx, l.options.Cluster, missing)
	if err != nil {
		l.options.Log.Warn("workloads are shown without their jobs' names", "error", err)
		return found
	}
	for w := range jobs {
		job := jobs[w]
		found[w] = lastJob(&job)
	}
	l.keep(missing, found)
	return found
}

// lastJob returns a job as a workload is known by it.
func lastJob(j *record.Job) epdapi.LastJob {
	return epdapi.LastJob{
		ID: j.ID, Name: slurm.ValidUTF8(string(j.Name)), User: j.User, Partition: j.Partition,
	}
}

// nameWorkloads puts into a list what people know its workloads by.
func nameWorkloads[T any](
	ctx context.Context, l *lastJobs, all []T, of func(*T) (workload string, last *epdapi.LastJob),
) {
	workloads := make([]string, len(all))
	for i := range all {
		workloads[i], _ = of(&all[i])
	}
	found := l.of(ctx, workloads)
	for i := range all {
		w, last := of(&all[i])
		*last = found[w]
	}
}

// withNames puts into standings what people know their workloads by.
func (l *lastJobs) withNames(ctx context.Context, all []epdapi.ModelStatus) []epdapi.ModelStatus {
	nameWorkloads(ctx, l, all, func(m *epdapi.ModelStatus) (string, *epdapi.LastJob) {
		return m.Workload, &m.LastJob
	})
	return all
}
