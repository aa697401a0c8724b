package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/testkit/browsertest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/testkit/storetest"
	"github.com/epplan/epplan/live"
)

// crowdEnv names a folder for the database of very many jobs, which is used again
// if it is there: to make one takes minutes.
const crowdEnv = "EPPLAN_CROWD"

// What BenchmarkFirstPaint has.
const (
	paintJobs   = 1_000_000
	paintQueue  = 1_000 // jobs in Slurm's queue
	paintNodes  = 200   // that report
	paintGoalMS = 300
)

// paintPages are the pages that are looked at.
var paintPages = []struct{ name, path string }{
	{"nothing", "/healthz"}, // what the browser itself takes
	{"overview", "/"},
	{"jobs", "/jobs"},
	{"jobs of a user", "/jobs?user=user42"},
	{"jobs of a partition that failed", "/jobs?partition=part1&state=FAILED"},
	{"jobs in a state that there isn't", "/jobs?state=TIMEOUT"},
	{"jobs of an account that there isn't", "/jobs?account=none"},
	{"jobs of a workload", "/jobs?workload=w17"},
	{"jobs further back", "/jobs?before=500000"},
	{"job", "/jobs/654321"},
	{"queue", "/queue"},
	{"nodes", "/nodes"},
	{"node", "/nodes/n17"},
	{"workloads", "/workloads"},
	{"workload", "/workloads/w17?gpu=V100"},
}

// BenchmarkFirstPaint measures epd's pages in a browser, with 1,000,000 jobs in its
// records, a queue of 1,000 and 200 nodes that report: from the request until the
// first byte came, and until something was painted; the median and the longest.
// Warm pages were looked at before; a cold one is the first since epd was started.
func BenchmarkFirstPaint(b *testing.B) {
	dir := crowdDir(b)
	slurmOf(b, paintQueue)
	b.Run("warm", func(b *testing.B) {
		p := browsertest.OpenQuietly(b, "about:blank", browsertest.View{})
		address, stop := paintEPD(b, dir, p)
		defer stop()
		for _, page := range paintPages {
			p.Go(address + page.path)
			b.Run(page.name, func(b *testing.B) {
				var all paints
				for b.Loop() {
					p.Go(address + page.path)
					all.add(p)
				}
				all.report(b)
			})
		}
	})
	for _, page := range paintPages {
		b.Run("cold/"+page.name, func(b *testing.B) {
			p := browsertest.OpenQuietly(b, "about:blank", browsertest.View{})
			var all paints
			for b.Loop() {
				address, stop := paintEPD(b, dir, p)
				p.Go(address + page.path)
				all.add(p)
				p.Go("about:blank")
				stop()
			}
			all.report(b)
		})
	}
}

