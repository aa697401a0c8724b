package queue_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/queue"
)

// spelling writes a batch as a user might.
type spelling struct {
	*rapid.T
	comma rune
	json  bool
	dates bool      // moments are dates
	start time.Time // of the batch's clock
	zone  string
}

func (s *spelling) oneOf(label string, values ...string) string {
	return rapid.SampledFrom(values).Draw(s.T, label)
}

// names are headers of a column.
func (s *spelling) names() map[string][]string {
	return map[string][]string{
		"id":   {"id", "JobID", "job_id", "Job Id", "JOBID"},
		"name": {"name", "JobName", "job_name", "jobname", "Job Name"},
		"user": {"user", "User", "USER", "username"}, "workload": {"workload", "Workload", "application"},
		"arrival_s":  {"arrival_s", "Submit", "submit_time", "arrival", "SUBMIT_TIME", "Arrival (s)"},
		"deadline_s": {"deadline_s", "Deadline", "due", "deadline [s]"},
		"limit_s": {
			"limit_s", "Timelimit", "TIME_LIMIT", "walltime", "wall-time", "time limit", "limit_sec",
		},
		"runtime_s": {"runtime_s", "Elapsed", "runtime", "Run Time", "run_time", "duration"},
		"gpus": {
			"gpus", "GRES", "ngpus", "gpu_count", "ReqTRES", "GPUs", "gpus_per_node", "GPUs per node",
			"ReqGRES",
		}, "nodes": {"nodes", "Nodes", "NNodes", "num_nodes", "Num Nodes", "ReqNodes"},
		"cpus":    {"cpus", "NCPUS", "ncpus", "cores", "ReqCPUS"},
		"mem_gib": {"mem_gib", "ReqMem", "mem", "memory", "Mem (GB)"},
	}
}

// length writes a length of time of whole seconds.
func (s *spelling) length(seconds float64, endless bool) string {
	if math.IsInf(seconds, 1) {
		if !endless {
			return ""
		}
		return s.oneOf("endless", "inf", "UNLIMITED", "INFINITE", "Unlimited", "none", "")
	}
	n := int(seconds)
	d, h, m, sec := n/86400, n/3600, n/60%60, n%60
	all := []string{
		strconv.Itoa(n), fmt.Sprintf("%d.0", n), fmt.Sprintf("%ds", n),
		fmt.Sprintf("%02d:%02d:%02d", h, m, sec),
		fmt.Sprintf("%d-%02d:%02d:%02d", d, h%24, m, sec), fmt.Sprintf("%dh %dm%ds", h, m, sec),
		fmt.Sprintf("PT%dH%dM%dS", h, m, sec),
		fmt.Sprintf("P%dDT%dH%dM%dS", d, h%24, m, sec), fmt.Sprintf("PT%dS", n),
		fmt.Sprintf("%d min %d sec", n/60, sec),
	}
	if n%60 == 0 {
		all = append(all, fmt.Sprintf("%dm", n/60), fmt.Sprintf("%d-%02d:%02d", d, h%24, m),
			fmt.Sprintf("PT%dM", n/60))
	}
	if n%900 == 0 {
		all = append(all, fmt.Sprintf("%vh", seconds/3600))
		if s.comma == ';' && !s.json {
			all = append(all, strings.Replace(fmt.Sprintf("%.2fh", seconds/3600), ".", ",", 1))
		}
	}
	if n%3600 == 0 {
		all = append(all, fmt.Sprintf("%d-%02d", d, h%24))
	}
	return s.oneOf("length", all...)
}

// moment writes a moment.
func (s *spelling) moment(seconds float64) string {
	if !s.dates || math.IsInf(seconds, 1) {
		return s.length(seconds, true)
	}
	at := s.start.Add(time.Duration(seconds) * time.Second)
	zone := s.zone
	if zone == "mixed" {
		zone = s.oneOf("zone", "Z", "+02:00", "-0530")
		hours := map[string]time.Duration{
			"Z": 0, "+02:00": 2 * time.Hour, "-0530": -5*time.Hour - 30*time.Minute,
		}
		at = at.Add(hours[zone])
	}
	layout := s.oneOf("layout", "2006-01-02T15:04:05", "2006-01-02 15:04:05")
	if at.Second() == 0 && zone == "" {
		layout = s.oneOf("short", layout, "2006-01-02T15:04")
	}
	return at.Format(layout) + zone
}

