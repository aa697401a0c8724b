package store_test

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// year makes the records of a centre as the controller does: of each job a prediction when it is
// submitted, a decision when it starts and an outcome when it ends, with all that an agent tells.
type year struct {
	store     *store.Store
	gpus      int // of a job, on one node
	workloads int // that take turns
	now       time.Time
	change    func(*record.Outcome) // of each run before it is recorded; nil: nothing
}

// hexOf and nameOf are names as epd makes them: a hash of a script, and a drawn name of a run.
func hexOf(what string, i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", what, i))
	return hex.EncodeToString(sum[:])
}

func nameOf(what string, i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", what, i))
	return base32.StdEncoding.EncodeToString(sum[:])[:26]
}

// run records job i, which runs for two hours, more or less.
func (y *year) run(tb testing.TB, i int) {
	tb.Helper()
	script := hexOf("script", i%y.workloads)[:24]
	workload, node := fmt.Sprintf("%sx%d", script, y.gpus), fmt.Sprintf("gpu%04d", i%50)
	took := 7200 + float64(i*7919%3600)
	submitted := y.now
	job := &record.Job{
		Cluster: "cluster", ID: int64(100_000 + i), Submitted: submitted, Token: nameOf("token", i),
		User: fmt.Sprintf("user%03d", i*7919%200), Account: fmt.Sprintf("account%02d", i%20),
		Partition: fmt.Sprintf("gpu%d", i%4), Name: fmt.Appendf(nil, "train-model-%d", i%50),
		ScriptHash: script, Workload: workload, Limit: live.LimitOf(4 * time.Hour), Nodes: 1, GPUs: y.gpus,
		State: "RUNNING",
	}
	if err := y.store.PutJob(tb.Context(), job); err != nil {
		tb.Fatal(err)
	}
	number := live.Known
	d := &record.Decision{
		Cluster: "cluster", Token: job.Token, Workload: workload,
		TimeS:  record.Interval{Value: number(took * 1.01), Low: number(took * 0.8), High: number(took * 1.3)},
		PowerW: record.Interval{Value: number(301.7), Low: number(281.3), High: number(322.9)},
		EnergyJ: record.Interval{
			Value: number(took * 301.7), Low: number(took * 250.1), High: number(took * 390.3),
		},
		Reason: "predicted from 12 runs of this very script by this user", Mode: "enforce",
		ConfigVersion: "ff1f890cd74e", Rung: "workload", Created: submitted,
	}
	if _, err := y.store.PutDecision(tb.Context(), d); err != nil {
		tb.Fatal(err)
	}
	power := 290.123 + float64(i%17)/7
	d = &record.Decision{
		Cluster: "cluster", JobID: job.ID, Node: node, RunID: nameOf("run", i), Workload: workload,
		GPUModel: "H100", Setting: dvfsmodel.Setting{Core: dvfsmodel.MHz(1200 + 15*(i%y.workloads%9))},
		TimeS:   record.Interval{Value: number(took * 1.02), High: number(took * 1.2)},
		PowerW:  record.Interval{Value: number(power * 1.013)},
		EnergyJ: record.Interval{Value: number(took * power * float64(y.gpus) * 1.03)},
		Reason: fmt.Sprintf("core %d MHz: %d%% of the GPUs' energy (%d%% with their share of the node) and "+
			"%d%% of the time at default clocks, by model version %d of %d runs",
			1200+15*(i%y.workloads%9), 58+i%30, 65+i%30, 102+i%17, 3+i%40, 5+i%60),
		Mode: "enforce", ConfigVersion: "ff1f890cd74e", ModelVersion: int64(3 + i%40),
		Arm: live.ArmTreated, Created: submitted.Add(time.Minute),
		DefaultJ: number(took * power * float64(y.gpus) * 1.31), HoldOut: number(0.05),
	}
	if i%20 == 0 {
		d.Arm, d.Setting, d.Reason = live.ArmHeldOut, dvfsmodel.Setting{}, "held out, to compare with"
	}
	id, err := y.store.PutDecision(tb.Context(), d)
	if err != nil {
		tb.Fatal(err)
	}
	o := y.outcome(i, took, power)
	o.Cluster, o.RunID, o.JobID, o.Node, o.DecisionID = "cluster", d.RunID, job.ID, node, id
	o.Workload, o.GPUModel, o.Arm, o.Setting = workload, "H100", d.Arm, d.Setting
	o.Submitted, o.Started = submitted, submitted.Add(time.Minute)
	o.Ended = o.Started.Add(time.Duration(took * float64(time.Second)))
	y.now = o.Ended
	if y.change != nil {
		y.change(o)
	}
	put(tb, y.store, o, store.Stored)
	y.now = submitted.Add(2 * time.Second)
}

// last returns an outcome as that of run i.
func (y *year) last(i int, o *record.Outcome) *record.Outcome {
	o.Cluster, o.RunID, o.JobID = "cluster", nameOf("run", i), int64(100_000+i)
	o.Node = fmt.Sprintf("gpu%04d", i%50)
	return o
}

