package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/epplan/epplan/internal/epdapi"
)

const (
	savingsTTL     = time.Minute
	savingsTimeout = 4 * time.Second
)

// metric is a metric of a status, without labels.
type metric[S any] struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	value  func(*S) float64
	labels []string // their values
}

func counter[S any](name, help string, value func(*S) float64) metric[S] {
	return metric[S]{
		desc: prometheus.NewDesc(name, help, nil, nil), kind: prometheus.CounterValue, value: value,
	}
}

func gauge[S any](name, help string, value func(*S) float64) metric[S] {
	return metric[S]{
		desc: prometheus.NewDesc(name, help, nil, nil), kind: prometheus.GaugeValue, value: value,
	}
}

// send gives a figure's value to a scrape.
func (f *metric[S]) send(to chan<- prometheus.Metric, of *S) {
	to <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(of), f.labels...)
}

type status = epdapi.ControllerStatus

// statusMetrics are the figures of a controller's status.
var statusMetrics = []metric[status]{
	counter("epplan_submissions_total", "Submissions that job_submit told of.", func(s *status) float64 {
		return float64(s.Submissions)
	}),
	counter("epplan_outcomes_total", "Ended runs that were recorded.", func(s *status) float64 {
		return float64(s.Outcomes)
	}),
	counter("epplan_outcomes_implausible_total", "Outcomes of which something can't be, which "+
		"counts nowhere.", func(s *status) float64 { return float64(s.Implausible) }),
	counter("epplan_refits_total", "Models that were fitted anew.", func(s *status) float64 {
		return float64(s.Refits)
	}),
	counter("epplan_models_retired_total", "Models that are no longer used because they predicted badly.",
		func(s *status) float64 { return float64(s.Retired) }),
	counter("epplan_adapted_runs_total", "Ended runs whose clocks were adapted while they ran.",
		func(s *status) float64 { return float64(s.AdaptedRuns) }),
	counter("epplan_shared_runs_total", "Ended runs that were placed beside others on a GPU.",
		func(s *status) float64 { return float64(s.SharedRuns) }),
	gauge("epplan_nodes_asleep", "Nodes with GPUs that sleep, whoever put them to sleep.",
		func(s *status) float64 { return float64(s.Asleep) }),
	gauge("epplan_nodes_waking", "Nodes with GPUs that wake from sleep.", func(s *status) float64 {
		return float64(s.Waking)
	}),
	gauge("epplan_models", "Models of workloads in use.", func(s *status) float64 {
		return float64(s.Models)
	}),
	gauge("epplan_jobs", "Jobs of Slurm's that the controller knows.", func(s *status) float64 {
		return float64(s.Jobs)
	}),
	gauge("epplan_submissions_waiting", "Submissions that no job was found for yet.",
		func(s *status) float64 { return float64(s.Tokens) }),
	gauge("epplan_runs_decided", "Runs that were decided on and haven't ended.", func(s *status) float64 {
		return float64(s.Decided)
	}),
	gauge("epplan_records_unwritten", "Records that wait to be written to the database.",
		func(s *status) float64 { return float64(s.Unwritten) }),
	gauge("epplan_records_trouble", "1 while records can't be written, else 0.", func(s *status) float64 {
		return boolValue(s.Trouble != "")
	}),
	gauge("epplan_constant_arm_ratio", "Part of the jobs that runs at constant clocks, to compare with.",
		func(s *status) float64 { return s.ConstantArm }),
	gauge("epplan_holdout_ratio", "Part of the jobs that runs at default clocks, to compare with.",
		func(s *status) float64 { return s.HoldOut }),
}

var (
	configDesc = prometheus.NewDesc("epplan_config_info", "The configuration in force; always 1.",
		[]string{"version"}, nil)
	syncDesc = prometheus.NewDesc("epplan_slurm_sync_timestamp_seconds",
		"When Slurm last answered about jobs and nodes, in Unix time; missing until it did.",
		[]string{"what"}, nil)
	syncFailuresDesc = prometheus.NewDesc("epplan_slurm_sync_failures",
		"Questions to Slurm that failed since it last answered.", []string{"what"}, nil)
	errorsDesc = prometheus.NewDesc("epplan_errors_total", "Things that went wrong, by kind.",
		[]string{"kind"}, nil)
)

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// controllerCollector shows a controller's status.
type controllerCollector struct {
	ask func(context.Context) status
}

// Describe lists the metrics.
func (controllerCollector) Describe(to chan<- *prometheus.Desc) {
	for i := range statusMetrics {
		to <- statusMetrics[i].desc
	}
	to <- configDesc
	to <- syncDesc
	to <- syncFailuresDesc
	describeForecasts(to)
}

// Collect takes a snapshot.
func (c controllerCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	s := c.ask(ctx)
	for i := range statusMetrics {
		statusMetrics[i].send(to, &s)
	}
	to <- prometheus.MustNewConstMetric(configDesc, prometheus.GaugeValue, 1, cleanLabel(s.ConfigVersion))
	sendForecasts(to, s.Forecasts)
	for what, sync := range map[string]*epdapi.SyncStatus{"jobs": &s.Queue, "nodes": &s.Nodes} {
		if !sync.At.IsZero() {
			to <- prometheus.MustNewConstMetric(syncDesc, prometheus.GaugeValue,
				float64(sync.At.UnixMilli())/1e3, what)
		}
		to <- prometheus.MustNewConstMetric(syncFailuresDesc, prometheus.GaugeValue,
			float64(sync.Failures), what)
	}
}

