package decide

import (
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/learn"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// Preview returns what would be decided, by some settings, for a job on a GPU model if it ran
// now and no lot were drawn, and the default clocks there. Nothing of it is kept.
func (dr *Decider) Preview(
	s *Settings, job *jobs.Job, shared bool, gpuModel string, model learn.View, wishes *slurm.Wishes,
	now time.Time,
) (d live.Decision, base dvfsmodel.Setting) {
	request := &epdapi.DecideRequest{
		GPUModel: gpuModel, GPUs: int(job.GPUs), Shared: shared,
		Clocks: dr.clocksOf(s, gpuModel, model.Model),
	}
	seen := dr.GPUs.limit(gpuModel)
	request.PowerLimit, request.CoreFixed = seen.limit, seen.coreFixed
	profile := expectedProfile(s, seen.profiles, job.Partition.Value())
	d = live.Decision{
		GPUModel: gpuModel, Workload: record.UnderProfile(job.Source.Workload(int(job.GPUs)), profile),
		Mode: s.Live.ModeOf(job.Partition.Value()), Arm: live.ArmExcluded,
		Wish: live.Wish{Deadline: wishes.Deadline}, Created: now,
	}
	ch := chooser{
		settings: s, model: model, request: request, job: job, now: now, decision: &d,
	}
	ch.table, _ = dr.tableOn(s, request, job.Partition.Value())
	ch.choose(wishes)
	ch.table.nameSiteClocks(&d)
	d.Profile = profile
	return d, ch.table.Base
}

// WorkloadIn returns the key under which runs of a workload on a GPU model are known that start in a
// partition, by the settings in force and by what agents last said of the model.
func WorkloadIn(dr *Decider, workload, partition, gpuModel string) string {
	seen := dr.GPUs.limit(gpuModel).profiles
	return record.UnderProfile(workload, expectedProfile(dr.options.Settings(), seen, partition))
}

// clocksOf returns the clocks of a GPU model: those that an agent named since the
// start, else those of its profile, else the default ones alone.
func (dr *Decider) clocksOf(s *Settings, name string, m *learn.Model) []epdapi.ClockGroup {
	seen := dr.GPUs.Clocks(name)
	var pairs []dvfsmodel.Setting
	if seen != nil {
		pairs = seen.Pairs
	} else if p := s.Profiles.Find(name); p != nil {
		pairs = p.Pairs()
	}
	if len(pairs) == 0 && m != nil {
		pairs = []dvfsmodel.Setting{m.Base}
	}
	return epdapi.GroupClocks(pairs)
}
