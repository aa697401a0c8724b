package agent

import (
	"fmt"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// readOld reads a run's file of an older version.
func readOld[F any, O interface {
	*F
	renewed() (*runFile, error)
}](data []byte) (*runFile, error) {
	old := O(new(F))
	if err := decodeStrict(data, old); err != nil {
		return nil, err
	}
	return old.renewed()
}

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

// runFile2 is a run's file of version 2, which has times under keys and in units of its
// own, and in which no limit is a limit of 0.
type runFile2 struct {
	runFile
	Run     run2      `json:"run"`
	Outcome *outcome2 `json:"outcome"`
}

// run2 is a run of version 2.
type run2 struct {
	live.Run
	Limit time.Duration `json:"limit_ns"`
	Adapt *struct {
		SLA    float64           `json:"sla"`
		Tau    time.Duration     `json:"tau_ns"`
		Writes int               `json:"writes_per_minute"`
		Levels []live.AdaptLevel `json:"levels"`
	} `json:"adapt"`
}

// outcome2 is an outcome of version 2.
type outcome2 struct {
	Outcome
	GPUs []gpuOutcome2 `json:"gpus"`
}

// gpuOutcome2 is what version 2 said of a GPU.
type gpuOutcome2 struct {
	GPUOutcome
	Clocks []struct {
		dvfsmodel.Setting
		Seconds float64 `json:"time_s"`
	} `json:"clocks"`
}

// renewed is the file in the present version.
func (r *runFile2) renewed() (*runFile, error) {
	if r.Run.Limit < 0 {
		return nil, fmt.Errorf("a limit of %s", r.Run.Limit)
	}
	now := r.runFile
	now.Schema, now.Run = runSchema, r.Run.renewed()
	if o := r.Outcome; o != nil {
		now.Outcome = &o.Outcome
		for i := range o.GPUs {
			now.Outcome.GPUs = append(now.Outcome.GPUs, o.GPUs[i].renewed())
		}
	}
	return &now, nil
}

func (r *run2) renewed() live.Run {
	now := r.Run
	if r.Limit > 0 {
		now.Limit = live.LimitOf(r.Limit)
	}
	if a := r.Adapt; a != nil {
		now.Adapt = &live.Adaptation{SLA: a.SLA, TauS: a.Tau.Seconds(), Writes: a.Writes, Levels: a.Levels}
	}
	return now
}

func (g *gpuOutcome2) renewed() GPUOutcome {
	now := g.GPUOutcome
	for _, at := range g.Clocks {
		now.Clocks = append(now.Clocks, live.Residency(at))
	}
	return now
}
