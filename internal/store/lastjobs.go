package store

import (
	"context"
	"fmt"

	"github.com/epplan/epplan/internal/store/record"
)

// lastJobs looks each workload up in the index: it takes as long as there are
// workloads, however many jobs they have.
const lastJobs = selectJobs + `WHERE seq IN (SELECT (SELECT l.seq FROM jobs AS l INDEXED BY jobs_by_workload
	WHERE l.cluster = ?1 AND l.workload = k.value ORDER BY l.submitted_us DESC, l.seq DESC LIMIT 1) FROM json_each(?2) AS k)`

// LastJobs returns the jobs of workloads that were submitted last, by workload. A
// workload of which no job is kept isn't among them.
func (s *Store) LastJobs(
	ctx context.Context, cluster string, workloads []string,
) (map[string]record.Job, error) {
	keys, err := jsonText(workloads)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.read.QueryContext(ctx, lastJobs, cluster, keys)
	all, err := collect(rows, err, func(row scanner) (j record.Job, err error) {
		_, err = scanJob(row, &j)
		return j, err
	})
	if err != nil {
		return nil, fmt.Errorf("last jobs of workloads: %w", err)
	}
	byWorkload := make(map[string]record.Job, len(all))
	for i := range all {
		byWorkload[all[i].Workload] = all[i]
	}
	return byWorkload, nil
}
