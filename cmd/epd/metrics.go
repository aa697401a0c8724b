package main

import (
	"context"
	"net/http"
	"time"

	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/decide"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/metrics"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm/hooks"
)

// newMetrics returns the metrics of the role, whose parts are asked once they are
// there.
func (p *program) newMetrics() *metrics.Metrics {
	s := metrics.Sources{Version: version, Role: p.role}
	if p.role != roleAgent {
		s.Controller = func(ctx context.Context) epdapi.ControllerStatus {
			return p.control.Queries.Status(ctx, query.ForEPD())
		}
		s.Savings = func(ctx context.Context) (epdapi.Savings, error) {
			return p.control.Queries.Savings(ctx, query.ForEPD(), time.Time{}, time.Time{})
		}
		s.Power = func(context.Context) epdapi.ClusterPower { return p.control.Queries.Power() }
		s.Plan = func(context.Context) (live.Plan, bool) { return planMetrics(p.control) }
		s.Steering = func(context.Context) metrics.Steering { return steeringMetrics(p.steerer) }
	}
	if p.role != roleController {
		s.Agent = func(ctx context.Context) metrics.Agent { return p.node.Measure(ctx) }
	}
	return metrics.New(s)
}

// planMetrics returns the plan in force; false: there is none.
func planMetrics(c *control.Controller) (live.Plan, bool) {
	plan := c.Plan.Plan(time.Now())
	if plan == nil || plan.OrderOnly {
		return live.Plan{}, false
	}
	return *plan, true
}

// steeringMetrics returns what is steered in Slurm; nothing where nothing is.
func steeringMetrics(steerer *steer.Steerer) metrics.Steering {
	if steerer == nil {
		return metrics.Steering{}
	}
	return metrics.Steering{Wakes: steerer.Status().Wakes}
}

// countDecision counts a decision.
func countDecision(m *metrics.Metrics, o control.Observed) {
	m.Took(metrics.Decide, o.Took)
	if o.Fault != decide.NoFault {
		m.Failed(string(o.Fault))
	}
	if !o.Again && o.Fault != decide.FaultRequest {
		m.Decided(metrics.DecisionLabels{Mode: string(o.Mode), Arm: string(o.Arm), Applied: o.Apply})
	}
}

// countEnergy counts the energy of a run.
func countEnergy(m *metrics.Metrics, o *record.Outcome, partition string) {
	run := metrics.RunEnergy{Partition: partition, GPUModel: o.GPUModel, Arm: string(o.Arm)}
	if joules, ok := o.GPUEnergyJ.Get(); ok {
		run.GPU = &joules
	}
	if joules, ok := o.NodeEnergyJ.Get(); ok {
		run.Node = &joules
	}
	m.Recorded(run)
}

// countHook counts a hook.
func countHook(m *metrics.Metrics, hook hooks.Hook, took time.Duration) {
	switch hook {
	case hooks.Prolog:
		m.Took(metrics.Prolog, took)
	case hooks.Epilog:
		m.Took(metrics.Epilog, took)
	}
}

// openMetrics listens for Prometheus.
func (p *program) openMetrics() error {
	if !p.isSocketWanted("metrics") {
		return nil
	}
	l, err := p.listen("metrics")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", p.metrics.Handler())
	p.serveAt(l, mux, doorOf(p))
	return nil
}
