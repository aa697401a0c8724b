package control

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// caller talks to a controller over a unix socket.
type caller struct {
	t      *testing.T
	client http.Client
}

func (r *rig) serve(t *testing.T) *caller {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: r.Handler(), ReadHeaderTimeout: time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	c := &caller{t: t}
	c.client.Transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
	}
	t.Cleanup(func() {
		c.client.CloseIdleConnections()
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return c
}

// call makes a request and decodes the answer, which is JSON whatever it is.
func (c *caller) call(method, path string, body io.Reader, into any) int {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, "http://epd"+path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	response, err := c.client.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			c.t.Fatalf("%s %s: %s: %v", method, path, text, err)
		}
	}
	return response.StatusCode
}

func (c *caller) post(path string, v, into any) int {
	c.t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.call(http.MethodPost, path, bytes.NewReader(text), into)
}

func TestAJobGoesFromSubmissionToItsOutcomeOverASocket(t *testing.T) {
	r := newRig(t, nil)
	c := r.serve(t)
	var answer hooks.SubmitAnswer
	submission := hooks.Submission{
		Version: 1, Kind: "batch", UID: 1000, Name: "train", Partition: "gpu", TRESPerNode: "gres/gpu:1",
		Script: "#!/bin/sh", Comment: "epplan:offf",
	}
	if status := c.post("/v1/submit", submission, &answer); status != http.StatusOK ||
		answer.AdminComment == "" || !strings.Contains(string(answer.Message), "offf") {
		t.Fatalf("%d %+v", status, answer)
	}
	for id := range slurm.JobID(3) {
		r.job(id+1, func(j *slurm.Job) { j.AdminComment = string(answer.AdminComment) })
		var d live.Decision
		if status := c.post("/v1/decide", ask(id+1), &d); status != http.StatusOK || d.Apply != (id > 0) {
			t.Fatalf("%d %+v", status, d)
		}
		o := r.ran(d, fmt.Sprintf("run-%d", id+1), memoryBound())
		o.Cluster = "alpha"
		for _, want := range []string{"stored", "repeated"} {
			var receipt struct{ Receipt string }
			if status := c.post("/v1/outcome", o, &receipt); status != http.StatusOK ||
				receipt.Receipt != want {
				t.Fatalf("%d %+v, want %s", status, receipt, want)
			}
		}
		r.flush()
	}
	var status epdapi.ControllerStatus
	if c.call(http.MethodGet, "/v1/status", nil, &status) != http.StatusOK || status.Decisions != 3 ||
		status.Applied != 2 ||
		status.Outcomes != 6 || status.Models != 1 || status.Jobs != 3 || status.Decided != 0 {
		t.Errorf("%+v", status)
	}
	var page epdapi.JobPage
	if c.call(http.MethodGet, "/v1/jobs?user=ada&limit=2", nil, &page) != http.StatusOK ||
		len(page.Jobs) != 2 || page.Next == 0 {
		t.Errorf("%+v", page)
	}
	var job epdapi.JobView
	if c.call(http.MethodGet, "/v1/jobs/2", nil, &job) != http.StatusOK || job.Job.User != "ada" ||
		len(job.Decisions) != 1 || len(job.Outcomes) != 1 {
		t.Errorf("%+v", job)
	}
	var list struct{ Models []epdapi.ModelStatus }
	listed := c.call(http.MethodGet, "/v1/models", nil, &list)
	models := ofWorkloads(list.Models)
	if listed != http.StatusOK || len(models) != 1 || models[0].Version == 0 {
		t.Fatalf("%+v", list)
	}
	var versions struct{ Versions []record.Model }
	path := "/v1/models?gpu_model=V100&workload=" + models[0].Workload
	if c.call(http.MethodGet, path, nil, &versions) != http.StatusOK || len(versions.Versions) < 2 {
		t.Errorf("%+v", versions)
	}
}

