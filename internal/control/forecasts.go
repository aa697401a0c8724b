package control

import (
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
)

// longestRun is what longer runs are taken for where values over time are asked for, seconds: three years.
const longestRun = 1e8

// footprint returns what a forecast comes to if its job began now, by factors over time;
// nil where there are only constant ones.
func (s *Settings) footprint(now time.Time, f *epdapi.Forecast) *epdapi.ForecastFootprint {
	if s.series == nil {
		return nil
	}
	out := &epdapi.ForecastFootprint{Currency: s.Factors.Currency}
	for i, seconds := range []float64{f.Time.Value, f.Time.Low, f.Time.High} {
		factors := s.series.MeanFactors(now, time.Duration(min(seconds, longestRun)*float64(time.Second)),
			&s.Factors)
		all := factors.Footprint(dvfsmodel.Joule(f.Energy.Value))
		low, high := factors.Footprint(dvfsmodel.Joule(f.Energy.Low)),
			factors.Footprint(dvfsmodel.Joule(f.Energy.High))
		for to, values := range map[*epdapi.PredictedRange][3]float64{
			&out.Carbon: {all.Carbon, low.Carbon, high.Carbon},
			&out.Water:  {all.Water, low.Water, high.Water},
			&out.Cost:   {all.Cost, low.Cost, high.Cost},
		} {
			if i == 0 {
				*to = epdapi.PredictedRange{
					Value: values[0], Low: values[0], High: values[0], Rung: f.Energy.Rung,
				}
			}
			to.Low, to.High = min(to.Low, values[1], values[2]), max(to.High, values[1], values[2])
		}
	}
	return out
}
