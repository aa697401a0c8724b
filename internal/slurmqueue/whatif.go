package slurmqueue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/catalog"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/liveplan"
	"github.com/epplan/epplan/internal/report/planreport"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
	"github.com/epplan/epplan/planner/join"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/queue"
	"github.com/epplan/epplan/slurm"
)

// ErrNothingWaits tells that no job waits that can be planned.
var ErrNothingWaits = errors.New("no job with GPUs waits that can be planned")

// PlanTerms are what a configuration says of plans.
type PlanTerms struct {
	Profiles *config.Profiles
	Goal     config.Goal
	Safety   config.Safety
	// PaceOf is the pace that a partition has of its own; 0, and nil: none.
	PaceOf func(partition string) float64
	// Admissible are the clocks that epd would set for a job; not ok: that isn't known. Nil: all that
	// GPUs have may be set.
	Admissible func(*liveplan.ClockQuestion) (clocks []dvfsmodel.Setting, ok bool)
	// Arm is that into which a job is drawn at random on GPUs of a model (empty: of one without constant
	// clocks): all but treated ones run as without a plan. Nil: all are treated.
	Arm func(job slurm.JobID, gpuModel string) live.Arm
	// Constant are the clocks that a job of the constant arm gets; the zero value: the default ones.
	Constant func(*liveplan.ClockQuestion) dvfsmodel.Setting
	// RunTimes are how long jobs that run are predicted to take at the clocks that they have, seconds;
	// nil, and others: as at default ones.
	RunTimes func() map[slurm.JobID]float64
}

// PlanOptions is what a plan of the queue is to be like. The zero value is planned by
// the best policy, everything of it.
type PlanOptions struct {
	Policy          string // a policy string; empty: the one that takes the least energy
	IgnoreDeadlines bool   // deadlines don't count
	MaxTasks        int    // tasks: those that wait longest; 0: all
	// SearchTime is after how long the search for a better plan stops with the best so far; 0: when it is done.
	SearchTime time.Duration
}

// WhatIf is a plan of what waits.
type WhatIf struct {
	Result   *planreport.Result
	Batch    *Batch
	Jobs     []queue.Job // by task
	Unasked  int         // tasks that weren't asked for, by PlanOptions.Most
	Warnings []error     // about nodes and models that are left out, and about estimates
	NoFixed  bool        // constant clocks weren't looked for to the end, and are left out
}

// PlanQueue plans what waits in a queue as `epplan plan --from-slurm` does: on the
// nodes that Slurm reports, beside what runs there. It touches nothing. Its errors
// are about the policy string, [ErrNoNodes], [ErrNothingWaits], or those of the
// context.
func PlanQueue(
	ctx context.Context, q *epdapi.Queue, terms *PlanTerms, question PlanOptions,
) (w *WhatIf, err error) {
	defer func() {
		if r := recover(); r != nil {
			w, err = nil, fmt.Errorf("policy %s: panic: %v", question.Policy, r)
		}
	}()
	text := question.Policy
	if text == "" {
		text = policy.WithNumber(policy.SearchPolicy, "tolerance", terms.Goal.Tolerance)
	}
	search := ctx
	if question.SearchTime > 0 {
		var end context.CancelFunc
		search, end = context.WithTimeoutCause(ctx, question.SearchTime, planner.ErrCut)
		defer end()
	}
	params := policy.DefaultParams()
	chosen, err := policy.Parse(text, params)
	if err != nil {
		return nil, err
	}
	w = &WhatIf{}
	problem, err := w.problem(q, terms, question)
	if err != nil {
		return nil, err
	}
	if err := policy.ImplyDue(ctx, problem, terms.Safety.MaxTurnaround); err != nil {
		return nil, err
	}
	options := planner.Options{Seed: planner.DefaultSeed}
	var against policy.References
	var beside errgroup.Group
	beside.Go(func() (err error) {
		params.AlwaysOn = planner.NeverSleeps(chosen.Park, &problem.Cluster)
		against, err = policy.NewReferences(search, problem, params)
		return err
	})
	plan, err := policy.SolveChecked(search, problem, chosen, &options)
	if err = errors.Join(err, beside.Wait()); err != nil {
		return nil, err
	}
	w.NoFixed = against.Cut
	w.Result = &planreport.Result{
		Problem: problem, Plan: plan, Baseline: against.FCFS.Ledger.Total(),
		Bound:     bound.Of(problem, plan),
		Reference: against.FCFS, Easy: against.Easy, Constant: against.Constant, AlwaysOn: against.AlwaysOn,
	}
	if chosen.Improve != nil {
		w.Result.Seed = &options.Seed
	}
	return w, ctx.Err()
}

