package predict

import (
	"context"
	"fmt"
	"math"

	"github.com/epplan/epplan/internal/predict/boost"
)

// Rung says what a prediction rests on.
type Rung string

// The rungs, the best one first.
const (
	Repeat  Rung = "repeat"  // runs of the same job
	Similar Rung = "similar" // runs of similar jobs
	Code    Rung = "code"    // what the source code says
	Prior   Rung = "prior"   // nothing that ended
)

// Prediction is what a job is expected to take.
type Prediction struct {
	Value     float64 // in the target's unit
	Low, High float64 // 90 % of the truths lie between
	Rung      Rung
}

// ClampedTo returns a prediction of something that can't lie outside of two ends, such as a run
// that is killed at its time limit.
func (p Prediction) ClampedTo(least, most float64) Prediction {
	held := func(v float64) float64 { return min(most, max(least, v)) }
	p.Value, p.Low, p.High = held(p.Value), held(p.Low), held(p.High)
	return p
}

// Settings of a forecaster.
type Settings struct {
	MaxRows       int     // jobs that trees are fitted to, at most: the latest ones
	MinRows       int     // jobs that trees are fitted to, at least
	Growth        float64 // factor by which the number of ended jobs must grow for another fit
	Emphasis      float64 // a job weighs as this power of its target: above 0, long jobs count for more
	ValuesPerKey  int     // values that are remembered under a key, the latest ones
	MaxSingleKeys int     // keys met once that are remembered, about, the latest ones; 0: all
	Trees         boost.Settings
}

// DefaultSettings do for some hundred to a million jobs.
func DefaultSettings() Settings {
	trees := boost.DefaultSettings()
	trees.Features, trees.Rows, trees.Leaves = 0.2, 0.5, 12
	trees.Trees, trees.Rate = 300, 0.05
	return Settings{
		MaxRows: 20000, MinRows: 200, Growth: 1.05, Emphasis: 0.3, ValuesPerKey: 150, Trees: trees,
	}
}

// Forecaster predicts one target of jobs in the order of their submission and learns
// from those that ended. Not for use by several goroutines at once.
type Forecaster struct {
	target      Target
	settings    Settings
	memory      *memory
	weighting   *guessWeighting
	calibration *calibration
	forest      *forest       // nil: not fitted yet
	rows        []*PendingJob // jobs that ended, for the next fit
	waiting     int           // jobs that were submitted and haven't ended
	ended       int
	fitted      int  // jobs that had ended at the last fit
	dropped     bool // not fitted any more
}

// forest is what is fitted to jobs that ended: trees that weigh long jobs more, a line
// with trees on what it leaves, or with effects, and deviations of repeats.
type forest struct {
	trees      *boost.Model
	line       *linearModel
	rest       *boost.Model
	effects    *effects
	deviations *deviations // nil: too few repeats
}

// PendingJob is a job on its way: what was known and predicted when it was submitted.
// Guesses, value and truth are logarithms of the target.
type PendingJob struct {
	Job        *Features
	Prediction Prediction

	owner            hash
	features         []float64 // what the trees are told
	guesses          [guesses]float64
	situation        situation
	errorScale       float64      // of errors in the situation: see errorScaleOf
	repeat           *repeatStats // nil: not run before
	hasGuesses       bool         // the memory had guesses
	hasFittedGuesses bool         // the forest had some, too
	value            float64      // what the guesses come to
	truth            float64      // what the job took, once it ended
}

// NewForecaster returns one that knows nothing yet; nil settings are [DefaultSettings].
func NewForecaster(t Target, s *Settings) *Forecaster {
	f := &Forecaster{
		target: t, settings: DefaultSettings(), weighting: newGuessWeighting(), calibration: newCalibration(),
	}
	if s != nil {
		f.settings = *s
	}
	f.memory = newMemory(t, &f.settings)
	return f
}

