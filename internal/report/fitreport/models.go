package fitreport

import (
	"slices"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/report"
)

// Model is a model of a workload with its clocks: the default ones, and those with the least energy.
type Model struct {
	workload, gpuModel, form string
	standard, best           dvfsmodel.Point
	// frontier is the settings that no other one beats in both time and energy, the fastest first.
	frontier []dvfsmodel.Point
}

// NewModel asks a model for the setting of the least energy that is so much slower than the default one at
// most, as a part.
func NewModel(m *config.Model, profiles *config.Profiles, slowdown float64) (Model, error) {
	profile, err := profiles.Lookup(m.GPUModel)
	if err != nil {
		return Model{}, err
	}
	response, err := m.CappedResponse(profile)
	if err != nil {
		return Model{}, err
	}
	standard := response.Default()
	best, err := response.Optimum(dvfsmodel.MinEnergy(), standard.Time*(1+slowdown))
	frontier := slices.DeleteFunc(dvfsmodel.Undominated(response),
		func(pt dvfsmodel.Point) bool { return !dvfsmodel.MeetsLimit(pt.Time, standard.Time*(1+slowdown)) })
	return Model{m.Workload, profile.Name, m.Form.String(), standard, best, frontier}, err
}

// Frontiers returns a row for each setting of each model that no other one beats in both time and energy.
func Frontiers(list []Model) *report.Table {
	type setting struct {
		*Model
		at dvfsmodel.Point
	}
	var rows []setting
	capped := false
	for i := range list {
		for _, pt := range list[i].frontier {
			rows = append(rows, setting{&list[i], pt})
			capped = capped || pt.Cap > 0
		}
	}
	return report.TableOf(rows, func(row *report.Row, s *setting) {
		row.Add(report.Column{Key: "workload", Head: "workload", Left: true, Max: 32}, report.Text(s.workload))
		row.Add(report.Column{Key: "gpu_model", Head: "GPU", Left: true}, report.Text(s.gpuModel))
		row.Add(report.Column{Key: "core_mhz", Head: "core", Note: "MHz"}, report.Number(s.at.Core))
		row.Add(report.Column{Key: "mem_mhz", Head: "memory", Note: "MHz"}, report.Number(s.at.Mem))
		if capped {
			row.Add(report.Column{Key: "cap_w", Head: "cap", Unit: report.Watts}, report.NonZero(s.at.Cap))
		}
		row.Add(report.Column{Key: "time_s", Head: "time", Unit: report.Seconds}, report.Number(s.at.Time))
		row.Add(report.Column{Key: "power_w", Head: "power", Unit: report.Watts}, report.Number(s.at.Power))
		row.Add(report.Column{Key: "energy_j", Head: "energy", Unit: report.Joules}, report.Number(s.at.Energy))
		row.Add(report.Column{Key: "slowdown", Head: "slower", Unit: report.Fraction},
			report.Number(s.at.Time/s.standard.Time-1))
		row.Add(report.Column{Key: "saving", Head: "saving", Unit: report.Fraction},
			report.Number(1-float64(s.at.Energy/s.standard.Energy)))
	})
}

// Models returns a row for each of them.
func Models(list []Model) *report.Table {
	capped := slices.ContainsFunc(list,
		func(m Model) bool { return m.form == dvfsmodel.CappedForm().String() })
	return report.TableOf(list, func(row *report.Row, m *Model) {
		row.Add(report.Column{Key: "workload", Head: "workload", Left: true, Max: 32}, report.Text(m.workload))
		row.Add(report.Column{Key: "gpu_model", Head: "GPU", Left: true}, report.Text(m.gpuModel))
		row.Add(report.Column{Key: "form", Head: "form", Left: true}, report.Text(m.form))
		row.Add(report.Column{Key: "default_time_s", Head: "default time", Unit: report.Seconds},
			report.Number(m.standard.Time))
		row.Add(report.Column{Key: "default_power_w", Head: "power", Unit: report.Watts},
			report.Number(m.standard.Power))
		row.Add(report.Column{Key: "default_energy_j", Head: "energy", Unit: report.Joules},
			report.Number(m.standard.Energy))
		row.Add(report.Column{Key: "core_mhz", Head: "best core", Note: "MHz"}, report.Number(m.best.Core))
		row.Add(report.Column{Key: "mem_mhz", Head: "memory", Note: "MHz"}, report.Number(m.best.Mem))
		if capped {
			row.Add(report.Column{Key: "cap_w", Head: "cap", Unit: report.Watts}, report.NonZero(m.best.Cap))
		}
		row.Add(report.Column{Key: "time_s", Head: "time", Unit: report.Seconds}, report.Number(m.best.Time))
		row.Add(report.Column{Key: "energy_j", Head: "energy", Unit: report.Joules},
			report.Number(m.best.Energy))
		row.Add(report.Column{Key: "saving", Head: "saving", Unit: report.Fraction},
			report.Number(1-float64(m.best.Energy/m.standard.Energy)))
	})
}
