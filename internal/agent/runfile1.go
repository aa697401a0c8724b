package agent

import (
	"fmt"
	"time"

	"github.com/epplan/epplan/internal/store/record"
)

// runFile1 is a run's file of version 1, in which each GPU has a series of its own.
type runFile1 struct {
	runFile2
	Outcome *outcome1 `json:"outcome"`
}

// outcome1 is an outcome of version 1.
type outcome1 struct {
	Outcome
	GPUs []gpuOutcome1 `json:"gpus"`
}

// gpuOutcome1 is what version 1 said of a GPU.
type gpuOutcome1 struct {
	gpuOutcome2
	Series struct {
		Step   float64   `json:"step_s"`
		Values []float64 `json:"values"` // -1 where nothing was measured
	} `json:"series"`
}

// renewed is the file in the present version: the series of its GPUs are laid over
// each other. It is an error where they are longer than a run's can be.
func (r *runFile1) renewed() (*runFile, error) {
	const longestStep = 365 * 24 * 3600 // seconds
	now, err := r.runFile2.renewed()
	if err != nil || r.Outcome == nil {
		return now, err
	}
	outcome := r.Outcome.Outcome
	series := record.NewSampler(initialInterval)
	for i := range r.Outcome.GPUs {
		g := &r.Outcome.GPUs[i]
		outcome.GPUs = append(outcome.GPUs, g.renewed())
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
	return now, nil
}