// Submit predicts a job from those that ended.
func (f *Forecaster) Submit(j *Features) *PendingJob {
	f.waiting++
	f.memory.setCurrent(j)
	return f.submit(j)
}

// submit is Submit of the job at hand, which may never run.
func (f *Forecaster) submit(j *Features) *PendingJob {
	t := &PendingJob{Job: j, owner: f.memory.keys[byOwner], features: make([]float64, 0, featureCount(j))}
	t.features = f.memory.appendFeatures(t.features, j)
	t.situation, t.errorScale, t.hasGuesses = f.memory.guess(&t.guesses)
	if t.hasGuesses {
		t.repeat = f.memory.repeatStatsOf(j, t.situation)
		if f.forest != nil {
			f.forest.guess(t, f.memory.keys)
		}
	}
	f.combine(t)
	return t
}

// guess fills in the fitted guesses of a ticket, given the job's keys.
func (r *forest) guess(t *PendingJob, keys []hash) {
	g := &t.guesses
	g[guessTrees] = r.trees.Predict(t.features)
	g[guessLine] = r.line.value(t.features)
	g[guessLineAndTrees] = g[guessLine] + r.rest.Predict(t.features)
	g[guessTreesAndLine] = (g[guessTrees] + g[guessLineAndTrees]) / 2
	g[guessTreesAndRuns] = (g[guessTreesAndLine] + g[guessCentral]) / 2
	g[guessEffects] = r.effects.value(t, keys)
	g[guessEffectsAndTrees] = (g[guessEffects] + g[guessTreesAndLine]) / 2
	g[guessEffectsAndRuns] = (g[guessEffects] + g[guessUsual]) / 2
	r.deviations.guess(t)
	t.hasFittedGuesses = true
}

// combine weighs the guesses and puts an interval around what they come to.
func (f *Forecaster) combine(t *PendingJob) {
	if !t.hasGuesses {
		t.Prediction = withoutHistory(f.target, t.Job)
		return
	}
	runs := 0.0 // the part of guesses that rest on runs alone
	weights := f.weighting.weights(t.situation, t.owner, t.repeat != nil && t.repeat.steady,
		t.hasFittedGuesses)
	for k, weight := range weights {
		if isFromRuns(k) {
			runs += weight
		}
	}
	t.value = midmeanOf(t.situation, &weights, &t.guesses)
	low, high := f.calibration.interval(t.situation, t.errorScale, t.value)
	t.Prediction = Prediction{
		Value: math.Exp(t.value), Low: math.Exp(low), High: math.Exp(high), Rung: Similar,
	}
	if t.situation[0] <= bySize && runs > 0.5 {
		t.Prediction.Rung = Repeat
	}
}

// End learns from a job that ended. Jobs end in order. A job whose value wasn't
// measured teaches nothing.
func (f *Forecaster) End(t *PendingJob, o *Outcome) {
	f.waiting--
	v := o.ValueOf(f.target)
	if !isUsable(v) {
		return
	}
	f.ended++
	t.truth = math.Log(v)
	f.memory.add(t.Job, o)
	f.memory.learnDrift(t)
	f.learnErrors(t)
	if f.dropped {
		return
	}
	f.rows = append(f.rows, t)
	if len(f.rows) >= f.settings.MaxRows*5/4 { // not at each job: moving the rows takes time
		n := copy(f.rows, f.rows[len(f.rows)-f.settings.MaxRows:])
		clear(f.rows[n:])
		f.rows = f.rows[:n]
	}
}

// learnErrors books how good the guesses for a job were, and what they came to.
func (f *Forecaster) learnErrors(t *PendingJob) {
	f.addScore(t)
	if t.hasFittedGuesses {
		f.weighting.learn(t.situation, t.owner, &t.guesses, t.truth)
		f.calibration.learn(t.situation, t.truth-t.value, &t.Prediction, math.Exp(t.truth), f.waiting)
	}
}

// addScore keeps how far off a prediction was, by its error scale.
func (f *Forecaster) addScore(t *PendingJob) {
	if t.hasGuesses {
		f.calibration.addScore(t.situation, (t.truth-t.value)/t.errorScale)
	}
}

