package steer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/slurm/lever"
)

// maxRounds bounds how often Slurm's whole queue is asked for to take everything back: once to see what
// there is, once to see that it is gone, and again where Slurm lost a change or made one late.
const maxRounds = 8

// TakeBack takes back what an epd that doesn't run any more changed in Slurm, by the rules of
// [Steerer.UndoAll]. It ends when nothing is left that can be taken back, or when Slurm doesn't answer or
// the context ends: what is left then stays in the ledger, and another call goes on. The caller has seen to
// it that no Steerer has the folder.
func TakeBack(ctx context.Context, o *Options) (StepReport, error) {
	options := *o
	options.Settings = func() *Settings { return &Settings{Live: config.Default().Live} }
	s, err := Open(&options)
	if err != nil {
		return StepReport{}, err
	}
	if trouble := s.Status().Trouble; trouble != "" {
		return StepReport{}, errors.New(trouble)
	}
	var all StepReport
	for range maxRounds {
		r, err := s.UndoAll(ctx)
		if errors.Is(err, ErrStale) {
			continue
		}
		r.Undone += all.Undone
		found := r.Undone > all.Undone
		all = r
		if err != nil {
			st := s.Status()
			all.More = max(all.More, st.InForce())
			return all, err
		}
		if !found {
			break
		}
	}
	return all, nil
}

// InForce counts jobs and nodes that have a value of epd's.
func (s *Status) InForce() int { return s.Nice + s.Prefer + s.Begin + s.Weights + s.Asleep }

// Leftovers is what an epd changed in Slurm that is still in force.
type Leftovers struct {
	Changes []lever.Undo // those that can be taken back now
	Waiting int          // of jobs that are held, and of nodes on their way down
	Running int          // of jobs that have started
}

// String counts the changes by their kind.
func (l *Leftovers) String() string {
	counts := make(map[lever.Kind]int)
	for i := range l.Changes {
		counts[l.Changes[i].Lever]++
	}
	var parts []string
	for _, kind := range []struct {
		lever      lever.Kind
		what, noun string
	}{
		{lever.Nice, "Nice", "job"},
		{lever.Prefer, "preference", "job"},
		{lever.Begin, "begin time", "job"},
		{lever.Weight, "weight", "node"},
		{lever.Power, "sleep", "node"},
	} {
		switch n := counts[kind.lever]; n {
		case 0:
		case 1:
			parts = append(parts, "the "+kind.what+" of a "+kind.noun)
		default:
			parts = append(parts, fmt.Sprintf("the %s of %d %ss", kind.what, n, kind.noun))
		}
	}
	if l.Waiting > 0 {
		parts = append(parts, fmt.Sprintf("%d of held jobs or of nodes that power down", l.Waiting))
	}
	return strings.Join(parts, ", ")
}

// Folder returns the ledger's in a controller's state folder.
func Folder(state string) string { return filepath.Join(state, "levers") }

// ReadLeftovers reads the ledger of a controller's state folder by read and returns the changes that are in force,
// as far as a snapshot of Slurm shows; without one, those that the ledger names. A ledger that isn't there
// names none. Nothing is changed.
func ReadLeftovers(state string, read func(path string) ([]byte, error), snap *Snapshot) (Leftovers, error) {
	l := &ledger{entries: make(map[leverKey]*ledgerEntry)}
	text, err := read(filepath.Join(Folder(state), ledgerFile))
	if err == nil {
		err = l.decode(text)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Leftovers{}, err
	}
	return l.leftovers(snap), nil
}

func (l *ledger) leftovers(snap *Snapshot) (left Leftovers) {
	s := newSteerer(&Options{})
	s.ledger = l
	if snap == nil {
		for _, k := range l.keys() {
			if e := l.entries[k]; e.Phase != phaseTakenOver && e.Phase != phaseUndone {
				left.Changes = append(left.Changes, e.Undo)
			}
		}
		return left
	}
	x := indexSnapshot(snap)
	s.reconcile(x)
	moves, report := s.changesFor(x, nil)
	for i := range moves {
		left.Changes = append(left.Changes, l.entries[moves[i].key].Undo)
	}
	left.Running = report.Running
	left.Waiting = report.Waiting - report.Running
	return left
}
