package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/spool"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
	"github.com/epplan/epplan/statedir"
)

// judge is a controller that decides the same for all.
type judge struct {
	mu      sync.Mutex
	setting dvfsmodel.Setting // zero: default clocks
	adapt   *live.Adaptation
	reason  string
	refuse  error         // of Decide
	wait    time.Duration // before it answers
	full    error         // of Record
	kept    map[string]record.Outcome
	ends    []int64 // without a start
	outlook live.Outlook
	asks    int                  // for it
	slurm   bool                 // there is one to ask
	request epdapi.DecideRequest // the last one

	asked chan struct{} // hears of each Decide, unless nil
	stuck chan struct{} // until it is closed Record doesn't answer, unless nil
	tries int           // of Record

	reported []epdapi.NodeReport
	every    float64 // seconds until the next report; 0: the agent's own time
	deaf     error   // of Report
}

func (j *judge) Decide(ctx context.Context, r *epdapi.DecideRequest) (live.Decision, error) {
	if j.asked != nil {
		j.asked <- struct{}{}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.request = *r
	if j.wait > 0 {
		timer := time.NewTimer(j.wait)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return live.Decision{}, ctx.Err()
		case <-timer.C:
		}
	}
	return live.Decision{
		Mode: live.Enforce, Apply: j.setting != dvfsmodel.Setting{}, Setting: j.setting, Reason: j.reason,
		Adapt: j.adapt,
	}, j.refuse
}

func (j *judge) Record(ctx context.Context, outcome []byte) error {
	var o record.Outcome
	if err := json.Unmarshal(outcome, &o); err != nil {
		return err
	}
	if j.stuck != nil {
		select {
		case <-j.stuck:
		case <-ctx.Done():
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tries++
	switch {
	case j.full != nil:
		return j.full
	case o.Unmatched:
		j.ends = append(j.ends, o.JobID)
		return nil
	case j.kept == nil:
		j.kept = make(map[string]record.Outcome)
	}
	j.kept[o.RunID] = o
	return nil
}

func (j *judge) Outlook(context.Context, epdapi.OutlookRequest) (live.Outlook, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asks++
	return j.outlook, nil
}

func (j *judge) Report(_ context.Context, r *epdapi.NodeReport) (epdapi.ReportAnswer, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reported = append(j.reported, *r)
	return epdapi.ReportAnswer{EveryS: j.every}, j.deaf
}

func (j *judge) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.kept)
}

// house is a machine with simulated GPUs and a daemon that serves a socket.
type house struct {
	*judge
	sims   []*gpu.Sim
	client *epdapi.Client
	socket string
	node   *daemon.AgentServer
	stop   func()
}

// slow returns the lowest clocks of the simulated V100.
func slow(t *testing.T, dev gpu.Device) dvfsmodel.Setting {
	t.Helper()
	table, err := dev.Clocks()
	if err != nil {
		t.Fatal(err)
	}
	cores := table.Core[0]
	return dvfsmodel.Setting{Core: cores[len(cores)-1]}
}

// open starts a daemon whose files lie in a folder.
func open(t *testing.T, dir, spec, faults string, j *judge) *house {
	t.Helper()
	return openWith(t, dir, spec, faults, j, func(o *daemon.Options) { o.Simulated = true })
}

// unhurried are a Prolog's bounds where a machine that is busy with tests mustn't keep clocks from being locked.
var unhurried = daemon.PrologBounds{Decide: time.Minute, Gone: time.Minute, Numbers: time.Minute}

// hurried has the bounds be those of a daemon in earnest.
func hurried(o *daemon.Options) { o.Prolog = daemon.PrologBounds{} }

