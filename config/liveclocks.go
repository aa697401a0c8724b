package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/spelling"
)

// clocksField returns the table of the clock pairs of the constant arm. GPU models are
// looked up when all of the file is read: it may name some of its own.
func (l *Live) clocksField() field {
	const wanted = "a core clock in MHz, or [core, mem]"
	f := field{
		key: "constant_clocks", expected: "a table of GPU models, each with " + wanted,
		doc: "That group's clocks, such as {V100 = 1087, A100 = [1155, 1215]}. epplan plan --json finds such\n" +
			"pairs (constant.clocks). Other models have no such group.",
	}
	f.read = func(d *document, path string, v any) {
		values, ok := v.(map[string]any)
		if !ok {
			d.faultAtType(path, v, f.expected)
			return
		}
		l.ConstantClocks = make(map[string]dvfsmodel.Setting, len(values))
		for model, v := range values {
			pair, ok := clockPair(v)
			if !ok {
				d.faultAtType(joinKey(path, model), v, wanted)
				continue
			}
			l.ConstantClocks[model] = pair
		}
	}
	f.format = func() string { return inlineTable(l.ConstantClocks, pairText) }
	return f
}

// clockPair reads a core clock, or an array of a core and a memory clock.
func clockPair(v any) (pair dvfsmodel.Setting, ok bool) {
	list, several := v.([]any)
	if !several {
		list = []any{v}
	}
	var clocks [2]float64
	ok = len(list) > 0 && len(list) <= len(clocks)
	for i := 0; ok && i < len(list); i++ {
		x, isNumber := toNumber(list[i])
		clocks[i], ok = x, isNumber && positiveRange.contains(x)
	}
	if !ok {
		return dvfsmodel.Setting{}, false
	}
	return dvfsmodel.Setting{Core: dvfsmodel.MHz(clocks[0]), Mem: dvfsmodel.MHz(clocks[1])}, true
}

// pairText writes clocks so that clockPair reads them.
func pairText(pair dvfsmodel.Setting) string {
	if pair.Mem == 0 {
		return numberText(float64(pair.Core))
	}
	return numbersText([]dvfsmodel.MHz{pair.Core, pair.Mem})
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
	l.ConstantClocks = byProfile(d, path, l.ConstantClocks, profiles,
		func(at string, p *Profile, pair dvfsmodel.Setting) { l.checkPair(d, at, p, pair) })
}

// byProfile returns clocks of GPU models by the names of the models' profiles, each of which check has
// looked at, and notes models that are unknown or named twice. It returns nil if there are none.
func byProfile(
	d *document, path string, clocks map[string]dvfsmodel.Setting, profiles *Profiles,
	check func(at string, p *Profile, clocks dvfsmodel.Setting),
) map[string]dvfsmodel.Setting {
	var byName map[string]dvfsmodel.Setting
	for _, model := range slices.Sorted(maps.Keys(clocks)) {
		at := joinKey(path, model)
		p, err := profiles.Lookup(model)
		switch {
		case err != nil:
			d.fault(d.keyPosition(at), "%s: %v", path, err)
		case byName[p.Name] != dvfsmodel.Setting{}:
			d.fault(d.keyPosition(at), "%s has GPU model %s twice", path, quoteName(p.Name))
		default:
			check(at, p, clocks[model])
			if byName == nil {
				byName = make(map[string]dvfsmodel.Setting, len(clocks))
			}
			byName[p.Name] = clocks[model]
		}
	}
	return byName
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
	case !l.AllowsClocks(pair.Core, pair.Mem, p.Default):
		d.faultAt(at, "live.constant_clocks: core %v MHz with memory %v MHz of GPU model %s is outside "+
			"min_core to max_core, or min_mem to max_mem",
			float64(pair.Core), float64(pair.Mem), quoteName(p.Name))
	default:
		if site, named := l.SiteClocksOf(p.Name, "", ""); named && pair.AtMost(site) != pair {
			d.faultAt(at, "live.constant_clocks: core %v MHz with memory %v MHz of GPU model %s is above what "+
				"site_clocks lets it run at", float64(pair.Core), float64(pair.Mem), quoteName(p.Name))
		}
	}
}

