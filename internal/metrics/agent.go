package metrics

import (
	"context"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/prometheus/client_golang/prometheus"
)

// Agent is what a node's agent holds now. Counts are since its start.
type Agent struct {
	GPUs    []GPU
	Runs    int // open
	Journal int // entries: GPUs whose clocks are, or may be, locked
	Waiting int // outcomes that the controller hasn't acknowledged
	Aside   int // outcomes that it refused for good
	Trouble int // things that went wrong
	Adapted int // of the runs: those whose clocks are stepped now
	Steps   int // clock changes of such runs
	Guarded int // runs that the guard put to default clocks
	// Unnumbered tells that it isn't known which GPUs Slurm's numbers mean.
	Unnumbered bool
}

// GPU is a GPU of the node.
type GPU struct {
	UUID, Model string
	Partition   string            // of the run on it; "" without one
	Read        bool              // it could be read: the next ones count
	Power       float64           // watts
	Energy      float64           // joules by its own counter; 0 without one
	Clocks      dvfsmodel.Setting // it runs at
	Utilisation float64           // 0..1
	Locked      dvfsmodel.Setting
	Writes      int  // of its clocks
	Stuck       bool // its driver doesn't answer
	Alien       bool // somebody else sets its clocks
}

const hertzPerMHz = 1e6

// agentMetrics are the figures of an agent, without labels.
var agentMetrics = []metric[Agent]{
	gauge("epplan_journal_entries", "GPUs whose clocks are, or may be, locked.", func(a *Agent) float64 {
		return float64(a.Journal)
	}),
	gauge("epplan_runs_open", "Runs of jobs on the node.", func(a *Agent) float64 { return float64(a.Runs) }),
	gauge("epplan_outcomes_waiting", "Outcomes that the controller hasn't acknowledged yet.",
		func(a *Agent) float64 { return float64(a.Waiting) }),
	gauge("epplan_outcomes_aside", "Outcomes that the controller refused for good.", func(a *Agent) float64 {
		return float64(a.Aside)
	}),
	counter("epplan_agent_troubles_total", "Things that went wrong on the node.", func(a *Agent) float64 {
		return float64(a.Trouble)
	}),
	gauge("epplan_runs_adapted", "Runs whose clocks are adapted now.", func(a *Agent) float64 {
		return float64(a.Adapted)
	}),
	counter("epplan_clock_steps_total", "Clock changes of runs whose clocks are adapted.",
		func(a *Agent) float64 { return float64(a.Steps) }),
	counter("epplan_guard_acts_total", "Runs that were put back to default clocks because their time limit "+
		"was at risk.", func(a *Agent) float64 { return float64(a.Guarded) }),
	gauge("epplan_gpu_numbers_unknown",
		"1 while it isn't certain which GPUs Slurm's numbers mean, and no clock is touched, else 0.",
		func(a *Agent) float64 { return boolValue(a.Unnumbered) }),
	gauge("epplan_gpus", "GPUs of the node.", func(a *Agent) float64 { return float64(len(a.GPUs)) }),
}

// gpuMetric is a metric of each GPU: one value, or one for each domain.
type gpuMetric struct {
	desc    *prometheus.Desc
	kind    prometheus.ValueType
	reading bool // it is left out without one
	domains []string
	values  func(*GPU) []float64
}

var domains = []string{"core", "memory"}

