package record

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
)

// Source says where an energy comes from.
type Source string

// Sources of energy, from the best to the worst.
const (
	Unmeasured Source = ""
	Counter    Source = "counter"    // the GPU's energy counter
	Integrated Source = "integrated" // integrated samples of power
	// The same where the counter and the power are those of a module, several GPUs or a GPU
	// with its CPU.
	ModuleCounter Source = "module-counter"
	ModuleSamples Source = "module-integrated"
	RAPL          Source = "rapl"        // the CPUs' energy counters
	Accounting    Source = "acct-gather" // Slurm's AcctGatherEnergy
	Modelled      Source = "modelled"    // computed from host watts by share
)

// Words say by what an energy was measured; empty where nobody knows.
func (s Source) Words() string {
	switch s {
	case Counter:
		return "the GPUs' counters"
	case Integrated:
		return "samples of their power, worse than a counter"
	case ModuleCounter:
		return "the counters of their modules, CPUs included"
	case ModuleSamples:
		return "samples of the power of their modules, CPUs included, worse than a counter"
	case RAPL:
		return "the CPUs' counters"
	case Accounting:
		return "Slurm's accounting"
	case Modelled:
		return "a model, not measured"
	case Unmeasured:
	}
	return ""
}

// OfModule returns the same source where what it measures is a module's.
func (s Source) OfModule() Source {
	switch s {
	case Counter:
		return ModuleCounter
	case Integrated:
		return ModuleSamples
	default:
		return s
	}
}

// IsModule reports whether it measures modules.
func (s Source) IsModule() bool { return s == ModuleCounter || s == ModuleSamples }

// withoutModule returns the same source as an agent says it, which doesn't tell modules apart.
func (s Source) withoutModule() Source {
	switch s {
	case ModuleCounter:
		return Counter
	case ModuleSamples:
		return Integrated
	default:
		return s
	}
}

// Job is what Slurm knows of a job. Ids come again, so that a job is named by
// cluster, id and submit time together.
type Job struct {
	Cluster    string     `json:"cluster"`
	ID         int64      `json:"job_id"`
	Submitted  time.Time  `json:"submitted"` // to the second, as Slurm has it
	Token      string     `json:"token"`     // the prediction made at submission, "" without one
	User       string     `json:"user"`
	Account    string     `json:"account"`
	Partition  string     `json:"partition"`
	Name       []byte     `json:"name"` // as the user wrote it: any bytes
	ScriptHash string     `json:"script_hash"`
	Workload   string     `json:"workload"` // key of what repeats
	Limit      live.Limit `json:"limit_s"`  // wall time: seconds, "unlimited", or null where none is known
	Nodes      int        `json:"nodes"`
	GPUs       int        `json:"gpus"`
	State      string     `json:"state"`
	// ArrayJob is the array of which the job is a task, 0: of none; ArrayTask is that task's index.
	ArrayJob  int64 `json:"array_job,omitempty"`
	ArrayTask int   `json:"array_task,omitempty"`
}

// ArrayID returns the task of an array that a job is, such as 4_3; "" if it is none.
func (j *Job) ArrayID() string {
	if j.ArrayJob == 0 {
		return ""
	}
	return fmt.Sprintf("%d_%d", j.ArrayJob, j.ArrayTask)
}

// Decision is what was decided for a job, and why. One made at submission has
// a token and no job id; one made in Prolog has job id and node.
type Decision struct {
	ID            int64             `json:"decision_id"` // given by the store
	Cluster       string            `json:"cluster"`
	JobID         int64             `json:"job_id"`
	Node          string            `json:"node"`
	Token         string            `json:"token"`
	RunID         string            `json:"run_id"`
	Workload      string            `json:"workload"`
	GPUModel      string            `json:"gpu_model"`
	Setting       dvfsmodel.Setting `json:"setting"`
	TimeS         Interval          `json:"time_s"`
	PowerW        Interval          `json:"power_w"`
	EnergyJ       Interval          `json:"energy_j"`
	DefaultJ      live.Number       `json:"default_energy_j"` // at default clocks
	Rung          string            `json:"rung"`             // what predictions made at submission rest on
	Reason        string            `json:"reason"`
	Mode          string            `json:"mode"`
	ConfigVersion string            `json:"config_version"`
	ModelVersion  int64             `json:"model_version"` // 0 without a model
	Arm           live.Arm          `json:"arm"`
	// Part of the runs that the lot held out then.
	HoldOut live.Number `json:"hold_out"`
	// And that it had run at constant clocks; absent without such an arm.
	ConstantArm live.Number `json:"constant_arm,omitzero"`
	Created     time.Time   `json:"created"`
}

// Interval is a prediction with its calibrated bounds.
type Interval struct {
	Value live.Number `json:"value"`
	Low   live.Number `json:"low"`
	High  live.Number `json:"high"`
}

