package metrics

import (
	"context"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/epplan/epplan/internal/epdapi"
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
	Steering func() Steering
	Power    func() epdapi.ClusterPower
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
		Name: "epplan_build_info", Help: "The program that answers; always 1.",
		ConstLabels: prometheus.Labels{
			"version": cleanLabel(s.Version), "goversion": runtime.Version(), "role": cleanLabel(s.Role),
		},
	})
	build.Set(1)
	m.registry.MustRegister(
		build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.durations, &errorsCollector{m.errors, s.Controller},
	)
	if s.Controller != nil {
		m.registry.MustRegister(m.decisions, m.applied, m.energy, controllerCollector{s.Controller})
	}
	if s.Savings != nil {
		m.registry.MustRegister(&savingsCollector{ask: s.Savings, clock: time.Now})
	}
	if s.Steering != nil {
		m.registry.MustRegister(&snapshotCollector[Steering]{steeringMetrics, s.Steering})
	}
	if s.Power != nil {
		m.registry.MustRegister(&snapshotCollector[epdapi.ClusterPower]{powerMetrics, s.Power})
	}
	if s.Agent != nil {
		m.registry.MustRegister(newAgentCollector(s.Agent))
	}
	return m
}

// Handler answers scrapes.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, Timeout: scrapeTimeout, MaxRequestsInFlight: maxScrapes,
	})
}
