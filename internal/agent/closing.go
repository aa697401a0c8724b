package agent

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// runEnd is how a run comes to its end.
type runEnd struct {
	reason string
	at     time.Time // when the job ended; zero: now
	late   bool      // it ended some time before, nobody knows when
}

// JobEnded is the reason of a [ClosedRun] that an Epilog closed, by [Agent.End].
const JobEnded = "its job ended"

// By how much readings may reach beyond a run's end and still count as the run's:
// Slurm's times are whole seconds of another clock. Where nobody can tell the later
// ones apart any more, it is the larger of the two.
const (
	maxBeyond  = 2 * time.Second
	beyondPart = 0.02 // of the run
)

// outcome returns what was measured of a run that ends now, or ended before. Readings of
// after its end don't count: they may be of others. Where that is too long ago to
// tell them apart, and they reach far beyond it, nothing that was measured counts.
// If the machine's clock was set meanwhile, another clock's time can't be placed in
// the run, and its start is told by the clock as it is at its end. The caller holds
// the set's mu.
func (r *openRun) outcome(how runEnd, now time.Time) record.Outcome {
	at := how.at
	switch {
	case at.IsZero() || at.After(now):
		at = now
	case clockWasSet(r.Started, now):
		at, how.late = now, true
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
	sampler.partial = r.sampler.partial || how.late
	out := sampler.Close(at)
	out.Started, out.Notes = at.Add(-lasted), r.notes
	if sampler.partial && !how.late && lasted > 0 {
		out.Restarted.TimeS = live.Known(lasted.Seconds())
		out.Restarted.GPUEnergyJ = sampler.spannedEnergy(at.Add(-slack))
	}
	out.NotLocked = r.file.notLockedReason(out.Shared)
	if r.file.HandsOff == "" && out.NotLocked == (live.NotLocked{}) {
		out.Setting = r.file.Run.Setting
	}
	if r.stepper != nil {
		lowest := lock{Setting: r.steppedTo((*clockStepper).lowest)}.without(r.refused).Setting
		if out.Setting != (dvfsmodel.Setting{}) && lowest != (dvfsmodel.Setting{}) {
			out.Setting, out.Slowdown = lowest, live.Known(r.stepper.slowdown())
		}
		if _, believed := sampler.SoFar(); believed && sampler == r.sampler {
			out.Stays = r.residency.residencies()
		}
	}
	out.DropShared()
	return out
}

// clockWasSet reports whether the machine's clock was set between two times of this process, by more than
// it may differ from Slurm's.
func clockWasSet(from, to time.Time) bool {
	return (to.Round(0).Sub(from.Round(0)) - to.Sub(from)).Abs() > maxBeyond
}

// upTo returns what the sampler knows of the time up to a run's end, without what was read
// later; nil where that is too long ago, and more than slack of it may be others'.
func (s *Sampler) upTo(end time.Time, slack time.Duration) *Sampler {
	if !s.hasReadingAfter(end.Add(maxBeyond)) {
		return s
	}
	then := s.recent.samplerAt(end)
	if then == nil && !s.hasReadingAfter(end.Add(slack)) {
		return s
	}
	return then
}

// hasReadingAfter reports whether a reading is of later than a time.
func (s *Sampler) hasReadingAfter(at time.Time) bool {
	for _, t := range s.gpus {
		if t.last.After(at) {
			return true
		}
	}
	return false
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

// ClosedRun is a run that ended.
type ClosedRun struct {
	Run      live.Run
	HandsOff string // why its GPUs were at default clocks at the end
	Reason   string // why it was closed
	Outcome  record.Outcome
}

// close notes that an open run ended, with what it came to.
func (s *RunSet) close(id string, how runEnd) (runFile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.byID[id]
	if !ok || r.ended {
		return runFile{}, fmt.Errorf("run %s: %w", id, ErrNoRun)
	}
	r.ended = true
	r.file.HandsOff, r.file.Kind, r.file.Run.Setting = r.handsOff, r.kind, r.acceptedSetting()
	r.settle(how, time.Now())
	return r.file, nil
}

// settle puts what the run came to into its file. The caller holds the set's mu.
func (r *openRun) settle(how runEnd, now time.Time) {
	outcome := r.outcome(how, now)
	r.file.Reason, r.file.Outcome, r.file.Run.Started = how.reason, &outcome, outcome.Started
}

// EndedAt corrects the end of a run that [Agent.End] closed, once: its job had ended some time before, as
// Slurm's clock has it, to the second. Only what was measured up to then counts. Within two seconds what was
// measured here is finer and stands, as it does where at is zero, or can't be, or the machine's clock was
// set. It returns the run as it is now; the error says that it couldn't be written down.
func (s *RunSet) EndedAt(id string, at time.Time) (ClosedRun, error) {
	s.mu.Lock()
	r, ok := s.byID[id]
	if !ok || r.file.Outcome == nil {
		s.mu.Unlock()
		return ClosedRun{}, fmt.Errorf("run %s: %w", id, ErrNoRun)
	}
	was := r.file.Outcome
	stands := r.sampler == nil || !at.After(r.Started) || was.Ended.Sub(at) <= maxBeyond ||
		clockWasSet(r.Started, was.Ended)
	if !stands {
		r.settle(runEnd{reason: r.file.Reason, at: at}, was.Ended)
		r.kept = false
	}
	r.sampler = nil // nothing is asked of it any more
	rec := r.file
	s.mu.Unlock()
	if stands {
		return closedRunOf(&rec), nil
	}
	return closedRunOf(&rec), s.keepEnd(id)
}

// keepEnd writes an ended run's file as the run is now, unless it was forgotten meanwhile.
func (s *RunSet) keepEnd(id string) error {
	s.fileMu.Lock()
	defer s.fileMu.Unlock()
	s.mu.Lock()
	r, ok := s.byID[id]
	if !ok {
		s.mu.Unlock()
		return nil
	}
	rec := r.file
	r.kept = true // unless it is corrected while it is written
	s.mu.Unlock()
	err := s.write(&rec)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		r.kept = false
	}
	return err
}

// closedRunOf returns an ended run as its file has it.
func closedRunOf(r *runFile) ClosedRun {
	return ClosedRun{Run: r.Run, HandsOff: r.HandsOff, Reason: r.Reason, Outcome: *r.Outcome}
}

// Ended returns the runs that ended and aren't forgotten, in the order of their
// ids.
func (s *RunSet) Ended() []ClosedRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []ClosedRun
	for _, id := range slices.Sorted(maps.Keys(s.byID)) {
		if r := s.byID[id]; r.ended {
			list = append(list, closedRunOf(&r.file))
		}
	}
	return list
}

