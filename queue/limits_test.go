package queue_test

import (
	"io"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/queue"
)

// endlessWords repeats a text up to a number of bytes and counts what was read.
type endlessWords struct {
	text       string
	left, read int
}

func (e *endlessWords) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := 0
	for n < min(len(p), e.left) {
		start := (e.read + n) % len(e.text)
		n += copy(p[n:min(len(p), e.left)], e.text[start:])
	}
	e.read, e.left = e.read+n, e.left-n
	return n, nil
}

func readers(start string, rest io.Reader) io.Reader {
	return io.MultiReader(strings.NewReader(start), rest)
}

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
)

func TestAHugeLineOrTokenEndsEarlyInAnErrorThatNamesItsLine(t *testing.T) {
	const csv, json = "id,name,runtime_s\na,x,1\n", `{"id":"a","runtime_s":1}` + "\n"
	for _, c := range []struct {
		name, start, repeat, want string
		format                    queue.Format
		most                      int // bytes that may be read
	}{
		{"first line", "", "a", "batch:1:1: line is longer than 1 MiB", queue.Auto, 2 * mebibyte},
		{"third line", csv, "a,", "batch:3:1: line is longer than 1 MiB", queue.CSV, 2 * mebibyte},
		{"open quote", csv + "\"", "a,\n", "batch:3:1: record is longer than 1 MiB", queue.CSV, 2 * mebibyte},
		{
			"after a quoted line end", csv + "\"b\n\",x,1\n\"", "a,\n",
			"batch:5:1: record is longer than 1 MiB", queue.CSV, 2 * mebibyte,
		},
		{
			"edl", "id,P0,gamma,c,D,delta,t0\n", "1", "batch:2:1: line is longer than 1 MiB", queue.EDL,
			2 * mebibyte,
		},
		{
			"JSON string", json + "{\"id\":\"", "a", "batch:2:7: string is longer than 1 MiB", queue.JSON,
			2 * mebibyte,
		},
		{"JSON number", json + "{\"runtime_s\":", "1", "is longer than 1 MiB", queue.JSON, 2 * mebibyte},
		{"JSON junk", json, "a", "is not a JSON value", queue.JSON, mebibyte},
		{"JSON brackets", json, "[", "unexpected", queue.JSON, mebibyte},
		{
			"JSON nested objects", "", `{"model":`, "batch:1:11: unknown key \"model\" in a model",
			queue.JSON, mebibyte,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			rest := &endlessWords{text: c.repeat, left: gibibyte}
			before := allocated()
			_, err := queue.Read(readers(c.start, rest), "batch", c.format)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if rest.read > c.most {
				t.Errorf("%d bytes were read, want at most %d", rest.read, c.most)
			}
			if used := allocated() - before; used > gibibyte/8 {
				t.Errorf("%d bytes were allocated", used)
			}
		})
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestACompactJSONDocumentMayBeOneLongLine(t *testing.T) {
	var text strings.Builder
	text.WriteString(`{"jobs":[{"id":"first","runtime_s":1}`)
	jobs := 1
	for text.Len() < 3*mebibyte {
		text.WriteString(`,{"runtime_s":1,"id":` + strings.Repeat(" ", 1000) + `"` +
			strings.Repeat("x", jobs%200) + "-" + string(rune('a'+jobs/200)) + `"}`)
		jobs++
	}
	text.WriteString("]}")
	b := read(t, queue.JSON, text.String())
	if len(b.Jobs) != jobs {
		t.Errorf("%d jobs, want %d", len(b.Jobs), jobs)
	}
}

func TestARecordMayBeUpToOneMiBLong(t *testing.T) {
	row := func(size int) string { return "a,1," + strings.Repeat(" ", size-len("a,1,\n")) + "\n" }
	if _, err := queue.Read(strings.NewReader("id,runtime_s,name\n"+row(mebibyte)), "batch",
		queue.CSV); err != nil {
		t.Errorf("1 MiB: %v", err)
	}
	if _, err := queue.Read(strings.NewReader("id,runtime_s,name\n"+row(mebibyte+2)), "batch",
		queue.CSV); err == nil {
		t.Error("more than 1 MiB was read")
	}
}

func TestPrintableShowsWhatWouldActOnATerminal(t *testing.T) {
	for in, want := range map[string]string{
		"plain, naïve 日本 'q' \\": "plain, naïve 日本 'q' \\",
		"\x1b[2Jgone":            `\x1b[2Jgone`,
		"a\nb\tc\rd\x00\u007f":   `a\nb\tc\rd\x00\x7f`,
		"c1 \u009b31m":           `c1 \u009b31m`,
		"right \u202eto left":    `right \u202eto left`,
		"no\u200b \ufeffwidth":   `no\u200b \ufeffwidth`,
		"bad \xff and \ufffd":    `bad \xff and ` + "\ufffd",
		"":                       "",
	} {
		if got := queue.Printable(in); got != want {
			t.Errorf("Printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestMessagesShowNoControlCharactersAndOnlyTheStartOfLongText(t *testing.T) {
	long := strings.Repeat("\u202e\x1b[1m", 10000)
	for _, text := range []string{
		"id,runtime_s\na," + long, "id," + long,
		"[{\"" + strings.Repeat("\u202e", 10000) + "\":1}]", "[" + long,
	} {
		_, err := queue.Read(strings.NewReader(text), "dir/\x1b[1mbatch", queue.Auto)
		if err == nil {
			t.Fatal("no error")
		}
		if queue.Printable(err.Error()) != err.Error() || len(err.Error()) > 600 {
			t.Errorf("message %q", err)
		}
	}
}

func TestValidateCatchesJobsThatNoFileCouldHold(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*queue.Job)
		want   string
	}{
		"no GPUs": {func(j *queue.Job) {
			j.GPUs = nil
		}, `job "a": gpus lists 0 GPU models, want 1 to 64`},
		"GPU model name": {func(j *queue.Job) {
			j.GPUs[0].Model = "V100:2"
		}, `job "a": gpus model "V100:2" has one of : ; *, want a name without`},
		"invalid UTF-8": {func(j *queue.Job) {
			j.User = "\xff"
		}, `job "a": user is not valid UTF-8, want text`},
		"space at the end": {func(j *queue.Job) {
			j.Workload = "w "
		}, `job "a": workload "w " begins or ends with a space, want text without`},
		"NaN deadline": {func(j *queue.Job) {
			j.Deadline = math.NaN()
		}, `job "a": deadline_s is NaN, want a number from 0 to 1e15, or inf for none`},
		"NaN share": {func(j *queue.Job) {
			j.Share = math.NaN()
		}, `job "a": share is NaN, want a number above 0, up to 1`},
		"infinite arrival": {func(j *queue.Job) {
			j.Arrival = math.Inf(1)
		}, `job "a": arrival_s is inf, want a number from 0 to 1e15`},
		"NaN coefficient": {func(j *queue.Job) {
			j.Model = &dvfsmodel.Params{D: 1, C: dvfsmodel.Watt(math.NaN())}
		}, `job "a": c_w is NaN, want a number from 0 to 1e15`},
		"extra name": {func(j *queue.Job) {
			j.Extra = []queue.Field{{Name: "team", Value: "1"}}
		}, `job "a": column name "team", want one that begins with x_`},
		"extra without": {func(j *queue.Job) {
			j.Extra = []queue.Field{{Name: "x_a"}}
		}, `job "a": x_a is empty, want a value, or no such column`},
		"extras unordered": {func(j *queue.Job) {
			j.Extra = []queue.Field{{"x_b", "1"}, {"x_a", "1"}}
		}, `job "a": column "x_a" comes after "x_b", want x_ columns by name, each once`},
		"extra space": {func(j *queue.Job) {
			j.Extra = []queue.Field{{"x_b", "\u00a0"}}
		}, `job "a": x_b "\u00a0" begins or ends with a space, want text without`},
		"nothing but an id": {func(j *queue.Job) {
			j.Runtime = 0
		}, `job "a": nothing says how long job "a" runs, want a run time, a workload or a model`},
	} {
		t.Run(name, func(t *testing.T) {
			j := job("a", func(j *queue.Job) { j.Runtime = 1 })
			if err := j.Validate(); err != nil {
				t.Fatalf("before the change: %v", err)
			}
			c.change(&j)
			if err := j.Validate(); err == nil || err.Error() != c.want {
				t.Errorf("\n got %v\nwant %s", err, c.want)
			}
			if err := (&queue.Batch{Jobs: []queue.Job{j}}).Validate(); err == nil || err.Error() != c.want {
				t.Errorf("batch: %v", err)
			}
			if err := queue.WriteCSV(io.Discard, &queue.Batch{Jobs: []queue.Job{j}}); err == nil {
				t.Error("WriteCSV wrote it")
			}
			if err := queue.WriteJSON(io.Discard, &queue.Batch{Jobs: []queue.Job{j}}); err == nil {
				t.Error("WriteJSON wrote it")
			}
		})
	}
}

func TestTwoJobsWithOneIDAreNamedByTheirNumber(t *testing.T) {
	a := job("a", func(j *queue.Job) { j.Runtime = 1 })
	err := (&queue.Batch{Jobs: []queue.Job{a, a}}).Validate()
	if err == nil || !strings.Contains(err.Error(), "jobs number 1 and 2") {
		t.Errorf("error %v", err)
	}
}

func TestGPUsOnFallsBackToAnyOtherModel(t *testing.T) {
	mixed := queue.Job{GPUs: []queue.GPUCount{{Count: 4}, {Model: "V100", Count: 2}}}
	only := queue.Job{GPUs: []queue.GPUCount{{Model: "V100", Count: 2}}}
	for _, c := range []struct {
		job   *queue.Job
		model string
		count int
		ok    bool
	}{
		{&mixed, "V100", 2, true},
		{&mixed, "K80", 4, true},
		{&only, "V100", 2, true},
		{&only, "K80", 0, false},
	} {
		if count, ok := c.job.GPUsOn(c.model); count != c.count || ok != c.ok {
			t.Errorf("GPUsOn(%q) = %d, %v", c.model, count, ok)
		}
	}
}
