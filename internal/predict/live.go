package predict

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"
)

// Past is a job that ended, with what it ran.
type Past struct {
	Job     Features // its first label is its name
	Outcome Outcome
	Script  uint64 // hash of what it ran, its owner's script; 0 is not known
}

// Script is the rung of what a batch script says alone, without the code that it runs.
const Script Rung = "script only"

// Forecast is what a job is expected to take, by target.
type Forecast [Power + 1]Prediction

// LiveSettings returns the defaults of [Live].
func LiveSettings() Settings {
	s := DefaultSettings()
	s.MaxRows, s.MinRows, s.Growth = 8000, 60, 1.1 // three targets at once, and little at first
	s.ValuesPerKey, s.MaxSingleKeys = 50, 50_000   // of each target: some megabytes
	// Half the trees, twice the steps: submissions wait for them.
	s.Trees.Trees, s.Trees.Rate = 150, 2*s.Trees.Rate
	return s
}

// Live predicts all targets while jobs come and go, for many goroutines at once. It
// learns from each job that ends, and from all of them anew when it is trained, in
// the background: meanwhile what was learnt before predicts.
//
// A job whose owner's script ran before on as many GPUs is looked up by that script,
// others by their name. So the first run of a script is remembered under both.
type Live struct {
	settings   Settings
	trainMutex sync.Mutex // held during a training: there is one at a time

	// semaphore is full while the fields below are used, never for long. It is no mutex,
	// as a prediction gives up after a time.
	semaphore      chan struct{}
	state          *liveState // what predicts now
	training       bool
	endedMeanwhile []Past // ended since the training began
	trained        int    // jobs of the last training
	ended          int    // jobs that ended since then
}

type liveState struct {
	forecasters [Power + 1]*Forecaster
	ran         map[hash]struct{} // scripts by owner and sizes, those that ended
}

// NewLive returns one that knows nothing yet; nil settings are [LiveSettings].
func NewLive(s *Settings) *Live {
	l := &Live{settings: LiveSettings(), semaphore: make(chan struct{}, 1)}
	if s != nil {
		l.settings = *s
	}
	l.state = l.newState()
	return l
}

// newState returns what predicts before anything was learnt.
func (l *Live) newState() *liveState {
	s := &liveState{ran: make(map[hash]struct{})}
	for t := range s.forecasters {
		s.forecasters[t] = NewForecaster(Target(t), &l.settings)
		s.forecasters[t].dropRows()
	}
	return s
}

// Predict returns what a job with a script (0: not known) is expected to take; false where
// that can't be told within a time.
func (l *Live) Predict(within time.Duration, j *Features, script uint64) (Forecast, bool) {
	select {
	case l.semaphore <- struct{}{}:
	default:
		timer := time.NewTimer(within)
		defer timer.Stop()
		select {
		case l.semaphore <- struct{}{}:
		case <-timer.C:
			return Forecast{}, false
		}
	}
	defer func() { <-l.semaphore }()
	return l.state.predict(j, script), true
}

// predict is [Live.Predict] in its turn. All targets look the job up by the same
// keys, which are made once.
func (s *liveState) predict(j *Features, script uint64) Forecast {
	_, known := s.ran[scriptKey(j, script)]
	if known {
		j = withScriptName(j, script)
	}
	var out Forecast
	keys := s.forecasters[Time].memory
	keys.setCurrent(j)
	for t, f := range s.forecasters {
		f.memory.keys = append(f.memory.keys[:0], keys.keys...)
		out[t] = f.submit(j).Prediction
		if out[t].Rung == Repeat && script != 0 && !known {
			out[t].Rung = Similar // the name was there before, the script wasn't
		}
	}
	return out
}

// withScriptName returns a job under its script instead of its name.
func withScriptName(j *Features, script uint64) *Features {
	out := *j
	out.Labels = append([]string{"\x00" + strconv.FormatUint(script, 16)},
		j.Labels[min(1, len(j.Labels)):]...)
	return &out
}

// scriptKey names a script of an owner on some resources; 0 where none is known.
func scriptKey(j *Features, script uint64) hash {
	if script == 0 {
		return 0
	}
	h := emptyHash.text(j.Owner).word(script)
	for _, s := range j.Sizes {
		h = h.number(s)
	}
	return h
}

// End learns from a job that ended.
func (l *Live) End(p *Past) {
	l.semaphore <- struct{}{}
	defer func() { <-l.semaphore }()
	if l.training {
		l.endedMeanwhile = append(l.endedMeanwhile, *p)
	}
	l.ended++
	l.state.end(p)
}

