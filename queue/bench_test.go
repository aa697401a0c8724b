package queue_test

import (
	"bytes"
	"fmt"
	"strconv"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/queue"
)

// manyJobs are jobs with a model each, as a task-set generator writes them.
func manyJobs(n int) *queue.Batch {
	b := &queue.Batch{Jobs: make([]queue.Job, n)}
	for i := range b.Jobs {
		x := 1 + float64(i%977)/977
		j := queue.NewJob("job-" + strconv.Itoa(i))
		j.Name, j.Arrival, j.Deadline = "gemm", float64(i%1440), 2000+1000*x
		w := dvfsmodel.Watt(x)
		j.Model = &dvfsmodel.Params{P0: 70 * w, Gamma: 24 * w, C: 87 * w, D: 100 * x, Delta: x / 2, T0: 4 * x}
		b.Jobs[i] = j
	}
	return b
}

func benchmarkRead(b *testing.B, write writer) {
	b.Helper()
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("jobs=%d", n), func(b *testing.B) {
			var file bytes.Buffer
			if err := write(&file, manyJobs(n)); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(file.Len()))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := queue.Read(bytes.NewReader(file.Bytes()), "batch", queue.Auto); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkReadCSV(b *testing.B)  { benchmarkRead(b, queue.WriteCSV) }
func BenchmarkReadJSON(b *testing.B) { benchmarkRead(b, queue.WriteJSON) }

func benchmarkWrite(b *testing.B, write writer) {
	b.Helper()
	batch := manyJobs(10_000)
	var file bytes.Buffer
	b.ReportAllocs()
	for b.Loop() {
		file.Reset()
		if err := write(&file, batch); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWriteCSV(b *testing.B)  { benchmarkWrite(b, queue.WriteCSV) }
func BenchmarkWriteJSON(b *testing.B) { benchmarkWrite(b, queue.WriteJSON) }
