package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/epplan/epplan/internal/store/record"
)

// DecisionPage is a part of a list of decisions on runs, the latest first.
type DecisionPage struct {
	Decisions []record.JobDecision
	Next      int64 // what to pass as before for the next page, 0 after the last
}

// LastDecisions lists decisions on runs in a mode (empty: any), the latest first,
// at most limit of them, from before a page's Next on (0: from the latest), with
// what is known of their jobs. As with [Store.Jobs], a page may hold fewer though
// there are more.
func (s *Store) LastDecisions(
	ctx context.Context, cluster, mode string, before int64, limit int,
) (DecisionPage, error) {
	if before == 0 {
		if err := s.db.read.QueryRowContext(ctx,
			"SELECT COALESCE(MAX(decision_id), 0) + 1 FROM decisions").Scan(&before); err != nil {
			return DecisionPage{}, fmt.Errorf("list decisions: %w", typedError(err))
		}
	}
	stop := max(1, before-maxRowsScanned)
	rows, err := s.db.read.QueryContext(ctx, lastDecisions, before, stop, cluster, mode, limit)
	var page DecisionPage
	page.Decisions, err = collect(rows, err, scanJobDecision)
	if err != nil {
		return DecisionPage{}, fmt.Errorf("list decisions: %w", err)
	}
	switch n := len(page.Decisions); {
	case n == limit && n > 0:
		page.Next = page.Decisions[n-1].ID
	case stop > 1:
		page.Next = stop
	}
	return page, nil
}

// LastDecisionsOf lists the latest decisions on runs of the jobs that a user
// submitted last, at most so many of both.
func (s *Store) LastDecisionsOf(
	ctx context.Context, cluster, user, mode string, most int,
) ([]record.JobDecision, error) {
	rows, err := s.db.read.QueryContext(ctx, lastDecisionsOf, cluster, user, mode, most)
	return list(rows, err, scanJobDecision, "list decisions of %s", user)
}

const selectJobDecisions = `
SELECT d.decision_id, d.cluster, d.job_id, d.node, d.token, d.run_id, d.workload, d.gpu_model, d.core_mhz,
	d.mem_mhz, d.time_s, d.time_low_s, d.time_high_s, d.power_w, d.power_low_w, d.power_high_w,
	d.energy_j, d.energy_low_j, d.energy_high_j, d.reason, d.mode, d.config_version, d.model_version,
	d.arm, d.created_us, d.default_energy_j, d.hold_out, d.constant_arm, d.rung, d.cap_w, d.power_profile,
	COALESCE(j.name, ''), COALESCE(j.user, ''), COALESCE(j.partition, '')`

const (
	lastDecisions = selectJobDecisions + `
FROM (SELECT * FROM decisions NOT INDEXED WHERE decision_id < ?1 AND decision_id >= ?2 AND cluster = ?3 AND job_id != 0 AND (?4 = '' OR mode = ?4)
	ORDER BY decision_id DESC LIMIT ?5) AS d
LEFT JOIN jobs AS j ON j.seq = (SELECT b.seq FROM jobs AS b
	WHERE b.cluster = d.cluster AND b.job_id = d.job_id AND b.submitted_us <= d.created_us
		ORDER BY b.submitted_us DESC LIMIT 1)
ORDER BY d.decision_id DESC`

	lastDecisionsOf = selectJobDecisions + `
FROM (SELECT *, (SELECT COALESCE(MIN(n.submitted_us), 1 << 62) FROM jobs AS n
		WHERE n.cluster = jobs.cluster AND n.job_id = jobs.job_id
			AND n.submitted_us > jobs.submitted_us) AS until_us
	FROM jobs INDEXED BY jobs_by_user WHERE cluster = ?1 AND user = ?2
		ORDER BY submitted_us DESC, seq DESC LIMIT ?4) AS j
CROSS JOIN decisions AS d INDEXED BY decisions_by_job ON d.cluster = j.cluster AND d.job_id = j.job_id
	AND d.job_id != 0
	AND d.created_us >= j.submitted_us AND d.created_us < j.until_us AND (?3 = '' OR d.mode = ?3)
ORDER BY d.decision_id DESC LIMIT ?4`

	runDays = `
SELECT day, exit_state, arm, runs, time_s, gpu_runs, gpu_energy_j, node_runs, node_energy_j
FROM run_days WHERE cluster = ? AND day >= ? ORDER BY day, exit_state, arm`

	runReadings = `
SELECT node, run_id, readings FROM outcomes INDEXED BY outcomes_by_job JOIN outcome_details USING (outcome_id)
WHERE cluster = ? AND job_id = ? AND readings IS NOT NULL`
)

// extendedRow is a row with further columns behind those that are asked for.
type extendedRow struct {
	scanner
	into []any
}

// Scan reads the columns that are asked for, and the further ones.
func (w extendedRow) Scan(into ...any) error { return w.scanner.Scan(append(into, w.into...)...) }

// scanJobDecision reads a row of selectJobDecisions.
func scanJobDecision(row scanner) (d record.JobDecision, err error) {
	d.Decision, err = scanDecision(extendedRow{row, []any{&d.Name, &d.User, &d.Partition}})
	return d, err
}

// RunDays returns the sums of runs that ended on a day or later, by day, exit state
// and arm, in that order. They outlive pruning.
func (s *Store) RunDays(ctx context.Context, cluster string, from time.Time) ([]record.RunDay, error) {
	rows, err := s.db.read.QueryContext(ctx, runDays, cluster, from.UnixMicro()/microsPerDay)
	return list(rows, err, func(row scanner) (record.RunDay, error) {
		var d record.RunDay
		var day int64
		err := row.Scan(&day, &d.ExitState, &d.Arm, &d.Runs, &d.TimeS, &d.GPURuns, &d.GPUEnergyJ, &d.NodeRuns,
			&d.NodeEnergyJ)
		d.Day = time.UnixMicro(day * microsPerDay).UTC()
		if !arePlausible(d.TimeS) {
			d.TimeS = 0
		}
		if !arePlausible(d.GPUEnergyJ) {
			d.GPURuns, d.GPUEnergyJ = 0, 0
		}
		if !arePlausible(d.NodeEnergyJ) {
			d.NodeRuns, d.NodeEnergyJ = 0, 0
		}
		return d, err
	}, "sums of days")
}

// Readings are power and core clock over the runs under a job id, by run; runs
// without any aren't in it.
func (s *Store) Readings(
	ctx context.Context, cluster string, jobID int64,
) (map[record.RunKey]record.Readings, error) {
	type one struct {
		run record.RunKey
		of  record.Readings
	}
	rows, err := s.db.read.QueryContext(ctx, runReadings, cluster, jobID)
	all, err := collect(rows, err, func(row scanner) (r one, err error) {
		var blob sql.RawBytes
		if err := row.Scan(&r.run.Node, &r.run.RunID, &blob); err != nil {
			return r, err
		}
		if r.of, err = record.DecodeReadings(blob); err != nil {
			return r, fmt.Errorf("run %s: %w", r.run.RunID, err)
		}
		return r, nil
	})
	if err != nil {
		return nil, fmt.Errorf("readings of job %d: %w", jobID, err)
	}
	byRun := make(map[record.RunKey]record.Readings, len(all))
	for _, r := range all {
		byRun[r.run] = r.of
	}
	return byRun, nil
}
