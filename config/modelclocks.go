package config

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
)

// MeasuredClocks returns the clocks of samples: memory clocks with the same core clocks are a group.
func MeasuredClocks(samples []dvfsmodel.Sample) []ClockGroup {
	cores := make(map[dvfsmodel.MHz][]dvfsmodel.MHz)
	var mems []dvfsmodel.MHz
	for _, s := range samples {
		if _, seen := cores[s.Mem]; !seen {
			mems = append(mems, s.Mem)
		}
		cores[s.Mem] = append(cores[s.Mem], s.Core)
	}
	slices.Sort(mems)
	var groups []ClockGroup
	for _, mem := range mems {
		slices.Sort(cores[mem])
		list := slices.Compact(cores[mem])
		same := func(g ClockGroup) bool { return slices.Equal(g.Core, list) }
		if i := slices.IndexFunc(groups, same); i >= 0 {
			groups[i].Mem = append(groups[i].Mem, mem)
			continue
		}
		groups = append(groups, ClockGroup{Mem: []dvfsmodel.MHz{mem}, Core: list})
	}
	return groups
}

// DefaultClocks returns the clocks that count as the model's default ones on a GPU model: the profile's, or
// the nearest measured ones if the model says which clocks were measured. Memory clocks go first. If the
// profile has no clocks, these are the highest.
func (m *Model) DefaultClocks(p *Profile) dvfsmodel.Setting {
	if len(m.Clocks) == 0 {
		return p.Default
	}
	pairs := pairsOf(m.Clocks)
	far := func(a, b dvfsmodel.MHz) dvfsmodel.MHz {
		if b == 0 {
			return -a
		}
		return max(a-b, b-a)
	}
	return slices.MinFunc(pairs, func(a, b dvfsmodel.Setting) int {
		return cmp.Or(cmp.Compare(far(a.Mem, p.Default.Mem), far(b.Mem, p.Default.Mem)),
			cmp.Compare(far(a.Core, p.Default.Core), far(b.Core, p.Default.Core)))
	})
}

// table returns the clocks among which plans choose by the model, and the default ones of these: the
// measured clocks, or all of the profile if the model doesn't say which they are.
func (m *Model) table(p *Profile) (*dvfsmodel.Table, dvfsmodel.Point, error) {
	curve := p.voltageCurve(m.Base)
	if m.Form.Power == dvfsmodel.PaperForm().Power {
		curve = nil
	}
	pairs, at := p.Pairs(), m.DefaultClocks(p)
	if len(m.Clocks) > 0 {
		pairs = pairsOf(m.Clocks)
	}
	table, err := dvfsmodel.NewTable(m.Base, pairs, curve)
	if err != nil {
		return nil, dvfsmodel.Point{}, fmt.Errorf("GPU model %s: %w", p.Name, err)
	}
	scaling, ok := table.Contains(at.Core, at.Mem)
	if !ok {
		return nil, dvfsmodel.Point{}, fmt.Errorf("default clocks of GPU model %s aren't in its clock list", p.Name)
	}
	return table, dvfsmodel.Point{Scaling: scaling, Core: at.Core, Mem: at.Mem}, nil
}

// clocksField is the key of the clocks that were measured.
func (m *Model) clocksField() field {
	return field{
		key: "clocks", expected: clockGroups, doc: "Clocks that were measured, as in [[gpu]]: plans choose among " +
			"them, and the nearest to the GPU model's default ones count as default. Without the key plans choose " +
			"among all clocks of the GPU model.",
		read: func(d *document, path string, v any) { m.Clocks = d.clockGroups("model.clocks", path, v, false) },
	}
}

// checkClocks reports clocks that a file can't have.
func (m *Model) checkClocks() error {
	pairs := pairsOf(m.Clocks)
	if len(m.Clocks) > 0 && len(pairs) == 0 || len(pairs) > maxPairs {
		return fmt.Errorf("%d pairs of clocks, want 1 to %d", len(pairs), maxPairs)
	}
	for _, at := range pairs {
		if !positiveRange.contains(float64(at.Core)) || !positiveRange.contains(float64(at.Mem)) {
			return fmt.Errorf("clocks %v/%v MHz, want %v", float64(at.Core), float64(at.Mem), positiveRange)
		}
	}
	return nil
}
