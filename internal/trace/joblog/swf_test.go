package joblog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/trace/joblog"
	"github.com/epplan/epplan/live"
)

const swf = "; Version: 2.2\n;UnixStartTime: 1000000000\n; MaxProcs: 128\n" +
	"1 0 10 100 16 -1 -1 16 3600 -1 1 3 1 7 2 -1 -1 -1\n" +
	"  2  5 -1  50 -1 -1 -1 8 -1 -1 0 4 -1 -1 -1 1 -1 -1\r\n"

func readSWF(t *testing.T, text string) ([]record.HistoryJob, *joblog.Tally) {
	t.Helper()
	var jobs []record.HistoryJob
	tally, err := joblog.ReadSWF(strings.NewReader(text), "log.swf", &joblog.Options{}, keep(&jobs))
	if err != nil {
		t.Fatal(err)
	}
	return jobs, tally
}

func TestTheStandardWorkloadFormatIsRead(t *testing.T) {
	jobs, tally := readSWF(t, swf)
	if len(jobs) != 2 || tally.SkippedLines() != 0 || tally.Lines != 5 {
		t.Fatalf("%+v, %+v", jobs, tally)
	}
	first, second := &jobs[0], &jobs[1]
	begin := time.Unix(1e9, 0).UTC()
	if !first.Submitted.Equal(begin) || !first.Started.Equal(begin.Add(10*time.Second)) ||
		first.RunTime() != live.Known(100) {
		t.Errorf("times of %+v", first)
	}
	if first.User != "3" || first.Account != "1" || string(first.Name) != "7" || first.QOS != "2" ||
		first.Partition != "" ||
		first.CPUs != live.Known(16) || first.Limit != live.LimitOf(time.Hour) || first.State != "COMPLETED" {
		t.Errorf("%+v", first)
	}
	if second.State != "FAILED" || second.CPUs != live.Known(8) || second.Limit.IsSet() ||
		second.GPUs != (live.Number{}) ||
		!second.Started.Equal(second.Submitted) || kinds(tally.Noted)["wait not stated"] != 1 {
		t.Errorf("%+v, %+v", second, tally)
	}
}

func TestWrongLinesOfTheStandardWorkloadFormatAreNamedAndCounted(t *testing.T) {
	_, tally := readSWF(t, swf+strings.Join([]string{
		"3 0 10 100 16 -1 -1", // truncated
		"4 0 10 100 16 -1 -1 16 3600 -1 1 3 1 7 2 -1 -1 -1 9",   // too many
		"5 0 10 x 16 -1 -1 16 3600 -1 1 3 1 7 2 -1 -1 -1",       // no number
		"6 -9 10 100 16 -1 -1 16 3600 -1 1 3 1 7 2 -1 -1 -1",    // negative
		"7 0 10 -100 16 -1 -1 16 3600 -1 1 3 1 7 2 -1 -1 -1",    // negative
		"8 0 10 100 16 -1 -1 16 3600 -1 9 3 1 7 2 -1 -1 -1",     // status
		"9 0 10 -1 16 -1 -1 16 3600 -1 5 3 1 7 2 -1 -1 -1",      // never ran
		"10 0 10 100 16 -1 -1 16 3600 -1 2 3 1 7 2 -1 -1 -1",    // a part
		"-1 0 10 100 16 -1 -1 16 3600 -1 1 3 1 7 2 -1 -1 -1",    // no id
		"; UnixStartTime: soon",                                 // no time
		"1\x00 0 10 100 16 -1 -1 16 3600 -1 1 3 1 7 2 -1 -1 -1", // not text
	}, "\n"))
	for kind, want := range map[string]int64{
		"truncated line": 1, "more columns than the header": 1, "number": 1, "negative time": 2,
		"unknown state": 1, "job id": 1, "time": 1, "not text": 1,
	} {
		if got := kinds(tally.Skipped)[kind]; got != want {
			t.Errorf("%s: %d, want %d", kind, got, want)
		}
	}
	if tally.NeverRan != 1 || kinds(tally.Noted)["part of a job that is there as a whole"] != 1 ||
		tally.Jobs != 2 {
		t.Errorf("%+v", tally)
	}
}

func TestAnEmptyWorkloadLogIsRefused(t *testing.T) {
	_, err := joblog.ReadSWF(strings.NewReader("; nothing\n"), "log.swf", &joblog.Options{}, nil)
	if err == nil || !strings.Contains(err.Error(), "log.swf: is empty") {
		t.Errorf("got %v", err)
	}
}

func FuzzReadSWF(f *testing.F) {
	f.Add(swf)
	f.Fuzz(func(t *testing.T, text string) { checkLog(t, joblog.ReadSWF, text) })
}

func FuzzReadTable(f *testing.F) {
	const head = "job_id,submit_s,runtime_s,user,gpus,energy_kwh,state,name\n"
	for _, text := range []string{
		head + "1,1000000000,60,ada,2,0.5,COMPLETED,train\n2,1000000001,-1,,,,FAILED,\"a,\"\"b\"\n",
		head, "job_id\n1\n", "",
		head + "1_4,x,1e999,\xff,-1,NaN,,=1+1\n", "job_id,submit_s,runtime_s\n1,9e18,1\n1,2,3,4\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { checkLog(t, joblog.ReadTable, text) })
}
