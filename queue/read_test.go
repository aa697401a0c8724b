package queue_test

import (
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/queue"
)

func read(t *testing.T, format queue.Format, text string) *queue.Batch {
	t.Helper()
	b, err := queue.Read(strings.NewReader(text), "batch", format)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	return b
}

// at returns the place where a job of the file named batch was read.
func at(line, column int) queue.Position {
	return queue.Position{File: "batch", Line: line, Column: column}
}

func job(id string, change func(*queue.Job)) queue.Job {
	j := queue.NewJob(id)
	change(&j)
	return j
}

func checkJobs(t *testing.T, got, want []queue.Job) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d jobs, want %d", len(got), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("job %d:\n got %+v\nwant %+v", i, got[i], want[i])
		}
	}
}

func everyField(pos queue.Position) queue.Job {
	return queue.Job{
		ID: "a", Name: "first, of two", User: "ann", Workload: "gemm",
		Model:   &dvfsmodel.Params{P0: 60, Gamma: 30, C: 110, D: 99.5, Delta: 0.5, T0: 1e-7},
		Arrival: 1, Deadline: 1000, Limit: 500, Runtime: 120, Power: 200,
		GPUs:  []queue.GPUCount{{Model: "V100", Count: 1}, {Count: 1}},
		Share: 0.5, CPUs: 4, MemGiB: 16,
		Extra: []queue.Field{{Name: "x_b", Value: "2"}, {Name: "x_z", Value: "last"}},
		Pos:   pos,
	}
}

func TestCSVColumnsAreFoundByHeaderInAnyOrder(t *testing.T) {
	b := read(t, queue.CSV,
		"\uFEFFx_z,runtime_s , id,name,user,workload,arrival_s,deadline_s,limit_s,power_w,gpus,share,cpus,"+
			"mem_gib,t0_s,p0_w,gamma_w,c_w,d_s,delta,x_b\r\n"+
			"last,120, a,\"first, of two\",ann,gemm,1,1000,"+
			"500,200, V100:1 ; *:1 ,0.5,4,16,1e-7,60,30,110,99.5,.5,2\r\n"+
			"\r\n"+
			",60,b,,,,,inf,Inf,,,,,,,,,,,,\r\n")
	checkJobs(t, b.Jobs, []queue.Job{
		everyField(at(2, 1)),
		job("b", func(j *queue.Job) { j.Runtime, j.Pos = 60, at(4, 1) }),
	})
}

func TestQuotedCellsMayHoldCommasQuotesAndLineEnds(t *testing.T) {
	b := read(t, queue.CSV, "id,name,runtime_s\na,\"two\nlines, and a \"\"quote\"\"\",1\n"+
		"b, \"after a space\",2\n")
	checkJobs(t, b.Jobs, []queue.Job{
		job("a", func(j *queue.Job) {
			j.Name, j.Runtime, j.Pos = "two\nlines, and a \"quote\"", 1, at(2, 1)
		}),
		job("b", func(j *queue.Job) { j.Name, j.Runtime, j.Pos = "after a space", 2, at(4, 1) }),
	})
}

func TestEDLColumnsGiveEachJobItsModel(t *testing.T) {
	text := "id,app,arrival,deadline,P0,gamma,c,D,delta,t0,limit,gpus\n" +
		"0,cfd,0,26.5,70,24,87,19.9,0.6,3.9,,\n" +
		"1,mergeSort,5,inf,40,37,114,174,0.07,17,25,2\n"
	want := []queue.Job{
		job("0", func(j *queue.Job) {
			j.Name, j.Deadline, j.Pos = "cfd", 26.5, at(2, 1)
			j.Model = &dvfsmodel.Params{P0: 70, Gamma: 24, C: 87, D: 19.9, Delta: 0.6, T0: 3.9}
		}),
		job("1", func(j *queue.Job) {
			j.Name, j.Arrival, j.Limit, j.Pos = "mergeSort", 5, 25, at(3, 1)
			j.Model = &dvfsmodel.Params{P0: 40, Gamma: 37, C: 114, D: 174, Delta: 0.07, T0: 17}
			j.GPUs = []queue.GPUCount{{Count: 2}}
		}),
	}
	checkJobs(t, read(t, queue.EDL, text).Jobs, want)
	checkJobs(t, read(t, queue.Auto, text).Jobs, want)
}

func TestJSONIsAnObjectAnArrayOrOneJobALine(t *testing.T) {
	jobs := []string{
		`{"x_z":"last","id":"a","name":"first, of tw\u006f","user":"ann","workload":"gemm","arrival_s":1,"deadline_s":1e3,"limit_s":500,` +
			`"runtime_s":120,"power_w":200,"gpus":{"V100":1,"*":1},"share":0.5,"cpus":4,"mem_gib":16,"x_b":2,` +
			`"model":{"p0_w":60,"gamma_w":30,"c_w":110,"d_s":99.5,"delta":0.5,"t0_s":1e-7}}`,
		`{"id":7,"runtime_s":60,"deadline_s":"inf","limit_s":null,"gpus":2.0,"model":null,"x_c":null}`,
	}
	second := job("7", func(j *queue.Job) { j.Runtime, j.GPUs = 60, []queue.GPUCount{{Count: 2}} })
	for name, c := range map[string]struct {
		text   string
		places [2]queue.Position
	}{
		"object": {
			"{ \"jobs\" : [\n" + jobs[0] + ",\n " + jobs[1] + "]}\n", [2]queue.Position{at(2, 1), at(3, 2)},
		},
		"array":   {"[" + jobs[0] + "\n, " + jobs[1] + "]", [2]queue.Position{at(1, 2), at(2, 3)}},
		"lines":   {jobs[0] + "\r\n" + jobs[1], [2]queue.Position{at(1, 1), at(2, 1)}},
		"bom":     {"\uFEFF" + jobs[0] + "\n\n" + jobs[1], [2]queue.Position{at(1, 1), at(3, 1)}},
		"compact": {jobs[0] + jobs[1], [2]queue.Position{at(1, 1), at(1, 1+len(jobs[0]))}},
	} {
		t.Run(name, func(t *testing.T) {
			second := second
			second.Pos = c.places[1]
			want := []queue.Job{everyField(c.places[0]), second}
			checkJobs(t, read(t, queue.JSON, c.text).Jobs, want)
			checkJobs(t, read(t, queue.Auto, c.text).Jobs, want)
		})
	}
}

