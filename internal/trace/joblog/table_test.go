package joblog_test

import (
	"bytes"
	"encoding/csv"
	"io"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/trace/joblog"
	"github.com/epplan/epplan/live"
)

// failer is a test of either kind.
type failer interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// written is jobs as a table.
func written(t failer, jobs []record.HistoryJob) string {
	var text bytes.Buffer
	w, err := joblog.NewTableWriter(&text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range jobs {
		if err := w.Write(&jobs[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// readFunc reads a log.
type readFunc func(r io.Reader, name string, o *joblog.Options, visit joblog.Visit) (*joblog.Tally, error)

// checkLog reads what may be a log: its jobs are counted, and can be kept and written.
func checkLog(t failer, read readFunc, text string) {
	var jobs []record.HistoryJob
	tally, err := read(strings.NewReader(text), "fuzz", &joblog.Options{Cluster: "c"}, keep(&jobs))
	if tally == nil || err == nil && int(tally.Jobs) != len(jobs) {
		t.Fatalf("%+v, %d jobs, %v", tally, len(jobs), err)
	}
	for i := range jobs {
		if _, err := jobs[i].Canonical(); err != nil {
			t.Fatalf("job %+v can't be kept: %v", jobs[i], err)
		}
	}
	checkTable(t, jobs)
}

// checkTable writes jobs, reads them, and writes them: both tables are the same.
func checkTable(t failer, jobs []record.HistoryJob) {
	text := written(t, jobs)
	var again []record.HistoryJob
	tally, err := joblog.ReadTable(strings.NewReader(text), "table", &joblog.Options{}, keep(&again))
	if err != nil || len(again) != len(jobs) {
		t.Fatalf("%d of %d jobs, %+v, %v\n%s", len(again), len(jobs), tally, err, text)
	}
	if got := written(t, again); got != text {
		t.Fatalf("got %s\nwant %s", got, text)
	}
}

// drawn returns a job as a log may have it.
func drawn(t *rapid.T, i int) record.HistoryJob {
	count := func(name string) live.Number {
		if rapid.Bool().Draw(t, name+" known") {
			return live.Known(float64(rapid.IntRange(0, 4096).Draw(t, name)))
		}
		return live.Number{}
	}
	word := rapid.StringMatching(`[a-z][a-z0-9_]{0,8}`)
	submit := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "submit"), 0).UTC()
	start := submit.Add(time.Duration(rapid.IntRange(0, 1e6).Draw(t, "wait")) * time.Second)
	p := record.HistoryJob{
		Cluster: "c", JobID: strconv.Itoa(1 + i), Submitted: submit, Started: start,
		Ended: start.Add(time.Duration(rapid.IntRange(0, 1e6).Draw(t, "run time")) * time.Second),
		User:  word.Draw(t, "user"), Account: word.Draw(t, "account"), Partition: word.Draw(t, "partition"),
		QOS:  "normal",
		GPUs: count("gpus"), CPUs: count("cpus"), Nodes: count("nodes"),
		GPUModel: rapid.SampledFrom([]string{"", "h200"}).Draw(t, "model"),
		Limit: rapid.SampledFrom([]live.Limit{
			{}, live.LimitOf(time.Minute), live.LimitOf(1e5 * time.Minute),
		}).Draw(t, "limit"), State: "FAILED",
		ExitCode: count("exit"), EnergyJ: count("energy"),
	}
	if name := rapid.StringMatching(`[ -~äß∑]*`).Draw(t, "name"); name != "" {
		p.Name = []byte(name)
	}
	return p
}

func TestNoCellOfATableIsAFormula(t *testing.T) {
	at := time.Unix(1e9, 0).UTC()
	evil := record.HistoryJob{
		Cluster: "@c", JobID: "=1", Submitted: at, Started: at, Ended: at.Add(time.Minute),
		User: "+1+cmd|'/c calc'!A0", Account: "=a",
		Partition: "-p", QOS: "@q", Name: []byte("=HYPERLINK(\"http://x\")"), GPUModel: "=g", State: "=s",
		ExitCode: live.Known(0),
	}
	text := written(t, []record.HistoryJob{evil})
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, cell := range rows[1] {
		if cell != "" && strings.ContainsRune("=+-@", rune(cell[0])) {
			t.Errorf("%s is %s", rows[0][i], cell)
		}
	}
	checkTable(t, []record.HistoryJob{evil})
	table, err := predict.ReadTable(strings.NewReader(text), "table", predict.Columns{}, nil)
	if err != nil || table.Jobs[0].ID != evil.JobID || table.Jobs[0].Owner != evil.User ||
		table.Jobs[0].Labels[0] != string(evil.Name) {
		t.Errorf("%+v, %v", table, err)
	}
}

func TestATableIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := make([]record.HistoryJob, rapid.IntRange(0, 5).Draw(t, "jobs"))
		for i := range jobs {
			jobs[i] = drawn(t, i)
		}
		var again []record.HistoryJob
		if _, err := joblog.ReadTable(strings.NewReader(written(t, jobs)), "table", &joblog.Options{},
			keep(&again)); err != nil {
			t.Fatal(err)
		}
		if len(again)+len(jobs) > 0 && !reflect.DeepEqual(again, jobs) {
			t.Fatalf("got  %+v\nwant %+v", again, jobs)
		}
	})
}

