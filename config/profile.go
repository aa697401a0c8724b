package config

import (
	"errors"
	"fmt"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
)

// Profile is what is known of a GPU model: its clocks and its power when idle,
// or what it draws when tasks are placed on it, or both.
type Profile struct {
	Name    string
	Aliases []string
	// Default is the default clocks, 0 where only a range is known.
	Default dvfsmodel.Setting
	// Clocks are the supported clocks; empty for a model with a Range, and for
	// one of which only the power is known.
	Clocks []ClockGroup
	// Range names the continuous range (wide, narrow) of a model without a
	// clock list.
	Range string
	IdleW dvfsmodel.Watt // one idle GPU
	BusyW dvfsmodel.Watt // one GPU with anything allocated on it, whatever it runs; 0: not known
	// EnergyWeight is what a watt of a node with such GPUs counts when places for
	// tasks are compared; 0: 1.
	EnergyWeight float64
	HostW        dvfsmodel.Watt // by GPU: CPUs, fans and memory of a node that is on
	Vendor       string         // nvidia or amd; "": not said
	MemoryGB     float64        // of the board, as its maker states it; 0: not said
	// PowerLimit is what the driver's power limit can be, 0 where it isn't known.
	PowerLimit PowerLimit
	// CoreLock and MemoryLock say whether the driver locks that clock; nil: not known.
	CoreLock, MemoryLock *bool
	// EnergyScope is what the driver's energy counter and power limit are of: gpu, module
	// (several GPUs, or a GPU and a CPU), or none where there is no counter; "": not known.
	EnergyScope string
	// Estimate are the keys, as in a [[gpu]] table, whose values nobody measured.
	Estimate []string
	// Voltage is the core voltage over the core clock, ascending; between the
	// points it is linear, beyond them flat. Empty means the paper's curve.
	Voltage []VoltagePoint
	Source  string // where the values come from
}

// IsModule reports whether what its driver counts is the energy of a module, several GPUs or
// a GPU with its CPU. No profile says that it isn't.
func (p *Profile) IsModule() bool { return p != nil && p.EnergyScope == "module" }

// PowerLimit is the least and the most that a board's power limit can be, and what it
// is as delivered.
type PowerLimit struct{ Min, Default, Max dvfsmodel.Watt }

// Caps returns the power caps that may be set: those that the driver takes below the limit as delivered.
// Of a board whose limits aren't known there are none.
func (l PowerLimit) Caps() dvfsmodel.CapRange {
	if l.Min == 0 {
		return dvfsmodel.CapRange{}
	}
	return dvfsmodel.CapRange{Min: l.Min, Max: l.Default}
}

// ClockGroup is the core clocks that each of some memory clocks supports.
type ClockGroup struct {
	Mem, Core []dvfsmodel.MHz
	// Unplanned clocks are supported, and no plan chooses them: memory clocks of an idle
	// board, or ones of which nothing was measured.
	Unplanned bool
}

// VoltagePoint is the core voltage that a core clock needs, in any unit: only
// the ratio to the one at the default clock counts.
type VoltagePoint struct {
	Core  dvfsmodel.MHz
	Volts dvfsmodel.Volt
}

// Pairs lists the supported clocks that plans may choose one by one.
func (p *Profile) Pairs() []dvfsmodel.Setting {
	planned := slices.DeleteFunc(slices.Clone(p.Clocks), func(g ClockGroup) bool { return g.Unplanned })
	return pairsOf(planned)
}

// SupportedPairs lists all supported clocks.
func (p *Profile) SupportedPairs() []dvfsmodel.Setting { return pairsOf(p.Clocks) }

func pairsOf(groups []ClockGroup) []dvfsmodel.Setting {
	var pairs []dvfsmodel.Setting
	for i := range groups {
		for _, mem := range groups[i].Mem {
			for _, core := range groups[i].Core {
				pairs = append(pairs, dvfsmodel.Setting{Core: core, Mem: mem})
			}
		}
	}
	return pairs
}

