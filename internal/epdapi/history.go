package epdapi

import (
	"context"
	"net/url"
	"time"

	"github.com/epplan/epplan/internal/store/record"
)

// PathHistory is where jobs of imported logs are stored and read.
const PathHistory = "/v1/history"

// MaxHistory is how many jobs of a log one message holds.
const MaxHistory = 1000

// History is jobs of a log that are to be stored. A job without a cluster is of
// the controller's.
type History struct {
	Jobs []record.HistoryJob `json:"jobs"`
}

// HistoryAdded says what became of a [History], once that is on disk.
type HistoryAdded struct {
	Cluster string `json:"cluster"` // the controller's
	Added   int    `json:"added"`   // jobs that weren't there yet
}

// HistoryPage is a part of the stored history of a cluster, in the order of
// submission.
type HistoryPage struct {
	Jobs []record.HistoryJob `json:"jobs"`
	More bool                `json:"more"` // after the last of these there are others
}

// AddHistory stores jobs of a log.
func (c *Client) AddHistory(ctx context.Context, h *History) (*HistoryAdded, error) {
	return post[HistoryAdded](ctx, c, PathHistory, h)
}

// HistoryAfter reads jobs of imported logs: those that come after one, which may
// be nil, and were submitted since a time, which may be zero.
func (c *Client) HistoryAfter(
	ctx context.Context, since time.Time, last *record.HistoryJob,
) (*HistoryPage, error) {
	query := url.Values{}
	if !since.IsZero() {
		query.Set("since", since.UTC().Format(time.RFC3339Nano))
	}
	if last != nil {
		query.Set("after", last.Submitted.UTC().Format(time.RFC3339Nano))
		query.Set("after_id", last.JobID)
	}
	return get[HistoryPage](ctx, c, PathHistory, query)
}
