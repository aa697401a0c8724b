package steer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
)

// minEnergyGain is how much less energy a job must need on one GPU model than on every
// other to be told to prefer it: a preferred node may be a later start.
const minEnergyGain = 0.2

// preferFeatures tells pending jobs to prefer nodes of the GPU model on which they need
// clearly less energy. Where the user named a kind of node, nothing is done.
func (p *Plan) preferFeatures(s *Snapshot, set *Settings, ours *OwnChanges) {
	if !set.Live.Prefer || set.Energy == nil || set.Profiles == nil {
		return
	}
	plan := set.planOf(s)
	choices := make(map[string]map[string]string) // by partition: a feature for each GPU model
	for i := range s.Jobs {
		j := &s.Jobs[i]
		mode := set.Live.ModeOf(j.Partition)
		if mode == live.Observe || !canReorder(j, s.At) || !takesAnyGPU(j, ours) || requestsOf(j).Off {
			continue
		}
		features, ok := choices[j.Partition]
		if !ok {
			features = featuresOf(s.Nodes, j.Partition, set.Profiles)
			choices[j.Partition] = features
		}
		feature, why := leastEnergyFeature(j, features, set)
		if by := set.Live.PlanModeOf(j.Partition); plan != nil && by == config.PlanEnforce {
			if plan.HeldOut[j.ID] {
				continue
			}
			if model := plan.GPUModel[j.ID]; model != "" {
				feature, why = plannedFeature(features, model, plan.Policy)
			}
		}
		switch {
		case feature == "":
		case mode == live.Enforce:
			p.Wants = append(p.Wants, WantedChange{
				lever.Undo{Lever: lever.Prefer, Job: j.ID, After: feature}, why,
			})
		default:
			p.advise(Advice{
				Kind: KindPrefer, Job: j.ID, UID: j.UID, User: j.User, Partition: j.Partition,
				Text: "--prefer=" + feature + ": " + why,
			})
		}
	}
}

// plannedFeature returns the feature of the GPU model on which a plan has a job; empty where there is no
// other one, or no feature for it.
func plannedFeature(features map[string]string, model, policy string) (feature, why string) {
	if len(features) < 2 {
		return "", ""
	}
	return features[model], "plan " + policy + " has it on " + model
}

// takesAnyGPU reports whether a job takes any GPU: its user named neither features
// nor a type.
func takesAnyGPU(j *slurm.Job, ours *OwnChanges) bool {
	if j.GPUCount() == 0 || j.Features != "" || j.Prefer != "" && !ours.Prefer[j.ID] {
		return false
	}
	for name := range j.Requested {
		if strings.HasPrefix(name, "gres/gpu:") {
			return false
		}
	}
	gres, err := slurm.ParseGres(j.TRESPerNode)
	return err == nil && !slices.ContainsFunc(gres, func(g slurm.Gres) bool {
		return g.Name != "gpu" || g.Type != ""
	})
}

// featuresOf finds, for each GPU model of a partition's usable nodes, the first
// feature that all of its nodes have and no others; "" where there is none. It is
// nil if there are GPUs whose model isn't known.
func featuresOf(nodes []slurm.Node, partition string, profiles *config.Profiles) map[string]string {
	having := make(map[string][]*slurm.Node)
	for i := range nodes {
		n := &nodes[i]
		if n.GPUCount() == 0 || !slices.Contains(n.Partitions, partition) || !n.State.Usable() {
			continue
		}
		p := profileOf(n, profiles)
		if p == nil {
			return nil
		}
		having[p.Name] = append(having[p.Name], n)
	}
	features := make(map[string]string, len(having))
	for model, own := range having {
		features[model] = ""
		for _, f := range own[0].Features {
			has := func(n *slurm.Node) bool { return slices.Contains(n.Features, f) }
			everywhere := !slices.ContainsFunc(own, func(n *slurm.Node) bool { return !has(n) })
			elsewhere := false
			for other, list := range having {
				elsewhere = elsewhere || other != model && slices.ContainsFunc(list, has)
			}
			if everywhere && !elsewhere && slurm.CheckFeature(f) == nil {
				features[model] = f
				break
			}
		}
	}
	return features
}

// leastEnergyFeature returns the feature of the GPU model on which a job needs clearly less
// energy than on each other one.
func leastEnergyFeature(j *slurm.Job, features map[string]string, set *Settings) (feature, why string) {
	best, least, second := "", 0.0, 0.0
	for _, model := range slices.Sorted(maps.Keys(features)) {
		energy, known := set.Energy(j, model)
		switch {
		case !known || energy <= 0:
			return "", ""
		case best == "" || energy < least:
			best, least, second = model, energy, least
		case second == 0 || energy < second:
			second = energy
		}
	}
	if second == 0 || least > (1-minEnergyGain)*second {
		return "", ""
	}
	return features[best], fmt.Sprintf("on %s it needs %.0f %% less energy", best, 100*(1-least/second))
}
