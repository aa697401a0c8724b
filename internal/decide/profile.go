package decide

import (
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// A workload power profile is the administrator's, by partition, and not chosen: all jobs that are compared
// with each other get it, treated or held out, so that what is compared is clocks. A run under it is of a
// workload of its own (record.UnderProfile): its models, savings and comparisons are of runs under the same
// profile. Where the GPUs haven't got it, or whatever leaves the GPUs alone, there is none.

// profileFor returns the power profile of a run; 0: none.
func profileFor(
	s *Settings, r *epdapi.DecideRequest, job *jobs.Job, wishes *slurm.Wishes,
) dvfsmodel.PowerProfile {
	partition := job.Partition.Value()
	p := s.Live.Profile.Of(partition)
	if p == 0 || s.Live.ModeOf(partition) != live.Enforce || r.GPUs == 0 || r.Shared || wishes.Off ||
		job.OwnFreq || len(r.Clocks) == 0 || !r.HasProfile(p) {
		return 0
	}
	return p
}

// expectedProfile returns the power profile of a job that isn't to be left alone, on a GPU model that was
// seen to have some.
func expectedProfile(s *Settings, seen []string, partition string) dvfsmodel.PowerProfile {
	p := s.Live.Profile.Of(partition)
	if p == 0 || s.Live.ModeOf(partition) != live.Enforce || !slices.Contains(seen, p.String()) {
		return 0
	}
	return p
}
