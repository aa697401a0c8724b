package store_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store"
)

// BenchmarkPutOutcome measures acknowledged outcomes per second, each committed
// with synchronous=FULL, by the number of concurrent callers.
func BenchmarkPutOutcome(b *testing.B) {
	for _, callers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "epd.db"), nil) // on a disk
			var next atomic.Int64
			b.SetParallelism(callers) // times GOMAXPROCS
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					put(b, s, outcome(int(next.Add(1))), store.Stored)
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "outcomes/s")
		})
	}
}

// BenchmarkDecision measures looking up the decision for a job on a node among
// many, the time that 99 of 100 look-ups stay under, and how long opening such a
// database takes, which reads all of it.
func BenchmarkDecision(b *testing.B) {
	for _, jobs := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("jobs=%d", jobs), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "epd.db")
			s := open(b, path, nil)
			multiply(b, s, path, jobs)
			opened := time.Now()
			if err := open(b, path, nil).Close(); err != nil {
				b.Fatal(err)
			}
			opening := time.Since(opened)
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			took := make([]time.Duration, 0, b.N)
			at := uint64(1)
			b.ResetTimer()
			for b.Loop() {
				at = at*6364136223846793005 + 1442695040888963407
				begin := time.Now()
				if _, err := s.DecisionsOfJob(ctx, "alpha", int64(at>>33)%int64(jobs)+1); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begin))
			}
			b.ReportMetric(opening.Seconds(), "open-s")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// multiply makes jobs 1 to n and a decision for each from one of each.
func multiply(b *testing.B, s *store.Store, path string, n int) {
	b.Helper()
	if err := s.PutJob(b.Context(), job(2_000_000)); err != nil {
		b.Fatal(err)
	}
	if _, err := s.PutDecision(b.Context(), decision(2_000_000)); err != nil {
		b.Fatal(err)
	}
	for _, statement := range []string{
		`WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < ?)
INSERT INTO jobs SELECT NULL, cluster, i, submitted_us, 't' || i, user, account, partition, name, script_hash, workload,
	limit_s, nodes, gpus, state FROM jobs, i`,
		`WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < ?)
INSERT INTO decisions SELECT NULL, cluster, i, node, 't' || i, run_id, workload, gpu_model, core_mhz, mem_mhz,
	time_s, time_low_s, time_high_s, power_w, power_low_w, power_high_w, energy_j, energy_low_j, energy_high_j,
	reason, mode, config_version, model_version, arm, created_us FROM decisions, i`,
	} {
		if _, err := raw(b, path).ExecContext(b.Context(), statement, n); err != nil {
			b.Fatal(err)
		}
	}
}
