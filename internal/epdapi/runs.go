package epdapi

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/epplan/epplan/internal/store/record"
)

// Paths of recorded runs, which are for root and Slurm's user: what they came to as
// it lies in the records, taking them out, and putting them back.
const (
	PathRuns     = "/v1/runs"
	PathForget   = "/v1/runs/forget"
	PathRemember = "/v1/runs/remember"
)

// MaxRuns is how many runs a page has, and a message that takes them out.
const MaxRuns = 100

// RunQuery says which recorded runs are meant: of a run id, a job or a node, at
// least. Empty fields don't restrict.
type RunQuery struct {
	RunID     string
	JobID     int64
	Node      string
	Since     time.Time // ended then or later
	Until     time.Time // ended before
	Conflicts bool      // outcomes that lie apart, as their runs have others
	After     int64     // Next of the page before; 0: from the first
}

// Values returns the query of the path.
func (q *RunQuery) Values() url.Values {
	v := url.Values{}
	for key, value := range map[string]string{"run": q.RunID, "node": q.Node} {
		if value != "" {
			v.Set(key, value)
		}
	}
	for key, number := range map[string]int64{"job": q.JobID, "after": q.After} {
		if number != 0 {
			v.Set(key, strconv.FormatInt(number, 10))
		}
	}
	for key, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !at.IsZero() {
			v.Set(key, at.UTC().Format(time.RFC3339Nano))
		}
	}
	if q.Conflicts {
		v.Set("conflicts", "true")
	}
	return v
}

// RunPage is a part of a list of recorded runs, the oldest first. It may hold fewer
// than [MaxRuns] though there are more.
type RunPage struct {
	Runs []record.RecordedRun `json:"runs"`
	Next int64                `json:"next"` // what to pass as after for the next page; 0: this is the last
}

// RunIDs are recorded runs by their ids in the records.
type RunIDs struct {
	Runs      []int64 `json:"runs"`
	Conflicts []int64 `json:"conflicts"`
}

// RunList are runs that were taken out and are to be put back.
type RunList struct {
	Runs []record.RecordedRun `json:"runs"`
}

// RunsChanged says how many runs were taken out or put back, once that is on disk,
// and what became of the models that learnt from them.
type RunsChanged struct {
	Runs      int64           `json:"runs"`
	Conflicts int64           `json:"conflicts"`
	Models    []RefittedModel `json:"models"`
}

// RefittedModel is a workload whose runs changed.
type RefittedModel struct {
	record.WorkloadKey
	Version int64  `json:"version"`          // of the model in use now; 0: none
	Pinned  bool   `json:"pinned,omitempty"` // an administrator chose it: it stays, whatever it learnt from
	Note    string `json:"note,omitempty"`   // why there is none
}

// Runs lists recorded runs.
func (c *Client) Runs(ctx context.Context, q *RunQuery) (*RunPage, error) {
	return get[RunPage](ctx, c, PathRuns, q.Values())
}

// Forget takes runs out of the records.
func (c *Client) Forget(ctx context.Context, ids *RunIDs) (*RunsChanged, error) {
	return post[RunsChanged](ctx, c, PathForget, ids)
}

// Remember puts runs back that were taken out.
func (c *Client) Remember(ctx context.Context, runs *RunList) (*RunsChanged, error) {
	return post[RunsChanged](ctx, c, PathRemember, runs)
}
