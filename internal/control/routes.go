package control

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/forecast"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// route is how a path is answered.
type route struct {
	pattern string
	who     query.Tier
	limit   time.Duration
	answer  func(*http.Request, query.Caller) (any, error)
}

func (c *Controller) routes() []route {
	return []route{
		{"POST " + epdapi.PathSubmit, query.Controllers, submitTime, forAll(c.postSubmit)},
		{"POST " + epdapi.PathDecide, query.Controllers, decideTime, forAll(c.postDecide)},
		{"POST " + epdapi.PathOutcome, query.Controllers, requestTime, forAll(c.postOutcome)},
		{"POST " + epdapi.PathOutlook, query.Controllers, requestTime, forAll(c.postOutlook)},
		{"GET " + epdapi.PathStatus, query.Anybody, requestTime, c.getStatus},
		{"GET " + epdapi.PathJobs, query.Anybody, requestTime, c.getJobs},
		{"GET " + epdapi.PathJobs + "/{id}", query.Anybody, requestTime, c.getJob},
		{"GET " + epdapi.PathJobs + "/{id}" + epdapi.SuffixSeries, query.Anybody, requestTime, c.getSeries},
		{"GET " + epdapi.PathOverview, query.Anybody, requestTime, c.getOverview},
		{"GET " + epdapi.PathDecisions, query.Anybody, requestTime, c.getDecisions},
		{"GET " + epdapi.PathNodes, query.Anybody, requestTime, c.getNodes},
		{"POST " + epdapi.PathReport, query.Controllers, requestTime, forAll(c.postReport)},
		{"GET " + epdapi.PathModels, query.Operators, requestTime, c.getModels},
		{"GET " + epdapi.PathFit, query.Operators, requestTime, c.getFit},
		{"POST " + epdapi.PathModelsUse, query.Controllers, requestTime, c.postModelsUse},
		{"GET " + epdapi.PathProfiles, query.Operators, requestTime, c.getProfiles},
		{"GET " + epdapi.PathSavings, query.Anybody, requestTime, c.getSavings},
		{"POST " + epdapi.PathEstimate, query.Anybody, requestTime, c.postEstimate},
		{"POST " + epdapi.PathCode, query.Anybody, requestTime, c.postCode},
		{"GET " + epdapi.PathQueue, query.Anybody, queueTime, c.getQueue},
		{"POST " + epdapi.PathHistory, query.Controllers, requestTime, c.postHistory},
		{"GET " + epdapi.PathHistory, query.Anybody, requestTime, c.getHistory},
		{"POST " + epdapi.PathReload, query.Controllers, requestTime, c.postReload},
		{"POST " + epdapi.PathPower, query.Controllers, requestTime, forAll(c.postPower)},
		{"GET " + epdapi.PathRuns, query.Controllers, requestTime, c.getRuns},
		{"POST " + epdapi.PathForget, query.Controllers, requestTime, c.postForget},
		{"POST " + epdapi.PathRemember, query.Controllers, requestTime, c.postRemember},
	}
}

