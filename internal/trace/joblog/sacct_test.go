package joblog_test

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/trace/joblog"
	"github.com/epplan/epplan/live"
)

const header = "JobID|JobIDRaw|User|Account|Partition|QOS|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|" +
	"ReqTRES|AllocTRES|ConsumedEnergyRaw|JobName|ExitCode\n"

// line returns a line of sacct's for one job.
func line(id, name string, more ...string) string {
	cells := strings.Split(id+"|"+id+"|ada|lab|gpu|normal|COMPLETED|2026-01-02T03:04:05|"+
		"2026-01-02T03:05:05|2026-01-02T04:05:05|3600|120|cpu=8|cpu=8,node=1,gres/gpu:h200=2,"+
		"gres/gpu=2|7200||0:0", "|")
	for i := 0; i+1 < len(more); i += 2 {
		at := slices.Index(strings.Split(strings.TrimSpace(header), "|"), more[i])
		cells[at] = more[i+1]
	}
	cells[len(cells)-2] = name
	return strings.Join(cells, "|") + "\n"
}

// all returns the jobs of a log, and what was found.
func all(tb testing.TB, text string) ([]record.HistoryJob, *joblog.Tally) {
	tb.Helper()
	var jobs []record.HistoryJob
	tally, err := joblog.ReadSacct(strings.NewReader(text), "log", &joblog.Options{}, keep(&jobs))
	if err != nil {
		tb.Fatal(err)
	}
	return jobs, tally
}

func keep(jobs *[]record.HistoryJob) joblog.Visit {
	return func(p *record.HistoryJob) error {
		*jobs = append(*jobs, *p)
		return nil
	}
}

// ids returns the jobs' ids.
func ids(jobs []record.HistoryJob) string {
	all := make([]string, len(jobs))
	for i := range jobs {
		all[i] = jobs[i].JobID
	}
	return strings.Join(all, " ")
}

// kinds returns what was found, by kind.
func kinds(of []joblog.LineProblem) map[string]int64 {
	found := map[string]int64{}
	for _, k := range of {
		found[k.Kind] = k.Count
	}
	return found
}

func TestAJobIsReadWithAllThatItsLineSays(t *testing.T) {
	jobs, tally := all(t, header+line("12_4", "train"))
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := record.HistoryJob{
		JobID: "12_4", Submitted: at, Started: at.Add(time.Minute), Ended: at.Add(61 * time.Minute),
		User: "ada", Account: "lab",
		Partition: "gpu", QOS: "normal", Name: []byte("train"), GPUs: live.Known(2), CPUs: live.Known(8),
		Nodes:    live.Known(1),
		GPUModel: "h200", Limit: live.LimitOf(2 * time.Hour), State: "COMPLETED", ExitCode: live.Known(0),
		EnergyJ: live.Known(7200),
	}
	if len(jobs) != 1 || !reflect.DeepEqual(jobs[0], want) {
		t.Errorf("got  %+v\nwant %+v", jobs, want)
	}
	if tally.Jobs != 1 || tally.Lines != 2 || tally.SkippedLines() != 0 ||
		!tally.From.Equal(want.Submitted) || !tally.Until.Equal(want.Ended) {
		t.Errorf("%+v", tally)
	}
}

