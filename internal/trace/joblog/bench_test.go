package joblog_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/trace/joblog"
	"github.com/epplan/epplan/live"
)

// endless is a log of so many jobs as sacct prints it, each with a step, made
// while it is read.
type endless struct {
	jobs, made int
	rest       []byte
}

func (e *endless) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		if e.made > e.jobs {
			return 0, io.EOF
		}
		if e.made == 0 {
			e.rest = append(e.rest, header...)
		} else {
			day, second := 1+e.made/86400%28, e.made%86400
			at := func(hour int) string {
				return fmt.Sprintf("2026-0%d-%02dT%02d:%02d:%02d", hour, day, second/3600,
					second/60%60, second%60)
			}
			e.rest = fmt.Appendf(e.rest[:0],
				"%d|%d|user%d|lab%d|gpu|normal|COMPLETED|%s|%s|%s|2678400|100000|cpu=8,gres/gpu=2,mem=64G,"+
					"node=1|cpu=8,gres/gpu:h200=2,gres/gpu=2,mem=64G,node=1||train-%d|0:0\n",
				e.made, e.made, e.made%97, e.made%7, at(1), at(2), at(3), e.made%1000)
			e.rest = fmt.Appendf(e.rest,
				"%d.batch|%d.batch||lab%d|||COMPLETED|%s|%s|%s|2678400|||cpu=8,gres/gpu=2,mem=64G,node=1|"+
					"7200000|batch|0:0\n",
				e.made, e.made, e.made%7, at(2), at(2), at(3))
		}
		e.made++
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func TestALongLogIsReadWhole(t *testing.T) {
	const jobs = 20_000
	seen := 0
	tally, err := joblog.ReadSacct(&endless{jobs: jobs}, "log", &joblog.Options{},
		func(p *record.HistoryJob) error {
			if seen++; p.EnergyJ != live.Known(7.2e6) {
				return fmt.Errorf("job %s used %v", p.JobID, p.EnergyJ)
			}
			return nil
		})
	if err != nil || seen != jobs || tally.Steps != jobs || tally.SkippedLines() != 0 {
		t.Errorf("%d jobs, %+v, %v", seen, tally, err)
	}
}

func BenchmarkReadSacctAndWriteATable(b *testing.B) {
	const jobs = 100_000
	for b.Loop() {
		w, err := joblog.NewTableWriter(io.Discard)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := joblog.ReadSacct(&endless{jobs: jobs}, "log", &joblog.Options{}, w.Write); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(2*jobs*b.N)/b.Elapsed().Seconds(), "lines/s")
}
