package trace_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/textfile"
	"github.com/epplan/epplan/lab/trace"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/queue"
)

const (
	podHeader     = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
	timedHeader   = "cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n"
	nodeHeader    = "sn,cpu_milli,memory_mib,gpu,model\n"
	rankedHeader  = "rank,sn,cpu_milli,memory_mib,gpu,model\n"
	arrivalHeader = "seq,pod_row,name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
)

func readPods(text string) ([]trace.Pod, error) {
	return trace.ReadPods(strings.NewReader(text), "t.csv")
}

func readNodes(text string) ([]trace.NodeRow, error) {
	return trace.ReadNodes(strings.NewReader(text), "t.csv")
}

func TestTasksAreReadByTheNamesOfTheirColumns(t *testing.T) {
	pods, err := readPods(
		"\ufeffqos, num_gpu ,gpu_milli,memory_mib,cpu_milli,gpu_spec,scheduled_time,creation_time,name\r\n" +
			"LS,1,460,12288,6000,,7,5,a\r\n\r\n" +
			`"B,E",8,1000,1,2,T4|V100,, 6 ,"say ""b"", c"` + "\n" +
			"x,0,,0,0,,,,",
	)
	if err != nil {
		t.Fatal(err)
	}
	want := []trace.Pod{
		{
			Name: "a", Demand: fleet.Demand{CPU: 6000, Mem: 12288, GPUs: 1, Milli: 460}, Created: 5,
			Scheduled: 7,
		},
		{
			Name: `say "b", c`, Demand: fleet.Demand{CPU: 2, Mem: 1, GPUs: 8, Milli: 1000, Spec: "T4|V100"},
			Created: 6, Scheduled: math.NaN(),
		},
		{Created: math.NaN(), Scheduled: math.NaN()},
	}
	if len(pods) != len(want) {
		t.Fatalf("%d tasks, want %d", len(pods), len(want))
	}
	for i := range want {
		want[i].Deleted = math.NaN()
		if got, wanted := fmt.Sprintf("%+v", pods[i]), fmt.Sprintf("%+v", want[i]); got != wanted {
			t.Errorf("task %s, want %s", got, wanted)
		}
	}
}

// badInput is an input that a reader must refuse, and how.
type badInput struct {
	in           string
	line, column int
	says         string
}

// byteColumn returns where a field of a line begins, in bytes; 0 of the whole line.
func byteColumn(text string, line, field int) int {
	if field == 0 {
		return 0
	}
	column := 1
	for _, cell := range strings.Split(strings.Split(text, "\n")[line-1], ",")[:field-1] {
		column += len(cell) + 1
	}
	return column
}

func wantRefused(t *testing.T, cases map[string]badInput, read func(string) error) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := read(c.in)
			var at *queue.SyntaxError
			if !errors.As(err, &at) {
				t.Fatalf("error %v, want a SyntaxError", err)
			}
			if at.Pos.File != "t.csv" || at.Pos.Line != c.line ||
				c.column > 0 && at.Pos.Column != byteColumn(c.in, c.line, c.column) {
				t.Errorf("position %v, want field %d of line %d", at.Pos, c.column, c.line)
			}
			if !strings.Contains(err.Error(), c.says) || len(err.Error()) > 400 {
				t.Errorf("message %.500q, want it short and with %q", err, c.says)
			}
		})
	}
}