func TestStepsAreFoldedIntoTheirJob(t *testing.T) {
	const head = "JobID|State|Submit|Start|End|ElapsedRaw|ConsumedEnergyRaw|TRESUsageInAve\n"
	job := "7|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T01:00:00|3600||\n"
	for name, c := range map[string]struct {
		steps  string
		energy live.Number
		busy   live.Number
	}{
		"none": {"", live.Number{}, live.Number{}},
		"batch spans what runs inside of it": {
			"7.batch|COMPLETED|||||1000|\n7.0|COMPLETED|||||400|\n7.1|COMPLETED|||||500|\n", live.Known(1000),
			live.Number{},
		},
		"extern spans all nodes": {
			"7.batch|COMPLETED|||||1000|\n7.extern|COMPLETED|||||2500|\n", live.Known(2500), live.Number{},
		},
		"utilisation by time": {
			"7.0|COMPLETED||||100|10|cpu=00:00:01,gres/gpumem=5M,gres/gpuutil=90\n" +
				"7.1|COMPLETED||||300|20|gres/gpuutil=10\n", live.Known(30), live.Known(0.3),
		},
		"utilisation without what sums leave": {
			"7.0|COMPLETED||||100||gres/gpuutil=77\n7.1|COMPLETED||||77||gres/gpuutil=77\n",
			live.Number{},
			live.Known(0.77),
		},
		"not measured": {"7.batch|COMPLETED|||||18446744073709551614|\n", live.Number{}, live.Number{}},
	} {
		jobs, tally := all(t, head+job+c.steps)
		if len(jobs) != 1 || jobs[0].EnergyJ != c.energy || jobs[0].Utilisation != c.busy {
			t.Errorf("%s: %+v", name, jobs)
		}
		if want := int64(strings.Count(c.steps, "\n")); tally.Steps != want || tally.SkippedLines() != 0 {
			t.Errorf("%s: %+v", name, tally)
		}
	}
}

func TestAStepWithoutItsJobIsNamed(t *testing.T) {
	jobs, tally := all(t, header+line("7.batch", "batch")+line("8", "a")+line("7.0", "x"))
	if ids(jobs) != "8" || kinds(tally.Skipped)["step without its job"] != 2 {
		t.Errorf("%s, %+v", ids(jobs), tally)
	}
}

func TestADelimiterInANameIsMended(t *testing.T) {
	jobs, tally := all(t, header+line("1", "a|b")+line("2", "||x||")+line("3", "plain"))
	if ids(jobs) != "1 2 3" || string(jobs[0].Name) != "a|b" || string(jobs[1].Name) != "||x||" ||
		jobs[1].User != "ada" {
		t.Errorf("%+v", jobs)
	}
	if tally.SkippedLines() != 0 || len(tally.Noted) != 1 || tally.Noted[0].Count != 2 ||
		tally.Noted[0].First[0] != "log:2: job 1" {
		t.Errorf("%+v", tally)
	}
}

func TestANewlineInANameIsMendedAndNothingInItIsTakenForAJob(t *testing.T) {
	forged := strings.TrimSuffix(line("99", "evil", "User", "root"), "\n")
	jobs, tally := all(t, header+line("1", "a\n\nb")+line("2", "x\n"+forged+"\ny")+line("3", "plain"))
	if ids(jobs) != "1 2 3" || string(jobs[0].Name) != "a\n\nb" {
		t.Errorf("%s: %q", ids(jobs), jobs)
	}
	if tally.SkippedLines() != 0 || tally.Lines != 8 {
		t.Errorf("%+v", tally)
	}
}

func TestATruncatedLineCostsNoOther(t *testing.T) {
	whole := line("2", "b")
	for cut := range len(whole) - 1 {
		jobs, tally := all(t,
			header+line("1", "a")+whole[:cut]+"\n"+line("3", "c")+line("4", "d")+whole[:cut])
		got := strings.ReplaceAll(ids(jobs), " 2", "") // the exit code may be cut
		if got != "1 3 4" {
			t.Fatalf("cut at %d: %s, %+v", cut, ids(jobs), tally)
		}
		if cut > 0 && cut < len(whole)-5 && kinds(tally.Skipped)["truncated line"] != 2 {
			t.Fatalf("cut at %d: %+v", cut, tally)
		}
	}
}

func TestALineThatCanBeReadInTwoWaysIsLeftOut(t *testing.T) {
	text := "JobID|State|Start|End|JobName|User|Account\n1|COMPLETED|1767322805|1767326405|x|root|ada|lab\n"
	jobs, tally := all(t, text)
	if len(jobs) != 0 || kinds(tally.Skipped)["more columns than the header"] != 1 {
		t.Errorf("%+v, %+v", jobs, tally)
	}
}

