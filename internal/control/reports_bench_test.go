package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// fullReport is that of a node of eight GPUs with a run of an hour on each.
func fullReport(node string) *epdapi.NodeReport {
	r := report(node, 300)
	r.GPUs = nil
	for i := range 8 {
		s := record.NewReadingsSampler(1, time.Second)
		for at := range 3600 {
			s.Add(time.Duration(at)*time.Second, time.Duration(at+1)*time.Second, 250+float64(at%60), 1200)
		}
		uuid := fmt.Sprintf("GPU-0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f%d", i)
		r.GPUs = append(r.GPUs, epdapi.NodeGPU{
			GPU: epdapi.GPU{
				UUID: uuid, Bus: "00000000:17:00.0", Model: "NVIDIA H200", Minor: i, Power: 312.5,
				Setting: dvfsmodel.Setting{Core: 1200, Mem: 2619}, LockedCore: 1200,
			},
			Read: true, Utilisation: live.Known(0.93), Journal: &epdapi.JournalEntry{
				Since: start, RunID: "run", Job: 7,
			},
		})
		r.Runs = append(r.Runs, epdapi.NodeRun{
			Run: epdapi.Run{
				ID: fmt.Sprintf("0123456789abcdef-%d", i), Job: uint32(i), GPUs: []string{uuid},
				Setting: dvfsmodel.Setting{Core: 1200}, Started: start,
			}, Partition: "gpu", Readings: s.Readings(),
		})
	}
	return r
}

// BenchmarkReport measures what a report costs the controller once its credential
// is checked, and what adding up those of very many nodes does.
func BenchmarkReport(b *testing.B) {
	r := newRig(b, nil)
	body, err := json.Marshal(fullReport("n1"))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("take", func(b *testing.B) {
		h := r.Handler()
		for b.Loop() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodPost, epdapi.PathReport,
				bytes.NewReader(body)))
			if w.Code != http.StatusOK {
				b.Fatal(w.Body)
			}
		}
		b.ReportMetric(float64(len(body)), "bytes")
	})
	for _, nodes := range []int{1000, 10_000} {
		for i := range nodes {
			r.hear(fullReport(fmt.Sprintf("n%d", i)))
		}
		b.Run(fmt.Sprintf("power of %d nodes", nodes), func(b *testing.B) {
			for b.Loop() {
				r.Queries.Power()
			}
		})
		b.Run(fmt.Sprintf("list of %d nodes", nodes), func(b *testing.B) {
			for b.Loop() {
				r.Queries.Nodes(b.Context(), query.ForEPD())
			}
		})
	}
}
