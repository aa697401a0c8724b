package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	words "github.com/epplan/epplan/internal/predict/source"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// The tiers, and callers of each.
var (
	root     = query.Caller{UID: 0, Name: "root", Operator: true, Admin: true}
	operator = query.Caller{UID: 500, Name: "olga", Operator: true}
	ada      = query.Caller{UID: 1000, Name: "ada"}
	bob      = query.Caller{UID: 1001, Name: "bob"}
	nameless = query.Caller{UID: 4242}
)

// callAs makes a request of a caller and decodes the answer, if it is wanted.
func (r *rig) callAs(who *query.Caller, method, path, body string, into any) int {
	r.t.Helper()
	ctx := context.Background()
	if who != nil {
		ctx = query.WithCaller(ctx, *who)
	}
	request := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	answer := httptest.NewRecorder()
	r.Handler().ServeHTTP(answer, request)
	if into != nil && answer.Code == http.StatusOK {
		if err := json.Unmarshal(answer.Body.Bytes(), into); err != nil {
			r.t.Fatalf("%s %s: %s: %v", method, path, answer.Body, err)
		}
	}
	if answer.Code != http.StatusOK {
		var fault epdapi.ErrorAnswer
		if err := json.Unmarshal(answer.Body.Bytes(), &fault); err != nil || fault.Error == "" {
			r.t.Errorf("%s %s: status %d without a reason: %s", method, path, answer.Code, answer.Body)
		}
	}
	return answer.Code
}

func TestEveryRouteIsOpenToItsTiersAlone(t *testing.T) {
	all := []string{"control", "operator", "user"}
	want := map[string][]string{
		"POST /v1/submit":          all[:1],
		"POST /v1/decide":          all[:1],
		"POST /v1/outcome":         all[:1],
		"POST /v1/outlook":         all[:1],
		"GET /v1/status":           all,
		"GET /v1/jobs":             all,
		"GET /v1/jobs/{id}":        all,
		"GET /v1/jobs/{id}/series": all,
		"GET /v1/overview":         all,
		"GET /v1/decisions":        all,
		"GET /v1/nodes":            all,
		"POST /v1/report":          all[:1],
		"POST /v1/lease":           all[:1],
		"GET /v1/budget":           all,
		"POST /v1/budget":          all[:1],
		"POST /v1/budget/cancel":   all[:1],
		"GET /v1/models/fit":       all[:2],
		"GET /v1/models":           all[:2],
		"GET /v1/profiles":         all[:2],
		"POST /v1/models/use":      all[:1],
		"GET /v1/savings":          all,
		"GET /v1/usage":            all,
		"POST /v1/estimate":        all,
		"POST /v1/code":            all,
		"GET /v1/queue":            all,
		"POST /v1/history":         all[:1],
		"GET /v1/history":          all,
		"POST /v1/reload":          all[:1],
		"POST /v1/power":           all[:1],
		"GET /v1/runs":             all[:1],
		"POST /v1/runs/forget":     all[:1],
		"POST /v1/runs/remember":   all[:1],
	}
	r := newRig(t, nil)
	routes := (&api{}).routes()
	if len(routes) != len(want) {
		t.Errorf("%d routes, want %d: say here who may use a new one", len(routes), len(want))
	}
	callers := map[string]*query.Caller{"control": &root, "operator": &operator, "user": &ada, "in process": nil}
	for _, to := range routes {
		tiers, known := want[to.pattern]
		if !known {
			t.Errorf("who may ask %s isn't said here", to.pattern)
			continue
		}
		method, path, _ := strings.Cut(to.pattern, " ")
		path = strings.Replace(path, "{id}", "7", 1)
		for tier, who := range callers {
			allowed := tier == "in process" || strings.Contains(strings.Join(tiers, " "), tier)
			status := r.callAs(who, method, path, "{", nil) // nothing can be done with that
			if refused := status == http.StatusForbidden; refused == allowed {
				t.Errorf("%s as %s: status %d", to.pattern, tier, status)
			}
		}
	}
	if s := r.status(); s.Decisions != 0 || s.Submissions != 0 {
		t.Errorf("something was done: %+v", s)
	}
}

// withJobs has a job each of ada and bob run and end.
func withJobs(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, nil)
	r.run(1, memoryBound())
	r.job(2, func(j *slurm.Job) { j.User, j.UID, j.Name = "bob", 1001, "secret" })
	request := ask(2)
	request.UID = 1001
	d := r.decide(request)
	r.record(r.ran(d, request.RunID, coreBound()), store.Stored)
	return r
}

