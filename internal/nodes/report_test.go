package nodes

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
)

// endless returns a report as large as the controller takes one.
func endless(node string) *epdapi.NodeReport {
	r := report(node, 100)
	for i := range epdapi.MaxReportRuns {
		run := epdapi.NodeRun{
			Run: epdapi.Run{
				ID: fmt.Sprint(node, i), Job: 7, HandsOff: strings.Repeat("x", 1000),
				GPUs: []string{"GPU-" + node},
			}, Readings: readings(200),
		}
		r.Runs = append(r.Runs, run)
	}
	return r
}

func TestReportsTakeBoundedMemory(t *testing.T) {
	const most, nodes = 4 << 20, 400
	r := newReceived()
	r.most = most
	for i := range 100 {
		r.hear(report(fmt.Sprintf("honest%d", i), 100, epdapi.NodeRun{
			Run: epdapi.Run{ID: "run", Job: 1, GPUs: []string{"GPU-1"}}, Readings: readings(150),
		}))
	}
	before := inHeap()
	for round := range 2 {
		for i := range nodes {
			r.hear(endless(fmt.Sprintf("evil%d", i)))
			if r.bytes > most {
				t.Fatalf("round %d: after %d reports they take %d bytes", round, i+1, r.bytes)
			}
		}
	}
	if grown := inHeap() - before; grown > 2*most {
		t.Errorf("%d bytes are held for reports that may take %d", grown, most)
	}
	sum := 0
	for name, h := range r.All() {
		sum += h.bytes
		if strings.HasPrefix(name, "honest") && (h.bare || len(h.Message.Runs) != 1) {
			t.Errorf("%s lost what it told", name)
		}
		if h.bare && (h.Message.LeftOut != epdapi.MaxReportRuns || len(h.Message.Runs) != 0 ||
			len(h.Message.GPUs) != 2) {
			t.Errorf("%s: %+v", name, h.Message)
		}
	}
	if sum != r.bytes || len(r.byNode) != 100+nodes {
		t.Errorf("%d nodes with %d bytes, %d are counted", len(r.byNode), sum, r.bytes)
	}
	r.most = 100 << 10 // not even room for what is left of each
	r.hear(endless("last"))
	if r.bytes > r.most || len(r.byNode) == 0 {
		t.Errorf("%d bytes of %d nodes", r.bytes, len(r.byNode))
	}
	r.now = r.now.Add(25 * time.Hour)
	r.hear(report("n1", 1))
	if want := r.Of("n1").bytes; len(r.byNode) != 1 || r.bytes != want {
		t.Errorf("a day later %d nodes, %d bytes, want %d", len(r.byNode), r.bytes, want)
	}
}

// What a report is thought to take is near to what it takes.
func TestTheSizeOfAReportIsWhatItTakes(t *testing.T) {
	const nodes = 200
	for name, one := range map[string]func(
		string,
	) *epdapi.NodeReport{"full": fullReport, "endless": endless} {
		kept := make([]*Report, nodes)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		counted := 0
		for i := range kept {
			kept[i] = newReport(start, one(fmt.Sprintf("n%d", i)))
			counted += kept[i].bytes
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		took := float64(after.HeapAlloc) - float64(before.HeapAlloc)
		if part := took / float64(counted); part < 0.3 || part > 1.5 {
			t.Errorf("%s: %.0f bytes each, counted as %d", name, took/nodes, counted/nodes)
		} else {
			t.Logf("%s: %.0f bytes each, counted as %d", name, took/nodes, counted/nodes)
		}
		runtime.KeepAlive(kept)
	}
}
