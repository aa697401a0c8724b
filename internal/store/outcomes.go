package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"

	"github.com/epplan/epplan/internal/store/record"
)

// Receipt says what became of an outcome. All receipts are acknowledgements:
// whoever delivered it may forget it.
type Receipt uint8

// An outcome is stored, was already there, or differs from the one that is
// there under its key and was kept aside.
const (
	Stored Receipt = iota
	Repeated
	Conflicting
)

// String is the receipt in messages and in the API.
func (r Receipt) String() string {
	switch r {
	case Repeated:
		return "repeated"
	case Conflicting:
		return "conflicting"
	default:
		return "stored"
	}
}

// PutOutcome stores an outcome once, however often it is delivered, and
// returns when that is on disk. One that can't be stored at all is
// record.ErrInvalid.
func (s *Store) PutOutcome(ctx context.Context, outcome *record.Outcome) (Receipt, error) {
	o, err := outcome.Canonical()
	if err != nil {
		return 0, err
	}
	digest, err := o.Digest()
	if err != nil {
		return 0, err
	}
	details, err := detailsOf(&o)
	if err != nil {
		return 0, err
	}
	received := s.now().UnixMicro()
	receipt, err := write(ctx, s, func(ctx context.Context, conn *sql.Conn) (Receipt, error) {
		return putOutcome(ctx, conn, &o, digest, details, received, nil)
	})
	if err != nil {
		return 0, fmt.Errorf("store outcome of run %s: %w", o.RunID, err)
	}
	return receipt, nil
}

const insertOutcome = `
INSERT INTO outcomes (outcome_id, cluster, run_id, job_id, node, restart_count, decision_id, workload, gpu_model, arm,
	submitted_us, started_us, ended_us, exit_state, core_mhz, mem_mhz, time_s, slowdown,
	gpu_energy_j, gpu_energy_source, node_energy_j, node_energy_source, mean_power_w, peak_power_w,
	utilisation, peak_memory_bytes, unmatched, received_us, digest)
SELECT ?29, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23,
	?24, ?25, ?26, ?27, ?28
WHERE NOT EXISTS (SELECT 1 FROM pruned_runs WHERE cluster = ?1 AND run_id = ?2 AND node IN ('', ?4))
ON CONFLICT (cluster, run_id, node) DO NOTHING`

