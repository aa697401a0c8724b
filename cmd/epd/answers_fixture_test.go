package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/daemon"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/mungetest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/testkit/storetest"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
)

// person is a user of the system's with jobs. What of a person must not be told
// to others has the person's mark.
type person struct {
	uid   uint32
	name  string // of the system's
	first slurm.JobID
	node  string // on which the jobs ran
}

// The two persons with jobs, and others by uid.
var (
	hers = person{10, "uucp", 771000, "zznode-u"}
	his  = person{33, "www-data", 882000, "zznode-w"}
)

const (
	slurmUID    = 13 // taken for Slurm's user
	operatorUID = 34 // backup, named in [live] operators
	strangerUID = 54321
)

func (p *person) mark() string { return "zz" + p.name }

// marks finds what is somebody's own in an answer: a mark, the name, a job id. A
// job's id isn't looked for inside of other numbers.
func (p *person) marks() *regexp.Regexp {
	return regexp.MustCompile(fmt.Sprintf(`%s|(^|[^0-9a-f.])%d[0-9]{3}([^0-9a-f.]|$)`, p.name, p.first/1000))
}

// cluster is what Slurm says in these tests.
type cluster struct{ jobs []slurm.Job }

func (c *cluster) EachJob(_ context.Context, each func(*slurm.Job) error) (slurm.Unread, error) {
	for i := range c.jobs {
		if err := each(&c.jobs[i]); err != nil {
			return slurm.Unread{}, err
		}
	}
	return slurm.Unread{}, nil
}

func (*cluster) Nodes(context.Context) ([]slurm.Node, slurm.Unread, error) {
	nodes := make([]slurm.Node, 0, 2)
	for _, p := range []person{hers, his} {
		nodes = append(nodes, slurm.Node{
			Name: p.node, State: slurm.NodeState{Base: "IDLE"}, Partitions: []string{"gpu"},
			Gres: []slurm.Gres{{Name: "gpu", Type: "v100", Count: 4}},
		})
	}
	return nodes, slurm.Unread{}, nil
}

// levers of that Slurm.
type levers struct{}

func (levers) Change(context.Context, string, lever.Undo) error { return nil }
func (levers) Undo(context.Context, lever.Undo) error           { return nil }

func noPowerSaving(context.Context) (slurm.PowerSaving, error) { return slurm.PowerSaving{}, nil }

// house is a controller with jobs of two persons, served at all of its doors.
type house struct {
	*program
	t      *testing.T
	dir    string
	slurm  *cluster
	doors  map[string]string // paths of sockets, addresses of ports
	munged *mungetest.Munged
	models map[string]string   // workloads by person
	told   map[string][]string // by kind of data: rows by which users were told of others'
}

// tokens of the port.
const (
	portAdmin  = "0123456789abcdef0123"
	portReader = "fedcba98765432100000"
)

// openHouse opens one; web are lines of [web] in its configuration.
func openHouse(t *testing.T, web string) *house {
	t.Helper()
	storetest.NeedSQLite(t)
	shareddata.Need(t, os.Geteuid() == 0, "only root can ask as another user")
	dir, err := os.MkdirTemp("", "epd") //nolint:usetesting // t.TempDir's folders are closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	h := &house{
		t: t, dir: dir, slurm: &cluster{}, munged: mungetest.Start(t, nil),
		models: map[string]string{}, told: map[string][]string{},
	}
	h.doors = map[string]string{
		"private": filepath.Join(dir, "epd.sock"), "public": filepath.Join(dir, "submit.sock"),
		"munge": freePort(t), "port": freePort(t),
	}
	writeFile(t, filepath.Join(dir, "tokens"), "admin alice "+portAdmin+"\nreader rita "+portReader+"\n")
	flags := flag.NewFlagSet("epd", flag.ContinueOnError)
	for name, value := range map[string]string{
		"submit-socket": h.doors["public"], "listen": h.doors["munge"], "web": h.doors["port"],
		"munge-socket": h.munged.Socket,
		"state":        dir, "slurm": "off",
	} {
		flags.String(name, value, "")
	}
	h.program = &program{
		Context: cli.NewContext(nil, flags, nil), log: slog.New(slog.DiscardHandler), role: roleController,
		started: time.Now(), access: &daemon.Access{}, fail: func(err error) { t.Error(err) },
	}
	ctx, cancel := context.WithCancel(t.Context())
	h.Context.Context = ctx
	h.metrics = h.newMetrics()
	h.refusals.log, h.refusals.count = h.log, h.metrics.Failed
	h.access.AddAdmins(slurmUID)
	h.openController(web)
	h.fill()
	h.openSite()
	for _, open := range []func() error{h.openPublic, h.openRemote, h.openWeb, h.openPrivate} {
		if err := open(); err != nil {
			t.Fatal(err)
		}
	}
	var loops sync.WaitGroup
	for _, loop := range h.loops {
		loops.Go(func() { loop(ctx) })
	}
	t.Cleanup(func() {
		cancel()
		loops.Wait()
		for _, closer := range slices.Backward(h.closers) {
			if err := closer(); err != nil {
				t.Error(err)
			}
		}
	})
	return h
}

