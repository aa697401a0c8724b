package forecast

import (
	"math"
	"slices"
	"sync"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/predict"
	"github.com/epplan/epplan/internal/store/record"
)

// tally counts how predictions turned out, by target and rung. What was predicted at one submission
// counts once, however many jobs it was of: the tasks of an array have one prediction, made before the
// first of them ran, and would count it as often as there are tasks. Of these the mean counts: the part
// within the interval, and by how much it was off.
type tally struct {
	mu      sync.Mutex
	inOrder []*submissionTally // of the first job that ended
	byToken map[string]*submissionTally
}

// submissionTally is how the predictions of one submission turned out.
type submissionTally [predict.Power + 1]struct {
	rung         string
	jobs, inside int
	off          float64 // sum of relative errors
}

const maxOff = 500 // errors of which the median is told, the last ones

// reset counts anew.
func (t *tally) reset(ended []record.EndedJob) {
	t.mu.Lock()
	t.inOrder, t.byToken = nil, nil
	t.mu.Unlock()
	for i := range ended {
		t.add(&ended[i])
	}
}

// add counts a job's predictions. One that was made with nothing known isn't one.
func (t *tally) add(e *record.EndedJob) {
	if e.Rung == "" {
		return
	}
	rungs, truths := basesOf(e.Rung), actualValues(e)
	truths[predict.Energy] *= dvfsmodel.JoulesPerKWh
	predicted := [...]*record.Interval{
		predict.Time: &e.PredictedS, predict.Energy: &e.PredictedJ, predict.Power: &e.PredictedPowerW,
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for target, p := range predicted {
		v, ok := p.Value.Get()
		truth := truths[target]
		if !ok || !(truth > 0) || math.IsInf(truth, 1) || rungs[target] == string(predict.Prior) { // a round figure
			continue
		}
		of := &t.ofSubmission(e.Token)[target]
		of.rung = rungs[target]
		of.jobs++
		if p.Low.Or(math.Inf(1)) <= truth && truth <= p.High.Or(0) {
			of.inside++
		}
		of.off += math.Abs(v-truth) / truth
	}
}

// ofSubmission is that of one submission, which is kept from its first prediction that turned out on. The
// lock is held.
func (t *tally) ofSubmission(token string) *submissionTally {
	s := t.byToken[token]
	if s == nil {
		s = &submissionTally{}
		if t.byToken == nil {
			t.byToken = make(map[string]*submissionTally)
		}
		t.byToken[token], t.inOrder = s, append(t.inOrder, s)
	}
	return s
}

// scores are by target, all rungs together first.
func (t *tally) scores() []epdapi.ForecastScore {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []epdapi.ForecastScore{}
	rungs := []predict.Rung{"", predict.Repeat, predict.Similar, predict.Code, predict.Script}
	for _, target := range []predict.Target{predict.Time, predict.Energy, predict.Power} {
		for _, rung := range rungs {
			score := epdapi.ForecastScore{Target: target.String(), Rung: string(rung)}
			inside, off := 0.0, []float64{}
			for _, s := range t.inOrder {
				of := &s[target]
				if of.jobs == 0 || rung != "" && of.rung != string(rung) {
					continue
				}
				score.Jobs++
				inside += float64(of.inside) / float64(of.jobs)
				off = append(off, of.off/float64(of.jobs))
			}
			if score.Jobs == 0 {
				continue
			}
			off = slices.Sorted(slices.Values(off[max(0, len(off)-maxOff):]))
			score.Coverage, score.MedianError = inside/float64(score.Jobs), off[len(off)/2]
			out = append(out, score)
		}
	}
	return out
}

// Status returns how predictions fare.
func (f *Forecaster) Status() *epdapi.ForecastStatus {
	s := &epdapi.ForecastStatus{
		Enabled: f.options.Settings().Enabled, Missed: f.counters.missed.Load(), Scores: f.tally.scores(),
		Trainings: f.counters.trainings.Load(),
		Aligned:   f.counters.aligned.Load(), AskErrors: f.counters.askErrors.Load(),
	}
	if t := f.latest.Load(); t != nil {
		s.Version, s.Jobs, s.Imported = t.Version, t.OwnJobs+t.ImportedJobs, t.ImportedJobs
		s.Scripts, s.Codes = t.Scripts, t.Codes
	}
	return s
}
