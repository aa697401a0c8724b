package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/epplan/epplan/internal/store/record"
)

// Without a known submit time an outcome belongs to no job that can be told.
const selectEnded = `
SELECT j.cluster, j.job_id, j.submitted_us, j.token, j.user, j.account, j.partition, j.name, j.script_hash,
	j.workload,
	j.limit_s, j.nodes, j.gpus, j.state,
	MAX(o.ended_us), MAX(o.time_s), CASE WHEN COUNT(o.gpu_energy_j) = COUNT(*) THEN SUM(o.gpu_energy_j) END,
	MIN(o.exit_state = 'COMPLETED'), COUNT(*),
	COALESCE(d.rung, ''), d.time_s, d.time_low_s, d.time_high_s, d.power_w, d.power_low_w, d.power_high_w,
	d.energy_j, d.energy_low_j, d.energy_high_j
FROM (SELECT * FROM jobs WHERE cluster = ?1 %s ORDER BY seq DESC LIMIT ?2) AS j
JOIN outcomes AS o ON o.cluster = j.cluster AND o.job_id = j.job_id AND o.submitted_us = j.submitted_us
	AND o.unmatched = 0 AND o.ended_us IS NOT NULL
LEFT JOIN decisions AS d ON d.decision_id = (SELECT MAX(decision_id) FROM decisions AS s
	WHERE s.cluster = j.cluster AND s.token = j.token AND s.token != '')
GROUP BY j.seq ORDER BY j.seq`

// EndedJobs lists the jobs among the latest ones of a cluster that ended, the oldest
// first.
func (l *Learning) EndedJobs(ctx context.Context, cluster string, latest int) ([]record.EndedJob, error) {
	rows, err := l.db.read.QueryContext(ctx, fmt.Sprintf(selectEnded, ""), cluster, latest)
	return list(rows, err, scanEnded, "list ended jobs")
}

// EndedJob returns a job that ended, or ErrNotFound.
func (l *Learning) EndedJob(
	ctx context.Context, cluster string, id int64, submitted time.Time,
) (record.EndedJob, error) {
	e, err := scanEnded(l.db.read.QueryRowContext(ctx,
		fmt.Sprintf(selectEnded, "AND job_id = ?3 AND submitted_us = ?4"),
		cluster, 1, id, record.Micro(submitted).UnixMicro()))
	return e, lookupError(err, "ended job %d", id)
}

// scanEnded reads a row of selectEnded.
func scanEnded(row scanner) (record.EndedJob, error) {
	var e record.EndedJob
	var submitted, ended sql.NullInt64
	var limit, took, energy sql.NullFloat64
	var numbers [9]sql.NullFloat64
	err := row.Scan(&e.Cluster, &e.ID, &submitted, &e.Token, &e.User, &e.Account, &e.Partition, &e.Name,
		&e.ScriptHash, &e.Workload,
		&limit, &e.Nodes, &e.GPUs, &e.State, &ended, &took, &energy, &e.Completed, &e.Runs, &e.Rung,
		&numbers[0], &numbers[1], &numbers[2], &numbers[3], &numbers[4], &numbers[5], &numbers[6],
		&numbers[7], &numbers[8])
	e.Submitted, e.Ended = timeOf(submitted), timeOf(ended)
	e.Limit = limitOf(limit)
	e.TimeS, e.EnergyJ = knownNumber(took), knownNumber(energy)
	scanIntervals(numbers[:], &e.PredictedS, &e.PredictedPowerW, &e.PredictedJ)
	return e, err
}
