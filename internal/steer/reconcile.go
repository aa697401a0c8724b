package steer

import (
	"context"
	"maps"
	"strconv"
	"time"

	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
)

type snapshotIndex struct {
	snap   *Snapshot
	jobs   map[slurm.JobID]*slurm.Job // that haven't ended
	ended  map[slurm.JobID]bool       // that Slurm still lists: they may be requeued
	arrays map[slurm.JobID]bool       // that have tasks which haven't ended
	nodes  map[string]*slurm.Node
	booted time.Time // when slurmctld began to run; zero: it doesn't matter, or isn't known
}

func indexSnapshot(s *Snapshot) *snapshotIndex {
	x := &snapshotIndex{
		snap: s, jobs: make(map[slurm.JobID]*slurm.Job, len(s.Jobs)), ended: make(map[slurm.JobID]bool),
		arrays: make(map[slurm.JobID]bool), nodes: make(map[string]*slurm.Node, len(s.Nodes)),
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if j.State.Base.Ended() {
			x.ended[j.ID] = true
			continue
		}
		x.jobs[j.ID] = j
		if j.ArrayJob != 0 {
			x.arrays[j.ArrayJob] = true
		}
	}
	for i := range s.Nodes {
		x.nodes[s.Nodes[i].Name] = &s.Nodes[i]
	}
	return x
}

// isStale reports whether a snapshot may be from before an entry's last change. A
// clock that was set back isn't waited for.
func (s *Steerer) isStale(snap *Snapshot) bool {
	now, old := s.options.Clock(), false
	for _, e := range s.ledger.entries {
		if e.At.After(now) {
			e.At = now
		}
		old = old || snap.At.Before(e.At)
	}
	return old
}

// askBooted asks since when slurmctld runs where a job has its own value again though ours was in force.
func (s *Steerer) askBooted(ctx context.Context, x *snapshotIndex) (err error) {
	if s.options.Booted == nil {
		return nil
	}
	for k, e := range s.ledger.entries {
		if j := x.jobs[k.job]; j != nil && e.Phase != phaseTakenOver && e.Phase != phaseUndone &&
			x.valueOf(j, k.lever) == e.Before && e.After != e.Before {
			x.booted, err = s.options.Booted(ctx)
			return err
		}
	}
	return nil
}

// bootPrecision is that of the time since when slurmctld runs.
const bootPrecision = time.Second

// mayBeLost reports whether slurmctld may have lost the last change of an entry: it writes changes down
// some seconds later.
func (x *snapshotIndex) mayBeLost(e *ledgerEntry) bool {
	return e.At.Before(x.booted.Add(bootPrecision))
}

// reconcile learns from a snapshot what became of the entries.
func (s *Steerer) reconcile(x *snapshotIndex) {
	s.forgetFailures(x)
	for i := range x.snap.Jobs {
		s.adoptArrayTask(&x.snap.Jobs[i], x)
		s.adoptNewcomer(&x.snap.Jobs[i], x)
	}
	for _, k := range s.ledger.keys() {
		e := s.ledger.entries[k]
		switch k.lever {
		case lever.Nice, lever.Prefer, lever.Begin:
			s.reconcileJob(k, e, x)
		case lever.Weight:
			s.reconcileWeight(k, e, x)
		case lever.Power:
			switch n := x.nodes[k.node]; {
			case n == nil && !x.nodeIsGone(k.node):
			case n == nil || !isDown(n):
				s.ledger.drop(k) // Slurm woke it
			default:
				s.confirm(e)
			}
		}
	}
}

// forgetFailures drops failures of what is gone.
func (s *Steerer) forgetFailures(x *snapshotIndex) {
	maps.DeleteFunc(s.failures, func(k leverKey, _ int) bool {
		return k.job != 0 && x.jobs[k.job] == nil || k.node != "" && x.nodes[k.node] == nil
	})
}

