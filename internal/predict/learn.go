package predict

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
)

// Learn is a forecaster that has seen the jobs of a table submitted and ended, in
// their order, and is fitted to them. Jobs without a run time never ended.
func Learn(ctx context.Context, target Target, table *Table, s *Settings) (*Forecaster, error) {
	r := &replay{forecaster: NewForecaster(target, s)}
	steps := make([]replayStep, len(table.Jobs))
	for i := range table.Jobs {
		steps[i] = replayStep{job: &table.Jobs[i], outcome: &table.Outcomes[i], at: -1}
	}
	slices.SortStableFunc(steps, func(a, b replayStep) int { return cmp.Compare(a.job.Submit, b.job.Submit) })
	for i := range steps {
		if err := r.submit(ctx, &steps[i]); err != nil {
			return nil, err
		}
	}
	for len(r.running) > 0 {
		if ended, ok := heap.Pop(&r.running).(*replayStep); ok {
			r.forecaster.End(ended.ticket, ended.outcome)
			ended.ticket = nil
		}
	}
	return r.forecaster, r.forecaster.Fit(ctx)
}
