package steer

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
)

// spareNodes is how many idle nodes of a partition stay awake.
const spareNodes = 1

// isFree reports whether a node is awake and idle, and nobody has plans for it.
func isFree(n *slurm.Node) bool {
	for _, flag := range n.State.Flags {
		switch flag {
		case "CLOUD", "DYNAMIC_NORM", "DYNAMIC_FUTURE":
		default:
			return false
		}
	}
	return n.State.Base == "IDLE" && n.CPUsInUse == 0
}

// isDown reports whether a node sleeps or is about to.
func isDown(n *slurm.Node) bool {
	return n.State.IsPoweredDown() || n.State.Is("POWERING_DOWN") || n.State.Is("POWER_DOWN")
}

// powerDownIdle powers down nodes that have been idle long enough, where no job waits
// that could run there, and that come back soon enough. Nodes that sleep by our
// doing may go on. Where a power budget lacks watts, nodes go to sleep at once, and
// none has to stay awake.
func (p *Plan) powerDownIdle(s *Snapshot, set *Settings, ours *OwnChanges) {
	if set.Live.SleepAfter <= 0 {
		return
	}
	awake := awakeCounts{make(map[string]int), make(map[*slurm.AwakeNodes]int)}
	budget := &relief{set: set}
	var tired []*slurm.Node
	for i := range s.Nodes {
		n := &s.Nodes[i]
		mode := modeOf(n.Partitions, &set.Live)
		if ours.Asleep[n.Name] {
			budget.relieveSoon(n)
			if mode == live.Enforce && ours.Sleeps[n.Name].AwakeReason == "" {
				p.Wants = append(p.Wants, WantedChange{powerDown(n.Name), "it sleeps already"})
			}
			continue
		}
		if !isFree(n) {
			continue
		}
		awake.addNode(n, ours, 1)
		if mode != live.Observe && p.canSleep(n, s.At, set, ours, budget.lacks(n)) {
			tired = append(tired, n)
		}
	}
	wanted, needed := demandedPartitions(s), p.plannedNeeds(s, set, ours)
	slices.SortStableFunc(tired, func(a, b *slurm.Node) int {
		return cmp.Or(cmp.Compare(idleWatts(b, set.Profiles), idleWatts(a, set.Profiles)),
			strings.Compare(a.Name, b.Name))
	})
	for _, n := range tired {
		why := "idle since " + ours.Idle[n.Name].Format(time.RFC3339)
		switch {
		case awake.isKeptAwake(n, ours):
			continue
		case budget.lacks(n):
			why += ", and the power budget lacks watts"
		case !p.hasRested(n, s.At, set, ours), awake.isLast(n):
			continue
		}
		if spare, planned := needed.spare(n, set); planned {
			if !spare {
				continue
			}
			why += ", and not in the plan until sleeping pays"
		} else if slices.ContainsFunc(n.Partitions, func(name string) bool { return wanted[name] }) {
			continue
		}
		awake.addNode(n, ours, -1)
		budget.relieve(n)
		if modeOf(n.Partitions, &set.Live) == live.Enforce {
			p.Wants = append(p.Wants, WantedChange{powerDown(n.Name), why})
			continue
		}
		p.advise(Advice{Kind: KindSleep, Node: n.Name, Text: "power down: " + why})
	}
}

// plannedNodes are the free nodes that are awake, by kind, beyond those that a plan needs before
// sleeping would have paid; nil: there is no plan.
type plannedNodes map[plannedKind]int

// plannedKind is nodes that a plan doesn't tell apart.
type plannedKind struct {
	family, partitions string // of their GPUs: a type such as a100 may be any of its boards
	gpus               int
}

// plannedKindOf returns the kind of a node whose GPUs are of a profile, by its first ones.
func plannedKindOf(n *slurm.Node, profile *config.Profile) plannedKind {
	kind := plannedKind{
		family:     config.FamilyOf(profile.Name),
		partitions: strings.Join(slices.Sorted(slices.Values(n.Partitions)), ","),
	}
	if i := slices.IndexFunc(n.Gres, func(g slurm.Gres) bool { return g.Name == "gpu" && g.Count > 0 }); i >= 0 {
		kind.gpus = int(n.Gres[i].Count)
	}
	return kind
}

// plannedNeeds counts the nodes that a plan needs.
func (p *Plan) plannedNeeds(s *Snapshot, set *Settings, ours *OwnChanges) plannedNodes {
	plan := set.planOf(s)
	if plan == nil {
		return nil
	}
	beyond := make(plannedNodes)
	pays := make(map[plannedKind]time.Duration) // for how long a node must sleep
	for i := range s.Nodes {
		n := &s.Nodes[i]
		profile := profileOf(n, set.Profiles)
		if profile == nil || !isFree(n) || ours.Asleep[n.Name] {
			continue
		}
		kind := plannedKindOf(n, profile)
		beyond[kind]++
		pays[kind] = max(pays[kind], durationOf(set.Live.SleepAfter), ours.Sleeps[n.Name].MinIdle)
	}
	for i := range plan.Needs {
		need := &plan.Needs[i]
		kind := plannedKind{config.FamilyOf(need.GPUModel), strings.Join(need.Partitions, ","), need.GPUs}
		if !need.At.After(s.At.Add(pays[kind])) {
			beyond[kind]--
		}
	}
	return beyond
}