func TestABadTaskListIsAnErrorWithItsPosition(t *testing.T) {
	wantRefused(t, map[string]badInput{
		"empty":       {"", 0, 0, "is empty, want a header"},
		"blank":       {" \n\n", 0, 0, "is empty, want a header"},
		"header only": {podHeader, 1, 0, "no tasks"},
		"missing column": {
			"cpu_milli,memory_mib,num_gpu\n1,1,1\n", 1, 0,
			"column gpu_milli is missing, want cpu_milli, memory_mib, num_gpu, gpu_milli",
		},
		"repeated column": {
			"cpu_milli,memory_mib,num_gpu,gpu_milli,num_gpu\n", 1, 5, `column "num_gpu" is there twice`,
		},
		"repeated other":  {"cpu_milli,memory_mib,x,num_gpu,gpu_milli,x\n", 1, 6, "twice"},
		"too few fields":  {podHeader + "a,1,1,1\n", 2, 0, "cells in this row: 4, want 6"},
		"too many fields": {podHeader + "a,1,1,1,1000,,\n", 2, 0, "cells in this row: 7, want 6"},
		"negative CPU": {
			podHeader + "a,-1,1,1,1000,\n", 2, 2, `cpu_milli is "-1", want a whole number from 0`,
		},
		"negative memory": {podHeader + "a,1,-1,1,1000,\n", 2, 3, "memory_mib"},
		"negative GPUs":   {podHeader + "a,1,1,-1,1000,\n", 2, 4, "num_gpu"},
		"negative share":  {podHeader + "a,1,1,1,-10,\n", 2, 5, `gpu_milli is "-10"`},
		"NaN":             {podHeader + "a,NaN,1,1,1000,\n", 2, 2, "NaN"},
		"fraction":        {podHeader + "a,1.5,1,1,1000,\n", 2, 2, "1.5"},
		"no CPU":          {podHeader + "a,,1,1,1000,\n", 2, 2, `cpu_milli is ""`},
		"text":            {podHeader + "a,1,much,1,1000,\n", 2, 3, "much"},
		"overflow":        {podHeader + "a,99999999999999999999,1,1,1000,\n", 2, 2, "1000000000000"},
		"too much":        {podHeader + "a,1000000000001,1,1,1000,\n", 2, 2, "1000000000000"},
		"too many GPUs":   {podHeader + "a,1,1,17,1000,\n", 2, 4, "from 0 to 16"},
		"more than a GPU": {podHeader + "a,1,1,1,1001,\n", 2, 5, "from 0 to 1000"},
		"fraction of two GPUs": {
			podHeader + "a,1,1,2,500,\n", 2, 5,
			"500 on each of 2 GPUs, want 1000: only one GPU can be shared",
		},
		"share of no GPU":    {podHeader + "a,1,1,0,500,\n", 2, 5, "want 0"},
		"GPU without share":  {podHeader + "a,1,1,1,,\n", 2, 5, `gpu_milli is ""`},
		"GPU with share 0":   {podHeader + "a,1,1,1,0,\n", 2, 5, "want 1 to 1000"},
		"empty GPU model":    {podHeader + "a,1,1,1,1000,T4||P100\n", 2, 6, "want GPU models joined by |"},
		"no last GPU model":  {podHeader + "a,1,1,1,1000,T4|\n", 2, 6, "joined"},
		"no first GPU model": {podHeader + "a,1,1,1,1000,|T4\n", 2, 6, "joined"},
		"later line":         {podHeader + "a,1,1,1,1000,\n\nb,1,1,1,x,\n", 4, 5, `"x"`},
		"open quote":         {podHeader + "\"a,1,1,1,1000,\n", 2, 0, "quote"},
		"text after quote":   {podHeader + "\"a\"b,1,1,1,1000,\n", 2, 0, "a separator or line end"},
		"not UTF-8":          {podHeader + "\xff,1,1,1,1000,\n", 2, 0, "UTF-8"},
		"binary":             {"\x00\x01\x02\n", 1, 0, "is not text"},
		"long line":          {podHeader + "a,1,1,1,1000,\n" + strings.Repeat("x", 2<<20), 3, 0, "1 MiB"},
		"time as text":       {timedHeader + "1,1,1,1000,now,,\n", 2, 5, `creation_time is "now"`},
		"time NaN":           {timedHeader + "1,1,1,1000,,nan,\n", 2, 6, "want seconds"},
		"time inf":           {timedHeader + "1,1,1,1000,,,inf\n", 2, 7, "want seconds"},
		"negative time":      {timedHeader + "1,1,1,1000,-1,,\n", 2, 5, "want seconds"},
		"ends before it is": {
			timedHeader + "1,1,1,1000,7,6,\n", 2, 6, "deletion_time 6 is before creation_time 7",
		},
	}, func(in string) error {
		_, err := readPods(in)
		return err
	})
}

