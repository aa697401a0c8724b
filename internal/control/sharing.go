package control

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/planner/sharing"
	"github.com/epplan/epplan/slurm"
)

// SharedNodes returns the order of the nodes on whose shared GPUs a pending job fits
// best, by the recorded profiles of its workload and of those that run there, and
// by what agents reported of those GPUs lately.
// While the records can't be read there is none, and only the first question
// waits for them.
func (f *Foresight) SharedNodes(
	ctx context.Context, cluster *colocate.ClusterState, j *slurm.Job,
) colocate.Order {
	s := f.settings()
	names, now := f.gpuNames(s.Profiles), f.options.Clock()
	var failed error
	order := colocate.RankNodes(cluster, j, &colocate.Options{
		Rules: s.sharing(), Speed: f.options.Speed,
		Profile: func(j *slurm.Job, gpuModel string) (p *colocate.UseProfile, rate float64) {
			if failed == nil {
				p, rate, failed = f.sharedUse(ctx, j, gpuModel)
			}
			return p, rate
		},
		Model: func(n *slurm.Node) string {
			return cmp.Or(names.OfNode(n.Name), names.NodeKind(n).GPUModel)
		},
		GPU: s.sharedGPU,
		RecentSamples: func(node string, jobs []slurm.JobID) []colocate.UseSample {
			return f.reports.RecentSamples(node, jobs, now)
		},
	})
	if failed != nil {
		order.Note, order.Nodes = slurm.Printable(failed.Error(), maxMessage), []colocate.Node{}
	}
	return order
}

// sharing returns the rules in force.
func (s *Settings) sharing() colocate.Rules {
	l := &s.Live.Sharing
	return colocate.Rules{Runs: l.Runs, Spread: l.Spread, Slowdown: l.Slowdown}
}

// profileOf returns what a workload does by itself on a GPU model, from its last runs
// that had their GPUs alone. The error says that the records can't be read.
func (f *Foresight) profileOf(ctx context.Context, key record.WorkloadKey) (*colocate.UseProfile, error) {
	return store.WaitAtMost(ctx, f.options.StoreWait, func(ctx context.Context) (*colocate.UseProfile, error) {
		return f.learner.Profile(ctx, key)
	})
}

// sharedUse returns the profile of a job's workload, nil if nothing is known of it,
// and how fast it goes at its clocks. The error says that the records can't be
// read.
func (f *Foresight) sharedUse(
	ctx context.Context, j *slurm.Job, gpuModel string,
) (p *colocate.UseProfile, rate float64, err error) {
	job := f.jobs.Get(j.ID)
	if job == nil || gpuModel == "" {
		return nil, 0, nil
	}
	job, err = f.jobs.WithSubmission(ctx, job)
	if err != nil || job.Source == (jobs.Source{}) {
		return nil, 0, err
	}
	key := record.WorkloadKey{
		Cluster: f.options.Cluster, Workload: job.Source.Workload(1), GPUModel: gpuModel,
	}
	p, err = f.profileOf(ctx, key)
	switch {
	case errors.Is(err, record.ErrProfile): // this one's alone
		return nil, 0, nil
	case err != nil || p.Runs == 0:
		return nil, 0, err
	}
	rate = 1.0
	for _, node := range j.Nodes {
		if d := f.decider.Kept(j.ID, node); d != nil && d.Apply {
			rate = 1 / f.learner.Slowdown(key, d.Setting)
		}
	}
	return p, rate, nil
}

// What a GPU draws whose profile doesn't tell, and how a task's time grows at
// lower clocks: CATS eq. 3 and 5, a V100.
const (
	paperBaseW, paperWPerMHz, paperBeta = 23.3, 0.09, 0.91
	paperMaxMHz, paperStepMHz           = 1350, 45
	paperMinMHz                         = 135
)

// sharedGPU returns what shared GPUs of a model draw: from idle_w to busy_w of its
// profile, in proportion to the core clock. What it costs to share one is the same
// for all models.
func (s *Settings) sharedGPU(gpuModel string) colocate.GPU {
	p, err := s.Profiles.Lookup(gpuModel)
	var levels []dvfsmodel.MHz
	if err == nil {
		for _, pair := range p.Pairs() {
			if pair.Mem == p.Default.Mem && pair.Core <= p.Default.Core {
				levels = append(levels, pair.Core)
			}
		}
	}
	if len(levels) == 0 || p.BusyW <= p.IdleW {
		for mhz := paperMinMHz; mhz <= paperMaxMHz; mhz += paperStepMHz {
			levels = append(levels, dvfsmodel.MHz(mhz))
		}
		return colocate.GPU{
			Physics: sharing.Physics{
				BaseW: paperBaseW, WPerMHz: paperWPerMHz, Beta: paperBeta, LevelsMHz: levels,
				StepMHz: paperStepMHz,
			},
			IdleW: paperBaseW, Curve: s.curve,
		}
	}
	slices.Sort(levels)
	levels = slices.Compact(levels)
	top := levels[len(levels)-1]
	return colocate.GPU{
		Physics: sharing.Physics{
			BaseW: float64(p.IdleW), WPerMHz: float64(p.BusyW-p.IdleW) / float64(top), Beta: paperBeta,
			LevelsMHz: levels,
		},
		IdleW: float64(p.IdleW), Curve: s.curve,
	}
}
