package slurm

import (
	"slices"
	"strconv"
	"strings"
)

// State is the base state of a job in Slurm's words, upper case.
type State string

// The job states of Slurm 22.05 to 26.x, and flags that stand in a state's place where Slurm prints one
// word.
const (
	Pending     State = "PENDING"
	Running     State = "RUNNING"
	Suspended   State = "SUSPENDED"
	Completing  State = "COMPLETING"
	Configuring State = "CONFIGURING"
	Completed   State = "COMPLETED"
	Cancelled   State = "CANCELLED"
	Failed      State = "FAILED"
	Timeout     State = "TIMEOUT"
	NodeFail    State = "NODE_FAIL"
	Preempted   State = "PREEMPTED"
	BootFail    State = "BOOT_FAIL"
	Deadline    State = "DEADLINE"
	OutOfMemory State = "OUT_OF_MEMORY"
	Requeued    State = "REQUEUED"
	Revoked     State = "REVOKED"
	// LaunchFailed is a flag: the job couldn't be launched on its nodes, such as for a Prolog that failed.
	// Beside it stands what became of the job, PENDING or FAILED; alone it is how the job ended.
	LaunchFailed State = "LAUNCH_FAILED"
	UnknownJob   State = "UNKNOWN"
)

var endStates = []State{
	Completed, Cancelled, Failed, Timeout, NodeFail, Preempted, BootFail, Deadline, OutOfMemory, Revoked,
	LaunchFailed,
}

// stateFlags are what Slurm sets beside a base state (https://slurm.schedmd.com/job_state_codes.html, 26.05).
var stateFlags = []State{
	Completing, Configuring, "EXPEDITING", LaunchFailed, "POWER_UP_NODE", "RECONFIG_FAIL", Requeued,
	"REQUEUE_FED", "REQUEUE_HOLD", "RESIZING", "RESV_DEL_HOLD", Revoked, "SIGNALING", "SPECIAL_EXIT",
	"STAGE_OUT", "STOPPED", "UPDATE_DB",
}

// IsFlag reports whether Slurm sets the state beside another one.
func (s State) IsFlag() bool { return slices.Contains(stateFlags, s) }

// Ended says whether the job will not run again under this record.
func (s State) Ended() bool { return slices.Contains(endStates, s) }

// JobState is a base state with Slurm's flags, such as COMPLETING, and who cancelled the job.
type JobState struct {
	Base         State
	Flags        []State
	CancelledBy  uint32 // a uid
	HasCancelled bool   // CancelledBy is known
}

// Is says whether the base state or a flag is s.
func (j JobState) Is(s State) bool { return j.Base == s || slices.Contains(j.Flags, s) }

// Ended says whether the job is over: an end state and no longer completing.
func (j JobState) Ended() bool { return j.Base.Ended() && !j.Is(Completing) }

// ParseJobState reads "CANCELLED by 65534", "CANCELLED+", "RUNNING" or, as JSON
// has it from 23.11, several words of which the first that is no flag is the base state. Of
// flags alone the first stands for it.
func ParseJobState(words ...string) JobState {
	var out JobState
	for _, word := range words {
		name, by, hasBy := strings.Cut(strings.TrimSpace(word), " by ")
		name = strings.ToUpper(strings.TrimSuffix(name, "+"))
		if hasBy {
			if uid, err := strconv.ParseUint(by, 10, 32); err == nil {
				out.CancelledBy, out.HasCancelled = uint32(uid), true
			}
		}
		switch {
		case name == "":
		case out.Base == "":
			out.Base = State(name)
		case out.Base.IsFlag() && !State(name).IsFlag():
			out.Base, out.Flags = State(name), append(out.Flags, out.Base)
		default:
			out.Flags = append(out.Flags, State(name))
		}
	}
	if out.Base == "" {
		out.Base = UnknownJob
	}
	return out
}

// NodeState is a node's base state (IDLE, MIXED, ALLOCATED, DOWN, …) with its flags.
type NodeState struct {
	Base  string
	Flags []string
}

// Is says whether the base state or a flag is word, upper case.
func (n NodeState) Is(word string) bool { return n.Base == word || slices.Contains(n.Flags, word) }

// Usable says whether Slurm may start a job there, waking the node if need be.
func (n NodeState) Usable() bool {
	switch n.Base {
	case "IDLE", "MIXED", "ALLOCATED", "COMPLETING":
	default:
		return false
	}
	return !slices.ContainsFunc([]string{
		"DRAIN", "DOWN", "NOT_RESPONDING", "FAIL", "MAINTENANCE", "REBOOT_ISSUED", "POWERING_DOWN",
		"INVALID_REG",
	}, n.Is)
}

// IsPoweredDown says whether the node sleeps.
func (n NodeState) IsPoweredDown() bool { return n.Is("POWERED_DOWN") }

// stateSuffixes are the signs that sinfo puts behind a state.
var stateSuffixes = map[byte]string{
	'*': "NOT_RESPONDING", '~': "POWERED_DOWN", '#': "POWERING_UP", '%': "POWERING_DOWN",
	'!': "POWER_DOWN", '$': "MAINTENANCE", '@': "REBOOT_REQUESTED", '^': "REBOOT_ISSUED", '-': "PLANNED",
}

// ParseNodeState reads "IDLE+POWERED_DOWN", "idle~", "mixed" or several words.
func ParseNodeState(words ...string) NodeState {
	var out NodeState
	add := func(word string) {
		switch {
		case word == "":
		case out.Base == "":
			out.Base = word
		case !out.Is(word):
			out.Flags = append(out.Flags, word)
		}
	}
	for _, word := range words {
		for w := range strings.SplitSeq(strings.ToUpper(strings.TrimSpace(word)), "+") {
			mark := ""
			if n := len(w); n > 1 {
				mark = stateSuffixes[w[n-1]]
			}
			if mark == "" {
				add(w)
				continue
			}
			add(w[:len(w)-1])
			add(mark)
		}
	}
	if out.Base == "" {
		out.Base = "UNKNOWN"
	}
	return out
}
