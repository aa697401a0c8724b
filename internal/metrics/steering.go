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
	counter("epplan_node_wakes_total", "Nodes that came back from sleep, whoever had put them there.",
		func(s *Steering) float64 { return float64(s.Wakes) }),
}

// planMetrics are the figures of the plan in force of what waits; missing where there is none.
var planMetrics = []metric[live.Plan]{
	gauge("epplan_plan_tasks", "Tasks of the plan in force.", func(p *live.Plan) float64 {
		return float64(len(p.Jobs))
	}),
	gauge("epplan_plan_unplaced_tasks", "Tasks that wait and have no place in it.",
		func(p *live.Plan) float64 { return float64(p.Without) }),
	gauge("epplan_plan_energy_joules", "What the GPUs of its tasks are to take.",
		func(p *live.Plan) float64 { return p.EnergyJ }),
	gauge("epplan_plan_timestamp_seconds", "When it was made, in Unix time.",
		func(p *live.Plan) float64 { return float64(p.At.UnixMilli()) / 1e3 }),
	gauge("epplan_plan_seconds", "How long it took to make.", func(p *live.Plan) float64 { return p.TookS }),
	gauge("epplan_plan_stale", "1 while it counts no more, else 0.",
		func(p *live.Plan) float64 { return boolValue(p.Stale != "") }),
	labelled(prometheus.CounterValue, "epplan_plan_starts_total", "Jobs that started, by how they kept to "+
		"the plan in force.", []string{"how"}, func(p *live.Plan, yield sample) {
		for _, how := range slices.Sorted(maps.Keys(p.Record.Starts)) {
			yield(float64(p.Record.Starts[how]), string(how))
		}
	}),
	counter("epplan_plan_runs_total", "Runs at planned clocks that ended and were measured.",
		func(p *live.Plan) float64 { return float64(p.Record.Ended) }),
	counter("epplan_plan_runs_longer_total", "Those that took over a tenth longer than planned.",
		func(p *live.Plan) float64 { return float64(p.Record.Longer) }),
	counter("epplan_plan_runs_planned_joules_total", "What the GPUs of these runs were to take.",
		func(p *live.Plan) float64 { return p.Record.PlannedJ }),
	counter("epplan_plan_runs_measured_joules_total", "What they took.",
		func(p *live.Plan) float64 { return p.Record.MeasuredJ }),
}

// powerMetrics are the figures of what agents reported.
var powerMetrics = []metric[epdapi.ClusterPower]{
	gauge("epplan_reporting_nodes", "Nodes whose agents reported lately.",
		func(p *epdapi.ClusterPower) float64 { return float64(p.Nodes) }),
	gauge("epplan_silent_nodes", "Nodes with GPUs whose agents didn't.",
		func(p *epdapi.ClusterPower) float64 { return float64(p.Silent) }),
}
