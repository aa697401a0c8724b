package slurm_test

import (
	"testing"

	"github.com/epplan/epplan/slurm"
)

func TestAReasonSaysForWhatAPendingJobWaits(t *testing.T) {
	for wait, reasons := range map[slurm.WaitKind][]string{
		slurm.WaitTurn:  {"", "None", "Priority", "Resources", "SchedDefer"},
		slurm.WaitHeld:  {"JobHeldUser", "JobHeldAdmin", "JobHoldMaxRequeue", "launch failed requeued held"},
		slurm.WaitLater: {"BeginTime", "Dependency", "DependencyNeverSatisfied"},
		slurm.WaitNever: {"BadConstraints", "PartitionTimeLimit", "PartitionNodeLimit"},
		slurm.WaitElse: {
			"QOSMaxGRESPerUser", "QOSGrpNodeLimit", "AssocGrpGRES", "AssocMaxJobsLimit", "MaxGRESPerAccount",
			"Licenses", "Reservation",
			"ReqNodeNotAvail", "ReqNodeNotAvail, UnavailableNodes:n1", "PartitionDown", "JobArrayTaskLimit",
			"priority", "of a later Slurm \x1b[2J",
		},
	} {
		for _, reason := range reasons {
			if got := (&slurm.Job{Reason: reason}).WaitKind(); got != wait {
				t.Errorf("%q: %d, want %d", reason, got, wait)
			}
		}
	}
}
