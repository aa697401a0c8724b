package slurm_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/epplan/epplan/slurm"
)

// ids reads an answer as it comes, and gives the jobs' ids.
func ids(r io.Reader) ([]slurm.JobID, error) {
	var out []slurm.JobID
	_, err := slurm.ScanJobs("squeue --json", r, func(j *slurm.Job) error {
		out = append(out, j.ID)
		return nil
	})
	return out, err
}

func TestAnAnswerInSmallPiecesReadsAsTheWhole(t *testing.T) {
	answers := map[string][]byte{"recorded": sample(t, "squeue.json")}
	for release, answer := range squeueVariants {
		answers[release] = []byte(answer)
	}
	for name, data := range answers {
		want, wantMeta, err := parseJobs("squeue", data)
		if err != nil || len(want) == 0 {
			t.Fatal(name, err)
		}
		for how, r := range map[string]io.Reader{
			"bytes":         iotest.OneByteReader(bytes.NewReader(data)),
			"halves":        iotest.HalfReader(bytes.NewReader(data)),
			"end with data": iotest.DataErrReader(bytes.NewReader(data)),
		} {
			var got []slurm.Job
			meta, err := slurm.ScanJobs("squeue", r, func(j *slurm.Job) error {
				got = append(got, *j)
				return nil
			})
			if err != nil || !reflect.DeepEqual(got, want) || !reflect.DeepEqual(meta, wantMeta) {
				t.Errorf("%s in %s: %d jobs, %+v, %v", name, how, len(got), meta, err)
			}
		}
	}
}

