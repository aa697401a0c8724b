package predict

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/epplan/epplan/internal/heap"
)

// Replay predicts the jobs of a table as if each had just been submitted: from jobs
// of both tables that had ended by then, and nothing else. The predictions are in
// the table's order. Jobs without a run time never end.
func Replay(ctx context.Context, target Target, train, test *Table, s *Settings) ([]Prediction, error) {
	r := &replay{forecaster: NewForecaster(target, s), predictions: make([]Prediction, len(test.Jobs))}
	steps := make([]replayStep, 0, len(train.Jobs)+len(test.Jobs))
	for i := range train.Jobs {
		steps = append(steps, replayStep{job: &train.Jobs[i], outcome: &train.Outcomes[i], at: -1})
	}
	for i := range test.Jobs {
		steps = append(steps, replayStep{job: &test.Jobs[i], outcome: &test.Outcomes[i], at: i})
	}
	return r.predictions, r.play(ctx, steps)
}

// Learn returns a forecaster that has seen the jobs of a table submitted and ended, in
// their order, and is fitted to them. Jobs without a run time never ended.
func Learn(ctx context.Context, target Target, table *Table, s *Settings) (*Forecaster, error) {
	r := &replay{forecaster: NewForecaster(target, s)}
	steps := make([]replayStep, len(table.Jobs))
	for i := range table.Jobs {
		steps[i] = replayStep{job: &table.Jobs[i], outcome: &table.Outcomes[i], at: -1}
	}
	if err := r.play(ctx, steps); err != nil {
		return nil, err
	}
	for len(r.running) > 0 {
		r.endNext()
	}
	return r.forecaster, r.forecaster.Fit(ctx)
}

type replayStep struct {
	job     *Features
	outcome *Outcome
	at      int // in the predicted table; -1: in the other one
	ticket  *PendingJob
}

// Compare is that of a heap: the step whose job ends first comes first.
func (s *replayStep) Compare(other *replayStep) int {
	return cmp.Compare(s.outcome.End, other.outcome.End)
}

type replay struct {
	forecaster  *Forecaster
	running     heap.Heap[*replayStep] // by their end
	predictions []Prediction
}

// play submits jobs in their order.
func (r *replay) play(ctx context.Context, steps []replayStep) error {
	slices.SortStableFunc(steps, func(a, b replayStep) int { return cmp.Compare(a.job.Submit, b.job.Submit) })
	for i := range steps {
		if err := r.submit(ctx, &steps[i]); err != nil {
			return err
		}
	}
	return nil
}

// endNext ends the job that ends next.
func (r *replay) endNext() {
	ended := r.running.Pop()
	r.forecaster.End(ended.ticket, ended.outcome)
	ended.ticket = nil
}

// submit plays what happens up to a job's submission, a fit that is due, and the submission.
func (r *replay) submit(ctx context.Context, s *replayStep) error {
	f := r.forecaster
	for len(r.running) > 0 && r.running[0].outcome.End <= s.job.Submit {
		r.endNext()
	}
	if s.at >= 0 && f.NeedsFit() {
		if err := f.Fit(ctx); err != nil {
			return err
		}
	}
	s.ticket = f.Submit(s.job)
	if s.at >= 0 {
		r.predictions[s.at] = s.ticket.Prediction
	}
	if !math.IsNaN(s.outcome.End) {
		r.running.Push(s)
	}
	return ctx.Err()
}
