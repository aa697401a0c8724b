package livetest_test

import (
	"slices"
	"testing"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
)

// onlyIn has jobs start in one partition only, until what it returns is called.
func (l *lab) onlyIn(one string, all ...string) (back func()) {
	l.Helper()
	set := func(partition, state string) {
		l.slurm("scontrol", "update", "partitionname="+partition, "state="+state)
	}
	others := slices.DeleteFunc(all, func(p string) bool { return p == one })
	for _, partition := range others {
		set(partition, "down")
	}
	return func() {
		for _, partition := range others {
			set(partition, "up")
		}
	}
}

// A job that names several partitions is treated as the one in which Slurm starts
// it says, whatever the others do, and is recorded there.
func TestAJobOfSeveralPartitionsIsTreatedAsTheOneWhereItStarts(t *testing.T) {
	l := newLab(t, setup{
		config: enforce + "modes = {obs = \"observe\", adv = \"advise\"}\n",
		conf: []string{
			"PartitionName=obs Nodes=ALL MaxTime=60 State=UP",
			"PartitionName=adv Nodes=ALL MaxTime=60 State=UP",
		},
	})
	for _, tc := range []inPartition{
		{"obs,main", "obs", "observe", 0},
		{"adv,main", "adv", "advise", 0},
		{"obs,main", "main", "enforce", 1},
	} {
		t.Run(tc.starts, func(t *testing.T) {
			l := l.on(t)
			for i := 0; !l.playPartition(&tc); i++ {
				if i == tries {
					t.Fatal("nothing is decided in time")
				}
			}
		})
	}
}

// inPartition is a job of several partitions, and what becomes of it.
type inPartition struct {
	asked, starts, mode string
	locked              int
}

// playPartition plays a job of several partitions; false: nothing can be told, as the
// machine was too busy for a decision in time.
func (l *lab) playPartition(tc *inPartition) (told bool) {
	l.Helper()
	running := l.submit("sleep 600", "--gres=gpu:4", "-w", "n1")
	l.eventually("n1 is full", func() bool { return l.state(running) == "RUNNING" })
	job := l.submit("sleep 2", "--gres=gpu:1", "-w", "n1", "-p", tc.asked, fixed)
	l.eventually("epd knows of the job that waits", func() bool {
		queue, err := epdapi.New(l.socket("n1")).Queue(l.Context())
		return err == nil && slices.ContainsFunc(queue.Jobs, func(j epdapi.QueuedJob) bool {
			return j.ID == job && j.Partition == tc.asked
		})
	})
	defer l.onlyIn(tc.starts, "main", "obs", "adv")()
	late := false
	l.held(func() {
		l.slurm("scancel", name(running))
		l.decided(job)
		if late = l.late(job); late {
			return
		}
		if got := l.slurm("squeue", "-h", "-o", "%P", "-j", name(job)); got != tc.starts {
			l.Errorf("Slurm started it in %s, want %s", got, tc.starts)
		}
		if got := l.hardware("n1"); len(got) != tc.locked {
			l.Errorf("%d GPUs are locked, want %d", len(got), tc.locked)
		}
	}, "n1")
	l.ends(job, "COMPLETED")
	l.recordedBy("n1", 0)
	if late {
		return false
	}
	if all := l.decisions(job); len(all) != 1 || all[0].Mode != tc.mode {
		l.Errorf("decisions %+v, want one of mode %s", all, tc.mode)
	}
	about, err := l.records("n1").Jobs(l.Context(), &store.JobFilter{Cluster: "cluster", ID: job}, 0, 1)
	if err != nil || len(about.Jobs) != 1 || about.Jobs[0].Partition != tc.starts {
		l.Errorf("recorded as %+v (%v), want it in partition %s", about.Jobs, err, tc.starts)
	}
	return true
}
