package control

import (
	"context"
	"fmt"
	"net/http"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// getRuns lists recorded runs as they are.
func (c *Controller) getRuns(r *http.Request) (any, error) {
	q := r.URL.Query()
	f := store.RunFilter{Cluster: c.options.Cluster, RunID: q.Get("run"), Node: q.Get("node")}
	var err error
	if f.JobID, err = number(q.Get("job"), 0, maxJob); err != nil {
		return nil, err
	}
	if f.Since, err = timeIn(q, "since"); err != nil {
		return nil, err
	}
	if f.Until, err = timeIn(q, "until"); err != nil {
		return nil, err
	}
	after, err := number(q.Get("after"), 0, 1<<62)
	switch {
	case err != nil:
		return nil, err
	case f.RunID == "" && f.JobID == 0 && f.Node == "":
		return nil, fmt.Errorf("%w: want a run, a job or a node", ErrRequest)
	case len(f.RunID) > record.MaxRunID || len(f.Node) > record.MaxNode:
		return nil, fmt.Errorf("%w: no run and no node has so long a name", ErrRequest)
	}
	page, err := c.options.Store.RecordedRuns(r.Context(), &f, q.Get("conflicts") == "true", after,
		epdapi.MaxRuns)
	if err != nil {
		return nil, err
	}
	return &epdapi.RunPage{Runs: list(page.Runs), Next: page.Next}, nil
}

func (c *Controller) postForget(r *http.Request) (any, error) {
	var ids epdapi.RunIDs
	if err := decodeJSON(r.Body, &ids, true); err != nil {
		return nil, err
	}
	if len(ids.Runs)+len(ids.Conflicts) > epdapi.MaxRuns {
		return nil, fmt.Errorf("%w: %d runs, want at most %d", ErrRequest, len(ids.Runs)+len(ids.Conflicts),
			epdapi.MaxRuns)
	}
	return c.Forget(r.Context(), &ids)
}

// Forget takes runs out of the records, and has what learnt from them learn anew. A
// model that nothing is left for isn't used any more, but for one that an
// administrator chose.
func (c *Controller) Forget(ctx context.Context, ids *epdapi.RunIDs) (*epdapi.RunsChanged, error) {
	f, err := c.options.Store.Forget(ctx, ids.Runs, ids.Conflicts)
	if err != nil {
		return nil, err
	}
	return c.changed(ctx, &f, "taken out of the records"), nil
}

func (c *Controller) postRemember(r *http.Request) (any, error) {
	var back epdapi.RunList
	if err := decodeJSON(r.Body, &back, true); err != nil {
		return nil, err
	}
	return c.Remember(r.Context(), back.Runs)
}

// Remember puts runs back that [Controller.Forget] took out. The error is
// [record.ErrInvalid] for others.
func (c *Controller) Remember(ctx context.Context, runs []record.RecordedRun) (*epdapi.RunsChanged, error) {
	for i := range runs {
		if of := runs[i].Outcome.Cluster; of != c.options.Cluster {
			return nil, fmt.Errorf("%w: run %s is of cluster %s, not %s", ErrRequest,
				slurm.Printable(runs[i].Outcome.RunID, 40), slurm.Printable(of, 40), c.options.Cluster)
		}
	}
	f, err := c.options.Store.Remember(ctx, runs)
	if err != nil {
		return nil, err
	}
	return c.changed(ctx, &f, "put back into the records"), nil
}

// changed has everything learn anew that learnt from runs that were taken out or put
// back.
func (c *Controller) changed(ctx context.Context, f *store.ForgetResult, what string) *epdapi.RunsChanged {
	if f.Runs+f.Conflicts > 0 {
		c.options.Log.Warn("runs were "+what, "runs", f.Runs, "conflicts", f.Conflicts, "by_uid",
			CallerOf(ctx).UID)
	}
	out := &epdapi.RunsChanged{
		Runs: f.Runs, Conflicts: f.Conflicts, Models: c.learner.Relearn(ctx, f.Workloads),
	}
	c.counted.saved.Store(nil)
	c.forecasts.TrainSoon()
	return out
}
