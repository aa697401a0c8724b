package config

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
)

// Adapt reports whether clocks are adapted while jobs run.
type Adapt string

// Clocks stay as they were chosen at a run's start, or follow its use of the GPU.
const (
	AdaptOff Adapt = "off"
	AdaptOn  Adapt = "on"
)

var adaptWords = []string{string(AdaptOff), string(AdaptOn)}

// LiveAdapt is how the core clocks of running jobs are adapted, in partitions
// that are enforced.
type LiveAdapt struct {
	// Mode is that of partitions which Modes doesn't name.
	Mode  Adapt
	Modes map[string]Adapt // by partition
	SLA   float64          // times that a run may take as long as at default clocks
	Tau   float64          // seconds from one look at a GPU to the next
	// Writes are the clock writes that a GPU may have in any minute.
	Writes int
	// WritePause is the time from one of an adapted job to the next, seconds.
	WritePause float64
	// MaxGPUs is how many GPUs such a job has at most.
	MaxGPUs int
	// Rest is for how long the GPUs of a job without a model must have had no work before they go to their
	// lowest clock, seconds; 0: they never do.
	Rest float64
}

func defaultAdapt() LiveAdapt {
	return LiveAdapt{Mode: AdaptOff, SLA: 1.2, Tau: 0.1, Writes: 30, WritePause: 1, MaxGPUs: 1}
}

// ModeOf returns the mode of a partition; of several, with commas between, it is on
// where it is on in all.
func (a *LiveAdapt) ModeOf(partitions string) Adapt {
	return strictest(partitions, a.Modes, a.Mode, adaptWords)
}

func (a *LiveAdapt) fields() []field {
	return []field{
		choiceField("mode",
			"Whether core clocks are adapted while jobs run, in mode enforce.", (*string)(&a.Mode), adaptWords...),
		partitionTableField("modes", "mode by partition.", "off or on",
			&a.Modes, adaptWords),
		numberField("sla",
			"How many times its time at default clocks such a run may take, at every moment.",
			&a.SLA, numberRange{min: 1, max: 10}),
		numberField("tau_s", "Seconds between readings of a GPU.", &a.Tau,
			numberRange{min: 0.02, max: 0.15}),
		intField("writes_per_minute",
			"Most clock writes of a GPU in any minute. Below 3 nothing is adapted.", &a.Writes, 0, 6000),
		numberField("write_pause_s",
			"Least seconds between steps of a GPU's clock: a write delays kernels that communicate.",
			&a.WritePause, numberRange{min: 0, max: 10}),
		intField("max_gpus",
			"Most GPUs of an adapted job: if they wait for each other, as under NCCL, each write may delay\n"+
				"all of them.", &a.MaxGPUs, 1, 64),
		numberField("rest_s",
			"Seconds without work after which the GPUs of a job without a model go to their lowest allowed\n"+
				"clock until it has work again, in mode enforce; 0: never.", &a.Rest, numberRange{max: 1e6}),
	}
}

// CapMode is how power limits of GPUs are set.
type CapMode string

// Power limits stay as they are; are chosen where the core clock can't be locked, in its place; or
// are the same for all jobs that keep what they are promised under it.
const (
	CapOff      CapMode = "off"
	CapChosen   CapMode = "chosen"
	CapConstant CapMode = "constant"
)

// capWords are the modes, the most careful first.
var capWords = []string{string(CapOff), string(CapChosen), string(CapConstant)}

// LiveCap is how the power limits of GPUs are set, in partitions that are enforced.
type LiveCap struct {
	// Mode is that of partitions which Modes doesn't name.
	Mode  CapMode
	Modes map[string]CapMode // by partition
	// Limit is the constant limit of partitions which Limits doesn't name: a part of the limit in
	// force up to 1, watts above; 0: none.
	Limit  float64
	Limits map[string]float64 // by partition
}

func defaultCap() LiveCap { return LiveCap{Mode: CapOff} }

// ModeOf returns the mode of a partition; of several, with commas between, the most careful one.
func (c *LiveCap) ModeOf(partitions string) CapMode {
	return strictest(partitions, c.Modes, c.Mode, capWords)
}

