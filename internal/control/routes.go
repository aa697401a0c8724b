package control

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/forecast"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// logNodes bounds how many nodes' troubles one call of Slurm's puts in the log.
const logNodes = 20

// api answers over HTTP: it reads what a request asks, asks the controller or what
// answers questions, and writes what they say.
type api struct {
	controller *Controller
	query      *query.Service
	log        *slog.Logger
}

// route is how a path is answered.
type route struct {
	pattern string
	who     query.Tier
	limit   time.Duration
	answer  func(*http.Request, query.Caller) (any, error)
}

// routes returns what the API answers.
func (a *api) routes() []route {
	return []route{
		{"POST " + epdapi.PathSubmit, query.Administrators, submitTime, sameForAll(a.postSubmit)},
		{"POST " + epdapi.PathDecide, query.Agents, decideTime, a.postDecide},
		{"POST " + epdapi.PathOutcome, query.Agents, requestTime, a.postOutcome},
		{"POST " + epdapi.PathOutlook, query.Agents, requestTime, a.postOutlook},
		{"GET " + epdapi.PathStatus, query.Anybody, requestTime, a.getStatus},
		{"GET " + epdapi.PathJobs, query.Anybody, requestTime, a.getJobs},
		{"GET " + epdapi.PathJobs + "/{id}", query.Anybody, requestTime, a.getJob},
		{"GET " + epdapi.PathJobs + "/{id}" + epdapi.SuffixSeries, query.Anybody, requestTime, a.getSeries},
		{"GET " + epdapi.PathOverview, query.Anybody, requestTime, plain(a.query.Overview)},
		{"GET " + epdapi.PathDecisions, query.Anybody, requestTime, a.getDecisions},
		{"GET " + epdapi.PathNodes, query.Anybody, requestTime, a.getNodes},
		{"POST " + epdapi.PathReport, query.Agents, requestTime, a.postReport},
		{"POST " + epdapi.PathLease, query.Agents, requestTime, a.postLease},
		{"GET " + epdapi.PathBudget, query.Anybody, requestTime, a.getBudgets},
		{"POST " + epdapi.PathBudget, query.Administrators, requestTime, a.postBudget},
		{"POST " + epdapi.PathBudgetCancel, query.Administrators, requestTime, sameForAll(a.postBudgetCancel)},
		{"GET " + epdapi.PathModels, query.Operators, requestTime, a.getModels},
		{"GET " + epdapi.PathFit, query.Operators, requestTime, a.getFit},
		{"POST " + epdapi.PathModelsUse, query.Administrators, requestTime, posted(a.query.UseModel, true)},
		{"GET " + epdapi.PathProfiles, query.Operators, requestTime, a.getProfiles},
		{"GET " + epdapi.PathSavings, query.Anybody, requestTime, a.getSavings},
		{"GET " + epdapi.PathUsage, query.Anybody, queueTime, a.getUsage},
		{"POST " + epdapi.PathEstimate, query.Anybody, requestTime, a.postEstimate},
		{"POST " + epdapi.PathCode, query.Anybody, requestTime, a.postCode},
		{"GET " + epdapi.PathQueue, query.Anybody, queueTime, plain(a.query.Queue)},
		{"POST " + epdapi.PathHistory, query.Administrators, requestTime, posted(a.query.AddHistory, false)},
		{"GET " + epdapi.PathHistory, query.Anybody, requestTime, a.getHistory},
		{"POST " + epdapi.PathReload, query.Administrators, requestTime, plain(a.query.Reload)},
		{"POST " + epdapi.PathPower, query.Administrators, requestTime, sameForAll(a.postPower)},
		{"GET " + epdapi.PathRuns, query.Administrators, requestTime, a.getRuns},
		{"POST " + epdapi.PathForget, query.Administrators, requestTime, posted(a.query.Forget, true)},
		{"POST " + epdapi.PathRemember, query.Administrators, requestTime, a.postRemember},
	}
}

// sameForAll returns an answer that is the same for all who may ask.
func sameForAll(answer func(*http.Request) (any, error)) func(*http.Request, query.Caller) (any, error) {
	return func(r *http.Request, _ query.Caller) (any, error) { return answer(r) }
}

// plain returns the answer to a question that says no more than who asks.
func plain[A any](
	ask func(context.Context, query.Caller) (A, error),
) func(*http.Request, query.Caller) (any, error) {
	return func(r *http.Request, who query.Caller) (any, error) { return ask(r.Context(), who) }
}

