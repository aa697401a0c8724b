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

// Nap is what is known of a node's sleep.
type Nap struct {
	After time.Duration  // how long it must be idle until sleeping pays
	Stay  string         // why it must stay awake; empty: it need not
	With  []*slurm.Awake // nodes, it among them, of which some must stay awake
}

// naps is what snapshots told of sleep: since when each node has had no job, and
// by kind of node how long its nodes had none and how long they took to wake.
type naps struct {
	resting map[string]time.Time // since when a node has had no job, asleep or not
	asleep  map[string]doze      // nodes that sleep or wake
	gaps    map[string][]float64 // by kind: seconds without a job, the latest last
	wakes   map[string][]float64 // by kind: seconds until a node was back, the latest last
	failed  map[string]bool      // nodes that didn't come back when they were woken last
	longest float64              // of all wakes, seconds
	count   int64                // of wakes
}

// doze is what is known of a node that sleeps or wakes.
type doze struct {
	slept time.Time // the last snapshot in which it slept
	wakes bool      // it was told to wake since
}

const (
	maxGaps   = 200 // that are remembered of a kind
	maxWakes  = 20
	sureWakes = 3    // so many must have been seen before they count instead of ResumeTimeout
	wakeSlack = 1.25 // of the longest wake that was seen
)

// seconds is a number of seconds as a duration.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// lost forgets what is going on, as it wasn't watched.
func (n *naps) lost() { n.resting, n.asleep = nil, nil }

// see learns from a snapshot, given since when nodes have been idle.
func (n *naps) see(s *Snapshot, idle map[string]time.Time) {
	if len(s.Nodes) == 0 {
		return
	}
	if n.gaps == nil {
		n.gaps, n.wakes, n.failed = make(map[string][]float64), make(map[string][]float64), make(map[string]bool)
	}
	resting, asleep := make(map[string]time.Time, len(s.Nodes)), make(map[string]doze)
	for i := range s.Nodes {
		node := &s.Nodes[i]
		if since, ok := n.rest(node, s.At, idle); ok {
			resting[node.Name] = since
		}
		if d, ok := n.wake(node, s.At); ok {
			asleep[node.Name] = d
		}
	}
	n.resting, n.asleep = resting, asleep
}

// rest is since when a node has had no job. A gap that a job ends is noted.
func (n *naps) rest(node *slurm.Node, at time.Time, idle map[string]time.Time) (since time.Time, ok bool) {
	since, known := n.resting[node.Name]
	if node.CPUsInUse > 0 || node.State.Base == "ALLOCATED" || node.State.Base == "MIXED" {
		if known {
			note(n.gaps, node, at.Sub(since), maxGaps)
		}
		return time.Time{}, false
	}
	switch began, seen := idle[node.Name]; {
	case known && seen && began.After(since) && !began.Equal(node.Boot): // a job came and went between two snapshots
		note(n.gaps, node, began.Sub(since), maxGaps)
		return began, true
	case known:
		return since, true
	default:
		return began, seen
	}
}

// wake is what is known of a node while it sleeps or wakes. Once it's back, how
// long that took is noted: rather too long than too short, as it began after the
// last snapshot in which it slept. One that isn't back by ResumeTimeout is DOWN,
// and counts as powered down again.
func (n *naps) wake(node *slurm.Node, at time.Time) (d doze, ok bool) {
	d, known := n.asleep[node.Name]
	switch {
	case node.State.Is("POWERING_UP") || node.State.Is("POWER_UP"):
		return doze{d.slept, true}, known
	case node.State.Base == "DOWN":
		if known && (d.wakes || !down(node)) {
			n.failed[node.Name] = true
		}
	case down(node):
		return doze{slept: at}, true
	case node.State.Is("NOT_RESPONDING"):
		return doze{d.slept, true}, known
	case known:
		took := at.Sub(d.slept)
		note(n.wakes, node, took, maxWakes)
		n.longest, n.count = max(n.longest, took.Seconds()), n.count+1
		delete(n.failed, node.Name)
	}
	return doze{}, false
}