func TestABadNodeListIsAnErrorWithItsPosition(t *testing.T) {
	wantRefused(t, map[string]badInput{
		"empty":           {"", 0, 0, "want a header"},
		"header only":     {nodeHeader, 1, 0, "no nodes"},
		"missing column":  {"sn,cpu_milli,memory_mib,gpu\n", 1, 0, "column model is missing"},
		"repeated column": {"sn,sn,cpu_milli,memory_mib,gpu,model\n", 1, 2, "twice"},
		"negative":        {nodeHeader + "a,-1,1,1,T4\n", 2, 2, "cpu_milli"},
		"memory":          {nodeHeader + "a,1,x,1,T4\n", 2, 3, "memory_mib"},
		"too many GPUs":   {nodeHeader + "a,1,1,17,T4\n", 2, 4, "from 0 to 16"},
		"no model":        {nodeHeader + "a,1,1,2,\n", 2, 5, "no GPU model, want one for 2 GPUs"},
		"same name":       {nodeHeader + "a,1,1,2,T4\nb,1,1,2,T4\na,1,1,2,T4\n", 4, 1, "on line 2 already"},
		"same rank": {
			rankedHeader + "1,a,1,1,2,T4\n1,b,1,1,2,T4\n", 3, 0, "rank 1 is on line 2 already",
		},
		"missing rank": {
			rankedHeader + "0,a,1,1,2,T4\n2,b,1,1,2,T4\n", 3, 0, "rank is 2, want each from 0 to 1 once",
		},
		"negative rank": {rankedHeader + "-1,a,1,1,2,T4\n", 2, 1, "rank"},
		"huge rank":     {rankedHeader + "999999999999,a,1,1,2,T4\n", 2, 1, "rank"},
	}, func(in string) error {
		_, err := readNodes(in)
		return err
	})
}

func TestBadArrivalsAreAnErrorWithTheirPosition(t *testing.T) {
	pods, err := readPods(podHeader + "a,1,2,1,1000,\nb,3,4,0,0,\nc,5,6,1,500,T4\n")
	if err != nil {
		t.Fatal(err)
	}
	read := func(in string) error {
		_, err := trace.ReadArrivals(strings.NewReader(in), "t.csv", pods)
		return err
	}
	if err := read(arrivalHeader + "0,2,c,5,6,1,500,T4\n1,0,a,1,2,1,1000,\n2,1,b,3,4,0,,\n" +
		"3,2,c,5,6,1,500,T4\n"); err != nil {
		t.Error(err)
	}
	if err := read("pod_row,seq\n2,0\n"); err != nil {
		t.Error(err)
	}
	wantRefused(t, map[string]badInput{
		"empty":          {"", 0, 0, "want a header"},
		"header only":    {arrivalHeader, 1, 0, "no arrivals"},
		"missing column": {"seq,name\n", 1, 0, "column pod_row is missing"},
		"half a demand":  {"seq,pod_row,cpu_milli\n", 1, 0, "column memory_mib is missing"},
		"from 1":         {arrivalHeader + "1,0,a,1,2,1,1000,\n", 2, 1, "seq is 1, want 0"},
		"gap": {
			arrivalHeader + "0,0,a,1,2,1,1000,\n2,0,a,1,2,1,1000,\n", 3, 1, "seq is 2, want 1",
		},
		"unknown row": {
			arrivalHeader + "0,3,a,1,2,1,1000,\n", 2, 2, `pod_row is "3", want a whole number from 0 to 2`,
		},
		"negative row": {arrivalHeader + "0,-1,a,1,2,1,1000,\n", 2, 2, "pod_row"},
		"another name": {
			arrivalHeader + "0,0,b,1,2,1,1000,\n", 2, 3, `name is "b", want that of the task list, "a"`,
		},
		"another CPU": {
			arrivalHeader + "0,0,a,9,2,1,1000,\n", 2, 0, `want what "a" of the task list asks for`,
		},
		"another memory":      {arrivalHeader + "0,0,a,1,9,1,1000,\n", 2, 0, "asks for"},
		"another GPU count":   {arrivalHeader + "0,0,a,1,2,2,1000,\n", 2, 0, "asks for"},
		"another share":       {arrivalHeader + "0,0,a,1,2,1,999,\n", 2, 0, "asks for"},
		"another GPU model":   {arrivalHeader + "0,2,c,5,6,1,500,P100\n", 2, 0, "asks for"},
		"demand out of range": {arrivalHeader + "0,0,a,1,2,1,1001,\n", 2, 7, "gpu_milli"},
	}, read)
}