// posted returns the answer to a message. One that people write is read strictly: a slip must
// not choose a model's version 0.
func posted[Q, A any](
	ask func(context.Context, query.Caller, *Q) (A, error), strictly bool,
) func(*http.Request, query.Caller) (any, error) {
	return func(r *http.Request, who query.Caller) (any, error) {
		var message Q
		if err := decodeJSON(r.Body, &message, strictly); err != nil {
			return nil, err
		}
		return ask(r.Context(), who, &message)
	}
}

func (a *api) postSubmit(r *http.Request) (any, error) {
	s, err := hooks.DecodeSubmission(r.Body)
	if err != nil {
		return nil, err
	}
	return a.controller.Submit(r.Context(), &s)
}

func (a *api) postDecide(r *http.Request, who query.Caller) (any, error) {
	var request epdapi.DecideRequest
	if err := DecodeJSON(r.Body, &request); err != nil {
		return nil, err
	}
	if err := who.SpeaksFor(request.Node); err != nil {
		return nil, err
	}
	return a.controller.Decide(r.Context(), &request)
}

func (a *api) postLease(r *http.Request, who query.Caller) (any, error) {
	var request epdapi.LeaseRequest
	if err := DecodeJSON(r.Body, &request); err != nil {
		return nil, err
	}
	if err := who.SpeaksFor(request.Node); err != nil {
		return nil, err
	}
	return a.controller.Budget.Lease(r.Context(), &request)
}

func (a *api) getBudgets(*http.Request, query.Caller) (any, error) {
	return a.controller.Budget.List(), nil
}

func (a *api) postBudget(r *http.Request, who query.Caller) (any, error) {
	var event epdapi.BudgetEvent
	if err := decodeJSON(r.Body, &event, true); err != nil {
		return nil, err
	}
	return a.controller.Budget.Set(&event, cmp.Or(who.Name, fmt.Sprintf("uid %d", who.UID)))
}

func (a *api) postBudgetCancel(r *http.Request) (any, error) {
	var event epdapi.BudgetCancel
	if err := decodeJSON(r.Body, &event, true); err != nil {
		return nil, err
	}
	return a.controller.Budget.Cancel(event.ID)
}

func (a *api) postOutcome(r *http.Request, who query.Caller) (any, error) {
	var o record.Outcome
	if err := DecodeJSON(r.Body, &o); err != nil {
		return nil, err
	}
	if err := who.SpeaksFor(o.Node); err != nil {
		return nil, err
	}
	receipt, err := a.controller.Record(r.Context(), &o)
	if err != nil {
		return nil, err
	}
	return struct {
		Receipt string `json:"receipt"`
	}{receipt.String()}, nil
}

func (a *api) postOutlook(r *http.Request, who query.Caller) (any, error) {
	var request epdapi.OutlookRequest
	if err := DecodeJSON(r.Body, &request); err != nil {
		return nil, err
	}
	if err := who.SpeaksFor(request.Node); err != nil {
		return nil, err
	}
	return a.controller.Outlook(r.Context(), request)
}

func (a *api) postReport(r *http.Request, who query.Caller) (any, error) {
	var report epdapi.NodeReport
	if err := DecodeJSON(http.MaxBytesReader(nil, r.Body, epdapi.MaxReport), &report); err != nil {
		return nil, err
	}
	if err := who.SpeaksFor(report.Node); err != nil {
		return nil, err
	}
	return a.controller.Report(r.Context(), &report)
}

// postPower takes what Slurm's SuspendProgram or ResumeProgram did: it is
// logged. Slurm itself says in which state a node is.
func (a *api) postPower(r *http.Request) (any, error) {
	var news epdapi.PowerEvent
	if err := DecodeJSON(r.Body, &news); err != nil {
		return nil, err
	}
	if err := news.Validate(); err != nil {
		return nil, err
	}
	a.log.Info(news.Action, "nodes", len(news.Nodes), "first", news.Nodes[0], "failed",
		len(news.Failed))
	for _, node := range slices.Sorted(maps.Keys(news.Failed))[:min(len(news.Failed), logNodes)] {
		a.log.Error(news.Action+" failed", "node", node, "error",
			slurm.Printable(news.Failed[node], maxMessage))
	}
	return struct{}{}, nil
}

func (a *api) getStatus(r *http.Request, who query.Caller) (any, error) {
	return a.query.Status(r.Context(), who), nil
}

func (a *api) getNodes(r *http.Request, who query.Caller) (any, error) {
	return a.query.Nodes(r.Context(), who), nil
}

