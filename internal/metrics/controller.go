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
	labelled(prometheus.CounterValue, "epplan_runs_not_locked_total",
		"Ended runs whose decided clocks weren't set, or not to their end, by what kept them from it.",
		[]string{"reason"}, func(s *status, yield sample) {
			for _, kind := range live.NotLockedKinds {
				yield(float64(s.NotLocked[kind]), string(kind))
			}
		}),
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
	gauge("epplan_suspected_limit_nodes",
		"Nodes that are left alone as somebody else seems to hold their GPUs down.",
		func(s *status) float64 { return float64(len(s.Suspected)) }),
	gauge("epplan_records_trouble", "1 while records can't be written, else 0.", func(s *status) float64 {
		return boolValue(s.Trouble != "")
	}),
	budgetMetric("epplan_budget_watts", "Power budget in force; missing where there is none now.",
		func(s *epdapi.BudgetScope) live.Number { return s.Budget }),
	budgetMetric("epplan_budget_allowed_watts", "What power limits allow nodes under a budget, with hosts.",
		func(s *epdapi.BudgetScope) live.Number { return live.Known(float64(s.InForce)) }),
	budgetMetric("epplan_budget_measured_watts", "What nodes under a budget take, with hosts.",
		func(s *epdapi.BudgetScope) live.Number { return live.Known(float64(s.Measured)) }),
	budgetMetric("epplan_budget_short_watts", "By how much the least power limits exceed a budget: it isn't kept.",
		func(s *epdapi.BudgetScope) live.Number { return live.Known(float64(s.Short)) }),
	budgetMetric("epplan_budget_ignoring_gpus", "GPUs under a budget that draw more than their power limits.",
		func(s *epdapi.BudgetScope) live.Number { return live.Known(float64(len(s.Ignoring))) }),
	gauge("epplan_holdout_ratio", "Part of the jobs that runs at default clocks, to compare with.",
		func(s *status) float64 { return s.HoldOut }),
	labelled(prometheus.GaugeValue, "epplan_config_info", "The configuration in force; always 1.",
		[]string{"version"}, func(s *status, yield sample) { yield(1, cleanLabel(s.ConfigVersion)) }),
	labelled(prometheus.GaugeValue, "epplan_slurm_sync_timestamp_seconds",
		"When Slurm last answered about jobs and nodes, in Unix time; missing until it did.",
		[]string{"what"}, func(s *status, yield sample) {
			for what, sync := range syncs(s) {
				if !sync.At.IsZero() {
					yield(float64(sync.At.UnixMilli())/1e3, what)
				}
			}
		}),
	labelled(prometheus.GaugeValue, "epplan_slurm_sync_failures",
		"Questions to Slurm that failed since it last answered.", []string{"what"},
		func(s *status, yield sample) {
			for what, sync := range syncs(s) {
				yield(float64(sync.Failures), what)
			}
		}),
	labelled(prometheus.GaugeValue, "epplan_slurm_records_unread",
		"Records of Slurm's last answer that could not be read and were passed over.", []string{"what"},
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

var errorMetric = labelled(prometheus.CounterValue, "epplan_errors_total", "Things that went wrong, by kind.",
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
var savingMetrics = slices.Concat(energyMetrics(), timeMetrics())

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
		figure("_seconds", "Estimate of how much longer runs took than they would have at default clocks, from "+
			"held-out runs of the same workloads.", func(l *epdapi.Longer) float64 { return l.LongerS }),
		figure("_low_seconds", "Lower bound of its 95 % interval.",
			func(l *epdapi.Longer) float64 { return l.LowS }),
		figure("_high_seconds", "Upper bound of its 95 % interval.",
			func(l *epdapi.Longer) float64 { return l.HighS }),
		figure("_baseline_seconds", "What these runs would have taken at default clocks.",
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
		figure("_joules", "Estimate of what treated runs used less than they would have, from held-out runs "+
			"of the same workloads; at most a minute old, missing while it isn't known.",
			func(s *epdapi.Saving) float64 { return s.SavedJ }),
		figure("_low_joules", "Lower bound of its 95 % interval.",
			func(s *epdapi.Saving) float64 { return s.LowJ }),
		figure("_high_joules", "Upper bound of its 95 % interval.",
			func(s *epdapi.Saving) float64 { return s.HighJ }),
		figure("_baseline_joules", "What these runs would have used at default clocks.",
			func(s *epdapi.Saving) float64 { return s.BaselineJ }),
		figure("_runs", "Treated runs that the estimate is made of.",
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
