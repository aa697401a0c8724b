package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
)

// ErrNoRun tells that no such run is open: its Prolog never came here, or its
// end was seen before.
var ErrNoRun = errors.New("no such run is open")

// NewRunID makes an id that no other run has.
func NewRunID() string { return rand.Text() }

// ClosedRun is a run that ended.
type ClosedRun struct {
	Run      live.Run
	HandsOff string // why its GPUs were at default clocks at the end
	Outcome  Outcome
}

// writeRunFile keeps a run's file up to date.
func (a *Agent) writeRunFile(r *runFile) error {
	data, err := json.Marshal(r)
	if err == nil {
		err = putFile(a.options.Runs, r.Run.ID, data)
	}
	if err != nil {
		return fmt.Errorf("write down run %s: %w", r.Run.ID, err)
	}
	return nil
}

// loadRuns reads the runs of before the start. Files that can't be read are moved
// aside and named: their clocks are the journal's business.
func (a *Agent) loadRuns() (notes []string, err error) {
	names, foreign, err := liveFiles(a.options.Runs, true)
	if err != nil {
		err = fmt.Errorf("read the open runs: %w", err)
	}
	for _, name := range foreign {
		notes = append(notes, a.runAside(name, errForeign))
	}
	for _, id := range names {
		data, reading := a.options.Runs.ReadFile(id + current)
		if reading != nil && !errors.Is(reading, errForeign) {
			err = errors.Join(err, fmt.Errorf("read run %s: %w", id, reading))
			continue
		}
		r, decoding := decodeRun(id, data)
		if problem := errors.Join(reading, decoding); problem != nil {
			notes = append(notes, a.runAside(id+current, problem))
			continue
		}
		a.addLoaded(r)
	}
	return notes, err
}

// addLoaded makes a run of before the start known.
func (a *Agent) addLoaded(r *runFile) {
	open := &openRun{
		Run: r.Run, file: *r, handsOff: r.HandsOff, sampler: NewSampler(r.Run), reread: true,
	}
	open.sampler.outcome.Partial = true
	open.sampler.setStartCounters(a.countersOf(r))
	if r.Outcome != nil {
		open.ended, open.kept, open.sampler = true, true, nil
	} else if open.wants() != (dvfsmodel.Setting{}) {
		open.handsOff = "the agent was restarted"
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.runs[r.Run.ID] = open
}

// runAside moves a run's file aside and says why.
func (a *Agent) runAside(name string, why error) string {
	if err := setAside(a.options.Runs, name); err != nil {
		return fmt.Sprintf("the run's file %q can't be read (%v) nor moved aside: %v", name, why, err)
	}
	return fmt.Sprintf("the run's file %q can't be read and was moved aside: %v", name, why)
}

// openRuns are the ids of runs that aren't ended and that a rule takes, the
// oldest first.
func (a *Agent) openRuns(rule func(*openRun) bool) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	ids := slices.DeleteFunc(slices.Collect(maps.Keys(a.runs)), func(id string) bool {
		r := a.runs[id]
		return r.ended || !rule(r)
	})
	slices.SortFunc(ids, func(x, y string) int {
		return cmp.Or(a.runs[x].Started.Compare(a.runs[y].Started), cmp.Compare(x, y))
	})
	return ids
}

// End closes the run of a job on a node and gives its GPUs back, unless others
// run on them. What it returns stays on file until [Agent.Forget]. The error
// is ErrNoRun, or says what couldn't be given back or written down; the run is
// closed all the same.
func (a *Agent) End(ctx context.Context, job uint32, node string) (ClosedRun, error) {
	ids := a.openRuns(func(r *openRun) bool { return r.Job == job && r.Node == node })
	if len(ids) == 0 {
		return ClosedRun{}, fmt.Errorf("job %d on %s: %w", job, node, ErrNoRun)
	}
	var last ClosedRun
	var errs []error
	for _, id := range ids {
		closed, err := a.end(ctx, id, runEnd{reason: "its job ended"})
		last, errs = closed, append(errs, err)
	}
	return last, errors.Join(errs...)
}

