package steer

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/config"
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
	awake := make(map[string]int) // idle nodes by partition
	var tired []*slurm.Node
	for i := range s.Nodes {
		n := &s.Nodes[i]
		mode := modeOf(n.Partitions, &set.Live)
		if ours.Asleep[n.Name] {
			if mode == config.Enforce && ours.Naps[n.Name].Stay == "" {
				p.Wants = append(p.Wants, Want{powerDown(n.Name), "it sleeps already"})
			}
			continue
		}
		if !free(n) {
			continue
		}
		for _, partition := range n.Partitions {
			awake[partition]++
		}
		if mode != config.Observe && p.tired(n, s.At, set, ours) {
			tired = append(tired, n)
		}
	}
	wanted := demanded(s)
	slices.SortStableFunc(tired, func(a, b *slurm.Node) int {
		return cmp.Or(cmp.Compare(idleWatts(b, set.Profiles), idleWatts(a, set.Profiles)), strings.Compare(a.Name, b.Name))
	})
	for _, n := range tired {
		if slices.ContainsFunc(n.Partitions, func(name string) bool { return awake[name] <= spare || wanted[name] }) {
			continue
		}
		for _, partition := range n.Partitions {
			awake[partition]--
		}
		why := "idle since " + ours.Idle[n.Name].Format(time.RFC3339)
		if modeOf(n.Partitions, &set.Live) == config.Enforce {
			p.Wants = append(p.Wants, Want{powerDown(n.Name), why})
			continue
		}
		p.advise(Advice{Kind: KindSleep, Node: n.Name, Text: "power down: " + why})
	}
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
