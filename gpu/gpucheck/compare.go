package gpucheck

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/live"
)

// idleTolerance is by which part of the idle power that the catalogue has boards may differ.
const idleTolerance = 0.25

// compare says what the catalogue has otherwise.
func (g *GPU) compare(boards gpu.Boards) {
	p, err := boards(g.Model)
	if err != nil {
		g.addRemark("no GPU model %q is known", g.Model)
		return
	}
	g.Catalogue = p.Name
	differs := func(key, here, there string) {
		if here != there {
			g.Differs = append(g.Differs, Difference{key, here, there, slices.Contains(p.Estimate, key)})
		}
	}
	if here, there := spanText(g.pairs()), spanText(p.Clocks); here != "" && there != "" {
		differs("clocks", here, there)
	}
	if p.CoreLock != nil {
		differs("core_lock", strconv.FormatBool(g.canSet(gpu.CoreClock)), strconv.FormatBool(*p.CoreLock))
	}
	if p.MemoryLock != nil {
		differs("memory_lock", strconv.FormatBool(g.canSet(gpu.MemClock)), strconv.FormatBool(*p.MemoryLock))
	}
	if limit, known := g.LimitW.Get(); known && p.LimitDefault > 0 {
		delivered := float64(p.LimitDefault)
		differs("limit_w_default", fmt.Sprintf("%.0f", limit), fmt.Sprintf("%.0f", delivered))
	}
	for _, b := range []struct {
		key   string
		here  live.Number
		there dvfsmodel.Watt
	}{
		{"limit_w_min", g.LimitWMin, p.LimitMin}, {"limit_w_max", g.LimitWMax, p.LimitMax},
	} {
		if here, known := b.here.Get(); known && b.there > 0 {
			differs(b.key, fmt.Sprintf("%.0f", here), fmt.Sprintf("%.0f", float64(b.there)))
		}
	}
	if p.EnergyScope != "" {
		counts := p.EnergyScope != "none"
		differs("energy_scope", strconv.FormatBool(g.Energy)+" counter", strconv.FormatBool(counts)+" counter")
	}
	if g.Idle == nil || g.InUse != "" || p.IdleW == 0 {
		return
	}
	if mean, known := g.Idle.MeanW.Get(); known {
		far := mean - float64(p.IdleW)
		if far < -idleTolerance*float64(p.IdleW) || far > idleTolerance*float64(p.IdleW) {
			differs("idle_w", fmt.Sprintf("%.1f", mean), fmt.Sprintf("%.1f", float64(p.IdleW)))
		}
	}
}

// canSet reports whether a control can be set.
func (g *GPU) canSet(c gpu.Control) bool { return g.Controls[c].Can }

// pairs returns the GPU's clocks as pairs.
func (g *GPU) pairs() []dvfsmodel.Setting {
	var list []dvfsmodel.Setting
	for _, row := range g.Clocks {
		for _, core := range row.Core {
			list = append(list, dvfsmodel.Setting{Core: core, Mem: row.MemMHz})
		}
	}
	return list
}

// spanText is pairs in short: by memory clock, from which core clock to which, and how many.
func spanText(pairs []dvfsmodel.Setting) string {
	slices.SortFunc(pairs, func(a, b dvfsmodel.Setting) int {
		if a.Mem != b.Mem {
			return int(b.Mem - a.Mem)
		}
		return int(a.Core - b.Core)
	})
	text := ""
	for i := 0; i < len(pairs); {
		first := i
		for i < len(pairs) && pairs[i].Mem == pairs[first].Mem {
			i++
		}
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("%.0f: %d from %.0f to %.0f MHz", float64(pairs[first].Mem), i-first,
			float64(pairs[first].Core), float64(pairs[i-1].Core))
	}
	return text
}
