package control

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// asked is a question of [query.Service]: who may ask it, and its arguments after the
// context and the caller.
type asked struct {
	who  query.Tier
	with []any
	// names says of whose jobs the answer is to operators: "ada", "bob" or both; to
	// others it is of their own at most.
	names string
	gone  bool // users are told that what isn't theirs isn't there
}

// questions returns all that may be asked, of a controller with a job of ada's and one of
// bob's.
func questions(r *rig) map[string]asked {
	key := r.keyOfRun(1)
	return map[string]asked{
		"Status":        {query.Anybody, nil, "", false},
		"Overview":      {query.Anybody, nil, "ada bob", false},
		"Queue":         {query.Anybody, nil, "ada bob", false},
		"Plan":          {query.Anybody, nil, "ada bob", false},
		"Nodes":         {query.Anybody, nil, "ada bob", false},
		"Jobs":          {query.Anybody, []any{&epdapi.JobQuery{}}, "ada bob", false},
		"Job":           {query.Anybody, []any{slurm.JobID(2)}, "bob", true},
		"Series":        {query.Anybody, []any{slurm.JobID(2)}, "bob", true},
		"Decisions":     {query.Anybody, []any{"", int64(0), 10}, "ada bob", false},
		"History":       {query.Anybody, []any{&query.HistoryQuery{}}, "ada bob", false},
		"Savings":       {query.Anybody, []any{time.Time{}, time.Time{}}, "", false},
		"Usage":         {query.Anybody, []any{time.Time{}, time.Time{}, "", false}, "", false},
		"Estimate":      {query.Anybody, []any{script(1001), (*epdapi.Code)(nil), ""}, "", false},
		"Code":          {query.Anybody, []any{script(1001), &epdapi.Code{}}, "", false},
		"ModelStatuses": {query.Operators, nil, "", false},
		"Models":        {query.Operators, nil, "ada bob", false},
		"ModelVersions": {query.Operators, []any{key.Workload, key.GPUModel}, "ada", false},
		"Fit":           {query.Operators, []any{key.Workload, key.GPUModel}, "ada", false},
		"Profiles":      {query.Operators, []any{""}, "", false},
		"RecordedRuns":  {query.Administrators, []any{&query.RunQuery{Job: 2}}, "bob", false},
		"UseModel": {query.Administrators, []any{&epdapi.ModelChoice{
			Workload: key.Workload, GPUModel: key.GPUModel,
		}}, "ada", false},
		"Forget":     {query.Administrators, []any{&epdapi.RunIDs{}}, "", false},
		"Remember":   {query.Administrators, []any{[]record.RecordedRun{}}, "", false},
		"AddHistory": {query.Administrators, []any{&epdapi.History{}}, "", false},
		"Reload":     {query.Administrators, nil, "", false},
	}
}

// Whose an answer is: users' names, and ids of jobs and runs.
var whose = map[string]*regexp.Regexp{
	"ada": regexp.MustCompile(`"(user|name)":"ada"|"user":"ada"|run-1"|"(id|job|job_id)":"?1\b|adas`),
	"bob": regexp.MustCompile(`"user":"bob"|secret|run-2"|"(id|job|job_id)":"?2\b|bobs`),
}

// askFor asks a question by its name.
func (r *rig) askFor(who query.Caller, name string, with []any) (answer string, err error) {
	r.t.Helper()
	method := reflect.ValueOf(r.Queries).MethodByName(name)
	in := make([]reflect.Value, 0, 2+len(with))
	in = append(in, reflect.ValueOf(context.Background()), reflect.ValueOf(who))
	for _, v := range with {
		in = append(in, reflect.ValueOf(v))
	}
	out := method.Call(in)
	if len(out) == 2 && !out[1].IsNil() {
		return "", out[1].Interface().(error) //nolint:forcetypeassert,errcheck // the second is always one
	}
	return string(must(json.Marshal(out[0].Interface()))), nil
}