func TestNodesComeBackInTheOrderOfTheirRanks(t *testing.T) {
	rows, err := readNodes(rankedHeader + "2,c,1,1,1,T4\n0,a,2,2,2,V100M16\n1,b,3,3,0,\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []trace.NodeRow{
		{Name: "a", Model: "V100M16", CPU: 2, Mem: 2, GPUs: 2, Line: 3},
		{Name: "b", CPU: 3, Mem: 3, Line: 4},
		{Name: "c", Model: "T4", CPU: 1, Mem: 1, GPUs: 1, Line: 2},
	}
	if !slices.Equal(rows, want) {
		t.Errorf("nodes %+v, want %+v", rows, want)
	}
}

func TestEqualNodesAreOfOneKindWithThePowerOfTheirModel(t *testing.T) {
	rows, err := readNodes(nodeHeader + "a,96000,393216,8,G2\nb,64000,1,0,\nc,96000,393216,8,G2\n" +
		"d,96000,393216,8,A10\n")
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := trace.Kinds(rows, "t.csv", config.BuiltinProfiles())
	if err != nil {
		t.Fatal(err)
	}
	if kinds[0] != kinds[2] || kinds[0] == kinds[1] || kinds[0] == kinds[3] {
		t.Errorf("kinds %v", kinds)
	}
	want := fleet.Kind{Model: "G2", CPU: 96000, Mem: 393216, GPUs: 8, Power: fleet.Power{
		GPUIdle: 30, GPUBusy: 150, CPUIdle: 15, CPUBusy: 120, Cores: 16, Threads: 2,
	}}
	if *kinds[0] != want {
		t.Errorf("kind %+v, want %+v", *kinds[0], want)
	}
	if k := kinds[1]; k.GPUs != 0 || k.Power.GPUBusy != 0 || k.Power.CPUBusy != 120 {
		t.Errorf("kind without GPUs %+v", *k)
	}
}

func TestAGPUModelWithoutPowerIsAnErrorWithItsLine(t *testing.T) {
	for model, want := range map[string]string{
		"V100M61": `t.csv:3: unknown GPU model "V100M61", want one of V100, `,
		"GTX980":  `t.csv:3: GPU model "GTX980" has no busy_w, which placing tasks needs`,
		"quux":    `t.csv:3: unknown GPU model "quux", want one of`,
	} {
		rows, err := readNodes(nodeHeader + "a,1,1,1,T4\nb,1,1,1," + model + "\n")
		if err != nil {
			t.Fatal(err)
		}
		if _, err = trace.Kinds(rows, "t.csv", config.BuiltinProfiles()); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", model, err, want)
		}
	}
}

