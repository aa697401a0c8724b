package agent

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/live"
)

// SettleOneByOne makes the order of an agent's steps certain.
func (a *Agent) SettleOneByOne() { a.gpus.maxParallel = 1 }

// AtRisk returns the guard's rule.
func AtRisk(run *live.Run, elapsed, margin time.Duration) string {
	return riskReason(run, elapsed, margin)
}

// AdaptAt looks at the runs whose clocks are adapted as if it were a certain time.
func (a *Agent) AdaptAt(ctx context.Context, now time.Time) error {
	return a.adapter.adapt(ctx, func() time.Time { return now })
}

// Sample reads every GPU that has a run, once, and acts on what it finds, as [Agent.Watch] does all the time.
func (a *Agent) Sample(ctx context.Context) error {
	busy := slices.DeleteFunc(a.gpus.all(), func(c *managedGPU) bool { return !a.runs.isOpenOn(c) })
	return errors.Join(a.poller.revertAtRisk(ctx, a.poller.sample(busy)), a.poller.meterHostReporting())
}

// HostParts returns the parts of the node that open runs have, by run.
func (a *Agent) HostParts() map[string]float64 {
	a.runs.mu.Lock()
	defer a.runs.mu.Unlock()
	parts := make(map[string]float64)
	for r, part := range a.runs.hostParts() {
		parts[r.ID] = part
	}
	return parts
}

// Until returns the sampler as it was at a time, once; nil where that is too long ago.
func (s *Sampler) Until(end time.Time) *Sampler { return s.recent.samplerAt(end) }

// Remembered returns how much the sampler remembers one by one.
func (s *Sampler) Remembered() int { return len(s.recent.memos) }

// MarkPartial notes that the agent wasn't there for all of the run.
func (s *Sampler) MarkPartial() { s.partial = true }

// GPUFigures are what a sampler saw of one GPU.
type GPUFigures struct {
	gpu.Energy
	Samples int
	Covered float64 // seconds between the first and the last sample
}

// Figures returns what the sampler saw of each GPU.
func (s *Sampler) Figures() (all []GPUFigures) {
	for _, uuid := range slices.Sorted(maps.Keys(s.gpus)) {
		t := s.gpus[uuid]
		all = append(all, GPUFigures{t.energy.Sum(), t.samples, t.covered})
	}
	return all
}

// Figures returns what was seen of each GPU of a run that is open, or was closed since the start.
func (a *Agent) Figures(run string) []GPUFigures {
	a.runs.mu.Lock()
	defer a.runs.mu.Unlock()
	return a.runs.byID[run].sampler.Figures()
}

// Spanned returns what counters say of a run that had these at its start.
func (s *Sampler) Spanned(first map[string]dvfsmodel.Joule, end time.Time) live.Number {
	s.setStartCounters(first)
	return s.spannedEnergy(end)
}

// HostEnergy returns a closed run's part of what its node used beside its GPUs, which isn't told of runs
// that share one; -1: not known.
func (a *Agent) HostEnergy(run string) float64 {
	a.runs.mu.Lock()
	defer a.runs.mu.Unlock()
	r := a.runs.byID[run]
	return float64(r.sampler.hostShare(r.file.Outcome.Ended.Sub(r.Started).Seconds()))
}
