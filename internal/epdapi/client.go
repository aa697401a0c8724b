package epdapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/epplan/epplan/slurm"
)

// ErrUnreachable tells that nobody answers at the socket.
var ErrUnreachable = errors.New("can't reach epd")

// Client asks an epd.
type Client struct {
	socket string
	http   http.Client
}

// New is a client of the epd that listens at a socket.
func New(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	return &Client{socket: socket, http: http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Hook tells of a Prolog or an Epilog.
func (c *Client) Hook(ctx context.Context, e *slurm.HookEvent) (slurm.HookAnswer, error) {
	path := PathProlog
	if e.Kind == slurm.Epilog {
		path = PathEpilog
	}
	var answer slurm.HookAnswer
	err := c.call(ctx, http.MethodPost, path, e, &answer)
	return answer, err
}

// Status asks what the epd is doing.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	var s Status
	if err := c.call(ctx, http.MethodGet, PathStatus, nil, &s); err != nil {
		return nil, err
	}
	return &s, nil
}

// Restore gives clocks back.
func (c *Client) Restore(ctx context.Context, r *RestoreRequest) (*RestoreAnswer, error) {
	var answer RestoreAnswer
	if err := c.call(ctx, http.MethodPost, PathRestore, r, &answer); err != nil {
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
	request, err := http.NewRequestWithContext(ctx, method, "http://epd"+path, body)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("%w at %s: %w", ErrUnreachable, c.socket, err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	data, err := io.ReadAll(io.LimitReader(response.Body, MaxMessage+1))
	switch {
	case err != nil:
		return fmt.Errorf("%w at %s: %w", ErrUnreachable, c.socket, err)
	case len(data) > MaxMessage:
		return fmt.Errorf("%s: the answer has more than %d bytes", path, MaxMessage)
	case response.StatusCode != http.StatusOK:
		return refusal(path, response.Status, data)
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("%s: the answer makes no sense: %w", path, err)
	}
	return nil
}

func refusal(path, status string, data []byte) error {
	var f Fault
	if err := json.Unmarshal(data, &f); err != nil || f.Error == "" {
		return fmt.Errorf("%s: epd answers %s", path, slurm.Printable(status, 80))
	}
	return fmt.Errorf("%s: epd refuses: %s", path, slurm.Printable(f.Error, 400))
}
