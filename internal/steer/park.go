package steer

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// spare is how many idle nodes of a partition stay awake.
const spare = 1

// free tells whether a node is awake and idle, and nobody has plans for it.
func free(n *slurm.Node) bool {
	for _, flag := range n.State.Flags {
		switch flag {
		case "CLOUD", "DYNAMIC_NORM", "DYNAMIC_FUTURE":
		default:
			return false
		}
	}
	return n.State.Base == "IDLE" && n.CPUsInUse == 0
}

// down tells whether a node sleeps or is about to.
func down(n *slurm.Node) bool {
	return n.State.PoweredDown() || n.State.Is("POWERING_DOWN") || n.State.Is("POWER_DOWN")
}

// sleep powers down nodes that have been idle long enough, where no job waits
// that could run there, and that come back soon enough. Nodes that sleep by our
// doing may go on.
func (p *Plan) sleep(s *Snapshot, set *Settings, ours *Ours) {
	if set.Live.SleepAfter <= 0 {
		return
	}
	awake := vigil{make(map[string]int), make(map[*slurm.Awake]int)}
	var tired []*slurm.Node
	for i := range s.Nodes {
		n := &s.Nodes[i]
		mode := modeOf(n.Partitions, &set.Live)
		if ours.Asleep[n.Name] {
			if mode == live.Enforce && ours.Naps[n.Name].Stay == "" {
				p.Wants = append(p.Wants, Want{powerDown(n.Name), "it sleeps already"})
			}
			continue
		}
		if !free(n) {
			continue
		}
		awake.count(n, ours, 1)
		if mode != live.Observe && p.tired(n, s.At, set, ours) {
			tired = append(tired, n)
		}
	}
	wanted := demanded(s)
	slices.SortStableFunc(tired, func(a, b *slurm.Node) int {
		return cmp.Or(cmp.Compare(idleWatts(b, set.Profiles), idleWatts(a, set.Profiles)), strings.Compare(a.Name, b.Name))
	})
	for _, n := range tired {
		if awake.needs(n, ours) || slices.ContainsFunc(n.Partitions, func(name string) bool { return wanted[name] }) {
			continue
		}
		awake.count(n, ours, -1)
		why := "idle since " + ours.Idle[n.Name].Format(time.RFC3339)
		if modeOf(n.Partitions, &set.Live) == live.Enforce {
			p.Wants = append(p.Wants, Want{powerDown(n.Name), why})
			continue
		}
		p.advise(Advice{Kind: KindSleep, Node: n.Name, Text: "power down: " + why})
	}
}

// vigil counts the idle nodes that are awake, where some have to be.
type vigil struct {
	partitions map[string]int
	named      map[*slurm.Awake]int // in SuspendExcNodes
}

// count adds a node, or takes it away.
func (v *vigil) count(n *slurm.Node, ours *Ours, by int) {
	for _, partition := range n.Partitions {
		v.partitions[partition] += by
	}
	for _, a := range ours.Naps[n.Name].With {
		v.named[a] += by
	}
}

// needs tells whether too few would be awake without a node.
func (v *vigil) needs(n *slurm.Node, ours *Ours) bool {
	return slices.ContainsFunc(n.Partitions, func(name string) bool { return v.partitions[name] <= spare }) ||
		slices.ContainsFunc(ours.Naps[n.Name].With, func(a *slurm.Awake) bool { return v.named[a] <= a.Idle })
}

// tired tells whether a node has been idle for long enough and comes back soon
// enough.
func (p *Plan) tired(n *slurm.Node, at time.Time, set *Settings, ours *Ours) bool {
	since, ok := ours.Idle[n.Name]
	nap := ours.Naps[n.Name]
	if !ok || at.Sub(since) < max(seconds(set.Live.SleepAfter), nap.After) {
		return false
	}
	if note := "nodes stay awake: " + nap.Stay; nap.Stay != "" && !slices.Contains(p.Notes, note) {
		p.Notes = append(p.Notes, note)
	}
	return nap.Stay == ""
}

// powerDown is the change that puts a node to sleep, and how it is undone.
func powerDown(node string) slurm.Undo {
	return slurm.Undo{Lever: slurm.LeverPower, Node: node, Before: "power_up", After: "power_down"}
}

// demanded names the partitions in which a job waits that could run now.
func demanded(s *Snapshot) map[string]bool {
	names := make(map[string]bool)
	for i := range s.Jobs {
		if j := &s.Jobs[i]; j.State.Base == slurm.Pending && !j.Held() && runnable(j, s.At) {
			for name := range strings.SplitSeq(j.Partition, ",") {
				names[name] = true
			}
		}
	}
	return names
}

// idleWatts is what an idle node draws, as far as is known.
func idleWatts(n *slurm.Node, profiles *config.Profiles) float64 {
	p := profileOf(n, profiles)
	if p == nil {
		return 0
	}
	gpus := int64(0)
	for i := range n.Gres {
		if n.Gres[i].Name == "gpu" {
			gpus += n.Gres[i].Count
		}
	}
	return float64(p.IdleW+p.HostW) * float64(gpus)
}

// idleSince is since when nodes have been idle, as far as snapshots tell: one
// that was seen otherwise, or ran a job in between, counts from then.
func idleSince(s *Snapshot, known map[string]time.Time) map[string]time.Time {
	next := make(map[string]time.Time, len(known))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !free(n) {
			continue
		}
		since, ok := known[n.Name]
		if !ok {
			since = s.At
		}
		if n.Boot.After(since) {
			since = n.Boot
		}
		next[n.Name] = since
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if j.State.Base == slurm.Pending {
			continue
		}
		for _, name := range j.Nodes {
			if since, ok := next[name]; ok && j.End.After(since) && !j.End.After(s.At) {
				next[name] = j.End
			}
		}
	}
	return next
}
