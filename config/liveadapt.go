package config

import "strings"

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
}

func defaultAdapt() LiveAdapt {
	return LiveAdapt{Mode: AdaptOff, SLA: 1.2, Tau: 0.1, Writes: 30, WritePause: 1, MaxGPUs: 1}
}

// ModeOf is the mode of a partition; of several, with commas between, it is on
// where it is on in all.
func (a *LiveAdapt) ModeOf(partitions string) Adapt {
	for partition := range strings.SplitSeq(partitions, ",") {
		mode, ok := a.Modes[partition]
		if !ok {
			mode = a.Mode
		}
		if mode != AdaptOn {
			return mode
		}
	}
	return AdaptOn
}

func (a *LiveAdapt) fields() []field {
	return []field{
		choiceField("mode", "Whether core clocks are adapted while jobs run, where mode is "+
			"enforce: off or on.", (*string)(&a.Mode), adaptWords...),
		partitionTableField("modes", "The same for single partitions, such as {gpu = \"on\"}.", "off or on",
			&a.Modes, adaptWords),
		numberField("sla", "How many times as long as at default clocks such a run may take, at every "+
			"moment of it.", &a.SLA, numberRange{min: 1, max: 10}),
		numberField("tau_s", "Seconds from one look at a GPU to the next.", &a.Tau,
			numberRange{min: 0.02, max: 0.15}),
		intField("writes_per_minute", "The most clock writes that a GPU has in any minute. Below 3 nothing "+
			"is adapted.", &a.Writes, 0, 6000),
		numberField("write_pause_s", "Seconds from one step of a GPU's clock to the next at least: a write "+
			"holds kernels up that communicate.", &a.WritePause, numberRange{min: 0, max: 10}),
		intField("max_gpus", "The most GPUs of a job whose clocks are adapted: where several wait for each "+
			"other, as under NCCL, each write may cost all of them time.", &a.MaxGPUs, 1, 64),
	}
}