// crowdDir returns a state folder of epd with very many jobs.
func crowdDir(b *testing.B) string {
	b.Helper()
	dir := os.Getenv(crowdEnv)
	if dir == "" {
		dir = b.TempDir()
	}
	path := filepath.Join(dir, "records.db")
	_, missing := os.Stat(path)
	s, err := store.Open(b.Context(), path, nil)
	if err != nil {
		b.Fatal(err)
	}
	if errors.Is(missing, fs.ErrNotExist) {
		storetest.Crowd(b, path, paintJobs, time.Now())
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return dir
}

// slurmOf has programs answer as Slurm's with a queue of so many jobs.
func slurmOf(b *testing.B, jobs int) {
	b.Helper()
	text, err := os.ReadFile(shareddata.Path(b, "../slurm-lab/samples/squeue.json"))
	if err != nil {
		b.Fatal(err)
	}
	var answer map[string]any
	if err := json.Unmarshal(text, &answer); err != nil {
		b.Fatal(err)
	}
	one, ok := answer["jobs"].([]any)[0].(map[string]any)
	if !ok {
		b.Fatal("no job in the sample")
	}
	queue := make([]any, 0, jobs)
	for i := range jobs {
		j := maps.Clone(one)
		j["job_id"], j["array_job_id"], j["name"], j["user_name"], j["user_id"] = 2*paintJobs+i, 0,
			fmt.Sprintf("train-%d", i), fmt.Sprintf("user%d", i%200), 1000+i%200
		j["job_state"], j["partition"], j["tres_per_node"], j["tres_req_str"], j["tres_alloc_str"] =
			"PENDING", "gpu", "gres:gpu:1", "cpu=8,node=1,gres/gpu=1", ""
		j["submit_time"], j["start_time"], j["end_time"], j["nodes"] = time.Now().Unix()-int64(i), 0, 0, ""
		queue = append(queue, j)
	}
	answer["jobs"] = queue
	if text, err = json.Marshal(answer); err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	for name, script := range map[string]string{
		"squeue":   "exec cat " + filepath.Join(dir, "queue.json"),
		"scontrol": "exit 1", "sacct": "exit 1", "sinfo": "exit 1",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"),
			0o700); err != nil {
			b.Fatal(err)
		}
	}
	writeFile(b, filepath.Join(dir, "queue.json"), string(text))
	b.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// paintEPD starts epd on a state folder, and logs a browser in.
func paintEPD(b *testing.B, state string, p *browsertest.Page) (address string, stop func()) {
	b.Helper()
	dir, port := b.TempDir(), freePort(b)
	writeFile(b, filepath.Join(dir, "tokens"), webTokens)
	writeFile(b, filepath.Join(dir, "c.toml"), "[web]\ntoken_file = \""+filepath.Join(dir, "tokens")+"\"\n")
	client, end := start(b, dir, "--state", state, "--slurm", "on", "--no-levers", "--cluster", "alpha",
		"--web", port, "--config", filepath.Join(dir, "c.toml"))
	for i := range paintNodes {
		var answer epdapi.ReportAnswer
		if err := client.Post(b.Context(), epdapi.PathReport, paintReport(i), &answer); err != nil {
			b.Fatal(err)
		}
	}
	address = "http://" + port
	p.Go(address + "/login")
	var in bool
	p.Eval(
		`fetch('/login', {method: 'POST', redirect: 'manual', body: new URLSearchParams({token: '0123456789abcdef0123',
		form_token: document.querySelector('[name=form_token]').value})}).then(() => true)`, &in,
	)
	return address, func() { end() }
}

// paintReport returns what a node of eight busy GPUs tells.
func paintReport(i int) *epdapi.NodeReport {
	now := time.Now()
	r := &epdapi.NodeReport{Node: fmt.Sprintf("n%d", i), Version: version, Started: now, At: now}
	for g := range 8 {
		uuid := fmt.Sprintf("GPU-%d-%d", i, g)
		r.GPUs = append(r.GPUs, epdapi.NodeGPU{
			GPU: epdapi.GPU{
				UUID: uuid, Bus: "00000000:17:00.0", Model: "V100", Minor: g, Power: 250,
				Setting: dvfsmodel.Setting{Core: 1200, Mem: 877}, LockedCore: 1200,
			},
			Read: true, Utilisation: live.Known(0.9), Journal: &epdapi.JournalEntry{
				Since: now, RunID: "run", Job: uint32(i),
			},
		})
		r.Runs = append(r.Runs, epdapi.NodeRun{
			Run: epdapi.Run{
				ID: fmt.Sprintf("run-%d-%d", i, g), Job: uint32(i), GPUs: []string{uuid},
				Setting: dvfsmodel.Setting{Core: 1200}, Started: now,
			}, Partition: "gpu",
		})
	}
	return r
}

// paints are how long pages took, in ms.
type paints struct{ first, painted []float64 }

// add notes how long the page took that was just opened. The page must be one,
// and not an error's.
func (m *paints) add(p *browsertest.Page) {
	p.Helper()
	var took struct {
		Status         int
		First, Painted float64
		Path           string
	}
	//nolint:lll // a script
	p.Eval(`new Promise(done => new PerformanceObserver(list => {
		const paint = list.getEntriesByName('first-contentful-paint')[0], page = performance.getEntriesByType('navigation')[0];
		if (paint) done({status: page.responseStatus, first: page.responseStart, painted: paint.startTime, path: location.pathname});
	}).observe({type: 'paint', buffered: true}))`, &took)
	if took.Status != http.StatusOK || took.Path == "/login" {
		p.Fatalf("%s: status %d: %.300s", took.Path, took.Status, p.Text())
	}
	m.first, m.painted = append(m.first, took.First), append(m.painted, took.Painted)
}

// report tells the medians and the longest, and how many were over the goal.
func (m *paints) report(b *testing.B) {
	b.Helper()
	slices.Sort(m.first)
	slices.Sort(m.painted)
	n := len(m.painted)
	over, _ := slices.BinarySearch(m.painted, paintGoalMS)
	b.ReportMetric(m.first[n/2], "first-byte-ms")
	b.ReportMetric(m.first[n-1], "worst-first-byte-ms")
	b.ReportMetric(m.painted[n/2], "paint-ms")
	b.ReportMetric(m.painted[n-1], "worst-paint-ms")
	b.ReportMetric(float64(n-over), "late")
}