func (a *api) getJobs(r *http.Request, who query.Caller) (any, error) {
	asked, err := query.ParseJobs(r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	return a.query.Jobs(r.Context(), who, asked)
}

func (a *api) getJob(r *http.Request, who query.Caller) (any, error) {
	id, err := a.controller.Jobs.Number(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return a.query.Job(r.Context(), who, id)
}

func (a *api) getSeries(r *http.Request, who query.Caller) (any, error) {
	id, err := a.controller.Jobs.Number(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return a.query.Series(r.Context(), who, id)
}

func (a *api) getDecisions(r *http.Request, who query.Caller) (any, error) {
	q := r.URL.Query()
	before, err := query.ParseNumber(q.Get("before"), 0, 1<<62)
	if err != nil {
		return nil, err
	}
	limit, err := query.ParseLimit(q.Get("limit"))
	if err != nil {
		return nil, err
	}
	return a.query.Decisions(r.Context(), who, q.Get("mode"), before, limit)
}

func (a *api) getModels(r *http.Request, who query.Caller) (any, error) {
	q := r.URL.Query()
	if q.Get("workload") == "" {
		return a.query.Models(r.Context(), who)
	}
	return a.query.ModelVersions(r.Context(), who, q.Get("workload"), q.Get("gpu_model"))
}

func (a *api) getFit(r *http.Request, who query.Caller) (any, error) {
	q := r.URL.Query()
	return a.query.Fit(r.Context(), who, q.Get("workload"), q.Get("gpu_model"))
}

func (a *api) getProfiles(r *http.Request, who query.Caller) (any, error) {
	return a.query.Profiles(r.Context(), who, r.URL.Query().Get("workload"))
}

func (a *api) getSavings(r *http.Request, who query.Caller) (any, error) {
	since, until, err := periodOf(r)
	if err != nil {
		return nil, err
	}
	return a.query.Savings(r.Context(), who, since, until)
}

func (a *api) getUsage(r *http.Request, who query.Caller) (any, error) {
	since, until, err := periodOf(r)
	if err != nil {
		return nil, err
	}
	own, err := query.ParseBool(r.URL.Query(), "own")
	if err != nil {
		return nil, err
	}
	return a.query.Usage(r.Context(), who, since, until, r.URL.Query().Get("by"), own)
}

func periodOf(r *http.Request) (since, until time.Time, err error) {
	if since, err = query.ParseTime(r.URL.Query(), "since"); err == nil {
		until, err = query.ParseTime(r.URL.Query(), "until")
	}
	return since, until, err
}

func (a *api) postEstimate(r *http.Request, who query.Caller) (any, error) {
	if len(r.URL.RawQuery) > query.MaxQueryLength {
		return nil, query.ErrLongQuery
	}
	s, code, err := decodeCode(r.Body)
	if err != nil {
		return nil, err
	}
	return a.query.Estimate(r.Context(), who, &s, code, r.URL.Query().Get("gpu_model")), nil
}

func (a *api) postCode(r *http.Request, who query.Caller) (any, error) {
	s, code, err := decodeCode(r.Body)
	if err != nil {
		return nil, err
	}
	return a.query.Code(r.Context(), who, &s, code)
}

func (a *api) getHistory(r *http.Request, who query.Caller) (any, error) {
	q := r.URL.Query()
	asked := query.HistoryQuery{AfterID: q.Get("after_id")}
	var err error
	if asked.Since, err = query.ParseTime(q, "since"); err != nil {
		return nil, err
	}
	if asked.After, err = query.ParseTime(q, "after"); err != nil {
		return nil, err
	}
	return a.query.History(r.Context(), who, &asked)
}

func (a *api) getRuns(r *http.Request, who query.Caller) (any, error) {
	q := r.URL.Query()
	asked := query.RunQuery{
		Run: q.Get("run"), Node: q.Get("node"), Conflicts: q.Get("conflicts") == "true",
	}
	var err error
	if asked.Job, err = query.ParseNumber(q.Get("job"), 0, slurm.MaxJobID); err != nil {
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
	return a.query.RecordedRuns(r.Context(), who, &asked)
}

func (a *api) postRemember(r *http.Request, who query.Caller) (any, error) {
	var back epdapi.RunList
	if err := decodeJSON(r.Body, &back, true); err != nil {
		return nil, err
	}
	return a.query.Remember(r.Context(), who, back.Runs)
}

// decodeCode reads a submission and what comes with it of its code; nil: nothing.
func decodeCode(r io.Reader) (hooks.Submission, *epdapi.Code, error) {
	data, err := io.ReadAll(io.LimitReader(r, hooks.MaxMessage+1)) // DecodeSubmission refuses more
	if err != nil {
		return hooks.Submission{}, nil, err
	}
	s, err := hooks.DecodeSubmission(bytes.NewReader(data))
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
