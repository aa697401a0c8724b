package epdapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// DecideRequest asks for the clocks of a job's GPUs on a node. The agent sends
// it from the Prolog. Texts of users are hexadecimal on the wire.
type DecideRequest struct {
	Job  slurm.JobID `json:"job_id"`
	Node string      `json:"node"`
	// RunID names the run, drawn by the agent: 1 to 100 letters, digits, dashes and
	// underscores. Asking again with the same one gives the same answer.
	RunID    string `json:"run_id"`
	GPUModel string `json:"gpu_model"`
	GPUs     int    `json:"gpus"`             // of the job on this node
	Shared   bool   `json:"shared,omitempty"` // others may be on these GPUs: shards, MPS, MIG
	// Left tells that they are shared only with runs of before the agent's start of
	// which nobody could say whether they ended.
	Left bool `json:"left,omitempty"`
	// The GPU's default clocks; 0: from its profile, else the highest.
	Default dvfsmodel.Setting `json:"default"`
	Clocks  []ClockGroup      `json:"clocks"` // the device's table
	// PowerLimit is what is known of the power limit of its GPUs; zero: it can't be set.
	PowerLimit PowerLimit `json:"power_limit,omitzero"`
	// Profiles are the names of the workload power profiles that can be put in force on all of its GPUs.
	Profiles []string `json:"power_profiles,omitempty"`
	// CoreFixed tells that the core clock can't be locked.
	CoreFixed bool      `json:"core_fixed,omitempty"`
	UID       uint32    `json:"uid"`
	User      hooks.Hex `json:"user_hex,omitempty"`
	Partition hooks.Hex `json:"partition_hex,omitempty"`
	Comment   hooks.Hex `json:"comment_hex,omitempty"`
}

// PowerLimit is the power limit in force on a job's GPUs, of several the lowest, and what their boards
// all take.
type PowerLimit struct {
	InForce dvfsmodel.Watt `json:"in_force_w"`
	Min     dvfsmodel.Watt `json:"min_w"`
	Max     dvfsmodel.Watt `json:"max_w"`
}

// Takes reports whether a limit can be set: the boards take it, and it is below the one in force.
func (l PowerLimit) Takes(limit dvfsmodel.Watt) bool {
	return limit > 0 && limit >= l.Min && limit <= l.Max && limit < l.InForce
}

// Among returns those of some limits that can be set.
func (l PowerLimit) Among(limits []dvfsmodel.Watt) []dvfsmodel.Watt {
	return slices.DeleteFunc(slices.Clone(limits), func(w dvfsmodel.Watt) bool { return !l.Takes(w) })
}

// HasProfile reports whether a power profile can be put in force on all GPUs.
func (r *DecideRequest) HasProfile(p dvfsmodel.PowerProfile) bool {
	return p != 0 && slices.Contains(r.Profiles, p.String())
}

// ClockGroup is the core clocks that a memory clock supports.
type ClockGroup struct {
	Mem  dvfsmodel.MHz   `json:"mem_mhz"`
	Core []dvfsmodel.MHz `json:"core_mhz"`
}

// Bounds of what a request may name.
const (
	MaxGPUs      = 1024 // of a job
	MaxModelName = 200  // bytes of a GPU model's name
	maxClocks    = 2000 // core clocks at a memory clock, as a profile may have
	maxPairs     = 5000 // of clocks: a device of today has up to some 2,000
	MaxMHz       = 20_000
	// MaxProfileName is how many bytes the name of a power profile has at most.
	MaxProfileName = 40
	maxRunID       = 100 // as in the names of an agent's files
	maxUserHex     = 1024
)

