package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/epplan/epplan/internal/store/record"
)

// runSchema is the version of the runs' files. Those of version 1 are read,
// too: in them each GPU has a series of its own.
const runSchema = 2

// runFile is a run's file.
type runFile struct {
	Schema   int    `json:"schema"`
	Run      Run    `json:"run"`
	HandsOff string `json:"hands_off,omitempty"`
	// Counters are nil where the GPUs have none.
	Counters *counters `json:"counters,omitempty"`
	Outcome  *Outcome  `json:"outcome,omitempty"` // once it ended
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
	if err := r.Run.check(); err != nil {
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
		if err := strictly(data, &r); err != nil {
			return nil, err
		}
		return r.renewed()
	case runSchema:
		var r runFile
		return &r, strictly(data, &r)
	}
	return nil, fmt.Errorf("schema %d, want 1 or %d", version.Schema, runSchema)
}

// strictly reads one JSON value that has no fields but those of into.
func strictly(data []byte, into any) error {
	in := json.NewDecoder(bytes.NewReader(data))
	in.DisallowUnknownFields()
	if err := in.Decode(into); err != nil {
		return err
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more follows")
	}
	return nil
}

// runFile1 is a run's file of version 1.
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
	series := record.NewSampler(firstStep)
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
