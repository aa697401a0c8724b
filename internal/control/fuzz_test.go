package control

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// still are records that answer what a real store answered once, and keep nothing: each request to a
// controller on them finds the same.
type still struct {
	memory
	rows      store.ListedPage
	jobs      store.JobPage
	last      store.DecisionPage
	recorded  store.RecordedRunPage
	decisions map[int64][]record.Decision
	outcomes  map[int64][]record.Outcome
	page      store.OutcomePage
	models    []record.Model
	days      []record.RunDay
	strata    []record.Stratum
	counts    []record.ProfileCount
}

func (s *still) HasAnotherOfRun(_ context.Context, o *record.Outcome) (bool, error) {
	return slices.ContainsFunc(s.outcomes[o.JobID], func(other record.Outcome) bool {
		return other.Node == o.Node && other.RunID != o.RunID && other.Restart == o.Restart &&
			!other.Unmatched
	}), nil
}

// stillOf returns what a rig's store answers now.
func stillOf(r *rig) *still {
	r.t.Helper()
	s := &still{decisions: make(map[int64][]record.Decision), outcomes: make(map[int64][]record.Outcome)}
	must := func(err error) {
		r.t.Helper()
		if err != nil {
			r.t.Fatal(err)
		}
	}
	ctx, of := r.t.Context(), &store.JobFilter{Cluster: "alpha"}
	var err error
	s.rows, err = r.store.JobRows(ctx, of, 0, 100)
	must(err)
	s.jobs, err = r.store.Jobs(ctx, of, 0, 100)
	must(err)
	s.last, err = r.store.LastDecisions(ctx, "alpha", "", 0, 100)
	must(err)
	s.recorded, err = r.store.RecordedRuns(ctx, &store.RunFilter{Cluster: "alpha", Node: "n1"}, false, 0, 100)
	must(err)
	s.models, err = r.store.Learning.ModelsInUse(ctx, "alpha")
	must(err)
	s.days, err = r.store.RunDays(ctx, "alpha", time.Time{})
	must(err)
	s.strata, err = r.store.Strata(ctx, "alpha", time.Time{}, time.Time{})
	must(err)
	s.counts, err = r.store.ProfileCounts(ctx, "alpha", "", 100)
	must(err)
	for i := range s.jobs.Jobs {
		id := s.jobs.Jobs[i].ID
		s.decisions[id], err = r.store.DecisionsOfJob(ctx, "alpha", id)
		must(err)
		s.outcomes[id], err = r.store.OutcomesOfJob(ctx, "alpha", id)
		must(err)
	}
	if len(s.models) == 0 || len(s.rows.Jobs) == 0 || len(s.recorded.Runs) == 0 || len(s.strata) == 0 {
		r.t.Fatalf("there is nothing to answer with: %+v", s)
	}
	s.page, err = r.store.Learning.OutcomesOf(ctx, s.models[0].WorkloadKey, 0, 100)
	must(err)
	return s
}

func (s *still) JobRows(_ context.Context, f *store.JobFilter, _ int64, _ int) (store.ListedPage, error) {
	return store.ListedPage{Jobs: slices.DeleteFunc(slices.Clone(s.rows.Jobs), func(j store.ListedJob) bool {
		return f.User != "" && j.User != f.User || f.ID != 0 && j.ID != f.ID
	})}, nil
}

func (s *still) Jobs(_ context.Context, f *store.JobFilter, _ int64, _ int) (store.JobPage, error) {
	return store.JobPage{Jobs: slices.DeleteFunc(slices.Clone(s.jobs.Jobs), func(j record.Job) bool {
		return f.User != "" && j.User != f.User || f.ID != 0 && j.ID != f.ID
	})}, nil
}

func (s *still) LastJobs(context.Context, string, []string) (map[string]record.Job, error) {
	return map[string]record.Job{s.jobs.Jobs[0].Workload: s.jobs.Jobs[0]}, nil
}

func (s *still) LastDecisions(context.Context, string, string, int64, int) (store.DecisionPage, error) {
	return s.last, nil
}

func (s *still) LastDecisionsOf(_ context.Context, _, user, _ string, _ int) ([]record.JobDecision, error) {
	return slices.DeleteFunc(slices.Clone(s.last.Decisions), func(d record.JobDecision) bool {
		return d.User != user
	}), nil
}

func (*still) DecisionByToken(context.Context, string, string) (record.Decision, error) {
	return record.Decision{}, store.ErrNotFound
}

func (s *still) DecisionsOfJob(_ context.Context, _ string, id int64) ([]record.Decision, error) {
	return slices.Clone(s.decisions[id]), nil
}