func TestTheNameDecidesTheFormatBeforeTheContent(t *testing.T) {
	for name, format := range map[string]string{
		"a.json": "unexpected", "a.JSONL": "unexpected", "a.csv": "",
		"a": "", "<stdin>": "",
	} {
		_, err := queue.Read(strings.NewReader("id,runtime_s\na,1\n"), name, queue.Auto)
		if format == "" && err != nil || format != "" && err == nil {
			t.Errorf("CSV text in %s: error %v", name, err)
		}
	}
	if _, err := queue.Read(strings.NewReader(`[{"id":"a","runtime_s":1}]`), "a.csv",
		queue.Auto); err == nil {
		t.Error("JSON text in a.csv was read")
	}
}

func TestFormatsAreCalledByName(t *testing.T) {
	for name, want := range map[string]queue.Format{
		"auto": queue.Auto, "csv": queue.CSV, "json": queue.JSON, "edl": queue.EDL,
	} {
		if got, err := queue.ParseFormat(name); err != nil || got != want {
			t.Errorf("ParseFormat(%q) = %v, %v", name, got, err)
		}
	}
	if _, err := queue.ParseFormat("xml"); err == nil {
		t.Error("xml is a format")
	}
}

func TestABatchWithoutJobsIsErrEmpty(t *testing.T) {
	for _, text := range []string{
		"", "\n\n", "\uFEFF", "id,runtime_s\n", "id,runtime_s\n\n  \n", "[]",
		`{"jobs":[]}`,
	} {
		b, err := queue.Read(strings.NewReader(text), "batch", queue.Auto)
		if !errors.Is(err, queue.ErrEmpty) || b != nil {
			t.Errorf("%q: %v, want ErrEmpty", text, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "batch: ") {
			t.Errorf("%q: %v does not name the file", text, err)
		}
	}
}

func TestAModelBesideAWorkloadIsAWarning(t *testing.T) {
	b := read(t, queue.JSON,
		`[{"id":"a","workload":"w","model":{"p0_w":1,"gamma_w":1,"c_w":1,"d_s":1,"delta":0,"t0_s":0}}]`)
	if len(b.Warnings) != 1 || !strings.HasPrefix(b.Warnings[0].Error(), "batch:1:2: ") {
		t.Errorf("warnings %v", b.Warnings)
	}
}

func TestAFailingReaderIsReportedWithTheName(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, start := range []string{"", "id,runtime_s\na,1\n", `[{"id":"a"`, "\xc3"} {
		in := io.MultiReader(strings.NewReader(start), iotest.ErrReader(broken))
		b, err := queue.Read(in, "dir/batch", queue.Auto)
		if b != nil || !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "dir/batch: ") {
			t.Errorf("after %q: %v", start, err)
		}
	}
}

func TestHowTheInputIsChunkedMakesNoDifference(t *testing.T) {
	texts := []string{
		"\uFEFFid,name,runtime_s\r\nä,\"naïve\n日本語\",1\n𝔹,x,2\n",
		"\uFEFF" + `[{"id":"ä","name":"日本語","runtime_s":1},{"id":"𝔹","runtime_s":2}]`,
		"id,runtime_s\nä\xff,1\n", "id,runtime_s\na\x00,1\n", "id,runtime_s\na,1\n\xe6\x97",
	}
	for _, text := range texts {
		want, wantErr := queue.Read(strings.NewReader(text), "batch", queue.Auto)
		for name, in := range map[string]io.Reader{
			"bytes":          iotest.OneByteReader(strings.NewReader(text)),
			"halves":         iotest.HalfReader(strings.NewReader(text)),
			"data and error": iotest.DataErrReader(strings.NewReader(text)),
		} {
			got, err := queue.Read(in, "batch", queue.Auto)
			if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(err, wantErr) {
				t.Errorf("%q in %s: %v, %v, want %v, %v", text, name, got, err, want, wantErr)
			}
		}
	}
}

func TestNumbersKeepTheirExactValue(t *testing.T) {
	b := read(t, queue.CSV, "id,runtime_s,arrival_s\na,0.1,-0\nb,1e-320,26.568071469946773\n")
	if v := b.Jobs[0].Arrival; v != 0 || math.Signbit(v) {
		t.Errorf("-0 was read as %v", v)
	}
	if b.Jobs[1].Runtime != 1e-320 || b.Jobs[1].Arrival != 26.568071469946773 {
		t.Errorf("%+v", b.Jobs[1])
	}
}
