package epdapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// ErrUnreachable tells that nobody answers at the socket.
var ErrUnreachable = errors.New("can't reach epd")

// ErrRequest tells that a request can't be answered as it is; trying again doesn't
// help.
var ErrRequest = errors.New("bad request")

// RefusedError is the answer of an epd that wouldn't or couldn't do what was
// asked.
type RefusedError struct {
	Path   string
	Status int         // of HTTP
	Fault  ErrorAnswer // what it said; empty texts: nothing that makes sense
	answer string      // the status in words
}

// Error says what epd said, as one line.
func (e *RefusedError) Error() string {
	if e.Fault.Error == "" {
		return fmt.Sprintf("%s: epd answers %s", e.Path, slurm.Printable(e.answer, 80))
	}
	return fmt.Sprintf("%s: epd refuses: %s", e.Path, slurm.Printable(e.Fault.Error, 400))
}

// Client asks an epd.
type Client struct {
	sockets []string // or the host alone
	host    string
	http    http.Client
}

// New returns a client of the epd that listens at a socket, or at the first of
// several at which somebody listens that talks to this user.
func New(sockets ...string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		var failed error
		for _, path := range sockets {
			c, err := d.DialContext(ctx, "unix", path)
			if err == nil {
				return c, nil
			}
			failed = errors.Join(failed, err)
		}
		return nil, failed
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	return &Client{sockets: sockets, host: "epd", http: http.Client{Transport: transport}}
}

// NewAgent returns a client of this node's epd, at a socket, or where it listens unless told otherwise.
func NewAgent(socket string) *Client {
	return New(cmp.Or(socket, AgentSocket))
}

// NewRemote returns a client of the controller at HOST:PORT, by a transport that
// proves who asks and who answers.
func NewRemote(host string, transport http.RoundTripper) *Client {
	return &Client{sockets: []string{host}, host: host, http: http.Client{
		Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("a controller never redirects")
		},
	}}
}

// Post sends a message that isn't one of this package's, and reads the answer.
func (c *Client) Post(ctx context.Context, path string, message, answer any) error {
	return c.call(ctx, http.MethodPost, path, message, answer)
}

// unreachableError names the sockets that were tried.
func unreachableError(sockets []string, err error) error {
	switch all := strings.Join(sockets, ", "); {
	case len(sockets) > 1 && errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w at any of %s: %w", ErrUnreachable, all, fs.ErrPermission)
	case len(sockets) > 1:
		return fmt.Errorf("%w at any of %s", ErrUnreachable, all)
	}
	return fmt.Errorf("%w at %s: %w", ErrUnreachable, strings.Join(sockets, ""), err)
}

// Hook tells of a Prolog or an Epilog.
func (c *Client) Hook(ctx context.Context, e *hooks.Event) (hooks.Answer, error) {
	path := PathProlog
	if e.Kind == hooks.Epilog {
		path = PathEpilog
	}
	var answer hooks.Answer
	err := c.call(ctx, http.MethodPost, path, e, &answer)
	return answer, err
}

// Status asks what the epd is doing.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	return get[Status](ctx, c, PathStatus, nil)
}

// Restore gives clocks back.
func (c *Client) Restore(ctx context.Context, r *RestoreRequest) (*RestoreAnswer, error) {
	return post[RestoreAnswer](ctx, c, PathRestore, r)
}

// Jobs lists jobs; the query is that of the path.
func (c *Client) Jobs(ctx context.Context, query url.Values) (*JobPage, error) {
	return get[JobPage](ctx, c, PathJobs, query)
}

// Job tells everything that is known of a job, by its number or as a task of an array, 4_3.
func (c *Client) Job(ctx context.Context, job string) (*JobView, error) {
	return get[JobView](ctx, c, PathJobs+"/"+url.PathEscape(job), nil)
}

// Savings asks what runs saved that ended since a time and before another one; zero times: ever.
func (c *Client) Savings(ctx context.Context, since, until time.Time) (*Savings, error) {
	return get[Savings](ctx, c, PathSavings, periodQuery(since, until))
}

// Queue asks for Slurm's queue.
func (c *Client) Queue(ctx context.Context) (*Queue, error) {
	return get[Queue](ctx, c, PathQueue, nil)
}

// Estimate asks what a submission would take, with what is known of its code, on one
// GPU model or, if that is empty, on all.
func (c *Client) Estimate(ctx context.Context, s *CodeRequest, gpuModel string) (*Estimate, error) {
	path := PathEstimate
	if gpuModel != "" {
		path += "?" + url.Values{"gpu_model": {gpuModel}}.Encode()
	}
	return post[Estimate](ctx, c, path, s)
}

// Reload has the configuration read again.
func (c *Client) Reload(ctx context.Context) (*ReloadAnswer, error) {
	return post[ReloadAnswer](ctx, c, PathReload, nil)
}

func get[T any](ctx context.Context, c *Client, path string, query url.Values) (*T, error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	var answer T
	if err := c.call(ctx, http.MethodGet, path, nil, &answer); err != nil {
		return nil, err
	}
	return &answer, nil
}

func post[T any](ctx context.Context, c *Client, path string, message any) (*T, error) {
	var answer T
	if err := c.call(ctx, http.MethodPost, path, message, &answer); err != nil {
		return nil, err
	}
	return &answer, nil
}

// call sends a message and reads the answer. Its error is ErrUnreachable when
// nobody answered within the context's time.
func (c *Client) call(ctx context.Context, method, path string, message, answer any) error {
	var body io.Reader = http.NoBody
	if message != nil {
		data, err := json.Marshal(message)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		body = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+c.host+path, body)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if message != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return unreachableError(c.sockets, err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	data, err := io.ReadAll(io.LimitReader(response.Body, MaxMessage+1))
	switch {
	case err != nil:
		return unreachableError(c.sockets, err)
	case len(data) > MaxMessage:
		return fmt.Errorf("%s: the answer has more than %d bytes", path, MaxMessage)
	case response.StatusCode != http.StatusOK:
		refused := &RefusedError{Path: path, Status: response.StatusCode, answer: response.Status}
		if err := json.Unmarshal(data, &refused.Fault); err != nil {
			refused.Fault = ErrorAnswer{}
		}
		return refused
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("%s: the answer makes no sense: %w", path, err)
	}
	return nil
}
