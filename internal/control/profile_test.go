package control

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

const shareAll = enforceAll + "[live.sharing]\nweights = true\n"

// halves returns the profile of a run of 64 s that uses its GPU in one half of it.
func halves(first bool) record.Profile {
	s := record.NewProfileSampler(time.Second)
	for i := range 64 {
		u := 0.05
		if (i < 32) == first {
			u = 0.9
		}
		s.Add(time.Duration(i)*time.Second, time.Duration(i+1)*time.Second, u)
	}
	return record.Profile{
		Alone: true,
		GPUs:  []record.GPUProfile{{Utilisation: s.Series(), PeakMem: 1 << 30, MemTotal: 16 << 30}},
	}
}

// shared returns a job of a name that asks for a part of a GPU.
func (r *rig) shared(id slurm.JobID, name, node string) slurm.Job {
	return r.job(id, func(j *slurm.Job) {
		j.Name, j.Allocated, j.TRESPerNode, j.TimeLimit = name, nil, "gres:shard:1", live.Limit{}
		j.State.Base = slurm.Pending
		if node != "" {
			j.State.Base, j.Nodes, j.NodeList, j.Start = slurm.Running, []string{node}, node, r.clock.read()
			j.Gres = []slurm.NodeGres{{
				Node: node, Gres: []slurm.Gres{{Name: "shard", Count: 1, Index: []int{0}}},
			}}
		}
	})
}

// learn records runs of a workload that did the same.
func (r *rig) learn(from slurm.JobID, name string, runs int, p record.Profile) {
	r.t.Helper()
	for i := range runs {
		id := from + slurm.JobID(i)
		r.shared(id, name, "n1")
		d := r.decide(ask(id))
		o := r.ran(d, ask(id).RunID, coreBound())
		o.TimeS, o.Profile = live.Known(64), p
		r.record(o, store.Stored)
	}
}

// nodes returns two nodes with one shared GPU each.
func (r *rig) nodes() *colocate.ClusterState {
	c := &colocate.ClusterState{At: r.clock.read()}
	for i := range 2 {
		c.Nodes = append(c.Nodes, slurm.Node{
			Name: fmt.Sprintf("n%d", i+1), State: slurm.NodeState{Base: "MIXED"}, Partitions: []string{"gpu"},
			Gres: []slurm.Gres{{Name: "gpu", Type: "v100", Count: 1}, {Name: "shard", Count: 4}},
		})
	}
	return c
}

func TestThePendingJobGoesBesideTheOneInAntiphaseOnceBothAreKnown(t *testing.T) {
	r := rigAt(t, t.TempDir()+"/epd.db", &hand{now: start}, shareAll, nil)
	r.learn(100, "high", 2, halves(true))
	r.learn(200, "low", 3, halves(false))
	cluster := r.nodes()
	first := r.shared(1, "high", "n1")
	second := r.shared(2, "low", "n2")
	next := r.shared(3, "high", "")
	first.Start, second.Start = r.clock.read(), r.clock.read()
	cluster.At, cluster.Jobs = r.clock.read(), []slurm.Job{first, second, next}
	if o := r.Foresight.SharedNodes(t.Context(), cluster, &next); len(o.Nodes) > 0 ||
		!strings.Contains(o.Note, "2 of 3 runs") {
		t.Fatalf("%+v", o)
	}
	shared := halves(true)
	shared.Alone = false
	r.learn(110, "high", 1, shared)
	if o := r.Foresight.SharedNodes(t.Context(), cluster, &next); len(o.Nodes) > 0 ||
		!strings.Contains(o.Note, "2 of 3 runs") {
		t.Fatalf("a run beside others teaches nothing: %+v", o)
	}
	r.learn(120, "high", 1, halves(true))
	o := r.Foresight.SharedNodes(t.Context(), cluster, &next)
	if len(o.Nodes) != 2 || o.Nodes[0].Name != "n2" || !o.Nodes[0].Fits || o.Nodes[0].Rank != 0 ||
		o.Nodes[1].Fits || o.Nodes[1].Rank != 1 || o.Nodes[0].Correlation > -0.9 {
		t.Fatalf("%+v", o)
	}
	stranger := r.shared(4, "unheard of", "")
	if o := r.Foresight.SharedNodes(t.Context(), cluster, &stranger); len(o.Nodes) > 0 || o.Note == "" {
		t.Errorf("%+v", o)
	}
	// More is asked for by another configuration.
	r.settings.Store(settings(t, shareAll+"runs = 5\n"))
	if o := r.Foresight.SharedNodes(t.Context(), cluster, &next); len(o.Nodes) > 0 ||
		!strings.Contains(o.Note, "3 of 5 runs") {
		t.Errorf("%+v", o)
	}
}

// unread counts questions for profiles, which fail.
type unread struct {
	everything
	asked atomic.Int64
}

func (u *unread) Profiles(context.Context, record.WorkloadKey, int) ([]record.RunProfile, error) {
	u.asked.Add(1)
	return nil, context.DeadlineExceeded
}

