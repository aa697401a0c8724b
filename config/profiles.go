package config

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/spelling"
)

//go:embed profiles.toml
var paperProfiles string

//go:embed gpus.toml
var boardProfiles string

var builtinProfiles = paperProfiles + "\n" + boardProfiles

// Profiles is a set of GPU models and CPU models. It is immutable.
type Profiles struct {
	list  []Profile
	cpus  []CPU
	index nameIndex
}

func newProfiles(list []Profile, cpus []CPU) *Profiles {
	return &Profiles{list: list, cpus: cpus, index: newNameIndex(list)}
}

// BuiltinProfiles returns the GPU and CPU models that need no file.
func BuiltinProfiles() *Profiles { return readBuiltin() }

var readBuiltin = sync.OnceValue(func() *Profiles {
	p, err := ReadProfiles(strings.NewReader(builtinProfiles), "profiles.toml")
	if err != nil {
		panic(err) // part of the program, and tested
	}
	return p
})

// ReadProfiles reads a file of [[gpu]] and [[cpu]] tables. The error is a [FileError]
// unless the file can't be read at all.
func ReadProfiles(r io.Reader, name string) (*Profiles, error) {
	d, err := parse(r, name)
	if err != nil {
		return nil, err
	}
	var list []Profile
	var cpus []CPU
	gpu := field{key: "gpu", read: func(d *document, path string, v any) { list = decodeProfiles(d, path, v) }}
	cpu := field{key: "cpu", read: func(d *document, path string, v any) { cpus = decodeCPUs(d, path, v) }}
	d.readFields("", "", d.root, []field{gpu, cpu})
	if len(list) == 0 && len(cpus) == 0 && len(d.faults) == 0 {
		d.faultAt("", "no GPU model, want at least one [[gpu]] or [[cpu]] table")
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	return newProfiles(list, cpus), nil
}

// FamilyOf returns the family of a GPU model, which is its name without the board, such as A100 of
// A100-SXM4-80GB.
func FamilyOf(gpuModel string) string {
	family, _, _ := strings.Cut(gpuModel, "-")
	return family
}

// With returns the set with others added; one of the same name replaces the old one.
func (p *Profiles) With(more *Profiles) *Profiles {
	list, cpus := slices.Clone(more.list), slices.Clone(more.cpus)
	for i := range p.list {
		if more.byName(p.list[i].Name) == nil {
			list = append(list, p.list[i])
		}
	}
	for i := range p.cpus {
		if _, err := more.CPU(p.cpus[i].Name); err != nil {
			cpus = append(cpus, p.cpus[i])
		}
	}
	return newProfiles(list, cpus)
}

// Names lists the GPU models, ascending.
func (p *Profiles) Names() []string {
	names := make([]string, len(p.list))
	for i := range p.list {
		names[i] = p.list[i].Name
	}
	slices.Sort(names)
	return names
}

// Lookup is [Profiles.Find] with an error, an [UnknownError], where there is none.
func (p *Profiles) Lookup(name string) (*Profile, error) {
	if found := p.Find(name); found != nil {
		return found, nil
	}
	return nil, unknownGPU(name, p)
}

// Board is [Profiles.Lookup] for the board's own values.
func (p *Profiles) Board(name string) (*dvfsmodel.Board, error) {
	found, err := p.Lookup(name)
	if err != nil {
		return nil, err
	}
	return found.Board(), nil
}

// NameOf returns the name of a GPU model's profile, or the name as it is where there is none.
func (p *Profiles) NameOf(gpuModel string) string {
	if found := p.Find(gpuModel); found != nil {
		return found.Name
	}
	return gpuModel
}

// nameIndex finds GPU models by what people and drivers call them.
type nameIndex struct {
	names, aliases map[string]int // place in the list, by folded name
	plain          []plainNames   // by place in the list
}

// plainNames are all names of a GPU model as they are told apart last: folded, without
// the words that its vendor's drivers put before them, and once more without its memory.
type plainNames struct {
	vendor, memory string
	full, short    []string
}

// vendorWords are what drivers and people put before the name of a board.
var vendorWords = map[string][]string{
	"nvidia": {"nvidia", "tesla", "geforce"},
	"amd":    {"amd", "radeon", "instinct"},
}

func newNameIndex(list []Profile) nameIndex {
	x := nameIndex{
		names: make(map[string]int, len(list)), aliases: make(map[string]int), plain: make([]plainNames, len(list)),
	}
	note := func(in map[string]int, name string, i int) {
		if _, taken := in[name]; !taken {
			in[name] = i
		}
	}
	for i := range list {
		p := &list[i]
		plain := &x.plain[i]
		plain.vendor = p.Vendor
		if p.MemoryGB > 0 {
			plain.memory = strconv.FormatFloat(p.MemoryGB, 'f', -1, 64) + "gb"
		}
		note(x.names, spelling.Fold(p.Name), i)
		for _, name := range append([]string{p.Name}, p.Aliases...) {
			folded := spelling.Fold(name)
			note(x.aliases, folded, i)
			full := plain.stripVendor(folded)
			plain.full = append(plain.full, full)
			short, _ := plain.stripMemory(full)
			plain.short = append(plain.short, short)
		}
	}
	return x
}

// stripVendor takes the vendor's words from the front of a folded name.
func (n *plainNames) stripVendor(folded string) string {
	for again := true; again; {
		again = false
		for _, word := range vendorWords[n.vendor] {
			if rest, found := strings.CutPrefix(folded, word); found && rest != "" {
				folded, again = rest, true
			}
		}
	}
	return folded
}

// stripMemory takes the memory of the board, in GB or GiB, from a plain name; not ok: it isn't in it.
func (n *plainNames) stripMemory(name string) (short string, ok bool) {
	if n.memory == "" {
		return name, false
	}
	before, after, ok := strings.Cut(strings.Replace(name, "gib", "gb", 1), n.memory)
	if !ok {
		return name, false
	}
	return before + after, true
}

// has reports whether a folded name is one of them: as it is, or with the memory that
// this board has.
func (n *plainNames) has(folded string) bool {
	full := n.stripVendor(folded)
	if slices.Contains(n.full, full) {
		return true
	}
	short, ok := n.stripMemory(full)
	return ok && slices.Contains(n.short, short)
}

// Find finds a GPU model by its name or an alias. Letter case, spaces and dashes don't
// matter, nor do words of its vendor before it (NVIDIA, Tesla, AMD Instinct) and the memory
// that it has (A100-40GB). nil: there is none, or a name fits several.
func (p *Profiles) Find(name string) *Profile {
	if found := p.byName(name); found != nil {
		return found
	}
	folded := spelling.Fold(name)
	if i, ok := p.index.aliases[folded]; ok {
		return &p.list[i]
	}
	var found *Profile
	for i := range p.index.plain {
		if !p.index.plain[i].has(folded) {
			continue
		}
		if found != nil {
			return nil
		}
		found = &p.list[i]
	}
	return found
}

func (p *Profiles) byName(name string) *Profile {
	if i, ok := p.index.names[spelling.Fold(name)]; ok {
		return &p.list[i]
	}
	return nil
}

// unknownGPU returns the error for a GPU model that isn't known. No other is guessed, as boards
// with like names are others (H100 isn't A100): the nearest ones are listed.
func unknownGPU(name string, p *Profiles) *UnknownError {
	near := spelling.SortedByNearness(name, p.Names())
	return &UnknownError{Kind: "GPU model", Name: name, Known: near, UnguessedGPU: true}
}

// decodeProfiles reads [[gpu]] tables; of those with faults nothing is returned.
func decodeProfiles(d *document, path string, v any) []Profile {
	var list []Profile
	first := make(map[string]string) // path by folded name or alias
	d.eachTable(path, v, func(at string, values map[string]any) {
		p := Profile{HostW: defaultHostW}
		before := len(d.faults)
		d.readFields("[[gpu]]", at, values, p.fields())
		if len(d.faults) > before {
			return
		}
		if key, err := p.validate(); err != nil {
			d.faultAt(joinKey(at, key), "%v", err)
			return
		}
		for _, key := range p.Estimate {
			if _, said := values[key]; !said {
				d.faultAt(joinKey(at, "estimate"), "gpu.estimate has %s, want keys of this table",
					quoteName(key))
				return
			}
		}
		names := []string{spelling.Fold(p.Name)}
		for _, alias := range p.Aliases {
			names = append(names, spelling.Fold(alias))
		}
		for _, name := range sortedUnique(names) {
			if other, twice := first[name]; twice {
				d.faultAt(joinKey(at, "name"), "GPU model %s, or an alias of it, is already on line %d",
					quoteName(p.Name), d.keyPosition(other).Line)
				return
			}
			first[name] = at
		}
		list = append(list, p)
	})
	return list
}

// defaultHostW is the host power of a GPU model that doesn't say: that of a
// busy two-socket server without GPUs, about 200 W, by its eight GPUs.
const defaultHostW dvfsmodel.Watt = 25

func (p *Profile) fields() []field {
	name := requiredField(lineField("name", "GPU model; one that epplan knows is replaced.",
		&p.Name))
	core := numberField("default_core_mhz", "Default core clock.", &p.Default.Core, positiveRange)
	mem := numberField("default_mem_mhz", "Default memory clock.", &p.Default.Mem, positiveRange)
	clocks := field{
		key: "clocks",
		doc: "Supported clocks, MHz: each memory clock of a table with each of its core clocks. plan = false:\n" +
			"plans choose none of these.",
		expected: clockGroups,
		read:     func(d *document, path string, v any) { p.Clocks = d.clockGroups("gpu.clocks", path, v, true) },
		format:   func() string { return clocksText(p.Clocks) },
	}
	voltage := field{
		key: "voltage",
		doc: "Core voltage over the core clock; only ratios to that at the default clock count. Not said: the\n" +
			"paper's curve.", expected: `"paper" or pairs [MHz, volts]`, read: p.decodeVoltage,
		format: p.voltageText,
	}
	return []field{
		name,
		lineListField("aliases", "Other names, such as its driver's.", &p.Aliases),
		core, mem, clocks,
		choiceField("range",
			"The EDL paper's continuous range of clocks, for a model without a list.", &p.Range, "wide", "narrow"),
		requiredField(numberField("idle_w", "Watts of an idle GPU.", &p.IdleW, nonNegativeRange)),
		numberField("busy_w", "Watts of a GPU with anything allocated on it, for comparing places.", &p.BusyW,
			positiveRange),
		numberField("energy_weight",
			"Weight of a watt of a node with such GPUs, for comparing places; not said: 1.",
			&p.EnergyWeight, positiveRange),
		numberField("host_w_per_gpu", "Watts per GPU of the rest of a node that is on.", &p.HostW,
			nonNegativeRange),
		voltage,
		choiceField("vendor",
			"Its maker. Names match with and without the maker's words in front.", &p.Vendor, "nvidia", "amd"),
		numberField("memory_gb",
			"Memory of one GPU in GB, as its maker states it. Names match with and without it.",
			&p.MemoryGB, positiveRange),
		numberField("limit_w_min", "Lowest power limit that its driver takes.", &p.PowerLimit.Min,
			positiveRange),
		numberField("limit_w_default", "Power limit as delivered.", &p.PowerLimit.Default,
			positiveRange),
		numberField("limit_w_max", "Highest power limit that its driver takes.", &p.PowerLimit.Max,
			positiveRange),
		knownBoolField("core_lock", "Whether its driver locks the core clock.", &p.CoreLock),
		knownBoolField("memory_lock", "Whether its driver locks the memory clock.", &p.MemoryLock),
		choiceField("energy_scope",
			"What its energy counter and power limit cover: the gpu, a module (several GPUs, or a GPU with a\n"+
				"CPU), or none without a counter.", &p.EnergyScope,
			"gpu", "module", "none"),
		lineListField("estimate",
			"Keys with values that nobody measured; plans that rest on them say so.", &p.Estimate),
		lineField("source", "Where the values come from.", &p.Source),
	}
}

// Bounds of clock lists: boards have up to a few hundred core clocks and a
// handful of memory clocks.
const (
	maxClocks = 2000
	maxPairs  = 100_000
)

const clockGroups = "tables with mem_mhz and core_mhz"

// clockGroups reads groups of clocks, in which some may be in no plan if that can be said.
func (d *document) clockGroups(table, path string, v any, sayPlan bool) (groups []ClockGroup) {
	pairs := 0
	d.eachTable(path, v, func(at string, values map[string]any) {
		var g ClockGroup
		planned := true
		fields := []field{
			requiredField(clockListField("mem_mhz", &g.Mem)), requiredField(clockListField("core_mhz", &g.Core)),
		}
		if sayPlan {
			fields = append(fields, boolField("plan", "", &planned))
		}
		d.readFields(table, at, values, fields)
		g.Unplanned = !planned
		groups = append(groups, g)
		pairs += len(g.Mem) * len(g.Core)
	})
	if pairs > maxPairs {
		d.faultAt(path, "%s has %d pairs of clocks, want at most %d", table, pairs, maxPairs)
	}
	return groups
}

// clockListField returns a field with an array of clocks, or with {from, to, step}.
func clockListField(key string, to *[]dvfsmodel.MHz) field {
	f := field{key: key, expected: fmt.Sprintf("an array of 1 to %d clocks, or {from, to, step}", maxClocks)}
	f.read = func(d *document, path string, v any) {
		switch x := v.(type) {
		case map[string]any:
			*to = decodeSteps(d, path, x)
			return
		case []any:
			if n := len(x); n == 0 || n > maxClocks {
				break
			}
			*to = make([]dvfsmodel.MHz, len(x))
			for i, element := range x {
				numberField("", "", &(*to)[i], positiveRange).read(d, fmt.Sprintf("%s[%d]", path, i), element)
			}
			return
		}
		d.faultAtType(path, v, f.expected)
	}
	return f
}

// decodeSteps reads {from, to, step}; both ends belong to the list. With whole = true each
// clock is rounded down, as drivers do: they list 142 MHz for 142.5.
func decodeSteps(d *document, path string, values map[string]any) []dvfsmodel.MHz {
	var from, to, step dvfsmodel.MHz
	whole := false
	before := len(d.faults)
	d.readFields(withoutIndexes(path), path, values, []field{
		requiredField(numberField("from", "", &from, positiveRange)),
		requiredField(numberField("to", "", &to, positiveRange)),
		requiredField(numberField("step", "", &step, positiveRange)),
		boolField("whole", "", &whole),
	})
	if len(d.faults) > before {
		return nil
	}
	steps := float64((to-from)/step) + rounding
	if steps < 0 || steps >= maxClocks {
		d.faultAt(path, "%s is from %v to %v by %v, want 1 to %d clocks",
			withoutIndexes(path), float64(from), float64(to), float64(step), maxClocks)
		return nil
	}
	clocks := make([]dvfsmodel.MHz, int(steps)+1)
	for i := range clocks {
		clocks[i] = from + dvfsmodel.MHz(i)*step
		if whole {
			clocks[i] = dvfsmodel.MHz(math.Floor(float64(clocks[i])))
		}
	}
	return clocks
}

func (p *Profile) decodeVoltage(d *document, path string, v any) {
	const want = `"paper" or pairs [MHz, volts] with clocks that rise and voltages that don't fall`
	if v == "paper" {
		return
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 || len(list) > maxClocks {
		d.faultAtType(path, v, want)
		return
	}
	for i, element := range list {
		pt, ok := voltagePoint(element)
		if n := len(p.Voltage); ok && n > 0 {
			ok = pt.Core > p.Voltage[n-1].Core && pt.Volts >= p.Voltage[n-1].Volts
		}
		if !ok {
			d.faultAtType(fmt.Sprintf("%s[%d]", path, i), element, want)
			return
		}
		p.Voltage = append(p.Voltage, pt)
	}
}

func voltagePoint(v any) (VoltagePoint, bool) {
	pair, ok := v.([]any)
	if !ok || len(pair) != 2 {
		return VoltagePoint{}, false
	}
	core, ok1 := toNumber(pair[0])
	volts, ok2 := toNumber(pair[1])
	pt := VoltagePoint{Core: dvfsmodel.MHz(core), Volts: dvfsmodel.Volt(volts)}
	return pt, ok1 && ok2 && positiveRange.contains(core) && positiveRange.contains(volts)
}

func clocksText(list []ClockGroup) string {
	groups := make([]string, len(list))
	for i, g := range list {
		groups[i] = "{ mem_mhz = " + numbersText(g.Mem) + ", core_mhz = " + stepsText(g.Core)
		if g.Unplanned {
			groups[i] += ", plan = false"
		}
		groups[i] += " }"
	}
	return "[" + strings.Join(groups, ", ") + "]"
}

func (p *Profile) voltageText() string {
	if len(p.Voltage) == 0 {
		return `"paper"`
	}
	points := make([]string, len(p.Voltage))
	for i, pt := range p.Voltage {
		points[i] = "[" + numberText(float64(pt.Core)) + ", " + numberText(float64(pt.Volts)) + "]"
	}
	return "[" + strings.Join(points, ", ") + "]"
}
