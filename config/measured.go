package config

import (
	"errors"
	"fmt"

	"github.com/epplan/epplan/dvfsmodel"
)

// MeasuredOn is the GPU model with the fewest clocks that has all clocks at which
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
				if clock.standard > 0 && (clock.at*far < clock.standard || clock.at > clock.standard*far) {
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
