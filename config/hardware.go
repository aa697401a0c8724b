package config

import (
	"fmt"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/fleet"
	"github.com/epplan/epplan/spelling"
)

// CPU is what is known of a CPU model.
type CPU struct {
	Name    string
	Cores   int            // physical cores of a package
	Threads int            // vCPUs of a core
	IdleW   dvfsmodel.Watt // a package of which no core is in use
	BusyW   dvfsmodel.Watt // a package of which any core is in use
	SleepW  dvfsmodel.Watt // a whole node with such CPUs when it sleeps
	Source  string         // where the values come from
}

// maxCores bounds the cores of a package and the threads of a core.
const maxCores = 100_000

func (c *CPU) fields() []field {
	return []field{
		requiredField(lineField("name", "CPU model, as lists of nodes name it.", &c.Name)),
		requiredField(intField("cores", "Physical cores of a package.", &c.Cores, 1, maxCores)),
		intField("threads_per_core", "vCPUs per core.", &c.Threads, 1, maxCores),
		requiredField(numberField("idle_w", "Watts of a package without a core in use.", &c.IdleW,
			nonNegativeRange)),
		requiredField(numberField("busy_w",
			"Watts of a package with any core in use; at least idle_w.", &c.BusyW, nonNegativeRange)),
		numberField("sleep_w", "Watts of a whole node that sleeps.", &c.SleepW,
			nonNegativeRange),
		lineField("source", "Where the values come from.", &c.Source),
	}
}

// decodeCPUs reads [[cpu]] tables; of those with faults nothing is returned.
func decodeCPUs(d *document, path string, v any) []CPU {
	var list []CPU
	first := make(map[string]string) // path by folded name
	d.eachTable(path, v, func(at string, values map[string]any) {
		c := CPU{Threads: 1}
		before := len(d.faults)
		d.readFields("[[cpu]]", at, values, c.fields())
		if len(d.faults) > before {
			return
		}
		if c.BusyW < c.IdleW {
			d.faultAt(joinKey(at, "busy_w"), "cpu.busy_w is %v, want at least idle_w, %v", float64(c.BusyW),
				float64(c.IdleW))
			return
		}
		if other, twice := first[spelling.Fold(c.Name)]; twice {
			d.faultAt(joinKey(at, "name"), "CPU model %s is already on line %d", quoteName(c.Name),
				d.keyPosition(other).Line)
			return
		}
		first[spelling.Fold(c.Name)] = at
		list = append(list, c)
	})
	return list
}

// CPU finds a CPU model; letter case, spaces and dashes don't matter. The empty
// name is the first model of the file that was added last: that of nodes that
// don't say. The error is an [UnknownError].
func (p *Profiles) CPU(name string) (*CPU, error) {
	names := make([]string, len(p.cpus))
	for i := range p.cpus {
		if name == "" || spelling.Fold(p.cpus[i].Name) == spelling.Fold(name) {
			return &p.cpus[i], nil
		}
		names[i] = p.cpus[i].Name
	}
	return nil, newUnknownError("CPU model", name, sortedUnique(names))
}

// Power returns what a node draws that has GPUs of a model, and the CPUs of nodes
// that don't say theirs. The model of a node without GPUs doesn't matter.
func (p *Profiles) Power(gpuModel string, gpus int) (fleet.Power, error) {
	cpu, err := p.CPU("")
	if err != nil {
		return fleet.Power{}, err
	}
	power := fleet.Power{
		CPUIdle: cpu.IdleW, CPUBusy: cpu.BusyW, Cores: cpu.Cores, Threads: cpu.Threads, Sleep: cpu.SleepW,
	}
	if gpus == 0 {
		return power, nil
	}
	gpu, err := p.Lookup(gpuModel)
	if err != nil {
		return fleet.Power{}, err
	}
	if gpu.BusyW == 0 {
		return fleet.Power{}, fmt.Errorf("GPU model %s has no busy_w, which placing tasks needs",
			quoteName(gpu.Name))
	}
	power.GPUIdle, power.GPUBusy, power.Weight = gpu.IdleW, gpu.BusyW, gpu.EnergyWeight
	return power, nil
}
