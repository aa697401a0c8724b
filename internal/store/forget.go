package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/epplan/epplan/internal/store/record"
)

// RunFilter says which recorded runs are meant. Empty fields don't restrict.
type RunFilter struct {
	Cluster string
	RunID   string
	JobID   int64
	Node    string
	Since   time.Time // ended then or later, by its outcome; else received
	Until   time.Time // ended before
}

// RecordedRunPage is a part of a list of recorded runs, the oldest first.
type RecordedRunPage struct {
	Runs []record.RecordedRun
	Next int64 // what to pass as after for the next page, 0 after the last
}

// Outcomes as a filter lists them: with all that is recorded of them.
var selectRecordedRuns = selectOutcomeColumns + `, received_us, digest, readings,
	(SELECT profile FROM outcome_profiles AS p WHERE p.outcome_id = outcomes.outcome_id)
FROM outcomes %s ` + joinDetails + "WHERE "

const selectConflictRuns = "SELECT conflict_id, received_us, digest, body FROM outcome_conflicts WHERE "

// RecordedRuns lists the outcomes that pass a filter, or the conflicting ones that do, from
// after a page's Next on (0: from the first), at most so many. As with [Store.Jobs],
// a page may hold fewer though there are more.
func (s *Store) RecordedRuns(
	ctx context.Context, f *RunFilter, conflicts bool, after int64, most int,
) (RecordedRunPage, error) {
	id, job, ended, query, scan := "outcome_id", "job_id", "COALESCE(ended_us, received_us)", "",
		scanRecordedRun
	if conflicts {
		id, job, ended, query, scan = "conflict_id", "body ->> '$.job_id'", "received_us",
			selectConflictRuns, scanConflict
	}
	var where conditions
	where.add(true, "cluster = ?", f.Cluster)
	where.add(f.RunID != "", "run_id = ?", f.RunID)
	where.add(f.JobID != 0, job+" = ?", f.JobID)
	where.add(f.Node != "", "node = ?", f.Node)
	where.add(!f.Since.IsZero(), ended+" >= ?", f.Since.UnixMicro())
	where.add(!f.Until.IsZero(), ended+" < ?", f.Until.UnixMicro())
	where.add(true, id+" > ?", after)
	var stop int64
	switch {
	case conflicts:
	case f.RunID == "" && f.JobID == 0: // no index leads to them
		stop = after + maxRecordedRuns
		where.add(true, id+" <= ?", stop)
		query = fmt.Sprintf(selectRecordedRuns, "NOT INDEXED")
	default:
		query = fmt.Sprintf(selectRecordedRuns, "")
	}
	rows, err := s.db.read.QueryContext(ctx, query+where.String()+" ORDER BY "+id+" LIMIT ?",
		append(where.args, most)...)
	var page RecordedRunPage
	if page.Runs, err = collect(rows, err, scan); err != nil {
		return RecordedRunPage{}, fmt.Errorf("list recorded runs: %w", err)
	}
	if n := len(page.Runs); n == most && n > 0 {
		page.Next = page.Runs[n-1].ID
	} else if stop > 0 {
		more := false
		if err := s.db.read.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM outcomes WHERE outcome_id > ?)",
			stop).Scan(&more); err != nil {
			return RecordedRunPage{}, fmt.Errorf("list recorded runs: %w", typedError(err))
		}
		if more {
			page.Next = stop
		}
	}
	return page, nil
}

// maxRecordedRuns is how many outcomes are looked at for one page that no index leads to.
const maxRecordedRuns = 20_000

// scanRecordedRun reads a row of selectRecordedRuns.
func scanRecordedRun(row scanner) (k record.RecordedRun, err error) {
	var received sql.NullInt64
	var readings, profile []byte
	if k.ID, err = scanOutcome(extendedRow{row, []any{&received, &k.Digest, &readings, &profile}},
		&k.Outcome); err != nil {
		return k, err
	}
	k.Received = timeOf(received)
	if k.Outcome.Readings, err = record.DecodeReadings(readings); err != nil {
		return k, fmt.Errorf("run %s: %w", k.Outcome.RunID, err)
	}
	if k.Outcome.Profile, err = record.DecodeProfile(profile); err != nil {
		return k, fmt.Errorf("run %s: %w", k.Outcome.RunID, err)
	}
	return k, nil
}

