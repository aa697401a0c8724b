package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/store/record"
)

// groupKeys maps a grouping to its SQL expression; "" puts all runs into one group.
var groupKeys = map[string]string{
	"": "''", "user": "COALESCE(j.user, '')", "account": "COALESCE(j.account, '')",
	"partition": "COALESCE(j.partition, '')", "workload": "o.workload", "gpu": "o.gpu_model",
}

// runsWithJobs and ofPeriod select the runs of cluster ?1 that ended from ?2 on and before ?3, all or those
// of user ?4.
const (
	runsWithJobs = `
FROM outcomes AS o INDEXED BY outcomes_by_end
	LEFT JOIN jobs AS j ON j.cluster = o.cluster AND j.job_id = o.job_id AND j.submitted_us = o.submitted_us`
	ofPeriod = `
WHERE o.cluster = ?1 AND o.unmatched = 0 AND COALESCE(o.ended_us, o.received_us) >= ?2
	AND COALESCE(o.ended_us, o.received_us) < ?3 AND (?4 = '' OR j.user = ?4)`
)

// usageOf sums the runs of cluster ?1 that ended from ?2 on and before ?3.
const usageOf = `, COUNT(*), COUNT(DISTINCT j.seq), TOTAL(o.time_s * j.gpus / MAX(j.nodes, 1)),
	COUNT(o.gpu_energy_j), TOTAL(o.gpu_energy_j), COUNT(o.node_energy_j), TOTAL(o.node_energy_j),
	COUNT(COALESCE(o.node_energy_j, o.gpu_energy_j)), TOTAL(COALESCE(o.node_energy_j, o.gpu_energy_j)),
	TOTAL(CASE WHEN o.arm = 'held-out' THEN COALESCE(o.node_energy_j, o.gpu_energy_j) END),
	COUNT(COALESCE(d.default_energy_j, r.default_energy_j)),
	TOTAL(COALESCE(d.default_energy_j, r.default_energy_j)),
	TOTAL(CASE WHEN COALESCE(d.default_energy_j, r.default_energy_j) IS NOT NULL THEN o.gpu_energy_j END),
	TOTAL(CASE WHEN o.node_energy_source = 'modelled' THEN o.node_energy_j END),
	TOTAL(CASE WHEN COALESCE(o.node_energy_j, o.gpu_energy_j) IS NOT NULL
		THEN o.time_s * j.gpus / MAX(j.nodes, 1) END)
` + runsWithJobs + `
	LEFT JOIN decisions AS d ON d.decision_id = o.decision_id AND ` + isPredicted + `
	LEFT JOIN old_runs AS r ON r.outcome_id = o.outcome_id AND ` + isPredicted + `
` + ofPeriod + `
GROUP BY 1 ORDER BY 10 DESC, 1`

// idleOf sums the time in which GPUs of these runs had no work, as their drivers tell.
const idleOf = `, o.gpu_model,
	TOTAL(o.time_s * j.gpus / MAX(j.nodes, 1) * (1 - MIN(MAX(o.utilisation, 0), 1)))` +
	runsWithJobs + ofPeriod + ` AND o.utilisation IS NOT NULL
GROUP BY 1, 2 ORDER BY 1, 2`

// isPredicted selects the runs whose energy is compared with the models' prediction.
const isPredicted = "o.arm = 'treated' AND o.exit_state = 'COMPLETED' AND o.gpu_energy_j IS NOT NULL"

// prunedUsage sums the pruned runs of months from ?2 on and before ?3. The number of runs with a known energy
// is lost, so their energy is at least what nodes or GPUs of a kind of runs used.
const prunedUsage = `
SELECT COALESCE(SUM(runs), 0), TOTAL(gpu_energy_j), TOTAL(node_energy_j),
	TOTAL(MAX(gpu_energy_j, node_energy_j))
FROM outcome_months
WHERE cluster = ?1 AND month >= ?2 AND month < ?3`