// nearestPair returns the pair of a list that is relatively nearest to another one.
func nearestPair(pairs []dvfsmodel.Setting, to dvfsmodel.Setting) dvfsmodel.Setting {
	apart := func(p dvfsmodel.Setting) float64 {
		return math.Abs(math.Log(float64(p.Core/to.Core))) + math.Abs(math.Log(float64(p.Mem/to.Mem)))
	}
	return slices.MinFunc(pairs, func(a, b dvfsmodel.Setting) int { return cmp.Compare(apart(a), apart(b)) })
}

// SiteClocksOf returns the highest clocks of a GPU model on a node in any of some partitions, with commas
// between; a clock of zero bounds nothing. The lowest counts of what the configuration says of the model, the
// partitions and the node. named reports whether it says anything: clocks at the top of the GPU's table say
// that the site has no limit there.
func (l *Live) SiteClocksOf(model, partitions, node string) (ceiling dvfsmodel.Setting, named bool) {
	lower := func(by map[string]dvfsmodel.Setting) {
		if c, ok := by[model]; ok {
			ceiling, named = lowerCeilings(ceiling, c), true
		}
	}
	lower(l.SiteClocks.Models)
	for partition := range strings.SplitSeq(partitions, ",") {
		lower(l.SiteClocks.Partitions[partition])
	}
	for _, by := range l.SiteClocks.byNode[node] {
		lower(by)
	}
	return ceiling, named
}

// Name reports whether a GPU model has site clocks anywhere.
func (s *SiteClocks) Name(model string) bool {
	if _, named := s.Models[model]; named {
		return true
	}
	for _, kind := range [...]map[string]map[string]dvfsmodel.Setting{s.Partitions, s.Nodes} {
		for _, by := range kind {
			if _, named := by[model]; named {
				return true
			}
		}
	}
	return false
}

// SiteProfiles returns the GPU models that the configuration knows, with no clocks above the site's: the
// default ones of a model that the site limits everywhere are the highest that it lets it run at.
func (c *Config) SiteProfiles() *Profiles {
	var limited []Profile
	for i := range c.profiles.list {
		p := c.profiles.list[i]
		if site, named := c.Live.SiteClocks.Models[p.Name]; named && p.dropClocksAbove(site) {
			limited = append(limited, p)
		}
	}
	return c.profiles.With(newProfiles(limited, nil))
}

// dropClocksAbove takes away the clocks above a ceiling, and reports whether there were some and others stay.
func (p *Profile) dropClocksAbove(site dvfsmodel.Setting) bool {
	var clocks []ClockGroup
	base := dvfsmodel.Setting{}
	most := p.Default.AtMost(site)
	for _, g := range p.Clocks {
		if g.Mem = clocksUpTo(g.Mem, site.Mem); len(g.Mem) == 0 {
			continue
		}
		if g.Core = clocksUpTo(g.Core, site.Core); len(g.Core) == 0 {
			continue
		}
		clocks = append(clocks, g)
		at := dvfsmodel.Setting{
			Core: highestClock(clocksUpTo(g.Core, most.Core)),
			Mem:  highestClock(clocksUpTo(g.Mem, most.Mem)),
		}
		if at.Core > 0 && !g.Unplanned && (at.Mem > base.Mem || at.Mem == base.Mem && at.Core > base.Core) {
			base = at
		}
	}
	if base == (dvfsmodel.Setting{}) {
		return false
	}
	p.Default, p.Clocks = base, clocks
	return true
}

// clocksUpTo returns the clocks that are no higher than a ceiling; 0: all of them.
func clocksUpTo(clocks []dvfsmodel.MHz, ceiling dvfsmodel.MHz) []dvfsmodel.MHz {
	return slices.DeleteFunc(slices.Clone(clocks),
		func(f dvfsmodel.MHz) bool { return ceiling > 0 && f > ceiling })
}