// RecordedRun is an outcome as it lies in the records.
type RecordedRun struct {
	ID       int64     `json:"id"`                 // among outcomes, or among conflicts
	Conflict bool      `json:"conflict,omitempty"` // its run has another outcome: it counts nowhere
	Received time.Time `json:"received"`
	Digest   []byte    `json:"digest"` // of what was sent
	Outcome  Outcome   `json:"outcome"`
}

// RunKey names a run of a cluster. Each node names its own runs.
type RunKey struct{ Node, RunID string }

// Outcome is what one run of a job on one node came to. The agent names the run
// in Prolog; (Cluster, Node, RunID) is its key, everything else an attribute.
type Outcome struct {
	Cluster         string             `json:"cluster"`
	RunID           string             `json:"run_id"`
	JobID           int64              `json:"job_id"`
	Node            string             `json:"node"`
	Restart         int                `json:"restart"`
	DecisionID      int64              `json:"decision_id"` // 0 without one
	Workload        string             `json:"workload"`
	GPUModel        string             `json:"gpu_model"`
	Arm             live.Arm           `json:"arm"`
	Submitted       time.Time          `json:"submitted"`
	Started         time.Time          `json:"started"`
	Ended           time.Time          `json:"ended"`
	GPUs            []string           `json:"gpus"` // UUIDs
	ExitState       string             `json:"exit_state"`
	Setting         dvfsmodel.Setting  `json:"setting"` // what was locked
	TimeS           live.Number        `json:"time_s"`
	GPUEnergyJ      live.Number        `json:"gpu_energy_j"`
	GPUSource       Source             `json:"gpu_energy_source"`
	NodeEnergyJ     live.Number        `json:"node_energy_j"`
	NodeSource      Source             `json:"node_energy_source"`
	MeanPowerW      live.Number        `json:"mean_power_w"`
	PeakPowerW      live.Number        `json:"peak_power_w"`
	Utilisation     live.Number        `json:"utilisation"` // mean, 0..1
	PeakMemoryBytes live.Number        `json:"peak_memory_bytes"`
	Clocks          []live.Residency   `json:"clocks"`
	ThrottledS      map[string]float64 `json:"throttled_s"` // seconds by reason
	Course
	Details
	// Implausible is what came with it and can't be; the controller says so.
	Implausible Implausible `json:"implausible,omitzero"`
	// Unmatched marks an Epilog without an open run: kept, and in no statistics.
	Unmatched bool `json:"unmatched"`
}

// DropShared takes out what isn't known of a run whose GPUs others may have used.
func (o *Outcome) DropShared() {
	if !o.Shared {
		return
	}
	o.Arm = live.ArmExcluded
	o.GPUEnergyJ, o.GPUSource, o.NodeEnergyJ, o.NodeSource = live.Number{}, Unmeasured, live.Number{}, Unmeasured
	o.MeanPowerW, o.PeakPowerW = live.Number{}, live.Number{}
	o.Restarted.GPUEnergyJ, o.Restarted.NodeEnergyJ = live.Number{}, live.Number{}
	o.Stays = nil
}

// WorkClock is a core clock over the time in which GPUs were at work.
type WorkClock struct {
	CoreMHz   live.Number `json:"core_mhz"`   // the mean
	SpreadMHz live.Number `json:"spread_mhz"` // the standard deviation
}

// Course is how a run went over time.
type Course struct {
	// Series is the mean utilisation of its GPUs.
	Series Series `json:"series"`
	// Profile is how it used its GPUs, for what may share them; none from agents
	// that don't tell.
	Profile Profile `json:"profile,omitzero"`
}

// Details are what else is known of a run. They aren't part of what tells two deliveries of its
// outcome apart: a controller that knew nothing of them may have acknowledged it first.
type Details struct {
	// Slowdown is how many times as long as at default clocks it took, at most.
	Slowdown live.Number `json:"slowdown"`
	// CapW is the power limit of a GPU that was in force, by whomever: of its GPUs the lowest,
	// and of several limits in turn the one for the longest time. OtherCapsS is how long others
	// were in force.
	CapW       live.Number `json:"cap_w,omitzero"`
	OtherCapsS live.Number `json:"other_caps_s,omitzero"`
	// Readings are its GPUs' power and core clock; none from agents that don't tell.
	Readings Readings `json:"readings,omitzero"`
	// Stays are time and energy by the core clock that was locked, by falling clocks, of a run whose
	// clock was adapted and that was alone on its GPUs; none where what it drew isn't known step by step.
	Stays []dvfsmodel.ClockResidency `json:"stays,omitempty"`
	// WorkClock is the core clock at which its GPUs were at work; none from agents that don't
	// tell.
	WorkClock WorkClock `json:"work_clock,omitzero"`
	// Notes are what became of its clocks beside being locked and given back, for people.
	Notes []string `json:"notes,omitempty"`
	// Shared tells that others may have used its GPUs, too: it had parts of them (shards, MPS, MIG), or another
	// run was on one. What the GPUs took is then everybody's: its energy and power aren't known, it ran at
	// default clocks, and is in no arm.
	Shared bool `json:"shared,omitempty"`
	// NotLocked is why clocks that were decided weren't set, or not to its end.
	NotLocked live.NotLocked `json:"not_locked,omitzero"`
	// Restarted is what is known of a run that epd was restarted under, whose job was
	// suspended, or whose Epilog was late, and whose own time and energy aren't.
	Restarted Restarted `json:"restarted,omitzero"`
}

