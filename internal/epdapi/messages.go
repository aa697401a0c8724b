package epdapi

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
)

// Where epd listens unless told otherwise.
const (
	// AgentSocket is that of the agent on a node, for root: hooks and restoring. Its folder is root's: the
	// other ones' is Slurm's user's where the controller runs as that.
	AgentSocket = "/run/epplan-agent/agent.sock"
	// ControllerSocket is that of the controller, for root and Slurm's user.
	ControllerSocket = "/run/epplan/controller.sock"
	// PublicSocket is the controller's for everybody: the kernel says who asks.
	PublicSocket = "/run/epplan/submit.sock"
)

// Paths of the interface. Hooks and restoring are for root alone.
const (
	PathProlog  = "/v1/prolog"
	PathEpilog  = "/v1/epilog"
	PathRestore = "/v1/restore"
	PathStatus  = "/v1/status"

	PathSubmit   = "/v1/submit"
	PathJobs     = "/v1/jobs"
	PathSavings  = "/v1/savings"
	PathEstimate = "/v1/estimate"
	PathQueue    = "/v1/queue"
	PathReload   = "/v1/reload"

	// Agents ask these; the messages are package control's.
	PathDecide  = "/v1/decide"
	PathOutcome = "/v1/outcome"
	PathOutlook = "/v1/outlook"
)

// MaxMessage bounds an answer, bytes.
const MaxMessage = 32 << 20

// Status is what an epd is doing.
type Status struct {
	Version string    `json:"version"`
	Role    string    `json:"role"`
	Node    string    `json:"node"`
	Started time.Time `json:"started"`
	GPUs    []GPU     `json:"gpus"`
	Runs    []Run     `json:"runs"`
	// Numbering is how the numbers of SLURM_JOB_GPUS are understood; nil where there
	// are no GPUs.
	Numbering *Numbering `json:"numbering,omitempty"`
	// Unrecorded counts ended runs whose outcomes aren't in the store yet.
	Unrecorded int `json:"unrecorded"`
	// Totals count what the controller did since its start; nil where it
	// can't be asked.
	Totals *Totals `json:"totals,omitempty"`
	// Controller is how the controller fares; nil where it isn't this process
	// and can't be asked.
	Controller *ControllerStatus `json:"controller,omitempty"`
	Troubles   []Problem         `json:"troubles"` // the latest ones, oldest first
	// Health is for administrators; nil for others.
	Health *Health `json:"health,omitempty"`
}

// Totals count what a controller did.
type Totals struct {
	Decisions int64 `json:"decisions"`
	Outcomes  int64 `json:"outcomes"`
	Models    int64 `json:"models"` // of workloads, in use now
}

// Numbering is which GPUs the numbers of SLURM_JOB_GPUS mean.
type Numbering struct {
	By   string   `json:"by,omitempty"` // by what that is known
	GPUs []string `json:"gpus"`         // UUIDs by number; empty where a GPU isn't there
	// Problem is why it isn't known: no clock is touched then.
	Trouble string `json:"trouble,omitempty"`
}

// GPU is a GPU of the node. Clocks are 0 where the default is in force, or
// where nothing could be read.
type GPU struct {
	UUID       string        `json:"uuid"`
	Bus        string        `json:"bus"`
	Model      string        `json:"model"`
	Minor      int           `json:"minor"`
	LockedCore dvfsmodel.MHz `json:"locked_core_mhz"`
	LockedMem  dvfsmodel.MHz `json:"locked_mem_mhz"`
	// LockedCap is the power limit that epd set. The limit in force, by whomever, is cap_w.
	LockedCap dvfsmodel.Watt `json:"locked_cap_w,omitzero"`
	// LockedProfile is the workload power profile that epd set, Profiles those that the GPU has, and
	// ProfilesInForce those in force, by whomever.
	LockedProfile   dvfsmodel.PowerProfile `json:"locked_power_profile,omitzero"`
	Profiles        []string               `json:"power_profiles,omitempty"`
	ProfilesInForce []string               `json:"power_profiles_in_force,omitempty"`
	dvfsmodel.Setting
	Power float64 `json:"power_w"`
	// PowerOf is [OfModules] where the power is that of a module, several GPUs or a GPU with
	// its CPU.
	PowerOf        string `json:"power_of,omitempty"`
	Stuck          bool   `json:"stuck,omitempty"`
	Lost           bool   `json:"lost,omitempty"`  // it fell off the bus
	ExternalChange string `json:"alien,omitempty"` // why somebody else is thought to set its clocks
	// Refused is why its driver refused to lock a clock, the last time that it was
	// told to; empty: it didn't, or wasn't told yet.
	Refused string `json:"refused,omitempty"`
	// Unsure says which values stay as they are because nobody knows who set them, such as a power limit
	// after a crash with files that can't be read.
	Unsure string `json:"unsure,omitempty"`
}

