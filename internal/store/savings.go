package store

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// jobsOf begins a query whose rows are jobs, each on all its nodes, which end at
// byJob: a job was drawn once, so that its nodes aren't compared one by one. The
// energy of a job on all its nodes is known where it is known on each. Clocks and
// the parts of the lot are those of the decision.
const (
	jobsOf = `
SELECT o.cluster, o.workload, o.gpu_model, o.arm, MAX(COALESCE(o.ended_us, o.received_us)) AS ended_us,
	MIN(COALESCE(d.hold_out, r.hold_out, -1)) AS hold_out,
	MIN(COALESCE(d.constant_arm, r.constant_arm, 0)) AS constant_arm,
	MIN(COALESCE(d.core_mhz, r.decided_core_mhz, o.core_mhz)) AS core_mhz,
	MIN(COALESCE(d.mem_mhz, r.decided_mem_mhz, o.mem_mhz)) AS mem_mhz,
	COUNT(*) AS runs, TOTAL(o.time_s) AS time_s, TOTAL(o.gpu_energy_j) AS gpu_energy_j,
	TOTAL(o.node_energy_j) AS node_energy_j,
	MIN(o.exit_state = 'COMPLETED') AS done,
	CASE WHEN MIN(o.exit_state = 'COMPLETED') AND COUNT(o.gpu_energy_j) = COUNT(*) THEN SUM(o.gpu_energy_j) END AS gpu_j,
	CASE WHEN MIN(o.exit_state = 'COMPLETED') AND COUNT(o.node_energy_j) = COUNT(*) THEN SUM(o.node_energy_j) END AS node_j,
	CASE WHEN MIN(o.exit_state = 'COMPLETED') AND COUNT(o.time_s) = COUNT(*) THEN MAX(o.time_s) END AS longest_s,
	CASE WHEN MIN(o.exit_state = 'COMPLETED') AND COUNT(o.gpu_energy_j) = COUNT(*) AND COUNT(COALESCE(d.default_energy_j, r.default_energy_j)) = COUNT(*)
		THEN SUM(COALESCE(d.default_energy_j, r.default_energy_j)) END AS predicted_j
FROM outcomes AS o LEFT JOIN decisions AS d ON d.decision_id = o.decision_id
	LEFT JOIN old_runs AS r ON r.outcome_id = o.outcome_id`
	byJob = `
GROUP BY o.job_id, CASE WHEN o.job_id > 0 THEN o.submitted_us END,
	CASE WHEN o.job_id <= 0 OR o.submitted_us IS NULL THEN o.outcome_id END,
	CASE o.exit_state WHEN 'REQUEUED' THEN 1 WHEN '' THEN 2 ELSE 0 END, o.cluster, o.workload, o.gpu_model, o.arm`
	jobSums = `
	COUNT(gpu_j) AS gn, TOTAL(gpu_j) AS g, TOTAL(gpu_j * gpu_j) AS g2,
	COUNT(node_j) AS nn, TOTAL(node_j) AS n, TOTAL(node_j * node_j) AS n2,
	COUNT(predicted_j) AS pn, TOTAL(predicted_j) AS p,
	TOTAL(CASE WHEN predicted_j IS NOT NULL THEN gpu_j END) AS pg,
	COUNT(longest_s) AS tn, TOTAL(longest_s) AS t, TOTAL(longest_s * longest_s) AS t2`
	// jobsBetween are the compared jobs of ?1 that ended from ?2 on and before ?3,
	// with what they did on nodes where they ended sooner.
	jobsBetween = jobsOf + " WHERE" + comparedOutcomes + `AND o.outcome_id IN (
	WITH some AS (SELECT outcome_id, cluster, job_id, submitted_us FROM outcomes INDEXED BY outcomes_by_end
		WHERE cluster = ?1 AND COALESCE(ended_us, received_us) >= ?2 AND COALESCE(ended_us, received_us) < ?3)
	SELECT outcome_id FROM some
	UNION SELECT o.outcome_id FROM some AS s CROSS JOIN outcomes AS o INDEXED BY outcomes_by_job
		ON o.cluster = s.cluster AND o.job_id = s.job_id AND o.submitted_us = s.submitted_us WHERE s.job_id > 0)` + byJob + `
HAVING MAX(COALESCE(o.ended_us, o.received_us)) >= ?2 AND MAX(COALESCE(o.ended_us, o.received_us)) < ?3`
)

// strataParts selects sums of strata and clocks from what follows.
const strataParts = `
SELECT ?1, ` + stratumKey +
	`, SUM(ended), SUM(done), SUM(done_gpu_runs), SUM(done_gpu_j), SUM(done_gpu_j2), SUM(done_node_runs), SUM(done_node_j), SUM(done_node_j2),
	SUM(predicted_runs), SUM(predicted_j), SUM(predicted_gpu_j), SUM(done_time_runs), SUM(done_time_s), SUM(done_time_s2) FROM (`