// putOutcome is PutOutcome inside the transaction. The outcome gets an id, or the
// next one if that is nil.
func putOutcome(
	ctx context.Context, conn *sql.Conn, o *record.Outcome, digest [sha256.Size]byte, details []any, received int64, id any,
) (Receipt, error) {
	result, err := conn.ExecContext(ctx, insertOutcome,
		o.Cluster, o.RunID, o.JobID, o.Node, o.Restart, o.DecisionID, o.Workload, o.GPUModel, string(o.Arm),
		micros(o.Submitted), micros(o.Started), micros(o.Ended), o.ExitState,
		float64(o.Setting.Core), float64(o.Setting.Mem), number(o.TimeS), number(o.Slowdown),
		number(o.GPUEnergyJ), string(o.GPUSource), number(o.NodeEnergyJ), string(o.NodeSource),
		number(o.MeanPowerW), number(o.PeakPowerW), number(o.Utilisation), number(o.PeakMemoryBytes),
		flag(o.Unmatched), received, digest[:], id)
	if err != nil {
		return 0, err
	}
	if inserted, err := result.RowsAffected(); err != nil || inserted == 0 {
		if err != nil {
			return 0, err
		}
		return compareOutcome(ctx, conn, o, digest, received)
	}
	key, err := result.LastInsertId()
	if err != nil {
		return 0, err
	}
	_, err = conn.ExecContext(ctx,
		"INSERT INTO outcome_details (outcome_id, gpus, clocks, throttled_s, series, readings, stays, restarted, implausible) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		append([]any{key}, details...)...)
	if err != nil {
		return 0, err
	}
	if err := putProfile(ctx, conn, key, o); err != nil {
		return 0, err
	}
	return Stored, bookOutcome(ctx, conn, key, o, received)
}

// compareOutcome tells a repeat from a conflict, and keeps the latter.
func compareOutcome(
	ctx context.Context, conn *sql.Conn, o *record.Outcome, digest [sha256.Size]byte, received int64,
) (Receipt, error) {
	var first []byte
	err := conn.QueryRowContext(ctx, `
SELECT digest FROM outcomes WHERE cluster = ?1 AND run_id = ?2 AND node = ?3
UNION ALL SELECT digest FROM pruned_runs WHERE cluster = ?1 AND run_id = ?2 AND node IN ('', ?3)`, o.Cluster, o.RunID, o.Node).Scan(&first)
	if err != nil {
		return 0, err
	}
	if bytes.Equal(first, digest[:]) {
		return Repeated, nil
	}
	_, err = putConflict(ctx, conn, o, digest, received)
	return Conflicting, err
}

// putConflict keeps an outcome apart; false: it is there.
func putConflict(ctx context.Context, conn *sql.Conn, o *record.Outcome, digest [sha256.Size]byte, received int64) (bool, error) {
	body, err := text(o)
	if err != nil {
		return false, err
	}
	result, err := conn.ExecContext(ctx, `
INSERT INTO outcome_conflicts (cluster, node, run_id, digest, body, received_us) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING`, o.Cluster, o.Node, o.RunID, digest[:], body, received)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// detailsOf are the columns of outcome_details after the id.
func detailsOf(o *record.Outcome) ([]any, error) {
	gpus, err := list(o.GPUs)
	if err != nil {
		return nil, err
	}
	clocks, err := list(o.Clocks)
	if err != nil {
		return nil, err
	}
	var throttled any
	if len(o.ThrottledS) > 0 {
		if throttled, err = text(o.ThrottledS); err != nil {
			return nil, err
		}
	}
	stays, err := list(o.Stays)
	if err != nil {
		return nil, err
	}
	var restarted, implausible any
	if !o.Restarted.IsZero() {
		if restarted, err = text(o.Restarted); err != nil {
			return nil, err
		}
	}
	if !o.Implausible.IsZero() {
		if implausible, err = text(&o.Implausible); err != nil {
			return nil, err
		}
	}
	return []any{gpus, clocks, throttled, o.Series.Encode(), o.Readings.Encode(), stays, restarted, implausible}, nil
}

const selectOutcomeColumns = `
SELECT outcome_id, cluster, run_id, job_id, node, restart_count, decision_id, workload, gpu_model, arm,
	submitted_us, started_us, ended_us, exit_state, core_mhz, mem_mhz, time_s, slowdown,
	gpu_energy_j, gpu_energy_source, node_energy_j, node_energy_source, mean_power_w, peak_power_w,
	utilisation, peak_memory_bytes, unmatched, gpus, clocks, throttled_s, series, stays, restarted, implausible`

const selectOutcomes = selectOutcomeColumns + " FROM outcomes LEFT JOIN outcome_details USING (outcome_id) "

// OutcomePage is a part of a list of outcomes, newest first.
type OutcomePage struct {
	Outcomes []record.Outcome
	Next     int64 // what to pass as before for the next page, 0 after the last
}

// OutcomesOf lists the matched outcomes of a workload on a GPU model, newest
// first, at most limit of them, from before a page's Next on (0: from the newest).
func (s *Store) OutcomesOf(ctx context.Context, key record.WorkloadKey, before int64, limit int) (OutcomePage, error) {
	rows, err := s.read.QueryContext(ctx, selectOutcomes+`
WHERE cluster = ?1 AND workload = ?2 AND gpu_model = ?3 AND unmatched = 0 AND (?4 = 0 OR outcome_id < ?4)
ORDER BY outcome_id DESC LIMIT ?5`, key.Cluster, key.Workload, key.GPUModel, before, limit)
	var page OutcomePage
	var last int64
	page.Outcomes, err = collect(rows, err, func(row scanner) (record.Outcome, error) {
		var o record.Outcome
		var err error
		last, err = scanOutcome(row, &o)
		return o, err
	})
	if err != nil {
		return OutcomePage{}, fmt.Errorf("outcomes of workload %s: %w", key.Workload, err)
	}
	if len(page.Outcomes) == limit {
		page.Next = last
	}
	return page, nil
}

// OutcomesOfJob lists the outcomes of all runs under a job id, oldest first,
// unmatched ones included.
func (s *Store) OutcomesOfJob(ctx context.Context, cluster string, jobID int64) ([]record.Outcome, error) {
	rows, err := s.read.QueryContext(ctx, selectOutcomes+
		"WHERE cluster = ? AND job_id = ? ORDER BY outcome_id", cluster, jobID)
	all, err := collect(rows, err, func(row scanner) (o record.Outcome, err error) {
		_, err = scanOutcome(row, &o)
		return o, err
	})
	if err != nil {
		return nil, fmt.Errorf("outcomes of job %d: %w", jobID, err)
	}
	return all, nil
}

// scanOutcome reads a row of selectOutcomes and returns its id.
func scanOutcome(row scanner, o *record.Outcome) (id int64, err error) {
	var submitted, started, ended sql.NullInt64
	var timeS, slowdown, gpuJ, nodeJ, meanW, peakW, utilisation, memory sql.NullFloat64
	var gpus, clocks, throttled, stays, restarted, implausible sql.NullString
	var series []byte
	err = row.Scan(&id, &o.Cluster, &o.RunID, &o.JobID, &o.Node, &o.Restart, &o.DecisionID, &o.Workload, &o.GPUModel,
		&o.Arm, &submitted, &started, &ended, &o.ExitState, &o.Setting.Core, &o.Setting.Mem, &timeS, &slowdown,
		&gpuJ, &o.GPUSource, &nodeJ, &o.NodeSource, &meanW, &peakW, &utilisation, &memory, &o.Unmatched,
		&gpus, &clocks, &throttled, &series, &stays, &restarted, &implausible)
	if err != nil {
		return 0, err
	}
	o.Submitted, o.Started, o.Ended = timeOf(submitted), timeOf(started), timeOf(ended)
	o.TimeS, o.Slowdown, o.GPUEnergyJ, o.NodeEnergyJ = known(timeS), known(slowdown), known(gpuJ), known(nodeJ)
	o.MeanPowerW, o.PeakPowerW = known(meanW), known(peakW)
	o.Utilisation, o.PeakMemoryBytes = known(utilisation), known(memory)
	for _, part := range []struct {
		what string
		from sql.NullString
		to   any
	}{
		{"GPUs", gpus, &o.GPUs},
		{"clocks", clocks, &o.Clocks},
		{"throttling", throttled, &o.ThrottledS},
		{"stays", stays, &o.Stays},
		{"over a restart", restarted, &o.Restarted},
		{"what can't be", implausible, &o.Implausible},
	} {
		if err := parse(part.from, part.to); err != nil {
			return 0, fmt.Errorf("run %s: %s: %w", o.RunID, part.what, err)
		}
	}
	if o.Series, err = record.DecodeSeries(series); err != nil {
		return 0, fmt.Errorf("run %s: %w", o.RunID, err)
	}
	o.DropImplausible(0) // of a database that somebody wrote into
	return id, nil
}