func TestRecordsThatCannotBeReadAreAskedForOneProfile(t *testing.T) {
	u := &unread{}
	r := rigAt(t, t.TempDir()+"/epd.db", &hand{now: start}, shareAll, func(o *Options) {
		u.everything = o.everything()
		o.Records = recordsIn(u)
	})
	cluster := r.nodes()
	for id := range slurm.JobID(20) {
		cluster.Jobs = append(cluster.Jobs, r.shared(id+1, fmt.Sprintf("job %d", id), "n1"))
	}
	next := r.shared(100, "next", "")
	r.decide(ask(1)) // names n1's GPUs
	if o := r.Foresight.SharedNodes(t.Context(), cluster, &next); len(o.Nodes) > 0 ||
		!strings.Contains(o.Note, "deadline exceeded") {
		t.Errorf("%+v", o)
	}
	if asked := u.asked.Load(); asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

func TestProfilesAreReadByOperators(t *testing.T) {
	r := rigAt(t, t.TempDir()+"/epd.db", &hand{now: start}, shareAll, nil)
	r.learn(100, "high", 3, halves(true))
	r.learn(200, "low", 1, halves(false))
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	client := epdapi.NewRemote(strings.TrimPrefix(server.URL, "http://"), http.DefaultTransport)
	all, err := client.Profiles(t.Context(), "")
	if err != nil || len(all.Profiles) != 2 || all.Rules.Runs != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	low, high := all.Profiles[0], all.Profiles[1]
	if low.Unknown == "" || low.Alone != 1 || high.Unknown != "" || high.Runs != 3 ||
		len(high.Mean) != colocate.Slots || len(high.High) != colocate.Slots ||
		high.Mean[0] != 0.9 || len(high.Phases) != 2 || high.TimeS.Mean != 64 || high.PeakMem.Mean != 1<<30 ||
		high.Last.IsZero() {
		t.Errorf("%+v, %+v", low, high)
	}
	one, err := client.Profiles(t.Context(), high.Workload)
	if err != nil || len(one.Profiles) != 1 || one.Profiles[0].Workload != high.Workload {
		t.Errorf("%+v, %v", one, err)
	}
	request := httptest.NewRequestWithContext(query.WithCaller(context.Background(), ada),
		http.MethodGet, epdapi.PathProfiles, nil)
	refused := httptest.NewRecorder()
	r.Handler().ServeHTTP(refused, request)
	if refused.Code != http.StatusForbidden {
		t.Errorf("a user: %d", refused.Code)
	}
}

func TestAnOutcomeWithMoreThanAProfileMayHaveIsRefusedForGood(t *testing.T) {
	r := newRig(t, nil)
	long := record.NewSeriesSampler(time.Second)
	long.Add(0, 200*time.Second, 1)
	o := record.Outcome{
		RunID: "r", Node: "n1", Course: record.Course{
			Profile: record.Profile{GPUs: []record.GPUProfile{{Utilisation: long.Series()}}},
		},
	}
	text, err := json.Marshal(&o)
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		"points":    string(text),
		"bytes":     `{"run_id":"r","node":"n1","profile":"` + strings.Repeat("AQ", 20_000) + `"}`,
		"no base64": `{"run_id":"r","node":"n1","profile":"%"}`,
	} {
		said := httptest.NewRecorder()
		r.Handler().ServeHTTP(said, httptest.NewRequestWithContext(t.Context(), http.MethodPost,
			epdapi.PathOutcome, strings.NewReader(body)))
		if said.Code != http.StatusBadRequest || !strings.Contains(said.Body.String(), "not a profile") {
			t.Errorf("%s: %d, %s", name, said.Code, said.Body)
		}
	}
}

func TestARunAtLowerClocksGoesBySlower(t *testing.T) {
	r := rigAt(t, t.TempDir()+"/epd.db", &hand{now: start}, shareAll, nil)
	key := record.WorkloadKey{}
	for id := range slurm.JobID(6) {
		d := r.run(id+1, memoryBound())
		key = record.WorkloadKey{Cluster: "alpha", Workload: d.Workload, GPUModel: d.GPUModel}
	}
	slow := r.learner.Slowdown(key, dvfsmodel.Setting{Core: 802})
	pt := memoryBound()
	if want := (pt.T0 + pt.D*(pt.Delta*1380/802+1-pt.Delta)) /
		(pt.T0 + pt.D); !(slow > 1+(want-1)/2 && slow < 1+2*(want-1)) {
		t.Errorf("%v times the time, want about %v", slow, want)
	}
	free := r.learner.Model(key).Model.At(1380, 877)
	low := r.learner.Model(key).Model.At(810, 877)
	limited := r.learner.Slowdown(key, dvfsmodel.Setting{Cap: low.Power})
	if !(math.Abs(limited-slow) < 0.03) {
		t.Errorf("%v times the time under a limit that holds it at 810 MHz, %v at 802 MHz", limited, slow)
	}
	if same := r.learner.Slowdown(key, dvfsmodel.Setting{Cap: free.Power * 1.1}); same != 1 {
		t.Errorf("%v times the time under a limit that doesn't hold it down", same)
	}
	if r.learner.Slowdown(key, dvfsmodel.Setting{}) != 1 ||
		r.learner.Slowdown(record.WorkloadKey{}, dvfsmodel.Setting{Core: 802}) != 1 {
		t.Error("what isn't known goes by as it is")
	}
}

func TestWhatAGPUDrawsIsByItsProfileElseThePapers(t *testing.T) {
	s := DefaultSettings()
	v100, unknown := s.sharedGPU("V100"), s.sharedGPU("unheard of")
	p, err := s.Profiles.Lookup("V100")
	if err != nil || v100.Physics.Max() != p.Default.Core || v100.IdleW != float64(p.IdleW) ||
		!(v100.Physics.PowerAt(v100.Physics.Max()) > float64(p.BusyW)-1e-9 &&
			v100.Physics.PowerAt(v100.Physics.Max()) < float64(p.BusyW)+1e-9) {
		t.Errorf("%+v, %v", v100, err)
	}
	if len(unknown.Physics.LevelsMHz) != 28 || unknown.Physics.Max() != 1350 {
		t.Errorf("%+v", unknown)
	}
}
