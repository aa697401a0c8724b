package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/epplan/epplan/internal/store/record"
)

// KeptVersions is how many versions of a workload's model stay, beside the one in use: a workload that runs
// all day is fitted anew all day.
const KeptVersions = 20

// PutModel stores a further version of a workload's model and returns its
// number. If m.InUse, it takes the place of the one in use. Of the versions before it the last
// [KeptVersions] stay, and the one in use.
func (l *Learning) PutModel(ctx context.Context, m *record.Model) (int64, error) {
	if m.Cluster == "" || m.Workload == "" || m.Form == "" || m.Created.IsZero() {
		return 0, fmt.Errorf("%w: a model needs cluster, workload, form and time", record.ErrInvalid)
	}
	coefficients, err := jsonText(m.Coefficients)
	if err != nil {
		return 0, err
	}
	covariance, err := jsonText(m.Covariance)
	if err != nil {
		return 0, err
	}
	version, err := write(ctx, l.db, func(ctx context.Context, conn *sql.Conn) (int64, error) {
		version, err := nextVersion(ctx, conn, m.WorkloadKey)
		if err != nil {
			return 0, err
		}
		if m.InUse {
			if err := retireModel(ctx, conn, m.WorkloadKey); err != nil {
				return 0, err
			}
			if err := clearRetired(ctx, conn, m.WorkloadKey); err != nil {
				return 0, err
			}
		}
		_, err = conn.ExecContext(ctx, `
INSERT INTO models (cluster, workload, gpu_model, version, form, coefficients, covariance, samples,
	created_us, in_use,
	note)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			m.Cluster, m.Workload, m.GPUModel, version, record.CleanText(m.Form), coefficients,
			covariance, m.Samples,
			record.StoredTime(m.Created).UnixMicro(), m.InUse, record.CleanText(m.Note))
		if err != nil {
			return 0, err
		}
		_, err = conn.ExecContext(ctx, `
DELETE FROM models WHERE cluster = ? AND workload = ? AND gpu_model = ? AND version < ? AND in_use = 0`,
			m.Cluster, m.Workload, m.GPUModel, version-KeptVersions)
		return version, err
	})
	if err != nil {
		return 0, fmt.Errorf("store model of workload %s: %w", m.Workload, err)
	}
	return version, nil
}

// nextVersion returns one more than the last version of a key.
func nextVersion(ctx context.Context, conn *sql.Conn, key record.WorkloadKey) (version int64, err error) {
	err = conn.QueryRowContext(ctx, `
SELECT COALESCE(MAX(version), 0) + 1 FROM models WHERE cluster = ? AND workload = ? AND gpu_model = ?`,
		key.Cluster, key.Workload, key.GPUModel).Scan(&version)
	return version, err
}

// retireModel takes the model of a key out of use.
func retireModel(ctx context.Context, conn *sql.Conn, key record.WorkloadKey) error {
	_, err := conn.ExecContext(ctx, `
UPDATE models SET in_use = 0 WHERE cluster = ? AND workload = ? AND gpu_model = ? AND in_use = 1`,
		key.Cluster, key.Workload, key.GPUModel)
	return err
}

// clearRetired forgets why a key had no model in use.
func clearRetired(ctx context.Context, conn *sql.Conn, key record.WorkloadKey) error {
	_, err := conn.ExecContext(ctx,
		"DELETE FROM models_out WHERE cluster = ? AND workload = ? AND gpu_model = ?",
		key.Cluster, key.Workload, key.GPUModel)
	return err
}

// UseModel puts a version of a key in use and leaves a note on it. Version 0
// takes the one in use out, so that the workload runs at default clocks; the
// note, unless it is empty, then says why until another version is in use.
func (l *Learning) UseModel(ctx context.Context, key record.WorkloadKey, version int64, note string) error {
	now := record.StoredTime(l.db.now()).UnixMicro()
	err := l.db.do(ctx, func(ctx context.Context, conn *sql.Conn) error {
		return useModel(ctx, conn, key, version, note, now)
	})
	if err != nil {
		return fmt.Errorf("use model %d of workload %s: %w", version, key.Workload, err)
	}
	return nil
}

func useModel(
	ctx context.Context, conn *sql.Conn, key record.WorkloadKey, version int64, note string, now int64,
) error {
	if err := retireModel(ctx, conn, key); err != nil {
		return err
	}
	if version == 0 && note != "" {
		_, err := conn.ExecContext(ctx, `
INSERT INTO models_out (cluster, workload, gpu_model, note, since_us) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET note = excluded.note, since_us = excluded.since_us`,
			key.Cluster, key.Workload, key.GPUModel, record.CleanText(note), now)
		return err
	}
	if err := clearRetired(ctx, conn, key); err != nil || version == 0 {
		return err
	}
	result, err := conn.ExecContext(ctx, `
UPDATE models SET in_use = 1, note = ? WHERE cluster = ? AND workload = ? AND gpu_model = ? AND version = ?`,
		record.CleanText(note), key.Cluster, key.Workload, key.GPUModel, version)
	if err != nil {
		return err
	}
	changed, err := result.RowsAffected()
	if err == nil && changed == 0 {
		return ErrNotFound
	}
	return err
}

const selectModels = `
SELECT cluster, workload, gpu_model, version, form, coefficients, covariance, samples, created_us, in_use,
	note
FROM models WHERE cluster = ? AND workload = ? AND gpu_model = ? `

// Model returns the model in use for a key, or ErrNotFound.
func (l *Learning) Model(ctx context.Context, key record.WorkloadKey) (record.Model, error) {
	m, err := scanModel(l.db.read.QueryRowContext(ctx, selectModels+"AND in_use = 1",
		key.Cluster, key.Workload, key.GPUModel))
	return m, lookupError(err, "model in use for workload %s on %s", key.Workload, key.GPUModel)
}

// Models lists all versions of a key, newest first.
func (l *Learning) Models(ctx context.Context, key record.WorkloadKey) ([]record.Model, error) {
	rows, err := l.db.read.QueryContext(ctx, selectModels+"ORDER BY version DESC", key.Cluster, key.Workload,
		key.GPUModel)
	return list(rows, err, scanModel, "models of workload %s", key.Workload)
}

// ModelsInUse lists the models in use on a cluster, by workload and GPU model.
func (l *Learning) ModelsInUse(ctx context.Context, cluster string) ([]record.Model, error) {
	rows, err := l.db.read.QueryContext(ctx, `
SELECT cluster, workload, gpu_model, version, form, coefficients, covariance, samples, created_us, in_use,
	note
FROM models WHERE cluster = ? AND in_use = 1 ORDER BY workload, gpu_model`, cluster)
	return list(rows, err, scanModel, "models in use")
}

// RetiredModels lists the workloads of a cluster whose model was taken out of use
// with a note, or let go without one in use, by workload and GPU model.
func (l *Learning) RetiredModels(ctx context.Context, cluster string) ([]record.RetiredModel, error) {
	rows, err := l.db.read.QueryContext(ctx, `
SELECT cluster, workload, gpu_model, note, since_us FROM models_out WHERE cluster = ? ORDER BY workload, gpu_model`, cluster)
	return list(rows, err, func(row scanner) (record.RetiredModel, error) {
		var o record.RetiredModel
		var since sql.NullInt64
		err := row.Scan(&o.Cluster, &o.Workload, &o.GPUModel, &o.Note, &since)
		o.Since = timeOf(since)
		return o, err
	}, "models out of use")
}

// scanModel reads a row of selectModels.
func scanModel(row scanner) (record.Model, error) {
	var m record.Model
	var coefficients, covariance string
	var created sql.NullInt64
	err := row.Scan(&m.Cluster, &m.Workload, &m.GPUModel, &m.Version, &m.Form, &coefficients,
		&covariance, &m.Samples,
		&created, &m.InUse, &m.Note)
	if err != nil {
		return m, err
	}
	m.Coefficients, m.Created = []byte(coefficients), timeOf(created)
	return m, json.Unmarshal([]byte(covariance), &m.Covariance)
}
