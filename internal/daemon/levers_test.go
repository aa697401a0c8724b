package daemon

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/internal/testkit/spooltest"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// noLevers can't move anything.
type noLevers struct{ steer.Levers }

func TestUsersSeeWhatConcernsTheirOwnJobsOfTheLevers(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	rules := config.Default().Live
	rules.Mode, rules.Reorder = live.Advise, config.ReorderAll
	set := &steer.Settings{Live: rules, Profiles: config.BuiltinProfiles(), Ranking: &steer.Ranking{
		Policy: "value", Until: now.Add(time.Hour), Place: map[slurm.JobID]int{3: 0, 2: 1, 1: 2}, Without: 1,
	}}
	s, err := steer.Open(&steer.Options{
		Source: func(context.Context) (*steer.Snapshot, error) {
			snap := &steer.Snapshot{At: now}
			for id := range slurm.JobID(3) {
				snap.Jobs = append(snap.Jobs, slurm.Job{
					ID: id + 1, UID: 10 + uint32(id), Partition: "gpu", ArrayTask: -1, Priority: 1000,
					Eligible: now,
					State:    slurm.JobState{Base: slurm.Pending}, Reason: "Priority",
				})
			}
			return snap, nil
		},
		Levers: noLevers{}, Settings: func() *steer.Settings { return set }, Dir: "levers",
		Disk:  spooltest.New(),
		Clock: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	d := ControllerServer{Steerer: s}
	for _, c := range []struct {
		who   query.Caller
		order []slurm.JobID
		jobs  []slurm.JobID // with advice
		notes int
	}{
		{query.Caller{UID: 0, Admin: true}, []slurm.JobID{3, 2, 1}, []slurm.JobID{2, 1}, 1},
		{query.Caller{UID: 99, Operator: true}, []slurm.JobID{3, 2, 1}, []slurm.JobID{2, 1}, 1},
		{query.Caller{UID: 10}, nil, []slurm.JobID{1}, 0},
		{query.Caller{UID: 99}, nil, nil, 0},
	} {
		got, err := d.Levers(t.Context(), c.who)
		if err != nil {
			t.Fatal(err)
		}
		jobs := make([]slurm.JobID, 0, len(got.Advice))
		for _, a := range got.Advice {
			jobs = append(jobs, a.Job)
		}
		if !slices.Equal(got.Order, c.order) || !slices.Equal(jobs, c.jobs) || len(got.Notes) != c.notes ||
			got.Policy != "value" {
			t.Errorf("%+v sees %+v", c.who, got.Status)
		}
	}
}