func TestAnAnswerCutAnywhereIsAnErrorAfterTheJobsBefore(t *testing.T) {
	data := bytes.TrimSpace(sample(t, "squeue.json"))
	whole, err := ids(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	lot := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		cut := lot.IntN(len(data))
		got, err := ids(bytes.NewReader(data[:cut]))
		var at *slurm.ParseError
		if !errors.As(err, &at) || len(got) > len(whole) ||
			!reflect.DeepEqual(got, whole[:len(got)]) && len(got) > 0 {
			t.Fatalf("cut at %d: %v, %v", cut, got, err)
		}
		if want := bytes.Count(data[:cut], []byte("\n")) + 1; at.Line != want {
			t.Errorf("cut at %d: line %d, want %d", cut, at.Line, want)
		}
	}
	broken := errors.New("broken pipe")
	if _, err := ids(io.MultiReader(bytes.NewReader(data[:len(data)/2]),
		iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestGarbageInTheMiddleIsAnErrorWithItsPlace(t *testing.T) {
	for garbage, column := range map[string]int{
		"slurm_load_jobs error": 1, "{\"job_id\":2},,": 14,
		"{\"job_id\" 2}": 11, "{\"job_id\":2,\"name\":\"a\tb\"}": 22, "\x00": 1,
	} {
		answer := "{\"jobs\":[\n{\"job_id\":1},\n" + garbage + "\n,{\"job_id\":3}]}"
		got, err := ids(strings.NewReader(answer))
		var at *slurm.ParseError
		if !errors.As(err, &at) || at.Line != 3 || at.Column != column || len(got) == 0 || got[0] != 1 ||
			len(got) > 2 {
			t.Errorf("%q: %v, %v", garbage, got, err)
		}
	}
}

func TestAJobWithAMegabyteOfCommentIsReadWhole(t *testing.T) {
	comment := strings.Repeat(`line\n\"quoted\" ü \/ \u00e9 \ud83d\ude00 \ud800 `+"\xff", 1<<20/45)
	want := strings.Repeat("line\n\"quoted\" ü / é 😀 \ufffd "+`\xff`, 1<<20/45)
	answer := `{"jobs":[{"job_id":1},{"job_id":2,"comment":"` + comment + `","name":"after"},{"job_id":3}]}`
	jobs, _, err := parseJobs("squeue", []byte(answer))
	if err != nil || len(jobs) != 3 || jobs[1].Comment != want || jobs[1].Name != "after" {
		t.Error(len(jobs), err)
	}
}

// endless is a text, and then another one again and again.
type endless struct {
	head, body string
	at         int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.at < len(e.head) {
		n := copy(p, e.head[e.at:])
		e.at += n
		return n, nil
	}
	n := 0
	for n < len(p) {
		m := copy(p[n:], e.body[(e.at-len(e.head))%len(e.body):])
		e.at += m
		n += m
	}
	return n, nil
}

func TestARecordWithoutAnEndIsRefused(t *testing.T) {
	for name, body := range map[string]string{
		"core": strings.Repeat(`{"core":1},`, 1000),
		"text": strings.Repeat("x", 1000),
	} {
		head := `{"jobs":[{"job_id":1},{"job_id":2,"job_resources":[`
		if name == "text" {
			head = `{"jobs":[{"job_id":1},{"job_id":2,"comment":"`
		}
		if got, err := ids(&endless{head: head, body: body}); err == nil ||
			!strings.Contains(err.Error(), "record too long") || len(got) != 1 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestARecordThatIsTooLongIsNamedWithItsPlaceAndJob(t *testing.T) {
	for name, c := range map[string]struct{ record, want string }{
		"id before": {
			`{"array":{"job_id":7},"job_id":42,"steps":[`,
			"sacct:3:2: jobs[1], job 42: record too long, want 64 MiB at most",
		},
		"id after": {
			`{"array":{"job_id":7},"steps":[`, "sacct:3:2: jobs[1]: record too long, want 64 MiB at most",
		},
	} {
		jobs := 0
		in := &endless{
			head: "{\"jobs\":[\n{\"job_id\":1},\n " + c.record, body: strings.Repeat("{\"a\":1},\n", 1000),
		}
		_, err := slurm.ReadAccountingJSON("sacct", in, func(int, *slurm.AccountingRecord, error) error {
			jobs++
			return nil
		})
		if err == nil || err.Error() != c.want || jobs != 1 {
			t.Errorf("%s: %v after %d jobs, want %s after 1", name, err, jobs, c.want)
		}
	}
}

func TestAHundredThousandJobsAreReadInLittleMemory(t *testing.T) {
	_, rest, _ := strings.Cut(string(sample(t, "squeue.json")), "\"jobs\": [\n")
	record, _, ok := strings.Cut(rest, "\n    },\n")
	if !ok {
		t.Fatal("no job in the sample")
	}
	const jobs = 100_000
	r, w := io.Pipe()
	go func() {
		_, err := io.WriteString(w, `{"jobs":[`+record)
		for i := 1; i < jobs && err == nil; i++ {
			_, err = io.WriteString(w, "},\n"+record)
		}
		_, _ = io.WriteString(w, "}]}")
		w.CloseWithError(err)
	}()
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n, most := 0, uint64(0)
	_, err := slurm.ScanJobs("squeue", r, func(*slurm.Job) error {
		if n++; n%10_000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
		}
		return nil
	})
	if err != nil || n != jobs {
		t.Fatal(n, err)
	}
	if grown := float64(most) - float64(before.HeapAlloc); grown > 2<<20 {
		t.Errorf("%.0f bytes are kept of %d MB", grown, jobs*len(record)>>20)
	}
}

// script returns a squeue of our own, with a file for its process id.
func script(t *testing.T, body string) slurm.ExecRunner {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "squeue"), "#!/bin/sh\necho $$ > "+dir+"/pid\n"+body+"\n")
	return slurm.ExecRunner{Dir: dir, Timeout: 20 * time.Second}
}

// gone fails unless the script's process was there and is reaped.
func gone(t *testing.T, r slurm.ExecRunner) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.Dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d: %v", pid, err)
	}
}

// each asks a squeue for all jobs.
func each(t *testing.T, r slurm.ExecRunner) ([]slurm.JobID, error) {
	t.Helper()
	var out []slurm.JobID
	_, err := slurm.NewClient(r, 0).EachJob(t.Context(), func(j *slurm.Job) error {
		out = append(out, j.ID)
		return nil
	})
	gone(t, r)
	return out, err
}

