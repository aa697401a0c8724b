package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/statedir"
)

// ErrRun tells that the run itself is impossible: nothing was opened.
var ErrRun = errors.New("not a run")

// runSchema is the version of the runs' files.
const runSchema = 3

// runFile is a run's file.
type runFile struct {
	Schema   int      `json:"schema"`
	Run      live.Run `json:"run"`
	HandsOff string   `json:"hands_off,omitempty"`
	// Kind is that of HandsOff.
	Kind live.NotLockedKind `json:"hands_off_kind,omitempty"`
	// Counters are nil where the GPUs have none.
	Counters *counters       `json:"counters,omitempty"`
	Reason   string          `json:"reason,omitempty"`  // why it was closed
	Outcome  *record.Outcome `json:"outcome,omitempty"` // once it was
}

// counters are the GPUs' energy counters at a run's start, by UUID. They go on while
// there is no agent, but not over a boot or a reload of the driver.
type counters struct {
	Boot   string                     `json:"boot_id"`
	Driver string                     `json:"driver"`
	Energy map[string]dvfsmodel.Joule `json:"energy_j"`
}

// decodeRun reads a run's file. Fields that aren't known are passed over. Its error is
// statedir.ErrForeign, or statedir.ErrNewer.
func decodeRun(id string, data []byte) (*runFile, error) {
	r, err := readRun(data)
	if errors.Is(err, statedir.ErrNewer) {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: %w: %w", id, statedir.ErrForeign, err)
	}
	if r.Run.ID != id {
		return nil, fmt.Errorf("run %s: %w: run %q", id, statedir.ErrForeign, r.Run.ID)
	}
	if err := checkRun(&r.Run); err != nil {
		return nil, fmt.Errorf("run %s: %w: %w", id, statedir.ErrForeign, err)
	}
	return r, nil
}

// readRun reads a run's file.
func readRun(data []byte) (*runFile, error) {
	var version struct {
		Schema int `json:"schema"`
	}
	err := json.Unmarshal(data, &version)
	switch {
	case err != nil:
		return nil, err
	case version.Schema > runSchema:
		return nil, fmt.Errorf("%w: schema %d, want %d", statedir.ErrNewer, version.Schema, runSchema)
	case version.Schema < runSchema:
		return nil, fmt.Errorf("schema %d, want %d", version.Schema, runSchema)
	}
	var r runFile
	return &r, decodeJSON(data, &r)
}

// checkRun says what is impossible about a run.
func checkRun(r *live.Run) error {
	switch {
	case !isFileName(r.ID):
		return fmt.Errorf("%w: id %q", ErrRun, r.ID)
	case r.Job == 0:
		return fmt.Errorf("%w: no job", ErrRun)
	case !isSetting(r.Setting):
		return fmt.Errorf("%w: clocks %v", ErrRun, r.Setting)
	case r.Upper < 0:
		return fmt.Errorf("%w: upper bound %s", ErrRun, r.Upper)
	case len(r.GPUs) > maxGPUs || slices.ContainsFunc(r.GPUs, func(uuid string) bool {
		return len(uuid) > maxUUID
	}):
		return fmt.Errorf("%w: GPUs", ErrRun)
	}
	if r.Started.IsZero() {
		r.Started = time.Now()
	}
	return nil
}

// isSetting reports whether a setting has a value or none of each control.
func isSetting(s dvfsmodel.Setting) bool {
	for control := range gpu.NumControls {
		if !(control.ValueIn(s) >= 0) {
			return false
		}
	}
	return true
}

// Bounds of what a run may name.
const (
	maxGPUs = 128
	maxUUID = 200
)
