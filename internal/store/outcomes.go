package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
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

// String returns the receipt in messages and in the API.
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

// putProfile is the part of PutOutcome that keeps the profile, if there is one.
func putProfile(ctx context.Context, conn *sql.Conn, id int64, o *record.Outcome) error {
	if o.Profile.IsZero() {
		return nil
	}
	_, err := conn.ExecContext(ctx, `
INSERT INTO outcome_profiles (outcome_id, cluster, workload, gpu_model, alone, profile) VALUES (?, ?, ?, ?, ?, ?)`,
		id, o.Cluster, o.Workload, o.GPUModel, o.Profile.Alone, o.Profile.Encode())
	return err
}

// compareOutcome tells a repeat from a conflict, and keeps the latter.
func compareOutcome(
	ctx context.Context, conn *sql.Conn, o *record.Outcome, digest [sha256.Size]byte, received int64,
) (Receipt, error) {
	var first []byte
	err := conn.QueryRowContext(ctx, `
SELECT digest FROM outcomes WHERE cluster = ?1 AND run_id = ?2 AND node = ?3
UNION ALL SELECT digest FROM pruned_runs WHERE cluster = ?1 AND run_id = ?2 AND node = ?3`, o.Cluster,
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

// HasAnotherOfRun reports whether an outcome counts that is another run's by its id, of the same job on the
// same node, submitted at the same time, or, where nobody knows when, requeued as often. Of a stored run it
// is what it was then.
func (s *Store) HasAnotherOfRun(ctx context.Context, o *record.Outcome) (another bool, err error) {
	err = s.db.read.QueryRowContext(ctx, `
SELECT COALESCE((SELECT unmatched FROM outcomes WHERE cluster = ?2 AND run_id = ?6 AND node = ?3),
	EXISTS (SELECT 1 FROM outcomes WHERE job_id = ?1 AND cluster = ?2 AND node = ?3 AND submitted_us IS ?4
		AND (?4 IS NOT NULL OR restart_count = ?5) AND run_id != ?6 AND NOT unmatched))`, o.JobID, o.Cluster, o.Node,
		nullableMicros(record.StoredTime(o.Submitted)), o.Restart, o.RunID).Scan(&another)
	if err != nil {
		return false, fmt.Errorf("outcomes of job %d on %.80q: %w", o.JobID, o.Node, err)
	}
	return another, nil
}

// scanOutcome reads a row of selectOutcomes and returns its id.
func scanOutcome(row scanner, o *record.Outcome) (id int64, err error) {
	into := make([]any, 1, 3+len(readColumns))
	into[0] = &id
	for i := range readColumns {
		into = append(into, readColumns[i].read(o))
	}
	into = append(into, intoCourse{o}, intoJSON{&o.GPUs}) // of a run that isn't kept in detail any more
	if err := row.Scan(into...); err != nil {
		return 0, fmt.Errorf("run %.40q: %w", o.RunID, err)
	}
	o.DropImplausible(&record.Bounds{}) // of a database that somebody wrote into
	return id, nil
}

// outcomeColumn is one value of an outcome as a column: what is written, and what a
// row's value is scanned into.
type outcomeColumn struct {
	name  string
	write func(*record.Outcome) (any, error)
	read  func(*record.Outcome) any // nil: only asked for by name, because it is large
}

// outcomeColumns are the columns of the table outcomes between the id and received_us,
// and detailColumns those of outcome_details after the id. One more figure of a run is a
// field of [record.Outcome], a line here, and a migration.
var (
	outcomeColumns = []outcomeColumn{
		plainColumn("cluster", func(o *record.Outcome) *string { return &o.Cluster }),
		plainColumn("run_id", func(o *record.Outcome) *string { return &o.RunID }),
		plainColumn("job_id", func(o *record.Outcome) *int64 { return &o.JobID }),
		plainColumn("node", func(o *record.Outcome) *string { return &o.Node }),
		plainColumn("restart_count", func(o *record.Outcome) *int { return &o.Restart }),
		plainColumn("decision_id", func(o *record.Outcome) *int64 { return &o.DecisionID }),
		plainColumn("workload", func(o *record.Outcome) *string { return &o.Workload }),
		plainColumn("gpu_model", func(o *record.Outcome) *string { return &o.GPUModel }),
		plainColumn("arm", func(o *record.Outcome) *live.Arm { return &o.Arm }),
		timeColumn("submitted_us", func(o *record.Outcome) *time.Time { return &o.Submitted }),
		timeColumn("started_us", func(o *record.Outcome) *time.Time { return &o.Started }),
		timeColumn("ended_us", func(o *record.Outcome) *time.Time { return &o.Ended }),
		plainColumn("exit_state", func(o *record.Outcome) *string { return &o.ExitState }),
		plainColumn("core_mhz", func(o *record.Outcome) *dvfsmodel.MHz { return &o.Setting.Core }),
		plainColumn("mem_mhz", func(o *record.Outcome) *dvfsmodel.MHz { return &o.Setting.Mem }),
		numberColumn("time_s", func(o *record.Outcome) *live.Number { return &o.TimeS }),
		numberColumn("slowdown", func(o *record.Outcome) *live.Number { return &o.Slowdown }),
		numberColumn("gpu_energy_j", func(o *record.Outcome) *live.Number { return &o.GPUEnergyJ }),
		plainColumn("gpu_energy_source", func(o *record.Outcome) *record.Source { return &o.GPUSource }),
		numberColumn("node_energy_j", func(o *record.Outcome) *live.Number { return &o.NodeEnergyJ }),
		plainColumn("node_energy_source", func(o *record.Outcome) *record.Source { return &o.NodeSource }),
		numberColumn("mean_power_w", func(o *record.Outcome) *live.Number { return &o.MeanPowerW }),
		numberColumn("peak_power_w", func(o *record.Outcome) *live.Number { return &o.PeakPowerW }),
		numberColumn("utilisation", func(o *record.Outcome) *live.Number { return &o.Utilisation }),
		numberColumn("peak_memory_bytes", func(o *record.Outcome) *live.Number { return &o.PeakMemoryBytes }),
		plainColumn("unmatched", func(o *record.Outcome) *bool { return &o.Unmatched }),
		plainColumn("set_cap_w", func(o *record.Outcome) *dvfsmodel.Watt { return &o.Setting.Cap }),
		numberColumn("cap_w", func(o *record.Outcome) *live.Number { return &o.CapW }),
		numberColumn("other_caps_s", func(o *record.Outcome) *live.Number { return &o.OtherCapsS }),
		{
			"set_power_profile", func(o *record.Outcome) (any, error) { return profileColumn(o.Setting.Profile), nil },
			func(o *record.Outcome) any { return intoProfile{&o.Setting.Profile} },
		},
	}
	detailColumns = []outcomeColumn{
		jsonColumn("gpus", func(o *record.Outcome) (any, bool) { return &o.GPUs, len(o.GPUs) > 0 }),
		jsonColumn("clocks", func(o *record.Outcome) (any, bool) { return &o.Clocks, len(o.Clocks) > 0 }),
		jsonColumn("throttled_s", func(o *record.Outcome) (any, bool) {
			return &o.ThrottledS, len(o.ThrottledS) > 0
		}),
		{
			"series", func(o *record.Outcome) (any, error) { return o.Series.Encode(), nil },
			func(o *record.Outcome) any { return intoSeries{&o.Series} },
		},
		{"readings", func(o *record.Outcome) (any, error) { return o.Readings.Encode(), nil }, nil},
		jsonColumn("stays", func(o *record.Outcome) (any, bool) { return &o.Stays, len(o.Stays) > 0 }),
		jsonColumn("restarted", func(o *record.Outcome) (any, bool) {
			return &o.Restarted, !o.Restarted.IsZero()
		}),
		jsonColumn("implausible", func(o *record.Outcome) (any, bool) {
			return &o.Implausible, !o.Implausible.IsZero()
		}),
		jsonColumn("work_clock", func(o *record.Outcome) (any, bool) {
			return &o.WorkClock, o.WorkClock != (record.WorkClock{})
		}),
		{
			"shared", func(o *record.Outcome) (any, error) { return nullIfFalse(o.Shared), nil },
			func(o *record.Outcome) any { return intoFlag{&o.Shared} },
		},
		jsonColumn("not_locked", func(o *record.Outcome) (any, bool) {
			return &o.NotLocked, o.NotLocked != (live.NotLocked{})
		}),
		jsonColumn("notes", func(o *record.Outcome) (any, bool) { return &o.Notes, len(o.Notes) > 0 }),
	}
)

// plainColumn returns a column of what SQLite knows itself.
func plainColumn[T any](name string, of func(*record.Outcome) *T) outcomeColumn {
	return outcomeColumn{
		name, func(o *record.Outcome) (any, error) { return *of(o), nil },
		func(o *record.Outcome) any { return of(o) },
	}
}

// timeColumn returns a column of microseconds since 1970: NULL if unknown.
func timeColumn(name string, of func(*record.Outcome) *time.Time) outcomeColumn {
	return outcomeColumn{
		name, func(o *record.Outcome) (any, error) { return nullableMicros(*of(o)), nil },
		func(o *record.Outcome) any { return intoTime{of(o)} },
	}
}

// numberColumn returns a column of a figure that may be unknown: NULL then.
func numberColumn(name string, of func(*record.Outcome) *live.Number) outcomeColumn {
	return outcomeColumn{
		name, func(o *record.Outcome) (any, error) { return nullableNumber(*of(o)), nil },
		func(o *record.Outcome) any { return intoNumber{of(o)} },
	}
}

// jsonColumn returns a column of JSON: NULL if there is nothing to say. The value is a pointer.
func jsonColumn(name string, of func(*record.Outcome) (value any, some bool)) outcomeColumn {
	return outcomeColumn{
		name, func(o *record.Outcome) (any, error) {
			value, some := of(o)
			if !some {
				return nil, nil //nolint:nilnil // NULL is the column of nothing
			}
			return jsonText(value)
		},
		func(o *record.Outcome) any {
			value, _ := of(o)
			return intoJSON{value}
		},
	}
}

// What values of rows are scanned into.
type (
	intoTime   struct{ to *time.Time }
	intoNumber struct{ to *live.Number }
	intoJSON   struct{ to any }
	intoSeries struct{ to *record.Series }
	intoFlag   struct{ to *bool }
)

// nullIfFalse returns a flag that few rows have.
func nullIfFalse(is bool) any {
	if is {
		return 1
	}
	return nil
}

// Scan reads a column of flags; NULL is false.
func (i intoFlag) Scan(value any) error {
	*i.to = value != nil && value != int64(0)
	return nil
}

// Scan reads a column of times.
func (i intoTime) Scan(value any) error {
	var column sql.NullInt64
	err := column.Scan(value)
	*i.to = timeOf(column)
	return err
}

// Scan reads a column of numbers.
func (i intoNumber) Scan(value any) error {
	var column sql.NullFloat64
	err := column.Scan(value)
	*i.to = knownNumber(column)
	return err
}

// Scan reads a column of JSON; NULL leaves the value alone.
func (i intoJSON) Scan(value any) error {
	var column sql.NullString
	if err := column.Scan(value); err != nil || !column.Valid {
		return err
	}
	return json.Unmarshal([]byte(column.String), i.to)
}

// Scan reads a column of a series.
func (i intoSeries) Scan(value any) (err error) {
	column, _ := value.([]byte) // nil for NULL
	*i.to, err = record.DecodeSeries(bytes.Clone(column))
	return err
}

// columnValues returns an outcome's values of columns, behind those before.
func columnValues(before []any, columns []outcomeColumn, o *record.Outcome) ([]any, error) {
	for i := range columns {
		value, err := columns[i].write(o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", columns[i].name, err)
		}
		before = append(before, value)
	}
	return before, nil
}

// columnNames lists columns for SQL.
func columnNames(columns []outcomeColumn) string {
	names := make([]string, len(columns))
	for i := range columns {
		names[i] = columns[i].name
	}
	return strings.Join(names, ", ")
}

// The statements of the two tables. Of the insertion's parameters the first ones are the
// columns in order; then id, received_us and digest.
var (
	readColumns = slices.DeleteFunc(slices.Concat(outcomeColumns, detailColumns), func(c outcomeColumn) bool {
		return c.read == nil
	})

	selectOutcomeColumns = "SELECT outcome_id, " + columnNames(readColumns) +
		", course, (SELECT text FROM texts WHERE text_id = gpu_list)"
	selectOutcomes = selectOutcomeColumns + " FROM outcomes " + joinDetails
	insertOutcome  = insertion()
	insertDetails  = fmt.Sprintf("INSERT INTO outcome_details (outcome_id, %s) VALUES (?%s)",
		columnNames(detailColumns),
		strings.Repeat(", ?", len(detailColumns)))
)

// joinDetails joins outcomes with what else is known of them.
const joinDetails = "LEFT JOIN outcome_details USING (outcome_id) LEFT JOIN old_runs USING (outcome_id) "

func insertion() string {
	parameter := func(name string) string {
		return "?" + strconv.Itoa(1+slices.IndexFunc(outcomeColumns, func(c outcomeColumn) bool {
			return c.name == name
		}))
	}
	return "INSERT INTO outcomes (" + columnNames(outcomeColumns) +
		", outcome_id, received_us, digest)\nSELECT ?" +
		strings.Repeat(", ?", len(outcomeColumns)+2) + "\nWHERE NOT EXISTS (SELECT 1 FROM pruned_runs " +
		"WHERE cluster = " +
		parameter("cluster") + " AND run_id = " + parameter("run_id") +
		" AND node = " + parameter("node") +
		")\nON CONFLICT (cluster, run_id, node) DO NOTHING"
}
