package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// shownAt is when the pages of these tests are looked at.
var shownAt = time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)

// hostile is text as nobody's job should be called.
const hostile = `<img src=x onerror=alert(1)>"'&` + "\u202e\u200b"

// workload is a workload of the cluster.
const workload = "ada/train.sh"

// learnt returns a workload's model that was fitted to runs at some clocks.
func learnt(version int64) *epdapi.ModelFit {
	f := &epdapi.ModelFit{
		ModelStatus: epdapi.ModelStatus{
			WorkloadKey: record.WorkloadKey{Cluster: "alpha", Workload: workload, GPUModel: "V100"},
			Version:     version, Samples: 9, Missed: 2,
			LastJob: epdapi.LastJob{ID: 4711, Name: "train-0", User: "ada", Partition: "gpu"},
		},
		BaseCore: 1380, BaseMem: 877, MinMem: 877, MaxMem: 877, Clocks: epdapi.ClocksFromAgent,
	}
	timeAt := func(core float64) float64 { return 900 + 2.2e6/core }
	powerAt := func(core float64) float64 { return 70 + 170*math.Pow(core/1380, 2.4) }
	if version > 0 {
		f.Form, f.Created, f.Margin = "linear+cubic", shownAt.Add(-26*time.Hour), .06
		f.Model = &epdapi.Model{Version: version, Samples: 9, Margin: 0.06, MinCore: 700, MaxCore: 1380}
		for core := 1530.0; core >= 510; core -= 15 {
			t, p := timeAt(core), powerAt(core)
			f.Curve = append(f.Curve, epdapi.Point{
				Setting: dvfsmodel.Setting{Core: dvfsmodel.MHz(core), Mem: 877}, TimeS: t, LowerS: .95 * t,
				UpperS: 1.06 * t, PowerW: p, EnergyJ: t * p,
			})
		}
	}
	for i := range 14 {
		core := 1380 - 60*float64(i%10)
		t, p := timeAt(core)*(1+.02*math.Sin(float64(7*i))), powerAt(core)*(1+.015*math.Cos(float64(5*i)))
		point := epdapi.FitPoint{
			RunID: fmt.Sprintf("run-%d", i), JobID: int64(4711 + i), Node: "n1", Arm: live.ArmTreated,
			Ended:   shownAt.Add(-time.Duration(i) * time.Hour),
			Setting: dvfsmodel.Setting{Core: dvfsmodel.MHz(core), Mem: 877}, TimeS: live.Known(t),
			PowerW: live.Known(p), EnergyJ: live.Known(t * p),
			Used: true, Weight: 1, Within: true, Before: i > 2, Off: live.Known(t/timeAt(core) - 1),
		}
		switch i {
		case 4:
			point.Used, point.Within, point.Why, point.TimeS = false, false, "it ended in state TIMEOUT",
				live.Known(.6*t)
		case 7:
			point.Weight, point.Outlier, point.Arm = 0.3, "its time is 3.1 deviations off", live.ArmHeldOut
		}
		f.Points = append(f.Points, point)
	}
	return f
}

// chosen is who chose a version.
var chosen = epdapi.Chosen{By: "alice (token)", At: shownAt.Add(-time.Hour), Why: "the last one was too slow"}

// versionsOf returns the versions of that model.
func versionsOf(inUse int64) []epdapi.ModelVersion {
	all := make([]epdapi.ModelVersion, 3)
	for i := range all {
		version := int64(3 - i)
		all[i].Model = record.Model{
			WorkloadKey: record.WorkloadKey{Cluster: "alpha", Workload: workload, GPUModel: "V100"},
			Version:     version, Form: "linear+cubic", Samples: 9 - 2*i,
			Created: shownAt.Add(-time.Duration(26+24*i) * time.Hour), InUse: version == inUse,
			Coefficients: json.RawMessage(
				`{"coefficients":[{"name":"t0","value":900,"std_err":31.5},{"name":"D·δ","value":1594.2,"std_err":12.25},{"name":"P0","value":70,"std_err":2.5},{"name":"c","value":0,"std_err":0.5}]}`,
			),
		}
	}
	all[2].Note, all[2].Chosen = "pinned: the last one was too slow", chosen
	return all
}

// models are those of the queue's workloads, as epd lists them.
const models = `[[model]]
workload = "ada/train.sh"
gpu_model = "V100"
form = "paper"
base_core_mhz = 1380
base_mem_mhz = 877
settings = 9
source = "runs"
p0_w = 65
gamma_w = 10
c_w = 170
d_s = 1600
delta = 0.7
t0_s = 900
`

// waiting returns a queue with jobs of every kind.
func waiting(jobs int) *epdapi.Queue {
	q := &epdapi.Queue{
		At: shownAt, Models: models, Nodes: []epdapi.QueueNode{{GPUModel: "V100", GPUs: 4, Count: 2}},
	}
	for i := range jobs {
		j := epdapi.QueuedJob{
			ID: int64(5000 + i), Name: "train-" + strconv.Itoa(i),
			User: []string{"ada", "grace", "edsger"}[i%3], Partition: "gpu", State: string(slurm.Pending),
			Tasks: 1, Nodes: 1, GPUs: 1 + i%4, AgeS: live.Known(60 * float64(jobs-i)),
			Limit: live.LimitOfSeconds(3600 + 600*float64(i%7)),
		}
		switch i % 6 {
		case 1:
			j.State, j.AgeS, j.EndsS = string(slurm.Running), live.Known(1200), live.Known(2400)
		case 2:
			j.DeadlineS = live.Known(20000)
		case 4:
			j.Workload = workload
		case 3:
			j.RuntimeS, j.PowerW = live.Known(1500), live.Known(180)
		case 5:
			j.Held = i == 5
			if i == 11 {
				j.Tasks = 1200
			}
		}
		q.Jobs = append(q.Jobs, j)
	}
	q.Jobs[0].Name = hostile
	return q
}

