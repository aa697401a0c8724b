package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// Bounds of the API.
const (
	maxBody        = 1 << 20
	requestTime    = 5 * time.Second         // for anything
	submitTime     = 250 * time.Millisecond  // the hook gives up much sooner
	decideTime     = 1500 * time.Millisecond // a Prolog waits for 2 s
	pageSize       = 100
	maxPage        = 1000
	contentType    = "application/json"
	maxQueryLength = 4096
	maxFaults      = 20 // of a configuration
)

// Handler is the JSON API. Who calls is what [As] put into the request's
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
//	GET  /v1/savings     epdapi.Savings: treated against held-out runs; since (RFC 3339)
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
	mux := http.NewServeMux()
	for _, r := range c.routes() {
		mux.HandleFunc(r.pattern, func(w http.ResponseWriter, request *http.Request) {
			c.serve(w, request, &r)
		})
	}
	return mux
}

// route is how a path is answered.
type route struct {
	pattern string
	who     tier
	limit   time.Duration
	answer  func(*http.Request) (any, error)
}

func (c *Controller) routes() []route {
	return []route{
		{"POST " + epdapi.PathSubmit, controllers, submitTime, c.postSubmit},
		{"POST " + epdapi.PathDecide, controllers, decideTime, c.postDecide},
		{"POST " + epdapi.PathOutcome, controllers, requestTime, c.postOutcome},
		{"POST " + epdapi.PathOutlook, controllers, requestTime, c.postOutlook},
		{"GET " + epdapi.PathStatus, anybody, requestTime, c.getStatus},
		{"GET " + epdapi.PathJobs, anybody, requestTime, c.getJobs},
		{"GET " + epdapi.PathJobs + "/{id}", anybody, requestTime, c.getJob},
		{"GET " + epdapi.PathJobs + "/{id}" + epdapi.SuffixSeries, anybody, requestTime, c.getSeries},
		{"GET " + epdapi.PathOverview, anybody, requestTime, c.getOverview},
		{"GET " + epdapi.PathDecisions, anybody, requestTime, c.getDecisions},
		{"GET " + epdapi.PathNodes, anybody, requestTime, c.getNodes},
		{"POST " + epdapi.PathReport, controllers, requestTime, c.postReport},
		{"GET " + epdapi.PathModels, operators, requestTime, c.getModels},
		{"GET " + epdapi.PathFit, operators, requestTime, c.getFit},
		{"POST " + epdapi.PathModelsUse, controllers, requestTime, c.postModelsUse},
		{"GET " + epdapi.PathProfiles, operators, requestTime, c.getProfiles},
		{"GET " + epdapi.PathSavings, anybody, requestTime, c.getSavings},
		{"POST " + epdapi.PathEstimate, anybody, requestTime, c.postEstimate},
		{"POST " + epdapi.PathCode, anybody, requestTime, c.postCode},
		{"GET " + epdapi.PathQueue, anybody, queueTime, c.getQueue},
		{"POST " + epdapi.PathHistory, controllers, requestTime, c.postHistory},
		{"GET " + epdapi.PathHistory, anybody, requestTime, c.getHistory},
		{"POST " + epdapi.PathReload, controllers, requestTime, c.postReload},
		{"POST " + epdapi.PathPower, controllers, requestTime, c.postPower},
		{"GET " + epdapi.PathRuns, controllers, requestTime, c.getRuns},
		{"POST " + epdapi.PathForget, controllers, requestTime, c.postForget},
		{"POST " + epdapi.PathRemember, controllers, requestTime, c.postRemember},
	}
}

