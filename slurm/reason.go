package slurm

import (
	"slices"
	"strings"
)

// WaitKind is for what a pending job waits.
type WaitKind uint8

// For what a pending job waits, by its reason.
const (
	WaitTurn  WaitKind = iota // for its turn, or for nodes: Slurm starts it as soon as there are some
	WaitHeld                  // for its release
	WaitLater                 // for a time, or another job
	WaitNever                 // for another request: as it is, it can't start
	// For anything else: what a QOS or an association leaves it, licences, a reservation,
	// its array's other tasks.
	WaitElse
)

// WaitKind is for what a pending job waits. Slurm has more than 150 reasons, most of
// them limits, and adds further ones: a job with one that isn't known here isn't
// taken to be next.
func (j *Job) WaitKind() WaitKind {
	switch {
	case slices.Contains([]string{"", "None", "Priority", "Resources", "SchedDefer"}, j.Reason):
		return WaitTurn
	case strings.Contains(strings.ToLower(j.Reason), "held"), j.Reason == "JobHoldMaxRequeue":
		return WaitHeld
	case j.Reason == "BeginTime", strings.HasPrefix(j.Reason, "Dependency"):
		return WaitLater
	case slices.Contains([]string{"BadConstraints", "PartitionTimeLimit", "PartitionNodeLimit"}, j.Reason):
		return WaitNever
	}
	return WaitElse
}
