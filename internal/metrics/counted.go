package metrics

import (
	"maps"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Request is what was asked of epd, and took time.
type Request string

// The requests.
const (
	Submit  Request = "submit"
	Decide  Request = "decide"
	Outcome Request = "outcome"
	Prolog  Request = "prolog"
	Epilog  Request = "epilog"
)

// What labels can be.
var (
	requests = []Request{Submit, Decide, Outcome, Prolog, Epilog}
	modes    = []string{"observe", "advise", "enforce"}
	arms     = []string{"treated", "held-out", "constant", "excluded"}
)

// buckets go from a decision in memory to a hook that is given up.
var buckets = []float64{20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3, 0.1, 0.25, 0.5, 1, 2}

// Decision is what counts of a decision.
type Decision struct {
	Mode, Arm string
	Applied   bool // clocks are to be set
}

// Run is what counts of an ended run of a job. Energies are in joules, nil where
// they aren't known.
type Run struct {
	Partition, GPUModel, Arm string
	GPU, Node                *float64
}

// counted is what others tell as it happens.
type counted struct {
	took               *prometheus.HistogramVec
	known              map[Request]prometheus.Observer
	decisions, applied *prometheus.CounterVec
	energy             *prometheus.CounterVec
	groups             *bounded[group]
	failed             *kinds
}

func newCounted() counted {
	c := counted{
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "epplan_request_duration_seconds", Help: "What requests took: submit, decide and outcome at the controller, prolog and epilog at the agent.", Buckets: buckets,
		}, []string{"request"}),
		known: make(map[Request]prometheus.Observer),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "epplan_decisions_total", Help: "Decisions on the clocks of a job on a node.",
		}, []string{"mode", "arm"}),
		applied: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "epplan_decisions_applied_total", Help: "Decisions by which clocks are set.",
		}, []string{"mode", "arm"}),
		energy: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "epplan_run_energy_joules_total", Help: "Energy of runs that ended and were recorded; part is gpu or node.",
		}, []string{"partition", "gpu_model", "arm", "part"}),
		groups: newBounded(maxGroups, group{overflow, overflow}),
		failed: &kinds{names: newBounded(maxKinds, overflow), counts: make(map[string]float64)},
	}
	for _, r := range requests {
		c.known[r] = c.took.WithLabelValues(string(r))
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
func (c *counted) Took(r Request, t time.Duration) {
	if o := c.known[r]; o != nil {
		o.Observe(t.Seconds())
	}
}

// Decided counts a decision.
func (c *counted) Decided(d Decision) {
	mode, arm := oneOf(d.Mode, modes), oneOf(d.Arm, arms)
	c.decisions.WithLabelValues(mode, arm).Inc()
	if d.Applied {
		c.applied.WithLabelValues(mode, arm).Inc()
	}
}

// Recorded counts the energy of a run.
func (c *counted) Recorded(r Run) {
	g := c.groups.of(group{clean(r.Partition), clean(r.GPUModel)})
	for part, joules := range map[string]*float64{"gpu": r.GPU, "node": r.Node} {
		if joules != nil && *joules > 0 && !math.IsInf(*joules, 1) { // nor NaN: a counter never falls
			c.energy.WithLabelValues(g.partition, g.model, oneOf(r.Arm, arms), part).Add(*joules)
		}
	}
}

// Failed counts an error by its kind: a short word that no user can choose.
func (c *counted) Failed(kind string) { c.failed.add(kind) }

// kinds counts errors.
type kinds struct {
	mu     sync.Mutex
	names  *bounded[string]
	counts map[string]float64
}

func (k *kinds) add(kind string) {
	kind = k.names.of(clean(kind))
	k.mu.Lock()
	defer k.mu.Unlock()
	k.counts[kind]++
}

// all are the counts by kind.
func (k *kinds) all() map[string]float64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.counts)
}