// problem joins what waits with its models. Jobs without a deadline have no due time yet.
func (w *WhatIf) problem(q *epdapi.Queue, terms *PlanTerms, question PlanOptions) (*planner.Problem, error) {
	further, err := Profiles(q)
	if err != nil {
		return nil, err
	}
	known := terms.Profiles
	if further != nil {
		known = known.With(further)
	}
	c, partitions, warnings, err := Cluster(q.Nodes, known)
	w.Warnings = warnings
	if err != nil {
		return nil, err
	}
	models, warnings, err := Models(q.Models, c.Profiles())
	w.Warnings = append(w.Warnings, warnings...)
	if err != nil {
		return nil, err
	}
	cluster, catalog := c.Cluster(), catalog.New(c.Profiles(), models, nil)
	w.Warnings = append(w.Warnings, config.EstimateWarnings(&cluster, c.Profiles())...)
	w.Batch = batchOf(terms.withDecidedClocks(q), &cluster, partitions, catalog, question.MaxTasks)
	w.Unasked = w.Batch.Unasked
	jobs := w.chosenJobs(question)
	if len(jobs) == 0 {
		return nil, ErrNothingWaits
	}
	margins := join.Margins{Limit: terms.Safety.LimitMargin, Deadline: terms.Safety.DeadlineMargin}
	w.Jobs = jobs
	tasks, warnings, err := join.Tasks(&queue.Batch{Name: "Slurm's queue", Jobs: jobs}, &cluster, catalog, margins)
	if err != nil {
		return nil, err
	}
	// Nobody states power there, and a prediction or a limit is of wherever a job runs.
	w.Warnings = append(w.Warnings, queue.WithoutWarnings(warnings, queue.WarnPower, queue.WarnRunTime,
		queue.WarnNoRunTime)...)
	terms.restrictClocks(tasks, jobs, w.Batch.RecordOf)
	if terms.PaceOf != nil {
		for i := range tasks {
			tasks[i].Pace = terms.PaceOf(w.Batch.RecordOf[i].Partition)
		}
	}
	tightenDeadlines(tasks)
	p := &planner.Problem{Cluster: cluster, Tasks: tasks, Mode: planner.ModeOf(tasks)}
	terms.Goal.ApplyTo(p)
	if err := w.Batch.AddRunning(p); err != nil {
		return nil, err
	}
	noteBacklog(p, len(jobs))
	p.Start = c.Start(p.Mode)
	return p, nil
}

// tightenDeadlines has tasks end before their deadlines where they can, so that one whose end is as far off
// as counts as planned meets it: a start that is far ahead may be off by more than one that is near.
func tightenDeadlines(tasks []planner.Task) {
	for i := range tasks {
		t := &tasks[i]
		shortest := minRunTime(t) // without end where it can't run at all
		if room := t.Deadline - t.Arrival; room > shortest {
			t.Due = min(t.Due, t.Arrival+max((1-liveplan.OffPlan)*room, shortest))
		}
	}
}