// gpuMetrics are the figures of a GPU.
var gpuMetrics = []gpuMetric{
	{
		desc: gpuDesc("epplan_gpu_power_watts", "Power of the GPU; gpu is its UUID."),
		kind: prometheus.GaugeValue, reading: true,
		values: func(g *GPU) []float64 { return []float64{g.Power} },
	},
	{
		desc: gpuDesc("epplan_gpu_energy_joules_total",
			"Energy by the GPU's own counter, since its driver was loaded."),
		kind: prometheus.CounterValue, reading: true,
		values: func(g *GPU) []float64 {
			if g.Energy > 0 {
				return []float64{g.Energy}
			}
			return nil
		},
	},
	{
		desc: gpuDesc("epplan_gpu_utilisation_ratio", "Part of the time in which a kernel runs."),
		kind: prometheus.GaugeValue, reading: true,
		values: func(g *GPU) []float64 { return []float64{g.Utilisation} },
	},
	{
		desc: gpuDesc("epplan_gpu_clock_hertz", "Clock that the GPU runs at; domain is core or memory.",
			"domain"),
		kind: prometheus.GaugeValue, reading: true, domains: domains,
		values: func(g *GPU) []float64 { return hertz(g.Clocks) },
	},
	{
		desc: gpuDesc("epplan_gpu_locked_clock_hertz",
			"Clock that the GPU is locked at; 0 at default clocks.", "domain"),
		kind: prometheus.GaugeValue, domains: domains,
		values: func(g *GPU) []float64 { return hertz(g.Locked) },
	},
	{
		desc: gpuDesc("epplan_gpu_clock_writes_total",
			"Times that a clock of the GPU was locked or given back, or that was tried."),
		kind: prometheus.CounterValue, values: func(g *GPU) []float64 { return []float64{float64(g.Writes)} },
	},
	{
		desc:   gpuDesc("epplan_gpu_stuck", "1 while the GPU's driver doesn't answer, else 0."),
		kind:   prometheus.GaugeValue,
		values: func(g *GPU) []float64 { return []float64{boolValue(g.Stuck)} },
	},
	{
		desc:   gpuDesc("epplan_gpu_alien", "1 while somebody else seems to set the GPU's clocks, else 0."),
		kind:   prometheus.GaugeValue,
		values: func(g *GPU) []float64 { return []float64{boolValue(g.Alien)} },
	},
}

var powerDesc = prometheus.NewDesc("epplan_partition_power_watts",
	"Power of the node's GPUs by the partition of the run on them; (none) without a run.",
	[]string{"partition", "gpu_model"}, nil)

func gpuDesc(name, help string, further ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"gpu", "gpu_model"}, further...), nil)
}

// hertz makes clocks of MHz.
func hertz(s dvfsmodel.Setting) []float64 {
	return []float64{hertzPerMHz * float64(s.Core), hertzPerMHz * float64(s.Mem)}
}

// agentCollector shows what an agent holds.
type agentCollector struct {
	ask    func(context.Context) Agent
	groups *boundedLabels[powerGroup]
}

func newAgentCollector(ask func(context.Context) Agent) *agentCollector {
	return &agentCollector{
		ask: ask, groups: newBoundedLabels(maxGroups, powerGroup{overflowLabel, overflowLabel}),
	}
}

// Describe lists the metrics.
func (c *agentCollector) Describe(to chan<- *prometheus.Desc) {
	for i := range agentMetrics {
		to <- agentMetrics[i].desc
	}
	for i := range gpuMetrics {
		to <- gpuMetrics[i].desc
	}
	to <- powerDesc
}

// Collect takes a snapshot. Of GPUs beyond the bound only the power counts.
func (c *agentCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	a := c.ask(ctx)
	for i := range agentMetrics {
		agentMetrics[i].send(to, &a)
	}
	power := make(map[powerGroup]float64)
	shown := make(map[string]bool)
	for i := range a.GPUs {
		g := &a.GPUs[i]
		if g.Read {
			power[c.groups.valueOrOther(powerGroupOf(g))] += g.Power
		}
		if uuid := cleanLabel(g.UUID); !shown[uuid] && len(shown) < maxGPUs {
			shown[uuid] = true
			sendGPU(to, g, uuid)
		}
	}
	for of, watts := range power {
		to <- prometheus.MustNewConstMetric(powerDesc, prometheus.GaugeValue, watts, of.partition, of.model)
	}
}

// powerGroupOf is whose power a GPU's is.
func powerGroupOf(g *GPU) powerGroup {
	if g.Partition == "" {
		return powerGroup{unusedLabel, cleanLabel(g.Model)}
	}
	return powerGroup{cleanLabel(g.Partition), cleanLabel(g.Model)}
}

func sendGPU(to chan<- prometheus.Metric, g *GPU, uuid string) {
	model := cleanLabel(g.Model)
	for i := range gpuMetrics {
		f := &gpuMetrics[i]
		if f.reading && !g.Read {
			continue
		}
		for n, value := range f.values(g) {
			labels := []string{uuid, model}
			if f.domains != nil {
				labels = append(labels, f.domains[n])
			}
			to <- prometheus.MustNewConstMetric(f.desc, f.kind, value, labels...)
		}
	}
}
