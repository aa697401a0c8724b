package agent

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/nodepower"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/statedir"
)

// ErrNoRun tells that no such run is open: its Prolog never came here, or its
// end was seen before.
var ErrNoRun = errors.New("no such run is open")

// NewRunID makes an id that no other run has.
func NewRunID() string { return rand.Text() }

// RunSet is the runs that are open, and those that ended until they are forgotten, each
// with its file. Its methods may be called by several goroutines.
type RunSet struct {
	folder statedir.FS
	// boot and driver tell this boot of the machine and this load of the driver.
	boot, driver string

	fileMu sync.Mutex // held while an ended run's file is written or removed; taken before mu

	mu   sync.Mutex // guards what follows and the runs in it; GPUs' locks are taken after it
	byID map[string]*openRun
}

// write keeps a run's file up to date.
func (s *RunSet) write(r *runFile) error {
	data, err := json.Marshal(r)
	if err == nil {
		err = writeFile(s.folder, r.Run.ID+current, data)
	}
	if err != nil {
		return fmt.Errorf("write down run %s: %w", r.Run.ID, err)
	}
	return nil
}

// load reads the runs of before the start. Files that can't be read are moved
// aside and named: their clocks are the journal's business. Those of a newer epd are named, and
// stay for when it is back.
func (s *RunSet) load() (notes []string, err error) {
	names, foreign, err := liveFiles(s.folder, true)
	if err != nil {
		err = fmt.Errorf("read the open runs: %w", err)
	}
	for _, name := range foreign {
		notes = append(notes, s.moveAside(name, statedir.ErrForeign))
	}
	for _, id := range names {
		data, reading := s.folder.ReadFile(id + current)
		if reading != nil && !errors.Is(reading, statedir.ErrForeign) {
			err = errors.Join(err, fmt.Errorf("read run %s: %w", id, reading))
			continue
		}
		r, decoding := decodeRun(id, data)
		if errors.Is(decoding, statedir.ErrNewer) {
			notes = append(notes, fmt.Sprintf("the run's file %q stays as it is, and the run unrecorded "+
				"until that epd is back: %v", id+current, decoding))
			continue
		}
		if problem := errors.Join(reading, decoding); problem != nil {
			notes = append(notes, s.moveAside(id+current, problem))
			continue
		}
		s.addLoaded(r)
	}
	return notes, err
}

// addLoaded makes a run of before the start known.
func (s *RunSet) addLoaded(r *runFile) {
	open := &openRun{
		Run: r.Run, file: *r, handsOff: r.HandsOff, kind: r.Kind, sampler: NewSampler(r.Run), reread: true,
	}
	open.sampler.partial = true
	open.sampler.setStartCounters(s.countersOf(r))
	if r.Outcome != nil {
		open.ended, open.kept, open.sampler = true, true, nil
	} else if wanted := open.wantedSetting(); wanted != (dvfsmodel.Setting{}) {
		open.revertToDefault(notLockedReason(fmt.Errorf("%s until %w", wanted.Words(), errRestarted)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byID[r.Run.ID] = open
}

// moveAside moves a run's file aside and says why.
func (s *RunSet) moveAside(name string, why error) string {
	if err := statedir.SetAside(s.folder, name); err != nil {
		return fmt.Sprintf("the run's file %q can't be read (%v) nor moved aside: %v", name, why, err)
	}
	return fmt.Sprintf("the run's file %q can't be read and was moved aside: %v", name, why)
}

// open returns the ids of runs that aren't ended and that a rule takes, the
// oldest first.
func (s *RunSet) open(rule func(*openRun) bool) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := slices.DeleteFunc(slices.Collect(maps.Keys(s.byID)), func(id string) bool {
		r := s.byID[id]
		return r.ended || !rule(r)
	})
	slices.SortFunc(ids, func(x, y string) int {
		return cmp.Or(s.byID[x].Started.Compare(s.byID[y].Started), cmp.Compare(x, y))
	})
	return ids
}

// countersOf returns the counters at the start of a run that was open when the agent
// started; nil where they began anew since.
func (s *RunSet) countersOf(r *runFile) map[string]dvfsmodel.Joule {
	if c := r.Counters; c != nil && c.Boot == s.boot && c.Driver == s.driver {
		return c.Energy
	}
	return nil
}

// eachOpen does something with each run that isn't ended, while nothing else is done with
// the set.
func (s *RunSet) eachOpen(do func(*openRun)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.byID {
		if !r.ended {
			do(r)
		}
	}
}

// runsOn returns the runs that aren't ended on a GPU, in the order of their ids.
// The caller holds mu.
func (s *RunSet) runsOn(c *managedGPU) []*openRun {
	var found []*openRun
	for _, id := range slices.Sorted(maps.Keys(s.byID)) {
		if r := s.byID[id]; !r.ended && slices.Contains(r.GPUs, c.uuid) {
			found = append(found, r)
		}
	}
	return found
}

// isOpenOn reports whether a run is open on the card.
func (s *RunSet) isOpenOn(c *managedGPU) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.runsOn(c)) > 0
}

// find returns an open run as it is now.
func (s *RunSet) find(id string) (run live.Run, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.byID[id]
	if !ok || r.ended {
		return live.Run{}, false
	}
	return r.Run, true
}

// refuse reports whether a run is known already. A refusal puts it to default clocks then.
func (s *RunSet) refuse(id string, refusal error) (known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, known := s.byID[id]
	if known && refusal != nil {
		r.revertToDefault(notLockedReason(refusal))
	}
	return known
}

