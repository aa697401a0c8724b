package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/epplan/epplan/internal/store/record"
)

const insertHistoryRow = `
INSERT INTO history (cluster, job_id, submitted_us, started_us, ended_us, user, account, partition, qos, name,
	gpus, cpus, nodes, gpu_model, limit_s, state, exit_code, energy_j, utilisation, received_us)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)
ON CONFLICT (cluster, submitted_us, job_id) DO NOTHING`

// AddHistory stores jobs of a log, all of them or, with an error, none, and
// tells how many weren't there yet. Those that were stay as they are.
func (l *Learning) AddHistory(ctx context.Context, jobs []record.HistoryJob) (added int, err error) {
	rows := make([][]any, len(jobs))
	received := l.db.now().UnixMicro()
	for i := range jobs {
		p, err := jobs[i].Canonical()
		if err != nil {
			return 0, err
		}
		rows[i] = historyRow(&p, received)
	}
	added, err = write(ctx, l.db, func(ctx context.Context, conn *sql.Conn) (int, error) {
		return insertHistory(ctx, conn, rows)
	})
	if err != nil {
		return 0, fmt.Errorf("store %d past jobs: %w", len(jobs), err)
	}
	return added, nil
}

func insertHistory(ctx context.Context, conn *sql.Conn, rows [][]any) (added int, err error) {
	insert, err := conn.PrepareContext(ctx, insertHistoryRow)
	if err != nil {
		return 0, err
	}
	defer func() { _ = insert.Close() }()
	for _, row := range rows {
		result, err := insert.ExecContext(ctx, row...)
		if err != nil {
			return 0, err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return 0, err
		}
		added += int(n)
	}
	return added, nil
}

// historyRow returns the values for insertHistoryRow.
func historyRow(p *record.HistoryJob, received int64) []any {
	name := p.Name
	if name == nil {
		name = []byte{}
	}
	return []any{
		p.Cluster, p.JobID, p.Submitted.UnixMicro(), nullableMicros(p.Started), nullableMicros(p.Ended),
		p.User, p.Account, p.Partition, p.QOS, name,
		nullableNumber(p.GPUs), nullableNumber(p.CPUs), nullableNumber(p.Nodes), p.GPUModel,
		limitColumn(p.Limit), p.State, nullableNumber(p.ExitCode), nullableNumber(p.EnergyJ),
		nullableNumber(p.Utilisation), received,
	}
}

// HistoryFilter says which jobs of imported logs to read. Empty fields don't
// restrict.
type HistoryFilter struct {
	Cluster string
	User    string
	From    time.Time // submitted then or later
	// After is the job before the ones to read: its submit time and its id.
	After   time.Time
	AfterID string
	Limit   int // how many at most; 0: all
	Latest  int // about so many, those submitted last; 0: all
}

// VisitHistory visits the jobs of imported logs that pass a filter, in the order of
// their submissions, until visit returns an error, which comes back. The jobs are
// those of one moment. What visit does must not wait for a write to the store: the
// log of the database can't be cleared meanwhile.
func (l *Learning) VisitHistory(
	ctx context.Context, f *HistoryFilter, visit func(record.HistoryJob) error,
) error {
	query := `
SELECT cluster, job_id, submitted_us, started_us, ended_us, user, account, partition, qos, name,
	gpus, cpus, nodes, gpu_model, limit_s, state, exit_code, energy_j, utilisation
FROM history WHERE cluster = ?`
	args := []any{f.Cluster}
	restrict := func(given bool, condition string, values ...any) {
		if given {
			query, args = query+condition, append(args, values...)
		}
	}
	restrict(!f.From.IsZero(), " AND submitted_us >= ?", f.From.UnixMicro())
	restrict(!f.After.IsZero(), " AND (submitted_us, job_id) > (?, ?)", f.After.UnixMicro(), f.AfterID)
	restrict(f.User != "", " AND user = ?", f.User)
	restrict(f.Latest > 0, ` AND submitted_us >= COALESCE((SELECT submitted_us FROM history WHERE cluster = ?
	ORDER BY submitted_us DESC LIMIT 1 OFFSET ?), 0)`, f.Cluster, f.Latest-1)
	query += " ORDER BY submitted_us, job_id"
	restrict(f.Limit > 0, " LIMIT ?", f.Limit)
	rows, err := l.db.read.QueryContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("read history: %w", typedError(err))
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		p, err := scanHistoryJob(rows)
		if err != nil {
			return fmt.Errorf("read history: %w", typedError(err))
		}
		if err := visit(p); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read history: %w", typedError(err))
	}
	return nil
}

// scanHistoryJob reads a row of History.
func scanHistoryJob(row scanner) (record.HistoryJob, error) {
	var p record.HistoryJob
	var submitted, started, ended sql.NullInt64
	var gpus, cpus, nodes, limit, exit, energy, utilisation sql.NullFloat64
	err := row.Scan(&p.Cluster, &p.JobID, &submitted, &started, &ended, &p.User, &p.Account, &p.Partition,
		&p.QOS, &p.Name,
		&gpus, &cpus, &nodes, &p.GPUModel, &limit, &p.State, &exit, &energy, &utilisation)
	p.Submitted, p.Started, p.Ended = timeOf(submitted), timeOf(started), timeOf(ended)
	if len(p.Name) == 0 {
		p.Name = nil
	}
	p.GPUs, p.CPUs, p.Nodes, p.ExitCode, p.EnergyJ, p.Utilisation = knownNumber(gpus), knownNumber(cpus),
		knownNumber(nodes), knownNumber(exit), knownNumber(energy), knownNumber(utilisation)
	p.Limit = limitOf(limit)
	return p, err
}
