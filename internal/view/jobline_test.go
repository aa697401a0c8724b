package view_test

import (
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/view"
	"github.com/epplan/epplan/live"
)

func TestAJobsLineSaysWhatItsClocksChange(t *testing.T) {
	at := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	decision := func(
		id int64, node string, begun time.Time, setting dvfsmodel.Setting, reason string,
	) epdapi.Decision {
		return epdapi.Decision{
			Decision: record.Decision{ID: id, Node: node, Created: begun, Setting: setting, Reason: reason},
			Default:  &epdapi.Point{Setting: dvfsmodel.Setting{Core: 1380}, TimeS: 1000, EnergyJ: 900e3},
			Chosen:   &epdapi.Point{Setting: dvfsmodel.Setting{Core: 945}, TimeS: 1040, EnergyJ: 600e3},
		}
	}
	low := dvfsmodel.Setting{Core: 945}
	outcome := func(id int64, seconds, joules float64) epdapi.Outcome {
		return epdapi.Outcome{Outcome: record.Outcome{
			DecisionID: id, TimeS: live.Known(seconds), GPUEnergyJ: live.Known(joules),
		}}
	}
	unknown := decision(1, "a", at, low, "core 945 MHz: by the user")
	unknown.Default = nil
	costly := decision(1, "a", at, low, "fixed")
	costly.Chosen.EnergyJ = 1080e3
	for name, c := range map[string]struct {
		v    epdapi.JobView
		want string
	}{
		"nothing decided": {epdapi.JobView{}, ""},
		"at its end": {
			epdapi.JobView{Decisions: []epdapi.Decision{decision(1, "a", at, low, "")}},
			"epplan: core 945 MHz: by its model 33.3 % less energy of the GPUs than at default clocks, " +
				"4.00 % longer, saving 0.083 kWh",
		},
		"two nodes, measured, after a requeue": {
			epdapi.JobView{
				Decisions: []epdapi.Decision{
					decision(1, "b", at, dvfsmodel.Setting{}, ""), decision(2, "a", at.Add(time.Hour), low, ""),
					decision(3, "b", at.Add(time.Hour), low, ""),
				},
				Outcomes: []epdapi.Outcome{outcome(1, 5, 5), outcome(2, 1100, 660e3), outcome(3, 1090, 660e3)},
			},
			"epplan: core 945 MHz took 0:18:20, 0.367 kWh of the GPUs: by its model 33.3 % less energy of the " +
				"GPUs than at default clocks, 4.00 % longer, saving 0.183 kWh",
		},
		"held out": {
			epdapi.JobView{Decisions: []epdapi.Decision{
				decision(1, "a", at, dvfsmodel.Setting{}, "held out at random\x1b[2J"),
			}},
			`epplan: default clocks: held out at random\x1b[2J`,
		},
		"no model": {
			epdapi.JobView{Decisions: []epdapi.Decision{
				decision(1, "a", at, dvfsmodel.Setting{}, "default clocks: there is no model"),
			}},
			"epplan: default clocks: there is no model",
		},
		"no prediction": {
			epdapi.JobView{Decisions: []epdapi.Decision{unknown}}, "epplan: core 945 MHz: by the user",
		},
		"more energy": {
			epdapi.JobView{Decisions: []epdapi.Decision{costly}},
			"epplan: core 945 MHz: by its model 20.0 % more energy of the GPUs than at default clocks, " +
				"4.00 % longer, costing 0.050 kWh",
		},
	} {
		if got := view.JobLine(&c.v); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}
