package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/epplan/epplan/internal/epdapi"
)

// forecastMetrics are the figures of predictions at submission.
var forecastMetrics = []metric[epdapi.ForecastStatus]{
	gauge("epplan_prediction_learnt_jobs", "Ended jobs that the last training learnt from.",
		func(s *epdapi.ForecastStatus) float64 { return float64(s.Jobs) }),
	counter("epplan_prediction_trainings_total", "Trainings of predictions.",
		func(s *epdapi.ForecastStatus) float64 { return float64(s.Trainings) }),
	counter("epplan_prediction_missed_total", "Submissions for which there was no time to predict.",
		func(s *epdapi.ForecastStatus) float64 { return float64(s.Missed) }),
	counter("epplan_prediction_aligned_total", "Codes that were rewritten into a known style.",
		func(s *epdapi.ForecastStatus) float64 { return float64(s.Aligned) }),
}

// scoreMetrics are the figures of how predictions turned out, by target and rung.
var scoreMetrics = []struct {
	desc  *prometheus.Desc
	value func(*epdapi.ForecastScore) float64
}{
	{
		scoreDesc("epplan_prediction_jobs", "Ended jobs whose predictions at submission are compared with "+
			"what they took."), func(s *epdapi.ForecastScore) float64 { return float64(s.Jobs) },
	},
	{
		scoreDesc("epplan_prediction_coverage_ratio", "Part of the truths within their interval, which "+
			"is to be 0.9."), func(s *epdapi.ForecastScore) float64 { return s.Coverage },
	},
	{
		scoreDesc("epplan_prediction_error_ratio", "Relative error in the median, of the last 500."),
		func(s *epdapi.ForecastScore) float64 { return s.MedianError },
	},
}

func scoreDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"target", "rung"}, nil)
}

// describeForecasts lists the metrics of predictions.
func describeForecasts(to chan<- *prometheus.Desc) {
	for i := range forecastMetrics {
		to <- forecastMetrics[i].desc
	}
	for i := range scoreMetrics {
		to <- scoreMetrics[i].desc
	}
}

// sendForecasts shows how predictions fare; nothing where there are none.
func sendForecasts(to chan<- prometheus.Metric, s *epdapi.ForecastStatus) {
	if s == nil || !s.Enabled {
		return
	}
	for i := range forecastMetrics {
		forecastMetrics[i].send(to, s)
	}
	for i := range s.Scores {
		one := &s.Scores[i]
		rung := one.Tier
		if rung == "" {
			rung = "any"
		}
		for k := range scoreMetrics {
			to <- prometheus.MustNewConstMetric(scoreMetrics[k].desc, prometheus.GaugeValue,
				scoreMetrics[k].value(one), one.Target, rung)
		}
	}
}
