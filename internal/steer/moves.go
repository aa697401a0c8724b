package steer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
)

// leverChange is one change, or one taken back.
type leverChange struct {
	key  leverKey
	undo bool       // it is taken back
	from string     // the value that is there, of a change
	want lever.Undo // of a change
}

// changesFor returns what must be done to get from the entries to the wants: first what is
// taken back, then what is set. The report counts what has to wait.
func (s *Steerer) changesFor(x *snapshotIndex, wants []WantedChange) ([]leverChange, StepReport) {
	var list []leverChange
	var report StepReport
	wanted := make(map[leverKey]bool, len(wants))
	for i := range wants {
		wanted[leverKeyOf(&wants[i].Undo)] = true
	}
	for _, k := range s.ledger.keys() {
		e := s.ledger.entries[k]
		if wanted[k] || e.Phase == phaseTakenOver || e.Phase == phaseUndone || e.over {
			continue
		}
		if e.Phase == phaseIntended || !x.canUndo(k) {
			report.Waiting++
			if j := x.jobs[k.job]; j != nil && j.State.Base != slurm.Pending {
				report.Running++
			}
			continue
		}
		list = append(list, leverChange{key: k, undo: true})
	}
	for i := range wants {
		u := wants[i].Undo
		k := leverKeyOf(&u)
		if from, ok := s.startValue(k, &u); ok && s.failures[k] < maxFailures {
			list = append(list, leverChange{key: k, want: u, from: from})
		}
	}
	return list, report
}

// startValue returns what a wanted value is set from; not ok: nothing is to be done.
func (s *Steerer) startValue(k leverKey, u *lever.Undo) (from string, ok bool) {
	e := s.ledger.entries[k]
	switch {
	case e == nil, e.Phase == phaseUndone:
		return u.Before, true
	case e.Phase == phaseTakenOver, e.Phase == phaseIntended:
		return "", false
	case e.After == u.After:
		if e.Phase == phaseUndoing {
			e.Phase, s.ledger.dirty = phaseInForce, true
		}
		return "", false
	}
	return e.After, true
}

// canUndo reports whether a value can be taken back now.
func (x *snapshotIndex) canUndo(k leverKey) bool {
	switch k.lever {
	case lever.Nice, lever.Prefer, lever.Begin:
		j := x.jobs[k.job]
		return j != nil && j.State.Base == slurm.Pending && !j.Held()
	case lever.Power:
		n := x.nodes[k.node]
		return n != nil && n.State.IsPoweredDown() && !n.State.Is("POWERING_DOWN")
	case lever.Weight:
		return x.nodes[k.node] != nil
	}
	return false
}

// recordIntents writes down what is about to be done.
func (s *Steerer) recordIntents(moves []leverChange) error {
	for i := range moves {
		m := &moves[i]
		e := s.ledger.entries[m.key]
		if m.undo {
			e.Phase = phaseUndoing
			continue
		}
		if e == nil {
			e = &ledgerEntry{Undo: m.want}
			s.ledger.entries[m.key] = e
		}
		e.Before = m.want.Before
		e.setTarget(m.from, m.want.After)
	}
	if len(moves) > 0 {
		s.ledger.dirty = true
	}
	return s.ledger.save()
}

// applyChanges does what was written down. It ends early only when Slurm doesn't
// answer: then what is left stays written down, and the next snapshot tells.
func (s *Steerer) applyChanges(ctx context.Context, moves []leverChange, report *StepReport) error {
	for i := range moves {
		m := &moves[i]
		e := s.ledger.entries[m.key]
		var err error
		if m.undo {
			err = s.options.Levers.Undo(ctx, e.Undo)
		} else {
			err = s.options.Levers.Change(ctx, m.from, e.Undo)
		}
		e.At = s.options.Clock()
		s.ledger.dirty = true
		switch {
		case err == nil:
			s.noteApplied(m, e, report)
		case ctx.Err() != nil || errors.Is(err, slurm.ErrUnreachable):
			report.More += len(moves) - i
			return err
		case errors.Is(err, lever.ErrChanged), errors.Is(err, lever.ErrHeld),
			errors.Is(err, slurm.ErrNotPending), errors.Is(err, slurm.ErrNotFound):
			// It changed since the snapshot: the next one tells what to do.
		default:
			report.Failed++
			if s.failures[m.key]++; s.failures[m.key] <= maxFailures {
				s.log.Warn("a lever can't be moved", "lever", m.key.String(), "tries", s.failures[m.key],
					"error", err)
			}
		}
	}
	return nil
}