// highestClock returns the highest of some clocks; 0 of none.
func highestClock(clocks []dvfsmodel.MHz) dvfsmodel.MHz {
	if len(clocks) == 0 {
		return 0
	}
	return slices.Max(clocks)
}

// lowerCeilings returns the lower of two ceilings, clock by clock.
func lowerCeilings(a, b dvfsmodel.Setting) dvfsmodel.Setting {
	lower := func(a, b dvfsmodel.MHz) dvfsmodel.MHz {
		if a == 0 || b > 0 && b < a {
			return b
		}
		return a
	}
	return dvfsmodel.Setting{Core: lower(a.Core, b.Core), Mem: lower(a.Mem, b.Mem)}
}

const (
	sitePath       = "live.site_clocks"
	siteNodes      = "nodes"
	sitePartitions = "partitions"
	siteWanted     = "the highest core clock in MHz, [core, mem] or {core_max_mhz, mem_max_mhz}"
)

func (s *SiteClocks) field() field {
	f := field{
		key: "site_clocks", expected: "a table of GPU models, each with " + siteWanted +
			"; nodes and partitions are " +
			"tables of such tables",
		doc: "The site's limits on clocks, such as {V100 = 1237, A100 = {core_max_mhz = 1290, mem_max_mhz =\n" +
			"1215}}. epd sets them on GPUs without a job, restores them after each job, takes them for the\n" +
			"default clocks, and sets nothing above. [live.site_clocks.nodes.\"gpu[01-16]\"] and\n" +
			"[live.site_clocks.partitions.debug] hold for those alone; the lowest counts. A model's highest\n" +
			"clock means no limit.",
	}
	f.read = func(d *document, path string, v any) {
		values, ok := v.(map[string]any)
		if !ok {
			d.faultAtType(path, v, f.expected)
			return
		}
		own := maps.Clone(values)
		for key, to := range map[string]*map[string]map[string]dvfsmodel.Setting{
			sitePartitions: &s.Partitions, siteNodes: &s.Nodes,
		} {
			v, ok := own[key]
			if !ok {
				continue
			}
			delete(own, key)
			if _, ok := v.(map[string]any); !ok {
				d.faultAtType(joinKey(path, key), v, "a table of "+key+", each a table of GPU models")
				continue
			}
			partitionsField(key, "", "", to, readCeilings, nil).read(d, joinKey(path, key), v)
		}
		s.Models = readCeilings(d, path, own)
	}
	f.format = s.text
	return f
}

// readCeilings reads the ceilings of a table of GPU models.
func readCeilings(d *document, path string, v any) map[string]dvfsmodel.Setting {
	values, ok := v.(map[string]any)
	if !ok {
		d.faultAtType(path, v, "a table of GPU models, each with "+siteWanted)
		return nil
	}
	var ceilings map[string]dvfsmodel.Setting
	for _, model := range slices.Sorted(maps.Keys(values)) {
		at, v := joinKey(path, model), values[model]
		c, ok := clockPair(v)
		if table, isTable := v.(map[string]any); isTable {
			d.readFields("["+at+"]", at, table, []field{
				numberField("core_max_mhz", "", &c.Core, positiveRange),
				numberField("mem_max_mhz", "", &c.Mem, positiveRange),
			})
			ok = len(table) > 0
		}
		if !ok {
			d.faultAtType(at, v, siteWanted)
			continue
		}
		if ceilings == nil {
			ceilings = make(map[string]dvfsmodel.Setting, len(values))
		}
		ceilings[model] = c
	}
	return ceilings
}

func ceilingText(c dvfsmodel.Setting) string {
	if c.Core == 0 {
		return "{mem_max_mhz = " + numberText(float64(c.Mem)) + "}"
	}
	return pairText(c)
}