func TestSavingsCompareTheArmsOfEachWorkload(t *testing.T) {
	r := newRig(t, nil)
	c := r.serve(t)
	for i := range 8 {
		arm, joules := live.ArmTreated, 80.0
		if i%2 == 0 {
			arm, joules = live.ArmHeldOut, 100
		}
		o := &record.Outcome{
			RunID: fmt.Sprintf("r%d", i), Workload: "w", GPUModel: "V100", Arm: arm,
			ExitState:  record.Completed,
			GPUEnergyJ: live.Known(joules + float64(i/4)), Ended: start,
		}
		if status := c.post("/v1/outcome", o, nil); status != http.StatusOK {
			t.Fatal(status)
		}
	}
	var s epdapi.Savings
	if c.call(http.MethodGet, "/v1/savings", nil, &s) != http.StatusOK || s.Workloads != 1 ||
		s.GPU.Runs != 4 ||
		s.GPU.SavedJ != 80 || !(s.GPU.LowJ < 80 && s.GPU.LowJ > 60 && s.GPU.HighJ > 80) ||
		s.GPU.BaselineJ != 402 {
		t.Errorf("%+v", s)
	}
	if status := c.call(http.MethodGet, "/v1/savings?since=yesterday", nil, nil); status !=
		http.StatusBadRequest {
		t.Errorf("since=yesterday: %d", status)
	}
}

func TestHostileRequestsAreRefusedAndChangeNothing(t *testing.T) {
	r := newRig(t, nil)
	c := r.serve(t)
	good := `{"job_id":1,"node":"n1","run_id":"r","gpu_model":"V100","gpus":1,"default":{"core_mhz":0,"mem_mhz":0},"clocks":[],"uid":1}`
	if status := c.call(http.MethodPost, "/v1/decide", strings.NewReader(good), nil); status !=
		http.StatusOK {
		t.Fatalf("the good one: %d", status)
	}
	cases := map[string]struct {
		path, body string
		want       int
	}{
		"empty":           {"/v1/decide", "", 400},
		"not JSON":        {"/v1/decide", "\x00\xff", 400},
		"half":            {"/v1/decide", good[:30], 400},
		"two values":      {"/v1/decide", good + good, 400},
		"garbage behind":  {"/v1/decide", good + "x", 400},
		"wrong type":      {"/v1/decide", strings.Replace(good, `"n1"`, `1`, 1), 400},
		"NUL in node":     {"/v1/decide", strings.Replace(good, "n1", `n\u0000`, 1), 400},
		"newline in node": {"/v1/decide", strings.Replace(good, "n1", `n1\nn2`, 1), 400},
		"no run":          {"/v1/decide", strings.Replace(good, `"run_id":"r",`, "", 1), 400},
		"path as run":     {"/v1/decide", strings.Replace(good, `"run_id":"r"`, `"run_id":"../r"`, 1), 400},
		"path as node":    {"/v1/decide", strings.Replace(good, "n1", "../../etc", 1), 400},
		"invalid UTF-8":   {"/v1/decide", strings.Replace(good, "V100", "V\xff", 1), 400},
		"huge number":     {"/v1/decide", strings.Replace(good, `"job_id":1`, `"job_id":1e400`, 1), 400},
		"deeply nested":   {"/v1/decide", strings.Repeat("[", 100_000), 400},
		"2 MiB":           {"/v1/decide", strings.Repeat(" ", 2<<20) + good, 413},
		"hex that isn't":  {"/v1/decide", strings.Replace(good, `"uid"`, `"comment_hex":"zz","uid"`, 1), 400},
		"submit, no JSON": {"/v1/submit", "x", 400},
		"submit, 1 MB": {
			"/v1/submit", `{"v":1,"kind":"batch","script_hex":"` + strings.Repeat("00", 1<<19) + `"}`, 400,
		},
		"outcome, no id": {"/v1/outcome", "{}", 400},
		"outcome, 2 MiB": {"/v1/outcome", `{"run_id":"` + strings.Repeat("a", 2<<20) + `"}`, 413},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c.t = t
			var failed struct{ Error string }
			if status := c.call(http.MethodPost, tc.path, strings.NewReader(tc.body),
				&failed); status != tc.want || failed.Error == "" {
				t.Errorf("status %d, want %d: %q", status, tc.want, failed.Error)
			}
		})
	}
	c.t = t
	for path, want := range map[string]int{
		"/v1/jobs/x": 400, "/v1/jobs/0": 400, "/v1/jobs/77": 404, "/v1/jobs?limit=-1": 400,
		"/v1/jobs?before=x":                400,
		"/v1/jobs?user=%00%0a'%20OR%201=1": 200, "/v1/nothing": 404, "/v1/decide": 405,
	} {
		if status := c.call(http.MethodGet, path, nil, nil); status != want {
			t.Errorf("%s: status %d, want %d", path, status, want)
		}
	}
	if s := r.status(); s.Decisions != 1 || s.Outcomes != 0 {
		t.Errorf("something was done: %+v", s)
	}
}

