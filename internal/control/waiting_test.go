package control

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/slurm"
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
	r.waiting.last.Store(r.whoWaits())
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
		r.waiting.last.Store(r.whoWaits())
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
		change func(*slurm.Submission)
		want   int64
	}{
		"a partition":           {func(*slurm.Submission) {}, 12},
		"the default partition": {func(s *slurm.Submission) { s.Partition = "" }, 12},
		"another partition":     {func(s *slurm.Submission) { s.Partition = "cpu" }, 0},
		"two partitions":        {func(s *slurm.Submission) { s.Partition = "gpu,cpu" }, 0},
		"held":                  {func(s *slurm.Submission) { s.Held = true }, 0},
		"later":                 {func(s *slurm.Submission) { s.BeginTime = 1e9 }, 0},
		"no GPU":                {func(s *slurm.Submission) { s.TRESPerNode = "" }, 0},
		"opted out":             {func(s *slurm.Submission) { s.Comment = "epplan:off" }, 0},
		"a deadline":            {func(s *slurm.Submission) { s.Comment = "epplan:deadline=+5h" }, 7},
		"another's words":       {func(s *slurm.Submission) { s.Admin = slurm.Hex(strings.Repeat("x", 2000)) }, 0},
	} {
		s := slurm.Submission{
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
