package metrics

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/live"
)

const (
	savingsTTL     = time.Minute
	savingsTimeout = 4 * time.Second
)

// sample takes a value of a metric, with those of its labels.
type sample func(value float64, labels ...string)

// metric is a metric of what is asked for at each scrape.
type metric[S any] struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	each func(of *S, yield sample)
}

func counter[S any](name, help string, value func(*S) float64) metric[S] {
	return labelled(prometheus.CounterValue, name, help, nil, func(of *S, yield sample) { yield(value(of)) })
}

func gauge[S any](name, help string, value func(*S) float64) metric[S] {
	return labelled(prometheus.GaugeValue, name, help, nil, func(of *S, yield sample) { yield(value(of)) })
}

func labelled[S any](
	kind prometheus.ValueType, name, help string, labels []string, each func(of *S, yield sample),
) metric[S] {
	return metric[S]{prometheus.NewDesc(name, help, labels, nil), kind, each}
}

// collector shows metrics of what it asks for at each scrape.
type collector[S any] struct {
	metrics []metric[S]
	ask     func(context.Context) (of S, known bool)
}

// Describe lists the metrics.
func (c *collector[S]) Describe(to chan<- *prometheus.Desc) {
	for i := range c.metrics {
		to <- c.metrics[i].desc
	}
}

// Collect takes a snapshot.
func (c *collector[S]) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	of, known := c.ask(ctx)
	if !known {
		return
	}
	for _, m := range c.metrics {
		m.each(&of, func(value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
		})
	}
}

type status = epdapi.ControllerStatus

// statusMetrics are the figures of a controller's status.
var statusMetrics = []metric[status]{
	counter("epplan_submissions_total", "Submissions reported by job_submit.", func(s *status) float64 {
		return float64(s.Submissions)
	}),
	counter("epplan_outcomes_total", "Ended runs that were recorded.", func(s *status) float64 {
		return float64(s.Outcomes)
	}),
	counter("epplan_outcomes_implausible_total", "Outcomes with impossible values, which "+
		"count nowhere.", func(s *status) float64 { return float64(s.Implausible) }),
	counter("epplan_refits_total", "Models fitted again.", func(s *status) float64 {
		return float64(s.Refits)
	}),
	counter("epplan_models_retired_total", "Models taken out of use because they predicted badly.",
		func(s *status) float64 { return float64(s.Retired) }),
	counter("epplan_adapted_runs_total", "Ended runs whose clocks were adapted.",
		func(s *status) float64 { return float64(s.AdaptedRuns) }),
	counter("epplan_shared_runs_total", "Ended runs that shared a GPU.",
		func(s *status) float64 { return float64(s.SharedRuns) }),
	labelled(prometheus.CounterValue, "epplan_runs_not_locked_total",
		"Ended runs whose decided clocks weren't set, or not to their end.",
		[]string{"reason"}, func(s *status, yield sample) {
			for _, kind := range live.NotLockedKinds {
				yield(float64(s.NotLocked[kind]), string(kind))
			}
		}),
	gauge("epplan_nodes_asleep", "GPU nodes asleep.",
		func(s *status) float64 { return float64(s.Asleep) }),
	gauge("epplan_nodes_waking", "GPU nodes waking up.", func(s *status) float64 {
		return float64(s.Waking)
	}),
	gauge("epplan_models", "Models of workloads in use.", func(s *status) float64 {
		return float64(s.Models)
	}),
	gauge("epplan_jobs", "Slurm jobs that the controller knows.", func(s *status) float64 {
		return float64(s.Jobs)
	}),
	gauge("epplan_submissions_waiting", "Submissions without a known job yet.",
		func(s *status) float64 { return float64(s.Tokens) }),
	gauge("epplan_runs_decided", "Runs with a decision that haven't ended.", func(s *status) float64 {
		return float64(s.Decided)
	}),
	gauge("epplan_records_unwritten", "Records not yet in the database.",
		func(s *status) float64 { return float64(s.Unwritten) }),
	gauge("epplan_suspected_limit_nodes",
		"Nodes left alone because something else seems to limit their GPUs.",
		func(s *status) float64 { return float64(len(s.Suspected)) }),
	gauge("epplan_records_trouble", "1 while records can't be written, else 0.", func(s *status) float64 {
		return boolValue(s.Trouble != "")
	}),
	budgetMetric("epplan_budget_watts", "Power budget in force; missing without one.",
		func(s *epdapi.BudgetScope) live.Number { return s.Budget }),
	budgetMetric("epplan_budget_allowed_watts", "Power that the limits allow under a budget, with hosts.",
		func(s *epdapi.BudgetScope) live.Number { return live.Known(float64(s.InForce)) }),
	budgetMetric("epplan_budget_measured_watts", "Power drawn under a budget, with hosts.",
		func(s *epdapi.BudgetScope) live.Number { return live.Known(float64(s.Measured)) }),
	budgetMetric("epplan_budget_short_watts", "Excess of the lowest power limits over a budget.",
		func(s *epdapi.BudgetScope) live.Number { return live.Known(float64(s.Short)) }),
	budgetMetric("epplan_budget_ignoring_gpus", "GPUs under a budget that exceed their power limits.",
		func(s *epdapi.BudgetScope) live.Number { return live.Known(float64(len(s.Ignoring))) }),
	gauge("epplan_holdout_ratio", "Fraction of jobs held out at default clocks.",
		func(s *status) float64 { return s.HoldOut }),
	labelled(prometheus.GaugeValue, "epplan_config_info", "The configuration in force; always 1.",
		[]string{"version"}, func(s *status, yield sample) { yield(1, cleanLabel(s.ConfigVersion)) }),
	labelled(prometheus.GaugeValue, "epplan_slurm_sync_timestamp_seconds",
		"Time of Slurm's last answer; missing before the first.",
		[]string{"what"}, func(s *status, yield sample) {
			for what, sync := range syncs(s) {
				if !sync.At.IsZero() {
					yield(float64(sync.At.UnixMilli())/1e3, what)
				}
			}
		}),
	labelled(prometheus.GaugeValue, "epplan_slurm_sync_failures",
		"Failed requests since Slurm's last answer.", []string{"what"},
		func(s *status, yield sample) {
			for what, sync := range syncs(s) {
				yield(float64(sync.Failures), what)
			}
		}),
	labelled(prometheus.GaugeValue, "epplan_slurm_records_unread",
		"Unreadable records in Slurm's last answer, ignored.", []string{"what"},
		func(s *status, yield sample) {
			for what, sync := range syncs(s) {
				yield(float64(sync.Unread), what)
			}
		}),
}