func (s *still) OutcomesOfJob(_ context.Context, _ string, id int64) ([]record.Outcome, error) {
	return slices.Clone(s.outcomes[id]), nil
}

func (s *still) OutcomesOf(context.Context, record.WorkloadKey, int64, int) (store.OutcomePage, error) {
	return s.page, nil
}

func (*still) Readings(context.Context, string, int64) (map[record.RunKey]record.Readings, error) {
	return nil, nil
}

func (s *still) RunDays(context.Context, string, time.Time) ([]record.RunDay, error) {
	return s.days, nil
}

func (*still) RunEnergies(context.Context, string, time.Time) ([]record.RunEnergy, error) {
	return nil, nil
}

func (s *still) Strata(context.Context, string, time.Time, time.Time) ([]record.Stratum, error) {
	return s.strata, nil
}

func (*still) Usage(_ context.Context, _ string, _, _ time.Time, _, user string) ([]record.Usage, error) {
	if user != "" && user != "ada" {
		return nil, nil
	}
	return []record.Usage{{Key: "ada", Runs: 1}}, nil
}

func (*still) PrunedUsage(context.Context, string, time.Time, time.Time) (record.Usage, error) {
	return record.Usage{}, nil
}

func (*still) Oldest(context.Context) (time.Time, error) { return start, nil }

func (s *still) ProfileCounts(context.Context, string, string, int) ([]record.ProfileCount, error) {
	return s.counts, nil
}

func (s *still) RecordedRuns(
	context.Context, *store.RunFilter, bool, int64, int,
) (store.RecordedRunPage, error) {
	return s.recorded, nil
}

func (*still) Forget(_ context.Context, runs, conflicts []int64) (store.ForgetResult, error) {
	return store.ForgetResult{Runs: int64(len(runs)), Conflicts: int64(len(conflicts))}, nil
}

func (*still) Remember(_ context.Context, runs []record.RecordedRun) (store.ForgetResult, error) {
	for i := range runs {
		if _, err := runs[i].Outcome.Canonical(); err != nil {
			return store.ForgetResult{}, err
		}
	}
	return store.ForgetResult{Runs: int64(len(runs))}, nil
}

func (*still) AddHistory(_ context.Context, jobs []record.HistoryJob) (int, error) {
	return len(jobs), nil
}

func (*still) VisitHistory(context.Context, *store.HistoryFilter, func(record.HistoryJob) error) error {
	return nil
}

func (s *still) ModelsInUse(context.Context, string) ([]record.Model, error) { return s.models, nil }

func (s *still) Models(_ context.Context, key record.WorkloadKey) ([]record.Model, error) {
	return slices.DeleteFunc(slices.Clone(s.models), func(m record.Model) bool {
		return m.WorkloadKey != key
	}), nil
}

func (s *still) UseModel(_ context.Context, _ record.WorkloadKey, version int64, _ string) error {
	if version > int64(len(s.models)) {
		return store.ErrNotFound
	}
	return nil
}

func (*still) PutModel(context.Context, *record.Model) (int64, error) { return 1, nil }

func (*still) Profiles(context.Context, record.WorkloadKey, int) ([]record.RunProfile, error) {
	return nil, nil
}

func (*still) PutFeatures(context.Context, *record.Features) error { return nil }

func (*still) PutOutcome(_ context.Context, o *record.Outcome) (store.Receipt, error) {
	if again, err := o.Canonical(); err != nil || again.Cluster != "alpha" {
		panic("the store gets an outcome that isn't one")
	}
	if _, err := json.Marshal(o); err != nil {
		panic(err)
	}
	return store.Stored, nil
}

// askers are who may ask, by a number.
var askers = []struct {
	name   string
	caller query.Caller
}{
	{"root", query.Caller{Admin: true, Name: "root"}},
	{"an operator", query.Caller{UID: 2000, Name: "otto", Operator: true}},
	{"the jobs' user", query.Caller{UID: 1000, Name: "ada"}},
	{"another user", query.Caller{UID: 1001, Name: "eve"}},
	{"nobody's user", query.Caller{UID: 1002}},
	{"the agent of n1", query.Caller{Node: "n1"}},
}

// requestRig answers requests of any kind: what is asked alone by one controller, whose clock stands
// still, and what may change something by one that was made for it.
type requestRig struct {
	options  Options
	workload string // that it has a model of
	list     fixedSlurm
	asked    http.Handler
}

