package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/slurmqueue"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/storetest"
	"github.com/epplan/epplan/internal/web"
	"github.com/epplan/epplan/internal/web/login"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// throughJSON carries requests to a handler in this process.
type throughJSON struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (t throughJSON) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	t.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// work has persons' jobs run, wait and end, with names that nobody should choose.
func (o *office) work(t *testing.T) {
	t.Helper()
	now := *o.now.Load()
	slurms := &cluster{}
	for _, p := range []person{hers, his} {
		for n := range slurm.JobID(5) {
			j := jobOf(&p, n, slurm.Running)
			j.Name += "\xff<b>&\x1b"
			j.Submit, j.Eligible, j.Start = now.Add(-time.Hour), now.Add(-time.Hour), now.Add(-time.Minute)
			o.control.Jobs.Observe([]slurm.Job{j})
			d, err := o.control.Decide(t.Context(), decideRequest(&p, n))
			if err != nil {
				t.Fatal(err)
			}
			if n == 4 {
				slurms.jobs = append(slurms.jobs, j)
				o.tell(t, &p, n)
				continue
			}
			o.ended(t, &p, n, &d)
		}
		waits := jobOf(&p, 900, slurm.Pending)
		waits.Submit, waits.Eligible = now.Add(-time.Hour), now.Add(-time.Hour)
		slurms.jobs = append(slurms.jobs, waits)
	}
	if err := o.control.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	bound, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { o.control.Jobs.Sync(bound, slurms, time.Hour); close(done) }()
	for heard := false; !heard; runtime.Gosched() {
		_, unknown := o.control.Queries.Queue(t.Context(), query.ForEPD())
		heard = unknown == nil || t.Context().Err() != nil
	}
	cancel()
	<-done
}

// ended records what a person's run came to.
func (o *office) ended(t *testing.T, p *person, n slurm.JobID, d *live.Decision) {
	t.Helper()
	s := record.NewReadingsSampler(1, time.Second)
	s.Add(0, 100*time.Second, 200, 1087)
	out := &record.Outcome{
		RunID: fmt.Sprintf("%s-%d", p.mark(), n), JobID: int64(p.first + n), Node: p.node,
		Workload: d.Workload, GPUModel: d.GPUModel, Arm: d.Arm, GPUs: []string{"GPU-" + p.mark()},
		ExitState: record.Completed, Started: o.now.Load().Add(-200 * time.Second).In(time.FixedZone("", 7200)),
		Ended: *o.now.Load(), TimeS: live.Known(100 + float64(n)), GPUSource: record.Counter,
		GPUEnergyJ: live.Known(20_000 + 100*float64(n)), MeanPowerW: live.Known(200),
	}
	out.Readings = s.Readings()
	if d.Apply {
		out.Setting = dvfsmodel.Setting{Core: d.Core, Mem: d.Mem}
	}
	if _, err := o.control.Record(t.Context(), out); err != nil {
		t.Fatal(err)
	}
}

// tell has the agent of a person's node report a run.
func (o *office) tell(t *testing.T, p *person, n slurm.JobID) {
	t.Helper()
	if _, err := o.control.Report(t.Context(), &epdapi.NodeReport{
		Node: p.node, At: *o.now.Load(), Troubles: []epdapi.Problem{{Message: "of " + p.mark()}},
		GPUs: []epdapi.NodeGPU{{
			GPU:  epdapi.GPU{UUID: "GPU-0", Model: "V100", Power: 90, ExternalChange: "a tool"},
			Read: true, Utilisation: live.Known(0.5),
			Journal: &epdapi.JournalEntry{Job: uint32(p.first + n), RunID: p.mark()},
		}},
		Runs: []epdapi.NodeRun{{Partition: "gpu", Run: epdapi.Run{
			ID: fmt.Sprintf("%s-%d", p.mark(), n), Job: uint32(p.first + n), GPUs: []string{"GPU-0"},
			Started: o.now.Load().Add(-time.Minute),
		}}},
	}); err != nil {
		t.Fatal(err)
	}
}