// noteBacklog counts the GPUs that tasks wait for, of which there are so many, by GPU that each could have:
// more than those that are free.
func noteBacklog(p *planner.Problem, waiting int) {
	classes := p.Cluster.Classes
	all := make([]int, len(classes))
	for class := range classes {
		all[class] = classes[class].Count * classes[class].GPUs
	}
	free, backlog := slices.Clone(all), planner.NewBacklog(all)
	if p.Snapshot != nil {
		for i := range p.Snapshot.Running {
			r := &p.Snapshot.Running[i]
			free[r.Class] -= p.Tasks[r.Task].Options[0].GPUs
		}
	}
	for i := range p.Tasks[:waiting] {
		t := &p.Tasks[i]
		backlog.Add(1, func(class int) float64 {
			k := &classes[class]
			option := t.Option(k.Model)
			if !k.CanRun(t, option) {
				return 0
			}
			return float64(t.Options[option].GPUs) * t.Share
		})
	}
	for class := range classes {
		if all[class] > 0 {
			classes[class].Backlog = max(0, backlog.By[class]-float64(free[class])/float64(all[class]))
		}
	}
}

func (w *WhatIf) chosenJobs(question PlanOptions) []queue.Job {
	jobs := slices.Clone(w.Batch.Jobs)
	if question.IgnoreDeadlines {
		for i := range jobs {
			jobs[i].Deadline = math.Inf(1)
		}
	}
	return jobs
}

// withDecidedClocks returns a queue in which jobs that are held out stay at default clocks, and jobs that
// run take as long as at the clocks that they have.
func (t *PlanTerms) withDecidedClocks(q *epdapi.Queue) *epdapi.Queue {
	if t.Arm == nil && t.RunTimes == nil {
		return q
	}
	out := *q
	out.Jobs = slices.Clone(q.Jobs)
	var runTimes map[slurm.JobID]float64
	if t.RunTimes != nil {
		runTimes = t.RunTimes()
	}
	for i := range out.Jobs {
		j := &out.Jobs[i]
		id := slurm.JobID(j.ID) //nolint:gosec // it was one of Slurm's
		if j.State == string(slurm.Pending) {
			j.HandsOff = j.HandsOff || t.arm(id, "") == live.ArmHeldOut
		} else if seconds, known := runTimes[id]; known {
			j.Workload, j.RuntimeS = "", live.Known(seconds)
		}
	}
	return &out
}

// arm is that into which a job is drawn on GPUs of a model.
func (t *PlanTerms) arm(job slurm.JobID, gpuModel string) live.Arm {
	if t.Arm == nil {
		return live.ArmTreated
	}
	return t.Arm(job, gpuModel)
}

// restrictClocks leaves tasks the clocks that epd would set for their jobs.
func (t *PlanTerms) restrictClocks(tasks []planner.Task, jobs []queue.Job, records []QueueRecord) {
	if t.Admissible == nil {
		return
	}
	type question struct {
		liveplan.ClockQuestion
		constant bool // what is asked for are the clocks of the constant arm
	}
	known := make(map[question]dvfsmodel.Response)
	for i := range tasks {
		if jobs[i].Workload == "" {
			continue
		}
		for k := range tasks[i].Options {
			o := &tasks[i].Options[k]
			ask := question{
				liveplan.ClockQuestion{
					Workload: jobs[i].Workload, GPUModel: o.Model, Limit: jobs[i].Limit,
					Partition: records[i].Partition, Slowdown: records[i].Slowdown,
				},
				t.arm(records[i].ID, o.Model) == live.ArmConstant,
			}
			if _, fixed := o.Response.(*dvfsmodel.Fixed); fixed {
				continue // at default clocks, such as a job that ends at its limit
			}
			if known[ask] == nil {
				known[ask] = o.Response
				if ask.constant {
					known[ask] = fixedAt(o.Response, t.Constant(&ask.ClockQuestion))
				} else if clocks, ok := t.Admissible(&ask.ClockQuestion); ok {
					known[ask] = dvfsmodel.RestrictedTo(o.Response, func(pair dvfsmodel.Setting) bool {
						return slices.Contains(clocks, pair)
					})
				}
			}
			o.Response = known[ask]
		}
	}
}

// fixedAt returns a response at some clocks alone; at the default ones where it hasn't got them.
func fixedAt(r dvfsmodel.Response, clocks dvfsmodel.Setting) dvfsmodel.Response {
	at := r.Default()
	if pt, ok := dvfsmodel.PointAt(r, dvfsmodel.Point{Core: clocks.Core, Mem: clocks.Mem}); ok {
		at = pt
	}
	return &dvfsmodel.Fixed{At: at}
}
