package control

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/slurmqueue"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// fixedSlurm always says the same.
type fixedSlurm struct {
	jobs  []slurm.Job
	nodes []slurm.Node
}

func (f fixedSlurm) EachJob(_ context.Context, each func(*slurm.Job) error) (slurm.Unread, error) {
	for i := range f.jobs {
		if err := each(&f.jobs[i]); err != nil {
			return slurm.Unread{}, err
		}
	}
	return slurm.Unread{}, nil
}

func (f fixedSlurm) Nodes(context.Context) ([]slurm.Node, slurm.Unread, error) {
	return f.nodes, slurm.Unread{}, nil
}

// sync takes what Slurm says once.
func (r *rig) sync(f fixedSlurm) {
	r.t.Helper()
	ctx := context.Background()
	for _, err := range []error{takeList(ctx, r.Controller, f), takeNodes(ctx, r.Controller, f)} {
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) queue(who *query.Caller) *epdapi.Queue {
	r.t.Helper()
	var q epdapi.Queue
	if status := r.callAs(who, http.MethodGet, "/v1/queue", "", &q); status != http.StatusOK {
		r.t.Fatal(status)
	}
	return &q
}

func gpuNode(name, gres, state string) slurm.Node {
	g, err := slurm.ParseGres(gres)
	if err != nil {
		panic(err)
	}
	return slurm.Node{Name: name, Gres: g, State: slurm.ParseNodeState(state)}
}

// within returns a node in partitions.
func within(n slurm.Node, partitions ...string) slurm.Node {
	n.Partitions = partitions
	return n
}

func TestTasksOfArraysThatWaitAreCounted(t *testing.T) {
	r := newRig(t, nil)
	lists := []string{"", "0-9%4", "0-99999", "1,3,5,...", "0-4294967295", "what"}
	var all fixedSlurm
	for i, list := range lists {
		all.jobs = append(all.jobs, slurm.Job{
			ID: slurm.JobID(10 + i), User: "ada", UID: 1000, Partition: "gpu", ArrayTask: -1,
			ArrayTasks: list,
			State:      slurm.JobState{Base: slurm.Pending}, TRESPerNode: "gres/gpu:1",
		})
	}
	all.jobs = append(all.jobs, slurm.Job{
		ID: 20, UID: 1000, ArrayJob: 11, ArrayTask: 3, State: slurm.JobState{Base: slurm.Running},
		TRESPerNode: "gres/gpu:1",
	})
	r.sync(all)
	want := map[int64]int{10: 1, 11: 10, 12: 100_000, 13: 3, 14: 1, 15: 1, 20: 1}
	for _, j := range r.queue(&operator).Jobs {
		if j.Tasks != want[j.ID] {
			t.Errorf("%q is %d tasks, want %d", lists[(j.ID-10)%10], j.Tasks, want[j.ID])
		}
	}
	o, err := r.Queries.Overview(t.Context(), query.ForEPD())
	if err != nil || o.Queue.Pending != 100_016 || o.Queue.Running != 1 ||
		o.Queue.States["PENDING"] != o.Queue.Pending {
		t.Errorf("%+v, %v", o.Queue, err)
	}
}

// pendingAt makes jobs that were submitted then and wait.
func pendingAt(now time.Time) func(id slurm.JobID, change func(*slurm.Job)) slurm.Job {
	return func(id slurm.JobID, change func(*slurm.Job)) slurm.Job {
		j := slurm.Job{
			ID: id, Name: "train", User: "ada", UID: 1000, Partition: "gpu", Submit: now, NodeCount: 1,
			Priority: 9, ArrayTask: -1,
			TimeLimit: live.LimitOf(time.Hour), State: slurm.JobState{Base: slurm.Pending},
			TRESPerNode: "gres/gpu:1",
		}
		if change != nil {
			change(&j)
		}
		return j
	}
}

func TestTheQueueHasJobsModelsAndNodes(t *testing.T) { //nolint:funlen // most of it is a table
	r := newRig(t, nil)
	if status := r.callAs(nil, http.MethodGet, "/v1/queue", "", nil); status !=
		http.StatusServiceUnavailable {
		t.Errorf("before the first sync: status %d", status)
	}
	for id := range slurm.JobID(6) {
		r.run(id+1, memoryBound())
	}
	now := r.clock.read()
	pending := pendingAt(now)

	r.sync(fixedSlurm{
		jobs: []slurm.Job{
			pending(10, nil),
			pending(11, func(j *slurm.Job) { j.Name, j.User, j.UID = "bobs \x1b[2J", "bob", 1001 }),
			pending(12, func(j *slurm.Job) { j.Comment = "epplan:off" }),
			pending(13, func(j *slurm.Job) {
				j.Comment, j.TRESPerNode = "epplan:deadline=+2h", "gres/gpu:v100:1"
			}),
			pending(14, func(j *slurm.Job) { j.TRESPerNode = "" }),
			pending(15, func(j *slurm.Job) { j.TRESPerNode = "gres/shard:1" }),
			pending(16, func(j *slurm.Job) { j.ArrayTasks, j.ArrayJob = "2-5%2", 16 }),
			pending(17, func(j *slurm.Job) { j.Priority, j.Reason = 0, "JobHeldUser" }),
			pending(18, func(j *slurm.Job) {
				j.State.Base, j.Start, j.Allocated = slurm.Running, now.Add(-20*time.Minute),
					slurm.TRES{"gres/gpu": 4}
				j.NodeList = "a[2-3]"
			}),
			pending(19, func(j *slurm.Job) { j.State.Base = slurm.Completed }),
		},
		nodes: []slurm.Node{
			gpuNode("a1", "gpu:v100:4", "IDLE"), within(gpuNode("a2", "gpu:v100:4", "MIXED"), "gpu"),
			gpuNode("a3", "gpu:v100:4", "DOWN"),
			gpuNode("a4", "gpu:v100:4", "IDLE"), within(gpuNode("b1", "gpu:8", "IDLE"), "long", "gpu"),
			gpuNode("c1", "gpu:mystery:2", "IDLE"), gpuNode("d1", "", "IDLE"),
		},
	})
	q := r.queue(&operator)
	byID := make(map[int64]epdapi.QueuedJob)
	for _, j := range q.Jobs {
		byID[j.ID] = j
	}
	if len(q.Jobs) != 8 || byID[14].ID != 0 || byID[19].ID != 0 {
		t.Errorf("%d jobs, want 8: none without GPUs, none that ended: %+v", len(q.Jobs), q.Jobs)
	}
	if w := byID[10].Workload; w == "" || byID[12].Workload != w || byID[11].Workload != "" ||
		!byID[12].HandsOff || byID[10].HandsOff {
		t.Errorf("workloads: %+v", q.Jobs)
	}
	if byID[18].GPUModel != "V100" || math.Abs(byID[18].AgeS.Or(0)-1200) > 60 || byID[10].GPUModel != "" ||
		byID[10].AgeS.Or(99) > 60 {
		t.Errorf("what runs where, and since when: %+v, %+v", byID[18], byID[10])
	}
	if _, ok := byID[10].RuntimeS.Get(); ok || byID[11].RuntimeS.Or(0) <= 0 || byID[11].PowerW.Or(0) <= 0 {
		t.Errorf("predictions, of jobs without a model alone: %+v, %+v", byID[10], byID[11])
	}
	if d, ok := byID[13].DeadlineS.Get(); !ok || d < 7199 || d > 7200 || byID[13].GPUModel != "V100" {
		t.Errorf("deadline: %+v", byID[13])
	}
	if !byID[15].Shared || byID[16].Tasks != 4 || !byID[17].Held || byID[10].Held || byID[18].GPUs != 4 ||
		math.Abs(byID[18].EndsS.Or(0)-2400) > 1 {
		t.Errorf("%+v", q.Jobs)
	}
	if j := byID[16]; j.ArrayJob != 16 || j.ArrayTasks != "2-5%2" || byID[17].Reason != "JobHeldUser" ||
		byID[18].Reason != "" {
		t.Errorf("%+v", q.Jobs)
	}
	want := []epdapi.QueueNode{
		{GPUModel: "V100", GPUs: 4, Count: 2, Partitions: []string{}},
		{GPUModel: "V100", GPUs: 4, Count: 1, Partitions: []string{"gpu"}},
		{GPUModel: "V100", GPUs: 8, Count: 1, Partitions: []string{"gpu", "long"}},
		{GPUModel: "mystery", GPUs: 2, Count: 1, Partitions: []string{}},
	}
	if !reflect.DeepEqual(q.Nodes, want) {
		t.Errorf("nodes %+v, want %+v", q.Nodes, want)
	}
	r.sameModel(q.Models, byID[10].Workload)
	if own := r.queue(&ada); len(own.Jobs) != 7 || strings.Contains(namesOf(own), "bobs") {
		t.Errorf("ada sees %+v", own.Jobs)
	}
	if none := r.queue(&query.Caller{UID: 5}); len(none.Jobs) != 0 || none.Models != "" || len(none.Nodes) != 4 {
		t.Errorf("a stranger sees %+v", none)
	}
}

func namesOf(q *epdapi.Queue) string {
	var b strings.Builder
	for i := range q.Jobs {
		b.WriteString(q.Jobs[i].Name)
	}
	return b.String()
}

// sameModel wants that the models file predicts what the controller does.
func (r *rig) sameModel(text, workload string) {
	r.t.Helper()
	models, err := config.ReadModels(strings.NewReader(text), "queue")
	if err != nil {
		r.t.Fatal(err)
	}
	m, ok := models.Lookup(workload, "V100")
	if !ok || len(models.All()) != 1 {
		r.t.Fatalf("models %+v", models.All())
	}
	profile, err := config.BuiltinProfiles().Lookup("V100")
	if err != nil {
		r.t.Fatal(err)
	}
	response, err := m.Response(profile)
	if err != nil {
		r.t.Fatal(err)
	}
	named := script(1000)
	named.Script = ""
	e := r.Queries.Estimate(r.t.Context(), query.ForEPD(), named, nil, "")
	if got, want := response.Default(), e.Models[0].Default; got.Time != want.TimeS ||
		float64(got.Energy) != want.EnergyJ {
		r.t.Errorf("by the file %v s and %v J, by the controller %v s and %v J", got.Time,
			float64(got.Energy), want.TimeS, want.EnergyJ)
	}
}

// GPUs that no profile describes are planned by the clocks that their agents
// named.
func TestTheQueueDescribesGPUsThatNoProfileDoes(t *testing.T) {
	r := newRig(t, nil)
	for id := range slurm.JobID(4) {
		r.job(id+1, nil)
		request := ask(id + 1)
		request.GPUModel, request.Default = "NVIDIA X9000", dvfsmodel.Setting{Core: 1237, Mem: 877}
		r.record(r.ran(r.decide(request), request.RunID, memoryBound()), store.Stored)
	}
	r.sync(fixedSlurm{
		nodes: []slurm.Node{
			gpuNode("a", "gpu:x9000:8", "IDLE"), gpuNode("b", "gpu:8", "IDLE"),
			gpuNode("c", "gpu:x:1", "IDLE"),
		},
	})
	q := r.queue(nil)
	if len(q.Nodes) != 2 || q.Nodes[0].GPUModel != "NVIDIA X9000" || q.Nodes[0].GPUs != 8 ||
		q.Nodes[0].Count != 2 || q.Nodes[1].GPUModel != "NVIDIA X9000" {
		t.Errorf("nodes %+v", q.Nodes)
	}
	profiles, err := config.ReadProfiles(strings.NewReader(q.Profiles), "queue")
	if err != nil {
		t.Fatalf("%v\n%s", err, q.Profiles)
	}
	p, err := profiles.Lookup("NVIDIA X9000")
	if err != nil || len(p.Pairs()) != 5 || p.Default.Core != 1237 || p.IdleW != 50 {
		t.Errorf("%+v, %v", p, err)
	}
	known := newRig(t, nil)
	known.run(1, memoryBound())
	known.sync(fixedSlurm{})
	if q := known.queue(nil); q.Profiles != "" {
		t.Errorf("V100s are described again: %s", q.Profiles)
	}
}

// says has a job of a node decided, whose agent says what GPUs it has; without clocks: those of an X9000.
func (r *rig) says(job slurm.JobID, node, gpuModel string, clocks []epdapi.ClockGroup) {
	r.t.Helper()
	r.job(job, nil)
	request := ask(job)
	request.Node, request.GPUModel, request.Default = node, gpuModel, dvfsmodel.Setting{Core: 1237, Mem: 877}
	if clocks != nil {
		request.Clocks, request.Default = clocks, dvfsmodel.Setting{}
	}
	if err := request.Validate(); err != nil {
		r.t.Fatal(err)
	}
	_ = r.decide(request)
}

// What one node's agent says of GPU models that others have, too, takes nothing from those: neither how they
// are described, nor which GPUs nodes have.
func TestOneNodesWordChangesNoOtherNodesGPUs(t *testing.T) {
	many := []epdapi.ClockGroup{{Mem: 877}}
	for core := dvfsmodel.MHz(1); core <= 2000; core++ {
		many[0].Core = append(many[0].Core, core)
	}
	slow := []epdapi.ClockGroup{{Mem: 1, Core: []dvfsmodel.MHz{1}}}
	for _, c := range []struct {
		what, says string
		clocks     []epdapi.ClockGroup
	}{
		{"its name in other letters", "nvidia x9000", nil},
		{"one of the same family", "NVIDIA X9000-GOLD", nil},
		{"an unknown one", "made up", nil},
		{"the same one with other clocks", "NVIDIA X9000", slow},
		{"one with very many clocks", "many", many},
		{"one whose name is nothing but a quote", `"`, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := newRig(t, nil)
			const honest = 10
			nodes := make([]slurm.Node, 0, honest+1)
			for i := range slurm.JobID(honest) {
				node, gres := fmt.Sprintf("n%d", i), "gpu:8"
				if i%2 == 0 {
					gres = "gpu:x9000:8"
				}
				nodes = append(nodes, gpuNode(node, gres, "IDLE"))
				if i == honest/2 { // also before most of the others
					r.says(500, "n99", c.says, c.clocks)
				}
				r.says(i+1, node, "NVIDIA X9000", nil)
			}
			r.says(600, "n99", c.says, c.clocks)
			r.sync(fixedSlurm{nodes: append(nodes, gpuNode("n99", "gpu:x9000:8", "IDLE"))})
			r.hasX9000s(honest)
		})
	}
}