func TestUsersSeeTheirOwnJobsAndNobodyElses(t *testing.T) {
	r := withJobs(t)
	for _, tc := range []struct {
		name string
		who  *query.Caller
		path string
		ids  []int64
	}{
		{"ada", &ada, "/v1/jobs", []int64{1}},
		{"ada asks for bob's", &ada, "/v1/jobs?user=bob", nil},
		{"ada asks for hers", &ada, "/v1/jobs?user=ada", []int64{1}},
		{"ada by partition", &ada, "/v1/jobs?partition=gpu", []int64{1}},
		{"bob", &bob, "/v1/jobs", []int64{2}},
		{"a stranger", &query.Caller{UID: 77, Name: "eve"}, "/v1/jobs", nil},
		{"a uid without a name", &nameless, "/v1/jobs", nil},
		{
			"a name beyond what is kept", &query.Caller{UID: 78, Name: strings.Repeat("a", jobs.MaxText+1)},
			"/v1/jobs", nil,
		},
		{"operator", &operator, "/v1/jobs", []int64{2, 1}},
		{"operator asks for bob's", &operator, "/v1/jobs?user=bob", []int64{2}},
		{"control", &root, "/v1/jobs", []int64{2, 1}},
		{"in process", nil, "/v1/jobs", []int64{2, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r.t = t
			var page epdapi.JobPage
			if status := r.callAs(tc.who, http.MethodGet, tc.path, "", &page); status != http.StatusOK {
				t.Fatal(status)
			}
			ids := make([]int64, 0, len(page.Jobs))
			for _, j := range page.Jobs {
				ids = append(ids, j.ID)
			}
			if got, _ := json.Marshal(ids); string(got) !=
				string(must(json.Marshal(append([]int64{}, tc.ids...)))) {
				t.Errorf("jobs %s, want %v", got, tc.ids)
			}
		})
	}
	r.t = t
	for _, tc := range []struct {
		who  *query.Caller
		id   string
		want int
	}{
		{&ada, "1", 200},
		{&ada, "2", 404},
		{&ada, "3", 404},
		{&bob, "2", 200},
		{&bob, "1", 404},
		{&nameless, "1", 404},
		{&operator, "2", 200},
		{&root, "1", 200},
		{nil, "2", 200},
	} {
		if status := r.callAs(tc.who, http.MethodGet, "/v1/jobs/"+tc.id, "", nil); status != tc.want {
			t.Errorf("job %s as %+v: status %d, want %d", tc.id, tc.who, status, tc.want)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestSomebodyElsesJobLooksLikeOneThatIsNotThere(t *testing.T) {
	r := withJobs(t)
	body := func(id string) string {
		request := httptest.NewRequestWithContext(query.WithCaller(t.Context(), ada), http.MethodGet,
			"/v1/jobs/"+id, http.NoBody)
		answer := httptest.NewRecorder()
		r.Handler().ServeHTTP(answer, request)
		return strings.ReplaceAll(answer.Body.String(), id, "N")
	}
	if other, none := body("2"), body("3"); other != none {
		t.Errorf("%s\nbut one that isn't there: %s", other, none)
	}
}

// Ids come again: the job of another user under the same id stays hidden.
func TestAnEarlierJobOfTheSameIDStaysHidden(t *testing.T) {
	r := withJobs(t)
	r.job(2, nil) // ada's, later
	request := ask(2)
	request.RunID = "later"
	r.record(r.ran(r.decide(request), "later", memoryBound()), store.Stored)
	var view epdapi.JobView
	if status := r.callAs(&ada, http.MethodGet, "/v1/jobs/2", "", &view); status != http.StatusOK {
		t.Fatal(status)
	}
	if len(view.Decisions) != 1 || len(view.Outcomes) != 1 || view.Outcomes[0].RunID != "later" ||
		view.Job.User != "ada" {
		t.Errorf("ada sees %+v", view)
	}
	if status := r.callAs(&bob, http.MethodGet, "/v1/jobs/2", "", &view); status != http.StatusOK {
		t.Fatal(status)
	}
	if len(view.Decisions) != 1 || len(view.Outcomes) != 1 || view.Outcomes[0].RunID != "run-2" ||
		view.Job.User != "bob" {
		t.Errorf("bob sees %+v", view)
	}
	if status := r.callAs(&operator, http.MethodGet, "/v1/jobs/2", "", &view); status != http.StatusOK ||
		len(view.Decisions) != 2 || len(view.Outcomes) != 2 {
		t.Errorf("the operator sees %d decisions and %d outcomes, want all", len(view.Decisions),
			len(view.Outcomes))
	}
	var page epdapi.JobPage
	if status := r.callAs(&operator, http.MethodGet, "/v1/jobs?user=bob", "",
		&page); status != http.StatusOK || len(page.Jobs) != 1 || page.Jobs[0].Runs != 1 {
		t.Errorf("bob's in the list: %+v", page.Jobs)
	}
}

func TestAListOfJobsSaysWhatBecameOfThem(t *testing.T) {
	r := newRig(t, nil)
	for id := range slurm.JobID(3) {
		r.run(id+1, memoryBound())
	}
	r.job(9, nil)
	r.decide(ask(9))
	r.flush()
	var page epdapi.JobPage
	if status := r.callAs(nil, http.MethodGet, "/v1/jobs?limit=2", "", &page); status != http.StatusOK ||
		len(page.Jobs) != 2 || page.Next == 0 {
		t.Fatalf("%d %+v", status, page)
	}
	running, ended := page.Jobs[0], page.Jobs[1]
	if running.ID != 9 || running.State != string(slurm.Running) || running.Runs != 0 ||
		running.Mode != "enforce" || running.Setting.Core == 0 {
		t.Errorf("running: %+v", running)
	}
	if _, known := ended.EnergyJ.Get(); ended.ID != 3 || ended.State != record.Completed || ended.Runs != 1 ||
		!known || ended.Arm != live.ArmTreated {
		t.Errorf("ended: %+v", ended)
	}
	var next epdapi.JobPage
	path := "/v1/jobs?state=COMPLETED&limit=2"
	if r.callAs(nil, http.MethodGet, path, "", &next); len(next.Jobs) != 2 || next.Jobs[0].ID != 3 {
		t.Errorf("completed ones: %+v", next)
	}
	if r.callAs(nil, http.MethodGet, "/v1/jobs?state=TIMEOUT", "", &next); len(next.Jobs) != 0 ||
		next.Next != 0 {
		t.Errorf("timed out ones: %+v", next)
	}
}

// troubled is a Slurm that doesn't list its jobs.
type troubled struct{ err error }

func (s troubled) EachJob(context.Context, func(*slurm.Job) error) (slurm.Unread, error) {
	return slurm.Unread{}, s.err
}

func (troubled) Nodes(ctx context.Context) ([]slurm.Node, slurm.Unread, error) {
	<-ctx.Done()
	return nil, slurm.Unread{}, ctx.Err()
}

func TestUsersAreNotToldOfTrouble(t *testing.T) {
	r := newRig(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var syncing sync.WaitGroup
	syncing.Go(func() { r.Jobs.Sync(ctx, troubled{errors.New("job 5 of eve is odd")}, 0) })
	for queue, _ := r.Jobs.Status(); queue.Failures == 0; queue, _ = r.Jobs.Status() {
		runtime.Gosched()
	}
	cancel()
	syncing.Wait()
	var s epdapi.ControllerStatus
	if r.callAs(&operator, http.MethodGet, "/v1/status", "", &s); !strings.Contains(s.Queue.Trouble, "eve") {
		t.Errorf("operators: %+v", s.Queue)
	}
	s = epdapi.ControllerStatus{}
	if r.callAs(&ada, http.MethodGet, "/v1/status", "", &s); s.Queue.Trouble != "" || s.Cluster != "alpha" ||
		s.Queue.Failures != 1 {
		t.Errorf("users: %+v", s)
	}
}

func TestAReloadThatFailsNamesEveryFaultAndChangesNothing(t *testing.T) {
	text := enforceAll
	r := newRig(t, func(o *Options) {
		o.Load = func() (*Settings, error) { return ReadSettings(strings.NewReader(text), "new.toml") }
	})
	before := r.Settings()
	text = "[live]\nmode = \"enforced\"\nhold_out = 2\n"
	answer := httptest.NewRecorder()
	r.Handler().ServeHTTP(answer,
		httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/reload", http.NoBody))
	var fault epdapi.ErrorAnswer
	if err := json.Unmarshal(answer.Body.Bytes(), &fault); err != nil ||
		answer.Code != http.StatusBadRequest {
		t.Fatalf("%d %s %v", answer.Code, answer.Body, err)
	}
	if len(fault.Faults) != 2 || !strings.HasPrefix(fault.Faults[0], "new.toml:2:") ||
		!strings.HasPrefix(fault.Faults[1], "new.toml:3:") {
		t.Errorf("faults %q", fault.Faults)
	}
	if r.Settings() != before {
		t.Error("the settings have changed")
	}
	text = mode("advise")
	var done epdapi.ReloadAnswer
	if status := r.callAs(&root, http.MethodPost, "/v1/reload", "", &done); status != http.StatusOK ||
		done.Version != r.Settings().Version || done.Before != before.Version || done.Version == done.Before {
		t.Errorf("%d %+v", status, done)
	}
	text = "[live]\nmode = \"enforce\"\nhold_out = 0\n"
	if status := r.callAs(&root, http.MethodPost, "/v1/reload", "", &done); status != http.StatusOK ||
		len(done.Warnings) != 1 || !strings.HasPrefix(done.Warnings[0], "new.toml:3:1: live.hold_out is 0 ") {
		t.Errorf("a doubtful value: %d %+v", status, done)
	}
	other := newRig(t, nil)
	if status := other.callAs(nil, http.MethodPost, "/v1/reload", "", nil); status != http.StatusBadRequest {
		t.Errorf("nothing to load from: %d", status)
	}
}

func (r *rig) estimateOf(who *query.Caller, s *hooks.Submission, values string) *epdapi.Estimate {
	r.t.Helper()
	var e epdapi.Estimate
	if status := r.callAs(who, http.MethodPost, "/v1/estimate"+values, string(must(json.Marshal(s))),
		&e); status != http.StatusOK {
		r.t.Fatalf("status %d", status)
	}
	return &e
}

// script returns a batch script that asks for a GPU.
func script(uid uint32) *hooks.Submission {
	return &hooks.Submission{
		Version: hooks.ProtocolVersion, Kind: "batch", UID: uid, Name: "train", Partition: "gpu",
		TRESPerNode: "gres/gpu:1",
		Script:      "#!/bin/sh\ntrain --epochs 3\n", TimeLimit: 60,
	}
}

// runScript submits a script and runs it some times.
func (r *rig) runScript(s *hooks.Submission, first slurm.JobID, times int) live.Decision {
	r.t.Helper()
	var d live.Decision
	for id := first; id < first+slurm.JobID(times); id++ {
		var answer hooks.SubmitAnswer
		if status := r.callAs(nil, http.MethodPost, "/v1/submit", string(must(json.Marshal(s))),
			&answer); status != http.StatusOK {
			r.t.Fatal(status)
		}
		r.job(id, func(j *slurm.Job) { j.AdminComment = string(answer.AdminComment) })
		d = r.decide(ask(id))
		r.record(r.ran(d, ask(id).RunID, memoryBound()), store.Stored)
	}
	return d
}

func TestAnEstimateIsWhatTheNextDecisionWillBe(t *testing.T) {
	r := newRig(t, nil)
	if e := r.estimateOf(nil, script(1000), ""); e.Known || len(e.Models) != 0 ||
		!strings.Contains(e.Reason, "no run of this very script") {
		t.Errorf("before it ever ran: %+v", e)
	}
	r.runScript(script(1000), 1, 4)
	e := r.estimateOf(nil, script(1000), "")
	if !e.Known || !e.Limited || e.GPUs != 1 || len(e.Models) != 1 || e.Models[0].Model == nil {
		t.Fatalf("%+v", e)
	}
	m := e.Models[0]
	next := r.runScript(script(1000), 10, 1)
	if m.Apply != next.Apply || m.Chosen.Core != next.Core || m.Reason != next.Reason ||
		m.Chosen.TimeS != next.Predicted.Or(0) || m.Chosen.UpperS != next.Upper.Or(0) ||
		m.Chosen.EnergyJ != next.EnergyJ.Or(0) || e.Workload != next.Workload {
		t.Errorf("estimate %+v %+v\ndecision %+v", m, m.Chosen, next)
	}
	if m.Chosen.EnergyJ >= m.Default.EnergyJ || m.Default.Core != 1380 || m.Chosen.LowerS > m.Chosen.TimeS ||
		m.Default.HostJ <= 0 {
		t.Errorf("default %+v, chosen %+v", m.Default, m.Chosen)
	}
	if s := r.status(); s.Decisions != 5 || s.Submissions != 5 {
		t.Errorf("estimates were counted as decisions: %+v", s)
	}
}

func TestEstimatesFollowTheSubmission(t *testing.T) {
	r := newRig(t, nil)
	r.runScript(script(1000), 1, 4)
	for name, tc := range map[string]struct {
		change func(*hooks.Submission)
		query  string
		want   func(*epdapi.Estimate) bool
	}{
		"the same": {func(*hooks.Submission) {}, "", func(e *epdapi.Estimate) bool {
			return e.Known && e.Models[0].Apply
		}},
		"one byte differs": {func(s *hooks.Submission) {
			s.Script += "\n"
		}, "", func(e *epdapi.Estimate) bool { return !e.Known }},
		"another user": {func(s *hooks.Submission) { s.UID = 1001 }, "", func(e *epdapi.Estimate) bool {
			return !e.Known
		}},
		"two GPUs": {
			func(s *hooks.Submission) { s.TRESPerNode = "gres/gpu:2" }, "",
			func(e *epdapi.Estimate) bool { return !e.Known && e.GPUs == 2 },
		},
		"two nodes": {func(s *hooks.Submission) { s.MinNodes = 2 }, "", func(e *epdapi.Estimate) bool {
			return !e.Known && e.GPUs == 2
		}},
		"no GPUs": {func(s *hooks.Submission) { s.TRESPerNode = "" }, "", func(e *epdapi.Estimate) bool {
			return !e.Known && e.GPUs == 0
		}},
		"shards": {
			func(s *hooks.Submission) { s.TRESPerNode = "gres/shard:2" }, "",
			func(e *epdapi.Estimate) bool { return e.Shared && !e.Models[0].Apply },
		},
		"opted out": {
			func(s *hooks.Submission) { s.Comment = "epplan:off" }, "",
			func(e *epdapi.Estimate) bool {
				return e.Wishes.OptOut && !e.Models[0].Apply &&
					e.Models[0].Chosen.Core == e.Models[0].Default.Core
			},
		},
		"fixed": {
			func(s *hooks.Submission) { s.Comment = "epplan:fixed=802" }, "",
			func(e *epdapi.Estimate) bool { return e.Models[0].Apply && e.Models[0].Chosen.Core == 802 },
		},
		"tight limit": {
			func(s *hooks.Submission) { s.TimeLimit = 10 }, "",
			func(e *epdapi.Estimate) bool {
				return e.Known && !e.Models[0].Apply && strings.Contains(e.Models[0].Reason, "default clocks")
			},
		},
		"no limit": {
			func(s *hooks.Submission) { s.TimeLimit = 0 }, "",
			func(e *epdapi.Estimate) bool { return e.Known && !e.Limited && e.Models[0].Apply },
		},
		"that GPU model": {
			func(*hooks.Submission) {}, "?gpu_model=Tesla+V100",
			func(e *epdapi.Estimate) bool { return e.Known && len(e.Models) == 1 },
		},
		"another GPU model": {
			func(*hooks.Submission) {}, "?gpu_model=A100",
			func(e *epdapi.Estimate) bool { return !e.Known && strings.Contains(e.Reason, "A100") },
		},
		"a hostile GPU model": {
			func(*hooks.Submission) {}, "?gpu_model=%1b[2J%0a%ff",
			func(e *epdapi.Estimate) bool {
				return !e.Known && !strings.ContainsAny(e.Reason, "\x1b\n") && utf8.ValidString(e.Reason)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := script(1000)
			tc.change(s)
			r.t = t
			if e := r.estimateOf(nil, s, tc.query); !tc.want(e) {
				t.Errorf("%+v", e)
				for _, m := range e.Models {
					t.Errorf("%+v", m)
				}
			}
		})
	}
	r.t = t
}

func TestWhereNoScriptsAreSentAnEstimateGoesByTheName(t *testing.T) {
	r := newRig(t, nil)
	for id := range slurm.JobID(4) {
		r.run(id+1, memoryBound()) // submitted without the hook
	}
	if e := r.estimateOf(nil, script(1000), ""); !e.Known || e.Scripted || !e.Models[0].Apply {
		t.Errorf("by the name: %+v", e)
	}
	other := script(1000)
	other.Name = "other"
	if e := r.estimateOf(nil, other, ""); e.Known || !e.Scripted {
		t.Errorf("by another name: %+v", e)
	}
	r.runScript(script(1000), 10, 1)
	if e := r.estimateOf(nil, script(1000), ""); !e.Known || !e.Scripted {
		t.Errorf("by the script: %+v", e)
	}
	changed := script(1000)
	changed.Script += "#"
	if e := r.estimateOf(nil, changed, ""); e.Known {
		t.Errorf("where scripts are sent, the name is nothing to go by: %+v", e)
	}
}

func TestAUsersEstimateIsOfTheirOwnJobs(t *testing.T) {
	r := newRig(t, nil)
	r.runScript(script(1000), 1, 3)
	if e := r.estimateOf(&ada, script(7), ""); !e.Known {
		t.Error("ada's own script isn't known")
	}
	if e := r.estimateOf(&bob, script(1000), ""); e.Known {
		t.Error("bob learns of ada's script by naming her uid")
	}
	if e := r.estimateOf(&operator, script(1000), ""); !e.Known {
		t.Error("an operator can't ask for ada")
	}
	for _, body := range []string{"", "{}", "\x00", `{"v":1,"kind":"batch","script_hex":"` +
		strings.Repeat("00", 1<<19) + `"}`} {
		if status := r.callAs(&ada, http.MethodPost, "/v1/estimate", body, nil); status !=
			http.StatusBadRequest {
			t.Errorf("%.20q: status %d", body, status)
		}
	}
}

// Operators may ask what another user's job would take; what its code looks like is
// for that user to say.
func TestOperatorsSayNothingOfOtherUsersCode(t *testing.T) {
	for name, c := range map[string]struct {
		who  *query.Caller
		path string
		kept bool
	}{
		"the user, to know":     {&ada, "/v1/estimate", true},
		"the user, to tell":     {&ada, "/v1/code", true},
		"an operator, to know":  {&operator, "/v1/estimate", false},
		"an operator, to tell":  {&operator, "/v1/code", false},
		"another user, to know": {&bob, "/v1/estimate", false},
		"another user, to tell": {&bob, "/v1/code", false},
		"root, to tell":         {&root, "/v1/code", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			vector := make([]float32, words.Dimensions)
			vector[0] = 1
			body := must(json.Marshal(&epdapi.CodeRequest{
				Submission: *script(1000), Code: &epdapi.Code{
					Files: 1, Vector: vector, Digest: hooks.Hex(strings.Repeat("d", 32)),
				},
			}))
			if status := r.callAs(c.who, http.MethodPost, c.path, string(body), nil); status !=
				http.StatusOK {
				t.Fatal(status)
			}
			r.submitAs(script(1000)) // what was kept of its code is stored with it
			stored, err := r.store.Learning.Features(t.Context(), "alpha", 10)
			if err != nil || len(stored) != 1 {
				t.Fatal(stored, err)
			}
			if kept := stored[0].Code != nil; kept != c.kept {
				t.Errorf("kept of ada's code: %t", kept)
			}
		})
	}
}

func TestAWaitingJobIsShownWithItsEstimate(t *testing.T) {
	r := newRig(t, nil)
	r.runScript(script(1000), 1, 4)
	var answer hooks.SubmitAnswer
	r.callAs(nil, http.MethodPost, "/v1/submit", string(must(json.Marshal(script(1000)))), &answer)
	r.job(50, func(j *slurm.Job) {
		j.AdminComment, j.State, j.Allocated = string(answer.AdminComment),
			slurm.JobState{Base: slurm.Pending}, nil
		j.TRESPerNode, j.Comment = "gres/gpu:1", "epplan:deadline=+9h"
	})
	view, err := r.Queries.Job(t.Context(), ada, 50)
	if err != nil {
		t.Fatal(err)
	}
	if view.Job == nil || view.Job.State != string(slurm.Pending) || view.Estimate == nil ||
		!view.Estimate.Known || view.Wishes == nil || view.Wishes.Deadline.IsZero() {
		t.Errorf("%+v", view)
	}
	if !bytes.Contains(must(json.Marshal(view)), []byte(`"gpu_models":[{"gpu_model":"V100"`)) {
		t.Errorf("%s", must(json.Marshal(view)))
	}
	if _, err := r.Queries.Job(t.Context(), bob, 50); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("bob sees it: %v", err)
	}
}
