package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/epplan/epplan/internal/epdapi"
)

// Steering is what is steered in Slurm now. Counts are since the start.
type Steering struct {
	Nice, Prefer, Weights, Asleep int // jobs and nodes that have something of ours
	Wakes                         int64
	LongestWake                   float64 // seconds
	Suited, Unsuited              int     // nodes of the last order for a job that shares GPUs
	Ranked                        int     // jobs that a policy puts in order
}

var steeringMetrics = []metric[Steering]{
	counter("epplan_node_wakes_total", "Nodes that came back from sleep, whoever had put them there.",
		func(s *Steering) float64 { return float64(s.Wakes) }),
	gauge("epplan_node_wake_longest_seconds", "The longest that a node took to come back: what a job waits "+
		"for it at most, as far as was seen.", func(s *Steering) float64 { return s.LongestWake }),
	gauge("epplan_sharing_nodes_suited", "Nodes of the last order for a job that shares GPUs on which it "+
		"fits beside what runs there.", func(s *Steering) float64 { return float64(s.Suited) }),
	gauge("epplan_sharing_nodes_unsuited", "Nodes of that order on which it doesn't.",
		func(s *Steering) float64 { return float64(s.Unsuited) }),
	gauge("epplan_queue_ranked_jobs", "Pending jobs that a policy puts in order, of the listed ones.",
		func(s *Steering) float64 { return float64(s.Ranked) }),
	labelled(prometheus.GaugeValue, "epplan_levers", "Jobs and nodes of which epd holds a lever in Slurm: "+
		"nice, prefer, weight or sleep.", []string{"lever"}, func(s *Steering, yield sample) {
		yield(float64(s.Nice), "nice")
		yield(float64(s.Prefer), "prefer")
		yield(float64(s.Weights), "weight")
		yield(float64(s.Asleep), "sleep")
	}),
}

// powerMetrics are the figures of what agents reported.
var powerMetrics = []metric[epdapi.ClusterPower]{
	gauge("epplan_reported_power_watts", "Power of the GPUs of all nodes whose agents reported lately.",
		func(p *epdapi.ClusterPower) float64 { return p.GPUW }),
	gauge("epplan_reporting_nodes", "Nodes whose agents reported lately.",
		func(p *epdapi.ClusterPower) float64 { return float64(p.Nodes) }),
	gauge("epplan_silent_nodes", "Nodes with GPUs whose agents didn't.",
		func(p *epdapi.ClusterPower) float64 { return float64(p.Silent) }),
}
