package nodes

import (
	"fmt"
	"runtime"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

var start = time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)

// received is reports that come as time goes by.
type received struct {
	*Reports
	now    time.Time
	shares func(slurm.JobID) bool
}

func newReceived() *received {
	return &received{New(), start, func(slurm.JobID) bool { return false }}
}

// hear has a report come.
func (r *received) hear(m *epdapi.NodeReport) { r.Put(r.now, m, r.shares) }

// readings returns those of a run of a few seconds.
func readings(watts float64) record.Readings {
	s := record.NewReadingsSampler(1, time.Second)
	s.Add(0, 5*time.Second, watts, 1087)
	return s.Readings()
}

// report returns what the agent of a node tells.
func report(node string, watts float64, runs ...epdapi.NodeRun) *epdapi.NodeReport {
	return &epdapi.NodeReport{
		Node: node, Version: "1", At: start, Runs: runs,
		GPUs: []epdapi.NodeGPU{{
			GPU: epdapi.GPU{
				UUID: "GPU-" + node, Model: "V100", Power: watts, Setting: dvfsmodel.Setting{Core: 1087},
				ExternalChange: "somebody",
			}, Read: true, Journal: &epdapi.JournalEntry{Job: 1},
		}, {GPU: epdapi.GPU{UUID: "GPU-lost"}}},
		Troubles: []epdapi.Problem{{Message: "of bob's job"}},
	}
}

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

// inHeap returns how many bytes are in use.
func inHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
