package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
)

// PutDecision stores a decision and returns its id. Decisions are never
// changed: the last one for a job on a node, or for a token, counts.
func (s *Store) PutDecision(ctx context.Context, d *record.Decision) (int64, error) {
	if d.Cluster == "" || (d.JobID <= 0 && d.Token == "") || d.Created.IsZero() {
		return 0, fmt.Errorf("%w: a decision needs cluster, time, and job id or token", record.ErrInvalid)
	}
	args := []any{
		record.CleanText(d.Cluster), d.JobID, record.CleanText(d.Node), record.CleanText(d.Token),
		record.CleanText(d.RunID),
		record.CleanText(d.Workload), record.CleanText(d.GPUModel), float64(d.Setting.Core),
		float64(d.Setting.Mem),
	}
	for _, i := range []record.Interval{d.TimeS, d.PowerW, d.EnergyJ} {
		args = append(args, nullableNumber(i.Value), nullableNumber(i.Low), nullableNumber(i.High))
	}
	args = append(args, record.CleanText(d.Reason), record.CleanText(d.Mode),
		record.CleanText(d.ConfigVersion), d.ModelVersion,
		record.CleanText(string(d.Arm)), record.StoredTime(d.Created).UnixMicro(), nullableNumber(d.DefaultJ),
		nullableNumber(d.HoldOut), nullableNumber(d.ConstantArm), record.CleanText(d.Rung),
		float64(d.Setting.Cap), profileColumn(d.Setting.Profile))
	id, err := write(ctx, s.db, func(ctx context.Context, conn *sql.Conn) (int64, error) {
		result, err := conn.ExecContext(ctx, `
INSERT INTO decisions (cluster, job_id, node, token, run_id, workload, gpu_model, core_mhz, mem_mhz,
	time_s, time_low_s, time_high_s, power_w, power_low_w, power_high_w, energy_j, energy_low_j, energy_high_j,
	reason, mode, config_version, model_version, arm, created_us, default_energy_j, hold_out, constant_arm, rung,
	cap_w, power_profile)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, args...)
		if err != nil {
			return 0, err
		}
		return result.LastInsertId()
	})
	if err != nil {
		return 0, fmt.Errorf("store decision for job %d, token %q: %w", d.JobID, d.Token, err)
	}
	return id, nil
}

const (
	decisionColumns = `decision_id, cluster, job_id, node, token, run_id, workload, gpu_model, core_mhz, mem_mhz,
	time_s, time_low_s, time_high_s, power_w, power_low_w, power_high_w, energy_j, energy_low_j, energy_high_j,
	reason, mode, config_version, model_version, arm, created_us, default_energy_j, hold_out, constant_arm, rung,
	cap_w, power_profile`
	selectDecisions = "SELECT " + decisionColumns + " FROM decisions "
)

// DecisionByToken returns the last decision under a token, or ErrNotFound.
func (s *Store) DecisionByToken(ctx context.Context, cluster, token string) (record.Decision, error) {
	d, err := scanDecision(s.db.hookRead.QueryRowContext(ctx, selectDecisions+`
WHERE cluster = ? AND token = ? AND token != '' ORDER BY decision_id DESC LIMIT 1`, cluster, token))
	return d, lookupError(err, "decision for token %q", token)
}

// DecisionsOfJob lists the decisions under a job id on all nodes, oldest first.
func (s *Store) DecisionsOfJob(ctx context.Context, cluster string, jobID int64) ([]record.Decision, error) {
	rows, err := s.db.hookRead.QueryContext(ctx, decisionsOfJob, cluster, jobID)
	return list(rows, err, scanDecision, "decisions for job %d", jobID)
}

// oldDecisions are the decisions of runs that aren't kept in detail any more, with the columns
// of selectDecisions, and the outcome's id. How outcomes are found, and joinOldRuns, follow.
const oldDecisions = `
SELECT o.decision_id, o.cluster, o.job_id, o.node, '' AS token, o.run_id, o.workload, o.gpu_model,
	COALESCE(r.decided_core_mhz, o.core_mhz) AS core_mhz, COALESCE(r.decided_mem_mhz, o.mem_mhz) AS mem_mhz,
	r.predicted_s, r.predicted_low_s, r.predicted_high_s, r.predicted_w, r.predicted_low_w, r.predicted_high_w,
	r.predicted_j, r.predicted_low_j, r.predicted_high_j, '` + oldReason + `' AS reason,
	(SELECT text FROM texts WHERE text_id = r.decided_mode) AS mode,
	(SELECT text FROM texts WHERE text_id = r.decided_config) AS config_version, r.decided_model,
	COALESCE(r.decided_arm, o.arm) AS arm, r.decided_us AS created_us, r.default_energy_j, r.hold_out,
	r.constant_arm, '' AS rung, COALESCE(r.decided_cap_w, o.set_cap_w) AS cap_w,
	COALESCE(r.decided_profile, o.set_power_profile) AS power_profile, o.outcome_id
FROM outcomes AS o `

const joinOldRuns = ` CROSS JOIN old_runs AS r ON r.outcome_id = o.outcome_id AND r.decided_us IS NOT NULL`

// oldReason is why what was decided for a run that isn't kept in detail any more.
const oldReason = "the reason isn''t kept for so long"

// oldDecisionColumns are its columns in the order of selectDecisions.
const oldDecisionColumns = `decision_id, cluster, job_id, node, token, run_id, workload, gpu_model, core_mhz,
	mem_mhz, predicted_s, predicted_low_s, predicted_high_s, predicted_w, predicted_low_w, predicted_high_w,
	predicted_j, predicted_low_j, predicted_high_j,
	reason, mode, config_version, decided_model, arm, created_us, default_energy_j, hold_out, constant_arm, rung,
	cap_w, power_profile`

const (
	decisionsOfJob = selectDecisions + `
WHERE cluster = ?1 AND job_id = ?2 AND job_id != 0
UNION ALL SELECT ` + oldDecisionColumns + `
FROM (` + oldDecisions + `INDEXED BY outcomes_by_job` + joinOldRuns +
		` WHERE o.cluster = ?1 AND o.job_id = ?2 AND o.job_id != 0)
ORDER BY decision_id`

	// restoreDecisions puts those of a list of runs back to where they were.
	restoreDecisions = "INSERT INTO decisions (" + decisionColumns + ") SELECT " + oldDecisionColumns + `
FROM (` + oldDecisions + joinOldRuns + ` WHERE o.outcome_id IN (SELECT value FROM json_each(?1)))
WHERE true ON CONFLICT DO NOTHING`
)

// scanDecision reads a row of selectDecisions.
func scanDecision(row scanner) (record.Decision, error) {
	var d record.Decision
	var numbers [12]sql.NullFloat64
	var created sql.NullInt64
	err := row.Scan(&d.ID, &d.Cluster, &d.JobID, &d.Node, &d.Token, &d.RunID, &d.Workload, &d.GPUModel,
		&d.Setting.Core, &d.Setting.Mem, &numbers[0], &numbers[1], &numbers[2], &numbers[3],
		&numbers[4], &numbers[5],
		&numbers[6], &numbers[7], &numbers[8], &d.Reason, &d.Mode, &d.ConfigVersion, &d.ModelVersion,
		&d.Arm, &created,
		&numbers[9], &numbers[10], &numbers[11], &d.Rung, &d.Setting.Cap,
		intoProfile{&d.Setting.Profile})
	scanIntervals(numbers[:], &d.TimeS, &d.PowerW, &d.EnergyJ)
	d.DefaultJ, d.HoldOut, d.ConstantArm = knownNumber(numbers[9]), knownNumber(numbers[10]),
		knownNumber(numbers[11])
	d.Created = timeOf(created)
	return d, err
}

// profileColumn returns a power profile as its column has it.
func profileColumn(p dvfsmodel.PowerProfile) string {
	if p == 0 {
		return ""
	}
	return p.String()
}

// intoProfile scans such a column. A profile that isn't known, of a newer epd, is none.
type intoProfile struct{ to *dvfsmodel.PowerProfile }

// Scan is part of [sql.Scanner].
func (p intoProfile) Scan(src any) error {
	name, ok := src.(string)
	if !ok {
		return fmt.Errorf("a power profile of type %T", src)
	}
	*p.to, _ = dvfsmodel.ParsePowerProfile(name)
	return nil
}