// nodes writes a number of nodes; none where nobody said.
func (s *spelling) nodes(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// eachNode returns how many times the GPUs under a header are in a whole job.
func (s *spelling) eachNode(header string, nodes int) int {
	if slices.Contains([]string{"GRES", "ReqGRES", "gpus_per_node", "GPUs per node"}, header) {
		return max(1, nodes)
	}
	return 1
}

// gpus writes counts of GPUs, in so many equal parts of which one is written.
func (s *spelling) gpus(all []queue.GPUCount, parts int) string {
	n := all[0].Count / parts
	model := all[0].Model
	switch {
	case len(all) > 1:
		return fmt.Sprintf("%s:%d; *:%d", model, n, all[1].Count/parts)
	case parts > 1: // Slurm writes resources of a whole job with an equals sign
		return strings.ReplaceAll(fmt.Sprintf("gpu:%s:%d", model, n), "::", ":")
	case model == "":
		return s.oneOf("gres", strconv.Itoa(n), fmt.Sprintf("gpu:%d", n), fmt.Sprintf("gres:gpu:%d", n),
			fmt.Sprintf("gres/gpu=%d", n),
			fmt.Sprintf("gpu:%d(S:0-1)", n), fmt.Sprintf("billing=9,cpu=4,gres/gpu=%d,mem=16G,node=1", n))
	}
	return s.oneOf("gres of a model", fmt.Sprintf("%s:%d", model, n), fmt.Sprintf("gpu:%s:%d", model, n),
		fmt.Sprintf("gpu:%s:%d(IDX:0)", model, n),
		fmt.Sprintf("gres/gpu:%s=%d", model, n), fmt.Sprintf("cpu=1,gres/gpu=%d,gres/gpu:%s=%d", n, model, n))
}

// memory writes GiB.
func (s *spelling) memory(gib float64, header string) string {
	all := []string{
		fmt.Sprintf("%vG", gib), fmt.Sprintf("%v GB", gib), fmt.Sprintf("%vGiB", gib),
		fmt.Sprintf("%vM", gib*1024), fmt.Sprintf("%vGn", gib),
	}
	if header == "mem_gib" || strings.HasSuffix(header, "(GB)") {
		all = append(all, fmt.Sprint(gib))
	}
	return s.oneOf("memory", all...)
}

// drawBatch draws jobs with whole seconds and a first arrival at 0.
func drawBatch(t *rapid.T) []queue.Job {
	jobs := make([]queue.Job, rapid.IntRange(1, 6).Draw(t, "jobs"))
	whole := func(label string) float64 {
		return rapid.SampledFrom([]float64{
			1, 60, 90, 900, 3600, 5400, 7200, 86400, 93600, 100_000,
		}).Draw(t, label)
	}
	for i := range jobs {
		j := queue.NewJob(fmt.Sprintf("4_%d", i))
		j.Name, j.User = rapid.SampledFrom([]string{"", "train", "x, \"y\""}).Draw(t, "name"),
			rapid.SampledFrom([]string{"", "ann"}).Draw(t, "user")
		j.Runtime = whole("runtime")
		if i > 0 {
			j.Arrival = whole("arrival")
		}
		if rapid.Bool().Draw(t, "due") {
			j.Deadline = j.Arrival + whole("deadline")
		}
		if rapid.Bool().Draw(t, "limited") {
			j.Limit = whole("limit")
		}
		j.GPUs = rapid.SampledFrom([][]queue.GPUCount{
			{{Count: 1}}, {{Count: 4}}, {{Model: "V100", Count: 2}}, {{Model: "V100", Count: 2}, {Count: 3}},
		}).Draw(t, "gpus")
		if j.Nodes = rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "nodes"); j.Nodes == 2 {
			for k := range j.GPUs {
				j.GPUs[k].Count *= 2
			}
		}
		j.CPUs, j.MemGiB = rapid.SampledFrom([]float64{0, 4}).Draw(t, "cpus"),
			rapid.SampledFrom([]float64{0, 8, 0.5}).Draw(t, "mem")
		jobs[i] = j
	}
	return jobs
}