func TestTextsInATableAreOnOneLineAndActOnNoTerminal(t *testing.T) {
	jobs, _ := all(t, header+line("1", "a\x1b[2J\nb\xff", "User", "x\ay"))
	text := written(t, jobs)
	if len(jobs) != 1 || !strings.Contains(text, `,a\x1b[2J\x0ab\xff,`) ||
		!strings.Contains(text, `,x\x07y,`) {
		t.Errorf("%+v:\n%q", jobs, text)
	}
	checkTable(t, jobs)
}

func TestANameInATableIsHashedOnDemand(t *testing.T) {
	var text bytes.Buffer
	w, err := joblog.NewTableWriter(&text)
	if err != nil {
		t.Fatal(err)
	}
	w.Hash = func(string) string { return "0123" }
	jobs, _ := all(t, header+line("1", "secret"))
	if err := w.Write(&jobs[0]); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"secret", "ada", "lab"} {
		if strings.Contains(text.String(), name) {
			t.Errorf("%s in %s", name, text.String())
		}
	}
}

func TestWrongRowsOfATableAreNamedAndCounted(t *testing.T) {
	const text = "job_id,submit_s,vc,gpus,runtime_s\na,1,x,1,10\n,1,x,1,10\nb,1,x\nc,-1,x,1,10\n" +
		"d,1,x,many,10\ne,1,x,1,\nf,1,x,1,10,9\na,1,x,1,10\n"
	var jobs []record.HistoryJob
	tally, err := joblog.ReadTable(strings.NewReader(text), "t.csv", &joblog.Options{}, keep(&jobs))
	if err != nil || ids(jobs) != "a" || jobs[0].User != "x" || jobs[0].State != record.Completed {
		t.Fatalf("%+v, %v", jobs, err)
	}
	want := map[string]int64{"job id": 1, "truncated line": 1, "number": 2, "more columns than the header": 1}
	if got := kinds(tally.Skipped); !reflect.DeepEqual(got, want) || tally.NeverRan != 1 ||
		tally.Repeated != 1 {
		t.Errorf("%v, %+v", got, tally)
	}
}

func TestPublicHistoriesComeToTheSumsOfTheirRows(t *testing.T) {
	for _, name := range []string{
		"philly_chronus", "llnl_atlas", "kth_sp2", "co2_inference_a100", "synthetic_gpu_history",
	} {
		path := shareddata.Path(t, "jobs/"+name+".csv")
		type sums struct{ jobs, runS, gpuS, cpuS, kWh float64 }
		var want, got sums
		for _, row := range shareddata.Rows(t, path) {
			number := func(column string) float64 {
				if row[column] == "" {
					return 0
				}
				return shareddata.Number(t, row[column])
			}
			run := number("runtime_s")
			want.jobs++
			want.runS += run
			want.gpuS += run * number("gpus")
			want.cpuS += run * number("cpus")
			want.kWh += number("energy_kwh")
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		tally, err := joblog.ReadTable(f, name, &joblog.Options{}, func(p *record.HistoryJob) error {
			run := p.RunTime().Or(0)
			got.jobs++
			got.runS += run
			got.gpuS += run * p.GPUs.Or(0)
			got.cpuS += run * p.CPUs.Or(0)
			got.kWh += p.EnergyJ.Or(0) / 3.6e6
			return nil
		})
		_ = f.Close() // only read
		if err != nil {
			t.Fatal(err)
		}
		for what, pair := range map[string][2]float64{
			"jobs": {got.jobs, want.jobs}, "run time": {got.runS, want.runS}, "GPU time": {got.gpuS, want.gpuS},
			"CPU time": {got.cpuS, want.cpuS}, "energy": {got.kWh, want.kWh},
		} {
			if math.Abs(pair[0]-pair[1]) > 1e-6*pair[1] {
				t.Errorf("%s: %s %v, the rows have %v; %+v", name, what, pair[0], pair[1], tally)
			}
		}
	}
}