// nodeIsGone reports whether Slurm doesn't have a node any more.
func (x *snapshotIndex) nodeIsGone(name string) bool {
	return x.nodes[name] == nil && len(x.nodes) > 0 && !x.snap.UnreadNodes.MayList(name)
}

// valueOf returns what a lever has set, or would set, at a job.
func (x *snapshotIndex) valueOf(j *slurm.Job, kind lever.Kind) string {
	if kind == lever.Prefer {
		return j.Prefer
	}
	if kind == lever.Begin {
		return lever.BeginOf(j, x.snap.At)
	}
	return strconv.FormatInt(j.Nice, 10)
}

// adoptArrayTask takes over an array's task that got a number of its own with a value of
// ours: it keeps it when it's requeued.
func (s *Steerer) adoptArrayTask(j *slurm.Job, x *snapshotIndex) {
	if j.ArrayJob == 0 || j.ArrayJob == j.ID || x.jobs[j.ID] == nil {
		return
	}
	for _, kind := range []lever.Kind{lever.Nice, lever.Prefer, lever.Begin} {
		k := leverKey{lever: kind, job: j.ID}
		whole := s.ledger.entries[leverKey{lever: kind, job: j.ArrayJob}]
		value := x.valueOf(j, kind)
		if whole == nil || s.ledger.entries[k] != nil || !whole.isOwnValue(value) {
			continue
		}
		s.ledger.takeOver(k, whole.Before, value, x.snap.At)
	}
}

// adoptNewcomer takes over what a job was submitted with, by our word in its AdminComment.
func (s *Steerer) adoptNewcomer(j *slurm.Job, x *snapshotIndex) {
	if x.jobs[j.ID] == nil {
		return
	}
	for _, at := range []struct {
		kind   lever.Kind
		before string
		given  int64
	}{{lever.Nice, "0", j.NiceAtSubmit()}, {lever.Begin, "", j.BeginAtSubmit()}} {
		k, value := leverKey{lever: at.kind, job: j.ID}, strconv.FormatInt(at.given, 10)
		if at.given <= 0 || x.valueOf(j, at.kind) != value || s.ledger.entries[k] != nil {
			continue
		}
		s.ledger.takeOver(k, at.before, value, x.snap.At)
	}
}

// confirm notes that the value is the one that was set.
func (s *Steerer) confirm(e *ledgerEntry) {
	if e.Phase == phaseIntended {
		e.Phase, e.Was = phaseInForce, ""
		s.ledger.dirty = true
	}
}

// settledAfter is after which time Slurm neither loses a change nor makes one late: it writes them down some
// seconds later, and takes none whose credential is five minutes old.
const settledAfter = 6 * time.Minute

// closeEntry ends an entry whose value is the one before again. A job's stays for a while, an array's for
// the tasks that started meanwhile: our values may come back.
func (s *Steerer) closeEntry(k leverKey, e *ledgerEntry) {
	if k.job != 0 {
		e.notePast(e.After)
		e.Phase, e.Was = phaseUndone, ""
		s.ledger.dirty = true
		return
	}
	s.ledger.drop(k)
}

// reconcileJob learns from a snapshot what became of a job's entry. A job that runs, or ran, keeps it, as it may
// be requeued.
func (s *Steerer) reconcileJob(k leverKey, e *ledgerEntry, x *snapshotIndex) {
	j := x.jobs[k.job]
	if j == nil {
		e.over = x.ended[k.job]
		if !x.arrays[k.job] && !e.over && !x.snap.UnreadJobs.MayList(k.job.String()) {
			s.ledger.drop(k)
		}
		return
	}
	e.over = false
	value := x.valueOf(j, k.lever)
	switch {
	case k.lever == lever.Begin && x.isBeginPast(e):
		s.ledger.drop(k)
	case e.Phase == phaseTakenOver:
	case e.Phase == phaseUndone && (!e.isOwnValue(value) || !x.canUndo(k)):
		if !x.arrays[k.job] && x.snap.At.Sub(e.At) > settledAfter {
			s.ledger.drop(k)
		}
	case value == e.After && e.Phase != phaseUndone:
		s.confirm(e)
	case e.Phase == phaseUndoing && value == e.Before:
		s.closeEntry(k, e)
	case e.Phase == phaseIntended && value == e.Was:
		s.noteNotMade(k, e)
	case e.isOwnValue(value): // a change that slurmctld lost, or made late
		e.After, e.Phase, e.Was = value, phaseInForce, ""
		s.ledger.dirty = true
	case value == e.Before && x.mayBeLost(e):
		s.closeEntry(k, e)
	default:
		e.Phase, e.Was = phaseTakenOver, ""
		s.ledger.dirty = true
		s.log.Info("a lever was moved by someone else and is left alone", "lever", k.String(), "is",
			slurm.Printable(value, 80), "was_set_to", e.After)
	}
}