// openPrivate serves what the private socket serves at one whose permissions let
// anybody connect.
func (h *house) openPrivate() error {
	l, err := h.listenAt("socket", h.doors["private"], publicMode)
	if err == nil {
		h.serveAt(l, h.handler(), doorOf(h.program))
	}
	return err
}

// openController opens a controller and a steerer, as startController does.
func (h *house) openController(web string) {
	h.t.Helper()
	records, err := store.Open(h.Context.Context, filepath.Join(h.dir, "records.db"), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.closers = append(h.closers, records.Close)
	load := func() (*control.Settings, error) {
		const live = "[live]\nmode = \"enforce\"\nhold_out = 0\noperators = [\"backup\"]\n"
		text := fmt.Sprintf(live+"[web]\ntoken_file = %q\n%s",
			filepath.Join(h.dir, "tokens"), web)
		return control.ReadSettings(strings.NewReader(text), "test.toml")
	}
	settings, err := load()
	if err != nil {
		h.t.Fatal(err)
	}
	h.control, err = control.New(h.Context.Context, control.Options{
		Records: control.RecordsIn(records), Cluster: "alpha", Settings: settings,
		Seed: 7, StoreWait: 10 * time.Second,
		Load: load, UserName: userName,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.closers = append(h.closers, func() error { return h.control.Close(context.Background()) })
	h.access.Operators = func() []string { return h.control.Settings().Live.Operators }
	h.steerer, err = steer.Open(&steer.Options{
		Source: steer.SnapshotFromSlurm(h.control.Jobs.Tee(h.slurm), time.Now), Levers: levers{},
		PowerSaving: noPowerSaving,
		Dir:         filepath.Join(h.dir, "levers"),
		Settings: func() *steer.Settings {
			return &steer.Settings{
				Version: "1", Live: h.control.Settings().Live, Profiles: config.BuiltinProfiles(),
				Margin: 0.1,
				Upper:  func(*slurm.Job) (time.Duration, bool) { return time.Minute, true },
			}
		},
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// jobOf returns one of a person's jobs in a state.
func jobOf(p *person, n slurm.JobID, state slurm.State) slurm.Job {
	j := slurm.Job{
		ID: p.first + n, Name: p.mark() + "-train", User: p.name, UID: p.uid,
		Account: p.mark() + "-account", Partition: "gpu", ArrayTask: -1,
		Submit: time.Now().Add(-time.Hour), Eligible: time.Now().Add(-time.Hour), NodeCount: 1,
		Priority: 1000, TRESPerNode: "gres/gpu:1",
		TimeLimit: live.LimitOf(24 * time.Hour), State: slurm.JobState{Base: state},
		Comment: "epplan:deadline=+9h",
	}
	if state == slurm.Running {
		j.Start, j.NodeList, j.Nodes, j.Allocated = time.Now().Add(-30*time.Minute), p.node,
			[]string{p.node}, slurm.TRES{"gres/gpu": 1}
	}
	return j
}

// fill has each person's jobs run, one still run and one wait, and what is told
// besides: reports, an old history, troubles.
func (h *house) fill() {
	h.t.Helper()
	ctx := context.Background()
	var old epdapi.History
	for _, p := range []person{hers, his} {
		for n := range slurm.JobID(5) {
			j := jobOf(&p, n, slurm.Running)
			h.control.Jobs.Observe([]slurm.Job{j})
			d := h.decide(&p, n)
			h.models[p.name] = d.Workload
			if n == 4 {
				h.slurm.jobs = append(h.slurm.jobs, j)
				h.report(&p, n)
				continue
			}
			o := &record.Outcome{
				RunID: fmt.Sprintf("%s-%d", p.mark(), n), JobID: int64(j.ID), Node: p.node,
				Workload: d.Workload, GPUModel: d.GPUModel, Arm: d.Arm,
				GPUs: []string{"GPU-" + p.mark()}, ExitState: record.Completed, Ended: time.Now(),
				TimeS:      live.Known(100 + float64(n)),
				GPUEnergyJ: live.Known(20_000 + 100*float64(n)), GPUSource: record.Counter,
				MeanPowerW: live.Known(200),
			}
			if d.Apply {
				o.Setting = dvfsmodel.Setting{Core: d.Core, Mem: d.Mem}
			}
			if _, err := h.control.Record(ctx, o); err != nil {
				h.t.Fatal(err)
			}
		}
		h.slurm.jobs = append(h.slurm.jobs, jobOf(&p, 900, slurm.Pending))
		old.Jobs = append(old.Jobs, record.HistoryJob{
			JobID: fmt.Sprint(p.first + 1), Submitted: time.Now().Add(-48 * time.Hour), User: p.name,
			Name: []byte(p.mark()), State: record.Completed,
		})
	}
	if status, text := h.within(http.MethodPost, epdapi.PathHistory,
		jsonOf(h.t, &old)); status != http.StatusOK {
		h.t.Fatalf("history: %d %s", status, text)
	}
	if err := errors.Join(h.control.Flush(ctx), h.syncNow(ctx)); err != nil {
		h.t.Fatal(err)
	}
	h.noteProblem(errors.New("at the start: " + his.mark() + " and " + hers.mark()))
}

// syncNow has the steerer and the controller ask Slurm.
func (h *house) syncNow(ctx context.Context) error {
	_, err := h.steerer.Step(ctx)
	bound, cancel := context.WithCancel(ctx)
	defer cancel()
	go h.control.Jobs.Sync(bound, h.slurm, time.Hour)
	for range 1000 {
		if _, unknown := h.control.Queries.Queue(ctx, query.ForEPD()); unknown == nil {
			return err
		}
		<-time.After(5 * time.Millisecond)
	}
	return errors.New("the controller doesn't hear of the nodes")
}

// decide has the controller decide on a person's job.
func (h *house) decide(p *person, n slurm.JobID) live.Decision {
	h.t.Helper()
	d, err := h.control.Decide(context.Background(), decideRequest(p, n))
	if err != nil {
		h.t.Fatal(err)
	}
	return d
}

func decideRequest(p *person, n slurm.JobID) *epdapi.DecideRequest {
	return &epdapi.DecideRequest{
		Job: p.first + n, Node: p.node, RunID: fmt.Sprintf("%s-%d", p.mark(), n),
		GPUModel: "Tesla V100", GPUs: 1, UID: p.uid,
		Clocks: []epdapi.ClockGroup{{Mem: 877, Core: []dvfsmodel.MHz{1380, 1237, 1087, 945, 802}}},
	}
}

// report has the agent of a person's node tell of a run, and of what ails it.
func (h *house) report(p *person, n slurm.JobID) {
	h.t.Helper()
	_, err := h.control.Report(context.Background(), &epdapi.NodeReport{
		Node: p.node, At: time.Now(), Troubles: []epdapi.Problem{{Message: "of " + p.mark()}},
		GPUs: []epdapi.NodeGPU{{
			GPU: epdapi.GPU{
				UUID: "GPU-0", Model: "V100", Power: 90, ExternalChange: "a tool of " + p.mark(),
				Refused: "the driver said no",
			},
			Read: true, Journal: &epdapi.JournalEntry{Job: uint32(p.first + n), RunID: p.mark()},
		}},
		Runs: []epdapi.NodeRun{{Partition: "gpu", Run: epdapi.Run{
			ID: fmt.Sprintf("%s-%d", p.mark(), n), Job: uint32(p.first + n), GPUs: []string{"GPU-0"},
			Started: time.Now().Add(-time.Minute),
		}}},
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// within asks the controller in its own process.
func (h *house) within(method, path, body string) (status int, text string) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.control.Handler().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}
