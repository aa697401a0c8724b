package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/report/planreport"
	"github.com/epplan/epplan/internal/slurmqueue"
	"github.com/epplan/epplan/internal/web/login"
	"github.com/epplan/epplan/planner"
	policies "github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/queue"
)

// Bounds of a plan that a page asks for: they are made one at a time, for as long
// as somebody waits for the page.
const (
	planTimeLimit   = 7 * time.Second
	planSearchTime  = 4 * time.Second // after which the best plan so far is shown
	maxPlanJobs     = 1000
	defaultPlanJobs = 200
	maxPolicy       = 200 // bytes of a policy string
	clocksPerJob    = ""
	clocksNone      = "default"
	clocksBest      = "optimum"
)

// whatIfForm is the form that asks for a plan, as it was filled in.
type whatIfForm struct {
	Policies []policyOption
	Policy   string // of the list
	Text     string // a policy string of the viewer's own; empty: that of the list
	Clocks   string
	Relaxed  bool
	Most     int
	MostJobs int
	asked    bool
}

type policyOption struct{ Name, Doc string }

func readWhatIf(r *Request) (*whatIfForm, error) {
	q := r.Query
	f := &whatIfForm{
		Policy: q.Get("policy"), Text: q.Get("text"), Clocks: q.Get("clocks"),
		Relaxed: q.Get("relaxed") != "", Most: defaultPlanJobs, MostJobs: maxPlanJobs,
		asked: q.Has("policy"),
	}
	for _, name := range policies.Names() {
		f.Policies = append(f.Policies, policyOption{name, policies.Describe(name)})
	}
	switch {
	case len(f.Text) > maxPolicy:
		return nil, badQuery(fmt.Sprintf("The policy has %d bytes, want at most %d.", len(f.Text), maxPolicy),
			"Shorten it.")
	case f.Policy != "" && !slices.Contains(policies.Names(), f.Policy):
		return nil, badQuery("There is no policy of that name.", "Choose one of the list.")
	case f.Clocks != clocksPerJob && f.Clocks != clocksNone && f.Clocks != clocksBest:
		return nil, badQuery("Clocks are the policy's, default or optimum.", "Choose one of the list.")
	}
	if text := q.Get("jobs"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPlanJobs {
			return nil, badQuery("The number of jobs isn't a number from 1 to "+strconv.Itoa(maxPlanJobs)+".",
				"Correct it and plan again.")
		}
		f.Most = n
	}
	return f, nil
}

func (f *whatIfForm) question() slurmqueue.PlanOptions {
	text := f.Text
	if text == "" {
		text = f.Policy
	}
	if f.Clocks != clocksPerJob {
		if text == "" {
			text = policies.DefaultName(planner.Offline)
		}
		text += ",clocks=" + f.Clocks
	}
	return slurmqueue.PlanOptions{
		Policy: text, IgnoreDeadlines: f.Relaxed, MaxTasks: f.Most, SearchTime: planSearchTime,
	}
}

// waitForPlanTurn waits until the plan that a request asks for may be made, before the
// page has its turn: nobody's turn is taken by waiting. Whoever waited in vain is
// answered, and ok is false; else made is called when the plan is made.
func (s *Site) waitForPlanTurn(w http.ResponseWriter, r *http.Request) (made func(), ok bool) {
	asked := s.newRequest(r, login.ViewerOf(r.Context()))
	form, err := readWhatIf(asked)
	if err != nil {
		s.showError(w, r, err)
		return nil, false
	}
	if !form.asked {
		return func() {}, true
	}
	made, err = s.planWaitlist.acquire(r.Context(),
		strconv.FormatInt(asked.Viewer.UID, 10)+" "+asked.Viewer.Name)
	switch {
	case err == nil:
		return made, true
	case r.Context().Err() != nil: // whoever asked has gone
	case errors.Is(err, errPlanQueueFull):
		s.write(w, r, http.StatusServiceUnavailable, form.viewWithError(asked,
			"Others wait for their plans, too. Your turn hasn't come: plan again in a few seconds."))
	case errors.Is(err, errSuperseded):
		s.write(w, r, http.StatusTooManyRequests, form.viewWithError(asked,
			"You asked for another plan since: the last one that you ask for is made."))
	default:
		s.showError(w, r, err)
	}
	return nil, false
}

// viewWithError returns the page with the form as it was filled in, and why there is no plan.
func (f *whatIfForm) viewWithError(r *Request, why string) *View {
	v := f.view(r)
	v.add("plan", "The plan", &page.Notice{Kind: page.Info, Text: why})
	return v
}

// view returns the page with the form alone.
func (f *whatIfForm) view(r *Request) *View {
	of := "what waits in Slurm's queue now"
	if !r.Viewer.SeesAll() {
		of = "your jobs that wait in Slurm's queue now, as if there were no others"
	}
	return &View{
		Title: "What if",
		Lead: "A plan of " + of +
			", by a policy of your choice. It is only computed: neither Slurm nor a GPU is told of it.",
		Still: true,
		Sections: []Section{{
			ID: "ask", Still: true, Parts: []any{renderTemplate("whatif", f)},
		}},
	}
}

