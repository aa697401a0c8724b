package queue_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/queue"
)

type writer func(io.Writer, *queue.Batch) error

// reread writes a batch and reads it again, without the places of its jobs.
func reread(
	t interface{ Fatalf(string, ...any) }, write writer, format queue.Format, b *queue.Batch,
) []queue.Job {
	var out bytes.Buffer
	if err := write(&out, b); err != nil {
		t.Fatalf("write: %v", err)
	}
	again, err := queue.Read(&out, "again", format)
	if err != nil {
		t.Fatalf("read again: %v\n%s", err, out.String())
	}
	return placeless(again.Jobs)
}

func placeless(jobs []queue.Job) []queue.Job {
	jobs = slices.Clone(jobs)
	for i := range jobs {
		jobs[i].Pos = queue.Position{}
	}
	return jobs
}

func drawJob(t *rapid.T, id string) queue.Job {
	text := rapid.StringMatching(`([a-zé"',;:{}<>\\#=日][ a-zé"',;:{}<>\\#=日]{0,5}[a-zé"',;日])?`)
	number := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 1e15), rapid.Float64Range(0, 1e-300),
		rapid.Map(rapid.IntRange(0, 99), func(i int) float64 { return float64(i) }))
	orNone := rapid.OneOf(rapid.Just(math.Inf(1)), rapid.Float64Range(1e-300, 1e15))
	j := queue.NewJob(id)
	j.Name, j.User, j.Workload = text.Draw(t, "name"), text.Draw(t, "user"), text.Draw(t, "workload")
	if rapid.Bool().Draw(t, "lines") {
		j.Name = "two\n\tlines"
	}
	j.Arrival, j.Limit = number.Draw(t, "arrival"), orNone.Draw(t, "limit")
	j.Deadline = max(j.Arrival, orNone.Draw(t, "deadline"))
	j.Runtime = rapid.Float64Range(1e-300, 1e15).Draw(t, "runtime")
	j.Power, j.CPUs, j.MemGiB = number.Draw(t, "power"), number.Draw(t, "cpus"), number.Draw(t, "mem")
	j.RuntimeModel = rapid.SampledFrom([]string{"", queue.AnyModel, "P100"}).Draw(t, "runtime GPU model")
	if rapid.Bool().Draw(t, "measured") {
		j.Measured = []queue.Measured{
			{Model: `RTX "2070" S, é`, Runtime: 7},
			{Model: "V100", Runtime: 3.5, Power: 120},
			{Model: "a100.sxm", Power: 1e-7},
		}
	}
	switch rapid.IntRange(0, 3).Draw(t, "gpus") {
	case 1:
		j.GPUs[0].Count = rapid.IntRange(1, 1024).Draw(t, "count")
	case 2:
		j.GPUs = []queue.GPUCount{{Model: "V100", Count: 3}, {Count: 2}, {Model: `RTX "2070" S, é`, Count: 1}}
	case 3:
		j.Share = rapid.Float64Range(1e-300, 1).Draw(t, "share")
	}
	if n := rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(t, "nodes"); n < 2 || j.Share == 1 {
		j.Nodes = n
		for i := range j.GPUs {
			j.GPUs[i].Count = min(j.GPUs[i].Count, 1024/3) * max(1, n)
		}
	}
	if j.Share == 1 && j.Nodes < 2 && rapid.Bool().Draw(t, "profile") {
		j.Profile = &queue.GPUProfile{
			UtilPct: rapid.SliceOfN(rapid.Float64Range(0, 100), 3, 3).Draw(t, "util"), Slot: 60,
			MemGB: rapid.Float64Range(1e-300, 1e15).Draw(t, "GPU mem"),
			Kappa: rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(1, 1e15)).Draw(t, "kappa"),
		}
	}
	if rapid.Bool().Draw(t, "model") {
		j.Model = &dvfsmodel.Params{}
		for i, p := range dvfsmodel.ParamList() {
			*j.Model.Value(i) = rapid.Float64Range(0, min(1e15, p.Max)).Draw(t, p.Symbol)
		}
		j.Model.T0 = max(j.Model.T0, 1e-300)
	}
	values := rapid.MapOf(rapid.SampledFrom([]string{"x_a", "x_B", "x_ c,\"", "x_é"}),
		rapid.SampledFrom([]string{" ", "1", "\n", "a\"b,", " x ", "null", "\t"}))
	for name, value := range values.Draw(t, "extra") {
		j.Extra = append(j.Extra, queue.Field{Name: name, Value: value})
	}
	slices.SortFunc(j.Extra, func(a, b queue.Field) int { return strings.Compare(a.Name, b.Name) })
	return j
}

func TestWhatIsWrittenReadsBackTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &queue.Batch{}
		for _, id := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z",é#\\]{1,8}`), 1, 5,
			rapid.ID).Draw(t, "ids") {
			b.Jobs = append(b.Jobs, drawJob(t, id))
		}
		for name, write := range map[string]writer{"csv": queue.WriteCSV, "json": queue.WriteJSON} {
			if got := reread(t, write, queue.Auto, b); !reflect.DeepEqual(got, b.Jobs) {
				t.Fatalf("%s:\n got %+v\nwant %+v", name, got, b.Jobs)
			}
		}
	})
}

func TestWritersLeaveOutDefaultsAndAreStable(t *testing.T) {
	b := &queue.Batch{Jobs: []queue.Job{
		everyField(queue.Position{}), job("b", func(j *queue.Job) { j.Runtime = 1e6 }),
	}}
	var csv, json bytes.Buffer
	if err := errors.Join(queue.WriteCSV(&csv, b), queue.WriteJSON(&json, b)); err != nil {
		t.Fatal(err)
	}
	wantCSV := "id,name,user,workload,arrival_s,deadline_s,limit_s,runtime_s,power_w,gpus,share,cpus," +
		"mem_gib,p0_w,gamma_w,c_w,d_s,delta,t0_s,x_b,x_z\n" +
		"a,\"first, of two\",ann,gemm,1,1000,500,120,200,V100:1;*:1,0.5,4,16,60,30,110,99.5,0.5,1e-07,2,last\n" +
		"b,,,,,,,1000000,,,,,,,,,,,,,\n"
	wantJSON := "{\"jobs\":[\n" +
		`{"id":"a","name":"first, of two","user":"ann","workload":"gemm","arrival_s":1,"deadline_s":1000,"limit_s":500,"runtime_s":120,"power_w":200,` +
		`"gpus":{"V100":1,"*":1},"share":0.5,"cpus":4,"mem_gib":16,"model":{"p0_w":60,"gamma_w":30,"c_w":110,"d_s":99.5,"delta":0.5,"t0_s":1e-07},"x_b":"2","x_z":"last"},` + "\n" +
		`{"id":"b","runtime_s":1000000}` + "\n]}\n"
	if csv.String() != wantCSV {
		t.Errorf("CSV:\n got %s\nwant %s", csv.String(), wantCSV)
	}
	if json.String() != wantJSON {
		t.Errorf("JSON:\n got %s\nwant %s", json.String(), wantJSON)
	}
}

func TestWriteEDLRefusesWhatTheFormatLacks(t *testing.T) {
	model := &dvfsmodel.Params{D: 1}
	for name, b := range map[string][]queue.Job{
		"no model": {job("a", func(j *queue.Job) { j.Runtime = 1 })},
		"one model": {
			job("a", func(j *queue.Job) { j.Model = model }),
			job("b", func(j *queue.Job) { j.Workload = "w" }),
		},
		"a user": {job("a", func(j *queue.Job) { j.Model, j.User = model, "u" })},
	} {
		if err := queue.WriteEDL(io.Discard, &queue.Batch{Jobs: b}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	var out strings.Builder
	if err := queue.WriteEDL(&out,
		&queue.Batch{Jobs: []queue.Job{job("a", func(j *queue.Job) { j.Model = model })}}); err != nil {
		t.Fatal(err)
	}
	if want := "id,app,arrival,deadline,P0,gamma,c,D,delta,t0\na,,0,inf,0,0,0,1,0,0\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// full is a disk without room.
type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestAFailingWriterIsAnError(t *testing.T) {
	b := &queue.Batch{Jobs: []queue.Job{job("a", func(j *queue.Job) { j.Model = &dvfsmodel.Params{D: 1} })}}
	for name, write := range map[string]writer{
		"csv": queue.WriteCSV, "json": queue.WriteJSON,
		"edl": queue.WriteEDL,
	} {
		if err := write(full{}, b); !errors.Is(err, errFull) {
			t.Errorf("%s: %v", name, err)
		}
		if err := write(io.Discard, &queue.Batch{}); !errors.Is(err, queue.ErrEmpty) {
			t.Errorf("%s of nothing: %v", name, err)
		}
	}
}