// openWith is open with further options.
func openWith(t *testing.T, dir, spec, faults string, j *judge, with func(*daemon.Options)) *house {
	t.Helper()
	rules, err := gpu.ParseFaults(faults)
	if err != nil {
		t.Fatal(err)
	}
	library, err := gpu.OpenSim(spec, config.BuiltinProfiles().Board,
		&gpu.SimOptions{Dir: filepath.Join(dir, "sim"), Faults: rules})
	if err != nil {
		t.Fatal(err)
	}
	sims, err := library.Sims()
	if err != nil {
		t.Fatal(err)
	}
	journal, err := statedir.OpenFolder(filepath.Join(dir, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	runs, err := statedir.OpenFolder(filepath.Join(dir, "runs"))
	if err != nil {
		t.Fatal(err)
	}
	outbox, err := spool.Open(filepath.Join(dir, "spool"), nil)
	if err != nil {
		t.Fatal(err)
	}
	access := &daemon.Access{}
	options := daemon.Options{
		Version: "test", Role: "both", Node: "n1", Controller: j, Spool: outbox, Access: access,
		Slurm: j.slurm, Prolog: unhurried,
		Agent: agent.New(agent.Options{Journal: journal, Runs: runs, Library: library, Boot: "boot"}),
	}
	with(&options)
	d := daemon.NewAgentServer(options)
	socket := filepath.Join(dir, "epd.sock")
	l, err := daemon.Listen(t.Context(), socket, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.Start(ctx)
	var group sync.WaitGroup
	mux := http.NewServeMux()
	d.Routes(mux)
	group.Go(func() {
		if err := daemon.Serve(ctx, l, mux, daemon.Door{Full: access.IsAdmin}); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	group.Go(func() { d.Run(ctx) })
	h := &house{
		judge: j, sims: sims, node: d, client: epdapi.New(socket), socket: socket,
		stop: sync.OnceFunc(func() {
			cancel()
			group.Wait()
		}),
	}
	t.Cleanup(h.stop)
	return h
}

// hook plays a Prolog or an Epilog.
func (h *house) hook(t *testing.T, kind hooks.Hook, job slurm.JobID, gpus ...int) hooks.Answer {
	t.Helper()
	return h.say(t, &hooks.Event{Kind: kind, Job: job, GPUs: gpus, GPUsKnown: gpus != nil})
}

// say says what a hook does.
func (h *house) say(t *testing.T, e *hooks.Event) hooks.Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	deadline, _ := ctx.Deadline()
	e.Version, e.Node, e.Deadline = hooks.ProtocolVersion, "n1", deadline.UnixMilli()
	answer, err := h.client.Hook(ctx, e)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// core returns what a GPU's core clock is locked at; 0: it isn't.
func (h *house) core(t *testing.T, i int) float64 {
	t.Helper()
	f, err := h.sims[i].Held(gpu.CoreClock)
	if err != nil {
		t.Fatal(err)
	}
	return float64(f)
}

// eventually waits for what other goroutines do.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 2 min", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func TestAPrologLocksTheGPUsThatSlurmGaveAndTheEpilogRecordsTheRun(t *testing.T) {
	j := &judge{}
	h := open(t, t.TempDir(), "sim:4,minor=reverse", "", j)
	j.setting, j.reason = slow(t, h.sims[0]), "cheapest"
	answer := h.hook(t, hooks.Prolog, 7, 0, 2)
	if !answer.Applied || answer.Reason != "enforce: cheapest" {
		t.Fatalf("answer %+v", answer)
	}
	// Positions are those of the device files, which count the other way here.
	for i, want := range []bool{false, true, false, true} {
		if got := h.core(t, i) > 0; got != want {
			t.Errorf("GPU %d locked: %v, want %v", i, got, want)
		}
	}
	status, err := h.client.Status(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(status.GPUs) != 4 || len(status.Runs) != 1 || status.Runs[0].Job != 7 {
		t.Errorf("status %+v", status)
	}
	h.hook(t, hooks.Epilog, 7) // without a list of GPUs
	for i := range h.sims {
		if h.core(t, i) != 0 {
			t.Errorf("GPU %d is still locked", i)
		}
	}
	eventually(t, "the outcome is recorded", func() bool { return j.count() == 1 })
	eventually(t, "the run is forgotten", func() bool {
		s, err := h.client.Status(context.Background())
		return err == nil && len(s.Runs) == 0
	})
}

func TestAControllerThatFailsOrHangsLeavesDefaultClocks(t *testing.T) {
	for name, j := range map[string]*judge{
		"fails": {refuse: errors.New("no idea")},
		"hangs": {wait: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openWith(t, t.TempDir(), "sim", "", j, func(o *daemon.Options) {
				hurried(o)
				o.Simulated = true
			})
			j.setting = slow(t, h.sims[0])
			begin := time.Now()
			if answer := h.hook(t, hooks.Prolog, 1, 0); answer.Applied || h.core(t, 0) != 0 {
				t.Errorf("answer %+v, core %v", answer, h.core(t, 0))
			}
			if took := time.Since(begin); took > time.Minute { // of an hour
				t.Errorf("the Prolog took %v", took)
			}
			h.hook(t, hooks.Epilog, 1)
			eventually(t, "the outcome is recorded", func() bool { return j.count() == 1 })
			const waited = 600 * time.Millisecond // for a decision: the job doesn't run yet
			for _, o := range j.kept {
				if early := begin.Add(waited).Sub(o.Started); j.wait > 0 && early > 0 {
					t.Errorf("the run counts from %v too early", early)
				}
			}
		})
	}
}

func TestOutcomesWaitWhileTheStoreFailsAlsoOverARestart(t *testing.T) {
	j, dir := &judge{full: errors.New("disk full")}, t.TempDir()
	h := open(t, dir, "sim", "", j)
	h.hook(t, hooks.Prolog, 1, 0)
	h.hook(t, hooks.Epilog, 1)
	eventually(t, "trouble is shown", func() bool {
		s, err := h.client.Status(context.Background())
		return err == nil && s.Unrecorded == 1 && len(s.Troubles) > 0 &&
			strings.Contains(s.Troubles[0].Message, "disk full")
	})
	h.stop()
	again := &judge{}
	open(t, dir, "sim", "", again)
	eventually(t, "the outcome is recorded after all", func() bool { return again.count() == 1 })
}

func TestStoppingGivesClocksBackAndStartingToo(t *testing.T) {
	j, dir := &judge{}, t.TempDir()
	h := open(t, dir, "sim:2", "", j)
	j.setting = slow(t, h.sims[0])
	h.hook(t, hooks.Prolog, 1, 0)
	if h.core(t, 0) == 0 {
		t.Fatal("not locked")
	}
	h.stop()
	if h.core(t, 0) != 0 {
		t.Error("still locked after the stop")
	}
	h = open(t, dir, "sim:2", "", j)
	s, err := h.client.Status(context.Background())
	if err != nil || len(s.Runs) != 1 || s.Runs[0].HandsOff == "" {
		t.Errorf("status %+v, error %v: want the run, at default clocks", s, err)
	}
	h.hook(t, hooks.Epilog, 1)
	eventually(t, "the outcome is recorded", func() bool { return j.count() == 1 })
}

func TestRestoreGivesEveryClockBack(t *testing.T) {
	j := &judge{}
	h := open(t, t.TempDir(), "sim:2", "", j)
	j.setting = slow(t, h.sims[0])
	h.hook(t, hooks.Prolog, 1, 0, 1)
	answer, err := h.client.Restore(context.Background(), &epdapi.RestoreRequest{})
	if err != nil || !answer.Clean || h.core(t, 0) != 0 || h.core(t, 1) != 0 {
		t.Errorf("answer %+v, error %v, clocks %v %v", answer, err, h.core(t, 0), h.core(t, 1))
	}
}

func TestDriversThatFailLeaveTheJobAlone(t *testing.T) {
	for _, faults := range []string{
		"lock:permission", "lock:unsupported", "lock:lost", "clocks:lost",
		"lock:slow=2s",
	} {
		t.Run(faults, func(t *testing.T) {
			t.Parallel()
			j := &judge{}
			h := open(t, t.TempDir(), "sim", faults, j)
			j.setting = dvfsmodel.Setting{Core: 945}
			begin := time.Now()
			if answer := h.hook(t, hooks.Prolog, 1, 0); answer.Applied {
				t.Errorf("answer %+v", answer)
			}
			if took := time.Since(begin); took > 4*time.Second {
				t.Errorf("the Prolog took %v", took)
			}
			h.hook(t, hooks.Epilog, 1, 0)
			eventually(t, "the outcome is recorded", func() bool { return j.count() == 1 })
			eventually(t, "the clock is free", func() bool {
				f, err := h.sims[0].Held(gpu.CoreClock)
				return err != nil || f == 0
			})
		})
	}
}

func TestRequestsThatAreNoneAreRefused(t *testing.T) {
	h := open(t, t.TempDir(), "sim", "", &judge{})
	web := http.Client{
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", h.socket)
		}},
	}
	for name, test := range map[string]struct {
		path, body string
		want       int
	}{
		"garbage": {epdapi.PathProlog, "\x00\xff", http.StatusBadRequest},
		"wrong hook": {
			epdapi.PathProlog, `{"v":1,"kind":"epilog","job_id":1,"node":"n1"}`, http.StatusBadRequest,
		},
		"no job": {epdapi.PathEpilog, `{"v":1,"kind":"epilog","node":"n1"}`, http.StatusBadRequest},
		"hostile node": {
			epdapi.PathProlog, `{"v":1,"kind":"prolog","job_id":1,"node":"n1; rm -rf /"}`,
			http.StatusBadRequest,
		},
		"unknown key": {epdapi.PathRestore, `{"gpu":"x"}`, http.StatusBadRequest},
		"too much": {
			epdapi.PathProlog, strings.Repeat("a", hooks.MaxMessage+1), http.StatusBadRequest,
		},
		"unknown path": {"/v1/nothing", "{}", http.StatusNotFound},
		"wrong method": {epdapi.PathStatus, "{}", http.StatusMethodNotAllowed},
		"GPU that is not": {
			epdapi.PathProlog, `{"v":1,"kind":"prolog","job_id":1,"node":"n1","gpus":[63],"gpus_known":true}`,
			http.StatusOK,
		},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://epd"+test.path,
				strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			response, err := web.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != test.want {
				t.Errorf("status %d, want %d", response.StatusCode, test.want)
			}
		})
	}
	if h.core(t, 0) != 0 {
		t.Error("locked")
	}
}

