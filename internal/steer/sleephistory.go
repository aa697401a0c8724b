package steer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/slurm"
)

// NodeSleep is what is known of a node's sleep.
type NodeSleep struct {
	MinIdle     time.Duration       // how long it must be idle until sleeping pays
	AwakeReason string              // why it must stay awake; empty: it need not
	AwakeGroups []*slurm.AwakeNodes // nodes, it among them, of which some must stay awake
}

// sleepHistory is what snapshots told of sleep: since when each node has had no job, and
// by kind of node how long its nodes had none and how long they took to wake.
type sleepHistory struct {
	idleSince   map[string]time.Time  // since when a node has had no job, asleep or not
	asleep      map[string]sleepState // nodes that sleep or wake
	idleGaps    map[string][]float64  // by kind: seconds without a job, the latest last
	wakeTimes   map[string][]float64  // by kind: seconds until a node was back, the latest last
	failedWakes map[string]bool       // nodes that didn't come back when they were woken last
	longestWake float64               // of all wakes, seconds
	wakeCount   int64                 // of wakes
}

// sleepState is what is known of a node that sleeps or wakes.
type sleepState struct {
	slept time.Time // the last snapshot in which it slept
	wakes bool      // it was told to wake since
}

const (
	maxGaps        = 200 // that are remembered of a kind
	maxWakes       = 20
	minWakeSamples = 3    // so many must have been seen before they count instead of ResumeTimeout
	wakeTimeFactor = 1.25 // of the longest wake that was seen
)

