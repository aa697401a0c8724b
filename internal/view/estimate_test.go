package view_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/view"
)

func TestTerminalAndPageHaveTheSameFiguresOfClocksAndOfWhatIsExpected(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		number := func(name string) float64 { return rapid.Float64Range(1, 1e6).Draw(r, name) }
		point := func(core dvfsmodel.MHz) *epdapi.Point {
			return &epdapi.Point{
				Setting: dvfsmodel.Setting{Core: core}, TimeS: number("time"), LowerS: number("lower"),
				UpperS: number("upper"), PowerW: number("power"), EnergyJ: number("energy"), HostJ: number("host"),
			}
		}
		standard, chosen := point(1380), point(1087)
		within := func(rung string) epdapi.PredictedRange {
			return epdapi.PredictedRange{
				Value: number("value"), Low: number("low"), High: number("high"), Rung: rung,
			}
		}
		f := &epdapi.Forecast{
			Time: within("repeat"), Energy: within("similar"), Power: within("prior"), Strange: true, Score: 4.25,
		}
		model := &epdapi.Model{Version: 7, Samples: 12, MinCore: 900, MaxCore: 1380, Margin: .04}
		wants := append(make([]string, 0, 23),
			"version 7 on V100", "core 1380 MHz", "core 1087 MHz", "4.2 times as far",
			report.FormatPercent(chosen.TimeS/standard.TimeS)+" of the time",
			report.FormatPercent((chosen.EnergyJ+chosen.HostJ)/(standard.EnergyJ+standard.HostJ))+
				" with their share",
			report.FormatSeconds(f.Time.Value), report.FormatJoules(f.Energy.Low), report.FormatWatts(f.Power.High),
			"by runs of the same job", "by runs of similar jobs", "nothing known",
		)
		for _, p := range []*epdapi.Point{standard, chosen} {
			wants = append(wants, report.FormatSeconds(p.TimeS), report.FormatSeconds(p.LowerS),
				report.FormatSeconds(p.UpperS), report.FormatWatts(p.PowerW), report.FormatJoules(p.EnergyJ))
		}
		factors := &epdapi.Factors{CostPerKWh: .25, Currency: "EUR"}
		wants = append(wants, view.FootprintText(factors, f.Energy.Value))
		all := append(view.Points(model, "V100", standard, chosen), view.Forecast(f, factors)...)
		for where, text := range bothOf(t, &view.View{Facts: all}) {
			for _, want := range wants {
				if !strings.Contains(text, want) {
					r.Fatalf("%q isn't on the %s:\n%s", want, where, text)
				}
			}
		}
	})
}
