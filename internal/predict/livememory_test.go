package predict_test

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/predict"
)

// clusterPasts are jobs as epd knows them, with three labels and two sizes. Each name
// and script is run so often; 0 is as often as templates are.
func clusterPasts(seed uint64, jobs, runs int) []predict.Past {
	all := pasts(seed, jobs)
	for i := range all {
		p := &all[i]
		name := p.Job.Labels[0]
		if runs > 0 {
			one := i % (jobs / runs)
			name, p.Script = "run-"+strconv.Itoa(one), uint64(one+1)
			p.Job.Owner = "u" + strconv.Itoa(one%100)
			p.Job.Sizes = []float64{float64(int(1) << (one % 3))}
		}
		p.Job.Labels = []string{name, "gpu", "account" + p.Job.Owner}
		p.Job.Sizes = append(p.Job.Sizes, 1)
	}
	return all
}

// heap returns what is reachable, in bytes.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	return inHeap()
}

// inHeap returns what is in the heap, garbage too.
func inHeap() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// most returns the most that is in the heap until it is stopped.
func most() (stop func() uint64) {
	end, found := make(chan struct{}), make(chan uint64)
	go func() {
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		peak := uint64(0)
		for {
			select {
			case <-end:
				found <- peak
				return
			case <-ticker.C:
				peak = max(peak, inHeap())
			}
		}
	}()
	return func() uint64 { close(end); return <-found }
}

// BenchmarkLiveMemory measures what remains after a training and the most that a
// second one has in the heap, both beyond what there was before the first one.
func BenchmarkLiveMemory(b *testing.B) {
	const jobs = 20_000
	for name, runs := range map[string]int{
		"templates": 0, "each five times": 5, "each twice": 2,
		"each once": 1,
	} {
		b.Run(name, func(b *testing.B) {
			defer debug.SetGCPercent(debug.SetGCPercent(25)) // as epd
			read := func(context.Context) ([]predict.Past, error) { return clusterPasts(1, jobs, runs), nil }
			for b.Loop() {
				before := heap()
				l := predict.NewLive(nil)
				if _, err := l.Train(b.Context(), read); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(heap()-before)/jobs, "B/job")
				stop := most()
				if _, err := l.Train(b.Context(), read); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(stop()-before)/1e6, "MB-peak")
				runtime.KeepAlive(l)
			}
		})
	}
}