func durationOf(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// observe learns from a snapshot, given since when nodes have been idle.
func (n *sleepHistory) observe(s *Snapshot, idle map[string]time.Time) {
	if len(s.Nodes) == 0 {
		return
	}
	if n.idleGaps == nil {
		n.idleGaps, n.wakeTimes, n.failedWakes = make(map[string][]float64), make(map[string][]float64),
			make(map[string]bool)
	}
	resting, asleep := make(map[string]time.Time, len(s.Nodes)), make(map[string]sleepState)
	for i := range s.Nodes {
		node := &s.Nodes[i]
		if since, ok := n.observeIdle(node, s.At, idle); ok {
			resting[node.Name] = since
		}
		if d, ok := n.observeWake(node, s.At); ok {
			asleep[node.Name] = d
		}
	}
	n.idleSince, n.asleep = resting, asleep
}

// observeIdle is since when a node has had no job. A gap that a job ends is noted.
func (n *sleepHistory) observeIdle(
	node *slurm.Node, at time.Time, idle map[string]time.Time,
) (since time.Time, ok bool) {
	since, known := n.idleSince[node.Name]
	if node.CPUsInUse > 0 || node.State.Base == "ALLOCATED" || node.State.Base == "MIXED" {
		if known {
			appendSample(n.idleGaps, node, at.Sub(since), maxGaps)
		}
		return time.Time{}, false
	}
	switch began, seen := idle[node.Name]; {
	// a job came and went between two snapshots.
	case known && seen && began.After(since) && !began.Equal(node.Boot):
		appendSample(n.idleGaps, node, began.Sub(since), maxGaps)
		return began, true
	case known:
		return since, true
	default:
		return began, seen
	}
}

// observeWake returns what is known of a node while it sleeps or wakes. Once it's back, how
// long that took is noted: rather too long than too short, as it began after the
// last snapshot in which it slept. One that isn't back by ResumeTimeout is DOWN,
// and counts as powered down again.
func (n *sleepHistory) observeWake(node *slurm.Node, at time.Time) (d sleepState, ok bool) {
	d, known := n.asleep[node.Name]
	switch {
	case node.State.Is("POWERING_UP") || node.State.Is("POWER_UP"):
		return sleepState{d.slept, true}, known
	case node.State.Base == "DOWN":
		if known && (d.wakes || !isDown(node)) {
			n.failedWakes[node.Name] = true
		}
	case isDown(node):
		return sleepState{slept: at}, true
	case node.State.Is("NOT_RESPONDING"):
		return sleepState{d.slept, true}, known
	case known:
		took := at.Sub(d.slept)
		appendSample(n.wakeTimes, node, took, maxWakes)
		n.longestWake, n.wakeCount = max(n.longestWake, took.Seconds()), n.wakeCount+1
		delete(n.failedWakes, node.Name)
	}
	return sleepState{}, false
}

// appendSample adds how long something took, in seconds, to those of the node's kind, of
// which so many are kept at most.
func appendSample(of map[string][]float64, node *slurm.Node, took time.Duration, most int) {
	kind := nodeKind(node)
	list := append(of[kind], took.Seconds())
	of[kind] = list[max(0, len(list)-most):]
}

// nodeKind says which nodes are alike: those of the same partitions with the same
// devices and CPUs.
func nodeKind(n *slurm.Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d", n.CPUs)
	for i := range n.Gres {
		fmt.Fprintf(&b, " %s:%s:%d", n.Gres[i].Name, n.Gres[i].Type, n.Gres[i].Count)
	}
	for _, partition := range slices.Sorted(slices.Values(n.Partitions)) {
		b.WriteString(" " + partition)
	}
	return b.String()
}

// nodeSleeps says of each node after how long it may sleep, and what keeps it awake.
func (n *sleepHistory) nodeSleeps(
	s *Snapshot, live *config.Live, saving *slurm.PowerSaving,
) map[string]NodeSleep {
	if live.SleepAfter <= 0 {
		return nil
	}
	kinds, all := make(map[string]NodeSleep), make(map[string]NodeSleep, len(s.Nodes))
	named := exemptionsByNode(saving)
	for i := range s.Nodes {
		kind := nodeKind(&s.Nodes[i])
		nap, ok := kinds[kind]
		if !ok {
			nap = n.sleepOfKind(kind, live, saving)
			kinds[kind] = nap
		}
		if n.failedWakes[s.Nodes[i].Name] {
			nap.AwakeReason = s.Nodes[i].Name + " went down instead of waking up"
		}
		applyExemptions(&nap, &s.Nodes[i], saving, named[s.Nodes[i].Name])
		all[s.Nodes[i].Name] = nap
	}
	return all
}

// exemptionsByNode tells where SuspendExcNodes names each node.
func exemptionsByNode(saving *slurm.PowerSaving) map[string][]*slurm.AwakeNodes {
	named := make(map[string][]*slurm.AwakeNodes)
	for i := range saving.Awake {
		for _, name := range saving.Awake[i].Nodes {
			named[name] = append(named[name], &saving.Awake[i])
		}
	}
	return named
}

// applyExemptions keeps a node awake where slurm.conf wants that.
func applyExemptions(nap *NodeSleep, n *slurm.Node, saving *slurm.PowerSaving, named []*slurm.AwakeNodes) {
	const why = "slurm.conf's %s keeps them from sleeping"
	in := func(list []string) func(string) bool {
		return func(name string) bool {
			return slices.ContainsFunc(list, func(other string) bool {
				return strings.EqualFold(name, other)
			})
		}
	}
	switch {
	case slices.ContainsFunc(named, func(a *slurm.AwakeNodes) bool { return a.Idle == 0 }):
		nap.AwakeReason = fmt.Sprintf(why, "SuspendExcNodes")
	case slices.ContainsFunc(n.Partitions, in(saving.AwakeParts)):
		nap.AwakeReason = fmt.Sprintf(why, "SuspendExcParts")
	case slices.ContainsFunc(n.State.Flags, in(saving.AwakeFlags)):
		nap.AwakeReason = fmt.Sprintf(why, "SuspendExcStates")
	case n.NeverSuspends && saving.Timed: // where it is INFINITE for all nodes, that is no exemption
		nap.AwakeReason = fmt.Sprintf(why, "SuspendTime")
	case saving.UnreadReason != "":
		nap.AwakeReason = "what slurm.conf keeps from sleeping can't be read: " + saving.UnreadReason
	}
	nap.AwakeGroups = named
}

// sleepOfKind judges a kind of node. What it costs to sleep once is to idle for as long
// as going to sleep and waking take.
func (n *sleepHistory) sleepOfKind(kind string, live *config.Live, saving *slurm.PowerSaving) NodeSleep {
	var nap NodeSleep
	usual, upper := saving.Resume.Seconds(), saving.Resume.Seconds()
	why := "slurm's SuspendTimeout and ResumeTimeout"
	if wakes := n.wakeTimes[kind]; len(wakes) >= minWakeSamples {
		sorted := slices.Sorted(slices.Values(wakes))
		usual, upper = sorted[len(sorted)/2], wakeTimeFactor*sorted[len(sorted)-1]
		why = "what was seen"
	} else if len(wakes) > 0 && slices.Max(wakes) > upper {
		usual, upper = slices.Max(wakes), slices.Max(wakes)
		why = "what was seen"
	}
	down := saving.Suspend.Seconds()
	if wait := down + upper; wait > live.WakeWait {
		nap.AwakeReason = fmt.Sprintf("a job might wait %.0f s for one by %s, wake_wait_s is %v", wait, why,
			live.WakeWait)
	}
	if live.SleepLearn {
		nap.MinIdle = durationOf(park.Threshold(n.idleGaps[kind], down+usual))
	}
	return nap
}