const (
	half  = `echo '{"jobs":[{"job_id":1},'; `
	whole = half + `echo '{"job_id":2}]}'; `
	// More than pipes and buffers hold.
	plug = `i=0; while [ $i -lt 40000 ]; do echo '{"job_id":7},'; i=$((i+1)); done; `
)

func TestJobsComeWhileSqueueRunsAndCountOnlyWhenItEndsWell(t *testing.T) {
	got, err := each(t, script(t, whole+"echo; echo note"))
	if err != nil || !reflect.DeepEqual(got, []slurm.JobID{1, 2}) {
		t.Error(got, err)
	}
	var failed *slurm.CommandError
	for _, body := range []string{half, whole, half + plug, "echo slurm_load_jobs error; ", ""} {
		_, err = each(t,
			script(t, body+"echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1"))
		if !errors.As(err, &failed) || failed.Status != 1 ||
			!strings.Contains(failed.Stderr, "Unable to contact") || !errors.Is(err, slurm.ErrUnreachable) {
			t.Errorf("%q and status 1: %v", body, err)
		}
	}
	var at *slurm.ParseError
	for _, body := range []string{
		half, half + "echo garbage; " + plug,
		half + "echo garbage; exec sleep 0.1", "",
	} {
		if _, err = each(t, script(t, body)); !errors.As(err, &at) {
			t.Errorf("%q: %v", body, err)
		}
	}
	if _, err = each(t, script(t, half+"kill -9 $$")); !errors.As(err, &failed) || failed.Status != -1 {
		t.Errorf("killed: %v", err)
	}
	if _, err = each(t, script(t, `echo '{"errors":[{"error":"not now"}],"jobs":[]}'`)); err == nil ||
		!strings.Contains(err.Error(), "not now") {
		t.Errorf("errors in the answer: %v", err)
	}
}

func TestASqueueThatHangsHalfWayEndsWithItsBound(t *testing.T) {
	for _, body := range []string{
		half + "exec sleep 60", "exec sleep 60", whole + "exec sleep 60",
		half + "sleep 3 & exit 0", half + "exec >&-; exec sleep 60", half + "echo garbage; exec sleep 60",
	} {
		for bound := 300 * time.Millisecond; ; bound *= 2 {
			r := script(t, body)
			r.Timeout = bound
			began := time.Now()
			_, err := slurm.NewClient(r, 0).EachJob(t.Context(), func(*slurm.Job) error { return nil })
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 10*time.Second {
				t.Errorf("%q: %v after %s", body, err, time.Since(began))
			}
			// On a busy machine the script may have come to nothing in that time.
			if text, _ := os.ReadFile(filepath.Join(r.Dir, "pid")); len(text) > 0 || bound > 2*time.Second {
				gone(t, r)
				break
			}
		}
	}
	r := script(t, half+"exec sleep 60")
	ctx, cancel := context.WithCancel(t.Context())
	_, err := slurm.NewClient(r, 0).EachJob(ctx, func(*slurm.Job) error {
		cancel()
		return nil
	})
	gone(t, r)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestAStreamIsBoundedAndEndsWithItsReader(t *testing.T) {
	forever := half + `while :; do echo '{"job_id":7},'; done`
	r := script(t, forever)
	r.MaxStream = 1 << 20
	if got, err := each(t, r); !errors.Is(err, slurm.ErrOutputTooLong) || len(got) < 1000 ||
		len(got) > 1<<20/13 {
		t.Error(len(got), err)
	}
	r, enough := script(t, forever), errors.New("enough")
	_, err := slurm.NewClient(r, 0).EachJob(t.Context(), func(*slurm.Job) error { return enough })
	gone(t, r)
	if !errors.Is(err, enough) || err.Error() != "enough" {
		t.Error(err)
	}
	none := func(io.Reader) error { return nil }
	if err := r.Stream(t.Context(), none, "sh"); !errors.Is(err, slurm.ErrInvalid) {
		t.Error(err)
	}
	var failed *slurm.CommandError
	if err := r.Stream(t.Context(), none, "sinfo"); !errors.As(err, &failed) {
		t.Error(err)
	}
}