// dropRows forgets what only another fit needs: there won't be one.
func (f *Forecaster) dropRows() { f.rows, f.dropped = nil, true }

// NeedsFit reports whether enough jobs ended since the last fit for another one.
func (f *Forecaster) NeedsFit() bool {
	return len(f.rows) >= f.settings.MinRows && float64(f.ended) >= f.settings.Growth*float64(f.fitted)
}

// Fit fits trees to the jobs that ended. The first time it first rehearses.
func (f *Forecaster) Fit(ctx context.Context) error {
	if len(f.rows) < f.settings.MinRows {
		return nil
	}
	if f.forest == nil {
		if err := f.backtest(ctx); err != nil {
			return err
		}
	}
	fitted, err := f.fitForest(ctx, f.rows)
	if err != nil {
		return err
	}
	f.forest, f.fitted = fitted, f.ended
	return nil
}

// backtest fits trees to the first two thirds or so of the jobs and judges all guesses
// on the others, so that the weighting and the intervals begin with errors made on jobs
// that nothing was fitted to.
func (f *Forecaster) backtest(ctx context.Context) error {
	cut := len(f.rows) * 65 / 100
	first, err := f.fitForest(ctx, f.rows[:cut])
	if err != nil {
		return err
	}
	f.calibration.scores = map[situation]*errorWindow{} // those of the last third are booked again
	for _, t := range f.rows[:cut] {
		f.addScore(t)
	}
	for _, t := range f.rows[cut:] {
		if t.hasGuesses {
			f.memory.setCurrent(t.Job)
			first.guess(t, f.memory.keys)
			f.combine(t)
			f.learnErrors(t)
		}
	}
	return nil
}

// fitForest fits to jobs; the first twentieth, submitted when hardly anything was known,
// is left out.
func (f *Forecaster) fitForest(ctx context.Context, rows []*PendingJob) (*forest, error) {
	rows = rows[max(len(rows)/20, len(rows)-f.settings.MaxRows):]
	x, y, w := make([][]float64, len(rows)), make([]float64, len(rows)), make([]float64, len(rows))
	sum := 0.0
	for i, t := range rows {
		x[i], y[i], w[i] = t.features, t.truth, math.Exp(f.settings.Emphasis*t.truth)
		sum += w[i]
	}
	for i := range w {
		w[i] *= float64(len(w)) / sum
	}
	r := &forest{}
	var err error
	if r.trees, err = boost.Fit(x, y, w, f.settings.Trees, ctx.Err); err != nil {
		return nil, fmt.Errorf("fitting trees to %d jobs: %w", len(rows), err)
	}
	if r.line, err = fitLinear(x, y, w, requestFeatureCount(rows[0].Job), 1); err != nil {
		return nil, err
	}
	r.effects = fitEffects(rows, r.line)
	for i := range y {
		y[i] -= r.line.value(x[i])
	}
	if r.rest, err = boost.Fit(x, y, w, f.settings.Trees, ctx.Err); err != nil {
		return nil, fmt.Errorf("fitting trees on a line to %d jobs: %w", len(rows), err)
	}
	if r.deviations, err = fitDeviations(ctx, rows, f.settings.Trees); err != nil {
		return nil, err
	}
	return r, nil
}

// noHistoryValues is what is expected where nothing ended, in the targets' units: round
// figures.
var noHistoryValues = [...]float64{Time: 3600, Energy: 1, Power: 200}

// withoutHistory returns the prediction then: of time, half of what was asked for.
func withoutHistory(target Target, j *Features) Prediction {
	v := noHistoryValues[target]
	if target == Time && j.Requested > 0 {
		v = j.Requested / 2
	}
	return Prediction{
		Value: v, Low: v * math.Exp(-maxHalfWidth/2), High: v * math.Exp(maxHalfWidth/2), Rung: Prior,
	}
}
