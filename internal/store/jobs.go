package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// PutJob stores what is known of a job, or brings it up to date. A token that
// is known stays when the new record has none. Lists show its state until all its
// runs are over.
func (s *Store) PutJob(ctx context.Context, j *record.Job) error {
	if j.Cluster == "" || j.ID <= 0 || j.Submitted.IsZero() {
		return fmt.Errorf("%w: a job needs cluster, id and submit time", record.ErrInvalid)
	}
	name := j.Name[:min(len(j.Name), record.MaxText)]
	if name == nil {
		name = []byte{}
	}
	return s.db.do(ctx, func(ctx context.Context, conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, `
INSERT INTO jobs (cluster, job_id, submitted_us, token, user, account, partition, name, script_hash, workload,
	limit_s, nodes, gpus, state, shown, array_job, array_task)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?14, ?15, ?16)
ON CONFLICT (cluster, job_id, submitted_us) DO UPDATE SET
	token = CASE excluded.token WHEN '' THEN token ELSE excluded.token END,
	user = excluded.user, account = excluded.account, partition = excluded.partition, name = excluded.name,
	script_hash = excluded.script_hash, workload = excluded.workload, limit_s = excluded.limit_s,
	nodes = excluded.nodes, gpus = excluded.gpus, state = excluded.state, shown = excluded.shown,
	array_task = CASE excluded.array_job WHEN 0 THEN array_task ELSE excluded.array_task END,
	array_job = CASE excluded.array_job WHEN 0 THEN array_job ELSE excluded.array_job END`,
			record.CleanText(j.Cluster), j.ID, record.StoredTime(j.Submitted).UnixMicro(),
			record.CleanText(j.Token),
			record.CleanText(j.User), record.CleanText(j.Account), record.CleanText(j.Partition), name,
			record.CleanText(j.ScriptHash), record.CleanText(j.Workload), limitColumn(j.Limit), j.Nodes,
			j.GPUs, record.CleanText(j.State), j.ArrayJob, j.ArrayTask)
		if err != nil {
			return fmt.Errorf("store job %d: %w", j.ID, err)
		}
		return nil
	})
}

const selectJobs = `
SELECT seq, cluster, job_id, submitted_us, token, user, account, partition, name, script_hash, workload,
	limit_s,
	nodes, gpus, state, array_job, array_task
FROM jobs `

// scanJob reads a row of selectJobs and returns its key.
func scanJob(row scanner, j *record.Job) (seq int64, err error) {
	var submitted sql.NullInt64
	var limit sql.NullFloat64
	err = row.Scan(&seq, &j.Cluster, &j.ID, &submitted, &j.Token, &j.User, &j.Account, &j.Partition, &j.Name,
		&j.ScriptHash, &j.Workload, &limit, &j.Nodes, &j.GPUs, &j.State, &j.ArrayJob, &j.ArrayTask)
	j.Submitted = timeOf(submitted)
	j.Limit = limitOf(limit)
	return seq, err
}

// limitColumn returns a time limit as it is stored: seconds, +Inf for unlimited, NULL where
// none is known.
func limitColumn(l live.Limit) any {
	if !l.IsSet() {
		return nil
	}
	return l.Seconds()
}

// limitOf returns a stored time limit.
func limitOf(s sql.NullFloat64) live.Limit {
	if !s.Valid {
		return live.Limit{}
	}
	return live.LimitOfSeconds(s.Float64)
}

// lookupError is the error of a search for one record.
func lookupError(err error, format string, args ...any) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf(format+": %w", append(args, ErrNotFound)...)
	default:
		return fmt.Errorf(format+": %w", append(args, typedError(err))...)
	}
}

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
