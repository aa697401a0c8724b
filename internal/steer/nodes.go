package steer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/slurm"
)

// modeOf is what may be done to a node, or a job: what may be done in each of
// its partitions.
func modeOf(partitions []string, live *config.Live) config.Mode {
	mode := config.Enforce
	for _, partition := range partitions {
		switch live.ModeOf(partition) {
		case config.Observe:
			return config.Observe
		case config.Advise:
			mode = config.Advise
		case config.Enforce:
		}
	}
	if len(partitions) == 0 {
		return config.Observe
	}
	return mode
}

// profileOf is the profile of a node's GPUs: by their type, else by a feature.
func profileOf(n *slurm.Node, profiles *config.Profiles) *config.Profile {
	var names []string
	for i := range n.Gres {
		if n.Gres[i].Name == "gpu" && n.Gres[i].Count > 0 {
			names = append(names, n.Gres[i].Type)
		}
	}
	if profiles == nil || len(names) == 0 {
		return nil
	}
	for _, name := range append(names, n.Features...) {
		if name == "" {
			continue
		}
		if p, err := profiles.Lookup(name); err == nil {
			return p
		}
	}
	return nil
}

// watts is what a GPU in use draws with its part of the node, weighted as the
// profile says; 0: not known.
func watts(p *config.Profile) float64 {
	if p == nil || p.BusyW <= 0 {
		return 0
	}
	weight := p.EnergyWeight
	if weight <= 0 {
		weight = 1
	}
	return math.Round(weight * float64(p.BusyW+p.HostW))
}

// weights makes Slurm fill frugal nodes first: to a node's own weight comes 0
// for the kind that draws least, 1 for the next one, and so on. Nodes of which
// nothing is known keep theirs.
func (p *Plan) weights(s *Snapshot, set *Settings, ours *Ours) {
	if !set.Live.Weights {
		return
	}
	drawn := make([]float64, len(s.Nodes))
	var levels []float64 // each once, ascending
	for i := range s.Nodes {
		if n := &s.Nodes[i]; modeOf(n.Partitions, &set.Live) != config.Observe {
			if drawn[i] = watts(profileOf(n, set.Profiles)); drawn[i] > 0 {
				levels = append(levels, drawn[i])
			}
		}
	}
	slices.Sort(levels)
	levels = slices.Compact(levels)
	for i := range s.Nodes {
		if drawn[i] == 0 {
			continue
		}
		n := &s.Nodes[i]
		level := int64(slices.Index(levels, drawn[i]))
		own, ok := ours.Weights[n.Name]
		if !ok {
			own = n.Weight
		}
		if level == 0 || own > math.MaxInt32 {
			continue
		}
		u := slurm.Undo{
			Lever: slurm.LeverWeight, Node: n.Name, Before: strconv.FormatInt(int64(own), 10),
			After: strconv.FormatInt(int64(own)+level, 10),
		}
		why := fmt.Sprintf("a GPU in use draws %v W there", drawn[i])
		if modeOf(n.Partitions, &set.Live) == config.Enforce {
			p.Wants = append(p.Wants, Want{u, why})
			continue
		}
		p.advise(Advice{Kind: KindWeight, Node: n.Name, Text: "weight " + u.After + " instead of " + u.Before + ": " + why})
	}
}

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
// that could run there. Nodes that sleep by our doing may go on.
func (p *Plan) sleep(s *Snapshot, set *Settings, ours *Ours) {
	if set.Live.SleepAfter <= 0 {
		return
	}
	after := time.Duration(set.Live.SleepAfter * float64(time.Second))
	awake := make(map[string]int) // idle nodes by partition
	var tired []*slurm.Node
	for i := range s.Nodes {
		n := &s.Nodes[i]
		mode := modeOf(n.Partitions, &set.Live)
		if ours.Asleep[n.Name] {
			if mode == config.Enforce {
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
		since, ok := ours.Idle[n.Name]
		if mode != config.Observe && ok && s.At.Sub(since) >= after {
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