// LimitWords returns the power limit of a GPU that was in force, after a comma; nothing where it isn't
// known.
func (o *Outcome) LimitWords() string {
	limit, known := o.CapW.Get()
	if !known {
		return ""
	}
	words := fmt.Sprintf(", limit %v W a GPU", limit)
	if s, changed := o.OtherCapsS.Get(); changed {
		words += fmt.Sprintf(", others for %.0f s", s)
	}
	return words
}

// LockedWords say at what its GPUs were locked, and what became of that.
func (o *Outcome) LockedWords() string {
	return strings.Join(append([]string{o.Setting.Words()}, o.Remarks()...), "; ")
}

// Remarks say why decided clocks weren't locked, if so, and what else became of its clocks and energy.
func (o *Outcome) Remarks() (list []string) {
	if n := o.NotLocked; n != (live.NotLocked{}) {
		list = append(list, fmt.Sprintf("the decided clocks weren't set, or not to its end (%s): %s", n.Kind, n.Why))
	}
	if o.Shared {
		list = append(list, "others may have used its GPUs, too: its energy isn't known, and is in no saving or bill")
	}
	return append(list, o.Notes...)
}

// Key names the outcome's run.
func (o *Outcome) Key() RunKey { return RunKey{o.Node, o.RunID} }

// Key names the run that a decision is for.
func (d *Decision) Key() RunKey { return RunKey{d.Node, d.RunID} }

// Restarted are the time and the energy of a run that epd was restarted under, whose
// job was suspended, or whose Epilog was late. At a restart its clocks are given back,
// and what came before wasn't seen; for as long as it is suspended a job does nothing;
// what ran before its Epilog isn't its work: they are for people, and in no model,
// saving or sum.
type Restarted struct {
	TimeS live.Number `json:"time_s"` // from its start to its end
	// By the counters of its GPUs, which go on without epd.
	GPUEnergyJ  live.Number `json:"gpu_energy_j"`
	NodeEnergyJ live.Number `json:"node_energy_j,omitzero"` // of a run that epd saw all of
	Suspended   bool        `json:"suspended,omitempty"`    // its job was, and epd ran all the time
	// Late tells that its Epilog came some time after its end, and epd wasn't told then
	// when that was: a site's own Epilog had run before.
	Late bool `json:"late,omitempty"`
}

// IsZero tells that nothing is known.
func (r Restarted) IsZero() bool { return r == Restarted{} }

// IsComplete tells that epd ran all the time, and measured all of the run.
func (r Restarted) IsComplete() bool { return r.Suspended || r.Late }

// Why says what was the matter, after a time.
func (r Restarted) Why() string {
	switch {
	case r.Suspended:
		return "its job suspended for a part of it"
	case r.Late:
		return "with what ran before its Epilog"
	}
	return "over a restart of epd"
}

// EnergySource is by what the energy of a run was measured that is known of it.
func (o *Outcome) EnergySource() Source {
	if _, ok := o.Restarted.GPUEnergyJ.Get(); ok && !o.Restarted.IsComplete() {
		return Counter
	}
	return o.GPUSource
}

// MoveToRestarted moves the time and the energy of a run that epd saw all of to where they
// are for people alone; why says the reason.
func (o *Outcome) MoveToRestarted(why Restarted) {
	if !o.Restarted.IsZero() {
		return // there they are already
	}
	why.TimeS, why.GPUEnergyJ, why.NodeEnergyJ = o.TimeS, o.GPUEnergyJ, o.NodeEnergyJ
	o.Restarted = why
	o.TimeS, o.GPUEnergyJ, o.NodeEnergyJ = live.Number{}, live.Number{}, live.Number{}
}

// MaxResidencies is how many stays an outcome may have.
const MaxResidencies = 64

// Completed is the exit state of a run that did all its work; only such runs
// are compared.
const Completed = "COMPLETED"

// RunProfile is the profile of a completed run that had its GPUs alone.
type RunProfile struct {
	RunID    string
	Ended    time.Time
	TimeS    float64
	Slowdown live.Number // against default clocks
	Setting  dvfsmodel.Setting
	Profile  Profile
}

