package config

import (
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
)

// Live is how epd treats jobs of a running cluster.
type Live struct {
	// Mode is that of partitions which Modes doesn't name.
	Mode    live.Mode
	Modes   map[string]live.Mode // by partition
	HoldOut float64              // part of the jobs that run at default clocks, for comparison
	// ConstantArm is the part of the jobs that run at the clocks that ConstantClocks
	// has for their GPU model, for comparison, too; a memory clock of 0 is the default
	// one. GPU models are named as their profiles are.
	ConstantArm    float64
	ConstantClocks map[string]dvfsmodel.Setting
	SiteClocks     SiteClocks
	// Explore is the part of the runs of known workloads at clocks where most can
	// be learnt, and ExploreSlowdown the part by which they may take longer.
	Explore, ExploreSlowdown float64
	// TimeMargin is the least that a run may take longer than predicted, as a
	// fraction: the interval of a prediction is never narrower.
	TimeMargin float64
	// MaxSlowdown is how many times as long as at default clocks a job may run at the clocks that
	// epd sets, in partitions that MaxSlowdowns doesn't name.
	MaxSlowdown  float64
	MaxSlowdowns map[string]float64 // by partition
	// MinGain is the least part of the energy at default clocks, of GPUs with their share of the node,
	// that others must save to be set unless a job is faster there, in partitions that MinGains doesn't name.
	MinGain  float64
	MinGains map[string]float64 // by partition
	// MinCore and MaxCore are the core clocks that may be set, relative to the
	// default one; MinMem and MaxMem the memory clocks.
	MinCore, MaxCore, MinMem, MaxMem float64
	// Reorder is that of partitions which Reorders doesn't name.
	Reorder   Reorder
	Reorders  map[string]Reorder // by partition
	Pick      LivePick
	Plan      LivePlan
	Hours     LiveHours
	LimitHint LimitHint
	// Weights reports whether nodes that draw less get lower weights in Slurm.
	Weights bool
	Sharing LiveSharing
	Adapt   LiveAdapt
	Cap     LiveCap
	Profile LiveProfile
	// Prefer reports whether jobs whose user named no kind of node get one to prefer.
	Prefer bool
	// SleepAfter is how many seconds a node must be idle before it may be powered
	// down; 0: never.
	SleepAfter float64
	// SleepLearn reports whether it must be idle for longer where sleeping has to
	// pay by how long nodes of its kind were idle, and took to wake.
	SleepLearn bool
	// WakeWait is how many seconds a job may wait for nodes that sleep: those that
	// may take longer to come back stay awake.
	WakeWait float64
	// Account is which energy of a job Slurm's accounting is given.
	Account AccountEnergy
	// Operators are the users who may see everybody's jobs.
	Operators []string
	// AdminHosts are the machines, beside the controller's, where administrators may ask for what changes epd;
	// NodeHosts those from where the agents of any node may speak.
	AdminHosts, NodeHosts []string
}

// SiteClocks are the highest clocks at which a site lets its GPUs run, whoever runs there: they stand on the
// GPUs between jobs, too. GPU models are named as their profiles are; a clock of zero bounds nothing.
type SiteClocks struct {
	Models map[string]dvfsmodel.Setting
	// Partitions and Nodes have those of single partitions, and of the nodes of hostlists.
	Partitions, Nodes map[string]map[string]dvfsmodel.Setting

	byNode map[string][]map[string]dvfsmodel.Setting // those of Nodes that hold for a node
}

// AccountEnergy is which energy of a job Slurm's accounting is given.
type AccountEnergy string

// The energies that may be given.
const (
	AccountOff  AccountEnergy = "off"  // none
	AccountGPU  AccountEnergy = "gpu"  // that of its GPUs
	AccountNode AccountEnergy = "node" // that of its nodes, where all of them measure it
)

var accountWords = []string{string(AccountOff), string(AccountGPU), string(AccountNode)}

