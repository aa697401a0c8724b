package metrics

import (
	"maps"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// RequestKind is what was asked of epd, and took time.
type RequestKind string

// The requests.
const (
	Submit  RequestKind = "submit"
	Decide  RequestKind = "decide"
	Outcome RequestKind = "outcome"
	Prolog  RequestKind = "prolog"
	Epilog  RequestKind = "epilog"
)

// What labels can be.
var (
	requests = []RequestKind{Submit, Decide, Outcome, Prolog, Epilog}
	modes    = []string{"observe", "advise", "enforce"}
	arms     = []string{"treated", "held-out", "constant", "excluded"}
)

// buckets go from a decision in memory to a hook that is given up.
var buckets = []float64{
	20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3, 0.1, 0.25, 0.5, 1, 2,
}

// DecisionLabels is what counts of a decision.
type DecisionLabels struct {
	Mode, Arm string
	Applied   bool // clocks are to be set
}

// RunEnergy is what counts of an ended run of a job. Energies are in joules, nil where
// they aren't known.
type RunEnergy struct {
	Partition, GPUModel, Arm string
	GPU, Node                *float64
}

// eventCounters is what others tell as it happens.
type eventCounters struct {
	durations          *prometheus.HistogramVec
	requestDurations   map[RequestKind]prometheus.Observer
	decisions, applied *prometheus.CounterVec
	energy             *prometheus.CounterVec
	groups             *boundedLabels[powerGroup]
	errors             *errorCounts
}

func newEventCounters() eventCounters {
	c := eventCounters{
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "epplan_request_duration_seconds",
			Help: "Duration of requests: submit, decide and outcome at the controller, prolog and epilog " +
				"at the agent.", Buckets: buckets,
		}, []string{"request"}),
		requestDurations: make(map[RequestKind]prometheus.Observer),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "epplan_decisions_total", Help: "Decisions about the clocks of a job on a node.",
		}, []string{"mode", "arm"}),
		applied: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "epplan_decisions_applied_total", Help: "Decisions that set clocks.",
		}, []string{"mode", "arm"}),
		energy: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "epplan_run_energy_joules_total",
			Help: "Energy of recorded runs; part is gpu or node.",
		}, []string{"partition", "gpu_model", "arm", "part"}),
		groups: newBoundedLabels(maxGroups, powerGroup{overflowLabel, overflowLabel}),
		errors: &errorCounts{
			names: newBoundedLabels(maxKinds, overflowLabel), counts: make(map[string]float64),
		},
	}
	for _, r := range requests {
		c.requestDurations[r] = c.durations.WithLabelValues(string(r))
	}
	for _, mode := range modes {
		for _, arm := range arms {
			c.decisions.WithLabelValues(mode, arm)
			c.applied.WithLabelValues(mode, arm)
		}
	}
	return c
}

// Took tells what a request took. Requests that aren't listed don't count.
func (c *eventCounters) Took(r RequestKind, t time.Duration) {
	if o := c.requestDurations[r]; o != nil {
		o.Observe(t.Seconds())
	}
}

// Decided counts a decision.
func (c *eventCounters) Decided(d DecisionLabels) {
	mode, arm := knownOrOverflow(d.Mode, modes), knownOrOverflow(d.Arm, arms)
	c.decisions.WithLabelValues(mode, arm).Inc()
	if d.Applied {
		c.applied.WithLabelValues(mode, arm).Inc()
	}
}

// Recorded counts the energy of a run.
func (c *eventCounters) Recorded(r RunEnergy) {
	g := c.groups.valueOrOther(powerGroup{cleanLabel(r.Partition), cleanLabel(r.GPUModel)})
	for part, joules := range map[string]*float64{"gpu": r.GPU, "node": r.Node} {
		if joules != nil && *joules > 0 && !math.IsInf(*joules, 1) { // nor NaN: a counter never falls
			c.energy.WithLabelValues(g.partition, g.model, knownOrOverflow(r.Arm, arms), part).Add(*joules)
		}
	}
}

// Failed counts an error by its kind: a short word that no user can choose.
func (c *eventCounters) Failed(kind string) { c.errors.add(kind) }

type errorCounts struct {
	mu     sync.Mutex
	names  *boundedLabels[string]
	counts map[string]float64
}

func (k *errorCounts) add(kind string) {
	kind = k.names.valueOrOther(cleanLabel(kind))
	k.mu.Lock()
	defer k.mu.Unlock()
	k.counts[kind]++
}

func (k *errorCounts) snapshot() map[string]float64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.counts)
}
