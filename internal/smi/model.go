package smi

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
)

// Options say what an output leaves open.
type Options struct {
	Name  string           // of its only GPU model, where the output names none
	Known *config.Profiles // GPU models that are known
}

// Model is a GPU model of an output.
type Model struct {
	Profile config.Profile
	GPUs    int
	Notes   []string // what was estimated or left out, and why
}

// models folds the devices to one for each GPU model, in the order of the output.
func (r *reader) models(options *Options) ([]Model, error) {
	byName := make(map[string][]*device)
	var names []string
	for _, d := range r.devices {
		r.line = d.line
		if d.name == "" {
			d.name = options.Name
		}
		if d.name == "" {
			return nil, r.faultf("GPU %s has no name, as nvidia-smi -q -d prints none, want --name or the "+
				"output of nvidia-smi -L with it", d.id)
		}
		if byName[d.name] == nil {
			names = append(names, d.name)
		}
		byName[d.name] = append(byName[d.name], d)
	}
	if options.Name != "" && len(names) > 1 {
		return nil, fmt.Errorf("%s: GPUs of %d models, want one with --name", r.file, len(names))
	}
	var models []Model
	taken := make(map[string]string) // GPU model by profile
	for _, name := range names {
		m, err := r.model(byName[name], options)
		if err != nil {
			return nil, err
		}
		if other, twice := taken[m.Profile.Name]; twice {
			return nil, fmt.Errorf("%s: %q and %q are both %s, want --name for one of them at a time", r.file,
				other, name, m.Profile.Name)
		}
		taken[m.Profile.Name] = name
		models = append(models, m)
	}
	return models, nil
}

// model makes the profile of devices of one name. What they disagree about is an error, but for
// power limits, of which those count that all of them take.
func (r *reader) model(all []*device, options *Options) (Model, error) {
	first := *all[0]
	m := Model{GPUs: len(all)}
	for _, d := range all[1:] {
		r.line = d.line
		if len(d.pairs) > 0 && len(first.pairs) > 0 && !maps.Equal(d.pairs, first.pairs) ||
			!slices.Equal(d.levels.core, first.levels.core) && len(d.levels.core)+len(first.levels.core) > 0 &&
				!haveSameEnds(d.levels.core, first.levels.core) {
			return m, r.faultf("this %s has other clocks than the one on line %d, want one model with one table",
				d.name, first.line)
		}
		first.merge(d)
		if d.limit != all[0].limit && len(m.Notes) == 0 {
			m.Notes = append(m.Notes, d.name+": the power limits of its GPUs differ: those stand that all take")
		}
	}
	r.line = first.line
	known := options.Known.Find(first.name)
	b := builder{device: &first, known: known, model: &m}
	if err := b.build(r); err != nil {
		return m, err
	}
	m.Profile.Source = r.source(&first, len(all), b.sources)
	return m, nil
}

// haveSameEnds reports whether levels have the same ends: the one between is what runs.
func haveSameEnds(a, b []dvfsmodel.MHz) bool {
	return len(a) > 0 && len(b) > 0 && a[0] == b[0] && slices.Max(a) == slices.Max(b)
}

// merge adds what another GPU of the same model says.
func (d *device) merge(other *device) {
	if len(d.pairs) == 0 {
		d.pairs = other.pairs
	}
	if len(d.levels.core) == 0 {
		d.levels = other.levels
	}
	d.architecture = cmp.Or(d.architecture, other.architecture)
	d.application = cmp.Or(d.application, other.application)
	d.boost, d.top = cmp.Or(d.boost, other.boost), cmp.Or(d.top, other.top)
	d.limit.Min = max(d.limit.Min, other.limit.Min)
	d.limit.Default = lowerKnown(d.limit.Default, other.limit.Default)
	d.limit.Max = lowerKnown(d.limit.Max, other.limit.Max)
	if other.isIdle && other.draw > 0 && (!d.isIdle || d.draw == 0 || other.draw < d.draw) {
		d.draw, d.isIdle = other.draw, true
	}
	d.isModule = d.isModule || other.isModule
}

