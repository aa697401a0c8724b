package store

import (
	"bytes"
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

// outcomeColumn is one value of an outcome as a column: what is written, and what a
// row's value is scanned into.
type outcomeColumn struct {
	name  string
	write func(*record.Outcome) (any, error)
	read  func(*record.Outcome) any // nil: only asked for by name, because it is large
}

// outcomeColumns are the columns of the table outcomes less the id, received_us and digest,
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
	}
)

// plainColumn is a column of what SQLite knows itself.
func plainColumn[T any](name string, of func(*record.Outcome) *T) outcomeColumn {
	return outcomeColumn{
		name, func(o *record.Outcome) (any, error) { return *of(o), nil },
		func(o *record.Outcome) any { return of(o) },
	}
}

// timeColumn is a column of microseconds since 1970: NULL if unknown.
func timeColumn(name string, of func(*record.Outcome) *time.Time) outcomeColumn {
	return outcomeColumn{
		name, func(o *record.Outcome) (any, error) { return nullableMicros(*of(o)), nil },
		func(o *record.Outcome) any { return intoTime{of(o)} },
	}
}

// numberColumn is a column of a figure that may be unknown: NULL then.
func numberColumn(name string, of func(*record.Outcome) *live.Number) outcomeColumn {
	return outcomeColumn{
		name, func(o *record.Outcome) (any, error) { return nullableNumber(*of(o)), nil },
		func(o *record.Outcome) any { return intoNumber{of(o)} },
	}
}

// jsonColumn is a column of JSON: NULL if there is nothing to say. The value is a pointer.
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
)

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

// columnValues are an outcome's values of columns, behind those before.
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

	selectOutcomeColumns = "SELECT outcome_id, " + columnNames(readColumns)
	selectOutcomes       = selectOutcomeColumns +
		" FROM outcomes LEFT JOIN outcome_details USING (outcome_id) "
	insertOutcome = insertion()
	insertDetails = fmt.Sprintf("INSERT INTO outcome_details (outcome_id, %s) VALUES (?%s)",
		columnNames(detailColumns),
		strings.Repeat(", ?", len(detailColumns)))
)

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
		" AND node IN ('', " + parameter("node") +
		"))\nON CONFLICT (cluster, run_id, node) DO NOTHING"
}
