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
	details, err := columnValues(nil, detailColumns, &o)
	if err != nil {
		return 0, err
	}
	received := s.db.now().UnixMicro()
	receipt, err := write(ctx, s.db, func(ctx context.Context, conn *sql.Conn) (Receipt, error) {
		return putOutcome(ctx, conn, &o, digest, details, received, nil)
	})
	if err != nil {
		return 0, fmt.Errorf("store outcome of run %s: %w", o.RunID, err)
	}
	return receipt, nil
}

// putOutcome is PutOutcome inside the transaction. The outcome gets an id, or the
// next one if that is nil.
func putOutcome(
	ctx context.Context, conn *sql.Conn, o *record.Outcome, digest [sha256.Size]byte, details []any,
	received int64, id any,
) (Receipt, error) {
	values, err := columnValues(nil, outcomeColumns, o)
	if err != nil {
		return 0, err
	}
	result, err := conn.ExecContext(ctx, insertOutcome, append(values, id, received, digest[:])...)
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
	if _, err := conn.ExecContext(ctx, insertDetails, append([]any{key}, details...)...); err != nil {
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
UNION ALL SELECT digest FROM pruned_runs WHERE cluster = ?1 AND run_id = ?2 AND node IN ('', ?3)`, o.Cluster,
		o.RunID, o.Node).Scan(&first)
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
func putConflict(
	ctx context.Context, conn *sql.Conn, o *record.Outcome, digest [sha256.Size]byte, received int64,
) (bool, error) {
	body, err := jsonText(o)
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

// OutcomePage is a part of a list of outcomes, newest first.
type OutcomePage struct {
	Outcomes []record.Outcome
	Next     int64 // what to pass as before for the next page, 0 after the last
}

// OutcomesOf lists the matched outcomes of a workload on a GPU model, newest
// first, at most limit of them, from before a page's Next on (0: from the newest).
func (l *Learning) OutcomesOf(
	ctx context.Context, key record.WorkloadKey, before int64, limit int,
) (OutcomePage, error) {
	rows, err := l.db.read.QueryContext(ctx, selectOutcomes+`
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
	rows, err := s.db.read.QueryContext(ctx, selectOutcomes+
		"WHERE cluster = ? AND job_id = ? ORDER BY outcome_id", cluster, jobID)
	return list(rows, err, func(row scanner) (o record.Outcome, err error) {
		_, err = scanOutcome(row, &o)
		return o, err
	}, "outcomes of job %d", jobID)
}

// scanOutcome reads a row of selectOutcomes and returns its id.
func scanOutcome(row scanner, o *record.Outcome) (id int64, err error) {
	into := make([]any, 1, 1+len(readColumns))
	into[0] = &id
	for i := range readColumns {
		into = append(into, readColumns[i].read(o))
	}
	if err := row.Scan(into...); err != nil {
		return 0, fmt.Errorf("run %.40q: %w", o.RunID, err)
	}
	o.DropImplausible(0) // of a database that somebody wrote into
	return id, nil
}
