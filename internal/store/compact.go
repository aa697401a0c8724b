package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/epplan/epplan/internal/store/record"
)

const (
	// compactStep is how many runs one transaction compacts, so that other writers wait for
	// milliseconds only.
	compactStep = 200
	// shrinkStep is how many pages are given back in one transaction.
	shrinkStep = 256
	// keptFree is which part of the file stays for what comes, when room is given back.
	keptFree = 10
)

// Compact has runs that were received before a time take less room: their details, their
// decision and what was predicted at submission are replaced by one short row. All that sums,
// savings, models, and lists of jobs are made of stays. It returns how many runs it
// compacted. When it ends early, what it has done is complete and the rest remains.
func (s *Store) Compact(ctx context.Context, before time.Time) (int64, error) {
	var all int64
	for {
		n, err := write(ctx, s.db, func(ctx context.Context, conn *sql.Conn) (int64, error) {
			return compactRuns(ctx, conn, before.UnixMicro())
		})
		if err != nil {
			return all, fmt.Errorf("compact records: %w", err)
		}
		if all += n; n < compactStep {
			return all, nil
		}
	}
}

// OldestInDetail returns when the first of the runs was received that [Store.Compact] hasn't come
// to; zero where there is none.
func (s *Store) OldestInDetail(ctx context.Context) (time.Time, error) {
	var us sql.NullInt64
	err := s.db.read.QueryRowContext(ctx, "SELECT MIN(received_us) FROM ("+selectDetailed+" LIMIT 1)").Scan(&us)
	if err != nil {
		return time.Time{}, fmt.Errorf("find the oldest run in detail: %w", err)
	}
	return timeOf(us), nil
}

// selectDetailed selects the runs that are kept in detail, the oldest first.
const selectDetailed = `
SELECT outcome_id, received_us FROM outcomes INDEXED BY outcomes_by_time WHERE (received_us, outcome_id) >
	(SELECT COALESCE(MAX(received_us), -1 << 62), COALESCE(MAX(outcome_id), 0) FROM compacted)
ORDER BY received_us, outcome_id`

// detailedRun is a run that is about to be compacted.
type detailedRun struct {
	id, received int64
	gpus         sql.NullString
	outcome      record.Outcome // its clocks, throttling and clock at work alone
	mode, config sql.NullString // of its decision
}

// compactRuns returns one step of Compact.
func compactRuns(ctx context.Context, conn *sql.Conn, before int64) (int64, error) {
	rows, err := conn.QueryContext(ctx, `
SELECT outcome_id, received_us, gpus, clocks, throttled_s, work_clock,
	d.mode, d.config_version
FROM (`+selectDetailed+` LIMIT ?1) JOIN outcomes AS o USING (outcome_id, received_us)
	LEFT JOIN outcome_details USING (outcome_id) LEFT JOIN decisions AS d ON `+sameRunSQL+`
WHERE received_us < ?2 ORDER BY received_us, outcome_id`, compactStep, before)
	runs, err := collect(rows, err, func(row scanner) (d detailedRun, err error) {
		err = row.Scan(&d.id, &d.received, &d.gpus, intoJSON{&d.outcome.Clocks},
			intoJSON{&d.outcome.ThrottledS}, intoJSON{&d.outcome.WorkClock},
			&d.mode, &d.config)
		return d, err
	})
	if err != nil || len(runs) == 0 {
		return 0, err
	}
	list, err := compactList(ctx, conn, runs)
	if err != nil {
		return 0, err
	}
	for _, statement := range []string{
		insertOldRuns, deleteOldDecisions, deletePredictions, deleteDetails, cutDetails,
		deleteOldProfiles,
	} {
		if _, err := conn.ExecContext(ctx, statement, list); err != nil {
			return 0, err
		}
	}
	last := runs[len(runs)-1]
	_, err = conn.ExecContext(ctx, "INSERT INTO compacted VALUES (1, ?1, ?2) ON CONFLICT DO UPDATE SET "+
		"received_us = ?1, outcome_id = ?2", last.received, last.id)
	return int64(len(runs)), err
}

// sameRunSQL joins an outcome with the decision of its run, if that says nothing that the two rows
// of a compacted run have no room for.
const sameRunSQL = `d.decision_id = o.decision_id AND d.cluster = o.cluster AND d.job_id = o.job_id
	AND d.job_id != 0 AND d.node = o.node AND d.run_id = o.run_id AND d.workload = o.workload
	AND d.gpu_model = o.gpu_model
	AND d.token = '' AND d.rung = ''`

// rounded returns a column in whole units from 100 on, which take less room.
func rounded(column string) string {
	return "CASE WHEN ABS(" + column + ") < 100 THEN " + column + " ELSE ROUND(" + column + ") END"
}

