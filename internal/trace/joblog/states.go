package joblog

import (
	"slices"
	"strconv"

	"github.com/epplan/epplan/slurm"
)

// isOver reports whether a job in a state won't run on under this record.
func isOver(s slurm.State) bool { return s.Ended() || s == slurm.Requeued }

// underwayStates are the states of jobs that aren't over.
var underwayStates = []slurm.State{
	slurm.Pending, slurm.Running, slurm.Suspended, slurm.Completing, slurm.Configuring, "RESIZING",
	"STAGE_OUT", "SIGNALING",
	"STOPPED", "SPECIAL_EXIT", "RESV_DEL_HOLD", "REQUEUE_FED", "REQUEUE_HOLD", "POWER_UP_NODE", "UPDATE_DB",
	"EXPEDITING", "RECONFIG_FAIL",
}

func isUnderway(s slurm.State) bool { return slices.Contains(underwayStates, s) }

// printable returns a text for a message, short and on one line.
func printable(text string) string { return strconv.Quote(slurm.Printable(text, 60)) }
