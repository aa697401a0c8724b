package control

import (
	"context"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

func TestARunWhoseJobWasSuspendedIsShownAndCountsNowhere(t *testing.T) {
	for name, c := range map[string]struct {
		at   time.Duration // from the run's start
		want bool
	}{"never": {}, "in the run": {time.Minute, true}, "in a run before": {-time.Hour, false}} {
		t.Run(name, func(t *testing.T) {
			r, s := newSlurmRig(t, false)
			_, o := r.begin(s, 7)
			o.NodeEnergyJ, o.NodeSource = live.Known(o.GPUEnergyJ.Or(0)+1000), record.RAPL
			s.change(7, func(j *slurm.Job) {
				if j.State.Base = slurm.Completed; c.at != 0 {
					j.Suspended = o.Started.Add(c.at)
				}
			})
			r.record(o, store.Stored)
			all, err := r.store.OutcomesOfJob(context.Background(), "alpha", 7)
			if err != nil || len(all) != 1 || all[0].ExitState != record.Completed {
				t.Fatalf("%+v, %v", all, err)
			}
			got := &all[0]
			_, timed := got.TimeS.Get()
			_, gpus := got.GPUEnergyJ.Get()
			_, node := got.NodeEnergyJ.Get()
			if timed == c.want || gpus == c.want || node == c.want {
				t.Errorf("time %v, energy %v and %v: want them set aside: %v", got.TimeS, got.GPUEnergyJ,
					got.NodeEnergyJ, c.want)
			}
			want := record.Restarted{}
			if c.want {
				want = record.Restarted{
					TimeS: o.TimeS, GPUEnergyJ: o.GPUEnergyJ, NodeEnergyJ: o.NodeEnergyJ, Suspended: true,
				}
			}
			if got.Restarted != want {
				t.Errorf("set aside %+v, want %+v", got.Restarted, want)
			}
			// Delivered again after Slurm forgot the job it is the same outcome.
			s.purge(7)
			r.clock.move(time.Hour)
			r.record(o, store.Repeated)
		})
	}
}

// Its agent wasn't told when the job ended: it is an old one, or nobody answered then.
func TestARunThatGoesOnBeyondItsJobIsShownAndCountsNowhere(t *testing.T) {
	for name, c := range map[string]struct {
		late      time.Duration
		state     slurm.State
		forgotten bool // by slurmctld, not by accounting
		want      bool
	}{
		"as fine as clocks agree":   {late: 2900 * time.Millisecond, state: slurm.Completed},
		"a slow Epilog before ours": {late: 7 * time.Second, state: slurm.Completed, want: true},
		"accounting says so": {
			late: 7 * time.Second, state: slurm.Completed, forgotten: true, want: true,
		},
		"accounting says it was fine": {late: time.Second, state: slurm.Completed, forgotten: true},
		"a job that was killed":       {late: 30 * time.Second, state: slurm.Timeout},
		"a node whose clock is late":  {late: -time.Minute, state: slurm.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := newSlurmRig(t, true)
			j, o := r.begin(s, 7)
			ended := o.Ended.Add(-c.late)
			s.change(7, func(j *slurm.Job) { j.State.Base, j.End = c.state, ended })
			s.rows = []slurm.AccountingRecord{{
				ID: 7, State: slurm.JobState{Base: c.state}, Submit: j.Submit, Start: j.Start, End: ended,
			}}
			if c.forgotten {
				s.purge(7)
			}
			r.record(o, store.Stored)
			all, err := r.store.OutcomesOfJob(context.Background(), "alpha", 7)
			if err != nil || len(all) != 1 {
				t.Fatalf("%+v, %v", all, err)
			}
			want := record.Restarted{}
			if c.want {
				want = record.Restarted{
					TimeS: o.TimeS, GPUEnergyJ: o.GPUEnergyJ, NodeEnergyJ: o.NodeEnergyJ, Late: true,
				}
			}
			if _, timed := all[0].TimeS.Get(); timed == c.want || all[0].Restarted != want {
				t.Errorf("time %v, set aside %+v, want %+v", all[0].TimeS, all[0].Restarted, want)
			}
			s.purge(7)
			r.clock.move(time.Hour)
			r.record(o, store.Repeated)
		})
	}
}
