package control

import (
	"math"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
)

// footprint is what a forecast comes to if its job began now, by factors over time;
// nil where there are only constant ones.
func (s *Settings) footprint(now time.Time, f *epdapi.Forecast) *epdapi.ForecastFootprint {
	if s.series == nil {
		return nil
	}
	out := &epdapi.ForecastFootprint{Currency: s.Factors.Currency}
	for i, seconds := range []float64{f.Time.Value, f.Time.Low, f.Time.High} {
		const longest = 1e8 // s: three years
		factors := s.series.MeanFactors(now, time.Duration(min(seconds, longest)*float64(time.Second)),
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
					Value: values[0], Low: values[0], High: values[0], Tier: f.Energy.Tier,
				}
			}
			to.Low, to.High = min(to.Low, values[1], values[2]), max(to.High, values[1], values[2])
		}
	}
	return out
}

// powerOfGPUs is the least and the most that one of the GPUs uses that a job may get, by
// their profiles: 0 and infinite where a profile doesn't say.
func (c *Controller) powerOfGPUs() (idle, busy dvfsmodel.Watt) {
	names := c.gpuModels()
	if len(names) == 0 {
		return 0, dvfsmodel.Watt(math.Inf(1))
	}
	idle = dvfsmodel.Watt(math.Inf(1))
	s := c.settings.Load()
	for _, name := range names {
		p, err := s.Profiles.Lookup(name)
		if err != nil {
			return 0, dvfsmodel.Watt(math.Inf(1))
		}
		idle = min(idle, p.IdleW)
		if busy = max(busy, p.BusyW); p.BusyW == 0 {
			busy = dvfsmodel.Watt(math.Inf(1))
		}
	}
	return idle, busy
}
