package config

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
)

// clocksField is the table of the clock pairs of the constant arm. GPU models are
// looked up when all of the file is read: it may name some of its own.
func (l *Live) clocksField() field {
	const wanted = "a core clock in MHz, or [core, mem]"
	f := field{
		key: "constant_clocks", expected: "a table of GPU models, each with " + wanted,
		doc: "The clocks of that arm, MHz, by GPU model, such as {V100 = 1087, A100 = [1155, 1215]}: core, or core and\n" +
			"memory. epplan plan --json finds such pairs for a batch: constant.clocks. Other models " +
			"have no such arm.",
	}
	f.read = func(d *document, path string, v any) {
		values, ok := v.(map[string]any)
		if !ok {
			d.faultAtType(path, v, f.expected)
			return
		}
		l.ConstantClocks = make(map[string]dvfsmodel.Setting, len(values))
		for model, v := range values {
			list, several := v.([]any)
			if !several {
				list = []any{v}
			}
			var clocks [2]float64
			fine := len(list) > 0 && len(list) <= len(clocks)
			for i := 0; fine && i < len(list); i++ {
				x, isNumber := toNumber(list[i])
				clocks[i], fine = x, isNumber && positiveRange.contains(x)
			}
			if !fine {
				d.faultAtType(joinKey(path, model), v, wanted)
				continue
			}
			l.ConstantClocks[model] = dvfsmodel.Setting{
				Core: dvfsmodel.MHz(clocks[0]), Mem: dvfsmodel.MHz(clocks[1]),
			}
		}
	}
	f.format = func() string {
		return inlineTable(l.ConstantClocks, func(pair dvfsmodel.Setting) string {
			if pair.Mem == 0 {
				return numberText(float64(pair.Core))
			}
			return numbersText([]dvfsmodel.MHz{pair.Core, pair.Mem})
		})
	}
	return f
}

// checkConstant notes arms that have more than all jobs, and clocks of the constant
// arm that are missing or that no GPU of the model has. It leaves the pairs by the
// names of the models' profiles.
func (l *Live) checkConstant(d *document, profiles *Profiles) {
	const path = "live.constant_clocks"
	if l.HoldOut+l.ConstantArm > 1+rounding {
		d.faultAt("live.constant_arm",
			"live.constant_arm is %v, want at most %.4g: hold_out is %v, and no job is in two arms",
			l.ConstantArm, 1-l.HoldOut, l.HoldOut)
	}
	if _, named := d.offsets[path]; l.ConstantArm > 0 && len(l.ConstantClocks) == 0 && !named {
		d.faultAt("live.constant_arm",
			"live.constant_arm is %v, want constant_clocks with it, such as {V100 = [1087, 877]}: "+
				"epplan plan --json finds such pairs for a batch of your jobs (constant.clocks)",
			l.ConstantArm)
	} else if l.ConstantArm > 0 && len(l.ConstantClocks) == 0 {
		d.faultAt(path, "live.constant_clocks names no clocks, want those of a GPU model at least: "+
			"live.constant_arm is %v", l.ConstantArm)
	}
	byName := make(map[string]dvfsmodel.Setting, len(l.ConstantClocks))
	for _, model := range slices.Sorted(maps.Keys(l.ConstantClocks)) {
		at, pair := joinKey(path, model), l.ConstantClocks[model]
		p, err := profiles.Lookup(model)
		switch {
		case err != nil:
			d.fault(d.keyPosition(at), "live.constant_clocks: %v", err)
		case byName[p.Name] != dvfsmodel.Setting{}:
			d.fault(d.keyPosition(at), "live.constant_clocks has GPU model %s twice", quoteName(p.Name))
		default:
			l.checkPair(d, at, p, pair)
			byName[p.Name] = pair
		}
	}
	if l.ConstantClocks = byName; len(byName) == 0 {
		l.ConstantClocks = nil
	}
}

// checkPair notes clocks that GPUs of a model don't have, or that may not be set.
func (l *Live) checkPair(d *document, at string, p *Profile, pair dvfsmodel.Setting) {
	if pair.Mem == 0 {
		pair.Mem = p.Default.Mem
	}
	pairs := p.Pairs()
	switch {
	case len(pairs) == 0, slices.Contains(p.Estimate, "clocks"):
		return // only its devices know
	case !slices.Contains(pairs, pair):
		near := nearestPair(pairs, pair)
		d.faultAt(at, "live.constant_clocks: GPU model %s has no core %v MHz with memory %v MHz, the "+
			"nearest it has is [%v, %v]; "+
			"should its GPUs have them, list their clocks in a [[gpu]] table",
			quoteName(p.Name), float64(pair.Core), float64(pair.Mem), float64(near.Core), float64(near.Mem))
	case !l.Allows(pair.Core, pair.Mem, p.Default):
		d.faultAt(at, "live.constant_clocks: core %v MHz with memory %v MHz of GPU model %s is outside "+
			"min_core to max_core, or min_mem to max_mem",
			float64(pair.Core), float64(pair.Mem), quoteName(p.Name))
	}
}

// nearestPair is the pair of a list that is relatively nearest to another one.
func nearestPair(pairs []dvfsmodel.Setting, to dvfsmodel.Setting) dvfsmodel.Setting {
	apart := func(p dvfsmodel.Setting) float64 {
		return math.Abs(math.Log(float64(p.Core/to.Core))) + math.Abs(math.Log(float64(p.Mem/to.Mem)))
	}
	return slices.MinFunc(pairs, func(a, b dvfsmodel.Setting) int { return cmp.Compare(apart(a), apart(b)) })
}
