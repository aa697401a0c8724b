package learn

import (
	"cmp"
	"maps"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
)

// Each node reports its own runs, and nobody can check their times and energies. So no node alone decides
// at which clocks the others run: beside the model of all runs there are models without those of a node, and
// clocks that one of these doesn't allow are for that node alone (decide). A node whose runs contradict those
// of the others is left out.

const (
	// minOtherRuns is the part of the runs from which on there is a model without a node's: with less, a node
	// that contradicts the others is an outlier of their fit.
	minOtherRuns = 0.25
	// maxLeftOutNodes is of how many nodes there are such models, of those first that have most runs.
	maxLeftOutNodes = 16
)

// fitter fits models of one workload.
type fitter struct {
	base    dvfsmodel.Setting
	prior   *pooled.Curves
	caps    bool // power limits are chosen
	common  *commonLimits
	stretch float64
}

// fit is a model of runs, with what it rests on.
type fit struct {
	model *Model
	seen  *evidence
	known *pooled.Posterior
	noise pooled.Noise
}

// fitRuns returns the model of some runs.
func (f *fitter) fitRuns(seen *evidence) (*fit, error) {
	samples := seen.samples()
	fresh, known, noise, err := fitTo(samples, f.base, f.prior)
	if err != nil && len(seen.older) > 0 { // perhaps the work is another one now
		recent := *seen
		recent.older, recent.olderOn = nil, nil
		seen = &recent
		fresh, known, noise, err = fitTo(seen.recent, f.base, f.prior)
	}
	if err != nil {
		return nil, err
	}
	if f.caps {
		fresh.Capped = fitCapped(seen.underLimits, f.base, f.common, f.stretch)
	}
	return &fit{fresh, seen, known, noise}, nil
}

// fitNodes returns the model of all runs, or if these contradict each other of those without one node's,
// and the models without each node that weighs much.
func (f *fitter) fitNodes(seen *evidence) (*fit, error) {
	nodes := seen.nodesByRuns()
	whole, err := f.fitRuns(seen)
	if err != nil {
		var left string
		if whole, left = f.leaveOut(seen, nodes); whole == nil {
			return nil, err
		}
		whole.model.Left = left
		if own, err := f.fitRuns(seen.where(func(node string) bool { return node == left })); err == nil {
			whole.model.Own = own.model
		}
	}
	whole.model.Without = make(map[string]*Model)
	for _, node := range seen.weightyNodes(nodes) {
		if node == whole.model.Left {
			continue
		}
		rest := seen.where(func(other string) bool { return other != node })
		without, err := f.fitRuns(rest)
		if err != nil {
			without, _ = f.leaveOut(
				rest,
				slices.DeleteFunc(rest.nodesByRuns(), func(n string) bool { return n == node }),
			)
		}
		var m *Model
		if without != nil {
			m = without.model
		}
		whole.model.Without[node] = m
	}
	return whole, nil
}

// leaveOut returns the model of the runs without those of one node, which contradict the others; of several
// that can be left out the one with fewest runs. Nil: it isn't one node.
func (f *fitter) leaveOut(seen *evidence, nodes []string) (*fit, string) {
	if len(nodes) < 2 {
		return nil, ""
	}
	for _, node := range slices.Backward(nodes) {
		if rest, err := f.fitRuns(seen.where(func(other string) bool { return other != node })); err == nil {
			return rest, node
		}
	}
	return nil, ""
}

// nodesByRuns returns the nodes of the runs, those with most of them first.
func (e *evidence) nodesByRuns() []string {
	runs := make(map[string]int)
	for _, node := range slices.Concat(e.recentOn, e.olderOn) {
		runs[node]++
	}
	return slices.SortedFunc(maps.Keys(runs), func(a, b string) int {
		return cmp.Or(cmp.Compare(runs[b], runs[a]), cmp.Compare(a, b))
	})
}

// weightyNodes returns the nodes of which a model says much: they alone report runs at some clocks, or they
// report many of all runs.
func (e *evidence) weightyNodes(nodes []string) []string {
	samples, on := e.samples(), slices.Concat(e.recentOn, e.olderOn)
	alone, runs := make(map[dvfsmodel.Setting]string), make(map[string]int)
	for i := range samples {
		runs[on[i]]++
		at := samples[i].At()
		if node, known := alone[at]; known && node != on[i] {
			alone[at] = ""
		} else if !known {
			alone[at] = on[i]
		}
	}
	sole := make(map[string]bool)
	for _, node := range alone {
		sole[node] = true
	}
	heavy := slices.DeleteFunc(slices.Clone(nodes), func(node string) bool {
		return !sole[node] && float64(runs[node]) <= minOtherRuns*float64(len(samples))
	})
	return heavy[:min(len(heavy), maxLeftOutNodes)]
}

// isSameAs reports whether a model predicts what another one does, nearly, and so do those beside it.
func (f *fit) isSameAs(old *Model) bool {
	m := f.model
	samples := f.seen.samples()
	if !m.isLike(old, samples) || !isSameCapped(m.Capped, old.Capped, f.seen.underLimits) ||
		m.Left != old.Left || len(m.Without) != len(old.Without) ||
		!isSamePart(m.Own, old.Own, samples) {
		return false
	}
	for node, without := range m.Without {
		if before, known := old.Without[node]; !known || !isSamePart(without, before, samples) {
			return false
		}
	}
	return true
}

func isSamePart(a, b *Model, samples []dvfsmodel.Sample) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.isLike(b, samples) && isSameCapped(a.Capped, b.Capped, nil)
}

// On returns what is known of a workload for a node: with the models without each other node that weighs much
// in it, and where the node itself was left out, by its own runs.
func (v View) On(node string) View {
	m := v.Model
	switch {
	case m == nil:
		return v
	case node == m.Left && m.Own == nil:
		v.Model, v.Candidates, v.LimitCandidates = nil, nil, nil
		v.Note = "the runs on this node contradict those on others"
		return v
	case node == m.Left:
		v.Model, v.Candidates, v.LimitCandidates = m.Own, nil, nil
		return v
	}
	for _, other := range slices.Sorted(maps.Keys(m.Without)) {
		without := m.Without[other]
		switch {
		case other == node:
		case without == nil:
			v.Only = other
		default:
			v.Without = append(v.Without, without)
		}
	}
	return v
}

// hasRunsBeside reports whether a model is of other runs than a node's, too.
func (m *Model) hasRunsBeside(node string) bool {
	without, weighs := m.Without[node]
	return m.Without != nil && (!weighs || without != nil)
}