func TestWhatMakesNoSenseIsCountedByKindAndTheFirstAreNamed(t *testing.T) {
	var text strings.Builder
	text.WriteString(header)
	for i := range 9 {
		text.WriteString(line(strconv.Itoa(100+i), "a", "State", "EXPLODED"))
	}
	for _, bad := range []struct{ column, value string }{
		{"Start", "yesterday"},
		{"ElapsedRaw", "-5"},
		{"Submit", "-5"},
		{"End", "2025-01-01T00:00:00"},
		{"Submit", "2027-01-01T00:00:00"},
		{"AllocTRES", "cpu=many"},
		{"JobID", "x"},
		{"TimelimitRaw", "-1"},
		{"End", "Unknown"},
		{"ExitCode", "seven"},
	} {
		text.WriteString(line("7", "a", bad.column, bad.value))
	}
	text.WriteString(line("8", "a\x00b"))
	text.WriteString(line("9", strings.Repeat("x", 2<<20)))
	text.WriteString(line("10", "a", "TimelimitRaw", "UNLIMITED") +
		line("11", "a", "TimelimitRaw", "Partition_Limit") + line("12", "a", "TimelimitRaw", "INVALID"))
	text.WriteString(line("13", "a", "State", "RUNNING", "End", "Unknown") + line("14", "a", "State",
		"CANCELLED by 7", "Start", "None", "ElapsedRaw", "0"))
	jobs, tally := all(t, text.String())
	if ids(jobs) != "7 10 11 12" || tally.NotEnded != 1 || tally.NeverRan != 1 {
		t.Errorf("%s, %+v", ids(jobs), tally)
	}
	want := map[string]int64{
		"unknown state": 9, "time": 1, "negative time": 3,
		"ends before it starts, or starts before it is submitted": 2, "number": 2,
		"job id": 1, "not text": 1, "line too long": 1,
	}
	if got := kinds(tally.Skipped); !reflect.DeepEqual(got, want) {
		t.Errorf("skipped %v\nwant    %v", got, want)
	}
	if got, want := kinds(tally.Noted), map[string]int64{
		"no time limit":           1,
		"time limit not stated":   2,
		"start or end not stated": 1,
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("noted %v, want %v", got, want)
	}
	if first := tally.Skipped[0].First; len(first) != 5 ||
		first[4] != `log:6: "EXPLODED", want one of Slurm's` {
		t.Errorf("first %q", first)
	}
}

func TestAStrictReaderRefusesAtTheFirstLineThatMakesNoSense(t *testing.T) {
	var jobs []record.HistoryJob
	text := header + line("1", "a") + line("2", "b", "State", "EXPLODED") + line("3", "c")
	_, err := joblog.ReadSacct(strings.NewReader(text), "log", &joblog.Options{Strict: true}, keep(&jobs))
	wrong, ok := errors.AsType[*joblog.LineError](err)
	if !ok || wrong.Line != 3 || err.Error() != `log:3: unknown state: "EXPLODED", want one of Slurm's` {
		t.Errorf("got %v", err)
	}
}

func TestTheFormsOfText(t *testing.T) {
	plain := header + line("1", "ä") + line("2", "b")
	for name, text := range map[string]string{
		"parsable2":             plain,
		"parsable":              strings.ReplaceAll(plain, "\n", "|\n"),
		"CRLF":                  strings.ReplaceAll(plain, "\n", "\r\n"),
		"byte order mark":       "\ufeff" + plain,
		"unit separators":       strings.ReplaceAll(plain, "|", "\x1f"),
		"two characters":        strings.ReplaceAll(plain, "|", "^_"),
		"no newline in the end": strings.TrimSuffix(plain, "\n"),
		"header twice":          plain + header,
		"blank lines":           strings.ReplaceAll(plain, "\n", "\n\n"),
	} {
		jobs, tally := all(t, text)
		if ids(jobs) != "1 2" || string(jobs[0].Name) != "ä" || tally.SkippedLines() != 0 {
			t.Errorf("%s: %s, %+v", name, ids(jobs), tally)
		}
	}
}

