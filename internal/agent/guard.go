package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	for _, run := range a.runs.lowered() {
		now, err := ask(ctx, run)
		if err != nil {
			errs = append(errs, fmt.Errorf("limit of job %d: %w", run.Job, err))
			now = live.Outlook{}
		}
		if !now.Ended.IsZero() { // others' Epilogs run before ours
			errs = append(errs, a.reconciler.reconcile(ctx, a.gpus.some(a.runs.releaseEnded(run.ID))))
			continue
		}
		run, open := a.runs.updateForecast(run, now)
		if reason := riskReason(&run, time.Since(run.Started), a.options.Margin); open && reason != "" &&
			!run.Wish.Fixed {
			errs = append(errs, a.HandsOff(ctx, run.ID, reason))
			a.guarded.Add(1)
		}
	}
	return errors.Join(errs...)
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