func TestTasksThatNoNodeHasRoomForAreCountedByReason(t *testing.T) {
	rows, err := readNodes(nodeHeader + "a,8000,100,2,T4\nb,16000,50,1,P100\n")
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := trace.Kinds(rows, "t.csv", config.BuiltinProfiles())
	if err != nil {
		t.Fatal(err)
	}
	pods, err := readPods(podHeader + "fits,16000,50,1,1000,T4|P100\nmodel,1,1,1,10,G2\ngpus,1,1,4,1000,\n" +
		"cpu,20000,1,0,0,\nmem,1,101,1,500,\n" +
		"cpuOnT4,9000,1,1,1000,T4\nall,16000,100,1,1000,\nmodel2,1,1,1,10,G2|G3\nfits,8000,100,2,1000,\n")
	if err != nil {
		t.Fatal(err)
	}
	s := trace.NewSurvey(pods, kinds)
	want := "[{no node has a GPU model that they accept 2 [1 7]} {more GPUs than any node has that they " +
		"accept 1 [2]} " +
		"{more CPU than any node has that they accept 2 [3 5]} {more memory than any node has that they " +
		"accept 1 [4]} " +
		"{more of all together than any node has that they accept 1 [6]}]"
	if got := fmt.Sprint(s.Misfits); got != want {
		t.Errorf("misfits %s\nwant    %s", got, want)
	}
	if s.Tasks.Count != 9 || s.Nodes != (trace.ResourceSum{Count: 2, CPU: 24000, Mem: 150, GPUMilli: 3000}) {
		t.Errorf("tasks %+v, nodes %+v", s.Tasks, s.Nodes)
	}
}

func TestAWrittenWorkloadHasTheColumnsOfTheReference(t *testing.T) {
	m := fleet.Workload{{Demand: fleet.Demand{CPU: 1, GPUs: 1, Milli: 500, Spec: "T4|P100"}, P: 0.25}}
	var b bytes.Buffer
	if err := trace.WriteWorkload(&b, m); err != nil {
		t.Fatal(err)
	}
	if want := "cpu_milli,num_gpu,gpu_milli,gpu_spec,probability\n1,1,500,T4|P100,0.25\n"; b.String() !=
		want {
		t.Errorf("wrote %q, want %q", b.String(), want)
	}
}

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAFileIsUnpackedIfItsFirstBytesAreThoseOfGzip(t *testing.T) {
	text := podHeader + strings.Repeat("a,1,2,1,1000,\n", 1000)
	whole := packed(t, text)
	for name, c := range map[string]struct {
		data []byte
		says string // empty: it is read
	}{
		"plain":        {[]byte(text), ""},
		"packed":       {whole, ""},
		"cut":          {whole[:len(whole)/2], "the gzip data ends early, want a whole file"},
		"cut trailer":  {whole[:len(whole)-1], "ends early"},
		"header alone": {whole[:3], "ends early"},
		"spoilt": {
			append(bytes.Clone(whole[:len(whole)-8]), make([]byte, 8)...), "not a valid gzip file",
		},
		"empty":    {nil, "want a header"},
		"one byte": {[]byte{0x1f}, "cpu_milli is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pods.csv")
			if err := os.WriteFile(path, c.data, 0o600); err != nil {
				t.Fatal(err)
			}
			pods, err := readFile(path, trace.ReadPods)
			switch {
			case c.says == "" && (err != nil || len(pods) != 1000):
				t.Errorf("%d tasks, %v", len(pods), err)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) ||
				!strings.Contains(err.Error(), path)):
				t.Errorf("error %v, want the file and %s", err, c.says)
			}
		})
	}
}

func readFile[T any](path string, read func(io.Reader, string) (T, error)) (got T, err error) {
	file, err := os.Open(path)
	if err != nil {
		return got, err
	}
	r, err := textfile.Decompress(file, path)
	if err == nil {
		got, err = read(r, path)
	}
	return got, errors.Join(err, file.Close())
}