func lowerKnown(a, b dvfsmodel.Watt) dvfsmodel.Watt {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// source says where the values of a model come from.
func (r *reader) source(d *device, gpus int, parts []string) string {
	what := "1 GPU"
	if gpus > 1 {
		what = strconv.Itoa(gpus) + " GPUs"
	}
	return strings.Join(append([]string{fmt.Sprintf("output of its driver's tool about %s %s", what, d.name)},
		parts...), "; ")
}

// builder makes a profile of a device.
type builder struct {
	device  *device
	known   *config.Profile // nil: nobody knows the board
	model   *Model
	sources []string
}

func (b *builder) estimate(why string, keys ...string) {
	p := &b.model.Profile
	p.Estimate = append(p.Estimate, keys...)
	b.sources = append(b.sources, why)
	b.model.Notes = append(b.model.Notes, p.Name+": "+strings.Join(keys, ", ")+" estimated: "+why)
}

var makerWords = regexp.MustCompile(`(?i)^(?:nvidia|tesla|geforce|amd|radeon|instinct)[ -]+`)

func (b *builder) build(r *reader) error {
	d, p := b.device, &b.model.Profile
	p.HostW = defaultHostW
	p.Vendor = "nvidia"
	if len(d.levels.core) > 0 || len(d.levels.mem) > 0 {
		p.Vendor = "amd"
	}
	p.Name = shortName(d.name)
	if b.known != nil {
		p.Name, p.MemoryGB, p.HostW = b.known.Name, b.known.MemoryGB, b.known.HostW
		p.Aliases = slices.Clone(b.known.Aliases)
	}
	if !slices.Contains(p.Aliases, d.name) && p.Name != d.name {
		p.Aliases = append(p.Aliases, d.name)
	}
	if err := b.setClocks(r); err != nil {
		return err
	}
	p.PowerLimit = d.limit
	if p.PowerLimit.Default == 0 {
		p.PowerLimit.Default = p.PowerLimit.Max
	}
	if l := p.PowerLimit; l.Min > l.Default && l.Default > 0 || l.Max > 0 && l.Default > l.Max {
		return r.faultf("the power limits of %s are %v to %v W, %v by default, want the default between the others",
			d.name, float64(l.Min), float64(l.Max), float64(l.Default))
	}
	b.setPower()
	b.setLocks()
	return nil
}

// shortName returns a driver's name without the maker's words.
func shortName(name string) string {
	for {
		short := makerWords.ReplaceAllString(name, "")
		if short == name || short == "" {
			return strings.ReplaceAll(name, " ", "-")
		}
		name = short
	}
}

// defaultHostW is the host power of a GPU model that doesn't say, as for a [[gpu]] table without it.
const defaultHostW dvfsmodel.Watt = 25

func (b *builder) setClocks(r *reader) error {
	if len(b.device.levels.core) > 0 {
		return b.setLevels(r)
	}
	d, p := b.device, &b.model.Profile
	if len(d.pairs) == 0 {
		return r.faultf("%s has no supported clocks, want the output of nvidia-smi -q -x, or of nvidia-smi -q "+
			"followed by that of nvidia-smi -q -d SUPPORTED_CLOCKS", d.name)
	}
	core := make(map[dvfsmodel.MHz][]dvfsmodel.MHz)
	for pair := range d.pairs {
		core[pair.Mem] = append(core[pair.Mem], pair.Core)
	}
	mems := slices.SortedFunc(maps.Keys(core), func(a, b dvfsmodel.MHz) int { return cmp.Compare(b, a) })
	p.Default.Mem = b.defaultMem(mems)
	for _, mem := range mems {
		p.Clocks = append(p.Clocks, config.ClockGroup{
			Mem: []dvfsmodel.MHz{mem}, Core: slices.Sorted(slices.Values(core[mem])),
			Unplanned: mem != p.Default.Mem,
		})
	}
	if len(mems) > 1 {
		b.model.Notes = append(b.model.Notes, fmt.Sprintf("%s: plans choose clocks with memory at %v MHz "+
			"alone, as nothing is known of the others: change plan = false where you measured them", p.Name,
			float64(p.Default.Mem)))
	}
	b.setDefaultCore(core[p.Default.Mem])
	return nil
}

// defaultMem returns the memory clock at which jobs run: the top one, or, of boards that have another
// close below it, that one: CUDA runs these in P2.
func (b *builder) defaultMem(mems []dvfsmodel.MHz) dvfsmodel.MHz {
	const near = 0.9
	if b.known != nil && slices.Contains(mems, b.known.Default.Mem) {
		return b.known.Default.Mem
	}
	if len(mems) > 1 && mems[1] >= near*mems[0] {
		b.estimate(fmt.Sprintf("CUDA runs boards with two memory clocks so close in P2, at %v and not at %v MHz",
			float64(mems[1]), float64(mems[0])), "default_mem_mhz")
		return mems[1]
	}
	return mems[0]
}

// setDefaultCore takes the clock that the maker promises at most, the one of applications, or the top one.
func (b *builder) setDefaultCore(table []dvfsmodel.MHz) {
	d, p := b.device, &b.model.Profile
	slices.Sort(table)
	below := func(clock dvfsmodel.MHz) dvfsmodel.MHz {
		best := table[0]
		for _, c := range table {
			if c <= clock {
				best = c
			}
		}
		return best
	}
	switch {
	case b.known != nil && slices.Contains(table, b.known.Default.Core):
		p.Default.Core = b.known.Default.Core
	case d.boost > 0:
		p.Default.Core = below(d.boost)
	case d.application.Core > 0:
		p.Default.Core = below(d.application.Core)
		b.estimate("the core clock at which jobs run isn't in the output: that of applications",
			"default_core_mhz")
	default:
		p.Default.Core = table[len(table)-1]
		b.estimate("the core clock at which jobs run isn't in the output: the highest one", "default_core_mhz")
	}
}

// setLevels takes clocks from AMD's levels. A GPU can be held at any clock between the lowest and the
// highest, and the level between them may be the clock that runs.
func (b *builder) setLevels(r *reader) error {
	d, p := b.device, &b.model.Profile
	const step = 100
	low, high := d.levels.core[0], slices.Max(d.levels.core)
	if low >= high {
		return r.faultf("the core clocks of %s go from %v to %v MHz, want two levels at least", d.name,
			float64(low), float64(high))
	}
	if len(d.levels.mem) == 0 {
		return r.faultf("%s has no memory clocks, want the output of rocm-smi -a, or of amd-smi static", d.name)
	}
	group := config.ClockGroup{Mem: []dvfsmodel.MHz{slices.Max(d.levels.mem)}}
	for clock := low; clock < high; clock += step {
		group.Core = append(group.Core, clock)
	}
	group.Core = append(group.Core, high)
	p.Clocks = []config.ClockGroup{group}
	p.Default = dvfsmodel.Setting{Core: high, Mem: group.Mem[0]}
	b.estimate("any clock between the lowest and the highest level can be set: steps of 100 MHz", "clocks")
	return nil
}

// setPower sets idle and busy power.
func (b *builder) setPower() {
	d, p := b.device, &b.model.Profile
	limit := cmp.Or(p.PowerLimit.Default, p.PowerLimit.Max)
	switch {
	case d.isIdle && d.draw > 0 && (limit == 0 || d.draw < limit/2):
		p.IdleW = dvfsmodel.Watt(math.Round(float64(d.draw)))
		b.sources = append(b.sources, "idle_w is what an idle one drew")
	case b.known != nil:
		p.IdleW = b.known.IdleW
		b.estimate("idle power as known of "+b.known.Name, "idle_w")
	case limit > 0:
		p.IdleW = dvfsmodel.Watt(math.Ceil(float64(limit) / 10))
		b.estimate("idle power isn't in the output: a tenth of the power limit, as boards have", "idle_w")
	default:
		const typical = 30
		p.IdleW = typical
		b.estimate("neither idle power nor a power limit is in the output: 30 W", "idle_w")
	}
	if limit > p.IdleW {
		p.BusyW = limit
		b.estimate("busy power is the power limit", "busy_w")
	}
}

// setLocks concludes from the architecture what its driver can do.
func (b *builder) setLocks() {
	p := &b.model.Profile
	yes, no := true, false
	if b.known != nil {
		p.CoreLock, p.MemoryLock, p.EnergyScope = b.known.CoreLock, b.known.MemoryLock, b.known.EnergyScope
		return
	}
	if p.Vendor != "nvidia" {
		return
	}
	switch b.device.architecture {
	case "Kepler", "Maxwell", "Pascal":
		p.CoreLock, p.MemoryLock, p.EnergyScope = &no, &no, "none"
	case "Volta", "Turing":
		p.CoreLock, p.MemoryLock, p.EnergyScope = &yes, &no, "gpu"
	case "Ampere", "Ada Lovelace", "Hopper", "Blackwell":
		p.CoreLock, p.MemoryLock, p.EnergyScope = &yes, &yes, "gpu"
	}
	if b.device.isModule && p.EnergyScope == "gpu" {
		p.EnergyScope = "module"
	}
}

// Text returns the models as tables of a file that [config.ReadProfiles] reads.
func Text(models []Model) string {
	var text strings.Builder
	for i := range models {
		text.WriteString(models[i].Profile.Text())
	}
	return text.String()
}
