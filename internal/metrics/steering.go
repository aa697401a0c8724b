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

// leverDesc is the only figure of steering with a label.
var leverDesc = prometheus.NewDesc("epplan_levers", "Jobs and nodes of which epd holds a lever in Slurm: "+
	"nice, prefer, weight or sleep.", []string{"lever"}, nil)

// steeringMetrics are the figures of what is steered.
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
	leverMetric("nice", func(s *Steering) float64 { return float64(s.Nice) }),
	leverMetric("prefer", func(s *Steering) float64 { return float64(s.Prefer) }),
	leverMetric("weight", func(s *Steering) float64 { return float64(s.Weights) }),
	leverMetric("sleep", func(s *Steering) float64 { return float64(s.Asleep) }),
}

func leverMetric(name string, value func(*Steering) float64) metric[Steering] {
	return metric[Steering]{
		desc: leverDesc, kind: prometheus.GaugeValue, value: value, labels: []string{name},
	}
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

// snapshotCollector shows figures of what is asked for at each scrape.
type snapshotCollector[S any] struct {
	figures []metric[S]
	ask     func() S
}

// Describe lists the metrics.
func (c *snapshotCollector[S]) Describe(to chan<- *prometheus.Desc) {
	for i := range c.figures {
		to <- c.figures[i].desc
	}
}

// Collect takes a snapshot.
func (c *snapshotCollector[S]) Collect(to chan<- prometheus.Metric) {
	s := c.ask()
	for i := range c.figures {
		c.figures[i].send(to, &s)
	}
}
