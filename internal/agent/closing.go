package agent

import (
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/live"
)

// runEnd is how a run comes to its end.
type runEnd struct {
	reason string
	at     time.Time // when the job ended; zero: now
	late   bool      // it ended some time before, nobody knows when
}

// By how much readings may reach beyond a run's end and still count as the run's:
// Slurm's times are whole seconds of another clock. Where nobody can tell the later
// ones apart any more, it is the larger of the two.
const (
	maxBeyond  = 2 * time.Second
	beyondPart = 0.02 // of the run
)

// outcome is what was measured of a run that ends now, or ended before. Readings of
// after its end don't count: they may be of others. Where that is too long ago to
// tell them apart, and they reach far beyond it, nothing that was measured counts.
// The caller holds the agent's mu.
func (r *openRun) outcome(how runEnd, now time.Time) Outcome {
	at := how.at
	if at.IsZero() || at.After(now) {
		at = now
	}
	if at.Before(r.Started) {
		at, how.late = r.Started, true
	}
	lasted := at.Sub(r.Started)
	slack := max(maxBeyond, time.Duration(beyondPart*float64(lasted)))
	sampler := r.sampler.upTo(at, slack)
	if sampler == nil {
		sampler = newSampler(r.Run)
	}
	sampler.outcome.Partial = r.sampler.outcome.Partial || how.late
	out := sampler.Close(at)
	out.Reason = how.reason
	if out.Partial && !how.late {
		out.Lasted = lasted.Seconds()
		sampler.addCounters(&out, at.Add(-slack))
	}
	if r.stepper != nil {
		out.Lowest, out.Slowdown = r.steppedTo((*clockStepper).lowest), r.stepper.slowdown()
		if _, believed := sampler.SoFar(); believed && sampler == r.sampler {
			out.Stays = r.residency.residencies()
		}
	}
	return out
}

// upTo is what the sampler knows of the time up to a run's end, without what was read
// later; nil where that is too long ago, and more than slack of it may be others'.
func (s *Sampler) upTo(end time.Time, slack time.Duration) *Sampler {
	if !s.seenAfter(end.Add(maxBeyond)) {
		return s
	}
	then := s.recent.samplerAt(end)
	if then == nil && !s.seenAfter(end.Add(slack)) {
		return s
	}
	return then
}

// seenAfter reports whether a reading is of later than a time.
func (s *Sampler) seenAfter(at time.Time) bool {
	for _, t := range s.gpus {
		if t.last.After(at) {
			return true
		}
	}
	return false
}

// counters are the GPUs' energy counters at a run's start, by UUID. They go on while
// there is no agent, but not over a boot or a reload of the driver.
type counters struct {
	Boot   string                     `json:"boot_id"`
	Driver string                     `json:"driver"`
	Energy map[string]dvfsmodel.Joule `json:"energy_j"`
}

// readCounters reads the counters of a run's GPUs, side by side; nil where none is
// known.
func (a *Agent) readCounters(run *live.Run) *counters {
	cards := a.gpus.some(run.GPUs)
	readings := make([]dvfsmodel.Joule, len(cards))
	var group errgroup.Group
	group.SetLimit(a.maxParallel)
	for i, c := range cards {
		readings[i] = -1
		group.Go(func() error {
			if r, err := call(c, gpu.Device.Read); err == nil && gpu.Measured(r.Energy) {
				readings[i] = r.Energy
			}
			return nil
		})
	}
	_ = group.Wait() // what fails isn't known
	out := &counters{Boot: a.options.Boot, Driver: a.options.Driver, Energy: make(map[string]dvfsmodel.Joule)}
	for i, c := range cards {
		if readings[i] >= 0 {
			out.Energy[c.uuid] = readings[i]
		}
	}
	if len(out.Energy) == 0 {
		return nil
	}
	return out
}

// countersOf are the counters at the start of a run that was open when the agent
// started; nil where they began anew since.
func (a *Agent) countersOf(r *runFile) map[string]dvfsmodel.Joule {
	if c := r.Counters; c != nil && c.Boot == a.options.Boot && c.Driver == a.options.Driver {
		return c.Energy
	}
	return nil
}

// setStartCounters tells the sampler the GPUs' counters at the run's start.
func (s *Sampler) setStartCounters(energy map[string]dvfsmodel.Joule) {
	if s.recent != nil {
		s.recent.past.setStartCounters(energy)
	}
	for uuid, joules := range energy {
		if t, ok := s.gpus[uuid]; ok {
			t.first = joules
		}
	}
}

// addCounters fills in what the counters say of the whole run, where they are to be
// believed and were read after end.
func (s *Sampler) addCounters(out *Outcome, end time.Time) {
	for i := range out.GPUs {
		g := &out.GPUs[i]
		t := s.gpus[g.UUID]
		counted := g.Resets == 0 &&
			(g.EnergyFrom == gpu.FromCounter || g.Samples == 1 && gpu.Measured(t.count))
		if counted && t.first >= 0 && t.last.After(end) && t.count > t.first {
			g.Spanned = t.count - t.first
		}
	}
}