// EndedAt corrects the end of a run that [Agent.End] closed, once: its job had ended
// some time before, as Slurm's clock has it, to the second. Only what was measured up
// to then counts. Within two seconds what was measured here is finer and stands, as it
// does where at is zero, or can't be. It returns the run as it is now; the error says
// that it couldn't be written down.
func (a *Agent) EndedAt(id string, at time.Time) (ClosedRun, error) {
	a.mu.Lock()
	r, ok := a.runs[id]
	if !ok || r.file.Outcome == nil {
		a.mu.Unlock()
		return ClosedRun{}, fmt.Errorf("run %s: %w", id, ErrNoRun)
	}
	was := r.file.Outcome
	stands := r.sampler == nil || !at.After(r.Started) || was.Ended.Sub(at) <= maxBeyond
	if !stands {
		outcome := r.outcome(runEnd{reason: was.Reason, at: at}, was.Ended)
		r.file.Outcome, r.kept = &outcome, false
	}
	r.sampler = nil // nothing is asked of it any more
	rec := r.file
	a.mu.Unlock()
	if stands {
		return closedOf(&rec), nil
	}
	return closedOf(&rec), a.keepEnd(id, &rec)
}

// end closes a run: first its clocks, then its file, so that a crash between
// leaves an open run without clocks, which a sweep closes.
func (a *Agent) end(ctx context.Context, id string, how runEnd) (ClosedRun, error) {
	a.mu.Lock()
	r, ok := a.runs[id]
	if !ok || r.ended {
		a.mu.Unlock()
		return ClosedRun{}, fmt.Errorf("run %s: %w", id, ErrNoRun)
	}
	uuids := r.GPUs
	a.mu.Unlock()
	cards := a.gpusOf(uuids)
	if how.at.IsZero() {
		_ = a.react(ctx, a.sample(cards)) // the last sample; what fails here fails below
		_ = a.meterHost()
	}
	a.mu.Lock()
	if r.ended {
		a.mu.Unlock()
		return ClosedRun{}, fmt.Errorf("run %s: %w", id, ErrNoRun)
	}
	r.ended = true
	outcome := r.outcome(how, time.Now())
	r.file.Outcome, r.file.HandsOff = &outcome, r.handsOff
	rec := r.file
	a.mu.Unlock()
	settling := a.settleAll(ctx, cards)
	return closedOf(&rec), errors.Join(settling, a.keepEnd(id, &rec))
}

// keepEnd writes an ended run's file, unless it was forgotten meanwhile.
func (a *Agent) keepEnd(id string, rec *runFile) error {
	a.fileMu.Lock()
	defer a.fileMu.Unlock()
	a.mu.Lock()
	r, ok := a.runs[id]
	a.mu.Unlock()
	if !ok {
		return nil
	}
	if err := a.writeRunFile(rec); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	r.kept = true
	return nil
}

// closedOf is an ended run as its file has it.
func closedOf(r *runFile) ClosedRun {
	return ClosedRun{Run: r.Run, HandsOff: r.HandsOff, Outcome: *r.Outcome}
}

// Ended are the runs that ended and aren't forgotten, in the order of their
// ids.
func (a *Agent) Ended() []ClosedRun {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []ClosedRun
	for _, id := range slices.Sorted(maps.Keys(a.runs)) {
		if r := a.runs[id]; r.ended {
			list = append(list, closedOf(&r.file))
		}
	}
	return list
}

// Forget removes an ended run's file, once its outcome is safe elsewhere.
func (a *Agent) Forget(id string) error {
	a.fileMu.Lock()
	defer a.fileMu.Unlock()
	a.mu.Lock()
	r, ok := a.runs[id]
	ended := ok && r.ended
	a.mu.Unlock()
	if !ended {
		return fmt.Errorf("forget run %s: %w", id, ErrNoRun)
	}
	if err := retireFile(a.options.Runs, id); err != nil {
		return fmt.Errorf("forget run %s: %w", id, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.runs, id)
	return nil
}
