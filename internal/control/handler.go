package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// Bounds of the API.
const (
	maxBody     = 1 << 20
	requestTime = 5 * time.Second         // for anything
	queueTime   = 10 * time.Second        // the queue, or a period, may be long
	submitTime  = 250 * time.Millisecond  // the hook gives up much sooner
	decideTime  = 1500 * time.Millisecond // a Prolog waits for 2 s
	contentType = "application/json"
	maxFaults   = 20 // of a configuration
)

// Handler returns the JSON API. Who calls is what [query.WithCaller] put into the request's
// context; whoever serves it sees to that.
//
//	POST /v1/submit      slurm.Submission → slurm.SubmitAnswer (control)
//	POST /v1/decide      epdapi.DecideRequest → Decision (control)
//	POST /v1/outcome     record.Outcome → {"receipt": …}; 425: not yet, see Retry-After (control)
//	POST /v1/outlook     epdapi.OutlookRequest → Outlook (control)
//	GET  /v1/status      Status
//	GET  /v1/overview    epdapi.Overview
//	GET  /v1/jobs        epdapi.JobPage, newest first: user, account, partition, state, workload, since, before, limit
//	GET  /v1/jobs/{id}   epdapi.JobView
//	GET  /v1/jobs/{id}/series  epdapi.JobSeries
//	GET  /v1/decisions   epdapi.DecisionList, newest first: mode, before, limit
//	GET  /v1/nodes       epdapi.NodeList
//	POST /v1/report      epdapi.NodeReport → epdapi.ReportAnswer (control)
//	GET  /v1/models      models in use; with workload and gpu_model all versions (operators)
//	GET  /v1/models/fit  epdapi.ModelFit: workload, gpu_model (operators)
//	POST /v1/models/use  ModelChoice → ModelStanding (control)
//	GET  /v1/profiles    epdapi.ProfileList: of one workload, or of those that ran last (operators)
//	GET  /v1/usage       epdapi.Usage: what runs used; since, until (RFC 3339), by
//	GET  /v1/savings     epdapi.Savings: treated against held-out runs; since, until (RFC 3339)
//	POST /v1/estimate    slurm.Submission → epdapi.Estimate; gpu_model
//	POST /v1/code        epdapi.CodeRequest → epdapi.CodeAnswer
//	GET  /v1/queue       epdapi.Queue
//	POST /v1/history     epdapi.History → epdapi.HistoryAdded (control)
//	GET  /v1/history     epdapi.HistoryPage, by submission: since, after, after_id
//	POST /v1/reload      epdapi.ReloadAnswer (control)
//	POST /v1/power       epdapi.PowerEvent → {} (control)
//	GET  /v1/runs        epdapi.RunPage, as recorded: run, job or node; since, until, conflicts, after (control)
//	POST /v1/runs/forget    epdapi.RunIDs → epdapi.RunsChanged (control)
//	POST /v1/runs/remember  epdapi.RunList → epdapi.RunsChanged (control)
//
// Users see their own jobs only; those of others look as if they weren't there.
// Errors are {"error": …}: 400 and 413 for a request that will never do, 403,
// 404, and 503 for one that may be tried again.
func (c *Controller) Handler() http.Handler {
	a := &api{controller: c, query: c.Queries, log: c.options.Log}
	mux := http.NewServeMux()
	for _, r := range a.routes() {
		mux.HandleFunc(r.pattern, func(w http.ResponseWriter, request *http.Request) {
			a.serve(w, request, &r)
		})
	}
	return mux
}

// serve answers one request within its time.
func (a *api) serve(w http.ResponseWriter, r *http.Request, to *route) {
	// A body that comes slowly ends with the time too. Servers that can't do
	// this (in tests) do without.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(to.limit))
	ctx, cancel := context.WithTimeout(r.Context(), to.limit)
	defer cancel()
	r = r.WithContext(ctx)
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	var v any
	who := query.CallerOf(ctx)
	err := to.who.Admits(who)
	if err == nil {
		v, err = to.answer(r, who)
	}
	status := http.StatusOK
	if err != nil {
		status = statusOf(err)
		v = faultOf(err)
		if status == http.StatusTooEarly {
			w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
		}
	}
	var out bytes.Buffer
	if err := json.NewEncoder(&out).Encode(v); err != nil {
		a.log.Error("an answer can't be written", "path", r.URL.Path, "error", err)
		http.Error(w, `{"error":"internal error"}`, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // the caller may have gone
}

// ErrNotYet tells that an outcome can't be recorded before Slurm has said how
// its job ended. Whoever sends it tries again.
var ErrNotYet = errors.New("not yet")

// retryAfter is when to try again.
const retryAfter = 5 * time.Second

// Refused is why something that was asked can't be answered, as the JSON interface says
// it.
func Refused(path string, err error) *epdapi.RefusedError {
	return &epdapi.RefusedError{Path: path, Status: statusOf(err), Fault: faultOf(err)}
}

// faultOf returns an error for whoever asked.
func faultOf(err error) epdapi.ErrorAnswer {
	fault := epdapi.ErrorAnswer{Error: slurm.Printable(err.Error(), maxMessage)}
	if wrong, ok := errors.AsType[*config.FileError](err); ok {
		for _, each := range wrong.Faults[:min(len(wrong.Faults), maxFaults)] {
			fault.Faults = append(fault.Faults, slurm.Printable(each.Error(), maxMessage))
		}
	}
	return fault
}

func statusOf(err error) int {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, ErrRequest), errors.Is(err, record.ErrInvalid), errors.Is(err, slurm.ErrInvalid):
		return http.StatusBadRequest
	case errors.Is(err, query.ErrForbidden):
		return http.StatusForbidden
	case errors.Is(err, store.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, ErrNotYet):
		return http.StatusTooEarly
	}
	return http.StatusServiceUnavailable
}

// DecodeJSON reads one JSON value in UTF-8, and nothing behind it. Fields that
// aren't known are passed over: agents may be newer than their controller. Its
// errors are [ErrRequest], or those of the reader.
func DecodeJSON(r io.Reader, into any) error { return decodeJSON(r, into, false) }

// decodeJSON is [DecodeJSON]; strictly, there may be no unknown field.
func decodeJSON(r io.Reader, into any, strictly bool) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return badJSON(err)
	}
	if !utf8.Valid(text) {
		return fmt.Errorf("%w: it isn't UTF-8", ErrRequest)
	}
	in := json.NewDecoder(bytes.NewReader(text))
	if strictly {
		in.DisallowUnknownFields()
	}
	if err := in.Decode(into); err != nil {
		return badJSON(err)
	}
	switch _, err := in.Token(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return badJSON(err)
	}
	return fmt.Errorf("%w: more than one JSON value", ErrRequest)
}

func badJSON(err error) error {
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrRequest, err)
}