// outcome returns what a run came to, with the course of a training: epochs, and pauses between them.
func (y *year) outcome(i int, took, power float64) *record.Outcome {
	lasted := time.Duration(took * float64(time.Second))
	series := record.NewSeriesSampler(time.Minute)
	readings := record.NewReadingsSampler(y.gpus, time.Second)
	o := &record.Outcome{
		ExitState: record.Completed, TimeS: live.Known(took + 0.598594128),
		GPUEnergyJ: live.Known(took*power*float64(y.gpus) + 0.474), GPUSource: record.Counter,
		NodeEnergyJ: live.Known(took*(power+25)*float64(y.gpus) + 0.8532), NodeSource: record.Modelled,
		MeanPowerW: live.Known(power * float64(y.gpus)), PeakPowerW: live.Known(power*1.1*float64(y.gpus) + 0.472),
		Utilisation: live.Known(0.9 + float64(i%97)/1e3/7), PeakMemoryBytes: live.Known(float64(50<<30 + i<<12)),
		Clocks: []live.Residency{
			{Setting: dvfsmodel.Setting{Core: 1200, Mem: 2619}, Seconds: took * 0.91829862429},
			{Setting: dvfsmodel.Setting{Core: 1185, Mem: 2619}, Seconds: took * 0.03561638625},
			{Setting: dvfsmodel.Setting{Core: 345, Mem: 2619}, Seconds: took * 0.0461638625},
		},
		Details: record.Details{
			Slowdown: live.Known(1.04 + float64(i%13)/1000), CapW: live.Known(700),
			WorkClock: record.WorkClock{
				CoreMHz: live.Known(1199.281733), SpreadMHz: live.Known(2.6428997918226276),
			},
		},
	}
	if i%5 == 0 {
		o.ThrottledS = map[string]float64{"power-cap": took * 0.00317}
	}
	o.Profile.Alone = true
	for g := range y.gpus {
		id := hexOf("gpu", 8*(i%50)+g)
		o.GPUs = append(o.GPUs,
			fmt.Sprintf("GPU-%s-%s-%s-%s-%s", id[:8], id[8:12], id[12:16], id[16:20], id[20:32]))
		use, memory := record.NewProfileSampler(time.Second), record.NewProfileSampler(time.Second)
		const step = 15 * time.Second
		for at := time.Duration(0); at < lasted; at += step {
			busy := 0.97 - float64((int(at/time.Second)+i*31+g*7)%11)/100
			if int(at/step)%40 == 39 {
				busy = 0.08
			}
			use.Add(at, at+step, busy)
			memory.Add(at, at+step, 0.62+float64(int(at/step)%3)/200)
			if g == 0 {
				series.Add(at, at+step, busy)
			}
			readings.Add(at, at+step, power*(0.3+0.7*busy), 1200-float64(int(at/step)%3)*15)
		}
		o.Profile.GPUs = append(o.Profile.GPUs, record.GPUProfile{
			Utilisation: use.Series(), Memory: memory.Series(), PeakMem: 50<<30 + int64(i)<<12, MemTotal: 80 << 30,
		})
	}
	o.Series, o.Readings = series.Series(), readings.Readings()
	return o
}

// newYear has recorded so many runs, in the turn of so many workloads, one each two seconds.
func newYear(tb testing.TB, gpus, workloads, runs int) (*year, string) {
	tb.Helper()
	y := &year{gpus: gpus, workloads: workloads, now: start.Truncate(time.Second)}
	path := filepath.Join(tempDir(tb), "epd.db")
	y.store = open(tb, path, &store.Options{Now: func() time.Time { return y.now }})
	for i := range runs {
		y.run(tb, i)
	}
	return y, path
}

// bytesARun returns those of a database's file that are in use, by its runs.
func bytesARun(tb testing.TB, path string, runs int) float64 {
	tb.Helper()
	var pages, free, size float64
	if err := raw(tb, path).QueryRowContext(tb.Context(), `SELECT page_count, freelist_count, page_size
FROM pragma_page_count, pragma_freelist_count, pragma_page_size`).Scan(&pages, &free, &size); err != nil {
		tb.Fatal(err)
	}
	return (pages - free) * size / float64(runs)
}

// bytesByTable has the sqlite3 program say how many bytes a run takes in each table and index, where
// there is one: the library here doesn't know.
func bytesByTable(tb testing.TB, path string, runs int) string {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), "sqlite3", "-readonly", "-box", path, fmt.Sprintf(`
SELECT name, round(SUM(pgsize) / %[1]d.0) AS bytes_a_run, round(SUM(payload) / %[1]d.0) AS payload,
	SUM(ncell) AS rows
FROM dbstat WHERE name != 'sqlite_schema' GROUP BY name HAVING bytes_a_run > 0 ORDER BY SUM(pgsize) DESC`, runs)).
		CombinedOutput()
	if err != nil {
		return fmt.Sprintf("no sqlite3 program tells by table: %v", err)
	}
	return string(out)
}

// A run takes room three times: in detail, after that, and once it was pruned. docs/records.md has
// these figures.
func TestARunTakesAKilobyteOnceItIsCompacted(t *testing.T) {
	runs := 3000
	if testing.Short() {
		runs = 1000
	}
	_, empty := openNew(t)
	fixed := bytesARun(t, empty, 1)
	for _, c := range []struct {
		gpus, each int // runs of a workload
		most       float64
	}{{1, 20, 1000}, {8, 20, 1000}, {1, 1, 1300}} {
		y, path := newYear(t, c.gpus, runs/c.each, runs)
		a := bytesARun(t, path, runs) - fixed/float64(runs)
		if n, err := y.store.Compact(t.Context(), y.now.Add(24*time.Hour)); err != nil || n != int64(runs) {
			t.Fatal(n, err)
		}
		b, tables := bytesARun(t, path, runs)-fixed/float64(runs), bytesByTable(t, path, runs)
		if _, err := y.store.Prune(t.Context(), y.now.Add(24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d GPUs, each workload runs %d times: bytes a run: %.0f in detail, %.0f compacted, %.0f pruned\n%s",
			c.gpus, c.each, a, b, bytesARun(t, path, runs)-fixed/float64(runs), tables)
		if b > c.most {
			t.Errorf("%d GPUs, each workload runs %d times: %.0f bytes a run compacted, want at most %.0f\n%s",
				c.gpus, c.each, b, c.most, tables)
		}
	}
}
