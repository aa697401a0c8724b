package control

import (
	"fmt"
	"math"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/slurm"
)

// ErrRequest tells that a request can't be answered as it is; trying again
// doesn't help.
var ErrRequest = epdapi.ErrRequest

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
	Default   dvfsmodel.Setting `json:"default"`
	Clocks    []ClockGroup      `json:"clocks"` // the device's table
	UID       uint32            `json:"uid"`
	User      slurm.Hex         `json:"user_hex,omitempty"`
	Partition slurm.Hex         `json:"partition_hex,omitempty"`
	Comment   slurm.Hex         `json:"comment_hex,omitempty"`
}

// ClockGroup is the core clocks that a memory clock supports.
type ClockGroup struct {
	Mem  dvfsmodel.MHz   `json:"mem_mhz"`
	Core []dvfsmodel.MHz `json:"core_mhz"`
}

// Bounds of what a request may name.
const (
	maxGPUs    = jobs.MaxGPUs
	maxClocks  = 20_000 // pairs
	maxMHz     = 20_000
	maxModel   = 200 // bytes of a GPU model's name
	maxRunID   = 100 // as in the names of an agent's files
	maxUserHex = 1024
)

// Validate says what is impossible about a request.
func (r *DecideRequest) Validate() error {
	switch {
	case r.Job == 0 || r.Job > math.MaxInt32:
		return fmt.Errorf("%w: job id %d", ErrRequest, r.Job)
	case slurm.ValidNode(r.Node) != nil:
		return fmt.Errorf("%w: %w", ErrRequest, slurm.ValidNode(r.Node))
	case r.GPUs < 0 || r.GPUs > maxGPUs:
		return fmt.Errorf("%w: %d GPUs, want 0 to %d", ErrRequest, r.GPUs, maxGPUs)
	case !isRunID(r.RunID):
		return fmt.Errorf("%w: run id %q, %s", ErrRequest, slurm.Printable(r.RunID, 40), wantRunID)
	case !isName(r.GPUModel, maxModel):
		return fmt.Errorf("%w: GPU model %s", ErrRequest, slurm.Printable(r.GPUModel, 40))
	case len(r.User) > maxUserHex || len(r.Partition) > maxUserHex || len(r.Comment) > slurm.MaxText:
		return fmt.Errorf("%w: a text is too long", ErrRequest)
	case !isClock(r.Default.Core, 0) || !isClock(r.Default.Mem, 0):
		return fmt.Errorf("%w: default clocks %v, %v MHz", ErrRequest, r.Default.Core, r.Default.Mem)
	}
	pairs := 0
	for _, g := range r.Clocks {
		pairs += len(g.Core)
		if !isClock(g.Mem, 1) || len(g.Core) == 0 || pairs > maxClocks {
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

func isClock(f, least dvfsmodel.MHz) bool { return f >= least && f <= maxMHz }

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

// isName reports whether a text is printable and at most so long.
func isName(text string, most int) bool {
	return len(text) <= most && slurm.Printable(text, most+1) == text
}