// steered returns what steers the office's Slurm.
func (o *office) steered(t *testing.T) *steer.Steerer {
	t.Helper()
	clock := func() time.Time { return *o.now.Load() }
	s, err := steer.Open(&steer.Options{
		Source: steer.SnapshotFromSlurm(o.control.Jobs.Tee(&cluster{
			jobs: []slurm.Job{jobOf(&hers, 900, slurm.Pending)},
		}), clock), Levers: levers{}, PowerSaving: noPowerSaving,
		Dir: filepath.Join(t.TempDir(), "levers"),
		Settings: func() *steer.Settings {
			return &steer.Settings{
				Version: "1", Live: o.control.Settings().Live, Profiles: config.BuiltinProfiles(), Margin: 0.1,
				Upper: func(*slurm.Job) (time.Duration, bool) { return time.Minute, true },
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// Pages ask without the JSON interface, and show each viewer what they would by it,
// to the byte.
func TestPagesShowWhatTheJSONInterfaceAnswers(t *testing.T) {
	storetest.NeedSQLite(t)
	o := newOffice(t, filepath.Join(t.TempDir(), "records.db"))
	defer o.close(t)
	o.work(t)
	models, err := o.control.Queries.Models(t.Context(), query.ForEPD())
	if err != nil || len(models.Models) == 0 {
		t.Fatal(models, err)
	}
	one := url.PathEscape(models.Models[0].Workload)
	paths := []string{
		"/", "/queue", "/jobs", "/jobs?user=uucp", "/jobs?state=COMPLETED&limit=1", "/jobs?limit=x",
		"/jobs?before=-1", "/jobs?since=yesterday", "/jobs?since=2026-03-01", "/jobs/771000", "/jobs/771004",
		"/jobs/771900", "/jobs/882001", "/jobs/9", "/jobs/x", "/nodes", "/nodes/zznode-u", "/nodes/none",
		"/workloads", "/workloads/" + one + "?gpu=V100", "/workloads/none?gpu=V100",
		"/workloads/" + one + "/use?gpu=V100&version=1", "/decisions", "/savings", "/admin", "/admin/levers",
		"/admin/reload", "/whatif?policy=edl",
	}
	viewers := []login.Viewer{
		{UID: 0, Name: "root", Role: login.Admin},
		{UID: -1, Name: "rita", Role: login.Reader},
		{UID: int64(hers.uid), Name: hers.name, Role: login.User},
		{UID: int64(his.uid), Name: his.name, Role: login.User},
		{UID: strangerUID, Role: login.User},
	}
	for name, steerer := range map[string]*steer.Steerer{"steered": o.steered(t), "not steered": nil} {
		server := &daemon.ControllerServer{
			Version: "1", Role: roleController, Control: o.control, Access: &daemon.Access{}, Steerer: steerer,
			Started:  *o.now.Load(),
			Problems: []epdapi.Problem{{At: *o.now.Load(), Message: "at the start"}},
		}
		inner := server.InternalHandler()
		shown := 0
		for _, v := range viewers {
			directly := o.show(v, &pageSource{server, callerOf(v)})
			byJSON := o.show(v, epdapi.NewRemote("epd", throughJSON{inner(callerOf(v))}))
			for _, path := range paths {
				got, want := directly(t, path), byJSON(t, path)
				if got != want {
					t.Errorf("%s: %s as %s:\n%s", name, path, v.Name, firstDifference(got, want))
				}
				if len(got) > 0 && got[0] == '2' {
					shown++
				}
			}
		}
		if shown < 2*len(paths) {
			t.Errorf("%s: only %d pages were shown", name, shown)
		}
	}
}

// show returns how a viewer gets pages made from what a source answers, with their statuses.
func (o *office) show(v login.Viewer, of interface {
	web.Source
	web.Administration
},
) func(*testing.T, string) string {
	site := web.New(web.Options{
		Source: func(login.Viewer) (web.Source, web.Administration) { return of, of },
		Now:    func() time.Time { return *o.now.Load() },
		Terms:  func() *slurmqueue.PlanTerms { return planTerms(o.control.Settings()) },
	}).Socket(func(*http.Request) login.Viewer { return v })
	return func(t *testing.T, path string) string {
		t.Helper()
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.Host = "localhost"
		site.ServeHTTP(w, r)
		return fmt.Sprint(w.Code, " ", formToken.ReplaceAllString(w.Body.String(), ""))
	}
}

// formToken is what each site draws for its forms.
var formToken = regexp.MustCompile(`name="form_token" value="[0-9a-f]*"`)

// firstDifference shows where two texts begin to differ.
func firstDifference(got, want string) string {
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	cut := func(s string) string { return s[max(0, min(at, len(s))-80):min(len(s), at+120)] }
	return fmt.Sprintf("directly %q\nby JSON  %q", cut(got), cut(want))
}