// serve answers one request within its time.
func (c *Controller) serve(w http.ResponseWriter, r *http.Request, to *route) {
	// A body that comes slowly ends with the time too. Servers that can't do
	// this (in tests) do without.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(to.limit))
	ctx, cancel := context.WithTimeout(r.Context(), to.limit)
	defer cancel()
	r = r.WithContext(ctx)
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	var v any
	err := to.who.admits(CallerOf(ctx))
	if err == nil {
		v, err = to.answer(r)
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
		c.options.Log.Error("an answer can't be written", "path", r.URL.Path, "error", err)
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

// faultOf is an error for whoever asked.
func faultOf(err error) epdapi.Fault {
	fault := epdapi.Fault{Error: slurm.Printable(err.Error(), maxMessage)}
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
	case errors.Is(err, ErrForbidden):
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

func (c *Controller) postSubmit(r *http.Request) (any, error) {
	s, err := slurm.DecodeSubmission(r.Body)
	if err != nil {
		return nil, err
	}
	return c.Submit(r.Context(), &s)
}

func (c *Controller) postDecide(r *http.Request) (any, error) {
	var request epdapi.DecideRequest
	if err := DecodeJSON(r.Body, &request); err != nil {
		return nil, err
	}
	return c.Decide(r.Context(), &request)
}

func (c *Controller) postOutcome(r *http.Request) (any, error) {
	var o record.Outcome
	if err := DecodeJSON(r.Body, &o); err != nil {
		return nil, err
	}
	receipt, err := c.Record(r.Context(), &o)
	if err != nil {
		return nil, err
	}
	return struct {
		Receipt string `json:"receipt"`
	}{receipt.String()}, nil
}

func (c *Controller) getStatus(r *http.Request) (any, error) { return c.Status(r.Context()), nil }

// number reads a parameter that may be missing.
func number(text string, missing, most int64) (int64, error) {
	if text == "" {
		return missing, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%w: %s, want a number from 0 to %d", ErrRequest,
			slurm.Printable(text, 40), most)
	}
	return n, nil
}

// list is never null in JSON.
func list[T any](of []T) []T {
	if of == nil {
		return []T{}
	}
	return of
}

// ModelStanding is how a workload's model fares, for showing.
type ModelStanding = epdapi.ModelStatus

// Standings are how all workloads' models fare.
func (c *Controller) Standings() []ModelStanding {
	all := c.learner.Standings()
	if s, known := c.forecasts.Standing(); known {
		all = append(all, s)
	}
	return all
}

func (c *Controller) getModels(r *http.Request) (any, error) {
	q := r.URL.Query()
	if q.Get("workload") == "" {
		return map[string]any{"models": c.withLastJobs(r.Context(), c.Standings())}, nil
	}
	key := c.keyOf(q)
	versions, err := c.Versions(r.Context(), key)
	if err != nil {
		return nil, err
	}
	return &epdapi.ModelVersions{
		Versions: versions, LastJob: c.lastJobsOf(r.Context(), []string{key.Workload})[key.Workload],
	}, nil
}

// keyOf is the workload on a GPU model that a query names.
func (c *Controller) keyOf(q url.Values) record.WorkloadKey {
	return record.WorkloadKey{
		Cluster: c.options.Cluster, Workload: q.Get("workload"), GPUModel: q.Get("gpu_model"),
	}
}

// Versions are all versions of a workload's model, the newest first. They are for
// operators.
func (c *Controller) Versions(ctx context.Context, key record.WorkloadKey) ([]epdapi.ModelVersion, error) {
	if err := operators.admits(CallerOf(ctx)); err != nil {
		return nil, err
	}
	return c.learner.Versions(ctx, key)
}

func (c *Controller) getSavings(r *http.Request) (any, error) {
	since, err := sinceOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	return c.Savings(r.Context(), since)
}

// sinceOf is the time from which on a query asks; the zero time without one.
func sinceOf(q url.Values) (time.Time, error) { return timeIn(q, "since") }

// timeIn is a time of a query; the zero time where there is none.
func timeIn(q url.Values, key string) (time.Time, error) {
	text := q.Get(key)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %s is %s, want a time such as 2026-01-31T00:00:00Z", ErrRequest,
			key, slurm.Printable(text, 40))
	}
	return at, nil
}
