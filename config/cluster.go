package config

import (
	"math"
	"slices"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/queue"
)

// Cluster returns the machines to plan for. Node classes name their GPU model as its
// profile does.
func (c *Config) Cluster() planner.Cluster {
	cluster := c.cluster
	cluster.Classes = slices.Clone(cluster.Classes)
	if slices.ContainsFunc(cluster.Classes, func(k planner.NodeClass) bool { return k.SharedGB != nil }) {
		cluster.Sharing = &planner.Sharing{Physics: c.sharedGPU.sharingPhysics()}
	}
	return cluster
}

// RuntimeModel returns the GPU model that run times of batches are of which don't say;
// [queue.AnyModel]: of each; "": nobody said.
func (c *Config) RuntimeModel() string { return c.runtimeOn }

// Start returns when a queued task may start, for plans of the given mode. Unless
// the file says so, online plans start at whole slots if the cluster has any.
func (c *Config) Start(mode planner.Mode) planner.StartRule {
	slots := mode == planner.Online && c.cluster.Slot > 0
	if c.start == startSlot || c.start == startAuto && slots {
		return planner.StartSlot
	}
	return planner.StartContinuous
}

// PaperModel is the GPU model of [PaperCluster].
const PaperModel = "paper"

// PaperCluster returns the cluster of the EDL paper (§5.1.2): as many nodes as
// wanted with 1 to [planner.MaxGPUs] CPU-GPU pairs each, 37 W per idle pair,
// 90 J to switch a pair on, which offline plans don't count, and slots of 1 s.
func PaperCluster(gpusPerNode int) planner.Cluster {
	return planner.Cluster{
		Name: "paper",
		Classes: []planner.NodeClass{{
			Name: "paper", Model: PaperModel, GPUs: gpusPerNode, IdleW: 37, TurnOn: 90,
		}},
		Slot: 1,
	}
}

// Speeds returns how fast GPU models are beside each other; none: it isn't said.
func (c *Config) Speeds() []queue.Speed {
	speeds, _ := queue.ParseSpeeds(c.speeds) // it was read so
	return speeds
}

// speedsField takes the speeds of GPU models as a line of text.
func (c *Config) speedsField() field {
	f := textField("gpu_speeds",
		"Relative speeds of GPU models, such as A100=1,H100=2.1. A run time known on one model gives that\n"+
			"on another, at the same power, with a warning. Empty: unknown.",
		&c.speeds)
	take := f.read
	f.read = func(d *document, path string, v any) {
		take(d, path, v)
		if _, err := queue.ParseSpeeds(c.speeds); err != nil {
			d.faultAt(path, "%v", err)
		}
	}
	return f
}

func (c *Config) clusterFields() []field {
	k := &c.cluster
	return []field{
		lineField("name", "Name of the cluster.", &k.Name),
		numberField("slot_s", "Length of a scheduling slot in seconds; 0: none.", &k.Slot, nonNegativeRange),
		choiceField("start",
			"When a queued job starts: continuous (right after the one before), slot (at the next whole slot)\n"+
				"or auto (slot for online plans if there are slots).", &c.start, startAuto,
			startContinuous, startSlot),
		textField("runtime_gpu_model",
			"GPU model on which runtime_s and power_w of a batch were measured, if it doesn't say and a job\n"+
				"may run on several; *: the same on all. Empty: such a batch is refused.",
			&c.runtimeOn),
		c.speedsField(),
		boolField("offline_turn_on", "Whether offline plans count the energy of switching nodes on.",
			&k.OfflineTurnOn),
	}
}

// newClass returns a node class before it is read. Values that its GPU model's
// profile can give are NaN.
func newClass() planner.NodeClass {
	const paperTurnOn = 90 // joules per GPU: EDL §5.1.2
	unset := dvfsmodel.Watt(math.NaN())
	return planner.NodeClass{IdleW: unset, HostW: unset, TurnOn: paperTurnOn}
}

// completeClass fills in what the profile of the class's GPU model gives.
func completeClass(k *planner.NodeClass, profiles *Profiles) error {
	p, err := profiles.Lookup(k.Model)
	if err != nil {
		return err
	}
	k.Model = p.Name
	if k.Name == "" {
		k.Name = strings.ToLower(p.Name)
	}
	if math.IsNaN(float64(k.IdleW)) {
		k.IdleW = p.IdleW
	}
	if math.IsNaN(float64(k.HostW)) {
		k.HostW = p.HostW
	}
	k.Steps = stepPower(k, p, profiles)
	return nil
}