// cluster answers as a controller of a small cluster would. What is done to it
// is remembered.
type cluster struct {
	mu      sync.Mutex
	queue   *epdapi.Queue
	version int64
	pinned  bool // the version was chosen by an administrator
	paused  bool
	wrong   string // why the configuration can't be read, or levers not be taken back; empty: they can
	stuck   int    // levers that can't be taken back
	done    []string
	fits    int           // how often a model's fit was asked for
	silent  bool          // Slurm's queue isn't known
	slow    chan struct{} // nil: the queue is told at once; else once this is closed
	asked   chan struct{} // has a value whenever it is asked for then
}

func newCluster() *cluster { return &cluster{queue: waiting(18), version: 3} }

// change changes what pages show.
func (c *cluster) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *cluster) note(format string, args ...any) {
	c.done = append(c.done, fmt.Sprintf(format, args...))
}

func refused(status int, text string) error {
	return &epdapi.RefusedError{Path: "/v1/x", Status: status, Fault: epdapi.ErrorAnswer{Error: text}}
}

func (c *cluster) Queue(ctx context.Context) (*epdapi.Queue, error) {
	if c.slow != nil {
		c.asked <- struct{}{}
		select {
		case <-c.slow:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silent {
		return nil, refused(http.StatusServiceUnavailable, "Slurm's queue isn't known")
	}
	copied := *c.queue
	return &copied, nil
}

func (c *cluster) Models(context.Context) (*epdapi.ModelList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := &epdapi.ModelList{Models: []epdapi.ModelStatus{learnt(c.version).ModelStatus}}
	for i := range 12 {
		list.Models = append(list.Models, epdapi.ModelStatus{
			WorkloadKey: record.WorkloadKey{
				Cluster: "alpha", Workload: fmt.Sprintf("grace/sweep-%02d.sh", i), GPUModel: "V100",
			},
			Version: int64(i % 3), Prior: i%3 == 1, Samples: i,
		})
		if i%3 > 0 {
			m := &list.Models[len(list.Models)-1]
			m.Form, m.Created, m.Margin = "knee+power", shownAt.Add(-time.Duration(i)*9*time.Hour),
				.03*float64(i%4+1)
		}
	}
	list.Models = append(list.Models, epdapi.ModelStatus{
		WorkloadKey: record.WorkloadKey{Cluster: "alpha", Workload: "forecast"}, Version: 4, Samples: 900,
	})
	for i := range 4 { // of a real epd
		m := &list.Models[len(list.Models)-2-i]
		m.Workload = fmt.Sprintf("%08x5ca1ab1e5ca1ab1ex%d", 0xbeef0000+i, 1<<i)
		m.LastJob = epdapi.LastJob{
			ID: int64(4600 + i), Name: "finetune-" + strconv.Itoa(i), User: "edsger", Partition: "gpu",
		}
	}
	list.Models[3].LastJob = epdapi.LastJob{
		ID: 4605, Name: hostile + strings.Repeat("long", 30), User: "eve", Partition: "gpu",
	}
	list.Models[1].Workload, list.Models[2].Note = hostile, "its predictions missed three runs in a row"
	return list, nil
}

func (c *cluster) ModelVersions(_ context.Context, name, gpuModel string) (*epdapi.ModelVersions, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if name != workload || gpuModel != "V100" {
		return &epdapi.ModelVersions{}, nil
	}
	return &epdapi.ModelVersions{Versions: versionsOf(c.version), LastJob: learnt(c.version).LastJob}, nil
}

func (c *cluster) Fit(_ context.Context, name, gpuModel string) (*epdapi.ModelFit, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fits++
	if name != workload || gpuModel != "V100" {
		return &epdapi.ModelFit{}, nil
	}
	fit := learnt(c.version)
	if fit.Pinned = c.pinned; c.pinned {
		fit.Chosen = chosen
	}
	return fit, nil
}

func (c *cluster) UseModel(_ context.Context, m *epdapi.ModelChoice) (*epdapi.ModelStatus, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note("use %s %s %d %v %q", m.Workload, m.GPUModel, m.Version, m.Free, m.Note)
	if c.pinned = !m.Free; c.pinned {
		c.version = m.Version
	}
	return &learnt(c.version).ModelStatus, nil
}

func (c *cluster) UndoLevers(context.Context) (*epdapi.UndoLeversAnswer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note("levers")
	c.paused = true
	return &epdapi.UndoLeversAnswer{Undone: 5, Failed: c.stuck, Error: c.wrong}, nil
}

func (c *cluster) Reload(context.Context) (*epdapi.ReloadAnswer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note("reload")
	if c.wrong != "" {
		return nil, refused(http.StatusBadRequest, c.wrong)
	}
	return &epdapi.ReloadAnswer{Version: "a1b2c3", Before: "000000"}, nil
}