func newRequestRig(tb testing.TB) *requestRig {
	tb.Helper()
	known := stillOf(knowing(tb, memoryBound()))
	options := Options{
		Records: recordsIn(known), Cluster: "alpha", Settings: settings(tb, enforceAll), Seed: 7,
		Clock: func() time.Time { return start.Add(24 * time.Hour) },
	}
	at := options.Clock()
	rig := &requestRig{options: options, workload: known.models[0].Workload, list: fixedSlurm{
		nodes: []slurm.Node{gpuNode("n1", "gpu:v100:1", "MIXED")},
		jobs: []slurm.Job{
			{
				ID: 100, Name: "train", User: "ada", UID: 1000, Partition: "gpu", Submit: at, Start: at,
				NodeCount: 1, TimeLimit: live.LimitOf(time.Hour), State: slurm.JobState{Base: slurm.Running},
				Allocated: slurm.TRES{"gres/gpu": 1},
			}, {
				ID: 101, Name: "train", User: "ada", UID: 1000, Partition: "gpu", Submit: at, NodeCount: 1,
				TimeLimit: live.LimitOf(time.Hour), State: slurm.JobState{Base: slurm.Pending},
				TRESPerNode: "gres/gpu:1",
			},
		},
	}}
	c := rig.controller(tb)
	if err := takeList(tb.Context(), c, rig.list); err != nil {
		tb.Fatal(err)
	}
	if err := takeNodes(tb.Context(), c, rig.list); err != nil {
		tb.Fatal(err)
	}
	rig.asked = c.Handler()
	return rig
}

// controller is another one that knows of the jobs.
func (r *requestRig) controller(tb testing.TB) *Controller {
	tb.Helper()
	c := assemble(r.options)
	if err := c.learner.Load(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	c.Jobs.Observe(r.list.jobs)
	return c
}

// answer returns what comes of one request.
func (r *requestRig) answer(
	tb testing.TB, method string, target *url.URL, body []byte, who query.Caller,
) *httptest.ResponseRecorder {
	tb.Helper()
	handler := r.asked
	if method == http.MethodPost {
		handler = r.controller(tb).Handler()
	}
	return answerOf(tb, handler, method, target, body, who)
}

// answerOf returns what a handler answers.
func answerOf(
	tb testing.TB, handler http.Handler, method string, target *url.URL, body []byte, who query.Caller,
) *httptest.ResponseRecorder {
	tb.Helper()
	request := (&http.Request{
		Method: method, URL: target, Host: "epd", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header), Body: io.NopCloser(bytes.NewReader(body)), RequestURI: target.RequestURI(),
	}).WithContext(query.WithCaller(tb.Context(), who))
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, request)
	return w
}