func TestWhatIsNoSacctOutputIsRefusedWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "log: is empty",
		strings.Repeat("|", 2<<20):              "log:1: a line of more than 1048576 bytes, want a header",
		"\x7fELF\x00\x01|JobID":                 "log:1: a zero byte at column 5",
		"JobID JobName State\n":                 "separated by space",
		"1|2|3\n":                               "log:1: want a header",
		"JobID|State\n":                         "log:1: no columns Start and End",
		"State|Start|End\n":                     "JobID or JobIDRaw",
		"JobID|Start|End\n":                     "no column State",
		`{"jobs": [ {"job_id": 1, `:             "log:1:",
		`{"errors": [{"error":"no slurmdbd"}]}`: "sacct failed: no slurmdbd",
	} {
		_, err := joblog.ReadSacct(strings.NewReader(text), "log", &joblog.Options{},
			func(*record.HistoryJob) error { return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
}

func TestARequeuedJobIsOneJobForEachSubmissionAndARepeatedOneIsLeftOut(t *testing.T) {
	again := line("1", "a", "Submit", "2026-01-02T03:05:05", "State", "NODE_FAIL")
	jobs, tally := all(t, header+line("1", "a")+again+line("1", "a")+line("2+0", "h")+line("2+1", "h"))
	if ids(jobs) != "1 1 2+0 2+1" || tally.Repeated != 1 {
		t.Errorf("%s, %+v", ids(jobs), tally)
	}
}

func TestAVisitorsErrorEndsTheReading(t *testing.T) {
	enough := errors.New("enough")
	_, err := joblog.ReadSacct(strings.NewReader(header+line("1", "a")), "log", &joblog.Options{},
		func(*record.HistoryJob) error { return enough })
	if !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}

func FuzzReadSacct(f *testing.F) {
	f.Add([]byte(header + line("1", "a|b") + line("2", "c\nd") + line("3.batch", "batch") + "4|"))
	f.Add([]byte("JobID|State|Start|End\n1|COMPLETED|1|2\n"))
	f.Add(
		[]byte(
			`{"jobs":[{"job_id":1,"state":{"current":"COMPLETED"},"nodes":"n1","time":{"start":5,"end":7,"submission":4}}]}`,
		),
	)
	f.Add([]byte("JobID|State|Submit|Start|End\n1|COMPLETED||0000-01-01T00:00:00|0000-01-01T00:00:00\n"))
	f.Add([]byte("JobID|State|End|ElapsedRaw|Timelimit\n1|COMPLETED|10|1|0\n"))
	f.Fuzz(func(t *testing.T, data []byte) { checkLog(t, joblog.ReadSacct, string(data)) })
}

// Every state and flag that Slurm's documentation lists is known: its job is over, or counted as not ended.
func TestEveryStateOfSlurmsIsKnown(t *testing.T) {
	for state, over := range map[string]bool{
		"LAUNCH_FAILED": true, "BOOT_FAIL": true, "NODE_FAIL": true, "OUT_OF_MEMORY": true, "DEADLINE": true,
		"REVOKED": true, "REQUEUED": true, "PREEMPTED": true, "PENDING": false, "RUNNING": false,
		"SUSPENDED":  false,
		"COMPLETING": false, "CONFIGURING": false, "EXPEDITING": false, "POWER_UP_NODE": false,
		"RECONFIG_FAIL": false, "REQUEUE_FED": false, "REQUEUE_HOLD": false, "RESIZING": false,
		"RESV_DEL_HOLD": false, "SIGNALING": false, "SPECIAL_EXIT": false, "STAGE_OUT": false, "STOPPED": false,
		"UPDATE_DB": false,
	} {
		jobs, tally := all(t, header+line("1", "a", "State", state))
		if len(tally.Skipped) > 0 || over != (len(jobs) == 1 && jobs[0].State == state) ||
			over == (tally.NotEnded == 1) {
			t.Errorf("%s: %+v, %+v", state, jobs, tally)
		}
	}
}