// text writes jobs in a drawn spelling.
func (s *spelling) text(jobs []queue.Job) []byte {
	columns := rapid.Permutation([]string{
		"id", "name", "user", "arrival_s", "deadline_s", "limit_s", "runtime_s", "gpus", "nodes",
		"cpus", "mem_gib",
	}).Draw(s.T, "order")
	header := make([]string, len(columns))
	rows := [][]string{header}
	for i, column := range columns {
		header[i] = s.oneOf("header", s.names()[column]...)
	}
	for k := range jobs {
		j := &jobs[k]
		row := make([]string, len(columns))
		for i, column := range columns {
			row[i] = map[string]func() string{
				"id": func() string { return j.ID }, "name": func() string { return j.Name },
				"user":       func() string { return j.User },
				"arrival_s":  func() string { return s.moment(j.Arrival) },
				"deadline_s": func() string { return s.moment(j.Deadline) },
				"limit_s":    func() string { return s.length(j.Limit, true) },
				"runtime_s":  func() string { return s.length(j.Runtime, false) },
				"gpus":       func() string { return s.gpus(j.GPUs, s.eachNode(header[i], j.Nodes)) },
				"nodes":      func() string { return s.nodes(j.Nodes) },
				"mem_gib":    func() string { return s.memory(j.MemGiB, header[i]) },
				"cpus":       func() string { return strconv.FormatFloat(j.CPUs, 'f', -1, 64) },
			}[column]()
		}
		rows = append(rows, row)
	}
	if s.json {
		return s.jsonText(rows)
	}
	var b bytes.Buffer
	out := csv.NewWriter(&b)
	out.Comma, out.UseCRLF = s.comma, rapid.Bool().Draw(s.T, "CRLF")
	if rapid.Bool().Draw(s.T, "mark") {
		b.WriteString("\uFEFF")
	}
	if rapid.Bool().Draw(s.T, "column without a name") {
		for i := range rows {
			rows[i] = append(rows[i], "")
		}
		rows = append(rows, make([]string, len(rows[0])))
	}
	_ = out.WriteAll(rows)
	return b.Bytes()
}

// jsonText writes rows as objects.
func (s *spelling) jsonText(rows [][]string) []byte {
	all := make([]map[string]any, 0, len(rows))
	for _, row := range rows[1:] {
		job := map[string]any{}
		for i, key := range rows[0] {
			var value any = row[i]
			if x, err := strconv.ParseFloat(row[i], 64); err == nil && !math.IsInf(x, 0) &&
				!strings.Contains(row[i], "_") {
				value = x
			}
			if row[i] != "" {
				job[key] = value
			}
		}
		all = append(all, job)
	}
	text, _ := json.Marshal(all)
	return text
}

// TestEverySpellingOfABatchIsTheSameBatch writes batches as sacct, squeue,
// spreadsheets and people do.
func TestEverySpellingOfABatchIsTheSameBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := drawBatch(t)
		s := &spelling{T: t, comma: rapid.SampledFrom([]rune{',', ';', '\t', '|'}).Draw(t, "comma")}
		s.json, s.dates = rapid.Bool().Draw(t, "JSON"), rapid.Bool().Draw(t, "dates")
		s.start = time.Date(2026, 3, 31, rapid.IntRange(0, 23).Draw(t, "hour"), 30, 0, 0, time.UTC)
		s.zone = s.oneOf("zone", "", "mixed")
		text := s.text(jobs)
		b, err := queue.Read(bytes.NewReader(text), "batch", queue.Auto)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if got := placeless(b.Jobs); !reflect.DeepEqual(got, jobs) {
			t.Fatalf("\n got %+v\nwant %+v\n%s", got, jobs, text)
		}
	})
}

func TestNumbersOfAnAliasHaveTheUnitOfItsName(t *testing.T) {
	for header, want := range map[string]float64{
		"runtime_h": 5400, "Runtime (hours)": 5400, "elapsed [min]": 90, "elapsed-minutes": 90,
		"runtime d": 1.5 * 86400, "ElapsedRaw": 1.5, "duration_s": 1.5,
	} {
		b := read(t, queue.Auto, "id,"+header+"\na,1.5\n")
		if got := b.Jobs[0].Runtime; got != want {
			t.Errorf("%s of 1.5: %v s, want %v", header, got, want)
		}
	}
	if b := read(t, queue.Auto, "id,runtime_s,TimelimitRaw\na,1,90\n"); b.Jobs[0].Limit != 5400 ||
		len(b.Warnings) != 0 {
		t.Errorf("limit %v, %v: want 90 minutes", b.Jobs[0].Limit, b.Warnings)
	}
}