// Whoever asks without the JSON interface, as pages do, is told no more: each question
// sees to it by itself. One that is new must be said here, with who may ask it.
func TestEachQuestionTellsCallersOnlyWhatTheyMaySee(t *testing.T) {
	r := withJobs(t)
	r.listBoth()
	r.Plan.Put(&live.Plan{Policy: "edl", Until: r.clock.read().Add(time.Hour), Jobs: []live.PlannedJob{
		{Job: 1, User: "ada"}, {Job: 2, User: "bob"},
	}}, nil, 1)
	all := questions(r)
	service := reflect.TypeFor[*query.Service]()
	for m := range service.Methods() {
		if m.Name == "Power" { // a sum of watts, without a caller
			continue
		}
		of, known := all[m.Name]
		if !known {
			t.Errorf("who may ask %s isn't said here", m.Name)
			continue
		}
		if m.Type.NumIn() != 3+len(of.with) || m.Type.In(2) != reflect.TypeFor[query.Caller]() {
			t.Errorf("%s isn't asked with a context, a caller and what is said here", m.Name)
			continue
		}
		for _, who := range []query.Caller{ada, {UID: 4711, Name: "eve"}, nameless, bob, operator, root} {
			r.checkAnswer(m.Name, &of, who)
		}
		delete(all, m.Name)
	}
	for name := range all {
		t.Errorf("there is no question %s", name)
	}
}

// listBoth has Slurm list ada's and bob's jobs, which run, with the nodes' reports of
// them and an old job of each in the history.
func (r *rig) listBoth() {
	r.t.Helper()
	running := make([]slurm.Job, 0, 2)
	for id, user := range map[slurm.JobID]query.Caller{1: ada, 2: bob} {
		j := r.job(id, func(j *slurm.Job) {
			j.User, j.UID, j.Name, j.TRESPerNode = user.Name, user.UID, user.Name+"s", "gres/gpu:1"
		})
		running = append(running, j)
		r.hear(report("node-"+user.Name, 100, epdapi.NodeRun{Run: epdapi.Run{
			ID: "run-" + id.String(), Job: uint32(id),
		}}))
		if _, err := r.Queries.AddHistory(context.Background(), root, &epdapi.History{Jobs: []record.HistoryJob{{
			JobID: "9" + id.String(), Submitted: start, User: user.Name, State: record.Completed,
		}}}); err != nil {
			r.t.Fatal(err)
		}
	}
	r.flush()
	r.sync(fixedSlurm{jobs: running, nodes: []slurm.Node{gpuNode("n1", "gpu:v100:4", "IDLE")}})
}

// checkAnswer checks what a caller gets.
func (r *rig) checkAnswer(name string, of *asked, who query.Caller) {
	r.t.Helper()
	text, err := r.askFor(who, name, of.with)
	if refused := errors.Is(err, query.ErrForbidden); refused != (of.who.Admits(who) != nil) {
		r.t.Errorf("%s as %+v: %v", name, who, err)
	}
	if hidden := errors.Is(err, store.ErrNotFound); of.gone && !who.Operator && !who.Admin &&
		hidden != (who.Name != "bob") {
		r.t.Errorf("%s of bob's job as %+v: %v", name, who, err)
	}
	for user, marks := range whose {
		found := marks.FindString(text)
		switch {
		case found != "" && !who.Operator && !who.Admin && who.Name != user:
			r.t.Errorf("%s tells %q of %s: %s", name, who.Name, user, found)
		case found == "" && who.Operator && err == nil && regexp.MustCompile(user).MatchString(of.names):
			r.t.Errorf("%s tells an operator nothing of %s, so that this can't fail: %s", name, user, text)
		}
	}
}

// A workload is one user's, also where another one submits the same script later.
func TestOwnUsageNamesWorkloadsByOnesOwnJobsAlone(t *testing.T) {
	r := withJobs(t)
	r.job(3, func(j *slurm.Job) { j.User, j.UID = "bob", 1001 }) // as ada's first one
	request := ask(3)
	request.UID = 1001
	d := r.decide(request)
	r.record(r.ran(d, request.RunID, memoryBound()), store.Stored)
	named := 0
	for _, who := range []query.Caller{ada, bob, operator} {
		u, err := r.Queries.Usage(t.Context(), who, time.Time{}, time.Time{}, "workload", true)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range u.Groups {
			if g.LastJob.User != "" {
				named++
			}
			if g.LastJob.User != "" && g.LastJob.User != who.Name || g.LastJob.User == "" && g.LastJob.ID != 0 {
				t.Errorf("%s is told of %+v", who.Name, g.LastJob)
			}
		}
	}
	if named == 0 {
		t.Error("no workload has a name")
	}
}