// isBeginPast reports whether a begin time is over: nothing is left to take back.
func (x *snapshotIndex) isBeginPast(e *ledgerEntry) bool {
	begin, err := strconv.ParseInt(e.After, 10, 64)
	return err == nil && begin <= x.snap.At.Unix()
}

// noteNotMade notes that an intended change wasn't made. A slurmctld that didn't answer in time may still
// make it: the value stays known as ours.
func (s *Steerer) noteNotMade(k leverKey, e *ledgerEntry) {
	if e.Was == e.Before {
		s.closeEntry(k, e)
		return
	}
	e.notePast(e.After)
	e.After, e.Phase, e.Was = e.Was, phaseInForce, ""
	s.ledger.dirty = true
}

// reconcileWeight learns from a snapshot what became of a node's weight. Where it is
// what it was before us, as after scontrol reconfigure, there is nothing to take
// back.
func (s *Steerer) reconcileWeight(k leverKey, e *ledgerEntry, x *snapshotIndex) {
	n := x.nodes[k.node]
	if n == nil {
		if x.nodeIsGone(k.node) {
			s.ledger.drop(k)
		}
		return
	}
	weight := strconv.FormatUint(uint64(n.Weight), 10)
	switch {
	case weight == e.After:
		if e.Phase == phaseTakenOver {
			e.Phase, s.ledger.dirty = phaseInForce, true
		}
		s.confirm(e)
	case weight == e.Before:
		s.ledger.drop(k)
	case e.Phase == phaseIntended && weight == e.Was:
		s.noteNotMade(k, e)
	case e.Phase != phaseTakenOver:
		e.Phase, e.Was = phaseTakenOver, ""
		s.ledger.dirty = true
		s.log.Info("a lever was moved by someone else and is left alone", "lever", k.String(), "is", weight,
			"was_set_to", e.After)
	}
}

// ownChanges returns what NewPlan must know of the entries.
func (s *Steerer) ownChanges() *OwnChanges {
	o := &OwnChanges{
		UserNice: make(map[slurm.JobID]int64), Untouchable: make(map[slurm.JobID]bool),
		Prefer: make(map[slurm.JobID]bool), Begin: make(map[slurm.JobID]string), Weights: make(map[string]uint32),
		Asleep: make(map[string]bool), Idle: s.idle,
	}
	for k, e := range s.ledger.entries {
		if e.Phase == phaseUndone {
			continue
		}
		switch k.lever {
		case lever.Nice:
			own, err := strconv.ParseInt(e.Before, 10, 64)
			if err != nil || e.Phase == phaseTakenOver || s.failures[k] >= maxFailures {
				o.Untouchable[k.job] = true
				continue
			}
			o.UserNice[k.job] = own
		case lever.Weight:
			if own, err := strconv.ParseUint(e.Before, 10, 32); err == nil {
				o.Weights[k.node] = uint32(own)
			}
		case lever.Power:
			o.Asleep[k.node] = true
		case lever.Prefer:
			o.Prefer[k.job] = e.Phase != phaseTakenOver
		case lever.Begin:
			if e.Phase != phaseTakenOver {
				o.Begin[k.job] = e.After
			}
		}
	}
	return o
}
