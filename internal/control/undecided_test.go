//go:build cgo

package control

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

func TestARunWhileTheControllerWasAwayIsKnownByItsJob(t *testing.T) {
	slurmctld := &ctld{}
	r := newRig(t, func(o *Options) { o.Resolve = slurmctld.resolve })
	j := r.job(7, nil)
	began := r.clock.read()
	r.clock.move(time.Minute)
	j.State.Base = slurm.Completed
	slurmctld.set(j)
	o := &record.Outcome{
		RunID: "away", JobID: 7, Node: "n1", GPUModel: "Tesla V100-SXM2-16GB", Started: began, Ended: r.clock.read(),
		GPUs: []string{"GPU-a"}, TimeS: record.Known(60), GPUEnergyJ: record.Known(6000), GPUSource: record.Counter,
	}
	r.record(o, store.Stored)
	list, err := r.store.OutcomesOfJob(context.Background(), "alpha", 7)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d outcomes, error %v", len(list), err)
	}
	known := r.decide(ask(8)) // for the names of workload and GPU model
	if got := list[0]; got.GPUModel != known.GPUModel || got.Workload == "" || got.Arm != record.Excluded || got.ExitState != record.Completed {
		t.Errorf("outcome %+v", got)
	}
	about, err := r.store.Job(context.Background(), "alpha", 7)
	if err != nil || about.User != "ada" || about.Workload != list[0].Workload {
		t.Errorf("job %+v, error %v", about, err)
	}
	r.record(o, store.Repeated)
}

func TestAUserHearsOfALimitThatWouldDoOnlyWhereItIsFarTooLong(t *testing.T) {
	r := newRig(t, nil)
	submission := func(partition string, minutes uint32) *slurm.Submission {
		return &slurm.Submission{
			Version: slurm.ProtocolVersion, UID: 1000, Name: "train", Partition: slurm.Hex(partition), TimeLimit: minutes,
			TRESPerNode: "gres:gpu:1", MinNodes: 1, Kind: "batch",
		}
	}
	said := func(s *slurm.Submission) string {
		t.Helper()
		answer, err := r.Submit(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		return string(answer.Message)
	}
	if got := said(submission("gpu", 600)); got != "" {
		t.Errorf("of a workload that isn't known: %q", got)
	}
	for id := range slurm.JobID(fewRuns + 1) {
		if got := said(submission("gpu", 600)); got != "" {
			t.Errorf("after %d runs: %q", id, got)
		}
		r.run(id+1, memoryBound()) // about 10 minutes each
	}
	if got := said(submission("gpu", 600)); !strings.Contains(got, "--time=") {
		t.Errorf("10 hours for 10 minutes: %q", got)
	}
	for name, s := range map[string]*slurm.Submission{
		"a limit that fits": submission("gpu", 20), "no limit": submission("gpu", 0),
	} {
		if got := said(s); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	observing := settings(t, mode("observe"))
	if err := r.Reload(func() (*Settings, error) { return observing, nil }); err != nil {
		t.Fatal(err)
	}
	if got := said(submission("gpu", 600)); got != "" {
		t.Errorf("observing: %q", got)
	}
}