const strataOrder = `)
GROUP BY ` + stratumKey + `
ORDER BY ` + stratumKey

var (
	// strataEver reads the sums over all days, and those of pruned jobs, in the order
	// in which both lie.
	strataEver = `
SELECT cluster, ` + sumColumns + ` FROM energy_sums WHERE cluster = ?1 AND day = 0 AND ended > 0
UNION ALL
SELECT cluster, ` + sumColumns +
		` FROM energy_sums WHERE cluster = ?1 AND day = -1 AND done_gpu_runs + done_node_runs + done_time_runs > 0
ORDER BY ` + stratumKey
	// strataSince reads the jobs from ?2 on to the end of its day, ?3, the sums of the days from ?4 on and
	// before ?8, the jobs of that day, from ?6 on and before ?7, and those of pruned jobs by months.
	strataSince = strataParts + strataOfJobs + `
	UNION ALL ` + strings.NewReplacer("?2", "?6", "?3", "?7").Replace(strataOfJobs) + `
	UNION ALL SELECT ` + sumColumns + ` FROM energy_sums WHERE cluster = ?1 AND day >= ?4 AND day < ?8 AND ended > 0
	UNION ALL
	SELECT ` + stratumKey + `, 0, 0,
		done_gpu_runs, done_gpu_j, done_gpu_j2, done_node_runs, done_node_j, done_node_j2,
		predicted_runs, predicted_j, predicted_gpu_j, done_time_runs, done_time_s, done_time_s2
	FROM outcome_months WHERE cluster = ?1 AND month >= ?5 AND month < ?9 AND workload != '' AND arm != 'excluded' AND done_gpu_runs + done_node_runs + done_time_runs > 0` + strataOrder
)

// strataOfJobs sums the jobs of [jobsBetween] up.
const strataOfJobs = `
	SELECT ` + stratumKey + `, COUNT(*) AS ended, SUM(done) AS done,
		COUNT(gpu_j) AS done_gpu_runs, TOTAL(gpu_j) AS done_gpu_j, TOTAL(gpu_j * gpu_j) AS done_gpu_j2,
		COUNT(node_j) AS done_node_runs, TOTAL(node_j) AS done_node_j, TOTAL(node_j * node_j) AS done_node_j2,
		COUNT(predicted_j) AS predicted_runs, TOTAL(predicted_j) AS predicted_j,
		TOTAL(CASE WHEN predicted_j IS NOT NULL THEN gpu_j END) AS predicted_gpu_j,
		COUNT(longest_s) AS done_time_runs, TOTAL(longest_s) AS done_time_s,
		TOTAL(longest_s * longest_s) AS done_time_s2
	FROM (` + jobsBetween + `) GROUP BY ` + stratumKey

// Strata returns the mean energies and run times of completed jobs by workload, GPU model, the parts
// that the lot had in its arms, and arm: what savings are computed from. They cover jobs that ended
// since a time and before another one, on the last of their nodes. Of pruned ones, whose details are
// gone, whole months count: from the first time's month on, or, where there is a last time, those whose middle
// lies between. Zero times are ever, which takes as long as there are strata, however many jobs there were.
// Jobs without a workload, unmatched runs and those in no arm aren't compared.
func (s *Store) Strata(
	ctx context.Context, cluster string, since, until time.Time,
) ([]record.Stratum, error) {
	query, args := strataEver, []any{cluster}
	if from := since.UnixMicro(); !since.IsZero() && from > 0 || !until.IsZero() {
		from, before := max(from, 1), int64(math.MaxInt64)
		if !until.IsZero() {
			before = max(until.UnixMicro(), from)
		}
		first, end := prunedMonths(time.UnixMicro(from), until)
		next, last := from/microsPerDay+1, before/microsPerDay
		midnight := min(next*microsPerDay, before)
		query, args = strataSince, []any{
			cluster, from, midnight, next, first, max(last*microsPerDay, midnight), before, last, end,
		}
	}
	rows, err := s.db.read.QueryContext(ctx, query, args...)
	all, err := collect(rows, err, func(row scanner) (stratumSums, error) { return scanSums(row) })
	if err != nil {
		return nil, fmt.Errorf("mean energies: %w", err)
	}
	return strataOf(mergeNeighbours(all)), nil
}

// strataOf adds up the clocks of each stratum, which are in a row.
func strataOf(all []stratumSums) []record.Stratum {
	var strata []record.Stratum
	for rest := all; len(rest) > 0; {
		same := 1
		for same < len(rest) && rest[same].Stratum == rest[0].Stratum {
			same++
		}
		strata = append(strata, stratumOf(rest[:same]))
		rest = rest[same:]
	}
	return strata
}

const monthLayout = "2006-01"