// Usage returns the energy and GPU time of a user's runs ("": all) that ended in a period, grouped by one of
// [record.Groupings], the largest energy first; "" makes one group. A zero time leaves the period open. Runs
// without a known job are in the group without a name. Unmatched runs are left out, and so are pruned ones:
// see [Store.PrunedUsage].
func (s *Store) Usage(
	ctx context.Context, cluster string, since, until time.Time, by, user string,
) ([]record.Usage, error) {
	key, ok := groupKeys[by]
	if !ok {
		return nil, fmt.Errorf("usage by %q, want one of %q", by, record.Groupings)
	}
	from, before := microsBetween(since, until)
	idle, err := idleTimes(ctx, s.db.read, by, cluster, from, before, user)
	if err != nil {
		return nil, err
	}
	strata, err := groupStrata(ctx, s.db.read, by, cluster, from, before, user)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.read.QueryContext(ctx, "SELECT "+key+usageOf, cluster, from, before, user)
	return list(rows, err, func(row scanner) (record.Usage, error) {
		var u record.Usage
		err := row.Scan(&u.Key, &u.Runs, &u.Jobs, &u.GPUSeconds, &u.GPURuns, &u.GPUEnergyJ, &u.NodeRuns,
			&u.NodeEnergyJ, &u.EnergyRuns, &u.EnergyJ, &u.HeldOutJ, &u.Predicted.Runs, &u.Predicted.DefaultJ,
			&u.Predicted.GPUJ, &u.ModelledJ, &u.EnergyGPUSeconds)
		if !arePlausible(u.GPUSeconds, u.GPUEnergyJ, u.NodeEnergyJ, u.EnergyJ, u.Predicted.DefaultJ) {
			u = record.Usage{Key: u.Key, Runs: u.Runs, Jobs: u.Jobs}
		}
		u.Idle, u.Strata = idle[u.Key], strata[u.Key]
		return u, err
	}, "usage")
}

// idleTimes returns for how long the GPUs of each group were idle.
func idleTimes(
	ctx context.Context, db *sql.DB, by, cluster string, from, before int64, user string,
) (map[string][]record.Idle, error) {
	rows, err := db.QueryContext(ctx, "SELECT "+groupKeys[by]+idleOf, cluster, from, before, user)
	idle := make(map[string][]record.Idle)
	_, err = list(rows, err, func(row scanner) (i record.Idle, err error) {
		var group string
		if err = row.Scan(&group, &i.GPUModel, &i.GPUSeconds); err == nil && arePlausible(i.GPUSeconds) {
			idle[group] = append(idle[group], i)
		}
		return i, err
	}, "idle GPUs")
	return idle, err
}

// strataOfGroups sums the compared jobs of cluster ?1 that ended from ?2 on and before ?3, all or those of
// user ?4, by groups.
func strataOfGroups(by string) string {
	return strings.NewReplacer(
		"SELECT "+stratumKey, "SELECT grp, cluster, "+stratumKey,
		"GROUP BY "+stratumKey, "GROUP BY grp, cluster, "+stratumKey+" ORDER BY grp, "+stratumKey,
		"SELECT o.cluster, o.workload", "SELECT "+groupKeys[by]+" AS grp, o.cluster, o.workload",
		" WHERE"+comparedOutcomes, " LEFT JOIN jobs AS j ON j.cluster = o.cluster AND j.job_id = o.job_id "+
			"AND j.submitted_us = o.submitted_us WHERE"+comparedOutcomes+"AND (?4 = '' OR j.user = ?4) ",
	).Replace(strataOfJobs)
}

// groupStrata returns the strata of each group's jobs; of one group of all none.
func groupStrata(
	ctx context.Context, db *sql.DB, by, cluster string, from, before int64, user string,
) (map[string][]record.Stratum, error) {
	if by == "" {
		return nil, nil
	}
	rows, err := db.QueryContext(ctx, strataOfGroups(by), cluster, from, before, user)
	type grouped struct {
		key string
		stratumSums
	}
	all, err := list(rows, err, func(row scanner) (g grouped, err error) {
		g.stratumSums, err = scanSums(row, &g.key)
		return g, err
	}, "mean energies by "+by)
	sums, strata := make(map[string][]stratumSums), make(map[string][]record.Stratum)
	for _, g := range all {
		sums[g.key] = append(sums[g.key], g.stratumSums)
	}
	for key := range sums {
		strata[key] = strataOf(sums[key])
	}
	return strata, err
}

// PrunedUsage returns the usage of pruned runs of a period's months, which are those of [Store.Strata].
func (s *Store) PrunedUsage(
	ctx context.Context, cluster string, since, until time.Time,
) (u record.Usage, err error) {
	first, end := prunedMonths(since, until)
	err = s.db.read.QueryRowContext(ctx, prunedUsage, cluster, first, end).Scan(&u.Runs, &u.GPUEnergyJ,
		&u.NodeEnergyJ, &u.EnergyJ)
	if err != nil {
		return u, fmt.Errorf("usage of pruned runs: %w", err)
	}
	if !arePlausible(u.EnergyJ, u.GPUEnergyJ, u.NodeEnergyJ) {
		u = record.Usage{Runs: u.Runs}
	}
	return u, nil
}

// microsBetween returns a period in microseconds.
func microsBetween(since, until time.Time) (from, before int64) {
	from, before = math.MinInt64, math.MaxInt64
	if !since.IsZero() {
		from = since.UnixMicro()
	}
	if !until.IsZero() {
		before = until.UnixMicro()
	}
	return from, before
}