// scanConflict reads a row of selectConflictRuns.
func scanConflict(row scanner) (k record.RecordedRun, err error) {
	var received sql.NullInt64
	var body []byte
	if err := row.Scan(&k.ID, &received, &k.Digest, &body); err != nil {
		return k, err
	}
	k.Conflict, k.Received = true, timeOf(received)
	return k, json.Unmarshal(body, &k.Outcome)
}

// ForgetResult says what was taken out of the records.
type ForgetResult struct {
	Runs, Conflicts int64
	// Workloads are those that the runs were of.
	Workloads []record.WorkloadKey
}

const (
	workloadsOfRuns = `
SELECT DISTINCT cluster, workload, gpu_model FROM outcomes
WHERE unmatched = 0 AND workload != '' AND outcome_id IN (SELECT value FROM json_each(?)) ORDER BY workload, gpu_model`

	// subtractFromDays takes runs out of the sums of their days.
	subtractFromDays = `
UPDATE run_days SET runs = run_days.runs - s.runs, time_s = run_days.time_s - s.time_s,
	gpu_runs = run_days.gpu_runs - s.gpu_runs, gpu_energy_j = run_days.gpu_energy_j - s.gpu_energy_j,
	node_runs = run_days.node_runs - s.node_runs, node_energy_j = run_days.node_energy_j - s.node_energy_j
FROM (SELECT cluster, COALESCE(ended_us, received_us) / 86400000000 AS day, exit_state, arm,
		COUNT(*) AS runs, TOTAL(time_s) AS time_s, COUNT(gpu_energy_j) AS gpu_runs,
		TOTAL(gpu_energy_j) AS gpu_energy_j, COUNT(node_energy_j) AS node_runs,
		TOTAL(node_energy_j) AS node_energy_j
	FROM outcomes WHERE unmatched = 0 AND outcome_id IN (SELECT value FROM json_each(?))
	GROUP BY 1, 2, 3, 4) AS s
WHERE run_days.cluster = s.cluster AND run_days.day = s.day AND run_days.exit_state = s.exit_state AND run_days.arm = s.arm`

	// keepShownEnd has jobs stay as they are shown: that their runs ended is known no more.
	keepShownEnd = `
UPDATE jobs SET state = shown WHERE shown != state AND (cluster, job_id, submitted_us) IN (
	SELECT cluster, job_id, submitted_us FROM outcomes WHERE outcome_id IN (SELECT value FROM json_each(?)))`

	insertForgottenRuns = `
INSERT INTO pruned_runs SELECT cluster, run_id, node, digest FROM outcomes
	WHERE outcome_id IN (SELECT value FROM json_each(?))
ON CONFLICT DO NOTHING`
)

// Forget takes outcomes out, and conflicting ones, by the ids of [Store.RecordedRuns], with
// all that was added to sums for them. Only the run ids stay, so that what is
// delivered again doesn't come back. Models that learnt from them stay. An id that
// there isn't is passed over.
func (s *Store) Forget(ctx context.Context, outcomes, conflicts []int64) (ForgetResult, error) {
	f, err := write(ctx, s.db, func(ctx context.Context, conn *sql.Conn) (ForgetResult, error) {
		return forget(ctx, conn, outcomes, conflicts)
	})
	if err != nil {
		return ForgetResult{}, fmt.Errorf("take runs out of the records: %w", err)
	}
	return f, nil
}

func forget(ctx context.Context, conn *sql.Conn, outcomes, conflicts []int64) (f ForgetResult, err error) {
	some, err := jsonText(append([]int64{}, outcomes...))
	if err != nil {
		return f, err
	}
	apart, err := jsonText(append([]int64{}, conflicts...))
	if err != nil {
		return f, err
	}
	rows, err := conn.QueryContext(ctx, workloadsOfRuns, some)
	if f.Workloads, err = collect(rows, err, func(row scanner) (key record.WorkloadKey, err error) {
		err = row.Scan(&key.Cluster, &key.Workload, &key.GPUModel)
		return key, err
	}); err != nil {
		return f, err
	}
	whole, err := selectIDs(ctx, conn, selectOfSameJobs, some)
	if err != nil {
		return f, err
	}
	for _, step := range []struct {
		statement string
		args      []any
		removed   *int64
	}{
		{restoreDecisions, []any{some}, nil}, // they stay
		{addSomeJobs, []any{-1, whole}, nil},
		{subtractFromDays, []any{some}, nil},
		{"DELETE FROM run_days WHERE runs <= 0", nil, nil},
		{keepShownEnd, []any{some}, nil},
		{insertForgottenRuns, []any{some}, nil},
		{"DELETE FROM outcomes WHERE outcome_id IN (SELECT value FROM json_each(?))", []any{some}, &f.Runs},
		{
			"DELETE FROM outcome_conflicts WHERE conflict_id IN (SELECT value FROM json_each(?))",
			[]any{apart},
			&f.Conflicts,
		},
		{addSomeJobs, []any{1, whole}, nil}, // those that are left
	} {
		result, err := conn.ExecContext(ctx, step.statement, step.args...)
		if err != nil {
			return f, err
		}
		if step.removed != nil {
			if *step.removed, err = result.RowsAffected(); err != nil {
				return f, err
			}
		}
	}
	return f, nil
}

