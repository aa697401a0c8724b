package store_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/cputime"
	"github.com/epplan/epplan/internal/testkit/storetest"
)

// BenchmarkPages measures what pages ask of very many jobs: the median and what 99
// of 100 questions stay under, of each, and what a question takes of processors.
func BenchmarkPages(b *testing.B) {
	for _, jobs := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("jobs=%d", jobs), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "epd.db")
			s := open(b, path, nil)
			storetest.Crowd(b, path, jobs, start)
			for _, q := range questions(s, jobs) {
				b.Run(q.name, func(b *testing.B) {
					took := make([]time.Duration, 0, b.N)
					i, before := 0, cputime.Used(b)
					for b.Loop() {
						i++
						began := time.Now()
						if err := q.ask(b.Context(), i); err != nil {
							b.Fatal(err)
						}
						took = append(took, time.Since(began))
					}
					b.ReportMetric((cputime.Used(b)-before).Seconds()*1e3/float64(i), "processor-ms")
					slices.Sort(took)
					b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "median-ms")
					b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1e3, "p99-ms")
				})
			}
		})
	}
}

// question is what a page asks; i tells asks apart.
type question struct {
	name string
	ask  func(ctx context.Context, i int) error
}

// questions returns those of pages.
func questions(s *store.Store, jobs int) []question { //nolint:funlen // most of it is a table
	list := func(name string, filter func(i int) store.JobFilter, before func(i int) int64) question {
		return question{name, func(ctx context.Context, i int) error {
			f := filter(i)
			f.Cluster = "alpha"
			_, err := s.JobRows(ctx, &f, before(i), 100)
			return err
		}}
	}
	newest := func(int) int64 { return 0 }
	anywhere := func(i int) int64 { return int64(i*7919%jobs + 1) }
	user := func(i int) string { return fmt.Sprintf("user%d", i%200) }
	return []question{
		list("all", func(int) store.JobFilter { return store.JobFilter{} }, newest),
		list("all, anywhere", func(int) store.JobFilter { return store.JobFilter{} }, anywhere),
		list("user", func(i int) store.JobFilter { return store.JobFilter{User: user(i)} }, newest),
		list("workload", func(i int) store.JobFilter {
			return store.JobFilter{Workload: fmt.Sprintf("w%d", i%5000)}
		}, newest),
		list("partition", func(i int) store.JobFilter {
			return store.JobFilter{Partition: fmt.Sprintf("part%d", i%4)}
		}, anywhere),
		list("no such partition", func(int) store.JobFilter { return store.JobFilter{Partition: "none"} },
			newest),
		list("state", func(int) store.JobFilter { return store.JobFilter{State: "FAILED"} }, anywhere),
		list("user and state",
			func(i int) store.JobFilter { return store.JobFilter{User: user(i), State: "FAILED"} }, newest),
		list("partition and rare state", func(int) store.JobFilter {
			return store.JobFilter{Partition: "part1", State: "TIMEOUT"}
		}, newest),
		list("partition and no such account", func(int) store.JobFilter {
			return store.JobFilter{Partition: "part1", Account: "none"}
		}, anywhere),
		list("since", func(int) store.JobFilter { return store.JobFilter{From: start.Add(-48 * time.Hour)} },
			newest),
		list("user since", func(i int) store.JobFilter {
			return store.JobFilter{User: user(i), From: start.Add(-time.Hour)}
		}, newest),
		{"decisions", func(ctx context.Context, _ int) error {
			_, err := s.LastDecisions(ctx, "alpha", "", 0, 100)
			return err
		}},
		{"decisions in a mode that there isn't", func(ctx context.Context, i int) error {
			_, err := s.LastDecisions(ctx, "alpha", "advise", anywhere(i), 100)
			return err
		}},
		{"decisions of a user", func(ctx context.Context, i int) error {
			_, err := s.LastDecisionsOf(ctx, "alpha", user(i), "", 100)
			return err
		}},
		{"last jobs of 5,000 workloads", func(ctx context.Context, _ int) error {
			keys := make([]string, 5000)
			for k := range keys {
				keys[k] = fmt.Sprintf("w%d", k)
			}
			found, err := s.LastJobs(ctx, "alpha", keys)
			if err == nil && len(found) != len(keys) {
				return fmt.Errorf("%d found", len(found))
			}
			return err
		}},
		{"days", func(ctx context.Context, _ int) error {
			_, err := s.RunDays(ctx, "alpha", start.AddDate(0, 0, -30))
			return err
		}},
		{"strata ever", func(ctx context.Context, _ int) error {
			_, err := s.Strata(ctx, "alpha", time.Time{}, time.Time{})
			return err
		}},
		{"strata since a week", func(ctx context.Context, i int) error {
			_, err := s.Strata(ctx, "alpha", start.AddDate(0, 0, -7).Add(-time.Duration(i%24)*time.Hour), time.Time{})
			return err
		}},
		{"strata since 30 days", func(ctx context.Context, i int) error {
			_, err := s.Strata(ctx, "alpha", start.AddDate(0, 0, -30).Add(-time.Duration(i%24)*time.Hour), time.Time{})
			return err
		}},
		{"usage of 30 days by user", func(ctx context.Context, i int) error {
			since := start.AddDate(0, 0, -30).Add(-time.Duration(i%24) * time.Hour)
			_, err := s.Usage(ctx, "alpha", since, since.AddDate(0, 0, 30), "user", "")
			return err
		}},
		{"a job's outcomes and readings", func(ctx context.Context, i int) error {
			if _, err := s.OutcomesOfJob(ctx, "alpha", anywhere(i)); err != nil {
				return err
			}
			_, err := s.Readings(ctx, "alpha", anywhere(i))
			return err
		}},
		{"a workload's outcomes", func(ctx context.Context, i int) error {
			_, err := s.Learning.OutcomesOf(ctx, record.WorkloadKey{
				Cluster: "alpha", Workload: fmt.Sprintf("w%d", i%5000), GPUModel: "V100",
			}, 0, 64)
			return err
		}},
	}
}