func TestTheSocketIsForItsOwnerAndThereIsOne(t *testing.T) {
	h := open(t, t.TempDir(), "sim", "", &judge{})
	info, err := os.Stat(h.socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	if _, err := daemon.Listen(t.Context(), h.socket, 0o600); err == nil ||
		!strings.Contains(err.Error(), "another epd") {
		t.Errorf("second listener: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := daemon.Listen(t.Context(), file, 0o600); err == nil {
		t.Error("took a file's place")
	}
}

func TestAnEndWithoutAStartIsKeptApart(t *testing.T) {
	j := &judge{}
	h := open(t, t.TempDir(), "sim", "", j)
	h.hook(t, hooks.Epilog, 8) // a job without GPUs
	h.hook(t, hooks.Epilog, 9, 0)
	eventually(t, "the end is kept", func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		return len(j.ends) == 1 && j.ends[0] == 9
	})
	if j.count() != 0 {
		t.Error("taken for an outcome")
	}
}

func TestAReloadOfTheDriverCostsNoLaterJobItsClocks(t *testing.T) {
	j := &judge{}
	h := open(t, t.TempDir(), "sim", "", j)
	j.setting = slow(t, h.sims[0])
	for job := range slurm.JobID(3) {
		if err := h.sims[0].InjectFault(gpu.FaultReload); err != nil {
			t.Fatal(err)
		}
		if answer := h.hook(t, hooks.Prolog, job+1, 0); !answer.Applied {
			t.Errorf("job %d: %+v", job+1, answer)
		}
		h.hook(t, hooks.Epilog, job+1)
	}
	s, err := h.client.Status(t.Context())
	if err != nil || s.GPUs[0].Power <= 0 {
		t.Errorf("status %+v, error %v", s, err)
	}
}

func TestThePowerOfAModuleIsMarked(t *testing.T) {
	for spec, want := range map[string]string{"sim": "", "sim,model=GH200": epdapi.OfModules} {
		h := open(t, t.TempDir(), spec, "", &judge{})
		s, err := h.client.Status(t.Context())
		if err != nil || s.GPUs[0].PowerOf != want ||
			strings.Contains(s.GPUs[0].PowerText(), "of its module") != (want != "") {
			t.Errorf("%s: %+v, %v", spec, s, err)
		}
	}
}