// defaultBoardW is what a GPU is taken to draw under load when its profile doesn't
// say: placement scores compare nodes by it and nothing is accounted with it.
const defaultBoardW = 250

// stepPower returns the class's power as placement scores reckon it.
func stepPower(k *planner.NodeClass, p *Profile, profiles *Profiles) planner.StepPower {
	s := planner.StepPower{
		GPUIdle: k.IdleW, GPUBusy: max(k.IdleW, defaultBoardW), Sleep: k.SleepW, Weight: p.EnergyWeight,
	}
	if p.BusyW > 0 {
		s.GPUBusy = max(k.IdleW, p.BusyW)
	}
	if cpu, err := profiles.CPU(""); err == nil && k.CPUs > 0 {
		s.CPUIdle, s.CPUBusy, s.Cores, s.Threads = cpu.IdleW, cpu.BusyW, cpu.Cores, cpu.Threads
	}
	return s
}

func classFields(k *planner.NodeClass) []field {
	const profile = "the GPU model's profile"
	return []field{
		derivedField(lineField("name", "Name of this kind of node.", &k.Name), "the GPU model's name"),
		intField("count", "Number of nodes; 0: as many as wanted.", &k.Count, 0, planner.MaxNodes),
		requiredField(lineField("gpu_model", "GPU model of epplan or of a [[gpu]] table.", &k.Model)),
		requiredField(intField("gpus", "GPUs per node.", &k.GPUs, 1, planner.MaxGPUs)),
		numberField("cpus", "CPU cores per node; 0: not limited.", &k.CPUs, nonNegativeRange),
		numberField("mem_gib", "Memory per node in GiB; 0: not limited.", &k.MemGiB, nonNegativeRange),
		derivedField(numberField("idle_w_per_gpu", "Watts of an idle GPU of a node that is on.", &k.IdleW,
			nonNegativeRange), profile),
		derivedField(numberField("host_w_per_gpu",
			"Watts per GPU of the rest of a node that is on.",
			&k.HostW, nonNegativeRange), profile),
		numberField("sleep_w", "Watts of a node that is off.", &k.SleepW, nonNegativeRange),
		numberField("turn_on_j_per_gpu", "Joules per GPU to switch a node on.", &k.TurnOn, nonNegativeRange),
		numberField("turn_on_delay_s", "Seconds from switching on until the GPUs can be used.",
			&k.TurnOnDelay, nonNegativeRange),
		lineListField("partitions",
			"Slurm's partitions of these nodes; replay takes a job's GPU model from its partition if the log\n"+
				"names none.", &k.Partitions),
	}
}

// decodeNodes reads [[cluster.nodes]]. Faulty [[gpu]] tables excuse unknown GPU
// models.
func (c *Config) decodeNodes(d *document, path string, v any, excused bool) {
	var classes []planner.NodeClass
	var shared []sharedClass
	first := make(map[string]string) // path by name
	d.eachTable(path, v, func(at string, values map[string]any) {
		k, s := newClass(), sharedClass{}
		d.readFields("[[cluster.nodes]]", at, values, append(classFields(&k), s.fields()...))
		if k.Model == "" {
			return
		}
		if err := completeClass(&k, c.profiles); err != nil {
			if !excused {
				d.faultAt(joinKey(at, "gpu_model"), "%v", err)
			}
			return
		}
		if other, twice := first[k.Name]; twice {
			d.faultAt(joinKey(at, "name"), "nodes %s are already on line %d, want another name",
				quoteName(k.Name), d.keyPosition(other).Line)
		}
		first[k.Name] = at
		s.complete(d, at, &k)
		classes, shared = append(classes, k), append(shared, s)
	})
	if len(classes) == 0 && len(d.faults) == 0 {
		d.faultAt(path, "cluster.nodes is empty, want at least one kind of node")
	}
	c.cluster.Classes, c.shared = classes, shared
}

// defaultClass returns the nodes of a configuration that lists none.
func defaultClass(profiles *Profiles) planner.NodeClass {
	k := newClass()
	k.Model, k.GPUs = "V100", 4
	if completeClass(&k, profiles) == nil {
		return k
	}
	if err := completeClass(&k, BuiltinProfiles()); err != nil {
		panic(err) // part of the program, and tested
	}
	return k
}
