package control

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// TestWhoWaitsForANodesGPUsIsCounted: jobs that could start there but for GPUs, and no others.
func TestWhoWaitsForANodesGPUsIsCounted(t *testing.T) {
	r := newRig(t, nil)
	node := func(name, gres string, partitions ...string) slurm.Node {
		list, err := slurm.ParseGres(gres)
		if err != nil {
			t.Fatal(err)
		}
		return slurm.Node{Name: name, Partitions: partitions, Gres: list, State: slurm.NodeState{Base: "IDLE"}}
	}
	if err := takeNodes(t.Context(), r.Controller, nodesAlone{
		node("n1", "gpu:v100:4", "gpu", "debug"), node("n2", "gpu:t4:4", "gpu"), node("n3", "gpu:t4:4", "other"),
	}); err != nil {
		t.Fatal(err)
	}
	waits := func(id slurm.JobID, gpus float64, change func(*slurm.Job)) {
		r.job(id, func(j *slurm.Job) {
			j.State.Base, j.Allocated = slurm.Pending, nil
			j.Requested, j.Reason = slurm.TRES{"gres/gpu": gpus}, "Resources"
			if change != nil {
				change(j)
			}
		})
	}
	waits(1, 2, nil)
	waits(2, 8, func(j *slurm.Job) { j.TRESPerNode = "gres/gpu:v100:8" })
	waits(3, 16, func(j *slurm.Job) { j.Reason = "JobHeldUser" })
	waits(4, 32, func(j *slurm.Job) { j.Reason = "QOSMaxGRESPerUser" })
	waits(5, 64, func(j *slurm.Job) { j.Partition = "debug,other" })
	r.job(6, nil) // it runs
	r.waiting.last.Store(r.findWaiting())
	// Each partition's nodes have 8 GPUs, and each model's in one of them 4.
	for node, want := range map[string]float64{"n1": 2./8 + 8./4 + 64./8, "n2": 2. / 8, "n3": 64. / 8, "n9": 0} {
		if got := r.waiting.Backlog(99, node); got != want {
			t.Errorf("%v GPUs are waited for by GPU on %s, want %v", got, node, want)
		}
	}
	if got := r.waiting.Backlog(2, "n1"); got != 2./8+64./8 { // the queue still lists it as it starts
		t.Errorf("beside job 2 %v GPUs are waited for by GPU, want %v", got, 2./8+64./8)
	}
	if got := r.waiting.Backlog(2, "n2"); got != 2./8 {
		t.Errorf("job 2 can't have n2: %v, want %v", got, 2./8)
	}
}

// TestWaitersSpeedAJobUpWhereWaitingHasAPrice asks the controller itself.
func TestWaitersSpeedAJobUpWhereWaitingHasAPrice(t *testing.T) {
	decided := func(weight string, waiters bool) string {
		r := taught(t)
		r.under(enforceAll + "explore = 0\n[objective]\nwait_weight = " + weight + "\n")
		gres, err := slurm.ParseGres("gpu:v100:4")
		if err != nil {
			t.Fatal(err)
		}
		if err := takeNodes(t.Context(), r.Controller, nodesAlone{
			{Name: "n1", Partitions: []string{"gpu"}, Gres: gres, State: slurm.NodeState{Base: "IDLE"}},
		}); err != nil {
			t.Fatal(err)
		}
		if waiters {
			r.job(90, func(j *slurm.Job) {
				j.State.Base, j.Allocated, j.Reason = slurm.Pending, nil, "Priority"
				j.Requested = slurm.TRES{"gres/gpu": 4}
			})
		}
		r.waiting.last.Store(r.findWaiting())
		r.job(100, nil)
		d := r.decide(ask(100))
		_, why, _ := strings.Cut(d.Reason, ", while ")
		return d.Words() + why
	}
	free, alone, waited := decided("0", true), decided("1000", false), decided("1000", true)
	const fast = "core 1087 MHzothers wait for 100% of the GPUs there"
	if free != "core 802 MHz" || alone != free || waited != fast {
		t.Errorf("%q where waiting is free, %q where nobody waits, %q where others do", free, alone, waited)
	}
}

// TestANewcomersNiceIsSaidTogetherWithTheWordForIt: of jobs that may be put behind others.
func TestANewcomersNiceIsSaidTogetherWithTheWordForIt(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.NiceAtSubmit = func(partition string, _ uint32, deadline bool) int64 {
			switch {
			case deadline:
				return 7
			case partition == "" || partition == "gpu":
				return 12
			}
			return 0
		}
	})
	for what, c := range map[string]struct {
		change func(*hooks.Submission)
		want   int64
	}{
		"a partition":           {func(*hooks.Submission) {}, 12},
		"the default partition": {func(s *hooks.Submission) { s.Partition = "" }, 12},
		"another partition":     {func(s *hooks.Submission) { s.Partition = "cpu" }, 0},
		"two partitions":        {func(s *hooks.Submission) { s.Partition = "gpu,cpu" }, 0},
		"a nice of its user's":  {func(s *hooks.Submission) { s.OwnNice = true }, 0},
		"a long list of tasks": {func(s *hooks.Submission) {
			s.Array = hooks.Hex(strings.Repeat("1,3,", 300))
		}, 0},
		"held":            {func(s *hooks.Submission) { s.Held = true }, 0},
		"later":           {func(s *hooks.Submission) { s.BeginTime = 1e9 }, 0},
		"no GPU":          {func(s *hooks.Submission) { s.TRESPerNode = "" }, 0},
		"opted out":       {func(s *hooks.Submission) { s.Comment = "epplan:off" }, 0},
		"a deadline":      {func(s *hooks.Submission) { s.Comment = "epplan:deadline=+5h" }, 7},
		"another's words": {func(s *hooks.Submission) { s.Admin = hooks.Hex(strings.Repeat("x", 2000)) }, 0},
	} {
		s := hooks.Submission{
			Version: 1, Kind: "batch", UID: 1000, Name: "train", Partition: "gpu", TRESPerNode: "gres/gpu:1",
		}
		c.change(&s)
		answer, err := r.Submit(t.Context(), &s)
		job := slurm.Job{AdminComment: string(answer.AdminComment)}
		if err != nil || answer.Nice != c.want || job.NiceAtSubmit() != c.want {
			t.Errorf("%s: %+v, %v, want a nice of %d", what, answer, err, c.want)
		}
	}
}

