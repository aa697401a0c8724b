package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/epplan/epplan/internal/store/record"
)

// Profiles lists the profiles of the last completed runs of a workload on a GPU
// model that had their GPUs alone and were seen from start to end, at most so
// many, the newest first.
func (l *Learning) Profiles(
	ctx context.Context, key record.WorkloadKey, most int,
) ([]record.RunProfile, error) {
	rows, err := l.db.hookRead.QueryContext(ctx, `
SELECT run_id, ended_us, time_s, slowdown, core_mhz, mem_mhz, set_cap_w, profile
FROM outcome_profiles AS p JOIN outcomes AS o USING (outcome_id)
WHERE p.cluster = ? AND p.workload = ? AND p.gpu_model = ? AND p.alone = 1
	AND o.unmatched = 0 AND o.exit_state = ? AND o.time_s > 0
ORDER BY outcome_id DESC LIMIT ?`, key.Cluster, key.Workload, key.GPUModel, record.Completed, most)
	return list(rows, err, func(row scanner) (record.RunProfile, error) {
		var p record.RunProfile
		var ended sql.NullInt64
		var slowdown sql.NullFloat64
		var blob []byte
		err := row.Scan(&p.RunID, &ended, &p.TimeS, &slowdown, &p.Setting.Core, &p.Setting.Mem, &p.Setting.Cap,
			&blob)
		if err != nil {
			return p, err
		}
		p.Ended, p.Slowdown = timeOf(ended), knownNumber(slowdown)
		if p.Profile, err = record.DecodeProfile(blob); err != nil {
			return p, fmt.Errorf("run %s: %w", p.RunID, err)
		}
		return p, nil
	}, "profiles of workload %s", key.Workload)
}

// ProfileCounts tells which workloads of a cluster have profiles, or on which GPU
// models one has, at most so many, those with the newest first.
func (s *Store) ProfileCounts(
	ctx context.Context, cluster, workload string, most int,
) ([]record.ProfileCount, error) {
	rows, err := s.db.read.QueryContext(ctx, `
SELECT n.cluster, n.workload, n.gpu_model, n.alone, n.shared, o.received_us FROM (
	SELECT cluster, workload, gpu_model, SUM(alone) AS alone, SUM(1 - alone) AS shared,
		MAX(outcome_id) AS outcome_id
	FROM outcome_profiles WHERE cluster = ?1 AND workload != '' AND (?2 = '' OR workload = ?2)
	GROUP BY cluster, workload, gpu_model ORDER BY 6 DESC LIMIT ?3) AS n JOIN outcomes AS o USING (outcome_id)
ORDER BY outcome_id DESC`, cluster, workload, most)
	return list(rows, err, func(row scanner) (record.ProfileCount, error) {
		var n record.ProfileCount
		var last sql.NullInt64
		err := row.Scan(&n.Cluster, &n.Workload, &n.GPUModel, &n.Alone, &n.Shared, &last)
		n.Last = timeOf(last)
		return n, err
	}, "count profiles")
}