// mustRead reads a shared file.
func mustRead[T any](tb testing.TB, name string, read func(io.Reader, string) (T, error)) T {
	tb.Helper()
	got, err := readFile(shareddata.Path(tb, "openb/"+name), read)
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

func TestTheSharedTracesHaveTheirPublishedFigures(t *testing.T) {
	nodes := mustRead(t, "openb_node_list_gpu_node.csv", trace.ReadNodes)
	kinds, err := trace.Kinds(nodes, "nodes", config.BuiltinProfiles())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name                     string
		tasks, entries, arrivals int
		demand                   float64 // by capacity
		misfits                  string
	}{
		{"default", 8152, 35, 10866, 0.980, "[]"},
		{"gpushare40", 8152, 36, 11771, 0.908, "[]"},
		{"multigpu20", 8324, 38, 9456, 1.141, "[]"},
		// Two tasks insist on GPU models whose nodes are too small for them.
		{
			"gpuspec10", 8152, 74, 10866, 0.980,
			"[{more CPU than any node has that they accept 2 [1639 5724]}]",
		},
	} {
		pods := mustRead(t, "openb_pod_list_"+c.name+".csv", trace.ReadPods)
		s := trace.NewSurvey(pods, kinds)
		if s.Nodes.Count != 1213 || s.Nodes.GPUMilli != 6_212_000 || s.Nodes.CPU != 107_018_000 ||
			s.CPUPower != 55_665 || s.GPUPower != 174_435 {
			t.Errorf("%s: nodes %+v, %v + %v W", c.name, s.Nodes, s.CPUPower, s.GPUPower)
		}
		m := fleet.NewWorkload(trace.Demands(pods), fleet.PaperCover)
		arrivals := mustRead(t, "arrivals_"+c.name+"_42.csv.gz",
			func(r io.Reader, name string) ([]trace.Arrival, error) {
				return trace.ReadArrivals(r, name, pods)
			})
		if len(pods) != c.tasks || len(m) != c.entries || len(arrivals) != c.arrivals ||
			fmt.Sprint(s.Misfits) != c.misfits {
			t.Errorf("%s: %d tasks, %d entries of M, %d arrivals, misfits %v", c.name, len(pods), len(m),
				len(arrivals), s.Misfits)
		}
		if got := float64(s.Tasks.GPUMilli) / float64(s.Nodes.GPUMilli); math.Abs(got-c.demand) > 0.0005 {
			t.Errorf("%s: demand by capacity %v, want %v", c.name, got, c.demand)
		}
		ranked := mustRead(t, "nodes_"+c.name+"_42.csv", trace.ReadNodes)
		wantSameNodes(t, nodes, ranked)
		wantSameWorkload(t, m, "target_workload_"+c.name+".csv")
	}
}

func wantSameNodes(t *testing.T, list, ranked []trace.NodeRow) {
	t.Helper()
	byName := make(map[string]trace.NodeRow)
	for _, n := range list {
		n.Line = 0
		byName[n.Name] = n
	}
	for i, n := range ranked {
		if n.Line != i+2 {
			t.Errorf("rank %d is of line %d", i, n.Line)
		}
		n.Line = 0
		if byName[n.Name] != n {
			t.Errorf("ranked node %+v, in the list %+v", n, byName[n.Name])
		}
		delete(byName, n.Name)
	}
	if len(byName) > 0 {
		t.Errorf("%d nodes have no rank", len(byName))
	}
}

// wantSameWorkload compares a written workload with the shared file: the same
// entries in the same order, and probabilities that are equal as numbers.
func wantSameWorkload(t *testing.T, m fleet.Workload, name string) {
	t.Helper()
	rows := shareddata.Rows(t, shareddata.Path(t, "openb/"+name))
	if len(rows) != len(m) {
		t.Fatalf("%s: %d entries, want %d", name, len(m), len(rows))
	}
	for i, row := range rows {
		c := &m[i]
		if c.P != shareddata.Number(t, row["probability"]) ||
			float64(c.CPU) != shareddata.Number(t, row["cpu_milli"]) ||
			float64(c.Milli) != shareddata.Number(t, row["gpu_milli"]) ||
			float64(c.GPUs) != shareddata.Number(t, row["num_gpu"]) || c.Spec != row["gpu_spec"] {
			t.Errorf("%s: entry %d is %+v, want %v", name, i, *c, row)
		}
	}
}

func BenchmarkReadDefaultTraceAndArrivals(b *testing.B) {
	for b.Loop() {
		pods := mustRead(b, "openb_pod_list_default.csv", trace.ReadPods)
		mustRead(b, "arrivals_default_42.csv.gz", func(r io.Reader, name string) ([]trace.Arrival, error) {
			return trace.ReadArrivals(r, name, pods)
		})
		mustRead(b, "nodes_default_42.csv", trace.ReadNodes)
	}
}
