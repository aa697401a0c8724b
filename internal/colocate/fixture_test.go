package colocate_test

import (
	"math"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/planner/sharing"
	"github.com/epplan/epplan/slurm"
)

var start = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

var rules = colocate.Rules{Runs: 3, Spread: 0.25, Slowdown: 1.2}

// recorded returns the profile of a run of so many seconds whose utilisation is what
// a function says of each second.
func recorded(seconds int, memGB float64, use func(second int) float64) *record.Profile {
	s := record.NewProfileSampler(time.Second)
	for i := range seconds {
		s.Add(time.Duration(i)*time.Second, time.Duration(i+1)*time.Second, use(i))
	}
	return &record.Profile{Alone: true, GPUs: []record.GPUProfile{{
		Utilisation: s.Series(), PeakMem: int64(memGB * (1 << 30)), MemTotal: 16 << 30,
	}}}
}

// square is high in one half of a run of 64 s.
func square(first bool) func(int) float64 {
	return func(second int) float64 {
		if (second/32%2 == 0) == first {
			return 0.9
		}
		return 0.05
	}
}

// learnt returns the profile of a workload of which three runs did the same.
func learnt(memGB float64, use func(int) float64) *colocate.UseProfile {
	runs := make([]colocate.SoloRun, 0, 3)
	for range 3 {
		runs = append(runs, colocate.SoloRun{TimeS: 64, Slowdown: 1, Profile: recorded(64, memGB, use)})
	}
	return colocate.Learn(runs, &rules)
}

// cluster is two nodes with one GPU each, which is four shares.
type cluster struct {
	colocate.ClusterState
	colocate.Options
	profiles map[string]*colocate.UseProfile // by the name of the job
}

func newCluster(nodes ...string) *cluster {
	c := &cluster{profiles: map[string]*colocate.UseProfile{
		"high first": learnt(2, square(true)), "low first": learnt(2, square(false)),
	}}
	c.At = start
	for _, name := range nodes {
		c.Nodes = append(c.Nodes, slurm.Node{
			Name: name, State: slurm.NodeState{Base: "MIXED"}, Weight: 1, Partitions: []string{"gpu"},
			Gres: []slurm.Gres{
				{Name: "gpu", Type: "v100", Count: 1}, {Name: "shard", Type: "v100", Count: 4},
			},
		})
	}
	levels := []dvfsmodel.MHz{}
	for mhz := dvfsmodel.MHz(135); mhz <= 1350; mhz += 45 {
		levels = append(levels, mhz)
	}
	physics := sharing.Physics{BaseW: 23.3, WPerMHz: 0.09, Beta: 0.91, LevelsMHz: levels}
	c.Options = colocate.Options{
		Rules: rules,
		Profile: func(j *slurm.Job, _ string) (*colocate.UseProfile, float64) {
			return c.profiles[j.Name], 1
		},
		Model: func(n *slurm.Node) string { return n.Gres[0].Type },
		GPU:   func(string) colocate.GPU { return colocate.GPU{Physics: physics, IdleW: 23.3} },
	}
	return c
}

// runs puts a job on a node since so many seconds.
func (c *cluster) runs(id slurm.JobID, name, node string, since int) *slurm.Job {
	c.Jobs = append(c.Jobs, slurm.Job{
		ID: id, Name: name, Partition: "gpu", State: slurm.JobState{Base: slurm.Running},
		Nodes: []string{node}, NodeCount: 1,
		Start: start.Add(-time.Duration(since) * time.Second), TRESPerNode: "gres:shard:1",
		Gres: []slurm.NodeGres{{Node: node, Gres: []slurm.Gres{{Name: "shard", Count: 1, Index: []int{0}}}}},
	})
	return &c.Jobs[len(c.Jobs)-1]
}

// order returns the order for a pending job of a workload.
func (c *cluster) order(name string) colocate.Order {
	return colocate.RankNodes(&c.ClusterState, &slurm.Job{
		ID: 99, Name: name, Partition: "gpu", State: slurm.JobState{Base: slurm.Pending},
		TRESPerNode: "gres:shard:1",
	}, &c.Options)
}

func near(tb testing.TB, what string, got, want, by float64) {
	tb.Helper()
	if !(math.Abs(got-want) <= by) {
		tb.Errorf("%s is %v, want %v", what, got, want)
	}
}
