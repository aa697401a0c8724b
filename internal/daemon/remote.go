package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// Remote is a controller on another machine, or the first of several that
// answers.
type Remote struct {
	hosts  []string
	client http.Client
	last   atomic.Int64 // who answered last
}

var _ Controller = (*Remote)(nil)

// NewRemote asks the controllers at addresses HOST:PORT, by a transport that
// proves who asks and who answers.
func NewRemote(hosts []string, transport http.RoundTripper) *Remote {
	return &Remote{hosts: hosts, client: http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("a controller never redirects") },
	}}
}

// Decide asks for a run's clocks.
func (r *Remote) Decide(ctx context.Context, q *control.DecideRequest) (control.Decision, error) {
	var d control.Decision
	return d, r.ask(ctx, "/v1/decide", q, &d)
}

// Outlook asks what is known by now of a run.
func (r *Remote) Outlook(ctx context.Context, q control.OutlookRequest) (control.Outlook, error) {
	var o control.Outlook
	return o, r.ask(ctx, "/v1/outlook", q, &o)
}

// Record hands an outcome over.
func (r *Remote) Record(ctx context.Context, o *record.Outcome) error {
	var receipt struct {
		Receipt string `json:"receipt"`
	}
	err := r.ask(ctx, "/v1/outcome", o, &receipt)
	refused, answered := errors.AsType[*refusal](err)
	switch {
	case errors.Is(err, munge.ErrTooLong): // it never left
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case !answered || !refused.lasts():
		return err
	case refused.status == http.StatusTooEarly:
		return fmt.Errorf("%w: %w", control.ErrNotYet, err)
	}
	return fmt.Errorf("%w: %w", ErrRefused, err)
}

// refusal is an authentic answer that isn't what was asked for.
type refusal struct {
	status int
	why    string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("the controller answers %d: %s", r.status, r.why)
}

// lasts tells whether it is about the question: another controller would say the
// same. Otherwise it is about this controller, whose clock may be wrong or whose
// store may be full.
func (r *refusal) lasts() bool {
	switch r.status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusTooEarly:
		return true
	}
	return false
}

// ask asks one controller after the other, beginning with the one that
// answered last, until one answers. Each has its part of the time that is left.
func (r *Remote) ask(ctx context.Context, path string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	var errs []error
	first := r.last.Load()
	for i := range r.hosts {
		at := (int(first) + i) % len(r.hosts)
		bound, cancel := part(ctx, len(r.hosts)-i)
		err := r.askOne(bound, r.hosts[at], path, body, answer)
		cancel()
		refused, answered := errors.AsType[*refusal](err)
		if err == nil || answered && refused.lasts() {
			r.last.Store(int64(at))
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// part is one of so many equal parts of the time that a context leaves.
func part(ctx context.Context, parts int) (context.Context, context.CancelFunc) {
	end, bounded := ctx.Deadline()
	if !bounded || parts <= 1 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(parts))
}

func (r *Remote) askOne(ctx context.Context, host, path string, body []byte, answer any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+host+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := r.client.Do(request)
	if err != nil {
		return fmt.Errorf("controller %s: %w", host, err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	data, err := io.ReadAll(io.LimitReader(response.Body, epdapi.MaxMessage+1))
	switch {
	case err != nil:
		return fmt.Errorf("controller %s: %w", host, err)
	case len(data) > epdapi.MaxMessage:
		return fmt.Errorf("controller %s: the answer has more than %d bytes", host, epdapi.MaxMessage)
	case response.StatusCode != http.StatusOK:
		var f epdapi.Fault
		_ = json.Unmarshal(data, &f) // what isn't one has no reason
		return &refusal{response.StatusCode, slurm.Printable(f.Error, 400)}
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("controller %s: the answer makes no sense: %w", host, err)
	}
	return nil
}
