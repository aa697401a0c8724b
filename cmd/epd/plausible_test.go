package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/storetest"
	"github.com/epplan/epplan/internal/web"
	"github.com/epplan/epplan/internal/web/login"
	"github.com/epplan/epplan/live"
)

// tester is a test, or one of many of a property.
type tester interface {
	Helper()
	Context() context.Context
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// office is a controller with its interface, its pages and its metrics.
type office struct {
	control *control.Controller
	records *store.Store
	path    string
	now     atomic.Pointer[time.Time] // the controller trains beside the test
	asked   map[string]http.Handler   // by the beginning of the path
}

// moveTo sets the clock.
func (o *office) moveTo(at time.Time) { o.now.Store(&at) }

func newOffice(t tester, path string) *office {
	t.Helper()
	o := &office{path: path}
	o.moveTo(time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC))
	clock := func() time.Time { return *o.now.Load() }
	var err error
	if o.records, err = store.Open(t.Context(), path, &store.Options{Now: clock}); err != nil {
		t.Fatal(err)
	}
	p := &program{}
	if o.control, err = control.New(t.Context(), control.Options{
		Records: control.RecordsIn(o.records), Cluster: "alpha",
		Clock:     clock,
		OnOutcome: func(o *record.Outcome, partition string) { countEnergy(p.metrics, o, partition) },
	}); err != nil {
		t.Fatal(err)
	}
	p.control, p.role = o.control, roleController
	p.metrics = p.newMetrics()
	desk := &daemon.ControllerServer{
		Version: "1", Role: roleController, Control: o.control, Access: &daemon.Access{}, Started: clock(),
	}
	caller := query.Caller{Operator: true, Admin: true}
	inner := desk.InternalHandler()(caller)
	site := web.New(web.Options{
		Source: func(login.Viewer) (web.Source, web.Administration) {
			source := &pageSource{desk, caller}
			return source, source
		},
		Now: clock,
	})
	o.asked = map[string]http.Handler{
		"/v1/": inner, "/metrics": p.metrics.Handler(),
		"/": site.Socket(func(*http.Request) login.Viewer {
			return login.Viewer{UID: 0, Name: "root", Role: login.Admin}
		}),
	}
	return o
}

func (o *office) close(t tester) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := errors.Join(o.control.Close(ctx), o.records.Close()); err != nil {
		t.Error(err)
	}
}

// get asks for a path, and wants it answered by what can be read.
func (o *office) get(t tester, path string) string {
	t.Helper()
	prefix := "/"
	for p := range o.asked {
		if strings.HasPrefix(path, p) && len(p) > len(prefix) {
			prefix = p
		}
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.Host = "localhost"
	o.asked[prefix].ServeHTTP(w, r)
	body := w.Body.String()
	missing := w.Code == http.StatusNotFound && strings.HasPrefix(path, "/workloads/") // it has no model
	if w.Code != http.StatusOK && !missing || prefix == "/v1/" && !json.Valid(w.Body.Bytes()) {
		t.Errorf("GET %s is %d: %.300s", path, w.Code, body)
	}
	for line := range strings.Lines(body) {
		words := strings.Fields(line)
		shown := prefix == "/" && (strings.Contains(line, "NaN") || strings.Contains(line, "Inf"))
		if shown || prefix == "/metrics" && strings.HasPrefix(line, "epplan_") &&
			!finite(words[len(words)-1]) {
			t.Errorf("GET %s shows what is no number: %.300s", path, line)
		}
	}
	return body
}

func finite(number string) bool {
	v, err := strconv.ParseFloat(number, 64)
	return err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// everything is asked for, of the interface and of the pages.
func (o *office) everything(t tester) {
	t.Helper()
	for _, path := range []string{
		"/v1/overview", "/v1/status", "/v1/jobs", "/v1/jobs/7", "/v1/jobs/7/series", "/v1/jobs/8",
		"/v1/decisions", "/v1/nodes", "/v1/models",
		"/v1/models?workload=w&gpu_model=V100", "/v1/models/fit?workload=w&gpu_model=V100", "/v1/profiles",
		"/v1/savings", "/v1/savings?since=2026-03-01T00:00:00Z",
		"/v1/history", "/metrics", "/", "/jobs", "/jobs/7", "/jobs/8", "/nodes", "/workloads",
		"/workloads/w?gpu=V100", "/admin",
	} {
		o.get(t, path)
	}
	for _, table := range store.Tables() {
		var out bytes.Buffer
		if err := o.records.Export(t.Context(), &out, table); err != nil {
			t.Errorf("export %s: %v", table, err)
		}
		for line := range strings.Lines(out.String()) {
			if !json.Valid([]byte(line)) {
				t.Errorf("export %s: %.200s", table, line)
			}
		}
	}
}

// extremes are numbers that no run comes to, and some that one may.
var extremes = []float64{
	0, 1, 60, 3600, 1e5, -60, -1e-300, 1e9, 1e12, 1e16, 1e30, 1e153, 1.2e154, 9e307, 1.7e308, math.MaxFloat64,
	-math.MaxFloat64,
}

func drawNumber(t *rapid.T, name string) live.Number {
	if rapid.IntRange(0, 4).Draw(t, name+" is unknown") == 0 {
		return live.Number{}
	}
	return live.Known(rapid.SampledFrom(extremes).Draw(t, name))
}

func (o *office) drawTime(t *rapid.T, name string) time.Time {
	switch rapid.IntRange(0, 9).Draw(t, name+" kind") {
	case 0:
		return time.Time{}
	case 1:
		return time.Date(rapid.SampledFrom([]int{1, 1969, 1970, 2999, 9998}).Draw(t, name+" year"), 12, 31,
			23, 0, 0, 0, time.UTC)
	case 2:
		return time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -23*3600)) // the year 10000 in UTC
	}
	return o.now.Load().Add(time.Duration(rapid.IntRange(-100_000, 1000).Draw(t, name)) * time.Second)
}

