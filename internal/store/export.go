package store

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// tables are what can be exported, in the order of docs/records.md.
var tables = []string{
	"jobs", "decisions", "outcomes", "outcome_details", "outcome_profiles", "outcome_conflicts", "models",
	"models_out",
	"old_runs", "texts", "compacted", "outcome_months", "pruned_runs", "history", "features", "run_days",
	"energy_sums",
}

// Tables returns the names of the tables that [Store.Export] knows.
func Tables() []string { return slices.Clone(tables) }

// Export writes a table as JSON lines: one object per row, its keys the columns
// in order. Bytes are in base64, except the utilisation series, the profile and
// the readings, which are objects of their intervals and values, and job names, which are text with
// other bytes replaced. Rows are streamed; all are of one moment.
func (s *Store) Export(ctx context.Context, w io.Writer, table string) error {
	if !slices.Contains(tables, table) {
		return fmt.Errorf("export table %q: %w: it is one of %s", table, ErrNotFound,
			strings.Join(tables, ", "))
	}
	rows, err := s.db.read.QueryContext(ctx, "SELECT * FROM "+table) //nolint:gosec // one of our own names
	if err != nil {
		return fmt.Errorf("export table %s: %w", table, typedError(err))
	}
	defer func() { _ = rows.Close() }()
	if err := exportRows(w, rows); err != nil {
		return fmt.Errorf("export table %s: %w", table, typedError(err))
	}
	return nil
}

func exportRows(w io.Writer, rows *sql.Rows) error {
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values := make([]any, len(columns))
	into := make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	out := bufio.NewWriter(w)
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		line, err := exportLine(columns, values)
		if err != nil {
			return err
		}
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return out.Flush()
}

// exportLine returns a row as a JSON object and a newline.
func exportLine(columns []string, values []any) ([]byte, error) {
	line := []byte{'{'}
	for i, column := range columns {
		value, err := exportValue(column, values[i])
		if err != nil {
			return nil, err
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", column, err)
		}
		if i > 0 {
			line = append(line, ',')
		}
		line = append(line, '"')
		line = append(line, column...)
		line = append(line, '"', ':')
		line = append(line, encoded...)
	}
	return append(line, '}', '\n'), nil
}

// embedded are the columns that hold JSON.
var embedded = []string{
	"gpus", "clocks", "throttled_s", "stays", "restarted", "implausible", "body", "coefficients",
	"covariance",
}

// exportValue returns a column as a value for JSON.
func exportValue(column string, value any) (any, error) {
	switch v := value.(type) {
	case float64:
		return live.Known(v), nil // what is no number is unknown
	case string:
		if slices.Contains(embedded, column) {
			return json.RawMessage(v), nil
		}
	case []byte:
		switch column {
		case "name":
			return record.CleanText(string(v)), nil
		case "series":
			return exportSeries(v)
		case "profile":
			return exportProfile(v)
		case "readings":
			return exportReadings(v)
		case "course":
			return exportCourse(v)
		}
	}
	return value, nil
}

// exportProfile returns a profile for people: unknown points are null.
func exportProfile(blob []byte) (any, error) {
	p, err := record.DecodeProfile(blob)
	if err != nil {
		return nil, err
	}
	type one struct {
		IntervalS       float64       `json:"interval_s"`
		Utilisation     []live.Number `json:"utilisation"`
		MemoryIntervalS float64       `json:"memory_interval_s"`
		Memory          []live.Number `json:"memory"`
		PeakMem         int64         `json:"peak_memory_bytes"`
		MemTotal        int64         `json:"memory_bytes"`
	}
	gpus := make([]one, len(p.GPUs))
	for i := range p.GPUs {
		g := &p.GPUs[i]
		gpus[i] = one{
			g.Utilisation.Interval().Seconds(), seriesNumbers(&g.Utilisation), g.Memory.Interval().Seconds(),
			seriesNumbers(&g.Memory), g.PeakMem, g.MemTotal,
		}
	}
	return gpus, nil
}

// exportCourse returns what remains of the course of a run, with the names that its details had.
func exportCourse(blob []byte) (any, error) {
	var o record.Outcome
	if err := decodeCourse(blob, &o); err != nil {
		return nil, err
	}
	return struct {
		Clocks     []live.Residency   `json:"clocks"`
		ThrottledS map[string]float64 `json:"throttled_s,omitempty"`
		WorkClock  record.WorkClock   `json:"work_clock,omitzero"`
	}{o.Clocks, o.ThrottledS, o.WorkClock}, nil
}

// exportReadings are readings for people: of unknown points all is null.
func exportReadings(blob []byte) (any, error) {
	r, err := record.DecodeReadings(blob)
	if err != nil {
		return nil, err
	}
	type band struct {
		Mean []live.Number `json:"mean"`
		Low  []live.Number `json:"low"`
		High []live.Number `json:"high"`
	}
	of := func(points []record.ValueRange) band {
		mean, low, high := record.Columns(points)
		return band{mean, low, high}
	}
	return struct {
		GPUs      int     `json:"gpus"`
		IntervalS float64 `json:"interval_s"`
		Power     band    `json:"power_w"`
		Core      band    `json:"core_mhz"`
	}{r.GPUs, r.Interval.Seconds(), of(r.Power), of(r.Core)}, nil
}

// exportSeries returns a series for people: unknown points are null.
func exportSeries(blob []byte) (any, error) {
	series, err := record.DecodeSeries(blob)
	if err != nil {
		return nil, err
	}
	return struct {
		IntervalS   float64       `json:"interval_s"`
		Utilisation []live.Number `json:"utilisation"`
	}{series.Interval().Seconds(), seriesNumbers(&series)}, nil
}

// seriesNumbers returns the points of a series.
func seriesNumbers(s *record.Series) []live.Number {
	points := make([]live.Number, s.Len())
	for i := range points {
		points[i] = s.At(i)
	}
	return points
}
