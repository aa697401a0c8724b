package livetest_test

import (
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store/record"
)

// No hook runs when Slurm suspends a job: only Slurm's record of it tells.
func TestARunWhoseJobSlurmSuspendedKeepsItsClocksAndTeachesNothing(t *testing.T) {
	l := startLab(t, enforce)
	job := l.lock("n1", 1)
	l.eventually("the job is at work", func() bool { return l.began(job) })
	l.slurm("scontrol", "suspend", name(job))
	l.eventually("the job is suspended", func() bool { return l.state(job) == "SUSPENDED" })
	if got := l.locked("n1"); len(got) != 1 {
		t.Errorf("locked %v while the job is suspended, want its GPU", got)
	}
	l.slurm("scontrol", "resume", name(job))
	<-time.After(3 * time.Second) // of work
	l.completes(job)
	l.recordedBy("n1", 1)
	l.free("n1")
	l.undrained()
	list := l.outcomes("n1", job)
	if len(list) != 1 || list[0].ExitState != record.Completed {
		t.Fatalf("outcomes %+v", list)
	}
	o := &list[0]
	if seconds, known := o.TimeS.Get(); known || !o.Restarted.Suspended || !(o.Restarted.TimeS.Or(0) > 2) ||
		!(o.Restarted.GPUEnergyJ.Or(0) > 0) {
		t.Errorf("time %v, set aside %+v: want time and energy set aside", seconds, o.Restarted)
	}
}