// The parameter is a list of objects: id, gpus, course, mode, config.
var (
	insertOldRuns = `
INSERT INTO old_runs SELECT o.outcome_id, k.value ->> 'gpus', unhex(k.value ->> 'course'),
	d.created_us, k.value ->> 'mode', k.value ->> 'config', d.model_version, NULLIF(d.arm, o.arm),
	NULLIF(d.core_mhz, o.core_mhz), NULLIF(d.mem_mhz, o.mem_mhz), NULLIF(d.cap_w, o.set_cap_w),
	NULLIF(d.power_profile, o.set_power_profile), d.hold_out, d.constant_arm, d.default_energy_j,
	` + rounded("d.time_s") + ", " + rounded("d.time_low_s") + ", " + rounded("d.time_high_s") + `,
	` + rounded("d.power_w") + ", " + rounded("d.power_low_w") + ", " + rounded("d.power_high_w") + `,
	` + rounded("d.energy_j") + ", " + rounded("d.energy_low_j") + ", " + rounded("d.energy_high_j") + `
FROM json_each(?1) AS k CROSS JOIN outcomes AS o ON o.outcome_id = k.value ->> 'id'
	LEFT JOIN decisions AS d ON ` + sameRunSQL + `
WHERE true ON CONFLICT DO NOTHING`

	deleteOldDecisions = `
DELETE FROM decisions WHERE decision_id IN (SELECT o.decision_id FROM json_each(?1) AS k
	CROSS JOIN outcomes AS o ON o.outcome_id = k.value ->> 'id'
	CROSS JOIN old_runs AS r ON r.outcome_id = o.outcome_id AND r.decided_us IS NOT NULL
	CROSS JOIN decisions AS d ON ` + sameRunSQL + `)`

	// deletePredictions takes out what was predicted when the jobs were submitted, unless they run
	// again.
	deletePredictions = `
DELETE FROM decisions WHERE decision_id IN (SELECT d.decision_id FROM json_each(?1) AS k
	CROSS JOIN outcomes AS o ON o.outcome_id = k.value ->> 'id' AND o.exit_state != 'REQUEUED'
	CROSS JOIN jobs AS j ON j.cluster = o.cluster AND j.job_id = o.job_id AND j.submitted_us = o.submitted_us
	CROSS JOIN decisions AS d ON d.cluster = j.cluster AND d.token = j.token AND d.token != '' AND d.job_id = 0)`

	// deleteDetails and cutDetails take out what isn't in old_runs. What few runs have, and people
	// may ask for, stays where it is.
	deleteDetails = `
DELETE FROM outcome_details WHERE outcome_id IN (SELECT value ->> 'id' FROM json_each(?1))
	AND stays IS NULL AND restarted IS NULL AND implausible IS NULL AND notes IS NULL AND shared IS NULL
	AND not_locked IS NULL`
	cutDetails = `
UPDATE outcome_details SET gpus = NULL, clocks = NULL, throttled_s = NULL, series = NULL, readings = NULL,
	work_clock = NULL WHERE outcome_id IN (SELECT value ->> 'id' FROM json_each(?1))`

	deleteOldProfiles = "DELETE FROM outcome_profiles WHERE outcome_id IN (SELECT value ->> 'id' FROM json_each(?1))"
)

// compactList returns what the statements of a step need to know of its runs.
func compactList(ctx context.Context, conn *sql.Conn, runs []detailedRun) (string, error) {
	type one struct {
		ID     int64 `json:"id"`
		GPUs   any   `json:"gpus"`
		Course any   `json:"course"`
		Mode   any   `json:"mode"`
		Config any   `json:"config"`
	}
	all := make([]one, len(runs))
	known := make(map[string]int64)
	for i := range runs {
		r := &runs[i]
		all[i].ID = r.id
		for _, text := range []struct {
			of sql.NullString
			to *any
		}{{r.gpus, &all[i].GPUs}, {r.mode, &all[i].Mode}, {r.config, &all[i].Config}} {
			if !text.of.Valid {
				continue
			}
			id, ok := known[text.of.String]
			if !ok {
				var err error
				if id, err = textID(ctx, conn, text.of.String); err != nil {
					return "", err
				}
				known[text.of.String] = id
			}
			*text.to = id
		}
		if course := encodeCourse(&r.outcome); course != nil {
			all[i].Course = hex.EncodeToString(course)
		}
	}
	return jsonText(all)
}

// textID returns the number of a text that many rows share, which gets one if it has none: from its hash,
// or after that, if that is taken.
func textID(ctx context.Context, conn *sql.Conn, text string) (int64, error) {
	sum := sha256.Sum256([]byte(text))
	const bits = 23 // three bytes in SQLite
	for id := int64(binary.BigEndian.Uint32(sum[:]) >> (32 - bits)); ; id++ {
		var there string
		err := conn.QueryRowContext(ctx, "SELECT text FROM texts WHERE text_id = ?", id).Scan(&there)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			_, err = conn.ExecContext(ctx, "INSERT INTO texts VALUES (?, ?)", id, text)
			return id, err
		case err != nil || there == text:
			return id, err
		}
	}
}

// Shrink gives room that pruning and compacting freed back to the file system, in short steps, but a
// tenth of the file, which new records take. It returns how many bytes the file is to lose once its log is
// merged.
func (s *Store) Shrink(ctx context.Context) (int64, error) {
	var all int64
	for {
		n, err := write(ctx, s.db, shrinkFile)
		if err != nil {
			return all, fmt.Errorf("give room back: %w", err)
		}
		if all += n; n == 0 {
			return all, nil
		}
	}
}

// shrinkFile returns one step of Shrink: the bytes that were given back.
func shrinkFile(ctx context.Context, conn *sql.Conn) (int64, error) {
	var pages, free, size int64
	if err := conn.QueryRowContext(ctx, `
SELECT page_count, freelist_count, page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size`).
		Scan(&pages, &free, &size); err != nil {
		return 0, err
	}
	step := min(free-pages/keptFree, shrinkStep)
	if step <= 0 {
		return 0, nil
	}
	rows, err := conn.QueryContext(ctx, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", step))
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() { // each is a page
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	var left int64
	err = conn.QueryRowContext(ctx, "SELECT page_count FROM pragma_page_count").Scan(&left)
	return max(0, pages-left) * size, err
}