// ProfileCount is how many profiles of completed runs a workload has.
type ProfileCount struct {
	WorkloadKey
	Alone  int64     `json:"alone"`  // runs that had their GPUs alone
	Shared int64     `json:"shared"` // and others
	Last   time.Time `json:"last"`   // when the last of them was received
}

// WorkloadKey names a workload on a GPU model of a cluster: what a model is for.
type WorkloadKey struct {
	Cluster  string `json:"cluster"`
	Workload string `json:"workload"`
	GPUModel string `json:"gpu_model"`
}

// Compare orders keys by workload, GPU model and cluster.
func (k WorkloadKey) Compare(o WorkloadKey) int {
	return cmp.Or(
		strings.Compare(k.Workload, o.Workload), strings.Compare(k.GPUModel, o.GPUModel),
		strings.Compare(k.Cluster, o.Cluster),
	)
}

// ForecastForm is the form of versions that say what forecasts were learnt from: they
// are kept among the models, and no clock follows from them.
const ForecastForm = "ladder"

// Model is one version of a workload's fitted model.
type Model struct {
	WorkloadKey
	Version      int64           `json:"version"` // given by the store, from 1
	Form         string          `json:"form"`
	Coefficients json.RawMessage `json:"coefficients"`
	Covariance   []float64       `json:"covariance"` // row by row
	Samples      int             `json:"samples"`
	Created      time.Time       `json:"created"`
	InUse        bool            `json:"in_use"`
	Note         string          `json:"note"`
}

// RetiredModel is a workload whose model was taken out of use.
type RetiredModel struct {
	WorkloadKey
	Note  string    `json:"note"` // why, or that fits may choose one again
	Since time.Time `json:"since"`
}

// EndingCounts counts jobs whose details aren't pruned.
type EndingCounts struct {
	Ended     int64 `json:"ended"`
	Completed int64 `json:"completed"` // of those
}

// Groupings lists the keys by which usage can be grouped.
var Groupings = []string{"user", "account", "partition", "workload", "gpu"}

// Usage holds the energy and GPU time of a group of runs.
type Usage struct {
	Key              string // of the group; "": not known
	Runs             int64  // on one node each
	Jobs             int64  // that are known
	GPUSeconds       float64
	GPURuns          int64   // whose GPU energy is known
	GPUEnergyJ       float64 // of those
	NodeRuns         int64   // whose node energy is known
	NodeEnergyJ      float64 // of those
	ModelledJ        float64 // the part of NodeEnergyJ whose hosts are modelled
	EnergyRuns       int64   // with either
	EnergyGPUSeconds float64 // of those
	EnergyJ          float64 // of the node where it is known, else of the GPUs
	HeldOutJ         float64 // of held-out runs
	// Predicted are the treated runs that completed, at the GPUs.
	Predicted PredictedUse
	Idle      []Idle // of the runs whose utilisation and job are known
	// Strata are those of the group's jobs. One group of all has none.
	Strata []Stratum
}

// Idle is for how long GPUs of a model had no work, as their drivers tell.
type Idle struct {
	GPUModel   string
	GPUSeconds float64
}

// Stratum is what is known of the energies and run times of the completed jobs of one workload
// on one GPU model in one arm. A run is a job on all its nodes: it was drawn once.
type Stratum struct {
	WorkloadKey
	HoldOut float64 `json:"hold_out"` // part of the runs that the lot held out; -1: not known
	// ConstantArm is the part of them that it had run at constant clocks.
	ConstantArm float64      `json:"constant_arm"`
	Arm         live.Arm     `json:"arm"`
	GPU         Mean         `json:"gpu_energy"`
	Node        Mean         `json:"node_energy"`
	Time        Mean         `json:"time"` // of a job, on the node where it took longest
	Predicted   PredictedUse `json:"predicted"`
	Endings     EndingCounts `json:"endings"`
}

// Mean is the mean of energies, in joules, or of times, in seconds, with what its error needs.
type Mean struct {
	Runs  int64   `json:"runs"` // those with a known energy, or time
	Value float64 `json:"mean"`
	// Variance is that of single runs around the mean of those with the same clocks,
	// or, in the constant arm, of all, unbiased; Freedom are its degrees of freedom, 0:
	// nothing is known.
	Variance float64 `json:"variance"`
	Freedom  int64   `json:"freedom"`
}

// PredictedUse compares runs with what was thought of them when they were decided.
type PredictedUse struct {
	Runs     int64   `json:"runs"`             // with a known energy and a prediction
	DefaultJ float64 `json:"default_energy_j"` // what they were thought to take at default clocks
	GPUJ     float64 `json:"gpu_energy_j"`     // what they took
}