// begin makes a run known, and begins its adaptation. One that couldn't be written down is
// put to default clocks; that is tried again, for the run not to be lost with the agent.
func (s *RunSet) begin(r *openRun, writing error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.unwritten = writing != nil
	if writing != nil {
		r.revertToDefault(live.NotLocked{Kind: live.NotLockedJournal, Why: writing.Error()})
	}
	s.byID[r.ID] = r
	r.beginAdaptation(time.Now())
}

// whyNotLocked is why a run isn't at lowered clocks; "" when it is: its GPUs are locked.
func (s *RunSet) whyNotLocked(id string, isLocked func(uuid string) bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.byID[id]
	switch {
	case !ok || r.ended:
		return "it ended meanwhile"
	case r.handsOff != "":
		return r.handsOff
	case len(r.GPUs) == 0:
		return "it has no GPU"
	case r.wantedSetting().WithoutProfile() == (dvfsmodel.Setting{}):
		return "default clocks are wanted"
	case !slices.ContainsFunc(r.GPUs, func(uuid string) bool { return !isLocked(uuid) }):
		return ""
	}
	return "another run on the GPU needs default clocks"
}

// wantedLock returns what a card's open runs come to, and the youngest of them.
func (s *RunSet) wantedLock(c *managedGPU) (want lock, run live.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	runs := s.runsOn(c)
	markSharedRuns(runs)
	for i, r := range runs {
		if i == 0 {
			want, run = r.wantedLock(), r.Run
			continue
		}
		want = want.combine(r.wantedLock())
		if r.Started.After(run.Started) {
			run = r.Run
		}
	}
	return want, run
}

// revertToDefault puts a run to default clocks for the rest of its time and returns its GPUs. The
// first reason stays.
func (s *RunSet) revertToDefault(id string, why live.NotLocked) (uuids []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.byID[id]
	if !ok {
		return nil, fmt.Errorf("run %s: %w", id, ErrNoRun)
	}
	r.revertToDefault(why)
	return r.GPUs, nil
}

// giveUp puts the runs on cards to default clocks and returns all their GPUs
// with the given ones.
func (s *RunSet) giveUp(cards []*managedGPU, why live.NotLocked) (uuids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range cards {
		uuids = append(uuids, c.uuid)
		for _, r := range s.runsOn(c) {
			if r.wantedSetting() != (dvfsmodel.Setting{}) {
				r.revertToDefault(why)
				uuids = append(uuids, r.GPUs...)
			}
		}
	}
	return uuids
}

// releaseEnded puts an open run to default clocks whose job is over, and returns its GPUs. It
// stays open until its Epilog, and is recorded as one that had its clocks to its end. A run
// that isn't open has no GPUs.
func (s *RunSet) releaseEnded(id string) (uuids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.byID[id]
	if !ok || r.ended {
		return nil
	}
	r.jobEnded = true
	return r.GPUs
}

// loweredRuns returns the runs at lowered clocks, whatever their power profile.
func (s *RunSet) loweredRuns() []live.Run {
	ids := s.open(func(r *openRun) bool { return r.Setting.WithoutProfile() != (dvfsmodel.Setting{}) })
	s.mu.Lock()
	defer s.mu.Unlock()
	var low []live.Run
	for _, id := range ids {
		if r, ok := s.byID[id]; ok && r.wantedSetting().WithoutProfile() != (dvfsmodel.Setting{}) {
			low = append(low, r.Run)
		}
	}
	return low
}

// updateForecast notes what is known by now and returns the run with it; false if it
// isn't open any more.
func (s *RunSet) updateForecast(run live.Run, now live.Outlook) (live.Run, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.byID[run.ID]
	if !ok || r.ended {
		return run, false
	}
	if now.Limit.IsSet() {
		run.Limit = now.Limit
	}
	if upper := now.UpperS.Duration(); upper > 0 {
		run.Upper = upper
	}
	if r.Adapt != nil { // what is known now may be of one clock alone
		run.Upper = max(run.Upper, r.Upper)
	}
	r.Limit, r.Upper = run.Limit, run.Upper
	return run, true
}

// addReading tells the runs on a card what was read of it, if anything could be.
func (s *RunSet) addReading(c *managedGPU, reading gpu.Reading, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	runs := s.runsOn(c)
	markSharedRuns(runs)
	for _, r := range runs {
		if err == nil {
			r.sampler.Add(c.uuid, reading)
		}
	}
}

// addHost shares what the node used beside its GPUs among the runs that are open.
func (s *RunSet) addHost(now time.Time, step nodepower.EnergyStep) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for run, part := range s.hostParts() {
		run.sampler.AddHost(now, step, part)
	}
}

// hostParts returns the parts of the node that open runs have: its GPUs among those
// that are in use. A GPU that several runs share is shared by them alike. The
// caller holds mu.
func (s *RunSet) hostParts() map[*openRun]float64 {
	on := make(map[string]int)
	for _, r := range s.byID {
		for _, uuid := range r.GPUs {
			if !r.ended {
				on[uuid]++
			}
		}
	}
	parts := make(map[*openRun]float64)
	for _, r := range s.byID {
		if r.ended {
			continue
		}
		part := 0.0
		for _, uuid := range r.GPUs {
			part += 1 / float64(on[uuid]*len(on))
		}
		parts[r] = part
	}
	return parts
}

// states returns the runs as they are now, in the order of their ids.
func (s *RunSet) states() []RunState {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]RunState, 0, len(s.byID))
	for _, id := range slices.Sorted(maps.Keys(s.byID)) {
		r := s.byID[id]
		run := RunState{
			Run: r.Run, Wants: r.wantedSetting(), Adapted: r.adaptationState(), HandsOff: r.handsOff, Ended: r.ended,
			Reread: r.reread, Notes: slices.Clone(r.notes),
		}
		if !r.ended {
			run.Readings = r.sampler.readings.Readings()
		}
		list = append(list, run)
	}
	return list
}
