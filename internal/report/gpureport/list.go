package gpureport

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/queue"
)

// Model is a GPU model in JSON; what isn't known is null.
type Model struct {
	Name           string         `json:"name"`
	Aliases        []string       `json:"aliases"`
	Vendor         *string        `json:"vendor"`
	MemoryGB       *float64       `json:"memory_gb"`
	Clocks         []Clocks       `json:"clocks"`
	DefaultCoreMHz *dvfsmodel.MHz `json:"default_core_mhz"`
	DefaultMemMHz  *dvfsmodel.MHz `json:"default_mem_mhz"`
	// Range names the continuous range of a model without a list of clocks.
	Range         *string         `json:"range"`
	IdleW         dvfsmodel.Watt  `json:"idle_w"`
	BusyW         *dvfsmodel.Watt `json:"busy_w"`
	HostWPerGPU   dvfsmodel.Watt  `json:"host_w_per_gpu"`
	LimitWMin     *dvfsmodel.Watt `json:"limit_w_min"`
	LimitWDefault *dvfsmodel.Watt `json:"limit_w_default"`
	LimitWMax     *dvfsmodel.Watt `json:"limit_w_max"`
	CoreLock      *bool           `json:"core_lock"`
	MemoryLock    *bool           `json:"memory_lock"`
	EnergyScope   *string         `json:"energy_scope"`
	Estimate      []string        `json:"estimate"` // keys of this object
	Source        *string         `json:"source"`
}

// Clocks are the core clocks at one memory clock, ascending.
type Clocks struct {
	MemMHz  dvfsmodel.MHz   `json:"mem_mhz"`
	CoreMHz []dvfsmodel.MHz `json:"core_mhz"`
	Planned bool            `json:"planned"` // false: no plan chooses them
}

// NewModel returns what a profile says of a GPU model, its highest memory clock first.
func NewModel(p *config.Profile) Model {
	m := Model{
		Name: p.Name, Aliases: orEmpty(p.Aliases), Vendor: orNull(p.Vendor), MemoryGB: orNull(p.MemoryGB),
		Clocks: []Clocks{}, DefaultCoreMHz: orNull(p.Default.Core), DefaultMemMHz: orNull(p.Default.Mem),
		Range: orNull(p.Range), IdleW: p.IdleW, BusyW: orNull(p.BusyW), HostWPerGPU: p.HostW,
		LimitWMin: orNull(p.PowerLimit.Min), LimitWDefault: orNull(p.PowerLimit.Default),
		LimitWMax: orNull(p.PowerLimit.Max), CoreLock: p.CoreLock, MemoryLock: p.MemoryLock,
		EnergyScope: orNull(p.EnergyScope), Estimate: orEmpty(p.Estimate), Source: orNull(p.Source),
	}
	for _, group := range p.Clocks {
		for _, mem := range group.Mem {
			core := slices.Sorted(slices.Values(group.Core))
			m.Clocks = append(m.Clocks, Clocks{MemMHz: mem, CoreMHz: core, Planned: !group.Unplanned})
		}
	}
	slices.SortStableFunc(m.Clocks, func(a, b Clocks) int { return cmp.Compare(b.MemMHz, a.MemMHz) })
	return m
}

// List returns the named GPU models, or all that are known.
func List(known *config.Profiles, names ...string) ([]Model, error) {
	if len(names) == 0 {
		names = known.Names()
	}
	models := make([]Model, len(names))
	for i, name := range names {
		p, err := known.Lookup(name)
		if err != nil {
			return nil, err
		}
		models[i] = NewModel(p)
	}
	return models, nil
}

func orNull[T comparable](x T) *T {
	var zero T
	if x == zero {
		return nil
	}
	return &x
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// Table has a line for each GPU model, for people.
func Table(models []Model) *report.Table {
	return report.TableOf(models, func(row *report.Row, m *Model) {
		text := func(head, s string) { row.Add(report.Column{Head: head, Left: true}, report.Text(s)) }
		text("model", m.Name)
		text("default MHz", m.defaultText())
		text("core MHz", m.coreText())
		text("memory MHz", m.memoryText())
		text("idle W", number(m.IdleW))
		text("limit W", m.limitText())
		text("locks", m.locksText())
		text("energy of", orDash(m.EnergyScope))
		text("estimates", strings.Join(m.Estimate, " "))
	})
}

// Text is everything about one GPU model, for people.
func (m *Model) Text() string {
	var b strings.Builder
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-9s %s\n", name, queue.Printable(text))
		}
	}
	name := m.Name
	if m.Vendor != nil {
		name += ", " + *m.Vendor
	}
	if m.MemoryGB != nil {
		name += ", " + number(*m.MemoryGB) + " GB"
	}
	line("Model", name)
	line("Names", strings.Join(m.Aliases, ", "))
	for i, c := range m.Clocks {
		title := "Clocks"
		if i > 0 {
			title = ""
		}
		text := fmt.Sprintf("memory %s MHz: core %s MHz", number(c.MemMHz), stepsText(c.CoreMHz))
		if !c.Planned {
			text += "; in no plan"
		}
		line(title, text)
	}
	if m.Range != nil {
		line("Clocks", "the EDL paper's "+*m.Range+" range")
	} else if m.DefaultCoreMHz != nil {
		line("Default", m.defaultText()+" MHz")
	}
	power := number(m.IdleW) + " W idle"
	if m.BusyW != nil {
		power += ", " + number(*m.BusyW) + " W at work, for comparing places"
	}
	line("Power", power+", "+number(m.HostWPerGPU)+" W of the rest of the node")
	if m.LimitWMin != nil || m.LimitWDefault != nil || m.LimitWMax != nil {
		limit := m.limitText() + " W"
		if m.LimitWDefault != nil {
			limit += ", " + number(*m.LimitWDefault) + " W as delivered"
		}
		line("Limit", limit)
	}
	line("Locks", m.locksText())
	if m.EnergyScope != nil {
		line("Energy", map[string]string{
			"gpu": "a counter of the GPU", "module": "a counter of the module, with what else is on it",
			"none": "no counter: power is integrated",
		}[*m.EnergyScope])
	}
	line("Estimate", strings.Join(m.Estimate, ", "))
	if m.Source != nil {
		line("Source", *m.Source)
	}
	return b.String()
}