func ceilingsText(ceilings map[string]dvfsmodel.Setting) string {
	return inlineTable(ceilings, ceilingText)
}

// text returns the whole table on one line.
func (s *SiteClocks) text() string {
	parts := make(map[string]string, len(s.Models))
	for model, c := range s.Models {
		parts[model] = ceilingText(c)
	}
	if len(s.Nodes) > 0 {
		parts[siteNodes] = inlineTable(s.Nodes, ceilingsText)
	}
	if len(s.Partitions) > 0 {
		parts[sitePartitions] = inlineTable(s.Partitions, ceilingsText)
	}
	return inlineTable(parts, strings.Clone)
}

// check notes GPU models, clocks and hostlists that aren't known, and leaves the models by the names of their
// profiles.
func (s *SiteClocks) check(d *document, profiles *Profiles) {
	s.checkKeys(d, profiles)
	s.Models = byProfile(d, sitePath, s.Models, profiles, checkCeiling(d))
	for partition, ceilings := range s.Partitions {
		at := joinKey(joinKey(sitePath, sitePartitions), partition)
		s.Partitions[partition] = byProfile(d, at, ceilings, profiles, checkCeiling(d))
	}
	if len(s.Nodes) > 0 {
		s.byNode = make(map[string][]map[string]dvfsmodel.Setting)
	}
	for _, list := range slices.Sorted(maps.Keys(s.Nodes)) {
		at := joinKey(joinKey(sitePath, siteNodes), list)
		s.Nodes[list] = byProfile(d, at, s.Nodes[list], profiles, checkCeiling(d))
		names, err := slurm.ExpandHostlist(list)
		if err != nil {
			d.fault(d.keyPosition(at), "%s: %v", at, err)
		}
		for _, name := range names {
			s.byNode[name] = append(s.byNode[name], s.Nodes[list])
		}
	}
}

// checkKeys notes a key that was meant to be nodes or partitions, which would be an unknown GPU model else.
func (s *SiteClocks) checkKeys(d *document, profiles *Profiles) {
	for _, key := range slices.Sorted(maps.Keys(s.Models)) {
		meant := spelling.Nearest(key, []string{siteNodes, sitePartitions})
		if meant != "" && profiles.Find(key) == nil {
			at := joinKey(sitePath, key)
			d.unknownKey("["+sitePath+"]", at, key, suggestNames(meant, nil, strings.Clone))
			delete(s.Models, key)
		}
	}
}

// checkCeiling returns a function that notes clocks that GPUs of a model don't have.
func checkCeiling(d *document) func(at string, p *Profile, c dvfsmodel.Setting) {
	return func(at string, p *Profile, c dvfsmodel.Setting) {
		if len(p.Clocks) == 0 || slices.Contains(p.Estimate, "clocks") {
			return // only its devices know
		}
		var core, mem []dvfsmodel.MHz
		for _, g := range p.Clocks {
			core, mem = append(core, g.Core...), append(mem, g.Mem...)
		}
		for _, of := range []struct {
			name, key string
			clock     dvfsmodel.MHz
			has       []dvfsmodel.MHz
		}{{"core", "core_max_mhz", c.Core, core}, {"memory", "mem_max_mhz", c.Mem, mem}} {
			if of.clock == 0 || slices.Contains(of.has, of.clock) {
				continue
			}
			near := fmt.Sprintf("its lowest is %v", float64(slices.Min(of.has)))
			below := slices.DeleteFunc(slices.Clone(of.has), func(f dvfsmodel.MHz) bool { return f > of.clock })
			if len(below) > 0 {
				near = fmt.Sprintf("the nearest below is %v", float64(slices.Max(below)))
			}
			d.faultAt(joinKey(at, of.key), "%s: GPU model %s has no %s clock of %v MHz, %s; should its GPUs have it, "+
				"list their clocks in a [[gpu]] table", sitePath, quoteName(p.Name), of.name, float64(of.clock), near)
		}
	}
}