// Forget removes an ended run's file, once its outcome is safe elsewhere.
func (s *RunSet) Forget(id string) error {
	s.fileMu.Lock()
	defer s.fileMu.Unlock()
	s.mu.Lock()
	r, ok := s.byID[id]
	ended := ok && r.ended
	s.mu.Unlock()
	if !ended {
		return fmt.Errorf("forget run %s: %w", id, ErrNoRun)
	}
	if err := retireFile(s.folder, id); err != nil {
		return fmt.Errorf("forget run %s: %w", id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
	return nil
}

// retryWrites writes down runs, and ends of runs, that couldn't be before.
func (s *RunSet) retryWrites() error {
	s.mu.Lock()
	var open, ended []string
	for id, r := range s.byID {
		switch {
		case r.ended && !r.kept:
			ended = append(ended, id)
		case !r.ended && r.unwritten:
			open = append(open, id)
		}
	}
	s.mu.Unlock()
	errs := make([]error, 0, len(open)+len(ended))
	for _, id := range open {
		errs = append(errs, s.keepOpen(id))
	}
	for _, id := range ended {
		errs = append(errs, s.keepEnd(id))
	}
	return errors.Join(errs...)
}

// keepOpen writes an open run's file that couldn't be written when the run began, unless it ended
// meanwhile.
func (s *RunSet) keepOpen(id string) error {
	s.fileMu.Lock() // an end is written after it
	defer s.fileMu.Unlock()
	s.mu.Lock()
	r, ok := s.byID[id]
	if !ok || r.ended {
		s.mu.Unlock()
		return nil
	}
	rec := r.file
	s.mu.Unlock()
	err := s.write(&rec)
	s.mu.Lock()
	defer s.mu.Unlock()
	r.unwritten = err != nil
	return err
}
