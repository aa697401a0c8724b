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
)

// Handler is the JSON API. It doesn't ask who calls: whoever serves it does.
//
//	POST /v1/submit      slurm.Submission → slurm.SubmitAnswer
//	POST /v1/decide      DecideRequest → Decision
//	POST /v1/outcome     record.Outcome → {"receipt": …}
//	GET  /v1/status      Status
//	GET  /v1/jobs        jobs, newest first: user, account, partition, state, workload, before, limit
//	GET  /v1/jobs/{id}   the job with its decisions and outcomes
//	GET  /v1/models      models in use; with workload and gpu_model all versions
//	GET  /v1/savings     treated against held-out runs; since (RFC 3339)
//
// Errors are {"error": …}: 400 and 413 for a request that will never do, 404,
// and 503 for one that may be tried again.
func (c *Controller) Handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, limit time.Duration, answer func(*http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { c.serve(w, r, limit, answer) })
	}
	handle("POST /v1/submit", submitTime, c.postSubmit)
	handle("POST /v1/decide", decideTime, c.postDecide)
	handle("POST /v1/outcome", requestTime, c.postOutcome)
	handle("GET /v1/status", requestTime, func(r *http.Request) (any, error) { return c.Status(r.Context()), nil })
	handle("GET /v1/jobs", requestTime, c.getJobs)
	handle("GET /v1/jobs/{id}", requestTime, c.getJob)
	handle("GET /v1/models", requestTime, c.getModels)
	handle("GET /v1/savings", requestTime, c.getSavings)
	return mux
}

// serve answers one request within its time.
func (c *Controller) serve(w http.ResponseWriter, r *http.Request, limit time.Duration, answer func(*http.Request) (any, error)) {
	// A body that comes slowly ends with the time too. Servers that can't do
	// this (in tests) do without.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit))
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	r = r.WithContext(ctx)
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	v, err := answer(r)
	status := http.StatusOK
	if err != nil {
		status = statusOf(err)
		v = failure{slurm.Printable(err.Error(), maxMessage)}
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

type failure struct {
	Error string `json:"error"`
}

func statusOf(err error) int {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, ErrRequest), errors.Is(err, record.ErrInvalid), errors.Is(err, slurm.ErrInvalid):
		return http.StatusBadRequest
	case errors.Is(err, store.ErrNotFound):
		return http.StatusNotFound
	}
	return http.StatusServiceUnavailable
}

// DecodeJSON reads one JSON value with known fields only, in UTF-8, and nothing
// behind it. Its errors are [ErrRequest], or those of the reader.
func DecodeJSON(r io.Reader, into any) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return badJSON(err)
	}
	if !utf8.Valid(text) {
		return fmt.Errorf("%w: it isn't UTF-8", ErrRequest)
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
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
	var request DecideRequest
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

func (c *Controller) getJobs(r *http.Request) (any, error) {
	if len(r.URL.RawQuery) > maxQueryLength {
		return nil, fmt.Errorf("%w: the query is too long", ErrRequest)
	}
	q := r.URL.Query()
	before, err := number(q.Get("before"), 0, 1<<62)
	if err != nil {
		return nil, err
	}
	limit, err := number(q.Get("limit"), pageSize, maxPage)
	if err != nil {
		return nil, err
	}
	filter := store.JobFilter{
		Cluster: c.options.Cluster, User: q.Get("user"), Account: q.Get("account"), Partition: q.Get("partition"),
		Workload: q.Get("workload"), State: q.Get("state"),
	}
	page, err := c.options.Store.Jobs(r.Context(), &filter, before, int(max(1, limit)))
	if err != nil {
		return nil, err
	}
	return struct {
		Jobs []record.Job `json:"jobs"`
		Next int64        `json:"next"`
	}{list(page.Jobs), page.Next}, nil
}

// number reads a parameter that may be missing.
func number(text string, missing, most int64) (int64, error) {
	if text == "" {
		return missing, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%w: %s, want a number from 0 to %d", ErrRequest, slurm.Printable(text, 40), most)
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

func (c *Controller) getJob(r *http.Request) (any, error) {
	id, err := slurm.ParseJobID(r.PathValue("id"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	var answer struct {
		Job       *record.Job       `json:"job"`
		Decisions []record.Decision `json:"decisions"`
		Outcomes  []record.Outcome  `json:"outcomes"`
	}
	job, err := c.options.Store.Job(r.Context(), c.options.Cluster, int64(id))
	switch {
	case err == nil:
		answer.Job = &job
	case !errors.Is(err, store.ErrNotFound):
		return nil, err
	}
	if answer.Decisions, err = c.options.Store.DecisionsOfJob(r.Context(), c.options.Cluster, int64(id)); err != nil {
		return nil, err
	}
	if answer.Outcomes, err = c.options.Store.OutcomesOfJob(r.Context(), c.options.Cluster, int64(id)); err != nil {
		return nil, err
	}
	if answer.Job == nil && len(answer.Decisions) == 0 && len(answer.Outcomes) == 0 {
		return nil, fmt.Errorf("job %d: %w", id, store.ErrNotFound)
	}
	answer.Decisions, answer.Outcomes = list(answer.Decisions), list(answer.Outcomes)
	return answer, nil
}

// ModelStanding is how a workload's model fares, for showing.
type ModelStanding struct {
	record.WorkloadKey
	Version int64  `json:"version"` // 0: none is in use
	Prior   bool   `json:"prior"`
	Samples int    `json:"samples"`
	Missed  int    `json:"missed"` // runs in a row
	Pinned  bool   `json:"pinned"`
	Note    string `json:"note,omitempty"`
}

// Standings are how all workloads' models fare.
func (c *Controller) Standings() []ModelStanding {
	keys := c.models.keys()
	all := make([]ModelStanding, 0, len(keys))
	for _, key := range keys {
		s := ModelStanding{WorkloadKey: key}
		c.models.change(key, func(st *standing) {
			s.Missed, s.Pinned, s.Note = st.off, st.pinned, st.note
			if m := st.model; m != nil {
				s.Version, s.Prior, s.Samples = m.version, m.shape.Prior, m.samples
			}
		})
		all = append(all, s)
	}
	return all
}

func (c *Controller) getModels(r *http.Request) (any, error) {
	q := r.URL.Query()
	if q.Get("workload") == "" {
		return map[string]any{"models": c.Standings()}, nil
	}
	key := record.WorkloadKey{Cluster: c.options.Cluster, Workload: q.Get("workload"), GPUModel: q.Get("gpu_model")}
	versions, err := c.options.Store.Models(r.Context(), key)
	if err != nil {
		return nil, err
	}
	return map[string]any{"versions": list(versions)}, nil
}

func (c *Controller) getSavings(r *http.Request) (any, error) {
	var since time.Time
	if text := r.URL.Query().Get("since"); text != "" {
		var err error
		if since, err = time.Parse(time.RFC3339, text); err != nil {
			return nil, fmt.Errorf("%w: since is %s, want a time such as 2026-01-31T00:00:00Z", ErrRequest, slurm.Printable(text, 40))
		}
	}
	return c.Savings(r.Context(), since)
}