// spare takes a node from those that the plan doesn't need, if there are some. Not planned: the plan may
// not decide about the node, or doesn't know it.
func (b plannedNodes) spare(n *slurm.Node, set *Settings) (spare, planned bool) {
	profile := profileOf(n, set.Profiles)
	if b == nil || profile == nil || len(n.Partitions) == 0 ||
		set.Live.PlanModeOf(strings.Join(n.Partitions, ",")) != config.PlanEnforce {
		return false, false
	}
	kind := plannedKindOf(n, profile)
	if b[kind] <= 0 {
		return false, true
	}
	b[kind]--
	return true, true
}

// awakeCounts counts the idle nodes that are awake, where some have to be.
type awakeCounts struct {
	partitions map[string]int
	named      map[*slurm.AwakeNodes]int // in SuspendExcNodes
}

// addNode adds a node, or takes it away.
func (v *awakeCounts) addNode(n *slurm.Node, ours *OwnChanges, by int) {
	for _, partition := range n.Partitions {
		v.partitions[partition] += by
	}
	for _, a := range ours.Sleeps[n.Name].AwakeGroups {
		v.named[a] += by
	}
}

// isLast reports whether too few nodes of a partition would be awake without a node.
func (v *awakeCounts) isLast(n *slurm.Node) bool {
	return slices.ContainsFunc(n.Partitions, func(name string) bool { return v.partitions[name] <= spareNodes })
}

// isKeptAwake reports whether slurm.conf wants a node to stay awake.
func (v *awakeCounts) isKeptAwake(n *slurm.Node, ours *OwnChanges) bool {
	return slices.ContainsFunc(ours.Sleeps[n.Name].AwakeGroups, func(a *slurm.AwakeNodes) bool {
		return v.named[a] <= a.Idle
	})
}

// relief is what power budgets lack, and what nodes that go to sleep give them.
type relief struct {
	set   *Settings
	given dvfsmodel.Watt
}

// lacks reports whether a budget of a node still lacks watts.
func (r *relief) lacks(n *slurm.Node) bool {
	return r.set.Short != nil && r.set.Short(n.Name) > r.given
}

// relieve counts a node that goes to sleep.
func (r *relief) relieve(n *slurm.Node) { r.given += dvfsmodel.Watt(idleWatts(n, r.set.Profiles)) }

// relieveSoon counts a node that was put to sleep while it is on its way.
func (r *relief) relieveSoon(n *slurm.Node) {
	if !n.State.IsPoweredDown() {
		r.relieve(n)
	}
}

// hasRested reports whether a node has been idle for long enough.
func (p *Plan) hasRested(n *slurm.Node, at time.Time, set *Settings, ours *OwnChanges) bool {
	since, ok := ours.Idle[n.Name]
	return ok && at.Sub(since) >= max(durationOf(set.Live.SleepAfter), ours.Sleeps[n.Name].MinIdle)
}

// canSleep reports whether a node has been idle for long enough, or has to sleep, and comes back soon enough.
func (p *Plan) canSleep(n *slurm.Node, at time.Time, set *Settings, ours *OwnChanges, hasTo bool) bool {
	nap := ours.Sleeps[n.Name]
	if !hasTo && !p.hasRested(n, at, set, ours) {
		return false
	}
	if note := "nodes stay awake: " + nap.AwakeReason; nap.AwakeReason != "" &&
		!slices.Contains(p.Notes, note) {
		p.Notes = append(p.Notes, note)
	}
	return nap.AwakeReason == ""
}

// powerDown returns the change that puts a node to sleep, and how it is undone.
func powerDown(node string) lever.Undo {
	return lever.Undo{Lever: lever.Power, Node: node, Before: "power_up", After: "power_down"}
}

// demandedPartitions names the partitions in which a job waits that could run now.
func demandedPartitions(s *Snapshot) map[string]bool {
	names := make(map[string]bool)
	for i := range s.Jobs {
		if j := &s.Jobs[i]; j.State.Base == slurm.Pending && !j.Held() && isRunnable(j, s.At) {
			for name := range strings.SplitSeq(j.Partition, ",") {
				names[name] = true
			}
		}
	}
	return names
}

// idleWatts returns what an idle node draws, as far as is known.
func idleWatts(n *slurm.Node, profiles *config.Profiles) float64 {
	p := profileOf(n, profiles)
	if p == nil {
		return 0
	}
	return float64(p.IdleW+p.HostW) * float64(n.GPUCount())
}

// idleSince is since when nodes have been idle, as far as snapshots tell: one
// that was seen otherwise, or ran a job in between, counts from then.
func idleSince(s *Snapshot, known map[string]time.Time) map[string]time.Time {
	next := make(map[string]time.Time, len(known))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !isFree(n) {
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
