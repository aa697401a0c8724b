package slurm

import (
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/live"
)

// Job is one job, array task or heterogeneous component as squeue or scontrol shows it.
// Name, Comment and everything else a user typed is hostile text.
type Job struct {
	ID           JobID
	ArrayJob     JobID  // 0 when not of an array
	ArrayTask    int    // -1 when not one task
	ArrayTasks   string // "2-4%2" of tasks not yet split off
	HetJob       JobID  // 0 when not heterogeneous
	HetOffset    int
	Name         string
	Comment      string
	AdminComment string // only operators can set it; empty when read from text
	User         string
	UID          uint32
	Account      string
	Partition    string
	QOS          string
	State        JobState
	Reason       string
	Priority     uint32 // 0: held
	Nice         int64
	TimeLimit    live.Limit
	Submit       time.Time
	Eligible     time.Time
	Start        time.Time // planned when pending
	End          time.Time
	Suspended    time.Time // when it was suspended, or went on, last; zero: never since it was queued
	Deadline     time.Time
	Requeue      bool
	Restarts     int
	NodeList     string
	Nodes        []string
	NodeCount    int
	Features     string
	Prefer       string
	GPUFreq      string // the user's own --gpu-freq
	TRESPerNode  string
	Requested    TRES
	Allocated    TRES
	Gres         []NodeGres // where known: which devices on which node
	Exit         ExitStatus

	otherTRES string // what it asks for by job, task and socket
}

// Held says whether the job waits for a release.
func (j *Job) Held() bool { return j.State.Base == Pending && j.Priority == 0 }

// GPUCount gives the job's whole GPUs. Slurm counts them as TRES only where
// AccountingStorageTRES names gres/gpu; otherwise the devices held count, and
// before the start the request per node.
func (j *Job) GPUCount() int {
	if n := max(j.Allocated.GPUs(), j.Requested.GPUs()); n > 0 {
		return n
	}
	held := 0
	for _, n := range j.Gres {
		held += countGPUs(n.Gres)
	}
	if held > 0 {
		return held
	}
	perNode, err := ParseGres(j.TRESPerNode)
	if err != nil {
		return 0
	}
	return countGPUs(perNode) * max(j.NodeCount, 1)
}

// SharesGPUs reports whether the job has parts of GPUs (shards, MPS), or asks for some: Slurm may give the
// rest of them to others at the same time.
func (j *Job) SharesGPUs() bool {
	for _, t := range []TRES{j.Requested, j.Allocated} {
		for name, n := range t {
			if n > 0 && isPartOfGPU(strings.TrimPrefix(name, "gres/")) {
				return true
			}
		}
	}
	hasParts := func(list []Gres) bool {
		return slices.ContainsFunc(list, func(g Gres) bool { return g.Count > 0 && isPartOfGPU(g.Name) })
	}
	for i := range j.Gres {
		if hasParts(j.Gres[i].Gres) {
			return true
		}
	}
	for _, text := range []string{j.TRESPerNode, j.otherTRES} {
		if !strings.Contains(text, "shard") && !strings.Contains(text, "mps") {
			continue // as most jobs: there is nothing to parse
		}
		if list, err := ParseGres(text); err == nil && hasParts(list) {
			return true
		}
	}
	return false
}

// joinTRES lists what a job asks for in several ways.
func joinTRES(asked ...string) string {
	return strings.Join(slices.DeleteFunc(asked, func(text string) bool { return text == "" }), ",")
}

// isPartOfGPU reports whether a generic resource, with its type or without, is a part of a GPU.
func isPartOfGPU(name string) bool {
	name, _, _ = strings.Cut(name, ":")
	return name == "shard" || name == "mps"
}

func countGPUs(list []Gres) int {
	n := int64(0)
	for _, g := range list {
		if g.Name == "gpu" {
			n += g.Count
		}
	}
	return int(min(n, maxHosts))
}

// GPUCount returns how many whole GPUs a node has.
func (n *Node) GPUCount() int { return countGPUs(n.Gres) }

// NodeGres is what a job got on one node.
type NodeGres struct {
	Node string
	Gres []Gres
}

// ExitStatus is how a job ended.
type ExitStatus struct {
	Code   int
	Signal int
}

// exitFromWait reads a status as wait(2) gives it.
func exitFromWait(status int64) ExitStatus {
	return ExitStatus{Code: int(status >> 8 & 0xff), Signal: int(status & 0x7f)}
}

// Node is one node as sinfo or scontrol shows it.
type Node struct {
	Name       string
	State      NodeState
	Reason     string
	Features   []string // available
	Active     []string // in force
	Weight     uint32
	Partitions []string
	CPUs       int
	CPUsInUse  int
	MemoryMB   int64
	Gres       []Gres
	GresUsed   []Gres
	Version    string
	Boot       time.Time
	Address    string // where slurmctld finds it: an address or a name
	HostName   string // of the machine
	// NeverSuspends tells that its SuspendTime is INFINITE: its own, its partition's or that of all
	// nodes. Slurm says so from 26.05 on.
	NeverSuspends bool
}

// Meta is what a JSON answer says about itself.
type Meta struct {
	Version Version
	Errors  []string
	Unread  Unread // records that were passed over
}

// Version is a Slurm release such as 22.05.8.
type Version struct {
	Major, Minor, Micro int
}

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