// What a user can write reaches no further than that user's own job.
func TestHostileTextsOfUsersHaveNoEffectButAWarning(t *testing.T) {
	r := newRig(t, nil)
	for id := range slurm.JobID(4) {
		r.run(id+1, memoryBound())
	}
	r.job(50, nil)
	plain := r.decide(ask(50))
	for i, text := range []string{
		"\x00", "a\nJobId=999 epplan:deadline-", "epplan:", "epplan:fixed=-1,9", "epplan:fixed=99999999999",
		"\xff\xfe epplan:deadline=never",
		strings.Repeat("x", 1<<20), strings.Repeat("epplan:x ", 1000), "'; DROP TABLE jobs; --", "$(reboot)",
	} {
		id := slurm.JobID(100 + i)
		r.job(id, func(j *slurm.Job) { j.Comment, j.User, j.Account = text, text, text })
		d := r.decide(ask(id))
		if d.Apply != plain.Apply || d.Core != plain.Core {
			t.Errorf("%.40q: %+v", text, d)
		}
	}
	for i, text := range []string{"\x00", "a\nb", "\xff", strings.Repeat("n", 1<<20)} {
		id := slurm.JobID(200 + i)
		r.job(id, func(j *slurm.Job) { j.Name = text })
		if d := r.decide(ask(id)); d.Apply || d.Workload == plain.Workload {
			t.Errorf("name %.40q: %+v", text, d)
		}
	}
	r.flush()
	if s := r.status(); s.Lost != 0 || s.Trouble != "" {
		t.Errorf("%+v", s)
	}
}

func FuzzDecideRequests(f *testing.F) {
	for _, seed := range []string{
		`{"job_id":1,"node":"n1","run_id":"r","gpu_model":"V100","gpus":1,"default":{"core_mhz":0,"mem_mhz":0},"clocks":[{"mem_mhz":877,"core_mhz":[1380,802]}],"uid":1}`,
		`{"job_id":1,"node":"n1","run_id":"r","gpu_model":"V100","gpus":1,"clocks":[{"mem_mhz":877,"core_mhz":[1380,802]}],"comment_hex":"6570706c616e3a66697865643d383032"}`,
		`{"job_id":1,"node":"n","run_id":"r","comment_hex":"6570706c616e3a6f6666","clocks":[{"mem_mhz":1e300,"core_mhz":[1]}]}`,
		`{}`, `null`, `[]`, "\x00", `{"job_id":-1}`,
	} {
		f.Add([]byte(seed))
	}
	options := Options{Cluster: "alpha", Settings: settings(f, enforceAll)}
	f.Fuzz(func(t *testing.T, body []byte) {
		var request epdapi.DecideRequest
		if err := DecodeJSON(bytes.NewReader(body), &request); err != nil {
			if !errors.Is(err, ErrRequest) {
				t.Fatal(err)
			}
			return
		}
		c := unstarted(&options) // another one for each input, so that an input does the same each time
		d, answered := c.Decide(t.Context(), &request)
		if err := request.Validate(); err != nil {
			if !errors.Is(err, ErrRequest) || !errors.Is(answered, ErrRequest) {
				t.Fatalf("%v, %v", err, answered)
			}
			return
		}
		kept := c.decider.Kept(request.Job, request.Node)
		if answered != nil || kept == nil || !kept.IsOf(request.RunID) {
			t.Fatalf("%+v, %v, kept %+v", d, answered, kept)
		}
		if d.Reason == "" || d.Job != uint32(request.Job) || d.Apply && (!d.Wish.Fixed || !c.has(&d)) {
			t.Fatalf("%+v", d)
		}
		if _, err := json.Marshal(d); err != nil {
			t.Fatal(err)
		}
	})
}

// has reports whether a decision's clocks are among those that its agent named.
func (c *Controller) has(d *live.Decision) bool {
	table := c.decider.GPUs.Clocks(d.GPUModel)
	return table != nil && slices.Contains(table.Pairs, dvfsmodel.Setting{
		Core: cmp.Or(d.Core, table.Base.Core), Mem: cmp.Or(d.Mem, table.Base.Mem),
	})
}

// unstarted returns a controller that knows of no job: its store has nothing, and nothing
// runs beside.
func unstarted(options *Options) *Controller {
	of := *options
	of.Records = recordsIn(&memory{})
	return assemble(of)
}
