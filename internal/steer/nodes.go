package steer

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
)

// modeOf returns what may be done to a node, or a job: what may be done in each of
// its partitions.
func modeOf(partitions []string, rules *config.Live) live.Mode {
	if len(partitions) == 0 {
		return live.Observe
	}
	return rules.ModeOf(strings.Join(partitions, ","))
}

// profileOf returns the profile of a node's GPUs: by their type, else by a feature.
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

// busyGPUWatts returns what a GPU in use draws with its part of the node, weighted as the
// profile says; 0: not known.
func busyGPUWatts(p *config.Profile) float64 {
	if p == nil || p.BusyW <= 0 {
		return 0
	}
	weight := p.EnergyWeight
	if weight <= 0 {
		weight = 1
	}
	return math.Round(weight * float64(p.BusyW+p.HostW))
}

// weightIncrease is by how much a node's weight is to exceed its own, and why.
type weightIncrease struct {
	by  int64
	why string
}

// planWeights makes Slurm fill some nodes first: frugal ones, and among those with
// shared GPUs those that suit the next job that asks for a part of one.
func (p *Plan) planWeights(s *Snapshot, set *Settings, ours *OwnChanges) {
	wanted := make(map[string]weightIncrease)
	if set.Live.Weights {
		weighByPower(s, set, wanted)
	}
	p.weighBySuitability(s, set, wanted)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		w := wanted[n.Name]
		own, ok := ours.Weights[n.Name]
		if !ok {
			own = n.Weight
		}
		if w.by == 0 || own > math.MaxInt32 {
			continue
		}
		u := lever.Undo{
			Lever: lever.Weight, Node: n.Name, Before: strconv.FormatInt(int64(own), 10),
			After: strconv.FormatInt(int64(own)+w.by, 10),
		}
		if modeOf(n.Partitions, &set.Live) == live.Enforce {
			p.Wants = append(p.Wants, WantedChange{u, w.why})
			continue
		}
		p.advise(Advice{
			Kind: KindWeight, Node: n.Name,
			Text: "weight " + u.After + " instead of " + u.Before + ": " + w.why,
		})
	}
}

// weighByPower adds to a node's own weight 0 for the kind that draws least, 1 for
// the next one, and so on. Nodes of which nothing is known keep theirs.
func weighByPower(s *Snapshot, set *Settings, wanted map[string]weightIncrease) {
	drawn := make([]float64, len(s.Nodes))
	var levels []float64 // each once, ascending
	for i := range s.Nodes {
		if n := &s.Nodes[i]; modeOf(n.Partitions, &set.Live) != live.Observe {
			if drawn[i] = busyGPUWatts(profileOf(n, set.Profiles)); drawn[i] > 0 {
				levels = append(levels, drawn[i])
			}
		}
	}
	slices.Sort(levels)
	levels = slices.Compact(levels)
	for i := range s.Nodes {
		if drawn[i] > 0 {
			wanted[s.Nodes[i].Name] = weightIncrease{
				int64(slices.Index(levels, drawn[i])), fmt.Sprintf("a GPU in use draws %v W there", drawn[i]),
			}
		}
	}
}