// Locked returns what epd set.
func (g *GPU) Locked() dvfsmodel.Setting {
	return dvfsmodel.Setting{Core: g.LockedCore, Mem: g.LockedMem, Cap: g.LockedCap, Profile: g.LockedProfile}
}

// ProblemWords say what is wrong with the GPU, each after a comma.
func (g *GPU) ProblemWords() string {
	words := ""
	if g.Lost {
		words += ", it fell off the bus"
	}
	if g.Stuck {
		words += ", the driver doesn't answer"
	}
	if g.ExternalChange != "" {
		words += ", left alone: " + g.ExternalChange
	}
	if g.Unsure != "" {
		words += ", " + g.Unsure
	}
	return words
}

// LimitWords returns the power limit in force, and what epd set it to, after a comma; nothing where it
// isn't known.
func (g *GPU) LimitWords() string {
	switch {
	case g.LockedCap > 0:
		return fmt.Sprintf(", limit %v set to %v W", float64(g.Cap), float64(g.LockedCap))
	case g.Cap > 0:
		return fmt.Sprintf(", limit %v W", float64(g.Cap))
	}
	return ""
}

// ProfileWords returns the power profiles in force, and the one that epd set, after a comma; nothing where
// there is none.
func (g *GPU) ProfileWords() string {
	words := ""
	if len(g.ProfilesInForce) > 0 {
		words = ", power profile " + strings.Join(g.ProfilesInForce, " and ")
	}
	if g.LockedProfile != 0 && !slices.Contains(g.ProfilesInForce, g.LockedProfile.String()) {
		words += ", power profile " + g.LockedProfile.String() + " was set and isn't in force"
	}
	return words
}

// IsLocked reports whether epd set anything.
func (g *GPU) IsLocked() bool { return g.Locked() != (dvfsmodel.Setting{}) }

// PowerText returns what it draws now, such as "287 W", or of what that is.
func (g *GPU) PowerText() string {
	text := fmt.Sprintf("%.0f W", g.Power)
	if g.PowerOf == OfModules {
		text += " of its module"
	}
	return text
}

// Run is a run of a job on the node.
type Run struct {
	ID                string    `json:"run"`
	Job               uint32    `json:"job"`
	GPUs              []string  `json:"gpus"`
	dvfsmodel.Setting           // wanted
	Started           time.Time `json:"started"`
	HandsOff          string    `json:"hands_off,omitempty"`
	Ended             bool      `json:"ended,omitempty"`
	// Slowdown is how many times as long as at default clocks it took so far, at
	// most, and SLA how many it may, while its core clock is adapted; 0: it isn't.
	Slowdown float64 `json:"slowdown,omitempty"`
	SLA      float64 `json:"sla,omitempty"`
}

// CurrentSetting returns the clocks that the run has.
func (r *Run) CurrentSetting() dvfsmodel.Setting {
	if r.HandsOff != "" {
		return dvfsmodel.Setting{}
	}
	return r.Setting
}

// Problem is something that went wrong.
type Problem struct {
	At      time.Time `json:"at"`
	Message string    `json:"what"`
}

// RestoreRequest asks for default clocks on some GPUs; on all where none is
// named.
type RestoreRequest struct {
	GPUs []string `json:"gpus,omitempty"`
}

// RestoreAnswer says what became of each journal entry.
type RestoreAnswer struct {
	GPUs  []RestoredGPU `json:"gpus"`
	Notes []string      `json:"notes,omitempty"`
	Clean bool          `json:"clean"` // no clock is held any more
}

// RestoredGPU is one of them.
type RestoredGPU struct {
	UUID   string `json:"uuid"`
	Result string `json:"fate"`
	Note   string `json:"note,omitempty"`
	Error  string `json:"error,omitempty"`
}

// ErrorAnswer is the answer to a request that failed.
type ErrorAnswer struct {
	Error string `json:"error"`
	// Faults are what is wrong with a configuration, each with file, line and
	// column.
	Faults []string `json:"faults,omitempty"`
}

// ReloadAnswer is the answer to a reload.
type ReloadAnswer struct {
	Version string `json:"version"` // of the configuration in force
	Before  string `json:"before"`  // of the one that was
	// Warnings say what should be written otherwise in it.
	Warnings []string `json:"warnings,omitempty"`
}

// Words say which configuration is in force now.
func (a *ReloadAnswer) Words() string {
	if a.Version == a.Before {
		return "configuration " + a.Version + " in force, as before"
	}
	return "configuration " + a.Version + " in force, before it was " + a.Before
}

// WarningErrors returns the warnings as errors.
func (a *ReloadAnswer) WarningErrors() []error {
	all := make([]error, len(a.Warnings))
	for i, text := range a.Warnings {
		all[i] = errors.New(text)
	}
	return all
}
