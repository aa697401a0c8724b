package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/epplan/epplan/dvfsmodel"
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
	Limit       float64           // power limit in force, watts; 0: not known
	Clocks      dvfsmodel.Setting // it runs at
	Utilisation float64           // 0..1
	Locked      dvfsmodel.Setting
	Stuck       bool    // its driver doesn't answer
	Alien       bool    // somebody else sets its clocks
	Unsure      bool    // a value stays as nobody knows who set it, or somebody else's is above a budget's share
	Share       float64 // watts that a power budget leaves the GPU now; 0: it is under none
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
	counter("epplan_agent_troubles_total", "Errors on the node.", func(a *Agent) float64 {
		return float64(a.Trouble)
	}),
	gauge("epplan_runs_adapted", "Runs whose clocks are adapted now.", func(a *Agent) float64 {
		return float64(a.Adapted)
	}),
	counter("epplan_clock_steps_total", "Clock changes of adapted runs.",
		func(a *Agent) float64 { return float64(a.Steps) }),
	counter("epplan_guard_acts_total", "Runs reset to default clocks because their time limit was at risk; "+
		"never those with epplan:fixed.", func(a *Agent) float64 { return float64(a.Guarded) }),
	gauge("epplan_gpu_numbers_unknown",
		"1 while Slurm's GPU numbers are ambiguous, so that no clock is touched, else 0.",
		func(a *Agent) float64 { return boolValue(a.Unnumbered) }),
	gauge("epplan_gpus", "GPUs of the node.", func(a *Agent) float64 { return float64(len(a.GPUs)) }),
}

// gpuMetrics are the figures of each GPU.
var gpuMetrics = []metric[Agent]{
	gpuMetric("epplan_gpu_utilisation_ratio", "Fraction of the time in which a kernel runs; gpu is the UUID.",
		func(g *GPU) (float64, bool) { return g.Utilisation, g.Read }),
	clockMetric("epplan_gpu_clock_hertz", "Current clock; domain is core or memory.",
		func(g *GPU) (dvfsmodel.Setting, bool) { return g.Clocks, g.Read }),
	clockMetric("epplan_gpu_locked_clock_hertz", "Locked clock; 0 at default clocks.",
		func(g *GPU) (dvfsmodel.Setting, bool) { return g.Locked, true }),
	gpuMetric("epplan_gpu_stuck", "1 while the GPU's driver doesn't answer, else 0.",
		func(g *GPU) (float64, bool) { return boolValue(g.Stuck), true }),
	gpuMetric("epplan_gpu_alien",
		"1 while something else seems to set the GPU's clocks, else 0.",
		func(g *GPU) (float64, bool) { return boolValue(g.Alien), true }),
	gpuMetric("epplan_gpu_unsure",
		"1 while epd leaves a power limit or profile because it doesn't know who set it, or because somebody "+
			"else set it above a power budget's share, else 0.",
		func(g *GPU) (float64, bool) { return boolValue(g.Unsure), true }),
	gpuMetric("epplan_gpu_power_limit_watts", "Power limit in force.",
		func(g *GPU) (float64, bool) { return g.Limit, g.Limit > 0 }),
	gpuMetric("epplan_gpu_budget_watts", "Share of a power budget.",
		func(g *GPU) (float64, bool) { return g.Share, g.Share > 0 }),
}

// gpuMetric returns a gauge of each GPU that has a value.
func gpuMetric(name, help string, value func(*GPU) (float64, bool)) metric[Agent] {
	labels := []string{"gpu", "gpu_model"}
	return labelled(prometheus.GaugeValue, name, help, labels, func(a *Agent, yield sample) {
		a.eachShown(func(g *GPU, uuid, model string) {
			if v, ok := value(g); ok {
				yield(v, uuid, model)
			}
		})
	})
}

// clockMetric returns a metric of the clocks of each GPU that has them.
func clockMetric(name, help string, clocks func(*GPU) (dvfsmodel.Setting, bool)) metric[Agent] {
	labels := []string{"gpu", "gpu_model", "domain"}
	return labelled(prometheus.GaugeValue, name, help, labels, func(a *Agent, yield sample) {
		a.eachShown(func(g *GPU, uuid, model string) {
			if at, ok := clocks(g); ok {
				yield(hertzPerMHz*float64(at.Core), uuid, model, "core")
				yield(hertzPerMHz*float64(at.Mem), uuid, model, "memory")
			}
		})
	})
}

// eachShown yields the GPUs that have series of their own, by their labels: of those beyond
// the bound only the power counts.
func (a *Agent) eachShown(yield func(g *GPU, uuid, model string)) {
	shown := make(map[string]bool)
	for i := range a.GPUs {
		if uuid := cleanLabel(a.GPUs[i].UUID); !shown[uuid] && len(shown) < maxGPUs {
			shown[uuid] = true
			yield(&a.GPUs[i], uuid, cleanLabel(a.GPUs[i].Model))
		}
	}
}

// partitionPower returns the power of the GPUs by whose it is.
func partitionPower() metric[Agent] {
	groups := newBoundedLabels(maxGroups, powerGroup{overflowLabel, overflowLabel})
	return labelled(prometheus.GaugeValue, "epplan_partition_power_watts",
		"Power of the node's GPUs, by their run's partition; (none) without a run.",
		[]string{"partition", "gpu_model"}, func(a *Agent, yield sample) {
			power := make(map[powerGroup]float64)
			for i := range a.GPUs {
				g := &a.GPUs[i]
				of := powerGroup{unusedLabel, cleanLabel(g.Model)}
				if g.Partition != "" {
					of.partition = cleanLabel(g.Partition)
				}
				if g.Read {
					power[groups.valueOrOther(of)] += g.Power
				}
			}
			for of, watts := range power {
				yield(watts, of.partition, of.model)
			}
		})
}