// hasX9000s checks that so many nodes at least are known to have X9000s, and with which clocks.
func (r *rig) hasX9000s(least int) {
	r.t.Helper()
	q, count := r.queue(nil), 0
	for _, kind := range q.Nodes {
		if kind.GPUModel == "NVIDIA X9000" {
			count += kind.Count
		}
	}
	if count < least {
		r.t.Errorf("nodes %+v", q.Nodes)
	}
	profiles, err := config.ReadProfiles(strings.NewReader(q.Profiles), "queue")
	if err != nil {
		r.t.Fatal(err)
	}
	if p, err := profiles.Lookup("NVIDIA X9000"); err != nil || len(p.Pairs()) != 5 || p.Default.Core != 1237 {
		r.t.Errorf("%+v, %v", p, err)
	}
	wants := slurm.Job{TRESPerNode: "gres:gpu:x9000:1"}
	if name := r.Foresight.gpuNames(r.settings.Load().Profiles).Wanted(&wants); name != "NVIDIA X9000" {
		r.t.Errorf("a job that wants an x9000 gets %q", name)
	}
}

// planOf returns the plan of the queue by default settings.
func planOf(t *testing.T, r *rig) *live.Plan {
	t.Helper()
	c := config.Default()
	c.Live.Plan.Mode = config.PlanEnforce
	wanted, _ := c.Live.Planning()
	terms := &slurmqueue.PlanTerms{Profiles: config.BuiltinProfiles(), Goal: c.Goal(), Safety: c.Safety}
	p, err := slurmqueue.NewPlan(t.Context(), r.queue(&operator), terms, &wanted, start)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What can't start as it is, and what runs where nothing may start, takes no GPUs of what can.
func TestWhatCannotStartAndNodesThatDrainTakeNoGPUsInPlans(t *testing.T) {
	for what, other := range map[string]func(j *slurm.Job, now time.Time){
		"a job that its partition's limit keeps out": func(j *slurm.Job, now time.Time) {
			j.Submit, j.Reason, j.TRESPerNode = now.Add(-24*time.Hour), "PartitionTimeLimit", "gres/gpu:4"
			j.TimeLimit = live.LimitOf(30 * 24 * time.Hour)
		},
		"a job on a node that drains": func(j *slurm.Job, now time.Time) {
			j.State.Base, j.Start, j.Allocated = slurm.Running, now.Add(-time.Minute), slurm.TRES{"gres/gpu": 4}
			j.NodeList, j.TimeLimit = "a2", live.LimitOf(24*time.Hour)
		},
		"a job on that node and on one that is down": func(j *slurm.Job, now time.Time) {
			j.State.Base, j.Start, j.Allocated = slurm.Running, now.Add(-time.Minute), slurm.TRES{"gres/gpu": 8}
			j.NodeList, j.NodeCount, j.TimeLimit = "a[2-3]", 2, live.LimitOf(24*time.Hour)
		},
	} {
		r := newRig(t, nil)
		now := r.clock.read()
		pending := pendingAt(now)
		r.sync(fixedSlurm{
			jobs: []slurm.Job{
				pending(10, func(j *slurm.Job) { other(j, now) }),
				pending(11, func(j *slurm.Job) { j.TRESPerNode = "gres/gpu:4" }),
			},
			nodes: []slurm.Node{
				within(gpuNode("a1", "gpu:v100:4", "IDLE"), "gpu"),
				within(gpuNode("a2", "gpu:v100:4", "ALLOCATED+DRAIN"), "gpu"),
				within(gpuNode("a3", "gpu:v100:4", "DOWN"), "gpu"),
			},
		})
		p := planOf(t, r)
		if len(p.Jobs) != 1 || p.Jobs[0].Job != 11 || p.Jobs[0].Start.After(start) {
			t.Errorf("%s: %+v", what, p.Jobs)
		}
	}
}

// A job that comes into the queue when it is released is a change, for which a plan is made anew.
func TestAReleasedJobIsAnotherQueue(t *testing.T) {
	r := newRig(t, nil)
	pending := pendingAt(r.clock.read())
	digest := func(priority uint32, reason string) uint64 {
		r.sync(fixedSlurm{jobs: []slurm.Job{
			pending(10, nil), pending(11, func(j *slurm.Job) { j.Priority, j.Reason = priority, reason }),
		}})
		d, _ := r.Foresight.Queue()
		return d
	}
	held, waits, more := digest(0, "JobHeldUser"), digest(900, "Priority"), digest(901, "Resources")
	if held == waits || waits != more {
		t.Errorf("held %d, in the queue %d, first in the queue %d", held, waits, more)
	}
}