// budgetMetric is a figure of each power budget.
func budgetMetric(name, help string, of func(*epdapi.BudgetScope) live.Number) metric[status] {
	return labelled(prometheus.GaugeValue, name, help, []string{"scope"}, func(s *status, yield sample) {
		if s.Budgets == nil {
			return
		}
		for i := range s.Budgets.Scopes {
			if v, known := of(&s.Budgets.Scopes[i]).Get(); known {
				yield(v, cleanLabel(s.Budgets.Scopes[i].Scope))
			}
		}
	})
}

func syncs(s *status) map[string]*epdapi.SyncStatus {
	return map[string]*epdapi.SyncStatus{"jobs": &s.Queue, "nodes": &s.Nodes}
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

var errorMetric = labelled(prometheus.CounterValue, "epplan_errors_total", "Errors.",
	[]string{"kind"}, func(counts *map[string]float64, yield sample) {
		for kind, n := range *counts {
			yield(n, kind)
		}
	})

// addErrors adds what a controller counts by itself.
func addErrors(all map[string]float64, s *status) {
	all["bad-request"] += float64(s.BadRequests)
	all["outcome-elsewhere"] += float64(s.Elsewhere)
	all["prolog-missing"] += float64(s.JobsWithoutProlog())
	all["submission-missed"] += float64(s.TokensMissing)
	all["outcome-refused"] += float64(s.OutcomeErrors)
	all["record-lost"] += float64(s.Lost)
	if s.Forecasts != nil {
		all["code-server"] += float64(s.Forecasts.AskErrors)
	}
}

// savingMetrics are the figures of what was saved, and of what that cost in time.
var savingMetrics = slices.Concat(energyMetrics(), timeMetrics(), []metric[epdapi.Savings]{footprintMetric})

// footprintMetric turns the other metrics of energy into money, carbon and water.
var footprintMetric = labelled(prometheus.GaugeValue, "epplan_footprint_per_joule",
	"cost or emissions of a joule of the computers by [factors], PUE included: currency, grams of CO2 "+
		"equivalent or litres; missing if not stated", []string{"what", "unit"},
	func(s *epdapi.Savings, yield sample) {
		stated := s.Factors.Config().StatedFootprint(1)
		for _, f := range []struct {
			value      *float64
			what, unit string
		}{{stated.Cost, "cost", s.Factors.Currency}, {stated.Carbon, "carbon", "g"}, {stated.Water, "water", "l"}} {
			if f.value != nil {
				yield(*f.value, f.what, cleanLabel(f.unit))
			}
		}
	})

// timeMetrics returns the figures of what savings cost in time.
func timeMetrics() []metric[epdapi.Savings] {
	figure := func(suffix, help string, value func(*epdapi.Longer) float64) metric[epdapi.Savings] {
		return labelled(prometheus.GaugeValue, "epplan_longer"+suffix, help, []string{"arm"},
			func(s *epdapi.Savings, yield sample) {
				yield(value(&s.Time), "treated")
				if s.Constant != nil {
					yield(value(&s.Constant.Time), "constant")
				}
			})
	}
	return []metric[epdapi.Savings]{
		figure("_seconds", "Extra time of runs against default clocks.",
			func(l *epdapi.Longer) float64 { return l.LongerS }),
		figure("_low_seconds", "Lower bound of the 95 % interval.",
			func(l *epdapi.Longer) float64 { return l.LowS }),
		figure("_high_seconds", "Upper bound of the 95 % interval.",
			func(l *epdapi.Longer) float64 { return l.HighS }),
		figure("_baseline_seconds", "Estimated time of these runs at default clocks.",
			func(l *epdapi.Longer) float64 { return l.BaselineS }),
	}
}

// energyMetrics returns the figures of the energy that was saved, by part of the machine.
func energyMetrics() []metric[epdapi.Savings] {
	figure := func(suffix, help string, value func(*epdapi.Saving) float64) metric[epdapi.Savings] {
		return labelled(prometheus.GaugeValue, "epplan_saved_energy"+suffix, help, []string{"part"},
			func(s *epdapi.Savings, yield sample) {
				yield(value(&s.GPU), "gpu")
				yield(value(&s.Node), "node")
			})
	}
	return []metric[epdapi.Savings]{
		figure("_joules", "Energy saved by treated runs; at most a minute old, missing while unknown.",
			func(s *epdapi.Saving) float64 { return s.SavedJ }),
		figure("_low_joules", "Lower bound of the 95 % interval.",
			func(s *epdapi.Saving) float64 { return s.LowJ }),
		figure("_high_joules", "Upper bound of the 95 % interval.",
			func(s *epdapi.Saving) float64 { return s.HighJ }),
		figure("_baseline_joules", "Estimated energy of these runs at default clocks.",
			func(s *epdapi.Saving) float64 { return s.BaselineJ }),
		figure("_runs", "Treated runs in the estimate.",
			func(s *epdapi.Saving) float64 { return float64(s.Runs) }),
	}
}

// cachedSavings is what was saved, as it was within a minute: it takes reading all records.
type cachedSavings struct {
	ask   func(context.Context) (epdapi.Savings, error)
	mu    sync.Mutex
	asked time.Time
	last  epdapi.Savings
	known bool
}

// get asks, unless it did a short while ago.
func (c *cachedSavings) get(ctx context.Context) (epdapi.Savings, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.asked.IsZero() || now.Sub(c.asked) >= savingsTTL {
		c.asked = now
		ctx, cancel := context.WithTimeout(ctx, savingsTimeout)
		defer cancel()
		s, err := c.ask(ctx)
		c.last, c.known = s, err == nil
	}
	return c.last, c.known
}