// errorsCollector shows what went wrong, as told and as the controller counts.
type errorsCollector struct {
	counters   *errorCounts
	controller func(context.Context) status // nil: none
}

// Describe lists the metrics.
func (e *errorsCollector) Describe(to chan<- *prometheus.Desc) { to <- errorsDesc }

// Collect adds both up.
func (e *errorsCollector) Collect(to chan<- prometheus.Metric) {
	all := e.counters.snapshot()
	if e.controller != nil {
		ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
		defer cancel()
		s := e.controller(ctx)
		all["bad-request"] += float64(s.BadRequests)
		all["outcome-refused"] += float64(s.OutcomeErrors)
		all["record-lost"] += float64(s.Lost)
		if s.Forecasts != nil {
			all["code-server"] += float64(s.Forecasts.AskErrors)
		}
	}
	for kind, n := range all {
		to <- prometheus.MustNewConstMetric(errorsDesc, prometheus.CounterValue, n, kind)
	}
}

// savingMetric is a figure of a saving, by part of the machine.
type savingMetric struct {
	desc  *prometheus.Desc
	value func(*epdapi.Saving) float64
}

// The figures of what was saved, and of the constant arm: missing where there is none.
var (
	savingMetrics = comparisonMetrics("epplan_saved_energy",
		"Estimate of what treated runs used less than they would have, from held-out runs of the "+
			"same workloads; "+
			"at most a minute old, missing while it isn't known.",
		"What these runs would have used at default clocks.", "Treated runs that the estimate is made of.")
	addedMetrics = comparisonMetrics("epplan_added_energy",
		"Estimate of what treated runs used less than they would have at constant clocks, from runs of "+
			"the constant arm; "+
			"missing without such an arm.", "What these runs would have used at constant clocks.",
		"Treated runs that the estimate is made of.")
	constantMetrics = comparisonMetrics("epplan_constant_saved_energy",
		"Estimate of what runs of the constant arm used less than they would have, from held-out runs; "+
			"missing without such an arm.", "What these runs would have used at default clocks.",
		"Runs of the constant arm that the estimate is made of.")
)

// comparisonMetrics are the figures of a comparison of two arms.
func comparisonMetrics(name, saved, baseline, runs string) []savingMetric {
	return []savingMetric{
		{savingDesc(name+"_joules", saved), func(s *epdapi.Saving) float64 { return s.SavedJ }},
		{savingDesc(name+"_low_joules", "Lower bound of its 95 % interval."), func(s *epdapi.Saving) float64 {
			return s.LowJ
		}},
		{savingDesc(name+"_high_joules",
			"Upper bound of its 95 % interval."), func(s *epdapi.Saving) float64 { return s.HighJ }},
		{savingDesc(name+"_baseline_joules", baseline), func(s *epdapi.Saving) float64 {
			return s.BaselineJ
		}},
		{savingDesc(name+"_runs", runs), func(s *epdapi.Saving) float64 { return float64(s.Runs) }},
	}
}

func savingDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"part"}, nil)
}

// savingsCollector shows what was saved, as it was within a minute: it takes
// reading all records.
type savingsCollector struct {
	ask   func(context.Context) (epdapi.Savings, error)
	clock func() time.Time

	mu    sync.Mutex
	asked time.Time
	last  epdapi.Savings
	known bool
}

// Describe lists the metrics.
func (c *savingsCollector) Describe(to chan<- *prometheus.Desc) {
	for _, figures := range [][]savingMetric{savingMetrics, addedMetrics, constantMetrics} {
		for i := range figures {
			to <- figures[i].desc
		}
	}
}

// Collect shows nothing while savings aren't known.
func (c *savingsCollector) Collect(to chan<- prometheus.Metric) {
	s, ok := c.savings()
	if !ok {
		return
	}
	send := func(figures []savingMetric, gpu, node *epdapi.Saving) {
		for part, saving := range map[string]*epdapi.Saving{"gpu": gpu, "node": node} {
			for i := range figures {
				to <- prometheus.MustNewConstMetric(figures[i].desc, prometheus.GaugeValue,
					figures[i].value(saving), part)
			}
		}
	}
	send(savingMetrics, &s.GPU, &s.Node)
	if arm := s.Constant; arm != nil {
		send(addedMetrics, arm.AddedGPU.Saving(), arm.AddedNode.Saving())
		send(constantMetrics, &arm.GPU, &arm.Node)
	}
}

// savings asks, unless it did a short while ago.
func (c *savingsCollector) savings() (epdapi.Savings, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.clock(); c.asked.IsZero() || now.Sub(c.asked) >= savingsTTL {
		c.asked = now
		ctx, cancel := context.WithTimeout(context.Background(), savingsTimeout)
		defer cancel()
		s, err := c.ask(ctx)
		c.last, c.known = s, err == nil
	}
	return c.last, c.known
}
