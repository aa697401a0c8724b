package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/store/record"
)

// PutJob stores what is known of a job, or brings it up to date. A token that
// is known stays when the new record has none.
func (s *Store) PutJob(ctx context.Context, j *record.Job) error {
	if j.Cluster == "" || j.ID <= 0 || j.Submitted.IsZero() {
		return fmt.Errorf("%w: a job needs cluster, id and submit time", record.ErrInvalid)
	}
	var limit any
	if j.Limit > 0 {
		limit = j.Limit.Seconds()
	}
	name := j.Name[:min(len(j.Name), record.MaxText)]
	if name == nil {
		name = []byte{}
	}
	return s.do(ctx, func(ctx context.Context, conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, `
INSERT INTO jobs (cluster, job_id, submitted_us, token, user, account, partition, name, script_hash, workload,
	limit_s, nodes, gpus, state)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (cluster, job_id, submitted_us) DO UPDATE SET
	token = CASE excluded.token WHEN '' THEN token ELSE excluded.token END,
	user = excluded.user, account = excluded.account, partition = excluded.partition, name = excluded.name,
	script_hash = excluded.script_hash, workload = excluded.workload, limit_s = excluded.limit_s,
	nodes = excluded.nodes, gpus = excluded.gpus, state = excluded.state`,
			record.Text(j.Cluster), j.ID, record.Micro(j.Submitted).UnixMicro(), record.Text(j.Token),
			record.Text(j.User), record.Text(j.Account), record.Text(j.Partition), name,
			record.Text(j.ScriptHash), record.Text(j.Workload), limit, j.Nodes, j.GPUs, record.Text(j.State))
		if err != nil {
			return fmt.Errorf("store job %d: %w", j.ID, err)
		}
		return nil
	})
}

// JobFilter says which jobs to list. Empty fields don't restrict.
type JobFilter struct {
	Cluster   string
	ID        int64
	User      string
	Account   string
	Partition string
	Workload  string
	State     string
	From      time.Time // submitted then or later
	Until     time.Time // submitted before
}

// JobPage is a part of a list of jobs, newest first.
type JobPage struct {
	Jobs []record.Job
	Next int64 // what to pass as before for the next page, 0 after the last
}

const selectJobs = `
SELECT seq, cluster, job_id, submitted_us, token, user, account, partition, name, script_hash, workload, limit_s,
	nodes, gpus, state
FROM jobs `

// Jobs lists jobs that pass a filter, the last that were heard of first, at
// most limit of them, from before a page's Next on (0: from the newest). Pages
// follow a key, so that jobs that come meanwhile move nothing.
func (s *Store) Jobs(ctx context.Context, filter *JobFilter, before int64, limit int) (JobPage, error) {
	var where []string
	var args []any
	restrict := func(condition string, value any, given bool) {
		if given {
			where, args = append(where, condition), append(args, value)
		}
	}
	restrict("cluster = ?", filter.Cluster, filter.Cluster != "")
	restrict("job_id = ?", filter.ID, filter.ID != 0)
	restrict("user = ?", filter.User, filter.User != "")
	restrict("account = ?", filter.Account, filter.Account != "")
	restrict("partition = ?", filter.Partition, filter.Partition != "")
	restrict("workload = ?", filter.Workload, filter.Workload != "")
	restrict("state = ?", filter.State, filter.State != "")
	restrict("submitted_us >= ?", filter.From.UnixMicro(), !filter.From.IsZero())
	restrict("submitted_us < ?", filter.Until.UnixMicro(), !filter.Until.IsZero())
	restrict("seq < ?", before, before != 0)
	query := selectJobs
	if len(where) > 0 {
		query += "WHERE " + strings.Join(where, " AND ")
	}
	rows, err := s.read.QueryContext(ctx, query+" ORDER BY seq DESC LIMIT ?", append(args, limit)...)
	var page JobPage
	var last int64
	page.Jobs, err = collect(rows, err, func(row scanner) (j record.Job, err error) {
		last, err = scanJob(row, &j)
		return j, err
	})
	if err != nil {
		return JobPage{}, fmt.Errorf("list jobs: %w", err)
	}
	if len(page.Jobs) == limit {
		page.Next = last
	}
	return page, nil
}

// Job is the job that was submitted last under an id, or ErrNotFound.
func (s *Store) Job(ctx context.Context, cluster string, id int64) (record.Job, error) {
	var j record.Job
	_, err := scanJob(s.read.QueryRowContext(ctx, selectJobs+
		"WHERE cluster = ? AND job_id = ? ORDER BY submitted_us DESC LIMIT 1", cluster, id), &j)
	return j, lookup(err, "job %d", id)
}

// scanJob reads a row of selectJobs and returns its key.
func scanJob(row scanner, j *record.Job) (seq int64, err error) {
	var submitted sql.NullInt64
	var limit sql.NullFloat64
	err = row.Scan(&seq, &j.Cluster, &j.ID, &submitted, &j.Token, &j.User, &j.Account, &j.Partition, &j.Name,
		&j.ScriptHash, &j.Workload, &limit, &j.Nodes, &j.GPUs, &j.State)
	j.Submitted = timeOf(submitted)
	j.Limit = time.Duration(limit.Float64 * float64(time.Second))
	return seq, err
}

// lookup is the error of a search for one record.
func lookup(err error, format string, args ...any) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf(format+": %w", append(args, ErrNotFound)...)
	default:
		return fmt.Errorf(format+": %w", append(args, typed(err))...)
	}
}
