package query

import (
	"context"
	"fmt"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// RunQuery asks for recorded runs. One of run, job and node must be named.
type RunQuery struct {
	Run, Node    string
	Job          int64
	Since, Until time.Time // zero: not bounded
	Conflicts    bool      // those that contradict a recorded run, in place of runs
	After        int64     // Next of the page before; 0: from the first
}

// RecordedRuns are recorded runs as they are.
func (s *Service) RecordedRuns(ctx context.Context, who Caller, q *RunQuery) (*epdapi.RunPage, error) {
	if err := Administrators.Admits(who); err != nil {
		return nil, err
	}
	switch {
	case q.Run == "" && q.Job == 0 && q.Node == "":
		return nil, fmt.Errorf("%w: want a run, a job or a node", epdapi.ErrRequest)
	case len(q.Run) > record.MaxRunID || len(q.Node) > record.MaxNode:
		return nil, fmt.Errorf("%w: no run and no node has so long a name", epdapi.ErrRequest)
	}
	page, err := s.options.Records.Runs.RecordedRuns(ctx, &store.RunFilter{
		Cluster: s.options.Cluster, RunID: q.Run, Node: q.Node, JobID: q.Job, Since: q.Since, Until: q.Until,
	}, q.Conflicts, q.After, epdapi.MaxRuns)
	if err != nil {
		return nil, err
	}
	return &epdapi.RunPage{Runs: nonNil(page.Runs), Next: page.Next}, nil
}

// Forget takes runs out of the records, and has what learnt from them learn anew. A
// model that nothing is left for isn't used any more, but for one that an
// administrator chose.
func (s *Service) Forget(ctx context.Context, who Caller, ids *epdapi.RunIDs) (*epdapi.RunsChanged, error) {
	if err := Administrators.Admits(who); err != nil {
		return nil, err
	}
	if len(ids.Runs)+len(ids.Conflicts) > epdapi.MaxRuns {
		return nil, fmt.Errorf("%w: %d runs, want at most %d", epdapi.ErrRequest,
			len(ids.Runs)+len(ids.Conflicts), epdapi.MaxRuns)
	}
	f, err := s.options.Records.Runs.Forget(ctx, ids.Runs, ids.Conflicts)
	if err != nil {
		return nil, err
	}
	return s.relearn(ctx, who, &f, "taken out of the records"), nil
}

// Remember puts runs back that [Service.Forget] took out. The error is
// [record.ErrInvalid] for others.
func (s *Service) Remember(
	ctx context.Context, who Caller, runs []record.RecordedRun,
) (*epdapi.RunsChanged, error) {
	if err := Administrators.Admits(who); err != nil {
		return nil, err
	}
	for i := range runs {
		if of := runs[i].Outcome.Cluster; of != s.options.Cluster {
			return nil, fmt.Errorf("%w: run %s is of cluster %s, not %s", epdapi.ErrRequest,
				slurm.Printable(runs[i].Outcome.RunID, 40), slurm.Printable(of, 40), s.options.Cluster)
		}
	}
	f, err := s.options.Records.Runs.Remember(ctx, runs)
	if err != nil {
		return nil, err
	}
	return s.relearn(ctx, who, &f, "put back into the records"), nil
}

// relearn has everything learn anew that learnt from runs that were taken out or put
// back.
func (s *Service) relearn(
	ctx context.Context, who Caller, f *store.ForgetResult, what string,
) *epdapi.RunsChanged {
	if f.Runs+f.Conflicts > 0 {
		s.options.Log.Warn("runs were "+what, "runs", f.Runs, "conflicts", f.Conflicts, "by_uid", who.UID)
	}
	out := &epdapi.RunsChanged{
		Runs: f.Runs, Conflicts: f.Conflicts, Models: s.options.Learner.Relearn(ctx, f.Workloads),
	}
	s.savings.saved.Store(nil)
	s.options.Forecasts.TrainSoon()
	return out
}