// defaultLive touches nothing.
func defaultLive() Live {
	return Live{
		Mode: live.Observe, HoldOut: 0.05, Explore: 0.1, ExploreSlowdown: 0.1, TimeMargin: 0.1, MaxSlowdown: 1.1,
		MinGain: 0.02, MinCore: 0.4, MaxCore: 1.5, MinMem: 0.4, MaxMem: 1.5,
		Reorder: ReorderOwn, LimitHint: defaultLimitHint(),
		Pick: defaultPick(), Plan: defaultPlan(), Hours: defaultHours(), Sharing: defaultSharing(),
		Adapt: defaultAdapt(), Cap: defaultCap(), Profile: LiveProfile{Name: ProfileOff},
		SleepLearn: true, WakeWait: 300, Account: AccountOff,
	}
}

// ModeOf returns the mode of a partition. A job may name several, with commas between,
// and start in any of them: the most careful mode counts then.
func (l *Live) ModeOf(partitions string) live.Mode {
	return strictest(partitions, l.Modes, l.Mode, modeWords)
}

// SlowdownOf returns how many times as long as at default clocks a job of a partition may run. Of
// several, with commas between, the least counts.
func (l *Live) SlowdownOf(partitions string) float64 {
	return chooseOverPartitions(partitions, l.MaxSlowdowns, l.MaxSlowdown, slices.Min)
}

// MinGainOf returns the least that other clocks must save for a job of a partition. Of several, with commas
// between, the most counts.
func (l *Live) MinGainOf(partitions string) float64 {
	return chooseOverPartitions(partitions, l.MinGains, l.MinGain, slices.Max)
}

// MostSlowdown returns how many times as long as at default clocks a job may run wherever that is most.
func (l *Live) MostSlowdown() float64 {
	most := l.MaxSlowdown
	for _, x := range l.MaxSlowdowns {
		most = max(most, x)
	}
	return most
}

// OnlyObserves reports whether no partition is to be touched, nor advised about.
func (l *Live) OnlyObserves() bool {
	for _, mode := range l.Modes {
		if mode != live.Observe {
			return false
		}
	}
	return l.Mode == live.Observe
}

// AllowsClocks reports whether a clock pair may be set on a GPU with such default
// clocks.
func (l *Live) AllowsClocks(core, mem dvfsmodel.MHz, base dvfsmodel.Setting) bool {
	within := func(f, one dvfsmodel.MHz, low, high float64) bool {
		x := float64(f / one)
		return x >= low*(1-rounding) && x <= high*(1+rounding)
	}
	return within(core, base.Core, l.MinCore, l.MaxCore) && within(mem, base.Mem, l.MinMem, l.MaxMem)
}

// rounding is the relative tolerance of bounds.
const rounding = 1e-9

func (l *Live) fields() []field {
	part := numberRange{max: 1}
	return slices.Concat([]field{
		choiceField("mode",
			"What epd does to jobs: observe (nothing), advise (say what it would do) or enforce (set clocks).",
			(*string)(&l.Mode), modeWords...),
		partitionTableField("modes",
			"mode by partition, such as {gpu = \"enforce\", debug = \"observe\"}.", "a mode", &l.Modes, modeWords),
		numberField("hold_out",
			"Fraction of the jobs, chosen at random, that run at default clocks to measure savings.",
			&l.HoldOut, part),
		numberField("constant_arm",
			"Fraction of the jobs, chosen at random, that run at constant clocks, to measure what choosing\n"+
				"clocks for each job adds; none is in both groups.", &l.ConstantArm, part),
		l.clocksField(),
		numberField("explore",
			"Fraction of the runs of known workloads, chosen at random, at the clocks from which most can be\n"+
				"learnt.",
			&l.Explore, part),
		numberField("explore_slowdown",
			"How much longer such a run may take than at default clocks, or at those it would have had, as a\n"+
				"fraction.",
			&l.ExploreSlowdown, numberRange{max: 1}),
	}, l.boundFields(), []field{
		l.SiteClocks.field(),
		choiceField("reorder",
			"Which pending jobs enforce may put behind one with a deadline: none (off), those of the same\n"+
				"user (own) or all of the partition.", (*string)(&l.Reorder), reorderWords...),
		partitionTableField("reorders", "reorder by partition.",
			"off, own or all", &l.Reorders, reorderWords),
		l.LimitHint.partitionsField(),
		intField("limit_hint_runs", "Least runs for that, on each GPU model with runs of the workload.",
			&l.LimitHint.Runs, minHintRuns, maxHintRuns),
		checkedField(lineField("limit_hint_text",
			"The hint: {limit} is the proposed limit, {longest} the longest run expected, {runs} how many\n"+
				"runs say so.", &l.LimitHint.Text), checkHintText),
		boolField("weights", "Whether epd sets nodes' weights so that Slurm prefers those that draw less.",
			&l.Weights),
		boolField("prefer",
			"Whether pending jobs prefer, by a feature, the GPU model on which they need clearly less energy,\n"+
				"unless their users named a kind of node.", &l.Prefer),
		numberField("sleep_after_s",
			"Seconds after which Slurm's power saving, if configured, may power an idle node down; 0: never.",
			&l.SleepAfter, numberRange{max: 1e9}),
		boolField("sleep_learn",
			"Whether a node must be idle for as long as pays, by the idle and wake times of its like.\n"+
				"sleep_after_s is then the least.", &l.SleepLearn),
		numberField("wake_wait_s",
			"Longest that a job may wait for sleeping nodes: nodes that may take longer to wake stay on.\n"+
				"Slurm's SuspendTimeout and ResumeTimeout count, and times seen.", &l.WakeWait,
			numberRange{max: 1e9}),
		choiceField("account_energy",
			"Measured energy of ended jobs for Slurm's accounting and sacct: none (off), of the GPUs (gpu),\n"+
				"or of the nodes (node), if all measure it. From Slurm 25.11 on it is ConsumedEnergy, before a\n"+
				"word in the AdminComment.", (*string)(&l.Account), accountWords...),
		l.operatorsField(),
		machinesField("admin_hosts",
			"Machines, by name or address, from which root and Slurm's user may change epd over the network:\n"+
				"reload, choose models, take levers back. On the controller's machine they always may.", &l.AdminHosts),
		machinesField("node_hosts",
			"Machines, by name or address, from which agents of any node may speak, such as a gateway. From\n"+
				"elsewhere a node speaks for itself alone.", &l.NodeHosts),
	})
}

