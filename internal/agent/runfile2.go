package agent

import (
	"fmt"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
)

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
