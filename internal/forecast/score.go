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

// tally counts how predictions turned out, by target and rung.
type tally struct {
	mu sync.Mutex
	of map[tallyKey]*tallied
}

type tallyKey struct {
	target predict.Target
	rung   string // "": any
}

// tallied are predictions whose truth is known.
type tallied struct {
	jobs, inside int
	off          []float64 // relative errors of the last ones
}

const maxOff = 500 // errors of which the median is told

// reset counts anew.
func (t *tally) reset(ended []record.EndedJob) {
	t.mu.Lock()
	t.of = make(map[tallyKey]*tallied)
	t.mu.Unlock()
	for i := range ended {
		t.add(&ended[i])
	}
}

// add counts a job's predictions.
func (t *tally) add(e *record.EndedJob) {
	if e.Rung == "" {
		return
	}
	rungs, truths := rungsOf(e.Rung), truthOf(e)
	truths[predict.Energy] *= dvfsmodel.JoulesPerKWh
	t.mu.Lock()
	defer t.mu.Unlock()
	predicted := map[predict.Target]*record.Interval{
		predict.Time: &e.PredictedS, predict.Energy: &e.PredictedJ, predict.Power: &e.PredictedPowerW,
	}
	for target, p := range predicted {
		v, ok := p.Value.Get()
		truth := truths[target]
		if !ok || !(truth > 0) || math.IsInf(truth, 1) {
			continue
		}
		inside := p.Low.Or(math.Inf(1)) <= truth && truth <= p.High.Or(0)
		for _, rung := range []string{"", rungs[target]} {
			t.count(tallyKey{target, rung}, inside, math.Abs(v-truth)/truth)
		}
	}
}

func (t *tally) count(key tallyKey, inside bool, off float64) {
	if t.of == nil {
		t.of = make(map[tallyKey]*tallied)
	}
	c := t.of[key]
	if c == nil {
		c = &tallied{}
		t.of[key] = c
	}
	if len(c.off) < maxOff {
		c.off = append(c.off, off)
	} else {
		c.off[c.jobs%maxOff] = off
	}
	c.jobs++
	if inside {
		c.inside++
	}
}

// scores are by target, all rungs together first.
func (t *tally) scores() []epdapi.ForecastScore {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []epdapi.ForecastScore{}
	rungs := []predict.Rung{"", predict.Repeat, predict.Similar, predict.Code, predict.Script, predict.Prior}
	for _, target := range []predict.Target{predict.Time, predict.Energy, predict.Power} {
		for _, rung := range rungs {
			c := t.of[tallyKey{target, string(rung)}]
			if c == nil {
				continue
			}
			sorted := slices.Sorted(slices.Values(c.off))
			out = append(out, epdapi.ForecastScore{
				Target: target.String(), Rung: string(rung), Jobs: c.jobs,
				Coverage:    float64(c.inside) / float64(c.jobs),
				MedianError: sorted[len(sorted)/2],
			})
		}
	}
	return out
}

// Status is how predictions fare.
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