// drawOutcome returns what somebody says that a run came to.
func (o *office) drawOutcome(t *rapid.T, run int) *record.Outcome {
	out := &record.Outcome{
		RunID: strconv.Itoa(run), JobID: rapid.Int64Range(7, 8).Draw(t, "job"),
		Node:     rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node"),
		Workload: "w", GPUModel: "V100",
		Arm:       rapid.SampledFrom([]live.Arm{live.ArmTreated, live.ArmHeldOut}).Draw(t, "arm"),
		GPUs:      []string{"GPU-1"},
		ExitState: record.Completed, Submitted: o.now.Load().Add(-48 * time.Hour),
		Started: o.drawTime(t, "started"), Ended: o.drawTime(t, "ended"),
		Setting: dvfsmodel.Setting{
			Core: dvfsmodel.MHz(rapid.SampledFrom([]float64{0, 900, 1200, 1e308, -1}).Draw(t, "core")),
			Mem:  877,
		},
		TimeS: drawNumber(t, "time"), GPUEnergyJ: drawNumber(t, "gpu"), GPUSource: record.Counter,
		NodeEnergyJ: drawNumber(t, "node energy"), NodeSource: record.RAPL,
		MeanPowerW: drawNumber(t, "mean"), PeakPowerW: drawNumber(t, "peak"),
		Utilisation: drawNumber(t, "use"), PeakMemoryBytes: drawNumber(t, "memory"),
		Details: record.Details{Restarted: record.Restarted{
			TimeS: drawNumber(t, "restarted"), GPUEnergyJ: drawNumber(t, "restarted energy"),
		}},
		Clocks: []live.Residency{{
			Setting: dvfsmodel.Setting{Core: 1200, Mem: 877},
			Seconds: rapid.SampledFrom(extremes).Draw(t, "seen"),
		}},
		ThrottledS: map[string]float64{"thermal": rapid.SampledFrom(extremes).Draw(t, "throttled")},
	}
	if rapid.IntRange(0, 5).Draw(t, "plain") > 0 { // else most are refused
		out.Setting.Core, out.Clocks, out.ThrottledS = 900, nil, nil
	}
	if rapid.Bool().Draw(t, "adapted") {
		out.Slowdown = live.Known(1.1)
		out.Stays = []dvfsmodel.ClockResidency{{
			Core: 900, Seconds: rapid.SampledFrom(extremes).Draw(t, "stay"),
			Energy: dvfsmodel.Joule(rapid.SampledFrom(extremes).Draw(t, "stay's energy")), Begun: 1,
		}}
	}
	return out
}

