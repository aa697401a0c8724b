package metrics

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/live"
)

// Steering is what is steered in Slurm now. Counts are since the start.
type Steering struct {
	Wakes int64 // of nodes
}

var steeringMetrics = []metric[Steering]{
	counter("epplan_node_wakes_total", "Nodes that woke up.",
		func(s *Steering) float64 { return float64(s.Wakes) }),
}

// planMetrics are the figures of the plan in force of what waits; missing where there is none.
var planMetrics = []metric[live.Plan]{
	gauge("epplan_plan_tasks", "Tasks of the plan in force.", func(p *live.Plan) float64 {
		return float64(len(p.Jobs))
	}),
	gauge("epplan_plan_unplaced_tasks", "Pending tasks without a place in the plan.",
		func(p *live.Plan) float64 { return float64(p.Without) }),
	gauge("epplan_plan_energy_joules", "Planned GPU energy of the plan's tasks.",
		func(p *live.Plan) float64 { return p.EnergyJ }),
	gauge("epplan_plan_timestamp_seconds", "Time at which the plan was made.",
		func(p *live.Plan) float64 { return float64(p.At.UnixMilli()) / 1e3 }),
	gauge("epplan_plan_seconds", "Time that planning took.", func(p *live.Plan) float64 { return p.TookS }),
	gauge("epplan_plan_stale", "1 while the plan is no longer followed, else 0.",
		func(p *live.Plan) float64 { return boolValue(p.Stale != "") }),
	labelled(prometheus.CounterValue, "epplan_plan_starts_total", "Started jobs, by how they followed "+
		"the plan.", []string{"how"}, func(p *live.Plan, yield sample) {
		for _, how := range slices.Sorted(maps.Keys(p.Record.Starts)) {
			yield(float64(p.Record.Starts[how]), string(how))
		}
	}),
	counter("epplan_plan_runs_total", "Measured runs at planned clocks.",
		func(p *live.Plan) float64 { return float64(p.Record.Ended) }),
	counter("epplan_plan_runs_longer_total", "Of these, runs over 10 % longer than planned.",
		func(p *live.Plan) float64 { return float64(p.Record.Longer) }),
	counter("epplan_plan_runs_planned_joules_total", "Planned GPU energy of these runs.",
		func(p *live.Plan) float64 { return p.Record.PlannedJ }),
	counter("epplan_plan_runs_measured_joules_total", "Measured GPU energy of these runs.",
		func(p *live.Plan) float64 { return p.Record.MeasuredJ }),
}

// powerMetrics are the figures of what agents reported.
var powerMetrics = []metric[epdapi.ClusterPower]{
	gauge("epplan_reporting_nodes", "Nodes whose agents reported recently.",
		func(p *epdapi.ClusterPower) float64 { return float64(p.Nodes) }),
	gauge("epplan_silent_nodes", "GPU nodes whose agents didn't report recently.",
		func(p *epdapi.ClusterPower) float64 { return float64(p.Silent) }),
}