// noteApplied notes a move that was made.
func (s *Steerer) noteApplied(m *leverChange, e *ledgerEntry, report *StepReport) {
	delete(s.failures, m.key)
	if !m.undo {
		report.Set++
		e.Phase, e.Was = phaseInForce, ""
		s.log.Debug("a lever was moved", "lever", m.key.String(), "from", m.from, "to", e.After)
		return
	}
	report.Undone++
	s.closeEntry(m.key, e)
	s.log.Debug("a lever was moved back", "lever", m.key.String(), "to", e.Before)
}

// isNewPowerDown reports whether a want is that a node be powered down which isn't yet.
func (w *WantedChange) isNewPowerDown(o *OwnChanges) bool {
	return w.Lever == lever.Power && !o.Asleep[w.Node]
}

func (p *Plan) needsPowerSaving(o *OwnChanges) bool {
	return slices.ContainsFunc(p.Wants, func(w WantedChange) bool { return w.isNewPowerDown(o) }) ||
		slices.ContainsFunc(p.Advice, func(a Advice) bool { return a.Kind == KindSleep })
}

// dropPowerChanges leaves out what needs power saving, and says why. Nodes that sleep
// already may go on.
func (p *Plan) dropPowerChanges(o *OwnChanges, why string) {
	p.Wants = slices.DeleteFunc(p.Wants, func(w WantedChange) bool { return w.isNewPowerDown(o) })
	p.Advice = slices.DeleteFunc(p.Advice, func(a Advice) bool { return a.Kind == KindSleep })
	p.Notes = append(p.Notes, why)
}

// Bounds of a status: how many jobs and notes it lists, and how many characters of
// trouble it tells.
const (
	maxListed      = 100
	maxTroubleText = 400
)

func (s *Steerer) publish(plan *Plan, report StepReport, err error) {
	st := Status{
		At: s.options.Clock(), Paused: s.paused, Left: []slurm.JobID{}, Advice: []Advice{}, Notes: []string{},
	}
	st.Wakes, st.WakeS = s.naps.wakeCount, s.naps.longestWake
	for _, k := range s.ledger.keys() {
		switch e := s.ledger.entries[k]; {
		case e.Phase == phaseUndone, e.over:
		case e.Phase == phaseTakenOver && k.job != 0:
			if len(st.Left) < maxListed && !slices.Contains(st.Left, k.job) {
				st.Left = append(st.Left, k.job)
			}
		case e.Phase == phaseTakenOver:
			st.Notes = append(st.Notes, k.String()+" was moved by someone else and is left alone")
		case k.lever == lever.Nice:
			st.Nice++
		case k.lever == lever.Prefer:
			st.Prefer++
		case k.lever == lever.Begin:
			st.Begin++
		case k.lever == lever.Weight:
			st.Weights++
		case k.lever == lever.Power:
			st.Asleep++
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(s.failures), leverKey.compare) {
		if n := s.failures[k]; n >= maxFailures {
			st.Notes = append(st.Notes, k.String()+" can't be moved: tried "+strconv.Itoa(n)+" times")
		}
	}
	if plan != nil {
		st.Advice, st.More = append(st.Advice, plan.Advice...), plan.More
		st.Notes = append(st.Notes, plan.Notes...)
		st.Policy, st.Order = plan.Policy, plan.Order[:min(len(plan.Order), maxListed)]
		st.Shared = truncateOrder(plan.Shared)
	}
	st.Notes = st.Notes[:min(len(st.Notes), maxListed)]
	if err != nil {
		st.Trouble = slurm.Printable(err.Error(), maxTroubleText)
	}
	s.shown.Lock()
	defer s.shown.Unlock()
	st.Set = s.status.Set + int64(report.Set)
	st.Undone = s.status.Undone + int64(report.Undone)
	st.Failed = s.status.Failed + int64(report.Failed)
	if plan == nil { // what was found last still stands
		st.Advice, st.More = append(st.Advice, s.status.Advice...), s.status.More
		st.Policy, st.Order = s.status.Policy, s.status.Order
	}
	s.status = st
	if plan != nil {
		s.lines = plan.lines
		if s.options.Hours != nil {
			s.options.Hours.SetRooms(plan.rooms)
		}
	}
}

// Status returns how it fares. It asks nobody, and so always answers at once.
func (s *Steerer) Status() Status {
	s.shown.Lock()
	defer s.shown.Unlock()
	st := s.status
	st.Left, st.Advice, st.Notes = slices.Clone(st.Left), slices.Clone(st.Advice), slices.Clone(st.Notes)
	st.Order = slices.Clone(st.Order)
	return st
}
