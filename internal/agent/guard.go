package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
)

// limitPart says which part of a short limit the guard wants to be left, a
// twentieth, where that is less than its margin.
const limitPart = 20

// Guard asks for each run at lowered clocks what its limit is now, and puts
// those to default clocks for which it is at risk, unless their users chose
// them. When nobody answers, what was known before holds. Runs whose jobs are over
// need their clocks no longer.
func (a *Agent) Guard(ctx context.Context, ask JobProbe) error {
	var errs []error
	for _, run := range a.loweredRuns() {
		now, err := ask(ctx, run)
		if err != nil {
			errs = append(errs, fmt.Errorf("limit of job %d: %w", run.Job, err))
			now = live.Outlook{}
		}
		if !now.Ended.IsZero() { // others' Epilogs run before ours
			errs = append(errs, a.releaseEnded(ctx, run.ID))
			continue
		}
		run = a.updateForecast(run, now)
		if reason := riskReason(&run, time.Since(run.Started), a.options.Margin); reason != "" &&
			!run.Wish.Fixed {
			errs = append(errs, a.handsOff(ctx, run.ID, reason))
			a.mu.Lock()
			a.guarded++
			a.mu.Unlock()
		}
	}
	return errors.Join(errs...)
}

// releaseEnded gives back the clocks of a run whose job is over. It stays open until its
// Epilog, and is recorded as one that had them to its end.
func (a *Agent) releaseEnded(ctx context.Context, id string) error {
	a.mu.Lock()
	r, ok := a.runs[id]
	if !ok || r.ended {
		a.mu.Unlock()
		return nil
	}
	r.jobEnded = true
	uuids := r.GPUs
	a.mu.Unlock()
	return a.settleAll(ctx, a.gpusOf(uuids))
}

// loweredRuns are the runs at lowered clocks.
func (a *Agent) loweredRuns() []live.Run {
	ids := a.openRuns(func(r *openRun) bool { return r.Setting != (dvfsmodel.Setting{}) })
	a.mu.Lock()
	defer a.mu.Unlock()
	var low []live.Run
	for _, id := range ids {
		if r, ok := a.runs[id]; ok && r.wants() != (dvfsmodel.Setting{}) {
			low = append(low, r.Run)
		}
	}
	return low
}

// updateForecast notes what is known by now and returns the run with it.
func (a *Agent) updateForecast(run live.Run, now live.Outlook) live.Run {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Limit.IsSet() {
		run.Limit = now.Limit
	}
	if upper := now.UpperS.Duration(); upper > 0 {
		run.Upper = upper
	}
	if r, ok := a.runs[run.ID]; ok {
		if r.Adapt != nil { // what is known now may be of one clock alone
			run.Upper = max(run.Upper, r.Upper)
		}
		r.Limit, r.Upper = run.Limit, run.Upper
	}
	return run
}

// riskReason says why a run's limit is at risk at its setting; "" when it isn't.
func riskReason(run *live.Run, elapsed, margin time.Duration) string {
	limit, limited := run.Limit.Duration()
	if !limited {
		return ""
	}
	end := limit - min(margin, limit/limitPart)
	switch {
	case run.Upper <= 0:
		return "nobody knows how long it takes at most"
	case elapsed > run.Upper:
		return fmt.Sprintf("runs longer than %s, its bound", run.Upper)
	case run.Upper > end:
		return fmt.Sprintf("may run for %s, too near to its limit of %s", run.Upper, limit)
	}
	return ""
}
