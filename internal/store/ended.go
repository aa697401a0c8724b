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
		cluster, 1, id, record.StoredTime(submitted).UnixMicro()))
	return e, lookupError(err, "ended job %d", id)
}

// selectEnergies reads the runs of cluster ?1 that ended from ?2 on, by their end.
var selectEnergies = `
SELECT COALESCE(o.started_us, o.ended_us - MIN(o.time_s, 1e9) * 1e6), o.ended_us, o.arm, o.gpu_energy_j,
	COALESCE(d.default_energy_j, r.default_energy_j)
FROM outcomes AS o INDEXED BY outcomes_by_end
	LEFT JOIN decisions AS d ON d.decision_id = o.decision_id AND ` + isPredicted + `
	LEFT JOIN old_runs AS r ON r.outcome_id = o.outcome_id AND ` + isPredicted + `
WHERE o.cluster = ?1 AND o.unmatched = 0 AND COALESCE(o.ended_us, o.received_us) >= ?2
	AND COALESCE(o.started_us, o.ended_us - o.time_s * 1e6) < o.ended_us
	AND o.gpu_energy_j >= 0 AND o.gpu_energy_j < 1e15
ORDER BY COALESCE(o.ended_us, o.received_us)`

// RunEnergies returns the runs that ended since a time, by their end, if their GPU energy and their times are
// known.
func (l *Learning) RunEnergies(
	ctx context.Context, cluster string, since time.Time,
) ([]record.RunEnergy, error) {
	rows, err := l.db.read.QueryContext(ctx, selectEnergies, cluster, since.UnixMicro())
	return list(rows, err, func(row scanner) (record.RunEnergy, error) {
		var r record.RunEnergy
		var started float64
		var ended int64
		var predicted sql.NullFloat64
		err := row.Scan(&started, &ended, &r.Arm, &r.GPUJ, &predicted)
		r.Started, r.Ended = time.UnixMicro(int64(started)), time.UnixMicro(ended)
		if arePlausible(predicted.Float64) {
			r.DefaultJ = knownNumber(predicted)
		}
		return r, err
	}, "energies of runs")
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
