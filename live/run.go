package live

import (
	"time"

	"github.com/epplan/epplan/dvfsmodel"
)

// Run is one run of a job on a node, as its agent applies it. A job that is requeued
// runs again, under another id. Its JSON is that of the agent's files: times are in
// nanoseconds.
type Run struct {
	ID      string            `json:"run"`
	Job     uint32            `json:"job"`
	Node    string            `json:"node"`
	GPUs    []string          `json:"gpus"` // by UUID
	Setting dvfsmodel.Setting `json:"setting"`
	Wish    RunWish           `json:"wish"`
	Started time.Time         `json:"started"`
	Limit   Limit             `json:"limit_s"` // wall time
	// Upper is what the run takes at most at the setting, by prediction; 0:
	// not known.
	Upper    time.Duration `json:"upper_ns"`
	Learning bool          `json:"learning,omitempty"` // sampled ten times as often
	// Adapt is how its core clock is stepped while it lasts, beginning with that
	// of the setting; nil: not at all. Upper is then a bound at all of its levels.
	Adapt *Adaptation `json:"adapt,omitempty"`
	// Shared tells that others may be on its GPUs, as Slurm gave it parts of them.
	Shared bool `json:"shared,omitempty"`
	// Unset is why nothing was decided for it that could be set; zero: something was, or nothing was to be.
	Unset NotLocked `json:"unset,omitzero"`
	// Missed tells that the agent wasn't there for the beginning, as its GPUs weren't opened yet.
	Missed bool `json:"-"`
	// HookDeadline is when the hook that waits for the run's clocks gives up; zero:
	// never.
	HookDeadline time.Time `json:"-"`
}

// Wish is what the user of a job asked for.
type Wish struct {
	RunWish
	OwnFreq  bool      `json:"own_freq,omitempty"` // --gpu-freq
	Deadline time.Time `json:"deadline,omitzero"`
	Warnings []string  `json:"warnings,omitempty"`
}

// RunWish is what a run's agent heeds of it.
type RunWish struct {
	OptOut bool `json:"opt_out,omitempty"` // default clocks
	Fixed  bool `json:"fixed,omitempty"`   // clocks of the user's choice, whom the guard leaves to it
}