// boundFields returns how far clocks may go, and what they must save.
func (l *Live) boundFields() []field {
	part, factor := numberRange{max: 1}, numberRange{min: 1, max: MaxFactor}
	share := numberRange{max: 10, above: true, unit: "times the default clock, not MHz"}
	return []field{
		numberField("time_margin", "The least by which a run may exceed its predicted time, as a fraction.",
			&l.TimeMargin, numberRange{max: 10}),
		numberField("max_slowdown",
			"How long a job may run at epd's clocks: this multiple of its time at default clocks, by the\n"+
				"upper bounds of both predictions. Users may set their own (epplan:slowdown=1.05). Turnarounds:\n"+
				"max_turnaround in [safety].",
			&l.MaxSlowdown, factor),
		partitionNumberField("max_slowdowns", "max_slowdown by partition.",
			&l.MaxSlowdowns, factor),
		numberField("min_gain",
			"Least saving for which clocks are set: a fraction of the energy at default clocks, of GPUs with\n"+
				"their share of the node, whatever the objective. Not for faster clocks, runs that explore, and\n"+
				"clocks that a user or constant_clocks states.",
			&l.MinGain, part),
		partitionNumberField("min_gains", "min_gain by partition.",
			&l.MinGains, part),
		numberField("min_core", "Lowest core clock to set, relative to the default.",
			&l.MinCore, share),
		numberField("max_core", "Highest core clock to set, relative to the default.",
			&l.MaxCore, share),
		numberField("min_mem", "Lowest memory clock to set, relative to the default.",
			&l.MinMem, share),
		numberField("max_mem", "Highest memory clock to set, relative to the default.",
			&l.MaxMem, share),
	}
}

// checkTogether notes bounds of clocks that leave none, or not the default, and arms
// that can't be.
func (l *Live) checkTogether(d *document, profiles *Profiles) {
	l.SiteClocks.check(d, profiles)
	l.checkConstant(d, profiles)
	l.Cap.check(d)
	l.Plan.check(d, &l.Pick)
	if l.MinCore > l.MaxCore {
		d.faultAt("live.min_core", "live.min_core is %v, want at most max_core, %v", l.MinCore, l.MaxCore)
	}
	if l.MinMem > l.MaxMem {
		d.faultAt("live.min_mem", "live.min_mem is %v, want at most max_mem, %v", l.MinMem, l.MaxMem)
	}
}