func TestColumnsThatAreNotUsedAndNumbersWithoutAUnitAreWarnedOf(t *testing.T) {
	b := read(t, queue.Auto, "id,runtime,Partition,walltime\na,0:00:01,gpu,1-00\nb,1,gpu,2h\nc,2,gpu,5\n")
	if want := []queue.Field{{Name: "x_partition", Value: "gpu"}}; !reflect.DeepEqual(b.Jobs[0].Extra,
		want) || b.Jobs[2].Limit != 5 {
		t.Errorf("job %+v", b.Jobs[0])
	}
	for i, want := range []string{
		`batch:1:12: "Partition" is kept with the jobs and not used`,
		`batch:3:3: "runtime" has numbers without a unit, such as 1: taken for seconds; --map 'runtime_s[UNIT]=runtime' states it`,
		`batch:4:9: "walltime" has numbers without a unit, such as 5: minutes in Slurm, taken for seconds; --map 'limit_s[min]=walltime' states it`,
	} {
		if len(b.Warnings) != 3 || b.Warnings[i].Error() != want {
			t.Fatalf("warnings %v, want %s", b.Warnings, want)
		}
	}
}

// One rule for all columns of times, in each format.
func TestTimesAreWarnedOfIfTheyAreNumbersAndNobodyStatesTheirUnit(t *testing.T) {
	for text, want := range map[string]int{
		"id,runtime,submit,due,TimeLimit\na,1,2,3,4\nb,1,2,3,4\n":                        4,
		`[{"id":"a","runtime":1,"submit":2,"due":3,"TimeLimit":4}]`:                      4,
		"id,runtime,submit,due,TimeLimit\na,02:30:00,0,PT2H,UNLIMITED\nb,1-02,,inf,1h\n": 0,
		"id,runtime_s,arrival_s,deadline_s,limit_s\na,1,2,3,4\n":                         0,
		"id,ElapsedRaw,TimelimitRaw\na,60,2\n":                                           0,
	} {
		b, err := queue.Read(strings.NewReader(text), "batch", queue.Auto)
		if err != nil || len(b.Warnings) != want {
			t.Errorf("%q: %v, want %d warnings: %v", text, b, want, err)
		}
	}
}

