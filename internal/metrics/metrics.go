package metrics

import (
	"context"
	"net/http"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/live"
)

// Bounds of a scrape.
const (
	scrapeTimeout = 5 * time.Second
	maxScrapes    = 3
)

// Sources are where figures come from when they are asked for. Those of roles
// that epd doesn't play are nil. All may be asked by several at once.
type Sources struct {
	Version, Role string
	Controller    func(context.Context) epdapi.ControllerStatus
	// Savings are asked for once a minute at most.
	Savings func(context.Context) (epdapi.Savings, error)
	Agent   func(context.Context) Agent
	// Steering and Power are a controller's.
	Steering func(context.Context) Steering
	Power    func(context.Context) epdapi.ClusterPower
	// Plan is the plan in force of what waits; false: there is none.
	Plan func(context.Context) (live.Plan, bool)
}

// Metrics are the metrics of an epd.
type Metrics struct {
	registry *prometheus.Registry
	eventCounters
}

// New makes the metrics of an epd.
func New(s Sources) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), eventCounters: newEventCounters()}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "epplan_build_info", Help: "Version of epd; always 1.",
		ConstLabels: prometheus.Labels{
			"version": cleanLabel(s.Version), "goversion": runtime.Version(), "role": cleanLabel(s.Role),
		},
	})
	build.Set(1)
	m.registry.MustRegister(
		build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.durations,
	)
	if s.Controller != nil {
		m.registry.MustRegister(m.decisions, m.applied, m.energy)
	}
	if s.Savings != nil {
		cached := &cachedSavings{ask: s.Savings}
		m.registry.MustRegister(&collector[epdapi.Savings]{savingMetrics, cached.get})
	}
	register(m, []metric[map[string]float64]{errorMetric}, func(ctx context.Context) map[string]float64 {
		all := m.errors.snapshot()
		if s.Controller != nil {
			status := s.Controller(ctx)
			addErrors(all, &status)
		}
		return all
	})
	register(m, slices.Concat(statusMetrics, forecastMetrics), s.Controller)
	register(m, steeringMetrics, s.Steering)
	register(m, powerMetrics, s.Power)
	if s.Plan != nil {
		m.registry.MustRegister(&collector[live.Plan]{planMetrics, s.Plan})
	}
	register(m, slices.Concat(agentMetrics, gpuMetrics, []metric[Agent]{partitionPower()}), s.Agent)
	return m
}

// register has metrics of a source shown; nil: there is none.
func register[S any](m *Metrics, metrics []metric[S], ask func(context.Context) S) {
	if ask != nil {
		known := func(ctx context.Context) (S, bool) { return ask(ctx), true }
		m.registry.MustRegister(&collector[S]{metrics, known})
	}
}

// Handler answers scrapes.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, Timeout: scrapeTimeout, MaxRequestsInFlight: maxScrapes,
	})
}
