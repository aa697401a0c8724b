//go:build cgo

package control

import (
	"context"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
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
			o.NodeEnergyJ, o.NodeSource = record.Known(o.GPUEnergyJ.Or(0)+1000), record.RAPL
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
				t.Errorf("time %v, energy %v and %v: want them set aside: %v", got.TimeS, got.GPUEnergyJ, got.NodeEnergyJ, c.want)
			}
			want := record.Restarted{}
			if c.want {
				want = record.Restarted{TimeS: o.TimeS, GPUEnergyJ: o.GPUEnergyJ, NodeEnergyJ: o.NodeEnergyJ, Suspended: true}
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
