package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
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
	// accountsWindow is how far back accounting is asked for all jobs. What ended before, and what nobody
	// decided about, is asked for by the job's number: sites have millions of jobs.
	accountsWindow = 24 * time.Hour
	// undecidedBack is how far back an outcome is looked for that nobody decided about: an agent's spool is
	// delivered when it comes back, after a holiday at the latest.
	undecidedBack = 60 * 24 * time.Hour
	maxAccounts   = 100_000 // jobs of an answer
)

// Accounting asks Slurm's accounting for the jobs that were in any state since
// a time, or only for some of them; [slurm.Client.Accounting] does.
type Accounting func(ctx context.Context, since time.Time, only ...slurm.JobID) (slurm.Accounting, error)

// accounts are what accounting said last of all jobs. One question is asked at a time about runs that were
// decided, and one about others: whoever makes those up keeps none of the former waiting.
type accounts struct {
	decided, undecided chan struct{} // hold one
	log                *slog.Logger

	mu           sync.Mutex
	rejected     int // lines of the last answer
	since, asked time.Time
	byID         map[slurm.JobID][]accountedRun
}

// lookupSince is since when a run is looked for in accounting, whether somebody decided about it, and whether
// all jobs since then may be asked for.
type lookupSince struct {
	at           time.Time
	decided, all bool
}

// since is from when on accounting has a run that its node says to have ended at a time: not from before its
// decision, and where nobody decided, not from years ago.
func (r *Run) since(ended, now time.Time) lookupSince {
	earliest := now.Add(-undecidedBack)
	if r.Decided {
		earliest = r.Began
	}
	if ended.IsZero() || ended.Before(earliest) {
		ended = earliest
	}
	if ended.After(now) {
		ended = now
	}
	return lookupSince{ended.Add(-accountsBack), r.Decided, r.Decided && now.Sub(ended) < accountsWindow}
}

// accountedRun is one run of a job by accounting; times are Unix seconds.
type accountedRun struct {
	submitted, start, end int64
	state                 stateCode
	suspended             bool // for a while
	nodes                 string
	gpus                  int // on all of them; 0: not known
}

// endingOf returns how a run of a job ended. The error is errGone where there is no
// accounting.
func (a *accounts) endingOf(
	ctx context.Context, ask Accounting, id slurm.JobID, run Run, since lookupSince,
) (ending, error) {
	if ask == nil {
		return ending{}, errGone
	}
	turn := a.undecided
	if since.decided {
		turn = a.decided
	}
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return ending{}, context.Cause(ctx)
	}
	runs, err := a.runsOf(ctx, ask, id, since)
	if err != nil {
		return ending{}, err
	}
	for i := len(runs) - 1; i >= 0; i-- { // as accounting lists them: the oldest first
		r := &runs[i]
		if run.beganBefore(&Job{Submitted: r.submitted, state: r.state, rare: &rare{start: r.start}}) {
			continue
		}
		state := r.state.state()
		if state.Ended() || state == slurm.Requeued {
			return ending{
				state, r.submitted, uint32(i), r.start, r.end, r.gpus, r.suspended, r.nodes, //nolint:gosec // a few runs
			}, nil
		}
		return ending{}, fmt.Errorf("accounting says that it is %s", state)
	}
	return ending{}, errors.New("accounting doesn't know it yet")
}

// runsOf returns the runs of a job, the oldest first: by the last answer about all jobs, else by asking.
func (a *accounts) runsOf(
	ctx context.Context, ask Accounting, id slurm.JobID, since lookupSince,
) ([]accountedRun, error) {
	a.mu.Lock()
	covers := a.byID != nil && !a.since.After(since.at) && time.Since(a.asked) <= accountsFor
	runs := a.byID[id]
	a.mu.Unlock()
	switch {
	case covers && (since.all || len(runs) > 0):
		return runs, nil
	case !since.all:
		byID, err := a.lookUp(ctx, ask, since.at, id)
		return byID[id], err
	}
	asked := time.Now()
	byID, err := a.lookUp(ctx, ask, since.at)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.since, a.asked, a.byID = since.at, asked, byID
	return byID[id], nil
}

// lookUp asks accounting.
func (a *accounts) lookUp(
	ctx context.Context, ask Accounting, since time.Time, only ...slurm.JobID,
) (map[slurm.JobID][]accountedRun, error) {
	ctx, cancel := context.WithTimeout(ctx, accountsTime)
	defer cancel()
	answer, err := ask(ctx, since, only...)
	if errors.Is(err, slurm.ErrNoAccounting) {
		return nil, fmt.Errorf("%w: %w", errGone, err)
	}
	if err != nil {
		return nil, fmt.Errorf("ask accounting: %w", err)
	}
	a.noteRejected(&answer)
	byID := make(map[slurm.JobID][]accountedRun, min(len(answer.Jobs), maxAccounts))
	for i := range answer.Jobs {
		j := &answer.Jobs[i]
		if len(byID) < maxAccounts {
			byID[j.ID] = append(byID[j.ID], accountedRun{
				unix(j.Submit), unix(j.Start), unix(j.End), codeOf(j.State.Base), j.Suspended > 0,
				strings.Clone(j.NodeList), j.Allocated.GPUs(),
			})
		}
	}
	return byID, nil
}

// noteRejected logs how many lines of an answer can't be read, where that changed.
func (a *accounts) noteRejected(answer *slurm.Accounting) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := len(answer.Rejected)
	if n > 0 && n != a.rejected {
		a.log.Warn("lines of Slurm's accounting can't be read and are passed over", "lines", n,
			"first", answer.Rejected[0].Reason)
	}
	a.rejected = n
}
