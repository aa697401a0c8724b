package epdapi

import (
	"context"
	"net/url"
	"strings"
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

// HistoryUpload stores a log in epd by messages that it takes, each of which is on disk once it is
// acknowledged. Client and Timeout, that of a message, must be set.
type HistoryUpload struct {
	Client  *Client
	Timeout time.Duration

	Cluster string // epd's
	Stored  int64  // jobs that epd has now
	Added   int64  // of them, those that it hadn't
	Foreign int64  // of them, those of other clusters than epd's

	jobs []record.HistoryJob
	size int // bound of the message, bytes
}

// maxUploadBytes keeps messages below what epd takes, 1 MiB.
const maxUploadBytes = 900 << 10

// Add adds a job, and sends those before it once a message is full.
func (u *HistoryUpload) Add(ctx context.Context, p *record.HistoryJob) error {
	size := maxJSONSize(p)
	if len(u.jobs) == MaxHistory || u.size+size > maxUploadBytes {
		if err := u.Flush(ctx); err != nil {
			return err
		}
	}
	u.jobs, u.size = append(u.jobs, *p), u.size+size
	return nil
}

// Flush sends the jobs that weren't sent.
func (u *HistoryUpload) Flush(ctx context.Context) error {
	if len(u.jobs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, u.Timeout)
	defer cancel()
	answer, err := u.Client.AddHistory(ctx, &History{Jobs: u.jobs})
	if err != nil {
		return err
	}
	u.Cluster = answer.Cluster
	u.Stored += int64(len(u.jobs))
	u.Added += int64(answer.Added)
	for i := range u.jobs {
		if name := u.jobs[i].Cluster; name != "" && name != answer.Cluster {
			u.Foreign++
		}
	}
	u.jobs, u.size = u.jobs[:0], 0
	return nil
}

// maxJSONSize returns a bound of a job's length in JSON.
func maxJSONSize(p *record.HistoryJob) int {
	const fixed, escaped = 600, 6 // keys, numbers and times; \u001f
	size := fixed + 2*len(p.Name)
	for _, text := range []string{
		p.Cluster, p.JobID, p.User, p.Account, p.Partition, p.QOS, p.GPUModel, p.State,
	} {
		for i := range len(text) {
			if c := text[i]; c < ' ' || c >= 0x7f || strings.IndexByte(`"\<>&`, c) >= 0 {
				size += escaped
			} else {
				size++
			}
		}
	}
	return size
}