// note adds how long something took, in seconds, to those of the node's kind, of
// which so many are kept at most.
func note(of map[string][]float64, node *slurm.Node, took time.Duration, most int) {
	kind := kindOf(node)
	list := append(of[kind], took.Seconds())
	of[kind] = list[max(0, len(list)-most):]
}

// kindOf says which nodes are alike: those of the same partitions with the same
// devices and CPUs.
func kindOf(n *slurm.Node) string {
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

// judge says of each node after how long it may sleep, and what keeps it awake.
func (n *naps) judge(s *Snapshot, live *config.Live, saving *slurm.PowerSaving) map[string]Nap {
	if live.SleepAfter <= 0 {
		return nil
	}
	kinds, all := make(map[string]Nap), make(map[string]Nap, len(s.Nodes))
	named := namedBy(saving)
	for i := range s.Nodes {
		kind := kindOf(&s.Nodes[i])
		nap, ok := kinds[kind]
		if !ok {
			nap = n.nap(kind, live, saving)
			kinds[kind] = nap
		}
		if n.failed[s.Nodes[i].Name] {
			nap.Stay = s.Nodes[i].Name + " went down instead of waking up"
		}
		exempt(&nap, &s.Nodes[i], saving, named[s.Nodes[i].Name])
		all[s.Nodes[i].Name] = nap
	}
	return all
}

// namedBy tells where SuspendExcNodes names each node.
func namedBy(saving *slurm.PowerSaving) map[string][]*slurm.Awake {
	named := make(map[string][]*slurm.Awake)
	for i := range saving.Awake {
		for _, name := range saving.Awake[i].Nodes {
			named[name] = append(named[name], &saving.Awake[i])
		}
	}
	return named
}

// exempt keeps a node awake where slurm.conf wants that.
func exempt(nap *Nap, n *slurm.Node, saving *slurm.PowerSaving, named []*slurm.Awake) {
	const why = "slurm.conf's %s keeps them from sleeping"
	in := func(list []string) func(string) bool {
		return func(name string) bool {
			return slices.ContainsFunc(list, func(other string) bool { return strings.EqualFold(name, other) })
		}
	}
	switch {
	case slices.ContainsFunc(named, func(a *slurm.Awake) bool { return a.Idle == 0 }):
		nap.Stay = fmt.Sprintf(why, "SuspendExcNodes")
	case slices.ContainsFunc(n.Partitions, in(saving.AwakeParts)):
		nap.Stay = fmt.Sprintf(why, "SuspendExcParts")
	case slices.ContainsFunc(n.State.Flags, in(saving.AwakeFlags)):
		nap.Stay = fmt.Sprintf(why, "SuspendExcStates")
	case saving.Unread != "":
		nap.Stay = "what slurm.conf keeps from sleeping can't be read: " + saving.Unread
	}
	nap.With = named
}

// nap judges a kind of node. What it costs to sleep once is to idle for as long
// as going to sleep and waking take.
func (n *naps) nap(kind string, live *config.Live, saving *slurm.PowerSaving) Nap {
	var nap Nap
	usual, upper := saving.Resume.Seconds(), saving.Resume.Seconds()
	why := "slurm's SuspendTimeout and ResumeTimeout"
	if wakes := n.wakes[kind]; len(wakes) >= sureWakes {
		sorted := slices.Sorted(slices.Values(wakes))
		usual, upper = sorted[len(sorted)/2], wakeSlack*sorted[len(sorted)-1]
		why = "what was seen"
	} else if len(wakes) > 0 && slices.Max(wakes) > upper {
		usual, upper = slices.Max(wakes), slices.Max(wakes)
		why = "what was seen"
	}
	down := saving.Suspend.Seconds()
	if wait := down + upper; wait > live.WakeWait {
		nap.Stay = fmt.Sprintf("a job might wait %.0f s for one by %s, wake_wait_s is %v", wait, why, live.WakeWait)
	}
	if live.SleepLearn {
		nap.After = seconds(park.Threshold(n.gaps[kind], down+usual))
	}
	return nap
}

// woken says how many wakes were seen, and the longest of them, seconds.
func (n *naps) woken() (count int64, longest float64) { return n.count, n.longest }
