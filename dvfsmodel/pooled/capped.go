package pooled

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
)

// learnBelief returns what [Learn] makes of known workloads, at settings. Where caps differ, they take
// the place of memory clocks; it is an error if those differ, too.
func learnBelief(known [][]dvfsmodel.Sample, settings []dvfsmodel.Setting) (*Belief, error) {
	capped := slices.ContainsFunc(settings,
		func(s dvfsmodel.Setting) bool { return s.Cap != settings[0].Cap })
	if capped && slices.ContainsFunc(settings,
		func(s dvfsmodel.Setting) bool { return s.Mem != settings[0].Mem }) {
		return nil, errors.New("memory clocks and power caps both vary, want one memory clock or one cap")
	}
	plain := make([]dvfsmodel.Setting, len(settings))
	for i, s := range settings {
		plain[i] = dvfsmodel.Setting{Core: s.Core, Mem: s.Mem}
		if capped {
			plain[i].Mem = dvfsmodel.MHz(s.Cap)
		}
	}
	if capped {
		for j := range known {
			known[j] = slices.Clone(known[j])
			for i := range known[j] {
				known[j][i].Mem = dvfsmodel.MHz(known[j][i].Cap)
			}
		}
	}
	prior, err := learnAt(known, plain)
	if err != nil {
		return nil, err
	}
	return prior.NewBelief(), nil
}

// noClock stands for a clock that nobody knows.
const noClock = 1

// zeroUnknownClocks returns a setting with 0 for a clock that nobody knows.
func zeroUnknownClocks(s dvfsmodel.Setting) dvfsmodel.Setting {
	for _, clock := range [...]*dvfsmodel.MHz{&s.Core, &s.Mem} {
		if *clock == noClock {
			*clock = 0
		}
	}
	return s
}

// FillSettings fills in what runs were at where nothing was asked for: the highest core clock of the
// table and the default memory clock, each as base has it where that isn't 0, or 1 where nobody
// knows, and the highest cap. Samples that are at the same setting then are averaged.
func FillSettings(apps []dvfsmodel.AppSamples, base dvfsmodel.Setting) []dvfsmodel.AppSamples {
	var top dvfsmodel.Setting
	for _, app := range apps {
		for _, s := range app.Samples {
			top.Core, top.Mem, top.Cap = max(top.Core, s.Core), max(top.Mem, s.Mem), max(top.Cap, s.Cap)
		}
	}
	top.Core, top.Mem = cmp.Or(top.Core, base.Core, noClock), cmp.Or(base.Mem, top.Mem, noClock)
	resolved := make([]dvfsmodel.AppSamples, len(apps))
	for j, app := range apps {
		resolved[j].App = app.App
		runs := make(map[dvfsmodel.Setting]float64)
		for _, s := range app.Samples {
			s.Core, s.Mem, s.Cap = cmp.Or(s.Core, top.Core), cmp.Or(s.Mem, top.Mem), cmp.Or(s.Cap, top.Cap)
			runs[s.At()]++
			if n := runs[s.At()]; n > 1 {
				list := resolved[j].Samples
				same := &list[slices.IndexFunc(list, func(o dvfsmodel.Sample) bool { return o.At() == s.At() })]
				same.Time += (s.Time - same.Time) / n
				same.Power += (s.Power - same.Power) / dvfsmodel.Watt(n)
				continue
			}
			resolved[j].Samples = append(resolved[j].Samples, s)
		}
	}
	return resolved
}

// Uncapped returns what was measured under the highest cap of a table, as [FillSettings] has it, for models
// that know nothing of caps; the default clocks, of the table where base is 0; and that cap, 0
// where caps don't differ.
func Uncapped(
	apps []dvfsmodel.AppSamples, base dvfsmodel.Setting,
) (plain []dvfsmodel.AppSamples, at dvfsmodel.Setting, highest dvfsmodel.Watt) {
	apps = FillSettings(apps, base)
	lowest := dvfsmodel.Watt(math.Inf(1))
	var top dvfsmodel.Setting
	for _, app := range apps {
		for _, s := range app.Samples {
			top.Core, top.Mem = max(top.Core, s.Core), max(top.Mem, s.Mem)
			lowest, highest = min(lowest, s.Cap), max(highest, s.Cap)
		}
	}
	at = dvfsmodel.Setting{Core: cmp.Or(base.Core, top.Core), Mem: cmp.Or(base.Mem, top.Mem)}
	if !(lowest < highest) {
		return apps, at, 0
	}
	for i := range apps {
		apps[i].Samples = slices.DeleteFunc(apps[i].Samples,
			func(s dvfsmodel.Sample) bool { return s.Cap < highest })
	}
	return apps, at, highest
}

// allCapSettings returns all settings, in the order of [Prior.Settings] and then by cap.
func allCapSettings(workloads [][]dvfsmodel.Sample) []dvfsmodel.Setting {
	var all []dvfsmodel.Setting
	for _, samples := range workloads {
		for _, s := range samples {
			all = append(all, s.At())
		}
	}
	slices.SortFunc(all, func(a, b dvfsmodel.Setting) int {
		return cmp.Or(cmp.Compare(a.Cap, b.Cap), compareSettings(a, b))
	})
	return slices.Compact(all)
}

// Probes of a dense table are so far apart, in the logarithm of a clock or cap: its settings are
// mostly within denseStep of another one, and what neighbours take is nearly the same.
const (
	denseStep   = 0.03
	probesApart = 0.08
)

// isDense reports whether most settings have a neighbour within denseStep.
func isDense(settings []dvfsmodel.Setting) bool {
	near := 0
	for i := range settings {
		for k := range settings {
			if i != k && distance(&settings[i], &settings[k]) < denseStep {
				near++
				break
			}
		}
	}
	return 2*near > len(settings)
}

// distance returns the largest difference of logarithms of clocks and caps.
func distance(a, b *dvfsmodel.Setting) float64 {
	far := max(math.Abs(math.Log(float64(a.Core/b.Core))), math.Abs(math.Log(float64(a.Mem/b.Mem))))
	if a.Cap != b.Cap {
		far = max(far, math.Abs(math.Log(float64(a.Cap/b.Cap))))
	}
	return far
}