const dash = "–"

func orDash(s *string) string {
	if s == nil {
		return dash
	}
	return *s
}

func number[T ~float64](x T) string { return fmt.Sprintf("%.6g", float64(x)) }

func (m *Model) defaultText() string {
	if m.DefaultCoreMHz == nil || m.DefaultMemMHz == nil {
		return dash
	}
	return number(*m.DefaultCoreMHz) + "/" + number(*m.DefaultMemMHz)
}

// coreText returns the span of the core clocks that plans choose from.
func (m *Model) coreText() string {
	var all []dvfsmodel.MHz
	for _, c := range m.Clocks {
		if c.Planned {
			all = append(all, c.CoreMHz...)
		}
	}
	switch {
	case m.Range != nil:
		return *m.Range + " range"
	case len(all) == 0:
		return dash
	}
	return spanText(slices.Min(all), slices.Max(all))
}

func (m *Model) memoryText() string {
	var planned []string
	for _, c := range m.Clocks {
		if c.Planned {
			planned = append(planned, number(c.MemMHz))
		}
	}
	if len(planned) == 0 {
		return dash
	}
	return strings.Join(planned, " ")
}

func (m *Model) limitText() string {
	low, high := m.LimitWMin, cmp.Or(m.LimitWMax, m.LimitWDefault)
	switch {
	case low == nil && high == nil:
		return dash
	case low == nil:
		return "to " + number(*high)
	case high == nil:
		return "from " + number(*low)
	}
	return spanText(*low, *high)
}

func (m *Model) locksText() string {
	var locks []string
	for _, lock := range []struct {
		name string
		can  *bool
	}{{"core", m.CoreLock}, {"memory", m.MemoryLock}} {
		switch {
		case lock.can == nil:
			locks = append(locks, lock.name+"?")
		case *lock.can:
			locks = append(locks, lock.name)
		}
	}
	if m.CoreLock == nil && m.MemoryLock == nil {
		return dash
	}
	if len(locks) == 0 {
		return "none"
	}
	return strings.Join(locks, " ")
}

func spanText[T ~float64](from, to T) string {
	if from == to {
		return number(from)
	}
	return number(from) + "–" + number(to)
}

// mostListed are the clocks that are listed one by one.
const mostListed = 10

// stepsText is clocks as a span with their step where it is regular: drivers round steps
// of 7.5 MHz down.
func stepsText(clocks []dvfsmodel.MHz) string {
	n := len(clocks)
	if n <= mostListed {
		texts := make([]string, n)
		for i, clock := range clocks {
			texts[i] = number(clock)
		}
		return strings.Join(texts, ", ")
	}
	least, most := clocks[1]-clocks[0], clocks[1]-clocks[0]
	for i := range clocks[1:] {
		step := clocks[i+1] - clocks[i]
		least, most = min(least, step), max(most, step)
	}
	text := number(clocks[0]) + " to " + number(clocks[n-1])
	switch {
	case least == most:
		return text + " by " + number(least)
	case most-least <= 1:
		return text + " by " + number(least) + " and " + number(most)
	}
	return fmt.Sprintf("%s, %d clocks", text, n)
}

// Row returns a line of a table in Markdown: clocks, power, controls, and where they come from.
func (m *Model) Row() string {
	clocks := make([]string, 0, len(m.Clocks))
	for _, c := range m.Clocks {
		text := number(c.MemMHz) + ": " + stepsText(c.CoreMHz)
		if !c.Planned {
			text += " (in no plan)"
		}
		clocks = append(clocks, text)
	}
	source := ""
	if m.Source != nil {
		source = *m.Source
	}
	return "| " + strings.Join([]string{
		m.Name, strings.Join(clocks, "; "), m.defaultText(), number(m.IdleW), m.limitText(), m.locksText(),
		orDash(m.EnergyScope), strings.Join(m.Estimate, ", "), source,
	}, " | ") + " |"
}