func TestANameThatTheFileHasNotIsReported(t *testing.T) {
	for text, want := range map[string]string{
		"id,runtime_s\na,1\n":        `batch:1:1: nothing is called "Dauer", which is to be limit_s, want a name that the file has`,
		`[{"id":"a","runtime_s":1}]`: `batch: nothing is called "Dauer", which is to be limit_s, want a name that the file has`,
		"id,P0,gamma,c,D,delta,t0\n" +
			"0,1,1,1,1,1,1\n": `batch:1:1: nothing is called "Dauer", which is to be limit_s, want a name that the file has`,
	} {
		_, err := queue.ReadWith(strings.NewReader(text), "batch", queue.Auto,
			&queue.TableOptions{Columns: map[string]string{"Dauer": "limit_s"}})
		if err == nil || err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestAFileMayHaveNamesOfItsOwn(t *testing.T) {
	names := map[string]string{"Nr": "id", "Dauer": "runtime_s", "Bemerkung": "x_note", "walltime": "limit_s"}
	for name, text := range map[string]string{
		"csv":  "Nr;Dauer;Bemerkung;walltime\n7;1,5h;gut;2h\n",
		"json": `[{"Nr":7,"Dauer":"1.5h","Bemerkung":"gut","walltime":7200}]`,
	} {
		b, err := queue.ReadWith(strings.NewReader(text), "batch", queue.Auto,
			&queue.TableOptions{Columns: names})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if j := b.Jobs[0]; j.ID != "7" || j.Runtime != 5400 || j.Limit != 7200 || len(j.Extra) != 1 {
			t.Errorf("%s: %+v", name, j)
		}
	}
}

func TestAUnitThatACallerOrANameStatesCounts(t *testing.T) {
	read := func(text string, columns map[string]string) (*queue.Batch, error) {
		return queue.ReadWith(strings.NewReader(text), "batch", queue.Auto, &queue.TableOptions{Columns: columns})
	}
	for name, c := range map[string]struct {
		target  string
		seconds float64
	}{
		"Laufzeit (h)": {"runtime_s", 5400}, "est (min)": {"runtime_s", 90}, "Dauer_h": {"runtime_s", 5400},
		"hours": {"runtime_s", 5400}, "Runtime (h)": {"runtime_s", 5400}, "Dauer": {"runtime_s[min]", 90},
		"Laufzeit (Tage)": {"runtime_s", 129600}, "Zeit": {"runtime_s", 1.5}, "Zeit (s)": {"runtime_s[s]", 1.5},
	} {
		b, err := read("id;"+name+"\na;1,5\n", map[string]string{name: c.target})
		if err != nil || b.Jobs[0].Runtime != c.seconds {
			t.Errorf("%s for %s: %v, %+v, want %v s", name, c.target, err, b, c.seconds)
		}
		b, err = read(`[{"id":"a","`+name+`":1.5}]`, map[string]string{name: c.target})
		if err != nil || b.Jobs[0].Runtime != c.seconds {
			t.Errorf("%s for %s in JSON: %v, %+v, want %v s", name, c.target, err, b, c.seconds)
		}
	}
	for name, want := range map[string]string{
		"Leistung (h)": `batch:1:14: "Leistung (h)" has a unit of something else, "h", want the unit stated as power_w[UNIT]`,
		"P (Ps)":       `batch:1:14: "P (Ps)" has a unit that isn't known, "Ps", want the unit stated as power_w[UNIT]`,
	} {
		_, err := read("id,runtime_s,"+name+"\na,1,1\n", map[string]string{name: "power_w"})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	b, err := read("id,runtime_s,nodes,GPUs per node,limit\na,1,2,4,2\n",
		map[string]string{"GPUs per node": "gpus", "limit": "limit_s[h]"})
	if err != nil || b.Jobs[0].GPUs[0].Count != 8 || b.Jobs[0].Limit != 7200 {
		t.Errorf("%v, %+v", err, b)
	}
}

func TestAColumnOfGPUModelsPinsJobs(t *testing.T) {
	for text, want := range map[string]string{
		"id,runtime_s,gpus,gpu_model\na,1,2,A100\n":     "id,runtime_s,runtime_gpu_model,gpus\na,1,A100,A100:2\n",
		"id,runtime_s,GPU_Type\na,1,\"A100; H100\"\n":   "id,runtime_s,gpus\na,1,A100:1;H100:1\n",
		"id,runtime_s,gpus,gputype\na,1,a100:2,A100\n":  "id,runtime_s,runtime_gpu_model,gpus\na,1,a100,a100:2\n",
		"id,runtime_s,gpus,GPU model\na,1,2,any\n":      "id,runtime_s,gpus\na,1,2\n",
		`[{"id":"a","runtime_s":1,"gpu_model":"A100"}]`: "id,runtime_s,runtime_gpu_model,gpus\na,1,A100,A100:1\n",
		"id,runtime_s.V100,gpu_model\na,1,V100\n":       "id,gpus,runtime_s.V100\na,V100:1,1\n",
		"id,workload,gpu_model\na,cfd,V100\n":           "id,workload,gpus\na,cfd,V100:1\n",
		"id,runtime_s,runtime_gpu_model,gpu_model\na,1,V100,A100\n": "id,runtime_s,runtime_gpu_model,gpus\n" +
			"a,1,V100,A100:1\n",
		"id,runtime_s,nodes,gpu_model\na,1,2,A100\n": "id,runtime_s,runtime_gpu_model,gpus,nodes\na,1,A100,A100:2,2\n",
	} {
		var out strings.Builder
		b := read(t, queue.Auto, text)
		if err := queue.WriteCSV(&out, b); err != nil || out.String() != want {
			t.Errorf("%q: %v, written as %q, want %q", text, err, out.String(), want)
		}
		if again := read(t, queue.CSV, out.String()); !reflect.DeepEqual(placeless(again.Jobs), placeless(b.Jobs)) {
			t.Errorf("%q is read as %+v, want %+v", out.String(), again.Jobs, b.Jobs)
		}
	}
	for text, want := range map[string]string{
		"id,runtime_s,gpus,gpu_model\na,1,V100:2,A100\n": `batch:2:12: gpu_model is "A100", but gpus is "V100:2", want`,
		"id,runtime_s,gpu_model\na,1,A100;;H100\n":       `batch:2:5: gpu_model "A100;;H100" has an empty name, want`,
		"id,runtime_s,gpu_model\na,1,A100:2\n":           `batch:2:5: gpu_model "A100:2" has one of : ; *, want`,
		"id,runtime_s,gpu_model\na,1,A100;A100\n":        `batch:2:1: gpus names GPU model "A100" twice`,
	} {
		if _, err := queue.Read(strings.NewReader(text), "batch", queue.Auto); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
