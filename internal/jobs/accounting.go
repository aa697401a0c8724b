package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/epplan/epplan/slurm"
)

// Bounds of questions to accounting.
const (
	// accountsFor is how long an answer is used again: after a controller was
	// away, agents deliver many outcomes at once.
	accountsFor  = 30 * time.Second
	accountsTime = 3 * time.Second
	// accountsBack is how long before its end a run is looked for, for clocks
	// that differ and jobs that were asked about together.
	accountsBack = 10 * time.Minute
	maxAccounts  = 100_000 // jobs of an answer
)

// Accounting asks Slurm's accounting for the jobs that were in any state since
// a time; [slurm.Client.Accounting] does.
type Accounting func(ctx context.Context, since time.Time) (slurm.Accounting, error)

// accounts are what accounting said last. One question is asked at a time.
type accounts struct {
	turn         chan struct{} // holds one
	since, asked time.Time
	byID         map[slurm.JobID][]accounted
}

// accounted is one run of a job by accounting; times are Unix seconds.
type accounted struct {
	submitted, start, end int64
	state                 stateCode
	suspended             bool // for a while
}

// endingOf is how a run of a job ended. The error is errGone where there is no
// accounting.
func (a *accounts) endingOf(
	ctx context.Context, ask Accounting, id slurm.JobID, run Run, ended time.Time,
) (ending, error) {
	if ask == nil {
		return ending{}, errGone
	}
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return ending{}, context.Cause(ctx)
	}
	if ended.IsZero() {
		ended = run.Began
	}
	since := ended.Add(-accountsBack)
	if a.byID == nil || a.since.After(since) || time.Since(a.asked) > accountsFor {
		if err := a.refresh(ctx, ask, since); err != nil {
			return ending{}, err
		}
	}
	runs := a.byID[id]
	for i := len(runs) - 1; i >= 0; i-- { // as accounting lists them: the oldest first
		r := &runs[i]
		if run.before(&Job{Submitted: r.submitted, state: r.state, rare: &rare{start: r.start}}) {
			continue
		}
		state := r.state.state()
		if state.Ended() || state == slurm.Requeued {
			return ending{state: state, submitted: r.submitted, restarts: uint32(i), at: r.end, suspended: r.suspended}, nil //nolint:gosec // a few runs
		}
		return ending{}, fmt.Errorf("accounting says that it is %s", state)
	}
	return ending{}, errors.New("accounting doesn't know it yet")
}

// refresh asks accounting.
func (a *accounts) refresh(ctx context.Context, ask Accounting, since time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, accountsTime)
	defer cancel()
	asked := time.Now()
	answer, err := ask(ctx, since)
	if errors.Is(err, slurm.ErrNoAccounting) {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	if err != nil {
		return fmt.Errorf("ask accounting: %w", err)
	}
	a.since, a.asked, a.byID = since, asked, make(map[slurm.JobID][]accounted,
		min(len(answer.Jobs), maxAccounts))
	for i := range answer.Jobs {
		j := &answer.Jobs[i]
		if len(a.byID) < maxAccounts {
			a.byID[j.ID] = append(a.byID[j.ID], accounted{
				unix(j.Submit), unix(j.Start), unix(j.End), codeOf(j.State.Base), j.Suspended > 0,
			})
		}
	}
	return nil
}