// errNotForgotten tells that a run is recorded, or was pruned with all that it was.
var errNotForgotten = fmt.Errorf("%w: it isn't one that was taken out", record.ErrInvalid)

// Remember puts back what [Store.Forget] took out, as it was, all of it or nothing.
// What is there already changes nothing.
func (s *Store) Remember(ctx context.Context, runs []record.RecordedRun) (ForgetResult, error) {
	ready := make([]restoredRun, len(runs))
	for i := range runs {
		if err := ready[i].prepare(&runs[i]); err != nil {
			return ForgetResult{}, err
		}
	}
	back, err := write(ctx, s.db, func(ctx context.Context, conn *sql.Conn) (back ForgetResult, err error) {
		seen := make(map[record.WorkloadKey]bool)
		for i := range ready {
			r := &ready[i]
			stored, err := r.put(ctx, conn)
			switch {
			case err != nil:
				return back, fmt.Errorf("run %s: %w", r.outcome.RunID, err)
			case stored && r.conflict:
				back.Conflicts++
			case stored:
				back.Runs++
				key := record.WorkloadKey{
					Cluster: r.outcome.Cluster, Workload: r.outcome.Workload, GPUModel: r.outcome.GPUModel,
				}
				if key.Workload != "" && !r.outcome.Unmatched && !seen[key] {
					seen[key] = true
					back.Workloads = append(back.Workloads, key)
				}
			}
		}
		return back, nil
	})
	if err != nil {
		return ForgetResult{}, fmt.Errorf("put runs back into the records: %w", err)
	}
	return back, nil
}

// restoredRun is a run that is to be put back.
type restoredRun struct {
	outcome  record.Outcome
	conflict bool
	id       int64
	digest   [sha256.Size]byte
	received int64
	details  []any
}

func (r *restoredRun) prepare(k *record.RecordedRun) (err error) {
	r.conflict, r.id, r.received = k.Conflict, k.ID, record.StoredTime(k.Received).UnixMicro()
	if len(k.Digest) != len(r.digest) || k.Received.IsZero() || k.ID <= 0 {
		return fmt.Errorf("%w: a run with its id, its digest, and when it was received is expected",
			record.ErrInvalid)
	}
	copy(r.digest[:], k.Digest)
	if r.outcome, err = k.Outcome.Canonical(); err != nil {
		return err
	}
	r.details, err = columnValues(nil, detailColumns, &r.outcome)
	return err
}

// put puts a run back; false: it is there.
func (r *restoredRun) put(ctx context.Context, conn *sql.Conn) (bool, error) {
	o := &r.outcome
	if r.conflict {
		return putConflict(ctx, conn, o, r.digest, r.received)
	}
	var there []byte
	err := conn.QueryRowContext(ctx, "SELECT digest FROM outcomes WHERE cluster = ? AND run_id = ? "+
		"AND node = ?", o.Cluster, o.RunID, o.Node).Scan(&there)
	switch {
	case err == nil && string(there) == string(r.digest[:]):
		return false, nil
	case err == nil:
		return false, errNotForgotten
	case !errors.Is(err, sql.ErrNoRows):
		return false, err
	}
	result, err := conn.ExecContext(ctx, "DELETE FROM pruned_runs WHERE cluster = ? AND run_id = ? AND "+
		"node = ? AND digest = ?", o.Cluster, o.RunID, o.Node, r.digest[:])
	if err != nil {
		return false, err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return false, errors.Join(err, errNotForgotten)
	}
	receipt, err := putOutcome(ctx, conn, o, r.digest, r.details, r.received, r.id)
	if err == nil && receipt != Stored {
		err = errNotForgotten
	}
	return true, err
}
