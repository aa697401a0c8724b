package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// ErrRun tells that the run itself is impossible: nothing was opened.
var ErrRun = errors.New("not a run")

// runSchema is the version of the runs' files. Those of version 1 are read, too.
const runSchema = 2

// runFile is a run's file.
type runFile struct {
	Schema   int     `json:"schema"`
	Run      fileRun `json:"run"`
	HandsOff string  `json:"hands_off,omitempty"`
	// Counters are nil where the GPUs have none.
	Counters *counters `json:"counters,omitempty"`
	Outcome  *Outcome  `json:"outcome,omitempty"` // once it ended
}

// counters are the GPUs' energy counters at a run's start, by UUID. They go on while
// there is no agent, but not over a boot or a reload of the driver.
type counters struct {
	Boot   string                     `json:"boot_id"`
	Driver string                     `json:"driver"`
	Energy map[string]dvfsmodel.Joule `json:"energy_j"`
}

// fileRun is a run as its file has it: times are in nanoseconds.
type fileRun struct{ live.Run }

// fileAdaptation is a run's adaptation as its file has it.
type fileAdaptation struct {
	SLA    float64           `json:"sla"`
	Tau    time.Duration     `json:"tau_ns"`
	Writes int               `json:"writes_per_minute"`
	Levels []live.AdaptLevel `json:"levels"`
}

// fileFields are a run's fields; Adapt takes the place of the run's own.
type fileFields struct {
	*live.Run
	Adapt *fileAdaptation `json:"adapt,omitempty"`
}

// MarshalJSON is the run in its file.
func (r fileRun) MarshalJSON() ([]byte, error) {
	fields := fileFields{Run: &r.Run}
	if a := r.Adapt; a != nil {
		fields.Adapt = &fileAdaptation{a.SLA, a.Tau(), a.Writes, a.Levels}
	}
	return json.Marshal(fields)
}

// UnmarshalJSON reads the run in its file.
func (r *fileRun) UnmarshalJSON(text []byte) error {
	fields := fileFields{Run: &r.Run}
	if err := decodeStrict(text, &fields); err != nil {
		return err
	}
	if a := fields.Adapt; a != nil {
		r.Adapt = &live.Adaptation{SLA: a.SLA, TauS: a.Tau.Seconds(), Writes: a.Writes, Levels: a.Levels}
	}
	return nil
}

// decodeRun reads a run's file.
func decodeRun(id string, data []byte) (*runFile, error) {
	r, err := readRun(data)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w: %w", id, errForeign, err)
	}
	if r.Run.ID != id {
		return nil, fmt.Errorf("run %s: %w: run %q", id, errForeign, r.Run.ID)
	}
	if err := checkRun(&r.Run.Run); err != nil {
		return nil, fmt.Errorf("run %s: %w: %w", id, errForeign, err)
	}
	return r, nil
}

// readRun reads a run's file of any version.
func readRun(data []byte) (*runFile, error) {
	var version struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, err
	}
	switch version.Schema {
	case 1:
		var r runFile1
		if err := decodeStrict(data, &r); err != nil {
			return nil, err
		}
		return r.renewed()
	case runSchema:
		var r runFile
		return &r, decodeStrict(data, &r)
	}
	return nil, fmt.Errorf("schema %d, want 1 or %d", version.Schema, runSchema)
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
	case r.Limit < 0 || r.Upper < 0:
		return fmt.Errorf("%w: limit %s, upper bound %s", ErrRun, r.Limit, r.Upper)
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
		if !(control.Of(s) >= 0) {
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

// runFile1 is a run's file of version 1, in which each GPU has a series of its own.
type runFile1 struct {
	runFile
	Outcome *outcome1 `json:"outcome"`
}

// outcome1 is an outcome of version 1.
type outcome1 struct {
	Outcome
	GPUs []gpuOutcome1 `json:"gpus"`
}

// gpuOutcome1 is what version 1 said of a GPU.
type gpuOutcome1 struct {
	GPUOutcome
	Series struct {
		Step   float64   `json:"step_s"`
		Values []float64 `json:"values"` // -1 where nothing was measured
	} `json:"series"`
}

// renewed is the file in the present version: the series of its GPUs are laid over
// each other. It is an error where they are longer than a run's can be.
func (r *runFile1) renewed() (*runFile, error) {
	const longestStep = 365 * 24 * 3600 // seconds
	now := r.runFile
	now.Schema = runSchema
	if r.Outcome == nil {
		return &now, nil
	}
	outcome := r.Outcome.Outcome
	series := record.NewSampler(initialInterval)
	for i := range r.Outcome.GPUs {
		g := &r.Outcome.GPUs[i]
		outcome.GPUs = append(outcome.GPUs, g.GPUOutcome)
		if !(g.Series.Step >= 0 && g.Series.Step <= longestStep) || len(g.Series.Values) > record.MaxPoints {
			return nil, fmt.Errorf("a series of %d steps of %g s", len(g.Series.Values), g.Series.Step)
		}
		step := time.Duration(g.Series.Step * float64(time.Second))
		for k, value := range g.Series.Values {
			if value >= 0 {
				series.Add(time.Duration(k)*step, time.Duration(k+1)*step, value)
			}
		}
	}
	outcome.Series, now.Outcome = series.Series(), &outcome
	return &now, nil
}