// PairsUnder lists clocks under each cap at which something was measured and that may be set, and under the
// default limit.
func (p *Profile) PairsUnder(apps []dvfsmodel.AppSamples, pairs []dvfsmodel.Setting) []dvfsmodel.Setting {
	caps := []dvfsmodel.Watt{}
	for _, app := range apps {
		for i := range app.Samples {
			if w := app.Samples[i].Cap; p.PowerLimit.Caps().Has(w) && !slices.Contains(caps, w) {
				caps = append(caps, w)
			}
		}
	}
	if standard := p.PowerLimit.Default; standard > 0 {
		caps = append(caps, standard)
	}
	slices.Sort(caps)
	all := make([]dvfsmodel.Setting, 0, len(caps)*len(pairs))
	for _, w := range caps {
		for _, s := range pairs {
			s.Cap = w
			all = append(all, s)
		}
	}
	return all
}

// Table builds the table of supported clocks, normalised to the default ones.
// It fails for a profile without a clock list.
func (p *Profile) Table() (*dvfsmodel.Table, error) {
	if len(p.Clocks) == 0 && p.Range == "" {
		return nil, fmt.Errorf("GPU model %s has no clocks: tasks can be placed on it, but not planned "+
			"with clocks", p.Name)
	}
	t, err := dvfsmodel.NewTable(p.Default, p.Pairs(), p.voltageCurve(p.Default))
	if err != nil {
		return nil, fmt.Errorf("GPU model %s: %w", p.Name, err)
	}
	return t, nil
}

// Board returns what of the profile is the board's own.
func (p *Profile) Board() *dvfsmodel.Board {
	return &dvfsmodel.Board{
		Name: p.Name, Default: p.Default, Clocks: p.SupportedPairs(), Planned: p.Pairs(),
		Voltage: p.voltageCurve(p.Default), IdleW: p.IdleW, BusyW: p.BusyW,
		LimitMin: p.PowerLimit.Min, LimitDefault: p.PowerLimit.Default, LimitMax: p.PowerLimit.Max,
		CoreLock: p.CoreLock, MemoryLock: p.MemoryLock, EnergyScope: p.EnergyScope, Estimate: p.Estimate,
	}
}

// DefaultPoint returns the setting at the default clocks, without time and power.
func (p *Profile) DefaultPoint() dvfsmodel.Point {
	return dvfsmodel.Point{Scaling: dvfsmodel.DefaultScaling(), Core: p.Default.Core, Mem: p.Default.Mem}
}

// voltageCurve returns the normalised core voltage over the core clock, both relative to
// base; nil stands for the paper's curve.
func (p *Profile) voltageCurve(base dvfsmodel.Setting) func(fc float64) dvfsmodel.Volt {
	if len(p.Voltage) == 0 {
		return nil
	}
	one := p.voltageAt(base.Core)
	return func(fc float64) dvfsmodel.Volt { return p.voltageAt(base.Core*dvfsmodel.MHz(fc)) / one }
}

// voltageAt interpolates the voltage points.
func (p *Profile) voltageAt(core dvfsmodel.MHz) dvfsmodel.Volt {
	last := p.Voltage[0]
	for _, next := range p.Voltage {
		if core <= next.Core {
			if next.Core == last.Core {
				return next.Volts
			}
			share := dvfsmodel.Volt((core - last.Core) / (next.Core - last.Core))
			return last.Volts + share*(next.Volts-last.Volts)
		}
		last = next
	}
	return last.Volts
}

// validate reports the key that doesn't go with the others, and why.
func (p *Profile) validate() (key string, err error) {
	if p.BusyW > 0 && p.BusyW < p.IdleW {
		return "busy_w", fmt.Errorf("gpu.busy_w is %v, want at least idle_w, %v", float64(p.BusyW),
			float64(p.IdleW))
	}
	if key, err := p.PowerLimit.validate(); err != nil {
		return key, err
	}
	if p.Range != "" {
		if len(p.Clocks) > 0 {
			return "range", errors.New("a GPU model has clocks or a range, not both")
		}
		if _, err := dvfsmodel.RangeByName(p.Range); err != nil {
			return "range", err
		}
		return "", nil
	}
	if len(p.Clocks) == 0 {
		if p.BusyW == 0 {
			return "name", fmt.Errorf("GPU model %s has no clocks and no busy_w, want clocks, a "+
				"range or busy_w", quoteName(p.Name))
		}
		return "", nil
	}
	table, err := p.Table()
	if err != nil {
		return "clocks", err
	}
	if _, ok := table.Contains(p.Default.Core, p.Default.Mem); !ok {
		near := table.Nearest(p.Default.Core, p.Default.Mem)
		return "default_core_mhz",
			fmt.Errorf("default clocks %v/%v MHz aren't in the clock list, the nearest there are %v/%v",
				float64(p.Default.Core), float64(p.Default.Mem), float64(near.Core), float64(near.Mem))
	}
	return "", nil
}

