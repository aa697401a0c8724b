package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/epplan/epplan/internal/store/record"
)

// Strata are the mean energies of completed runs by workload, GPU model and
// arm: what savings are computed from. They cover runs that ended since a time;
// of pruned ones, whose details are gone, the whole months from that time's
// month on. Runs without a workload and unmatched ones aren't compared.
func (s *Store) Strata(ctx context.Context, cluster string, since time.Time) ([]record.Stratum, error) {
	from := int64(0)
	month := ""
	if !since.IsZero() {
		from, month = since.UnixMicro(), since.UTC().Format("2006-01")
	}
	rows, err := s.read.QueryContext(ctx, `
SELECT ?1, workload, gpu_model, arm, SUM(gn), SUM(g), SUM(g2), SUM(nn), SUM(n), SUM(n2) FROM (
	SELECT workload, gpu_model, arm,
		COUNT(gpu_energy_j) AS gn, TOTAL(gpu_energy_j) AS g, TOTAL(gpu_energy_j * gpu_energy_j) AS g2,
		COUNT(node_energy_j) AS nn, TOTAL(node_energy_j) AS n, TOTAL(node_energy_j * node_energy_j) AS n2
	FROM outcomes
	WHERE cluster = ?1 AND unmatched = 0 AND exit_state = ?2 AND COALESCE(ended_us, received_us) >= ?3
	GROUP BY workload, gpu_model, arm
	UNION ALL
	SELECT workload, gpu_model, arm, done_gpu_runs, done_gpu_j, done_gpu_j2, done_node_runs, done_node_j, done_node_j2
	FROM outcome_months WHERE cluster = ?1 AND month >= ?4)
WHERE workload != ''
GROUP BY workload, gpu_model, arm ORDER BY workload, gpu_model, arm`, cluster, record.Completed, from, month)
	all, err := collect(rows, err, scanStratum)
	if err != nil {
		return nil, fmt.Errorf("mean energies: %w", err)
	}
	return all, nil
}

// scanStratum reads counts, sums and sums of squares.
func scanStratum(row scanner) (record.Stratum, error) {
	var t record.Stratum
	var gpuJ, gpuJ2, nodeJ, nodeJ2 float64
	err := row.Scan(&t.Cluster, &t.Workload, &t.GPUModel, &t.Arm,
		&t.GPU.Runs, &gpuJ, &gpuJ2, &t.Node.Runs, &nodeJ, &nodeJ2)
	t.GPU = mean(t.GPU.Runs, gpuJ, gpuJ2)
	t.Node = mean(t.Node.Runs, nodeJ, nodeJ2)
	return t, err
}

// mean is the mean of n energies with the variance of one, from their sum and
// the sum of their squares.
func mean(n int64, sum, squares float64) record.EnergyMean {
	m := record.EnergyMean{Runs: n}
	if n > 0 {
		m.MeanJ = sum / float64(n)
	}
	if n > 1 {
		m.VarianceJ2 = max(0, (squares-sum*m.MeanJ)/float64(n-1))
	}
	return m
}

// PutHoldout records which part of the jobs runs at default clocks from a time
// on; a second record for the same time replaces the first.
func (s *Store) PutHoldout(ctx context.Context, h record.Holdout) error {
	if h.Cluster == "" || h.From.IsZero() || !(h.Fraction >= 0 && h.Fraction <= 1) {
		return fmt.Errorf("%w: a hold-out needs cluster, time and a fraction from 0 to 1", record.ErrInvalid)
	}
	err := s.do(ctx, func(ctx context.Context, conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, `
INSERT INTO holdouts (cluster, from_us, fraction, note) VALUES (?, ?, ?, ?)
ON CONFLICT (cluster, from_us) DO UPDATE SET fraction = excluded.fraction, note = excluded.note`,
			h.Cluster, record.Micro(h.From).UnixMicro(), h.Fraction, record.Text(h.Note))
		return err
	})
	if err != nil {
		return fmt.Errorf("store hold-out: %w", err)
	}
	return nil
}

// Holdout is the hold-out in force at a time, or ErrNotFound.
func (s *Store) Holdout(ctx context.Context, cluster string, at time.Time) (record.Holdout, error) {
	h := record.Holdout{Cluster: cluster}
	var from sql.NullInt64
	err := s.read.QueryRowContext(ctx, `
SELECT from_us, fraction, note FROM holdouts WHERE cluster = ? AND from_us <= ? ORDER BY from_us DESC LIMIT 1`,
		cluster, at.UnixMicro()).Scan(&from, &h.Fraction, &h.Note)
	h.From = timeOf(from)
	return h, lookup(err, "hold-out at %s", at.UTC().Format(time.RFC3339))
}
