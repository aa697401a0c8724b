package score

import (
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
)

// WeightedScorer is a scorer and how much its score counts.
type WeightedScorer struct {
	Scorer Scorer
	Weight float64 // above 0
}

// Rule is a mix of scorers. The best node is the one with the greatest sum of
// weight times stretched score; of equally good ones, the first. The scores of
// a rule of one part are compared as they are: stretching keeps their order.
//
// A rule belongs to one chooser: its scorers may remember things.
type Rule struct {
	Name  string
	Parts []WeightedScorer
	// Weigh, if there, sets the weights of the parts before every choice.
	Weigh Weigher
}

// Weigher chooses the weights of a rule's parts by the state of the cluster.
type Weigher interface {
	Weigh(s *fleet.State, weights []float64)
}

// Adaptive is a scorer whose scores depend on slowly changing facts of the whole
// cluster as well, such as its load. Choosers call Update before each choice
// and forget what they remember of scores when it changed.
type Adaptive interface {
	Scorer
	Update(s *fleet.State) (changed bool)
}

// Absolute is embedded by scorers that don't compare nodes.
type Absolute struct{}

// Stretch returns the score.
func (Absolute) Stretch(score, _, _ float64) float64 { return score }

func (Absolute) absolute() {}

// activeRule is a rule at work: its weights now.
type activeRule struct {
	parts   []WeightedScorer
	weigh   Weigher
	weights []float64
	updates []Adaptive
	ranked  bool // totals don't depend on which nodes there are
}

func newActiveRule(r Rule) activeRule {
	m := activeRule{
		parts: r.Parts, weigh: r.Weigh, weights: make([]float64, len(r.Parts)), ranked: r.Weigh == nil,
	}
	for i, p := range r.Parts {
		m.weights[i] = p.Weight
		if a, ok := p.Scorer.(Adaptive); ok {
			m.updates = append(m.updates, a)
		}
		_, absolute := p.Scorer.(interface{ absolute() })
		m.ranked = m.ranked && absolute
	}
	m.ranked = m.ranked || len(r.Parts) == 1
	return m
}

// adapt brings weights and scorers up to date; it reports whether scores that
// are remembered are stale.
func (m *activeRule) adapt(s *fleet.State) (stale bool) {
	if m.weigh != nil {
		m.weigh.Weigh(s, m.weights)
	}
	for _, a := range m.updates {
		stale = a.Update(s) || stale
	}
	return stale
}

// score fills in what each part makes of a node.
func (m *activeRule) score(d *fleet.Demand, n *fleet.Node, scores []float64) {
	for i := range m.parts {
		scores[i], _ = m.parts[i].Scorer.Score(d, n)
	}
}

// total returns a node's worth when the parts' scores lie within bounds.
func (m *activeRule) total(scores []float64, bounds []scoreRange) float64 {
	if len(scores) == 1 {
		return scores[0]
	}
	sum := 0.0
	for i, x := range scores {
		sum += float64(m.weights[i] * m.parts[i].Scorer.Stretch(x, bounds[i].lowest, bounds[i].highest))
	}
	return sum
}

// scoreRange is the range of a part's scores.
type scoreRange struct{ lowest, highest float64 }

// chooseGPUs chooses the GPUs of a node: the lowest idle ones for tasks of whole
// GPUs. A task that shares one gets what the part of the greatest weight says
// among those that care, FGD's before others' of the same weight; when none
// cares, the tightest fit.
func (m *activeRule) chooseGPUs(d *fleet.Demand, n *fleet.Node) planner.GPUSet {
	switch {
	case d.GPUs == 0:
		return 0
	case !d.IsShared():
		return n.WholeGPUs(d.GPUs)
	}
	lead, best := planner.GPUSet(0), -1
	for i := range m.parts {
		if best >= 0 && !m.leadsChoice(i, best) {
			continue
		}
		if _, set := m.parts[i].Scorer.Score(d, n); set != 0 {
			lead, best = set, i
		}
	}
	if best < 0 {
		return n.TightestGPU(d.Milli)
	}
	return lead
}

// leadsChoice reports whether part i has a greater say in the GPUs than part j before it.
func (m *activeRule) leadsChoice(i, j int) bool {
	if m.weights[i] != m.weights[j] {
		return m.weights[i] > m.weights[j]
	}
	_, fgd := m.parts[i].Scorer.(*FGD)
	return fgd
}