// whoWaitsOneByOne is findWaiting by a look at each job as Slurm has it: how many GPUs are waited for by
// GPU of each node, beside a job, 0: none.
func whoWaitsOneByOne(c *Controller, beside slurm.JobID) map[string]float64 {
	names := c.Foresight.gpuNames(c.settings.Load().Profiles)
	w := c.findWaiting()
	by := planner.NewBacklog(w.byPlace.GPUs)
	for id, job := range c.Jobs.All() {
		j := job.Slurm(id)
		if id == beside || job.GPUs == 0 || job.State() != slurm.Pending || j.WaitKind() != slurm.WaitTurn {
			continue
		}
		one := waitJob{
			partitions: strings.Split(j.Partition, ","), gpuModel: names.Wanted(&j),
		}
		by.Add(float64(job.Tasks()), func(place int) float64 {
			if !one.mayHave(&w.places[place]) {
				return 0
			}
			return float64(job.GPUs)
		})
	}
	backlog := make(map[string]float64)
	for node, place := range w.placeOf {
		backlog[node] = by.By[place]
	}
	return backlog
}

// manyWaiters have so many jobs wait for the GPUs of so many nodes.
func manyWaiters(tb testing.TB, jobs, nodes int) *rig {
	tb.Helper()
	r := newRig(tb, nil)
	lot := rand.New(rand.NewPCG(3, 4))
	pick := func(from ...string) string { return from[lot.IntN(len(from))] }
	list := make(nodesAlone, nodes)
	for i := range list {
		gres, err := slurm.ParseGres(pick("gpu:v100:4", "gpu:t4:4", "gpu:8"))
		if err != nil {
			tb.Fatal(err)
		}
		list[i] = slurm.Node{
			Name: fmt.Sprintf("n%d", i), Partitions: strings.Split(pick("gpu", "gpu,debug", "other"), ","), Gres: gres,
			State: slurm.NodeState{Base: "IDLE"},
		}
	}
	if err := takeNodes(tb.Context(), r.Controller, list); err != nil {
		tb.Fatal(err)
	}
	waiters := make([]slurm.Job, jobs)
	for i := range waiters {
		gpus := 1 << lot.IntN(4)
		waiters[i] = slurm.Job{
			ID: slurm.JobID(i + 1), Name: fmt.Sprintf("job-%d", i), User: fmt.Sprintf("user%d", i%100),
			UID: uint32(i % 100), Partition: pick("gpu", "gpu,debug", "debug,other", "other", "nowhere"),
			Submit: r.clock.read(), NodeCount: 1,
			State:  slurm.JobState{Base: slurm.State(pick("PENDING", "PENDING", "PENDING", "RUNNING"))},
			Reason: pick("Priority", "Resources", "JobHeldUser", "Dependency", "QOSMaxGRESPerUser"), ArrayTask: -1,
			TRESPerNode: fmt.Sprintf(pick("gres/gpu:%d", "gres/gpu:v100:%d", "gres/gpu:t4:%d"), gpus),
			TimeLimit:   live.LimitOf(time.Hour), Requested: slurm.TRES{"gres/gpu": float64(gpus)},
		}
		if i%10 == 0 {
			waiters[i].ArrayJob, waiters[i].ArrayTasks = waiters[i].ID, "0-9"
		}
	}
	r.Jobs.Observe(waiters)
	return r
}

func TestWhoWaitsIsWhatALookAtEachJobFinds(t *testing.T) {
	r := manyWaiters(t, 500, 30)
	r.waiting.last.Store(r.findWaiting())
	for _, beside := range []slurm.JobID{9999, 1, 2, 3, 11, 77} {
		for node, want := range whoWaitsOneByOne(r.Controller, beside) {
			if got := r.waiting.Backlog(beside, node); math.Abs(got-want) > 1e-9*(1+want) {
				t.Errorf("beside job %d %v GPUs are waited for by GPU on %s, want %v", beside, got, node, want)
			}
		}
	}
}

func BenchmarkWhoWaits(b *testing.B) {
	for _, jobs := range []int{1000, 10_000, knownJobs} {
		b.Run(fmt.Sprintf("%d jobs", jobs), func(b *testing.B) {
			r := manyWaiters(b, jobs, 1000)
			b.Run("by kind", func(b *testing.B) {
				for b.Loop() {
					r.findWaiting()
				}
			})
			b.Run("one by one", func(b *testing.B) {
				for b.Loop() {
					whoWaitsOneByOne(r.Controller, 0)
				}
			})
		})
	}
}
