package metrics

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/epplan/epplan/internal/epdapi"
)

// forecastMetrics are the figures of predictions at submission: nothing where there are none.
var forecastMetrics = []metric[status]{
	forecastMetric(prometheus.GaugeValue, "epplan_prediction_learnt_jobs",
		"Ended jobs in the last training.",
		func(s *epdapi.ForecastStatus) float64 { return float64(s.Jobs) }),
	forecastMetric(prometheus.CounterValue, "epplan_prediction_missed_total",
		"Submissions without a prediction, for lack of time.",
		func(s *epdapi.ForecastStatus) float64 { return float64(s.Missed) }),
	scoreMetric("epplan_prediction_jobs", "Ended jobs whose predictions are compared with "+
		"the outcome.", func(s *epdapi.ForecastScore) float64 { return float64(s.Jobs) }),
	scoreMetric("epplan_prediction_coverage_ratio", "Fraction of outcomes within their interval; "+
		"0.9 is intended.", func(s *epdapi.ForecastScore) float64 { return s.Coverage }),
}

func forecastMetric(
	kind prometheus.ValueType, name, help string, value func(*epdapi.ForecastStatus) float64,
) metric[status] {
	return labelled(kind, name, help, nil, func(s *status, yield sample) {
		if f := s.Forecasts; f != nil && f.Enabled {
			yield(value(f))
		}
	})
}

// scoreMetric returns a figure of how predictions turned out, by target and rung.
func scoreMetric(name, help string, value func(*epdapi.ForecastScore) float64) metric[status] {
	labels := []string{"target", "rung"}
	return labelled(prometheus.GaugeValue, name, help, labels, func(s *status, yield sample) {
		if s.Forecasts == nil || !s.Forecasts.Enabled {
			return
		}
		for i := range s.Forecasts.Scores {
			one := &s.Forecasts.Scores[i]
			yield(value(one), one.Target, cmp.Or(one.Rung, "any"))
		}
	})
}