// validate reports the key of a limit that isn't between the others, and why.
func (l PowerLimit) validate() (key string, err error) {
	most := l.Max
	if most == 0 {
		most = l.Default
	}
	switch {
	case l.Max > 0 && l.Default > l.Max:
		return "limit_w_default", fmt.Errorf("gpu.limit_w_default is %v, want at most limit_w_max, %v",
			float64(l.Default), float64(l.Max))
	case most > 0 && l.Min > most, l.Default > 0 && l.Min > l.Default:
		return "limit_w_min", fmt.Errorf("gpu.limit_w_min is %v, want at most the default and the greatest limit",
			float64(l.Min))
	}
	return "", nil
}

// planKeys are the keys of a [[gpu]] table that plans rest on.
var planKeys = []string{"clocks", "default_core_mhz", "default_mem_mhz", "idle_w"}

// PlanEstimates returns the keys of values that nobody measured and that plans on nodes with
// such GPUs rest on. A node class may say how much an idle GPU draws.
func (p *Profile) PlanEstimates(ownIdleW bool) []string {
	var keys []string
	for _, key := range planKeys {
		if slices.Contains(p.Estimate, key) && (!ownIdleW || key != "idle_w") {
			keys = append(keys, key)
		}
	}
	return keys
}

// MeasuredOn returns the GPU model with the fewest clocks that has all clocks at which
// something was measured. The error says which one has most of them.
func (p *Profiles) MeasuredOn(apps []dvfsmodel.AppSamples) (*Profile, error) {
	measured := make(map[dvfsmodel.Setting]bool)
	for _, app := range apps {
		for _, s := range app.Samples {
			measured[dvfsmodel.Setting{Core: s.Core, Mem: s.Mem}] = true
		}
	}
	var best *Profile
	most := 0 // of the settings that one has
	for _, name := range p.Names() {
		profile, err := p.Lookup(name)
		if err != nil {
			return nil, err
		}
		has := 0
		pairs := profile.Pairs()
		for _, pair := range pairs {
			if measured[pair] {
				has++
			}
		}
		if has > most || has == most && best != nil && len(pairs) < len(best.Pairs()) {
			best, most = profile, has
		}
	}
	switch {
	case best == nil:
		return nil, errors.New("no known GPU model has all the clocks that were measured")
	case most < len(measured):
		return nil, fmt.Errorf("no known GPU model has all the clocks that were measured: %s has most, %d of %d",
			best.Name, most, len(measured))
	}
	return best, nil
}

// CheckUnits refuses measurements that can't be in MHz and watts: GHz, kHz and
// kW are a thousand times off, while GPUs have memory clocks of a seventeenth of the
// default one, and core clocks of a tenth.
func (p *Profile) CheckUnits(apps []dvfsmodel.AppSamples) error {
	const far = 100
	for _, app := range apps {
		for _, s := range app.Samples {
			for _, clock := range []struct {
				name         string
				at, standard dvfsmodel.MHz
			}{{"core", s.Core, p.Default.Core}, {"memory", s.Mem, p.Default.Mem}} {
				if clock.standard > 0 && clock.at > 0 &&
					(clock.at*far < clock.standard || clock.at > clock.standard*far) {
					return fmt.Errorf("application %q: a %s clock of %v MHz, where the default of %s is %v "+
						"MHz, want clocks in MHz", app.App, clock.name, float64(clock.at), p.Name,
						float64(clock.standard))
				}
			}
			if float64(s.Power)*far < float64(p.IdleW) {
				return fmt.Errorf("application %q: %v W, where an idle %s draws %v W, want power in watts",
					app.App, float64(s.Power), p.Name, float64(p.IdleW))
			}
		}
	}
	return nil
}