// Validate says what is impossible about a request, as an [ErrRequest].
func (r *DecideRequest) Validate() error {
	switch {
	case !isJobID(r.Job):
		return fmt.Errorf("%w: job id %d", ErrRequest, r.Job)
	case slurm.ValidNode(r.Node) != nil:
		return fmt.Errorf("%w: %w", ErrRequest, slurm.ValidNode(r.Node))
	case r.GPUs < 0 || r.GPUs > MaxGPUs:
		return fmt.Errorf("%w: %d GPUs, want 0 to %d", ErrRequest, r.GPUs, MaxGPUs)
	case !isRunID(r.RunID):
		return fmt.Errorf("%w: run id %q, %s", ErrRequest, slurm.Printable(r.RunID, 40), wantRunID)
	case !IsPrintable(r.GPUModel, MaxModelName):
		return fmt.Errorf("%w: GPU model %s", ErrRequest, slurm.Printable(r.GPUModel, 40))
	case len(r.User) > maxUserHex || len(r.Partition) > maxUserHex || len(r.Comment) > slurm.MaxText:
		return fmt.Errorf("%w: a text is too long", ErrRequest)
	case !isClock(r.Default.Core, 0) || !isClock(r.Default.Mem, 0):
		return fmt.Errorf("%w: default clocks %v, %v MHz", ErrRequest, r.Default.Core, r.Default.Mem)
	}
	for _, w := range []dvfsmodel.Watt{r.PowerLimit.InForce, r.PowerLimit.Min, r.PowerLimit.Max} {
		if !(w >= 0 && w <= record.MaxGPUPower) {
			return fmt.Errorf("%w: a power limit of %v W", ErrRequest, float64(w))
		}
	}
	strange := func(name string) bool { return !IsPrintable(name, MaxProfileName) }
	if len(r.Profiles) > int(dvfsmodel.MaxPowerProfile) || slices.ContainsFunc(r.Profiles, strange) {
		return fmt.Errorf("%w: %d power profiles, want at most %d printable names", ErrRequest, len(r.Profiles),
			dvfsmodel.MaxPowerProfile)
	}
	pairs := 0
	for _, g := range r.Clocks {
		pairs += len(g.Core)
		if !isClock(g.Mem, 1) || len(g.Core) == 0 || len(g.Core) > maxClocks || pairs > maxPairs {
			return fmt.Errorf("%w: %d core clocks at %v MHz of memory", ErrRequest, len(g.Core), g.Mem)
		}
		for _, core := range g.Core {
			if !isClock(core, 1) {
				return fmt.Errorf("%w: core clock %v MHz", ErrRequest, core)
			}
		}
	}
	return nil
}

func isClock(f, least dvfsmodel.MHz) bool { return f >= least && f <= MaxMHz }

// wantRunID says what a run's id is.
const wantRunID = "want the id that the agent drew for the run: 1 to 100 letters, digits, " +
	"dashes and underscores"

// isRunID reports whether a text may be the id that an agent draws for a run, of which
// it makes names of files.
func isRunID(id string) bool {
	alphanumeric := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
	}
	return id != "" && len(id) <= maxRunID && alphanumeric(rune(id[0])) &&
		!strings.ContainsFunc(id, func(r rune) bool { return !alphanumeric(r) && r != '-' && r != '_' })
}

// IsPrintable reports whether a text is printable and at most so long.
func IsPrintable(text string, most int) bool {
	return len(text) <= most && slurm.Printable(text, most+1) == text
}

// isJobID reports whether there can be such a job.
func isJobID(id slurm.JobID) bool { return id > 0 && id < slurm.NoVal }

// OutlookRequest asks what became of a run that was decided about.
type OutlookRequest struct {
	Job   slurm.JobID `json:"job_id"`
	Node  string      `json:"node"`
	RunID string      `json:"run_id"`
	// Ending tells that the run's Epilog came: Slurm is asked anew when its job ended.
	Ending bool `json:"ending,omitempty"`
}

// Validate says what is impossible about a request, as an [ErrRequest].
func (r *OutlookRequest) Validate() error {
	if !isJobID(r.Job) || slurm.ValidNode(r.Node) != nil || !isRunID(r.RunID) {
		return fmt.Errorf("%w: want a run's job id, node and run id; %s", ErrRequest, wantRunID)
	}
	return nil
}

// GroupClocks is pairs of clocks by memory clock.
func GroupClocks(pairs []dvfsmodel.Setting) []ClockGroup {
	byMem := make(map[dvfsmodel.MHz][]dvfsmodel.MHz)
	for _, p := range pairs {
		byMem[p.Mem] = append(byMem[p.Mem], p.Core)
	}
	groups := make([]ClockGroup, 0, len(byMem))
	for _, mem := range slices.Sorted(maps.Keys(byMem)) {
		groups = append(groups, ClockGroup{Mem: mem, Core: byMem[mem]})
	}
	return groups
}