// whatIfPage returns the page that plans what waits in the queue. It changes nothing.
func whatIfPage(ctx context.Context, r *Request) (*View, error) {
	form, err := readWhatIf(r)
	if err != nil {
		return nil, err
	}
	v := form.view(r)
	if !form.asked {
		return v, nil
	}
	plan, err := planQueue(ctx, r, form.question())
	if err != nil {
		notice, err := planProblemNotice(err)
		if err != nil {
			return nil, err
		}
		v.add("plan", "The plan", notice)
		return v, nil
	}
	v.addPlan(plan)
	return v, nil
}

// planQueue makes a plan of the queue that the viewer may see.
func planQueue(
	ctx context.Context, r *Request, question slurmqueue.PlanOptions,
) (*slurmqueue.WhatIf, error) {
	ctx, cancel := context.WithTimeout(ctx, planTimeLimit)
	defer cancel()
	q, err := r.Source.Queue(ctx)
	if err != nil {
		return nil, err
	}
	return slurmqueue.PlanQueue(ctx, q, r.site.options.Terms(), question)
}

// planProblemNotice returns what is said in place of a plan; errors that aren't about the
// plan are returned.
func planProblemNotice(err error) (*page.Notice, error) {
	var syntax *policies.SyntaxError
	refused, isRefusal := errors.AsType[*epdapi.RefusedError](err)
	switch {
	case isRefusal && refused.Status == http.StatusServiceUnavailable:
		return &page.Notice{
			Kind: page.Warn, Text: "There is no queue to plan: " + refused.Fault.Error + ".",
		}, nil
	case errors.As(err, &syntax):
		return &page.Notice{
			Kind: page.Bad, Text: "The policy can't be read: " + syntax.Msg +
				" (at byte " + strconv.Itoa(syntax.Offset) + ").",
		}, nil
	case errors.Is(err, slurmqueue.ErrNothingWaits):
		return &page.Notice{Kind: page.Info, Text: "No job with GPUs waits that can be planned."}, nil
	case errors.Is(err, slurmqueue.ErrNoNodes):
		return &page.Notice{
			Kind: page.Warn,
			Text: "No node of Slurm's has GPUs of a known model, so there is nothing to plan on.",
		}, nil
	case errors.Is(err, context.DeadlineExceeded):
		return &page.Notice{
			Kind: page.Warn, Text: "This took longer than a page may: take fewer jobs, or plan at a " +
				"terminal with epplan plan --from-slurm.",
		}, nil
	}
	return nil, err
}

// addPlan shows a plan as a report does, and says what it leaves out.
func (v *View) addPlan(w *slurmqueue.WhatIf) {
	content := (&planreport.PlanPage{Result: w.Result, Name: "what waits", Jobs: w.Jobs}).Content()
	parts := append([]any{page.Text(content.Lead)}, content.Parts...)
	v.add("plan", "The plan", append(parts, assumptions(w))...)
	for _, s := range content.Sections {
		v.add(s.ID, s.Heading, s.Parts...)
	}
}

// assumptions returns what a plan of the queue takes for granted.
func assumptions(w *slurmqueue.WhatIf) *page.Notice {
	b := w.Batch
	n := &page.Notice{Kind: page.Info, Text: "The plan is of " + report.Plural(len(w.Jobs), "job") + "."}
	add := func(count int, text string) {
		if count > 0 {
			n.Items = append(n.Items, text)
		}
	}
	if w.Result.Plan.Cut {
		n.Items = append(n.Items, fmt.Sprintf("The search for a better plan stopped after %v: this is the "+
			"best so far. At a terminal, epplan plan --from-slurm searches to the end.", planSearchTime))
	}
	if w.NoFixed {
		n.Items = append(n.Items, "Constant clocks weren't looked for to the end, and are left out.")
	}
	add(w.Unasked, report.Plural(w.Unasked, "job")+" more waited for a shorter time and weren't asked for.")
	add(b.Running.Jobs, report.Plural(b.Running.Jobs, "job")+" that run hold "+
		report.Plural(b.Running.GPUs, "GPU")+" until they are expected to end.")
	add(b.Running.Without,
		"The nodes that Slurm reports have no room for "+report.Plural(b.Running.Without, "GPU")+" of these.")
	add(b.Unknown,
		report.Plural(b.Unknown, "job")+" without a model run at default clocks for as long as the time limit.")
	add(b.Left.Held, report.Plural(b.Left.Held, "job")+" left out, "+b.Left.Text()+".")
	add(b.Left.Several, report.Plural(b.Left.Several, "job")+" with unequal parts on several nodes left out.")
	add(b.Left.Endless, report.Plural(b.Left.Endless, "job")+" without model and time limit left out.")
	add(b.Left.Many, report.Plural(b.Left.Many, "job")+" beyond what epd lists left out.")
	n.Items = append(n.Items, queue.WarningLines(w.Warnings, false)...)
	return n
}

// defaultTerms returns those of the default configuration.
func defaultTerms() *slurmqueue.PlanTerms {
	c := config.Default()
	return &slurmqueue.PlanTerms{Profiles: config.BuiltinProfiles(), Goal: c.Goal(), Safety: c.Safety}
}
