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
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// newMetrics are the metrics of the role, whose parts are asked once they are
// there.
func (p *program) newMetrics() *metrics.Metrics {
	s := metrics.Sources{Version: version, Role: p.role}
	if p.role != roleAgent {
		s.Controller = func(ctx context.Context) epdapi.ControllerStatus {
			return p.control.Queries.Status(ctx, query.InProcess())
		}
		s.Savings = func(ctx context.Context) (epdapi.Savings, error) {
			return p.control.Queries.Savings(ctx, query.InProcess(), time.Time{})
		}
	}
	if p.role != roleAgent {
		s.Power = func() epdapi.ClusterPower { return p.control.Queries.Power() }
		s.Steering = p.steeringMetrics
	}
	if p.role != roleController {
		s.Agent = func(ctx context.Context) metrics.Agent { return p.node.Measure(ctx) }
	}
	return metrics.New(s)
}

// steeringMetrics is what is steered in Slurm; nothing where nothing is.
func (p *program) steeringMetrics() metrics.Steering {
	if p.steerer == nil {
		return metrics.Steering{}
	}
	s := p.steerer.Status()
	out := metrics.Steering{
		Nice: s.Nice, Prefer: s.Prefer, Weights: s.Weights, Asleep: s.Asleep, Wakes: s.Wakes,
		LongestWake: s.WakeS, Ranked: len(s.Order),
	}
	if s.Shared != nil {
		for i := range s.Shared.Nodes {
			if s.Shared.Nodes[i].Fits {
				out.Suited++
			} else {
				out.Unsuited++
			}
		}
	}
	return out
}

// countDecision counts a decision.
func (p *program) countDecision(o control.Observed) {
	p.metrics.Took(metrics.Decide, o.Took)
	if o.Fault != decide.NoFault {
		p.metrics.Failed(string(o.Fault))
	}
	if !o.Again && o.Fault != decide.FaultRequest {
		p.metrics.Decided(metrics.DecisionLabels{Mode: string(o.Mode), Arm: string(o.Arm), Applied: o.Apply})
	}
}

// countEnergy counts the energy of a run.
func (p *program) countEnergy(o *record.Outcome, partition string) {
	run := metrics.RunEnergy{Partition: partition, GPUModel: o.GPUModel, Arm: string(o.Arm)}
	if joules, ok := o.GPUEnergyJ.Get(); ok {
		run.GPU = &joules
	}
	if joules, ok := o.NodeEnergyJ.Get(); ok {
		run.Node = &joules
	}
	p.metrics.Recorded(run)
}

// countHook counts a hook.
func (p *program) countHook(hook slurm.Hook, took time.Duration) {
	switch hook {
	case slurm.Prolog:
		p.metrics.Took(metrics.Prolog, took)
	case slurm.Epilog:
		p.metrics.Took(metrics.Epilog, took)
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
	p.serveAt(l, mux)
	return nil
}
