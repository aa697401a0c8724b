package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/live"
)

// RemoteController is a controller on another machine, or the first of several that
// answers.
type RemoteController struct {
	hosts []*epdapi.Client
	last  atomic.Int64 // who answered last
}

var _ Controller = (*RemoteController)(nil)

// NewRemoteController asks the controllers at addresses HOST:PORT, by a transport that
// proves who asks and who answers.
func NewRemoteController(hosts []string, transport http.RoundTripper) *RemoteController {
	r := &RemoteController{}
	for _, host := range hosts {
		r.hosts = append(r.hosts, epdapi.NewRemote(host, transport))
	}
	return r
}

// Decide asks for a run's clocks.
func (r *RemoteController) Decide(ctx context.Context, q *epdapi.DecideRequest) (live.Decision, error) {
	var d live.Decision
	err := r.ask(ctx, epdapi.PathDecide, q, &d)
	return d, err
}

// Outlook asks what is known by now of a run.
func (r *RemoteController) Outlook(ctx context.Context, q epdapi.OutlookRequest) (live.Outlook, error) {
	var o live.Outlook
	err := r.ask(ctx, epdapi.PathOutlook, q, &o)
	return o, err
}

// Report tells how the node fares.
func (r *RemoteController) Report(
	ctx context.Context, report *epdapi.NodeReport,
) (epdapi.ReportAnswer, error) {
	var answer epdapi.ReportAnswer
	err := r.ask(ctx, epdapi.PathReport, report, &answer)
	return answer, err
}

// Lease asks for power limits under a budget.
func (r *RemoteController) Lease(
	ctx context.Context, request *epdapi.LeaseRequest,
) (epdapi.LeaseAnswer, error) {
	var answer epdapi.LeaseAnswer
	err := r.ask(ctx, epdapi.PathLease, request, &answer)
	return answer, err
}

// Record hands an outcome over as it is.
func (r *RemoteController) Record(ctx context.Context, outcome []byte) error {
	if !json.Valid(outcome) {
		return fmt.Errorf("%w: it isn't JSON", ErrRefused)
	}
	var receipt struct {
		Receipt string `json:"receipt"`
	}
	err := r.ask(ctx, epdapi.PathOutcome, json.RawMessage(outcome), &receipt)
	refused, answered := errors.AsType[*epdapi.RefusedError](err)
	switch {
	case errors.Is(err, munge.ErrTooLong): // it never left
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case !answered || !isFinal(refused):
		return err
	case refused.Status == http.StatusTooEarly:
		return fmt.Errorf("%w: %w", control.ErrNotYet, err)
	}
	return fmt.Errorf("%w: %w", ErrRefused, err)
}

// isFinal reports whether a refusal is about the question: another controller would
// say the same. Otherwise it is about this controller, whose clock may be wrong
// or whose store may be full.
func isFinal(r *epdapi.RefusedError) bool {
	switch r.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusTooEarly:
		return true
	}
	return false
}

// ask asks one controller after the other, beginning with the one that
// answered last, until one answers. Each has its part of the time that is left.
func (r *RemoteController) ask(ctx context.Context, path string, question, answer any) error {
	var errs []error
	first := r.last.Load()
	for i := range r.hosts {
		at := (int(first) + i) % len(r.hosts)
		bound, cancel := partOfTime(ctx, len(r.hosts)-i)
		err := r.hosts[at].Post(bound, path, question, answer)
		cancel()
		refused, answered := errors.AsType[*epdapi.RefusedError](err)
		if err == nil || answered && isFinal(refused) {
			r.last.Store(int64(at))
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// partOfTime returns one of so many equal parts of the time that a context leaves.
func partOfTime(ctx context.Context, parts int) (context.Context, context.CancelFunc) {
	end, bounded := ctx.Deadline()
	if !bounded || parts <= 1 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(parts))
}