// forAll is an answer that is the same for all who may ask.
func forAll(answer func(*http.Request) (any, error)) func(*http.Request, query.Caller) (any, error) {
	return func(r *http.Request, _ query.Caller) (any, error) { return answer(r) }
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

func (c *Controller) getStatus(r *http.Request, who query.Caller) (any, error) {
	return c.query.Status(r.Context(), who), nil
}

func (c *Controller) getOverview(r *http.Request, who query.Caller) (any, error) {
	return c.query.Overview(r.Context(), who)
}

func (c *Controller) getQueue(r *http.Request, who query.Caller) (any, error) {
	return c.query.Queue(r.Context(), who)
}

func (c *Controller) getNodes(r *http.Request, who query.Caller) (any, error) {
	return c.query.Nodes(r.Context(), who), nil
}

func (c *Controller) getJobs(r *http.Request, who query.Caller) (any, error) {
	asked, err := query.ParseJobs(r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	return c.query.Jobs(r.Context(), who, asked)
}

func (c *Controller) getJob(r *http.Request, who query.Caller) (any, error) {
	id, err := c.numberOf(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return c.query.Job(r.Context(), who, id)
}

func (c *Controller) getSeries(r *http.Request, who query.Caller) (any, error) {
	id, err := c.numberOf(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return c.query.Series(r.Context(), who, id)
}

func (c *Controller) getDecisions(r *http.Request, who query.Caller) (any, error) {
	q := r.URL.Query()
	before, err := query.ParseNumber(q.Get("before"), 0, 1<<62)
	if err != nil {
		return nil, err
	}
	limit, err := query.ParseLimit(q.Get("limit"))
	if err != nil {
		return nil, err
	}
	return c.query.Decisions(r.Context(), who, q.Get("mode"), before, limit)
}

func (c *Controller) getModels(r *http.Request, who query.Caller) (any, error) {
	q := r.URL.Query()
	if q.Get("workload") == "" {
		return c.query.Models(r.Context(), who)
	}
	return c.query.ModelVersions(r.Context(), who, q.Get("workload"), q.Get("gpu_model"))
}

func (c *Controller) getFit(r *http.Request, who query.Caller) (any, error) {
	q := r.URL.Query()
	return c.query.Fit(r.Context(), who, q.Get("workload"), q.Get("gpu_model"))
}

func (c *Controller) postModelsUse(r *http.Request, who query.Caller) (any, error) {
	var m epdapi.ModelChoice
	if err := decodeJSON(r.Body, &m, true); err != nil { // people write it: a slip must not choose version 0
		return nil, err
	}
	return c.query.UseModel(r.Context(), who, &m)
}

func (c *Controller) getProfiles(r *http.Request, who query.Caller) (any, error) {
	return c.query.Profiles(r.Context(), who, r.URL.Query().Get("workload"))
}

func (c *Controller) getSavings(r *http.Request, who query.Caller) (any, error) {
	since, err := query.ParseTime(r.URL.Query(), "since")
	if err != nil {
		return nil, err
	}
	return c.query.Savings(r.Context(), who, since)
}

func (c *Controller) postEstimate(r *http.Request, who query.Caller) (any, error) {
	if len(r.URL.RawQuery) > query.MaxQueryLength {
		return nil, query.ErrLongQuery
	}
	s, code, err := decodeCode(r.Body)
	if err != nil {
		return nil, err
	}
	return c.query.Estimate(r.Context(), who, &s, code, r.URL.Query().Get("gpu_model")), nil
}

func (c *Controller) postCode(r *http.Request, who query.Caller) (any, error) {
	s, code, err := decodeCode(r.Body)
	if err != nil {
		return nil, err
	}
	return c.query.Code(r.Context(), who, &s, code)
}

func (c *Controller) postHistory(r *http.Request, who query.Caller) (any, error) {
	var h epdapi.History
	if err := DecodeJSON(r.Body, &h); err != nil {
		return nil, err
	}
	return c.query.AddHistory(r.Context(), who, &h)
}

func (c *Controller) getHistory(r *http.Request, who query.Caller) (any, error) {
	q := r.URL.Query()
	asked := query.HistoryQuery{AfterID: q.Get("after_id")}
	var err error
	if asked.Since, err = query.ParseTime(q, "since"); err != nil {
		return nil, err
	}
	if asked.After, err = query.ParseTime(q, "after"); err != nil {
		return nil, err
	}
	return c.query.History(r.Context(), who, &asked)
}

func (c *Controller) postReload(r *http.Request, who query.Caller) (any, error) {
	return c.query.Reload(r.Context(), who)
}

func (c *Controller) getRuns(r *http.Request, who query.Caller) (any, error) {
	q := r.URL.Query()
	asked := query.RunQuery{
		Run: q.Get("run"), Node: q.Get("node"), Conflicts: q.Get("conflicts") == "true",
	}
	var err error
	if asked.Job, err = query.ParseNumber(q.Get("job"), 0, maxJob); err != nil {
		return nil, err
	}
	if asked.Since, err = query.ParseTime(q, "since"); err != nil {
		return nil, err
	}
	if asked.Until, err = query.ParseTime(q, "until"); err != nil {
		return nil, err
	}
	if asked.After, err = query.ParseNumber(q.Get("after"), 0, 1<<62); err != nil {
		return nil, err
	}
	return c.query.RecordedRuns(r.Context(), who, &asked)
}

func (c *Controller) postForget(r *http.Request, who query.Caller) (any, error) {
	var ids epdapi.RunIDs
	if err := decodeJSON(r.Body, &ids, true); err != nil {
		return nil, err
	}
	return c.query.Forget(r.Context(), who, &ids)
}

func (c *Controller) postRemember(r *http.Request, who query.Caller) (any, error) {
	var back epdapi.RunList
	if err := decodeJSON(r.Body, &back, true); err != nil {
		return nil, err
	}
	return c.query.Remember(r.Context(), who, back.Runs)
}

// decodeCode reads a submission and what comes with it of its code; nil: nothing.
func decodeCode(r io.Reader) (slurm.Submission, *epdapi.Code, error) {
	data, err := io.ReadAll(io.LimitReader(r, slurm.MaxMessage+1)) // DecodeSubmission refuses more
	if err != nil {
		return slurm.Submission{}, nil, err
	}
	s, err := slurm.DecodeSubmission(bytes.NewReader(data))
	if err != nil {
		return s, nil, err
	}
	var more struct {
		Code *epdapi.Code `json:"code"`
	}
	if err := DecodeJSON(bytes.NewReader(data), &more); err != nil {
		return s, nil, err
	}
	if more.Code != nil {
		if err := forecast.CheckCode(more.Code); err != nil {
			return s, more.Code, fmt.Errorf("%w: %w", ErrRequest, err)
		}
	}
	return s, more.Code, nil
}