// requestSeeds returns a request of each kind.
func requestSeeds(workload string) []struct{ method, target, body string } {
	get, post := http.MethodGet, http.MethodPost
	named := url.Values{"workload": {workload}, "gpu_model": {"V100"}}.Encode()
	return []struct{ method, target, body string }{
		{post, epdapi.PathDecide, `{"job_id":100,"node":"n1","run_id":"r","gpu_model":"Tesla V100",` +
			`"gpus":1,"uid":1000,"clocks":[{"mem_mhz":877,"core_mhz":[1380,1237,1087,945,802]}]}`},
		{post, epdapi.PathDecide, `{"job_id":7,"node":"n2","run_id":"x","gpu_model":"V100","gpus":4,` +
			`"shared":true,"comment_hex":"6570706c616e3a66697865643d383032",` +
			`"clocks":[{"mem_mhz":877,"core_mhz":[802]}]}`},
		{post, epdapi.PathOutcome, `{"run_id":"run-3","job_id":3,"node":"n1","gpus":["GPU-a"],` +
			`"ended":"2026-05-04T12:00:00Z","exit_state":"COMPLETED","time_s":500,"gpu_energy_j":1e5,` +
			`"gpu_energy_source":"counter","mean_power_w":200}`},
		{post, epdapi.PathOutcome, `{"run_id":"u","job_id":9,"node":"n1","unmatched":true,"arm":"held_out"}`},
		{post, epdapi.PathOutlook, `{"job_id":100,"node":"n1","run_id":"r"}`},
		{post, epdapi.PathReport, `{"node":"n1","at":"2026-05-05T09:00:00Z","gpus":[{"uuid":"GPU-a",` +
			`"model":"V100","power_w":200,"read":true,"utilisation":0.5}],` +
			`"runs":[{"run":"r","job":100,"gpus":["GPU-a"],"started":"2026-05-05T09:00:00Z"}],"troubles":[]}`},
		{post, epdapi.PathSubmit, `{"v":1,"kind":"batch","uid":1000,"name_hex":"747261696e",` +
			`"tres_per_node_hex":"677265732f6770753a31","time_limit_min":600}`},
		{post, epdapi.PathEstimate + "?gpu_model=V100", `{"v":1,"kind":"batch","uid":1000,` +
			`"name_hex":"747261696e","tres_per_node_hex":"677265732f6770753a31"}`},
		{post, epdapi.PathCode, `{"v":1,"kind":"batch","uid":1000,"script_hex":"2321","code":{}}`},
		{post, epdapi.PathPower, `{"action":"suspend","nodes":["n1"],"failed":{"n1":"x"}}`},
		{post, epdapi.PathModelsUse, `{"workload":"` + workload + `","gpu_model":"V100","version":1,"note":"n"}`},
		{post, epdapi.PathForget, `{"runs":[1],"conflicts":[2]}`},
		{post, epdapi.PathRemember, `{"runs":[{"id":1,"outcome":{"cluster":"alpha","run_id":"r"}}]}`},
		{post, epdapi.PathHistory, `{"jobs":[{"job_id":"12_4","submitted":"2026-05-05T09:00:00Z"}]}`},
		{post, epdapi.PathReload, ``},
		{get, epdapi.PathHistory + "?since=2026-05-05T09:00:00Z&after_id=12", ``},
		{get, epdapi.PathStatus, ``},
		{get, epdapi.PathJobs + "?user=ada&state=COMPLETED&before=9&limit=3&since=2026-01-01T00:00:00Z", ``},
		{get, epdapi.PathJobs, ``},
		{get, epdapi.PathJobs + "/3", ``},
		{get, epdapi.PathJobs + "/3_4", ``},
		{get, epdapi.PathJobs + "/3" + epdapi.SuffixSeries, ``},
		{get, epdapi.PathOverview, ``},
		{get, epdapi.PathDecisions + "?mode=enforce&before=1&limit=2", ``},
		{get, epdapi.PathNodes, ``},
		{get, epdapi.PathModels, ``},
		{get, epdapi.PathModels + "?" + named, ``},
		{get, epdapi.PathFit + "?" + named, ``},
		{get, epdapi.PathProfiles + "?" + named, ``},
		{get, epdapi.PathUsage + "?own=true&by=workload", ``},
		{get, epdapi.PathUsage + "?since=2026-01-01T00:00:00Z&until=2026-02-01T00:00:00Z&by=account", ``},
		{get, epdapi.PathSavings + "?since=2026-01-01T00:00:00Z&until=2026-02-01T00:00:00Z", ``},
		{get, epdapi.PathQueue, ``},
		{get, epdapi.PathRuns + "?job=3&since=2026-01-01T00:00:00Z&conflicts=true&after=1", ``},
	}
}

// Whoever asks whatever, the answer is JSON, is the caller's fault where it is no answer, as nothing
// else is wrong, and tells users and agents nothing of others' jobs.
func FuzzRequests(f *testing.F) {
	rig := newRequestRig(f)
	for _, s := range requestSeeds(rig.workload) {
		for who := range askers {
			f.Add(s.method == http.MethodPost, s.target, []byte(s.body), uint8(who))
		}
	}
	f.Fuzz(func(t *testing.T, post bool, target string, body []byte, who uint8) {
		to, err := url.ParseRequestURI(target)
		if err != nil || !strings.HasPrefix(to.Path, "/v1/") {
			return
		}
		method := http.MethodGet
		if post {
			method = http.MethodPost
		}
		asker := askers[int(who)%len(askers)]
		w := rig.answer(t, method, to, body, asker.caller)
		switch w.Code {
		case http.StatusOK, http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge,
			http.StatusTooEarly:
			if w.Header().Get("Content-Type") != contentType || !json.Valid(w.Body.Bytes()) {
				t.Fatalf("%s %s: %q", method, target, w.Body)
			}
		case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusTemporaryRedirect: // no such path
		default:
			t.Fatalf("%s %s of %s: status %d: %q", method, target, asker.name, w.Code, w.Body)
		}
		seesOthers := asker.caller.Admin || asker.caller.Operator || asker.caller.Name == "ada"
		if !seesOthers && bytes.Contains(w.Body.Bytes(), []byte(`"ada"`)) &&
			!bytes.Contains(body, []byte("ada")) && !strings.Contains(target, "ada") {
			t.Fatalf("%s %s tells %s: %s", method, target, asker.name, w.Body)
		}
	})
}

func BenchmarkRequests(b *testing.B) {
	rig := newRequestRig(b)
	seeds := requestSeeds(rig.workload)
	for i := 0; b.Loop(); i++ {
		s := seeds[i%len(seeds)]
		to, err := url.ParseRequestURI(s.target)
		if err != nil {
			b.Fatal(err)
		}
		rig.answer(b, s.method, to, []byte(s.body), askers[0].caller)
	}
}