// spoil writes into the database what no epd of today does.
func (o *office) spoil(t *rapid.T) {
	db, err := sql.Open("sqlite3", "file:"+o.path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, column := range []string{
		"outcomes.time_s", "outcomes.gpu_energy_j", "outcomes.node_energy_j", "outcomes.mean_power_w",
		"outcomes.peak_power_w", "outcomes.utilisation",
		"run_days.time_s", "run_days.gpu_energy_j", "run_days.node_energy_j", "energy_sums.done_gpu_j",
		"energy_sums.done_gpu_j2", "energy_sums.done_node_j", "energy_sums.predicted_j",
	} {
		if rapid.IntRange(0, 3).Draw(t, "spoil "+column) > 0 {
			continue
		}
		table, column, _ := strings.Cut(column, ".")
		value := rapid.SampledFrom([]string{
			"1.7e308", "-1.7e308", "9e999", "-9e999", "1e200", "-60",
		}).Draw(t, column)
		if _, err := db.ExecContext(t.Context(),
			fmt.Sprintf("UPDATE %s SET %s = %s", table, column, value)); err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever outcomes say, and whatever lies in the database: everybody's pages, the
// interface, the metrics and exports go on.
func TestWhateverOutcomesSayEveryPageAnswers(t *testing.T) {
	storetest.NeedSQLite(t)
	dir, n := t.TempDir(), 0
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		if dir, err = os.MkdirTemp("/dev/shm", "epplan-office"); err != nil { //nolint:usetesting // TempDir is on disk
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
	}
	rapid.Check(t, func(t *rapid.T) {
		n++
		o := newOffice(t, filepath.Join(dir, strconv.Itoa(n)+".db"))
		defer o.close(t)
		for id := range int64(2) {
			job := record.Job{
				Cluster: "alpha", ID: 7 + id, Submitted: o.now.Load().Add(-48 * time.Hour), User: "ada",
				Workload: "w", Partition: "gpu", GPUs: 1, Nodes: 1, State: "RUNNING",
			}
			if err := o.records.PutJob(t.Context(), &job); err != nil {
				t.Fatal(err)
			}
		}
		for run := range rapid.IntRange(1, 6).Draw(t, "runs") {
			if _, err := o.control.Record(t.Context(), o.drawOutcome(t, run)); err != nil &&
				!errors.Is(err, record.ErrInvalid) {
				t.Fatal(err)
			}
		}
		if err := o.control.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		o.everything(t)
		if rapid.Bool().Draw(t, "spoil") {
			o.spoil(t)
			o.moveTo(o.now.Load().Add(time.Hour)) // savings are computed anew
			o.everything(t)
		}
	})
}

func TestAnOutcomeThatCantBeIsShownAsUnknownAndCountsNowhere(t *testing.T) {
	storetest.NeedSQLite(t)
	o := newOffice(t, filepath.Join(t.TempDir(), "records.db"))
	defer o.close(t)
	begun := o.now.Load().Add(-time.Hour)
	for i, energy := range []float64{1e5, 1.7e308, 1.7e308} { // the sum of these is no number
		job := record.Job{Cluster: "alpha", ID: int64(7 + i), Submitted: begun, Workload: "w", GPUs: 1, Nodes: 1}
		if err := o.records.PutJob(t.Context(), &job); err != nil {
			t.Fatal(err)
		}
		out := record.Outcome{
			RunID: strconv.Itoa(i), JobID: job.ID, Node: "n1", Workload: "w", GPUModel: "V100",
			GPUs: []string{"GPU-1"}, Arm: live.ArmTreated, ExitState: record.Completed,
			Submitted: begun, Started: begun, Ended: begun.Add(10 * time.Minute),
			TimeS: live.Known(600), GPUEnergyJ: live.Known(energy),
			GPUSource: record.Counter,
		}
		if _, err := o.control.Record(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.control.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var over epdapi.Overview
	if err := json.Unmarshal([]byte(o.get(t, "/v1/overview")), &over); err != nil {
		t.Fatal(err)
	}
	runs, measured := int64(0), int64(0)
	for _, d := range over.Days {
		runs, measured = runs+d.Runs, measured+d.Measured
	}
	if runs != 3 || measured != 1 {
		t.Errorf("%d runs, %d with an energy: %+v", runs, measured, over.Days)
	}
	for path, says := range map[string]bool{"/jobs/7": false, "/jobs/8": true} {
		if text := o.get(t, path); strings.Contains(text, "can&#39;t be, and counts nowhere") != says {
			t.Errorf("whether %s says what was set aside isn't %v:\n%s", path, says, text)
		}
	}
}