// prunedMonths returns the first of a period's pruned months and the month after the last: from the month of
// its beginning on, or, if the period has an end, the months whose middle lies in it.
func prunedMonths(since, until time.Time) (first, end string) {
	if until.IsZero() {
		return since.UTC().Format(monthLayout), "9999-12"
	}
	return middleFrom(since), middleFrom(until)
}

// middleFrom returns the first month whose middle isn't before a time.
func middleFrom(at time.Time) string {
	at = at.UTC()
	month := time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
	if month.AddDate(0, 0, 14).Before(at) {
		month = month.AddDate(0, 1, 0)
	}
	return month.Format(monthLayout)
}

// stratumSums are those of the runs of a stratum with the same clocks.
type stratumSums struct {
	record.Stratum // without means

	setting         dvfsmodel.Setting
	gpu, node, time sums
	predicted       record.PredictedUse
	endings         record.EndingCounts
}

// sums are those of energies, in joules, or of times, in seconds.
type sums struct {
	runs          int64
	total, square float64
}

// mergeNeighbours adds up neighbours of the same stratum and clocks.
func mergeNeighbours(all []stratumSums) []stratumSums {
	out := all[:0]
	for _, s := range all {
		if n := len(out); n > 0 && out[n-1].Stratum == s.Stratum && out[n-1].setting == s.setting {
			out[n-1].add(&s)
			continue
		}
		out = append(out, s)
	}
	return out
}

func (t *stratumSums) add(o *stratumSums) {
	t.endings.Ended += o.endings.Ended
	t.endings.Completed += o.endings.Completed
	t.gpu.add(o.gpu)
	t.node.add(o.node)
	t.time.add(o.time)
	t.predicted.Runs += o.predicted.Runs
	t.predicted.DefaultJ += o.predicted.DefaultJ
	t.predicted.GPUJ += o.predicted.GPUJ
}

func (e *sums) add(o sums) {
	e.runs, e.total, e.square = e.runs+o.runs, e.total+o.total, e.square+o.square
}

// scanSums reads a row, and what stands before its sums.
func scanSums(row scanner, before ...any) (stratumSums, error) {
	var t stratumSums
	err := row.Scan(append(before, &t.Cluster, &t.Workload, &t.GPUModel, &t.HoldOut, &t.ConstantArm, &t.Arm,
		&t.setting.Core, &t.setting.Mem,
		&t.endings.Ended, &t.endings.Completed, &t.gpu.runs, &t.gpu.total, &t.gpu.square,
		&t.node.runs, &t.node.total, &t.node.square,
		&t.predicted.Runs, &t.predicted.DefaultJ, &t.predicted.GPUJ,
		&t.time.runs, &t.time.total, &t.time.square)...)
	for _, e := range []*sums{&t.gpu, &t.node, &t.time} {
		if !arePlausible(e.total, e.square/maxSum) {
			*e = sums{}
		}
	}
	if !arePlausible(t.predicted.DefaultJ, t.predicted.GPUJ) {
		t.predicted = record.PredictedUse{}
	}
	return t, err
}

// maxSum is more joules or seconds than all runs together come to.
const maxSum = 1e30

// arePlausible reports whether sums can be. Others, as of a database that somebody wrote
// into, are left out.
func arePlausible(sums ...float64) bool {
	for _, sum := range sums {
		if !(math.Abs(sum) < maxSum) {
			return false
		}
	}
	return true
}

// stratumOf adds up the settings of a stratum. Those of the constant arm are one: which
// of its jobs may be at the constant clocks, and which are at default ones, is as it
// comes with the jobs that were drawn, and no choice of ours.
func stratumOf(parts []stratumSums) record.Stratum {
	out := parts[0].Stratum
	if out.Arm == live.ArmConstant {
		for i := range parts[1:] {
			parts[0].add(&parts[1+i])
		}
		parts = parts[:1]
	}
	for i := range parts {
		p := &parts[i]
		p.gpu.addTo(&out.GPU)
		p.node.addTo(&out.Node)
		p.time.addTo(&out.Time)
		out.Endings.Ended += p.endings.Ended
		out.Endings.Completed += p.endings.Completed
		out.Predicted.Runs += p.predicted.Runs
		out.Predicted.DefaultJ += p.predicted.DefaultJ
		out.Predicted.GPUJ += p.predicted.GPUJ
	}
	return out
}

// addTo adds runs with the same clocks to a mean and its variance.
func (e *sums) addTo(m *record.Mean) {
	if e.runs == 0 {
		return
	}
	all := float64(m.Runs + e.runs)
	m.Value += (e.total - float64(e.runs)*m.Value) / all
	m.Runs += e.runs
	if e.runs < 2 { //nolint:mnd // one run has no scatter
		return
	}
	within := max(0, e.square-e.total*e.total/float64(e.runs))
	freedom := m.Freedom + e.runs - 1
	m.Variance = (m.Variance*float64(m.Freedom) + within) / float64(freedom)
	m.Freedom = freedom
}