// end is [Live.End] in its turn. The first run of a script is learnt from under its
// name and under its script.
func (s *liveState) end(p *Past) {
	jobs := [...]*Features{&p.Job, nil}
	n := 1
	if key := scriptKey(&p.Job, p.Script); key != 0 {
		if _, known := s.ran[key]; known {
			jobs[0] = withScriptName(&p.Job, p.Script)
		} else {
			s.ran[key] = struct{}{}
			jobs[1], n = withScriptName(&p.Job, p.Script), 2
		}
	}
	for _, f := range s.forecasters {
		var tickets [len(jobs)]*PendingJob
		for i, j := range jobs[:n] { // neither knows of the other
			tickets[i] = f.Submit(j)
		}
		for _, t := range tickets[:n] {
			f.End(t, &p.Outcome)
		}
	}
}

// NeedsTraining reports whether enough jobs ended since the last training for another one.
func (l *Live) NeedsTraining() bool {
	l.semaphore <- struct{}{}
	defer func() { <-l.semaphore }()
	return !l.training && l.ended >= l.settings.MinRows/3 &&
		float64(l.trained+l.ended) >= l.settings.Growth*float64(l.trained)
}

// Train learns anew from the jobs that a function reads, and has that predict from
// then on. It takes seconds for each ten thousand jobs. After an error, or a panic,
// everything is as it was.
func (l *Live) Train(ctx context.Context, read func(context.Context) ([]Past, error)) (jobs int, err error) {
	l.trainMutex.Lock()
	defer l.trainMutex.Unlock()
	before := l.beginTraining()
	defer l.endTraining()
	past, err := read(ctx)
	var fresh *liveState
	if err == nil {
		fresh, err = l.learn(ctx, past)
	}
	if err != nil {
		return 0, fmt.Errorf("train on %d jobs: %w", len(past), err)
	}
	t := training{state: fresh, jobs: len(past), before: before, ids: make(map[string]struct{}, len(past))}
	for i := range past {
		t.ids[past[i].Job.ID] = struct{}{}
	}
	for {
		if l.catchUp(&t) {
			return len(past), nil
		}
	}
}

// training is what a training came to.
type training struct {
	state  *liveState
	jobs   int                 // that it was of
	ids    map[string]struct{} // their ids
	before int                 // jobs that had ended when it began, since the one before
}

// beginTraining has what ends from now on kept for a training, and returns how many jobs ended
// since the last one.
func (l *Live) beginTraining() (before int) {
	l.semaphore <- struct{}{}
	defer func() { <-l.semaphore }()
	l.training, l.endedMeanwhile = true, nil
	return l.ended
}

// endTraining ends what begin began.
func (l *Live) endTraining() {
	l.semaphore <- struct{}{}
	defer func() { <-l.semaphore }()
	l.training, l.endedMeanwhile = false, nil
}

// maxLastBatch is how many jobs are learnt from while nothing can be predicted, at most.
const maxLastBatch = 8

// catchUp has a training learn from the jobs that ended since it began, or since the
// last call, and weren't part of it. As long as they are many, predictions go on
// meanwhile. Once they are few nothing is predicted until they are learnt from, and
// what was learnt predicts from then on: that is the last time.
func (l *Live) catchUp(t *training) (last bool) {
	l.semaphore <- struct{}{}
	end := sync.OnceFunc(func() { <-l.semaphore })
	defer end()
	left := l.endedMeanwhile
	l.endedMeanwhile = nil
	if last = len(left) <= maxLastBatch; !last {
		end() // the turn; fresh is nobody else's
	}
	for i := range left {
		if _, read := t.ids[left[i].Job.ID]; !read {
			t.state.end(&left[i])
		}
	}
	if last {
		l.state, l.trained, l.ended = t.state, t.jobs, l.ended-t.before
	}
	return last
}

// learn plays jobs as they were submitted and ended, for each target, and fits.
func (l *Live) learn(ctx context.Context, past []Past) (*liveState, error) {
	s := l.newState()
	table := s.arrange(past)
	for t := range s.forecasters {
		var err error
		if s.forecasters[t], err = Learn(ctx, Target(t), table, &l.settings); err != nil {
			return nil, err
		}
		s.forecasters[t].dropRows() // it is trained anew, not fitted again
	}
	return s, nil
}

// arrange returns a table of jobs under their names or scripts, those of each script that ended
// first under both.
func (s *liveState) arrange(past []Past) *Table {
	first := make(map[hash]float64) // end of the first run
	for i := range past {
		p := &past[i]
		key := scriptKey(&p.Job, p.Script)
		if end, known := first[key]; key != 0 && !math.IsNaN(p.Outcome.End) &&
			(!known || p.Outcome.End < end) {
			first[key] = p.Outcome.End
		}
	}
	table := &Table{}
	add := func(j *Features, o *Outcome) {
		table.Jobs, table.Outcomes = append(table.Jobs, *j), append(table.Outcomes, *o)
	}
	for i := range past {
		p := &past[i]
		key := scriptKey(&p.Job, p.Script)
		end, known := first[key]
		if known {
			add(withScriptName(&p.Job, p.Script), &p.Outcome)
			if _, twice := s.ran[key]; twice || p.Outcome.End != end {
				continue
			}
			s.ran[key] = struct{}{}
		}
		add(&p.Job, &p.Outcome)
	}
	return table
}