// IsChosenEverywhere reports whether limits are chosen in all partitions.
func (c *LiveCap) IsChosenEverywhere() bool {
	for _, mode := range c.Modes {
		if mode != CapChosen {
			return false
		}
	}
	return c.Mode == CapChosen
}

// IsChosenSomewhere reports whether limits are chosen in some partition.
func (c *LiveCap) IsChosenSomewhere() bool {
	for _, mode := range c.Modes {
		if mode == CapChosen {
			return true
		}
	}
	return c.Mode == CapChosen
}

// LimitOf returns the constant limit of a partition on a GPU with a limit in force; of several, with
// commas between, the highest.
func (c *LiveCap) LimitOf(partitions string, inForce dvfsmodel.Watt) dvfsmodel.Watt {
	highest := dvfsmodel.Watt(0)
	for partition := range strings.SplitSeq(partitions, ",") {
		limit, ok := c.Limits[partition]
		if !ok {
			limit = c.Limit
		}
		watts := dvfsmodel.Watt(limit)
		if limit <= 1 {
			watts = dvfsmodel.Watt(math.Round(limit * float64(inForce)))
		}
		highest = max(highest, watts)
	}
	return highest
}

func (c *LiveCap) fields() []field {
	watts := numberRange{max: maxCapW}
	return []field{
		choiceField("mode",
			"How power limits are set in mode enforce: off (not at all), chosen (in place of a core clock\n"+
				"that can't be locked, or beside it if runs under several limits show that it pays; plans choose\n"+
				"them, too) or constant (limit, for jobs that then keep their promises).",
			(*string)(&c.Mode), capWords...),
		partitionTableField("modes", "mode by partition.",
			"off, chosen or constant", &c.Modes, capWords),
		numberField("limit",
			"Constant power limit of a GPU: watts, or up to 1 a fraction of the limit in force; 0: none.",
			&c.Limit, watts),
		partitionNumberField("limits", "limit by partition.",
			&c.Limits, watts),
	}
}

// ProfileName is the name of a workload power profile, or that there is none.
type ProfileName string

// ProfileOff is no profile.
const ProfileOff ProfileName = "off"

// profileWords are off and the names of profiles.
func profileWords() []string {
	return append([]string{string(ProfileOff)}, dvfsmodel.PowerProfileNames()...)
}

// LiveProfile is the workload power profile of GPUs in partitions that are enforced.
type LiveProfile struct {
	// Name is that of partitions which Names doesn't name.
	Name  ProfileName
	Names map[string]ProfileName // by partition
}

// Of returns the profile of a partition; of several, with commas between, the one that all of them have.
func (p *LiveProfile) Of(partitions string) dvfsmodel.PowerProfile {
	var all ProfileName
	for partition := range strings.SplitSeq(partitions, ",") {
		name, ok := p.Names[partition]
		if !ok {
			name = p.Name
		}
		if all != "" && name != all {
			return 0
		}
		all = name
	}
	profile, err := dvfsmodel.ParsePowerProfile(string(all))
	if err != nil { // it is off
		return 0
	}
	return profile
}

func (p *LiveProfile) fields() []field {
	return []field{
		choiceField("name",
			"Workload power profile requested of GPUs that have it (NVIDIA's from Blackwell on) while a job\n"+
				"runs, in mode enforce: for all jobs alike, held out or not. Each profile has models of its own.",
			(*string)(&p.Name), profileWords()...),
		partitionTableField("names", "name by partition.",
			"off or the name of a profile", &p.Names, profileWords()),
	}
}

// maxCapW is more than any GPU draws.
const maxCapW = 3000

// check notes partitions with a constant limit and none stated.
func (c *LiveCap) check(d *document) {
	if c.Mode == CapConstant && c.Limit == 0 {
		d.faultAt("live.cap.mode", "live.cap.mode is %q, want live.cap.limit with it, such as 0.8", string(c.Mode))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Modes)) {
		if c.Modes[name] == CapConstant && c.LimitOf(name, maxCapW) == 0 {
			d.faultAt("live.cap.modes", "live.cap.modes has partition %s at \"constant\", want live.cap.limit "+
				"with it, such as 0.8, or one of its own in live.cap.limits", quoteName(name))
		}
	}
}
